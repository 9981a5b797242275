"""How long an answer is kept, and the answers that are kept. No clock and no I/O."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.resolver.answers import Address, Answer

UNSURE_S: Final = 5.0
"""Seconds for which a failure to find out is remembered, at the most (RFC 9520, section 3.2); a timeout or a
SERVFAIL may be over with the next try, other than the answer that there is no such name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer that is kept: for `lifetime_s` seconds, until `expires_at`. Without addresses: the look-up failed, and
    `is_lasting` tells whether it is certain that there is none.
    """

    addresses: tuple[Address, ...]
    lifetime_s: float
    expires_at: float
    is_lasting: bool = False


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """For how many seconds an answer is kept: from floor to ceiling; `negative_s` at the most if it has no address."""

    floor_s: float
    ceiling_s: float
    negative_s: float

    def lifetime_s(self, answer: Answer, before: Entry | None) -> float:
        """How long to keep an answer; `before` is the one it replaces.

        Its own TTL decides, between floor and ceiling. Without a TTL it is kept for the floor, and twice as long as
        the last time whenever it comes out the same: what stays put is asked for ever more seldom, what moves often.
        """
        if not answer.addresses:
            return self.negative_s if answer.is_lasting else min(self.negative_s, UNSURE_S)
        if answer.ttl_s is not None:
            return min(max(answer.ttl_s, self.floor_s), self.ceiling_s)
        if before is not None and set(before.addresses) == set(answer.addresses):
            return min(before.lifetime_s * 2, self.ceiling_s)
        return self.floor_s


class AddressCache:
    """The answers that are kept, `limit` at the most; the least recently used makes room. A limit of 0 keeps none."""

    def __init__(self, limit: int, lifetimes: Lifetimes) -> None:
        self._limit = limit
        self._lifetimes = lifetimes
        # What has expired stays until it is replaced or makes room: whether the next answer is the same depends on it.
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str, now: float) -> Entry | None:
        """What is known of a name at `now`, None if it must be asked for."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        self._entries.move_to_end(name)
        return entry if now < entry.expires_at else None

    def put(self, name: str, answer: Answer, now: float) -> Entry:
        """Keep an answer that came at `now`."""
        lifetime_s = self._lifetimes.lifetime_s(answer, self._entries.get(name))
        entry = Entry(answer.addresses, lifetime_s, now + lifetime_s, answer.is_lasting)
        if self._limit > 0:
            self._entries[name] = entry
            self._entries.move_to_end(name)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        return entry

    def forget(self, name: str) -> bool:
        """Drop the addresses of a name; whether there were any. A remembered failure stays: it names no address."""
        entry = self._entries.get(name)
        if entry is None or not entry.addresses:
            return False
        del self._entries[name]
        return True
