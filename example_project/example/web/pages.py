"""What all sites share: a frame, links, and choices that look random but never change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeVar
from zlib import crc32

from scrapy_frontier.testing import Answer

T = TypeVar("T")


def html(title: str, body: str, *, head: str = "", status: int = 200) -> Answer:
    """A whole page; `head` is for more elements like `<link rel="canonical">`."""
    return Answer(
        f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(title)}</title>{head}</head>
<body>
<h1>{escape(title)}</h1>
{body}
</body>
</html>
""",
        status=status,
    )


def xml(body: str) -> Answer:
    """An XML document, as sitemaps and feeds are."""
    declaration = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return Answer(declaration + body, content_type="application/xml")


def link(url: str, text: str) -> str:
    """An anchor element."""
    return f'<a href="{escape(url)}">{escape(text)}</a>'


def listing(links: Iterable[tuple[str, str]]) -> str:
    """A bullet list of (url, text) links."""
    items = "\n".join(f"<li>{link(url, text)}</li>" for url, text in links)
    return f"<ul>\n{items}\n</ul>"


def pick(options: Sequence[T], *key: object) -> T:
    """One of the options, always the same one for the same key."""
    return options[crc32(repr(key).encode()) % len(options)]
