"""The texts behind the numbers of a store: reason codes, URLs, origins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import TextClause, bindparam, text

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.identity.kinds import ReferenceKind
    from scrapy_frontier.states import Disposition, Event, State

_CHUNK: Final = 500

NO_REASON: Final = "unnamed"
"""How a report calls the reason of a move that was written without one."""


class Codes(dict[int, str]):
    """Reason codes by their number; a number without a code, or 0, reads `unnamed`."""

    @classmethod
    def of(cls, connection: Connection) -> Codes:
        """All codes of the store."""
        return cls(pairs(connection, "SELECT reason_id, code FROM reason"))

    def __missing__(self, reason_id: int) -> str:
        return NO_REASON


def pairs(connection: Connection, query: str) -> dict[int, Any]:
    """The rows of a query with two columns, the second by the first."""
    rows: list[Any] = list(connection.execute(text(query)))
    return dict(rows)


def urls(connection: Connection, identity_ids: Iterable[int]) -> Mapping[int, str]:
    """The URLs of these identities; a method other than GET stands before its URL."""
    query = "SELECT identity_id, method, url FROM identity WHERE identity_id IN :ids"
    found = select_in(connection, query, identity_ids)
    return {
        identity_id: url if method == "GET" else f"{method} {url}"
        for identity_id, method, url in found
    }


def origins_of(connection: Connection, identity_ids: Iterable[int]) -> Mapping[int, int]:
    """The origin ids of these identities."""
    query = "SELECT identity_id, origin_id FROM current WHERE identity_id IN :ids"
    return dict(select_in(connection, query, identity_ids))


def streamed(query: str) -> TextClause:
    """A query whose answer may be long: a server hands it over in parts, as it is read."""
    return text(query).execution_options(stream_results=True)


def select_in(
    connection: Connection, query: str, values: Iterable[Any], **parameters: Any
) -> Iterator[Any]:
    """The rows of a query with `IN :ids`, asked in parts."""
    statement = text(query).bindparams(bindparam("ids", expanding=True))
    left = iter(dict.fromkeys(values))
    while part := list(islice(left, _CHUNK)):
        yield from connection.execute(statement, {"ids": part, **parameters})


@lru_cache(maxsize=1024)
def label(kind: type[State | Event | Disposition | ReferenceKind], number: int) -> str:
    """The label of a number of the store, also of one that has none in this version."""
    try:
        return kind(number).label
    except ValueError:
        return f"{kind.__name__} {number}"


def parsed(detail: str | None) -> Any:
    """JSON text of the store as data; text that is no JSON stays text."""
    if detail is None:
        return None
    try:
        return json.loads(detail)
    except ValueError:
        return detail
