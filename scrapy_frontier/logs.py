"""The loggers of this package: what they write shows no value that `FRONTIER_REDACT` hides.

A logger is made by `get_logger`. Its filter redacts the message, its arguments and the text of a traceback, before any
handler sees them. Loggers belong to the process, and so do the redactions in force: with several crawls in one process,
what any of them hides is hidden.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final

from scrapy_frontier.policy.redaction import KEY_BYTES, Redaction, RedactionRule

_AT_REST: Final = Redaction(RedactionRule(), secrets.token_bytes(KEY_BYTES))
"""In force while no crawl is open."""

_in_force: list[Redaction] = []


def get_logger(name: str) -> logging.Logger:
    """The logger of a module, redacting."""
    logger = logging.getLogger(name)
    logger.addFilter(_redact)
    return logger


def begin(redaction: Redaction) -> None:
    """Have a redaction in force until `end`."""
    _in_force.append(redaction)


def end(redaction: Redaction) -> None:
    """Take back what `begin` did."""
    _in_force.remove(redaction)


def _redact(record: logging.LogRecord) -> bool:
    """A filter that lets all pass."""
    if isinstance(record.args, Mapping) and record.args:
        record.args = {key: _argument(value) for key, value in record.args.items()}
    elif record.args:
        record.args = tuple(map(_argument, record.args))
    else:
        record.msg = _argument(record.msg)
    if record.exc_info and record.exc_info[0] is not None:
        # Formatters take the text that is there already.
        record.exc_text = _shown(logging.Formatter().formatException(record.exc_info))
    return True


def _shown(text: str) -> str:
    for redaction in _in_force or (_AT_REST,):
        text = redaction.text(text)
    return text


def _argument(value: Any) -> Any:
    if isinstance(value, str):
        return _shown(value)
    return value if value is None or isinstance(value, (int, float)) else _Shown(value)


class _Shown:
    """An object whose texts are redacted when a record is formatted."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return _shown(str(self._value))

    def __repr__(self) -> str:
        return _shown(repr(self._value))
