"""The selector: which flow is served next, and in which priority band.

*Between bands*: stride scheduling. Each band has a virtual time that advances by 1/share whenever
it is served; the band with the least virtual time goes next, the more urgent one of two equals. A
band that had nothing ready does not save its turns up: it joins at the current virtual time, which
is never above that of a band that was ready. So one urgent request among many others goes out next,
and while several bands have work each gets its share: none starves.

*Between flows in a band*: the one that was not served for longest, in whichever band it was
served. An origin with heads in three bands therefore has no more turns than one with heads in a
single band. A newcomer stands behind all who are there. One that comes back after its interval
keeps its place: those served since stand behind it.

*Time*: flows that only a time opens lie in one heap; a flow that is opened, shut or given another
time meanwhile leaves its entry behind, out of date. All costs are logarithmic in the number of
flows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.scheduling.flows import COMPACT_AT, Flow, Rota

DEFAULT_PRIORITIES: Final = (100, 10, 1, 0, -10, -100)
DEFAULT_SHARES: Final = (64, 32, 16, 8, 4, 2, 1)

LEAST_RANK: Final = -(2**63)
GREATEST_RANK: Final = 2**63 - 1


class BandTable:
    """The priority bands: contiguous ranges of rank, the most urgent one is band 0.

    `priorities` are the least Scrapy priorities of each band but the last, which takes the rest;
    `shares` the relative share of the hand-outs that each band gets while all have work. A wrong
    table raises `ConfigError`.
    """

    def __init__(
        self,
        priorities: Sequence[int] = DEFAULT_PRIORITIES,
        shares: Sequence[float] = DEFAULT_SHARES,
    ) -> None:
        if any(upper <= lower for upper, lower in pairwise(priorities)):
            raise ConfigError(f"priorities {tuple(priorities)}: must fall from band to band")
        if len(shares) != len(priorities) + 1:
            raise ConfigError(
                f"shares {tuple(shares)}: {len(priorities) + 1} bands need as many shares"
            )
        if not all(math.isfinite(share) and share > 0 for share in shares):
            raise ConfigError(
                f"shares {tuple(shares)}: each must be above 0, or a band would starve"
            )
        self.shares = tuple(shares)
        self._last_ranks = [-priority for priority in priorities]

    def __len__(self) -> int:
        return len(self.shares)

    def __repr__(self) -> str:
        return f"BandTable({[-rank for rank in self._last_ranks]}, {list(self.shares)})"

    def band_of(self, rank: int) -> int:
        """The band of a rank (rank = -priority)."""
        return bisect_left(self._last_ranks, rank)

    def ranks(self, band: int) -> tuple[int, int]:
        """The least and the greatest rank of a band, both included."""
        least = LEAST_RANK if band == 0 else self._last_ranks[band - 1] + 1
        greatest = GREATEST_RANK if band == len(self) - 1 else self._last_ranks[band]
        return least, greatest


class Selector:
    """Serves flows. Its owner tells it which are open, which are shut, and until when."""

    def __init__(self, table: BandTable) -> None:
        self._rotas: list[Rota[Flow]] = [Rota(band) for band in range(len(table))]
        self._strides = [1 / share for share in table.shares]
        self._passes = [0.0] * len(table)
        self._virtual = 0.0
        self._ticket = 0
        self._times: list[tuple[float, int, Flow]] = []
        self._serial = 0
        self._compact_at = COMPACT_AT

    def next_ticket(self) -> int:
        """A ticket for a newcomer."""
        self._ticket += 1
        return self._ticket

    def open(self, flow: Flow) -> None:
        """The gate of `flow` is open: it stands ready in every band in which it has heads."""
        flow.wake = 0
        flow.ready = flow.bands
        missing = flow.bands & ~flow.queued
        while missing:
            band = missing.bit_length() - 1
            self._rotas[band].push(flow)
            missing ^= 1 << band

    def shut(self, flow: Flow, until: float | None = None) -> None:
        """The gate of `flow` is shut, until that time or until its owner opens it."""
        flow.ready = 0
        if until is None:
            flow.wake = 0
            return
        if len(self._times) >= self._compact_at:
            self._compact()
        self._serial += 1
        flow.wake = self._serial
        heappush(self._times, (until, self._serial, flow))

    def take(self) -> tuple[int, Flow] | None:
        """Serve: the band and the flow whose turn it is. The turn counts as taken."""
        best, least = -1, 0.0
        chosen: Flow | None = None
        virtual = self._virtual
        for band, rota in enumerate(self._rotas):
            if len(rota) and (flow := rota.first()) is not None:
                behind = self._passes[band]
                if behind < virtual:
                    behind = virtual
                if best < 0 or behind < least:
                    best, least, chosen = band, behind, flow
        if chosen is None:
            return None
        self._virtual = least
        self._passes[best] = least + self._strides[best]
        self._ticket += 1
        chosen.ticket = self._ticket
        return best, chosen

    def is_ready(self) -> bool:
        """Whether `take` would find something."""
        return any(len(rota) and rota.first() is not None for rota in self._rotas)

    def pop_due(self, now: float) -> Flow | None:
        """A flow whose time has come, each once; its owner decides what becomes of it."""
        times = self._times
        while times and times[0][0] <= now:
            _, serial, flow = heappop(times)
            if flow.wake == serial:
                flow.wake = 0
                return flow
        return None

    def next_time(self) -> float | None:
        """The earliest time that will open a flow that has work."""
        times = self._times
        while times:
            opens_at, serial, flow = times[0]
            if flow.wake == serial and flow.has_work:
                return opens_at
            heappop(times)
            if flow.wake == serial:
                flow.wake = 0
        return None

    def _compact(self) -> None:
        self._times = [entry for entry in self._times if entry[2].wake == entry[1]]
        heapify(self._times)
        self._compact_at = max(COMPACT_AT, 2 * len(self._times))
