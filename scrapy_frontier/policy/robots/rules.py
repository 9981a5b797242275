"""A robots.txt, parsed: which groups it has, for whom, and its sitemaps (RFC 9309, section 2.2).

A group is one or more User-agent lines and what follows, up to the next User-agent line behind a
rule. Other lines than allow and disallow do not end the list of agents (section 2.2.4). An agent
has the rules of all groups that name its token, whatever their order; where none does, those of
`*`; and where there are none, no rules (section 2.2.1).

Crawl-delay is not in the RFC, so here the older habit of its authors counts: it is for the agents
right above it, and another User-agent line behind it begins a new list.
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
    """Agents as they are listed in one place of the file, and what is said of them; `is_closed`:
    the list has ended.
    """

    tokens: set[str] = field(default_factory=set)
    is_closed: bool = False
    lines: list[RuleLine] = field(default_factory=list)
    delay: tuple[float, int] | None = None


_ByToken = dict[str, list[_Section]]


class Rules:
    """What a robots.txt says. Made by `parse`; groups are made ready when they are asked for."""

    __slots__ = ("_by_token", "_delays", "_groups", "sitemaps")

    def __init__(self, by_token: _ByToken, delays: _ByToken, sitemaps: tuple[Sitemap, ...]) -> None:
        self._by_token = by_token
        self._delays = delays
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
        return cls(_index(reader.sections), _index(reader.delay_sections), tuple(reader.sitemaps))

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
        delays = [section.delay for section in self._delays.get(token, []) if section.delay]
        return Group.compile(
            token if sections else "", lines, max(delays, key=_seconds, default=None)
        )


def _seconds(delay: tuple[float, int]) -> float:
    return delay[0]


def _index(sections: list[_Section]) -> _ByToken:
    found: _ByToken = {}
    for section in sections:
        for token in section.tokens:
            found.setdefault(token, []).append(section)
    return found


class _Reader:
    """Gathers the groups of a file line by line, and apart from them who has which delay."""

    def __init__(self) -> None:
        self.sitemaps: list[Sitemap] = []
        self.sections: list[_Section] = []
        self.delay_sections: list[_Section] = []

    def read(self, number: int, line: bytes) -> None:
        found = read_line(line)
        if found is None:
            return
        name, value = found
        if name is Field.AGENT:
            token = read_token(value)
            _list_agent(self.sections, token)
            _list_agent(self.delay_sections, token)
        elif name is Field.SITEMAP:
            self._add_sitemap(number, value)
        elif name is Field.CRAWL_DELAY:
            self._add_delay(number, value)
        else:
            self._add_rule(RuleLine(name is Field.ALLOW, value, number, line))

    def _add_sitemap(self, number: int, value: bytes) -> None:
        if value:
            self.sitemaps.append(Sitemap(value.decode("utf-8", "replace"), number))

    def _add_delay(self, number: int, value: bytes) -> None:
        if not self.delay_sections:
            return
        section = self.delay_sections[-1]
        section.is_closed = True
        seconds = read_delay(value)
        if seconds is not None and (section.delay is None or seconds > section.delay[0]):
            section.delay = seconds, number

    def _add_rule(self, rule: RuleLine) -> None:
        if not self.sections:
            return
        self.sections[-1].is_closed = self.delay_sections[-1].is_closed = True
        if rule.value:
            self.sections[-1].lines.append(rule)


def _list_agent(sections: list[_Section], token: str) -> None:
    if not sections or sections[-1].is_closed:
        sections.append(_Section())
    if token:
        sections[-1].tokens.add(token)
