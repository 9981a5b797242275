"""Mirrored trees: `/old/a/b.html` and `/new/a/b.html` have the same text, again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scrapy_frontier.policy.recent import Recent
from scrapy_frontier.policy.traps.content import Content
from scrapy_frontier.policy.traps.family import MIRROR, Brake, Family
from scrapy_frontier.policy.traps.signature import Signature, signature_of

Prefix = tuple[str, ...]

DEEPEST: Final = 4
"""Directories of the longest prefix that is held for the root of a mirror."""
_ARROW: Final = " = "


class Mirrors:
    """Pairs of directories on one origin whose pages are copies of each other."""

    def __init__(self) -> None:
        self._pairs: Recent[tuple[str, Prefix, Prefix], Family] = Recent(8192)
        self._braked: dict[str, dict[Prefix, tuple[Prefix, Family]]] = {}

    def note(self, url: str, origin: str, content: Content, is_suspect: bool) -> list[Family]:
        """A page was fetched. Returns the pair of directories that this puts a brake on, in a list."""
        if not content.is_copy or is_suspect or not content.like.startswith(f"{origin}/"):
            return []
        pair = _prefixes(
            signature_of(url[len(origin) :]), signature_of(content.like[len(origin) :])
        )
        if pair is None:
            return []
        copy, first = pair
        known = self._pairs.get((origin, copy, first))
        if known is None:
            known = Family(origin, _shape(copy, first), MIRROR)
            self._pairs.put((origin, copy, first), known)
        if known.note(is_dry=True) is None:
            return []
        self._braked.setdefault(origin, {})[copy] = (first, known)
        return [known]

    def brake(
        self, origin: str, found: Signature, is_known: Callable[[str, str], bool]
    ) -> Brake | None:
        """Why a URL in a mirror is deferred: the page that it is a copy of is known."""
        braked = self._braked.get(origin)
        if not braked:
            return None
        directories = found.directories
        for depth in range(min(len(directories), DEEPEST), -1, -1):
            pair = braked.get(directories[:depth])
            if pair is None:
                continue
            first, known = pair
            like = "/" + "/".join((*first, *directories[depth:], found.last))
            if known.brake is not None and is_known(origin, like):
                return Brake(MIRROR, known.shape, {**known.brake.inputs, "like": like})
        return None

    def restore(self, known: Family) -> None:
        """A brake of an earlier process is in force again."""
        copy, first = (_prefix(text) for text in known.shape[1:-1].split(_ARROW))
        self._pairs.put((known.origin, copy, first), known)
        self._braked.setdefault(known.origin, {})[copy] = (first, known)

    def release(self, known: Family) -> None:
        """An operator has let a pair go."""
        if _ARROW not in known.shape:
            return
        copy, first = (_prefix(text) for text in known.shape[1:-1].split(_ARROW))
        self._pairs.put((known.origin, copy, first), known)
        self._braked.get(known.origin, {}).pop(copy, None)


def _prefixes(one: Signature, other: Signature) -> tuple[Prefix, Prefix] | None:
    """The directories above what two paths have in common at their end; None where that is nothing."""
    if one.last != other.last or one.directories == other.directories:
        return None
    mine, its = list(one.directories), list(other.directories)
    while mine and its and mine[-1] == its[-1]:
        mine.pop()
        its.pop()
    if len(mine) > DEEPEST or len(its) > DEEPEST:
        return None
    return tuple(mine), tuple(its)


def _shape(copy: Prefix, first: Prefix) -> str:
    return f"({_written(copy)}{_ARROW}{_written(first)})"


def _written(prefix: Prefix) -> str:
    return "/" + "".join(f"{name}/" for name in prefix)


def _prefix(text: str) -> Prefix:
    return tuple(name for name in text.split("/") if name)
