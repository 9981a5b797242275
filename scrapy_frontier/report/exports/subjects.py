"""What can be exported: the columns of each subject, and how a page of its rows is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.report.exports import ledger_rows, reference_rows

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.exports.moment import Moment

Row = tuple[Any, ...]

Reader = Callable[["Connection", "Moment", int, int], Sequence[Row]]
"""Reads the rows of the moment's run whose ids are above the first number, up to the second."""


class Kind(Enum):
    """What a column holds. Instants are milliseconds since the epoch, data is JSON as text."""

    INTEGER = "integer"
    TEXT = "text"
    FLAG = "true or false"
    INSTANT = "instant"
    DATA = "JSON"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. None stands in it where there is nothing to tell."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing to export: pages of `page` rows of `table` by their id `key`, read by `read`."""

    name: str
    summary: str
    table: str
    key: str
    page: int
    columns: tuple[Column, ...]
    read: Reader


def _columns(**kinds: Kind) -> tuple[Column, ...]:
    # A name that is a word of Python's has an underscore behind it.
    return tuple(Column(name.rstrip("_"), kind) for name, kind in kinds.items())


_INTEGER, _TEXT, _FLAG, _INSTANT, _DATA = Kind

SUBJECTS: Final[dict[str, Subject]] = {
    subject.name: subject
    for subject in (
        Subject(
            "transitions",
            "the ledger: every transition, in the order of its seq",
            "transition",
            "seq",
            5000,
            _columns(
                seq=_INTEGER,
                run=_INTEGER,
                identity=_INTEGER,
                key=_TEXT,
                url=_TEXT,
                previous=_INTEGER,
                attempt=_INTEGER,
                generation=_INTEGER,
                event=_TEXT,
                from_=_TEXT,
                to=_TEXT,
                disposition=_TEXT,
                at=_INSTANT,
                reason=_TEXT,
                detail=_DATA,
                evidence=_TEXT,
                session=_INTEGER,
                worker=_TEXT,
                policy_version=_TEXT,
            ),
            ledger_rows.transitions,
        ),
        Subject(
            "identities",
            "every URL, and where it stood at the moment",
            "identity",
            "identity_id",
            5000,
            _columns(
                identity=_INTEGER,
                run=_INTEGER,
                key=_TEXT,
                method=_TEXT,
                url=_TEXT,
                origin=_TEXT,
                kind=_TEXT,
                depth=_INTEGER,
                source=_INTEGER,
                family=_TEXT,
                state=_TEXT,
                disposition=_TEXT,
                reason=_TEXT,
                since=_INSTANT,
                attempt=_INTEGER,
                last_seq=_INTEGER,
            ),
            ledger_rows.identities,
        ),
        Subject(
            "attempts",
            "every dispatch, and what it had brought by the moment",
            "attempt",
            "attempt_id",
            5000,
            _columns(
                attempt=_INTEGER,
                run=_INTEGER,
                identity=_INTEGER,
                url=_TEXT,
                session=_INTEGER,
                worker=_TEXT,
                generation=_INTEGER,
                dispatched_at=_INSTANT,
                finished_at=_INSTANT,
                status=_INTEGER,
                size=_INTEGER,
                payload=_TEXT,
                outcome=_TEXT,
            ),
            ledger_rows.attempts,
        ),
        Subject(
            "edges",
            "every reference that led to a URL: from which page to which",
            "emission",
            "emission_id",
            500,
            _columns(
                emission=_INTEGER,
                run=_INTEGER,
                kind=_TEXT,
                attempt=_INTEGER,
                source=_INTEGER,
                source_url=_TEXT,
                target=_INTEGER,
                target_url=_TEXT,
            ),
            reference_rows.edges,
        ),
        Subject(
            "references",
            "references as pages spelled them, where that is kept, with what stood around them",
            "emission",
            "emission_id",
            500,
            _columns(
                emission=_INTEGER,
                run=_INTEGER,
                kind=_TEXT,
                source=_INTEGER,
                source_url=_TEXT,
                target=_INTEGER,
                target_url=_TEXT,
                observed=_TEXT,
                fragment=_TEXT,
                tag=_TEXT,
                rel=_TEXT,
                text=_TEXT,
                is_followed=_FLAG,
            ),
            reference_rows.references,
        ),
        Subject(
            "rejections",
            "every reference that a rule refused, as its page spelled it",
            "rejection",
            "rejection_id",
            5000,
            _columns(
                rejection=_INTEGER,
                run=_INTEGER,
                kind=_TEXT,
                source=_INTEGER,
                source_url=_TEXT,
                rule=_TEXT,
                observed=_TEXT,
            ),
            reference_rows.rejections,
        ),
    )
}
"""All subjects, by name."""
