"""Exports as text: JSON Lines, and CSV with a line of headings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

from scrapy_frontier.report.exports.export import Export
from scrapy_frontier.report.exports.subjects import Column, Kind, Row
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import parsed

Convert = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


_IN_JSON: Final[dict[Kind, Convert]] = {Kind.INSTANT: iso, Kind.DATA: parsed}
_IN_CSV: Final[dict[Kind, Convert]] = {Kind.INSTANT: iso}


def write_jsonl(export: Export, file: BinaryIO) -> int:
    """One object a line, in UTF-8. Instants are ISO 8601 in UTC; the inputs of a reason are data."""
    names = [column.name for column in export.columns]
    convert = _converters(export.columns, _IN_JSON)
    dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    count = 0
    for rows in export.pages():
        lines = (f"{dump(dict(zip(names, convert(row), strict=True)))}\n" for row in rows)
        # What a page spelled may hold lone surrogates, which only an escape can carry.
        file.write("".join(lines).encode("utf-8", "backslashreplace"))
        count += len(rows)
    return count


def write_csv(export: Export, file: BinaryIO) -> int:
    """By RFC 4180, in UTF-8, with headings. Instants as in JSON; the inputs of a reason are JSON."""
    convert = _converters(export.columns, _IN_CSV)
    file.write(_csv([[column.name for column in export.columns]]))
    count = 0
    for rows in export.pages():
        file.write(_csv([convert(row) for row in rows]))
        count += len(rows)
    return count


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _converters(
    columns: Sequence[Column], by_kind: dict[Kind, Convert]
) -> Callable[[Row], list[Any]]:
    converters = [by_kind.get(column.kind, _as_it_is) for column in columns]
    return lambda row: [
        None if value is None else convert(value)
        for convert, value in zip(converters, row, strict=True)
    ]
