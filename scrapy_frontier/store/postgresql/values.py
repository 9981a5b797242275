"""How values travel between Python and PostgreSQL, so that rows look as they do on SQLite."""

from __future__ import annotations

from typing import Any, Final

from psycopg.adapt import Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown

NUL: Final = "\N{SYMBOL FOR NULL}"
"""What stands for the character NUL, which PostgreSQL's text cannot hold: it occurs in references that are rejected."""


class _Whole(Int8Dumper):
    """Every int is sent as bigint: with one type for all values a statement is prepared once."""


class _Text(StrDumperUnknown):
    """Text without NUL."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", NUL) if "\0" in obj else obj)


class _Sum(Loader):
    """A sum of bigints is numeric to PostgreSQL, and an int to everybody else."""

    def load(self, data: Any) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


def register(raw: Any) -> None:
    """Use these for all values of a connection."""
    raw.adapters.register_dumper(int, _Whole)
    raw.adapters.register_dumper(str, _Text)
    raw.adapters.register_loader("numeric", _Sum)
