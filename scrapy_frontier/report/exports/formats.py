"""The formats an export can be written in: a registry that a further one is added to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final

from scrapy_frontier.report.exports import parquet, plain, warc
from scrapy_frontier.report.exports.export import Export
from scrapy_frontier.report.exports.subjects import SUBJECTS


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `write` writes an export to a file open for bytes, and returns how many rows.

    `subjects`: what it can hold; the first is meant where none is named, and a format with one
    subject of its own may have one that stands in no other. `is_stream`: whether it can be written
    to a pipe. `is_evidence`: what was received is written as it was, and nothing in it is hidden.
    """

    name: str
    write: Callable[[Export, BinaryIO], int]
    subjects: tuple[str, ...] = tuple(SUBJECTS)
    is_stream: bool = True
    is_evidence: bool = False


FORMATS: Final[dict[str, Format]] = {
    one.name: one
    for one in (
        Format("jsonl", plain.write_jsonl),
        Format("csv", plain.write_csv),
        Format("parquet", parquet.write, is_stream=False),
        Format("warc", warc.write, subjects=(warc.SUBJECT,), is_evidence=True),
    )
}
"""All formats, by name; the first is the default."""
