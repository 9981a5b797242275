"""A bounded memory: what was used lately is known, what was not is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The most recently used entries, at most `limit`; two generations, so that the bound costs nothing per look-up."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of a key that was used lately."""
        found = self._young.get(key)
        if found is None and self._old:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> None:
        """Remember a value; the half that was used least recently is forgotten when the limit is reached."""
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def __contains__(self, key: K) -> bool:
        return key in self._young or key in self._old

    def __iter__(self) -> Iterator[K]:
        yield from self._young
        yield from (key for key in self._old if key not in self._young)

    def __len__(self) -> int:
        return sum(1 for _ in self)
