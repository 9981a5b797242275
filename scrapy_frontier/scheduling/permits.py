"""Permits: places at a gate for requests that do not come from a queue (robots.txt, media,
`download_async`).

Waiters at a gate go before its URLs, one for one: when a place becomes free and the last one went
to a URL, a waiter gets it; when the last one went to a waiter, it is left for the next URL, as long
as there is one. Robots.txt goes first of all: nothing else of its origin may move without it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING

from scrapy_frontier.scheduling.flows import Waiter

if TYPE_CHECKING:
    from scrapy_frontier.scheduling.flows import Flow


class Permits:
    """The waiters of all gates, and the grants nobody has collected yet."""

    __slots__ = ("_granted", "_left_to_urls", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Hashable, Flow] = {}
        self._granted: dict[Hashable, Flow] = {}
        self._left_to_urls: dict[Flow, None] = {}

    def __len__(self) -> int:
        """Waiters without a grant."""
        return len(self._waiting)

    def __contains__(self, token: Hashable) -> bool:
        return token in self._waiting or token in self._granted

    @property
    def has_grants(self) -> bool:
        """Whether grants wait to be collected."""
        return bool(self._granted)

    def wait(self, flow: Flow, token: Hashable, past_robots: bool) -> None:
        """Let somebody stand in line at a gate."""
        if flow.waiters is None:
            flow.waiters = deque()
        waiter = Waiter(token, past_robots)
        if past_robots:
            flow.waiters.appendleft(waiter)
        else:
            flow.waiters.append(waiter)
        self._waiting[token] = flow

    def serve(self, flow: Flow, now: float) -> None:
        """Grant what the gate allows and the turns give; what is left to URLs is remembered."""
        while flow.waiters:
            first = flow.waiters[0]
            if not flow.gate.is_open(now, first.past_robots):
                return
            if flow.was_permit and flow.bands and not first.past_robots:
                self._left_to_urls[flow] = None
                return
            self._grant(flow, now)

    def serve_left(self, now: float) -> list[Flow]:
        """Grant the places that were left to URLs and not taken; the flows concerned."""
        flows = list(self._left_to_urls)
        self._left_to_urls.clear()
        for flow in flows:
            while flow.waiters and flow.gate.is_open(now, flow.waiters[0].past_robots):
                self._grant(flow, now)
        return flows

    def collect(self) -> list[Hashable]:
        """The tokens granted since the last time."""
        tokens = list(self._granted)
        self._granted.clear()
        return tokens

    def collect_one(self, token: Hashable) -> bool:
        """Whether this token has just been granted; it counts as collected then."""
        return self._granted.pop(token, None) is not None

    def forget(self, token: Hashable, now: float) -> Flow | None:
        """Drop a waiter, or give back its uncollected grant; the flow concerned."""
        flow = self._waiting.pop(token, None)
        if flow is not None and flow.waiters is not None:
            rest = deque(waiter for waiter in flow.waiters if waiter.token != token)
            flow.waiters = rest or None
            return flow
        flow = self._granted.pop(token, None)
        if flow is not None:
            flow.gate.cancel(now)
        return flow

    def _grant(self, flow: Flow, now: float) -> None:
        assert flow.waiters is not None
        token, past_robots = flow.waiters.popleft()
        if not flow.waiters:
            flow.waiters = None
        flow.gate.reserve(now, past_robots)
        flow.was_permit = True
        del self._waiting[token]
        self._granted[token] = flow
