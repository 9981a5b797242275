"""Dead letters: identities that came to a bad end for good, with their history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.account import DeadLetter
from scrapy_frontier.report.history import length_of_history
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import NO_REASON, label, parsed
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from scrapy_frontier.report.robots.fetches import RobotsFetches

DEAD: Final = (Disposition.FAILED, Disposition.HTTP_ERROR, Disposition.CALLBACK_ERROR)
"""Dispositions of dead letters. What is gone (404, 410) was answered, and is none."""

PAGE: Final = 1000

_LETTERS: Final = (
    "SELECT c.identity_id, i.url, o.origin, f.name AS family, c.disposition, r.code, t.at_ms, t.detail"
    " FROM current AS c"
    " JOIN identity AS i ON i.identity_id = c.identity_id"
    " JOIN origin AS o ON o.origin_id = c.origin_id"
    " LEFT JOIN family AS f ON f.family_id = i.family_id"
    " JOIN transition AS t ON t.seq = c.last_seq"
    " LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
    f" WHERE c.run_id = :run AND c.state = {State.TERMINAL:d} AND c.identity_id > :after"
    f" AND c.disposition IN ({', '.join(f'{one:d}' for one in DEAD)})"
    " ORDER BY c.identity_id LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dead letters are meant: all of them, or those of a rule, an origin, a family, a disposition.

    `rule`: the code of the reason (`http.503`, `download.reset`), or the name of the retry rule. `family`: its shape,
    at any origin.
    """

    rule: str | None = None
    origin: str | None = None
    disposition: str | None = None
    family: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing narrows it down."""
        return self == Wanted()

    def has(self, letter: Letter) -> bool:
        """Whether this dead letter is meant."""
        return (
            (self.rule is None or self.rule in (letter.reason, letter.rule))
            and (self.origin is None or self.origin == letter.origin)
            and (self.disposition is None or self.disposition == letter.disposition)
            and (self.family is None or self.family == letter.family)
        )


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `rule`: the retry rule that decided last, `why_not`: why it is not tried again.

    `family`: the shape of its family; None where traps are not looked for, and for robots.txt.
    """

    identity_id: int
    url: str
    origin: str
    family: str | None
    disposition: str
    reason: str
    rule: str | None
    why_not: str | None
    message: str | None
    last_at: str | None


def letters(connection: Connection, run_id: int, wanted: Wanted) -> Iterator[Letter]:
    """The dead letters of a run, in the order of their discovery."""
    after = 0
    while True:
        values = {"run": run_id, "after": after, "limit": PAGE}
        found = connection.execute(text(_LETTERS), values).all()
        yield from filter(wanted.has, map(_letter, found))
        if len(found) < PAGE:
            return
        after = found[-1].identity_id


def dead_letters(
    connection: Connection, run_id: int, limit: int, fetches: RobotsFetches
) -> tuple[DeadLetter, ...]:
    """The first dead letters of a run, each with the length of its history."""
    values = {"run": run_id, "after": 0, "limit": limit}
    found = map(_letter, connection.execute(text(_LETTERS), values).all())
    return tuple(
        with_history(connection, letter, is_robots_txt=letter.identity_id in fetches.identities)
        for letter in found
    )


def with_history(connection: Connection, letter: Letter, *, is_robots_txt: bool) -> DeadLetter:
    """A dead letter as the account has it."""
    transitions, attempts = length_of_history(connection, letter.identity_id)
    return DeadLetter(
        letter.url,
        letter.reason,
        attempts,
        transitions,
        letter.last_at,
        is_robots_txt,
        letter.disposition,
        letter.rule,
        letter.why_not,
    )


def _letter(row: Any) -> Letter:
    said = parsed(row.detail)
    said = said if isinstance(said, dict) else {}
    decision = said.get("decision")
    message = said.get("message") or said.get("exception")
    return Letter(
        row.identity_id,
        row.url,
        row.origin.partition(" (")[0],
        row.family.partition(" ")[2] if row.family else None,
        label(Disposition, row.disposition),
        row.code or NO_REASON,
        said.get("rule") if isinstance(decision, dict) else None,
        decision.get("why_not") if isinstance(decision, dict) else None,
        None if message is None else str(message),
        iso(row.at_ms),
    )
