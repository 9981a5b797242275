"""Exports as Parquet, by pyarrow: columns with types, a row group for some pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.exports.subjects import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_frontier.report.exports.export import Export
    from scrapy_frontier.report.exports.subjects import Row

GROUP: Final = 50_000
"""Rows that are gathered before a row group is written."""


def write(export: Export, file: BinaryIO) -> int:
    """Zstandard inside; the run and the last seq of its moment stand in the file's metadata.

    Raises `ConfigError` where pyarrow is not installed.
    """
    arrow, parquet = _pyarrow()
    schema = _schema(arrow, export)
    count = 0
    gathered: list[Row] = []
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in export.pages():
            gathered += rows
            count += len(rows)
            if len(gathered) >= GROUP:
                writer.write_table(_table(arrow, schema, gathered))
                gathered = []
        if gathered:
            writer.write_table(_table(arrow, schema, gathered))
    return count


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as exc:
        raise ConfigError(
            "--format parquet needs pyarrow: pip install 'scrapy-frontier[parquet]', or use another"
            " format"
        ) from exc
    return pyarrow, pyarrow.parquet


def _schema(arrow: Any, export: Export) -> Any:
    types = {
        Kind.INTEGER: arrow.int64(),
        Kind.TEXT: arrow.string(),
        Kind.FLAG: arrow.bool_(),
        Kind.INSTANT: arrow.timestamp("ms", tz="UTC"),
        Kind.DATA: arrow.string(),
    }
    moment = export.moment
    return arrow.schema(
        [(column.name, types[column.kind]) for column in export.columns],
        metadata={
            "scrapy_frontier.subject": export.subject.name,
            "scrapy_frontier.run": str(moment.run_id),
            "scrapy_frontier.seq": str(moment.seq),
        },
    )


def _table(arrow: Any, schema: Any, rows: Sequence[Row]) -> Any:
    columns = [
        arrow.array(values, type=field.type)
        for field, values in zip(schema, map(_clean, zip(*rows, strict=True)), strict=True)
    ]
    return arrow.Table.from_arrays(columns, schema=schema)


def _clean(values: Sequence[Any]) -> list[Any]:
    """Lone surrogates, which UTF-8 does not have, are escaped."""
    return [
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for value in values
    ]
