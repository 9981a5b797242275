"""What a rendered page may ask for beside its document, and how much of it.

`FRONTIER_RENDER_ALLOW` says of what type a sub-request may be, and which places a page may use
although the scope of the crawl ends before them::

    FRONTIER_RENDER_ALLOW = {
        "types": ["document", "script", "stylesheet", "xhr", "fetch"],
        "places": ["https://cdn.example.net/libraries/"],
    }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.identity.origins import split_origin
from scrapy_frontier.identity.places import Place
from scrapy_frontier.identity.resolve import Resolved

TYPES: Final = frozenset(
    {
        "document",
        "stylesheet",
        "image",
        "media",
        "font",
        "script",
        "texttrack",
        "xhr",
        "fetch",
        "eventsource",
        "manifest",
        "ping",
        "other",
    }
)
"""Types of sub-requests, by Playwright's names; a `document` is that of a frame."""

DEFAULT_TYPES: Final = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
"""What the content of a page may hang on; pictures, fonts, films and beacons change no text."""

TYPE: Final = "render.type"
"""A sub-request of a type that is not allowed."""
REQUESTS: Final = "render.requests"
"""The page has made as many sub-requests as it may."""
BYTES: Final = "render.bytes"
"""The sub-requests of the page have brought as many bytes as they may."""
TIME: Final = "render.time"
"""The time for rendering the page is over."""

_KEYS: Final = ("types", "places")


@dataclass(frozen=True, slots=True)
class RenderAllow:
    """The setting, read. `places` widen the scope for sub-requests alone."""

    types: frozenset[str] = DEFAULT_TYPES
    places: tuple[Place, ...] = ()

    @classmethod
    def from_setting(cls, value: object) -> RenderAllow:
        """Read the setting; raise `ConfigError` with the entry at fault and the remedy."""
        if not isinstance(value, Mapping):
            raise ConfigError(f"must be a dictionary with 'types' and 'places', not {value!r}")
        for key in value:
            if key not in _KEYS:
                raise ConfigError(f"has an unknown key {key!r}; known are 'types' and 'places'")
        types = frozenset(_texts(value.get("types", DEFAULT_TYPES), "types"))
        if unknown := types - TYPES:
            known = ", ".join(sorted(TYPES))
            raise ConfigError(f"'types' has unknown ones: {', '.join(sorted(unknown))}; {known}")
        places = tuple(Place.parse(text) for text in _texts(value.get("places", ()), "places"))
        return cls(types, places)

    def covers(self, resolved: Resolved) -> bool:
        """Whether a page may use this URL wherever the scope ends."""
        origin = split_origin(resolved.origin)
        path = resolved.url[len(resolved.origin) :]
        return any(place.covers_origin(origin) and place.covers_path(path) for place in self.places)


def _texts(value: object, key: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise ConfigError(f"{key!r} must be a list of texts, not {value!r}")
    return [str(text) for text in value]


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Ceilings of one page: seconds in the browser, sub-requests, and bytes of their bodies."""

    time_s: float = 30.0
    requests: int = 200
    bytes: int = 32 * 1024 * 1024


class PageSpending:
    """What one page has asked for so far."""

    __slots__ = ("allow", "bytes", "limits", "reached", "requests")

    def __init__(self, allow: RenderAllow, limits: RenderLimits) -> None:
        self.allow = allow
        self.limits = limits
        self.requests: int = 0
        self.bytes: int = 0
        self.reached: str = ""
        """The first limit that was reached."""

    @property
    def bytes_left(self) -> int:
        """How much the next response may bring."""
        return max(0, self.limits.bytes - self.bytes)

    def ask(self, kind: str) -> str:
        """Count a sub-request; the rule that forbids it, or an empty text."""
        if kind not in self.allow.types:
            return TYPE
        if self.requests >= self.limits.requests:
            return self.reach(REQUESTS)
        if not self.bytes_left:
            return self.reach(BYTES)
        self.requests += 1
        return ""

    def open_window(self) -> str:
        """Count a window that the page opens; the rule that it breaks, or an empty text."""
        if self.requests >= self.limits.requests:
            return self.reach(REQUESTS)
        self.requests += 1
        return ""

    def take(self, size: int) -> str:
        """Count the bytes of a response; the rule that they break, or an empty text."""
        self.bytes += size
        return self.reach(BYTES) if self.bytes > self.limits.bytes else ""

    def reach(self, rule: str) -> str:
        """A limit is reached."""
        self.reached = self.reached or rule
        return rule
