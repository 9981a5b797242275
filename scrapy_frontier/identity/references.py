"""A reference: what a page emitted, as it was found, and what became of its URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scrapy_frontier.identity.rejections import Rejection, observe
from scrapy_frontier.identity.resolve import Resolved

TEXT_LIMIT: Final = 256
"""How many characters of an anchor text are kept."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference of one page: either `url` or `rejection` is set, never both.

    `observed` is the spelling found (see `observe`), `url` the request URL, `fragment` what stood
    behind its `#`. `tag` and `attribute` say where it stood, `rel` and `text` what was said of it;
    they are empty where that is not known, as for a reference that a spider made up.
    """

    observed: str
    url: str | None = None
    rejection: Rejection | None = None
    fragment: str = ""
    tag: str = ""
    attribute: str = ""
    rel: str = ""
    text: str = ""

    @classmethod
    def of(
        cls,
        observed: object,
        outcome: Resolved | Rejection,
        *,
        tag: str = "",
        attribute: str = "",
        rel: str = "",
        text: str = "",
    ) -> Reference:
        """Make a reference of what was found and of what `resolve` said; texts are cut to size."""
        spelling, rel = _spelling(observed), observe(rel)
        text = observe(" ".join(text.split())[:TEXT_LIMIT])
        if isinstance(outcome, Rejection):
            return cls(spelling, None, outcome, "", tag, attribute, rel, text)
        return cls(spelling, outcome.url, None, outcome.fragment, tag, attribute, rel, text)

    @property
    def href(self) -> str:
        """The request URL with the fragment, `""` where there is none."""
        return f"{self.url}#{self.fragment}" if self.url and self.fragment else self.url or ""

    @property
    def is_nofollow(self) -> bool:
        """Whether the page's author asks that the link is not followed (`rel=nofollow`)."""
        return "nofollow" in self.rel.lower().replace(",", " ").split()


def _spelling(observed: object) -> str:
    if isinstance(observed, str):
        return observe(observed)
    return observe(repr(observed)) if isinstance(observed, bytes) else ""
