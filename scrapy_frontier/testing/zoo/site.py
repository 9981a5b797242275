"""A site with useful pages and a trap among them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar

from scrapy_frontier.testing.zoo.words import article, listing, page, sentence

PER_LIST = 20


class TrapSite(ABC):
    """`useful` articles, lists of them, and what a subclass adds.

    A page is known by a name, whatever URL it is had by: the first fetch of a page with a name that is among
    `useful_names` is useful, every other fetch is waste.
    """

    name: ClassVar[str]
    rules: ClassVar[frozenset[str]]
    """The rules of which one at least has to hold the trap."""

    def __init__(self, useful: int = 500) -> None:
        self.articles = range(1, useful + 1)
        self.lists = range(1, -(-useful // PER_LIST) + 1)

    @property
    def useful_names(self) -> frozenset[str]:
        """The names of all pages that are worth a fetch."""
        return frozenset(
            {
                "/",
                *(f"/list/{n}.html" for n in self.lists),
                *(f"/articles/{n}.html" for n in self.articles),
            }
        )

    def name_of(self, target: str) -> str:
        """The name of the page that a target leads to."""
        return target

    def answer(self, target: str) -> str | None:
        """The page of a target, None where there is none."""
        return self.trap(target) or self.plain(target)

    @abstractmethod
    def entrance(self) -> list[tuple[str, str]]:
        """The links from useful pages into the trap."""

    def trap(self, target: str) -> str | None:
        """A page of the trap, None for any other target."""
        return None

    def plain(self, target: str) -> str | None:
        """A useful page."""
        if target == "/":
            lists = [(f"/list/{n}.html", f"List {n}") for n in self.lists]
            return page(
                "The zoo", f"<p>{sentence(self.name)}</p>{listing([*lists, *self.entrance()])}"
            )
        match = re.fullmatch(r"/(list|articles)/(\d+)\.html", target)
        if match is None:
            return None
        number = int(match[2])
        if match[1] == "list" and number in self.lists:
            return page(f"List {number}", listing(self.listed(number)) + self.beside(target))
        if match[1] == "articles" and number in self.articles:
            return page(self.title(number), article(self.name, number) + self.beside(target))
        return None

    def beside(self, target: str) -> str:
        """What each useful page has besides its content."""
        return listing(self.entrance())

    def title(self, number: int) -> str:
        """The title of an article."""
        return sentence(self.name, "title", number).removesuffix(".").capitalize()

    def listed(self, number: int) -> list[tuple[str, str]]:
        """The links of a list to its articles."""
        first = (number - 1) * PER_LIST + 1
        return [
            (f"/articles/{n}.html", self.title(n))
            for n in range(first, first + PER_LIST)
            if n in self.articles
        ]
