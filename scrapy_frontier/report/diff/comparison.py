"""What two standings of one URL come to: at most one difference, the one that matters most."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from scrapy_frontier.report.diff.standing import Standing


class Kind(Enum):
    """What is different, by the name in reports."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    MOVED = "moved"
    FAILING = "failing"
    RECOVERED = "recovered"
    ALLOWED = "allowed"
    SUPPRESSED = "suppressed"
    OPEN = "open"


MEANINGS: Final = {
    Kind.NEW: "Only the second run knows it.",
    Kind.GONE: "No page of the second run refers to it, or it answers 404 or 410 now.",
    Kind.CHANGED: "Other bytes came. `same_text`: its main text is the same all the same.",
    Kind.MOVED: "It redirects now, or to another URL, or no longer.",
    Kind.FAILING: "It fails now: no answer, an error, or its callback raised.",
    Kind.RECOVERED: "It failed or was gone, and is answered now.",
    Kind.ALLOWED: "A rule excluded it or held it back, and does so no longer.",
    Kind.SUPPRESSED: "A rule excludes it or holds it back now.",
    Kind.OPEN: "One of the runs has not come to an end with it.",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One URL that fared differently. `same_text` tells for changed pages whether their main text is the same, None
    where that is not known. `was`, `now`: None where the run does not know it.
    """

    kind: str
    method: str
    url: str
    same_text: bool | None
    was: Standing | None
    now: Standing | None

    def to_json(self) -> dict[str, Any]:
        """The difference as plain data."""
        return asdict(self)


_KEPT_OUT: Final = frozenset({State.SUPPRESSED.label, State.DEFERRED.label})
_GONE: Final = Disposition.GONE.label
_REDIRECTED: Final = Disposition.REDIRECTED.label
_FAILING: Final = frozenset(
    {
        Disposition.HTTP_ERROR.label,
        Disposition.FAILED.label,
        Disposition.CALLBACK_ERROR.label,
        Disposition.CANCELLED.label,
    }
)


def kind_of(was: Standing | None, now: Standing | None) -> Kind | None:
    """How the second standing differs from the first; None where it does not."""
    if was is None or now is None:
        return Kind.NEW if was is None else Kind.GONE
    was_out, is_out = was.state in _KEPT_OUT, now.state in _KEPT_OUT
    if was_out or is_out:
        return None if was_out and is_out else Kind.ALLOWED if was_out else Kind.SUPPRESSED
    if was.disposition is None or now.disposition is None:
        return None if was.disposition == now.disposition else Kind.OPEN
    return _kind_of_ends(was, now)


def _kind_of_ends(was: Standing, now: Standing) -> Kind | None:
    if now.disposition in _FAILING:
        return None if was.disposition in _FAILING else Kind.FAILING
    if now.disposition == _GONE:
        return None if was.disposition == _GONE else Kind.GONE
    if was.disposition in _FAILING or was.disposition == _GONE:
        return Kind.RECOVERED
    if _REDIRECTED in (was.disposition, now.disposition):
        return (
            None if (was.disposition, was.target) == (now.disposition, now.target) else Kind.MOVED
        )
    has_both = was.content is not None and now.content is not None
    is_unmodified = Disposition.NOT_MODIFIED.label in (was.disposition, now.disposition)
    return Kind.CHANGED if has_both and was.content != now.content and not is_unmodified else None


def has_same_text(was: Standing | None, now: Standing | None) -> bool | None:
    """Whether the main texts of both are the same, None where one of them is not known."""
    if was is None or now is None or was.words is None or now.words is None:
        return None
    return was.words == now.words
