"""What came of one request, as far as the health of its origin is concerned.

Only what a server does under load, or cannot do at all, tells something of its health. A page that
is not there, or is forbidden, was answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """What an origin did with a request that had reached the wire."""

    ANSWERED = "answered"
    REFUSED = "refused"
    ERROR = "error"
    DOWN = "down"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    UNREACHED = "unreached"

    @property
    def label(self) -> str:
        """The name used in samples, reports and documentation."""
        return self.value


MEANINGS: Final = {
    Kind.ANSWERED: "any answer that is none of the others: also 403 and 404",
    Kind.REFUSED: "429 or 503: asked to slow down (RFC 6585, section 4; RFC 9110, section 15.6.4)",
    Kind.ERROR: "another 5xx, or 408: the server is there and failed at this page",
    Kind.DOWN: "502, 504, 520 to 527, 530: what stands before the server does not reach it",
    Kind.TIMEOUT: "no answer within `DOWNLOAD_TIMEOUT`",
    Kind.BROKEN: "the connection failed before the answer was whole",
    Kind.UNREACHED: "no connection, or no address",
}

SIGNS_OF_LIFE: Final = frozenset({Kind.ANSWERED, Kind.ERROR})
"""Outcomes that only a working server has; the others, alone for long enough, close an origin."""

REPEATED: Final = frozenset({Kind.ERROR, Kind.DOWN})
"""Outcomes of which one is a page's affair and several in a row are the server's."""

_REFUSALS: Final = frozenset({429, 503})
_GATEWAY: Final = frozenset({502, 504, *range(520, 528), 530})
_UNREACHED: Final = frozenset({"connect_timeout", "dns", "refused", "unreachable"})
_OWN_DOING: Final = frozenset(
    {"cancelled", "unsupported", "too_large", "ignored", "decoding", "stale"}
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request that has left the wire; times in seconds since the epoch."""

    kind: Kind
    started_at: float
    ended_at: float

    @property
    def latency_s(self) -> float:
        """How long it was on the wire; 0 where the clock was set back meanwhile."""
        return max(0.0, self.ended_at - self.started_at)


def kind_of_status(status: int) -> Kind:
    """What a response with this status says of the health of its origin."""
    if status in _REFUSALS:
        return Kind.REFUSED
    if status in _GATEWAY:
        return Kind.DOWN
    return Kind.ERROR if status >= 500 or status == 408 else Kind.ANSWERED


def kind_of_failure(name: str) -> Kind | None:
    """What a failed download says, by the short name of its failure; None where it was the
    client's own doing.
    """
    first = name.partition(".")[0]
    if first in _OWN_DOING:
        return None
    if first in _UNREACHED:
        return Kind.UNREACHED
    return Kind.TIMEOUT if first == "timeout" else Kind.BROKEN
