"""What a store knows of redaction: its key, which is made once, and the rule of its latest crawl."""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from sqlalchemy import Connection, text

from scrapy_frontier.policy.redaction import KEY_BYTES, Redaction, RedactionRule

KEY: Final = "redaction_key"
RULE: Final = "redaction_rule"
"""Keys of the table `meta`."""

_KEPT: Final = "SELECT key, value FROM meta WHERE key IN (:key, :rule)"
_INSERT: Final = "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO "


def keep(connection: Connection, rule: RedactionRule) -> None:
    """Write the rule of a crawl, and a key where there is none, in the transaction of the caller."""
    key = secrets.token_hex(KEY_BYTES)
    connection.execute(text(f"{_INSERT}NOTHING"), {"key": KEY, "value": key})
    setting = json.dumps(rule.to_setting())
    update = text(f"{_INSERT}UPDATE SET value = excluded.value")
    connection.execute(update, {"key": RULE, "value": setting})


def redaction_in(connection: Connection, rule: RedactionRule | None = None) -> Redaction:
    """How URLs of this store are shown: by this rule, else by that of its latest crawl.

    A store that no crawl of this version has opened yet has no key: its digests differ from call to call.
    """
    rows: list[Any] = list(connection.execute(text(_KEPT), {"key": KEY, "rule": RULE}))
    kept: dict[str, str] = dict(rows)
    if rule is None:
        rule = RedactionRule.from_setting(kept[RULE]) if RULE in kept else RedactionRule()
    return Redaction(rule, bytes.fromhex(kept[KEY]) if KEY in kept else draw_key())


def draw_key() -> bytes:
    """A key of digests."""
    return secrets.token_bytes(KEY_BYTES)
