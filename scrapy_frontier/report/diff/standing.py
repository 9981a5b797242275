"""Where the identities of a run stand, in the order of their keys, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.names import NO_REASON, label, select_in, urls
from scrapy_frontier.states import Disposition, State
from scrapy_frontier.store.edges import unpack

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.store.opening import Store

PAGE: Final = 2000

_PAGE: Final = (
    "SELECT i.identity_id, i.key, i.method, i.url, c.state, c.disposition, r.code, a.status,"
    " a.payload, l.digest, l.version FROM identity AS i"
    " JOIN current AS c ON c.identity_id = i.identity_id"
    " LEFT JOIN reason AS r ON r.reason_id = c.reason_id"
    " LEFT JOIN attempt AS a ON a.attempt_id = c.attempt_id"
    " LEFT JOIN likeness AS l ON l.attempt_id = c.attempt_id"
    " WHERE i.run_id = :run AND i.key > :after AND i.kind <> :robots ORDER BY i.key LIMIT :limit"
)
_REDIRECTS: Final = (
    "SELECT source_id, targets FROM emission"
    f" WHERE source_id IN :ids AND kind = {ReferenceKind.REDIRECT:d} ORDER BY emission_id"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an identity stands in a run. `content`: the digest of the body as the wire sent it, in hex; `words`: the
    digest of its main text, where that was looked at. `target`: where it redirects to.
    """

    state: str
    disposition: str | None
    reason: str
    status: int | None
    content: str | None
    words: str | None
    target: str | None


@dataclass(frozen=True, slots=True)
class Keyed:
    """An identity by its key."""

    key: bytes
    method: str
    url: str
    standing: Standing


def standings(store: Store, run_id: int, page: int = PAGE) -> Iterator[Keyed]:
    """All identities of a run but those of robots.txt, by key.

    Each page is a snapshot of its own, so that the log of a crawl that writes on can be emptied in between.
    """
    after = b""
    while True:
        with store.reader() as connection:
            found = _page(connection, run_id, after, page)
        yield from found
        if len(found) < page:
            return
        after = found[-1].key


def _page(connection: Connection, run_id: int, after: bytes, limit: int) -> list[Keyed]:
    values = {"run": run_id, "after": after, "limit": limit, "robots": int(ReferenceKind.ROBOTS)}
    rows = list(connection.execute(text(_PAGE), values))
    redirected = [row.identity_id for row in rows if row.disposition == Disposition.REDIRECTED]
    targets = _targets(connection, redirected)
    return [
        Keyed(
            bytes(row.key),
            row.method,
            row.url,
            Standing(
                state=label(State, row.state),
                disposition=label(Disposition, row.disposition) if row.disposition else None,
                reason=row.code or NO_REASON,
                status=row.status,
                content=None if row.payload is None else bytes(row.payload).hex(),
                words=None if row.digest is None else f"{row.version}:{row.digest}",
                target=targets.get(row.identity_id),
            ),
        )
        for row in rows
    ]


def _targets(connection: Connection, identity_ids: list[int]) -> dict[int, str]:
    """Where redirects led last."""
    led: dict[int, int] = {}
    for source_id, packed in select_in(connection, _REDIRECTS, identity_ids):
        found: Any = unpack(bytes(packed))
        if found:
            led[source_id] = found[-1]
    names = urls(connection, led.values())
    return {source: names[target] for source, target in led.items() if target in names}
