"""How the pace of origins changed over the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, text

from scrapy_frontier.report.html.facts import Pace, Sample

if TYPE_CHECKING:
    from sqlalchemy import Connection

ORIGINS_SHOWN: Final = 6
SAMPLES_SHOWN: Final = 200
"""Per origin, the latest."""

_COUNTS: Final = (
    "SELECT gate, count(*) AS decisions FROM health_sample WHERE run_id = :run GROUP BY gate"
    " ORDER BY count(*) DESC, gate"
)
_SAMPLES: Final = (
    "SELECT at_ms, gate, code, concurrency, interval_ms FROM health_sample"
    f" WHERE run_id = :run AND gate = :gate ORDER BY sample_id DESC LIMIT {SAMPLES_SHOWN}"
)


def pace(connection: Connection, run_id: int) -> Pace:
    """The latest decisions about the origins with the most, in the order of time."""
    counts = connection.execute(text(_COUNTS), {"run": run_id}).all()
    statement = text(_SAMPLES).bindparams(bindparam("run", run_id))
    rows = [
        row
        for gate, _ in counts[:ORIGINS_SHOWN]
        for row in connection.execute(statement, {"gate": gate})
    ]
    return Pace(
        total=sum(count for _, count in counts),
        samples=tuple(
            Sample(at_ms, gate, code, concurrency, interval_ms / 1000)
            for at_ms, gate, code, concurrency, interval_ms in sorted(rows, key=lambda row: row[0])
        ),
    )
