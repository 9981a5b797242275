"""From the text of a page to what the rules about traps, and the record of likeness, need of it."""

from __future__ import annotations

from scrapy_frontier.policy.likeness import (
    Likeness,
    LikenessIndex,
    Match,
    SeenPhrases,
    likeness_of,
    main_text,
)
from scrapy_frontier.policy.traps.content import Content
from scrapy_frontier.policy.traps.signature import CALENDAR, PAGINATION, signature_of


class Reader:
    """Reads the pages of one run in the order in which they come."""

    def __init__(self, index: LikenessIndex, phrases: SeenPhrases) -> None:
        self._index = index
        self._phrases = phrases

    def read(
        self, html: str | None, url: str, origin: str, number: int, family: tuple[str, str]
    ) -> tuple[Content, tuple[Likeness, Match | None] | None]:
        """What a page brought, and its likeness with the page it is like.

        `html` is None where no text is looked at. `number` is that of the page's identity.
        """
        if html is None:
            return Content(family), None
        is_counted = signature_of(url[len(origin) :]).trait in (CALENDAR, PAGINATION)
        likeness = likeness_of(main_text(html, url, is_counted=is_counted))
        match = self._index.find(origin, likeness)
        if match is None:
            self._index.add(origin, likeness, number, url)
        content = Content(
            family,
            likeness.bare,
            is_read=True,
            is_judged=likeness.is_judged,
            is_same=match is not None and match.is_same,
            is_exact=match is not None and match.is_exact,
            is_near=match is not None and not match.is_exact,
            novelty=self._phrases.share_new(origin, likeness.hashes),
            like="" if match is None else match.url,
        )
        return content, (likeness, match)
