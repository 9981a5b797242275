"""The rules of one agent, and what they say about a path (RFC 9309, section 2.2.2).

The longest pattern that matches decides; of two of the same length the allow; nothing that matches
allows. Patterns without operators are looked up by prefix, so that a long list of them costs
little; the others are tried from the longest on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from scrapy_frontier.policy.robots.patterns import Pattern, fold_query, normalise_target

ROBOTS_PATH: Final = "/robots.txt"

_SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a robots.txt says about a path, and the line that says so.

    `line_number` counts from 1; without a line (None, and no text) no rule matched, or none is
    needed.
    """

    allowed: bool
    line_number: int | None = None
    line_text: str = ""


UNRULED: Final = Verdict(True)
"""No rule matches, so the path is allowed."""

_Rank = tuple[int, bool, int]
_Key = TypeVar("_Key")


class RuleLine(NamedTuple):
    """An allow or disallow line that has a value, as it stands in the file."""

    is_allow: bool
    value: bytes
    number: int
    line: bytes


@dataclass(frozen=True, slots=True)
class _Rule:
    """`rank`: the rule with the least one, of those that match, decides."""

    pattern: Pattern
    rank: _Rank
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The rules that hold for one agent. Made by `Rules.for_agent`.

    `token`: which groups of the file they come from: the agent's own, `*`, or "" if there was
    neither. `crawl_delay_s`: the longest Crawl-delay among them, None where there is none;
    `crawl_delay_line`: where it stands.
    """

    token: str
    crawl_delay_s: float | None = None
    crawl_delay_line: int | None = None
    _prefixes: dict[str, _Rule] = field(default_factory=dict, repr=False)
    _lengths: tuple[int, ...] = field(default=(), repr=False)
    _others: tuple[_Rule, ...] = field(default=(), repr=False)
    _is_folding: bool = field(default=False, repr=False)

    @classmethod
    def compile(
        cls, token: str, lines: Iterable[RuleLine], crawl_delay: tuple[float, int] | None
    ) -> Group:
        """Make the rules of the lines ready for matching."""
        prefixes: dict[str, _Rule] = {}
        others: dict[tuple[tuple[str, ...], bool], _Rule] = {}
        for rule in _rules(lines):
            pattern = rule.pattern
            if pattern.prefix is not None and not pattern.folded:
                _keep_first(prefixes, pattern.prefix, rule)
            else:
                _keep_first(others, (pattern.pieces, pattern.is_anchored), rule)
        seconds, line_number = crawl_delay or (None, None)
        return cls(
            token,
            seconds,
            line_number,
            prefixes,
            tuple(sorted({len(prefix) for prefix in prefixes})),
            tuple(sorted(others.values(), key=_rank)),
            any(rule.pattern.folded for rule in others.values()),
        )

    def decide(self, target: str) -> Verdict:
        """Decide on a path with its query, as it stands in a request URL."""
        target = normalise_target(target)
        if target == ROBOTS_PATH:
            return UNRULED
        best = self._find_prefix(target)
        if self._others:
            best = self._find_other(target, best)
        return UNRULED if best is None else best.verdict

    def _find_prefix(self, target: str) -> _Rule | None:
        best = None
        prefixes = self._prefixes
        longest = len(target)
        for length in self._lengths:
            if length > longest:
                break
            rule = prefixes.get(target[:length])
            if rule is not None and (best is None or rule.rank < best.rank):
                best = rule
        return best

    def _find_other(self, target: str, best: _Rule | None) -> _Rule | None:
        folded = fold_query(target) if self._is_folding else target
        for rule in self._others:
            if best is not None and best.rank < rule.rank:
                return best
            if rule.pattern.matches(target, folded):
                return rule
        return best


def _rank(rule: _Rule) -> _Rank:
    return rule.rank


def _keep_first(rules: dict[_Key, _Rule], key: _Key, rule: _Rule) -> None:
    """Of rules that match the same paths only one can ever decide."""
    known = rules.get(key)
    if known is None or rule.rank < known.rank:
        rules[key] = rule


def _rules(lines: Iterable[RuleLine]) -> Iterable[_Rule]:
    for is_allow, value, number, line in lines:
        verdict = None
        for spelling in _spellings(value) if is_allow else (value,):
            pattern = Pattern.read(spelling)
            if pattern is not None:
                verdict = verdict or Verdict(is_allow, number, _show(line))
                yield _Rule(pattern, (-pattern.length, not is_allow, number), verdict)


def _spellings(value: bytes) -> Iterable[bytes]:
    """An allowed index page allows its directory as well, as Google reads it."""
    yield value
    directory, slash, page = value.rpartition(b"/")
    if page.startswith(b"index.htm"):
        yield directory + slash + b"$"


def _show(line: bytes) -> str:
    text = line[: 4 * _SHOWN].decode("utf-8", "replace").strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
