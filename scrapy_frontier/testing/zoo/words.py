"""Text that differs from page to page and never changes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from zlib import crc32

# fmt: off
WORDS = (
    "acre", "alder", "amber", "anvil", "apple", "arch", "barley", "basin", "beacon", "birch",
    "bramble", "bridge", "brook", "candle", "canal", "cedar", "chalk", "cider", "clover", "coast",
    "copper", "cottage", "creek", "dale", "drift", "elder", "ember", "fallow", "fern", "ferry",
    "field", "flint", "forge", "garden", "gate", "glade", "grain", "grove", "harbour", "harvest",
    "hazel", "heath", "hedge", "hill", "hollow", "island", "ivy", "juniper", "kettle", "lantern",
    "larch", "ledge", "linen", "lock", "maple", "marsh", "meadow", "mill", "moor", "moss",
    "mound", "nettle", "oak", "orchard", "otter", "paddock", "pasture", "pebble", "pier", "pine",
    "plough", "pond", "poplar", "quarry", "rafter", "reed", "ridge", "river", "rowan", "rush",
    "saddle", "sand", "shale", "shore", "slate", "spring", "stable", "stone", "stream", "thatch",
    "thicket", "thistle", "timber", "tower", "valley", "vine", "wagon", "walnut", "weir", "wharf",
    "willow", "window", "wool", "yard", "yarrow", "yew",
)
# fmt: on


def number_of(*key: object) -> int:
    """A number that looks random and is always the same for the same key."""
    return crc32(repr(key).encode())


def sentence(*key: object) -> str:
    """Nine words for a key."""
    return " ".join(WORDS[number_of(*key, place) % len(WORDS)] for place in range(9)) + "."


def article(*key: object) -> str:
    """Eight paragraphs for a key."""
    return "\n".join(f"<p>{sentence(*key, line).capitalize()}</p>" for line in range(8))


def anchor(href: str, label: str) -> str:
    """A link."""
    return f'<a href="{escape(href)}">{escape(label)}</a>'


def listing(links: Iterable[tuple[str, str]]) -> str:
    """A list of links."""
    return (
        "<ul>\n" + "\n".join(f"<li>{anchor(href, label)}</li>" for href, label in links) + "\n</ul>"
    )


def page(title: str, body: str) -> str:
    """A whole page, with the navigation that every page of a site has."""
    return (
        f"<!DOCTYPE html>\n<html><head><title>{escape(title)}</title></head>\n<body>\n"
        f"<nav>{anchor('/', 'Home')} {anchor('/list/1.html', 'Everything')}</nav>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n<footer>The zoo, all animals behind bars.</footer>\n</body></html>\n"
    )
