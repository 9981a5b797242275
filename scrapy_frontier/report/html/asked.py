"""What a run was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.html.facts import Asked
from scrapy_frontier.report.names import parsed

if TYPE_CHECKING:
    from sqlalchemy import Connection

START_URLS_LISTED: Final = 10

_SEEDS: Final = (
    "SELECT url FROM identity WHERE run_id = :run"
    f" AND kind = {ReferenceKind.SEED:d} ORDER BY identity_id LIMIT {START_URLS_LISTED}"
)
_POLICY: Final = (
    "SELECT p.text FROM session AS s JOIN policy AS p ON p.policy_id = s.policy_id"
    " WHERE s.run_id = :run ORDER BY s.session_id DESC LIMIT 1"
)
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})


def asked(connection: Connection, run_id: int) -> Asked:
    """The first start URLs, and the policy of the latest session without what is not set."""
    policy = parsed(connection.scalar(text(_POLICY), {"run": run_id}))
    settings: dict[str, Any] = policy if isinstance(policy, dict) else {}
    return Asked(
        start_urls=tuple(connection.scalars(text(_SEEDS), {"run": run_id})),
        settings={name: value for name, value in settings.items() if value not in _NOTHING},
    )
