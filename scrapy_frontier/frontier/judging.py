"""What the scope in force says of stored URLs, when a resumed run has another policy than the one they came by."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy_frontier.frontier.admission import waiver_of
from scrapy_frontier.identity import Rejection, host_of, load, resolve
from scrapy_frontier.policy.budgets import ORIGIN_BYTES
from scrapy_frontier.policy.scope import DomainScope, Excluded, Scope
from scrapy_frontier.states import Event
from scrapy_frontier.store.messages import Reason

if TYPE_CHECKING:
    from scrapy import Spider

    from scrapy_frontier.frontier.admission import Admission
    from scrapy_frontier.frontier.recovery import Judge, Room
    from scrapy_frontier.policy.budgets import Claim


def judge(scope: Scope, domains: Callable[[], DomainScope]) -> Judge:
    """Make the judge of stored URLs: what excludes a URL now, or None."""

    def excludes(url: str, record: str | None) -> Reason | None:
        resolved = resolve(url)
        if isinstance(resolved, Rejection):
            return Reason(resolved.rule)
        decision = scope.decide(resolved.url, resolved.origin)
        if not isinstance(decision, Excluded):
            stored = load(record, _Opaque()) if record is not None else None
            if stored is None or waiver_of(stored.dont_filter, stored.meta):
                return None
            decision = domains().decide(host_of(resolved.origin))
        if isinstance(decision, Excluded):
            return Reason(decision.code, json.dumps({"rule": decision.rule}, ensure_ascii=False))
        return None

    return excludes


def room(admission: Admission, is_spent: Callable[[str], bool]) -> Room:
    """Make the judge of what budgets have held back; `is_spent` of an origin: its bytes are spent."""

    def claims(url: str, depth: int, rule: str) -> tuple[Claim, ...] | None:
        resolved = resolve(url)
        if isinstance(resolved, Rejection):
            return None
        if rule == ORIGIN_BYTES:
            # It was accepted before, and counts already.
            return None if is_spent(resolved.origin) else ()
        if admission.by_depth(resolved, depth).event is Event.DEFER:
            return None
        return admission.claims(resolved)

    return claims


class _Opaque:
    """Reads records without making the objects in them."""

    def encode_object(self, obj: object) -> None:
        """Nothing is written here."""

    def decode_object(self, tag: str, payload: Any) -> object:
        """The payload stands for the object."""
        return payload


def domains_of(spider: Spider) -> Callable[[], DomainScope]:
    """The spider's `allowed_domains` as they are at the moment: Scrapy lets a spider change them as it runs."""
    seen: Any = None
    domains = DomainScope()

    def current() -> DomainScope:
        nonlocal seen, domains
        listed = getattr(spider, "allowed_domains", None)
        state = list(listed) if listed else None
        if state != seen:
            seen, domains = state, DomainScope(state)
        return domains

    return current
