"""Dead letters: identities that failed for good, with their history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.report.account import DeadLetter
from scrapy_frontier.report.history import length_of_history
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import NO_REASON
from scrapy_frontier.states import Disposition, State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.robots.fetches import RobotsFetches

_DEAD_LETTERS: Final = (
    "SELECT c.identity_id, i.url, r.code, t.at_ms FROM current AS c"
    " JOIN identity AS i ON i.identity_id = c.identity_id"
    " JOIN transition AS t ON t.seq = c.last_seq"
    " LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
    f" WHERE c.run_id = :run AND c.state = {State.TERMINAL:d}"
    f" AND c.disposition = {Disposition.FAILED:d} ORDER BY c.identity_id LIMIT :limit"
)


def dead_letters(
    connection: Connection, run_id: int, limit: int, fetches: RobotsFetches
) -> tuple[DeadLetter, ...]:
    """The first dead letters of a run, in the order of their discovery."""
    found = connection.execute(text(_DEAD_LETTERS), {"run": run_id, "limit": limit})
    letters = []
    for identity_id, url, code, at_ms in found.all():
        transitions, attempts = length_of_history(connection, identity_id)
        is_robots_txt = identity_id in fetches.identities
        letters.append(
            DeadLetter(url, code or NO_REASON, attempts, transitions, iso(at_ms), is_robots_txt)
        )
    return tuple(letters)
