"""What a decision about a further attempt is made from, all of it, as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is known when an attempt has come to nothing, or to a response that asks for another.

    `cause`: `http.{status}`, `download.{kind}`, `retry.asked`, `callback.exception` or a code of the
    ledger's. `exceptions`: import paths of the classes of the exception and its causes. `is_sent`:
    whether the request may have reached the server; None where nobody can tell. `faults`, `holds`:
    how many attempts before this one counted as which. `own_times`: `max_retry_times` of the
    request. `is_listed`: whether the project's own `RETRY_HTTP_CODES` or `RETRY_EXCEPTIONS` has it,
    None where it has no such list. `has_answered`: whether the origin has answered since this
    process began. `retry_after`, `date`: the headers. `not_before_ms`: the time that the request
    itself asks for. `seed`: what the jitter is drawn from.
    """

    cause: str
    at_ms: int
    seed: int
    method: str = "GET"
    origin: str = ""
    spider: str = ""
    exceptions: tuple[str, ...] = ()
    is_sent: bool | None = None
    faults: int = 0
    holds: int = 0
    own_times: int | None = None
    is_listed: bool | None = None
    is_enabled: bool = True
    is_refused: bool = False
    """Whether the request says `dont_retry`."""
    may_repeat: bool = False
    """Whether the request says that it may be sent twice (`frontier_idempotent`)."""
    has_answered: bool = False
    retry_after: str = ""
    date: str = ""
    not_before_ms: int = 0

    def has_cause(self, pattern: str) -> bool:
        """Whether the cause is of this pattern."""
        return fnmatchcase(self.cause, pattern)

    def has_exception(self, name: str) -> bool:
        """Whether a class of this name, dotted or not, is among the exceptions."""
        return any(found == name or found.endswith(f".{name}") for found in self.exceptions)

    def to_json(self) -> dict[str, Any]:
        """As plain data, without what is as usual."""
        return {
            item.name: _plain(value)
            for item in fields(self)
            if (value := getattr(self, item.name)) != item.default
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Question:
        """Of what `to_json` gave."""
        return cls(**{**data, "exceptions": tuple(data.get("exceptions", ()))})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
