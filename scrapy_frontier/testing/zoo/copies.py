"""Traps that show each page under many addresses: sessions, mirrors, a spiral of relative links."""

from __future__ import annotations

import re

from scrapy_frontier.testing.zoo.site import TrapSite
from scrapy_frontier.testing.zoo.words import listing, number_of

MIRRORS = ("old", "backup", "en")


class SessionInPath(TrapSite):
    """Every answer starts another session, and its links carry it as a directory."""

    name = "session in path"
    rules = frozenset({"session"})

    def name_of(self, target: str) -> str:
        return re.sub(r"^/[0-9a-f]{16}(?=/)", "", target)

    def entrance(self) -> list[tuple[str, str]]:
        return []

    def answer(self, target: str) -> str | None:
        found = self.plain(self.name_of(target))
        return found and self.with_session(found, self.session(target))

    def session(self, target: str) -> str:
        """The number of the session that an answer starts."""
        return f"a1{number_of('one', target):08x}{number_of('two', target):08x}"[:16]

    def with_session(self, html: str, session: str) -> str:
        """The page with the session in its links."""
        return re.sub(r'href="/(?!")', f'href="/{session}/', html)


class SessionInQuery(SessionInPath):
    """The same, as a parameter."""

    name = "session in query"
    rules = frozenset({"session"})

    def name_of(self, target: str) -> str:
        return re.sub(r"\?PHPSESSID=[0-9a-f]{16}$", "", target)

    def with_session(self, html: str, session: str) -> str:
        return re.sub(r'href="(/[^"]+)"', rf'href="\1?PHPSESSID={session}"', html)


class Mirrors(TrapSite):
    """Three copies of the whole site in directories of it."""

    name = "mirrored trees"
    rules = frozenset({"mirror", "nested"})

    def name_of(self, target: str) -> str:
        return re.sub(rf"^/(?:{'|'.join(MIRRORS)})(?=/)", "", target)

    def entrance(self) -> list[tuple[str, str]]:
        return [(f"/{name}/", f"The site in {name}") for name in MIRRORS]

    def answer(self, target: str) -> str | None:
        bare = self.name_of(target)
        found = self.plain(bare)
        prefix = target[: len(target) - len(bare)]
        return found and re.sub(r'href="/(?=list|articles)', f'href="{prefix}/', found)


class Spiral(TrapSite):
    """A guide whose chapters link to each other as if they were in one directory, and which are not."""

    name = "relative-link spiral"
    rules = frozenset({"nested", "mirror", "repeat"})
    CHAPTERS = 24

    @property
    def useful_names(self) -> frozenset[str]:
        return super().useful_names | {f"/guide/{name}/" for name in self._chapters()}

    def _chapters(self) -> list[str]:
        return [f"chapter{n}" for n in range(1, self.CHAPTERS + 1)]

    def name_of(self, target: str) -> str:
        match = re.fullmatch(r"/guide/(?:chapter\d+/)*(chapter\d+/)", target)
        return f"/guide/{match[1]}" if match else target

    def entrance(self) -> list[tuple[str, str]]:
        return [(f"/guide/{name}/", f"Guide, {name}") for name in self._chapters()]

    def beside(self, target: str) -> str:
        return ""

    def trap(self, target: str) -> str | None:
        name = self.name_of(target)
        if name not in {f"/guide/{one}/" for one in self._chapters()}:
            return None
        number = int(name.strip("/").removeprefix("guide/chapter"))
        others = [self._chapters()[(number + step) % self.CHAPTERS] for step in (0, 1, 6)]
        found = self.plain(f"/articles/{number}.html") or ""
        return found.replace(
            "</body>", listing((f"{one}/", f"See {one}") for one in others) + "</body>"
        )
