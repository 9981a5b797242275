"""The evidence that the ledger names: where it lies, and whether all of it is there as it was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.errors import ArtifactError
from scrapy_frontier.store.artifacts import ResponseRecord
from scrapy_frontier.store.artifacts.references import references

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.findings import Findings
    from scrapy_frontier.store.artifacts import Artifacts
    from scrapy_frontier.store.opening import Store

CHECKED_LIMIT: Final = 500_000
"""Artifacts remembered as checked; beyond that, one that is named often may be read more than once."""


def place_of(connection: Connection) -> str | None:
    """The place that FRONTIER_ARTIFACTS named for the latest crawl; None for the one beside the store.

    Sessions of an operator's command (requeue, release) keep no evidence and name no place.
    """
    query = text(
        "SELECT detail FROM session WHERE detail NOT LIKE '%\"command\"%'"
        " ORDER BY session_id DESC LIMIT 1"
    )
    detail = connection.scalar(query)
    place = json.loads(detail).get("artifacts") if detail else None
    return None if place is None else str(place)


def check_evidence(
    store: Store,
    artifacts: Artifacts,
    run_id: int | None,
    findings: Findings,
    progress: Callable[[str, int, int], None],
) -> int:
    """Read all evidence that the ledger names, and note what is missing or altered (invariant 5).

    Returns how many references were followed. Nothing is held but the digests of what was checked.
    """
    checked: set[bytes] = set()
    count = 0
    for rows in references(store, run_id):
        for row in rows:
            if len(checked) > CHECKED_LIMIT:
                checked.clear()
            try:
                _check(artifacts, row.digest, checked)
            except ArtifactError as error:
                findings.add(
                    5, row.identity_id, f"transition {row.seq} names what is not whole: {error}"
                )
        count += len(rows)
        progress("Reading evidence", count, 0)
    return count


def _check(artifacts: Artifacts, digest: bytes, checked: set[bytes]) -> None:
    if digest in checked:
        return
    record = ResponseRecord.load(artifacts.get(digest))
    bodies = list(record.bodies)
    for body in bodies:
        name = bytes.fromhex(body.digest)
        if body.is_kept and body.size and name not in checked:
            artifacts.check(name)
            checked.add(name)
    checked.add(digest)
