"""Rows of an export as they may be shown: URLs without what is hidden in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.report.exports.subjects import Kind
from scrapy_frontier.report.names import parsed
from scrapy_frontier.report.redacted import redacted

if TYPE_CHECKING:
    from scrapy_frontier.policy.redaction import Redaction
    from scrapy_frontier.report.exports.subjects import Column, Row

_URL: Final = "url"
_KEY: Final = "key"
_NO_URLS: Final = frozenset(
    {_KEY, "evidence", "payload", "policy_version", "worker"}
    | {"event", "from", "to", "state", "disposition", "reason", "rule", "outcome", "kind", "method"}
)
"""Digests and words of the package's own: a look at each would cost more than all the others."""


class Shown:
    """What is done to the rows of a subject."""

    __slots__ = ("_by_column", "_key", "_redaction", "_url")

    def __init__(self, redaction: Redaction, columns: Sequence[Column]) -> None:
        names = [column.name for column in columns]
        self._redaction = redaction
        self._url = names.index(_URL) if _URL in names else -1
        self._key = names.index(_KEY) if _KEY in names else -1
        self._by_column = tuple(
            (index, convert)
            for index, column in enumerate(columns)
            if (convert := _converter(column, redaction)) is not None
        )

    def row(self, row: Row) -> Row:
        """One row."""
        shown = list(row)
        for index, convert in self._by_column:
            if row[index] is not None:
                shown[index] = convert(row[index])
        if self._key >= 0 and shown[self._url] != row[self._url]:
            # The fetch key is a plain digest of the URL: it would tell what is hidden, by trying.
            shown[self._key] = self._redaction.fetch_key(row[self._key])
        return tuple(shown)


def as_shown(
    redaction: Redaction | None, columns: Sequence[Column]
) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """What makes a page of rows one that may be shown."""
    if redaction is None or redaction.is_off:
        return lambda rows: rows
    shown = Shown(redaction, columns)
    return lambda rows: [shown.row(row) for row in rows]


def _converter(column: Column, redaction: Redaction) -> Callable[[Any], Any] | None:
    if column.kind is Kind.DATA:
        return partial(_data, redaction=redaction)
    if column.kind is Kind.TEXT and column.name not in _NO_URLS:
        return partial(redacted, redaction=redaction, name=column.name)
    return None


def _data(text: str, redaction: Redaction) -> str:
    """JSON as text; what needs no change keeps its spelling."""
    if redaction.text(text) == text:
        return text
    return json.dumps(redacted(parsed(text), redaction), ensure_ascii=False)
