"""From a URL as an operator types it to what a run knows of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.keys import comparison_url, fetch_key
from scrapy_frontier.identity.parameters import SETTING, ParameterRules
from scrapy_frontier.identity.rejections import Rejection
from scrapy_frontier.identity.resolve import resolve
from scrapy_frontier.report.names import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Found:
    """An identity of the run that answers to the URL asked for."""

    identity_id: int
    method: str
    url: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a URL means in a run: the request URL or the rule that rejects it, and its identities.

    More than one identity: the URL was requested with several methods or bodies.
    """

    asked: str
    url: str | None
    rejection: Rejection | None
    identities: tuple[Found, ...]


_BY_KEY: Final = "SELECT identity_id, method, url FROM identity WHERE run_id = :run AND key = :key"
_BY_URL: Final = (
    "SELECT identity_id, method, url FROM identity WHERE run_id = :run AND url = :url"
    " ORDER BY identity_id"
)
_POLICIES: Final = (
    "SELECT DISTINCT p.text FROM policy AS p JOIN session AS s ON s.policy_id = p.policy_id"
    " WHERE s.run_id = :run"
)


def look_up(connection: Connection, run_id: int, asked: str) -> Lookup:
    """Find the identities of a URL: by the fetch key of a GET request, else by the URL itself."""
    resolved = resolve(asked)
    if isinstance(resolved, Rejection):
        return Lookup(asked, None, resolved, ())
    found: dict[int, Found] = {}
    for key in _keys(connection, run_id, resolved.url):
        for row in connection.execute(text(_BY_KEY), {"run": run_id, "key": key}):
            found[row.identity_id] = Found(*row)
    for row in connection.execute(text(_BY_URL), {"run": run_id, "url": resolved.url}):
        found[row.identity_id] = Found(*row)
    return Lookup(asked, resolved.url, None, tuple(found[number] for number in sorted(found)))


def _keys(connection: Connection, run_id: int, url: str) -> Iterator[bytes]:
    """The fetch keys that the URL had under the parameter rules of the run's sessions."""
    compared = {comparison_url(url)}
    for policy in connection.scalars(text(_POLICIES), {"run": run_id}):
        inputs = parsed(policy)
        setting = inputs.get(SETTING) if isinstance(inputs, dict) else None
        if isinstance(setting, list):
            with suppress(ConfigError):  # a rule of another version of this package
                compared.add(ParameterRules.from_setting(setting).apply(url).url)
    for comparable in sorted(compared):
        yield fetch_key("GET", comparable)
