"""A robots.txt, parsed: which groups it has, for whom, and its sitemaps (RFC 9309, section 2.2).

A group is one or more User-agent lines and what follows, up to the next User-agent line behind a
rule. Other lines than allow and disallow do not end the list of agents (section 2.2.4). An agent
has the rules of all groups that name its token, whatever their order; where none does, those of
`*`; and where there are none, no rules (section 2.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from scrapy_frontier.policy.robots.groups import Group, RuleLine
from scrapy_frontier.policy.robots.lines import (
    EVERYBODY,
    Field,
    read_delay,
    read_line,
    read_text,
    read_token,
    split_lines,
)

PARSER_VERSION: Final = 1
"""The version of what this parser makes of a text; it is part of each record and of each decision."""

_REMEMBERED: Final = 16


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The value of a Sitemap line as it stands there, and the number of the line."""

    url: str
    line_number: int


@dataclass(slots=True)
class _Section:
    """One group as it stands in the file; `is_closed`: a rule has ended its list of agents."""

    tokens: set[str] = field(default_factory=set)
    lines: list[RuleLine] = field(default_factory=list)
    delays: list[tuple[float, int]] = field(default_factory=list)
    is_closed: bool = False


class Rules:
    """What a robots.txt says. Made by `parse`; groups are made ready when they are asked for."""

    __slots__ = ("_by_token", "_groups", "sitemaps")

    def __init__(self, by_token: dict[str, list[_Section]], sitemaps: tuple[Sitemap, ...]) -> None:
        self._by_token = by_token
        self._groups: dict[str, Group] = {}
        self.sitemaps = sitemaps

    @classmethod
    def parse(cls, text: bytes) -> Rules:
        """Read a text of any kind: what cannot be read means nothing, and what is beyond the limit
        of size is not there.
        """
        reader = _Reader()
        for number, line in enumerate(split_lines(read_text(text).text), 1):
            reader.read(number, line)
        return cls(reader.by_token(), tuple(reader.sitemaps))

    def __repr__(self) -> str:
        agents = ", ".join(sorted(self.agents)) or "nobody"
        return f"<Rules for {agents}; {len(self.sitemaps)} sitemaps>"

    @property
    def agents(self) -> frozenset[str]:
        """The tokens that have a group, in lower case, `*` among them."""
        return frozenset(self._by_token)

    @property
    def has_groups(self) -> bool:
        """Whether there is a group for anybody: without one the text allows everything to all."""
        return bool(self._by_token)

    def for_agent(self, token: str) -> Group:
        """Return the rules for an agent by its product token, in any case (section 2.2.1)."""
        key = token.lower()
        if key not in self._by_token:
            key = EVERYBODY
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _REMEMBERED:
                self._groups.clear()
            group = self._groups[key] = self._compile(key)
        return group

    def _compile(self, token: str) -> Group:
        sections = self._by_token.get(token, [])
        lines = chain.from_iterable(section.lines for section in sections)
        delays = [delay for section in sections for delay in section.delays]
        longest = max(delays, key=lambda delay: delay[0], default=None)
        return Group.compile(token if sections else "", lines, longest)


class _Reader:
    """Gathers the groups of a file line by line."""

    def __init__(self) -> None:
        self.sitemaps: list[Sitemap] = []
        self._sections: list[_Section] = []

    def read(self, number: int, line: bytes) -> None:
        found = read_line(line)
        if found is None:
            return
        name, value = found
        if name is Field.AGENT:
            self._add_agent(read_token(value))
        elif name is Field.SITEMAP:
            self._add_sitemap(number, value)
        elif self._sections:
            self._add_to_group(
                self._sections[-1], name, RuleLine(name is Field.ALLOW, value, number, line)
            )

    def by_token(self) -> dict[str, list[_Section]]:
        found: dict[str, list[_Section]] = {}
        for section in self._sections:
            for token in section.tokens:
                found.setdefault(token, []).append(section)
        return found

    def _add_agent(self, token: str) -> None:
        if not self._sections or self._sections[-1].is_closed:
            self._sections.append(_Section())
        if token:
            self._sections[-1].tokens.add(token)

    def _add_sitemap(self, number: int, value: bytes) -> None:
        if value:
            self.sitemaps.append(Sitemap(value.decode("utf-8", "replace"), number))

    def _add_to_group(self, section: _Section, name: Field, rule: RuleLine) -> None:
        if name is Field.CRAWL_DELAY:
            seconds = read_delay(rule.value)
            if seconds is not None:
                section.delays.append((seconds, rule.number))
            return
        section.is_closed = True
        if rule.value:
            section.lines.append(rule)
