"""How a reference came to be: the kinds that stores keep as numbers.

The numbers are written to stores: they are never reused or renumbered.
"""

from __future__ import annotations

from enum import IntEnum


class ReferenceKind(IntEnum):
    """What emitted a reference."""

    SEED = 1
    """`start()` of the spider."""
    LINK = 2
    """A callback."""
    REDIRECT = 3
    """A response that sends the client on."""
    SITEMAP = 4
    """An entry of a sitemap."""
    ERRBACK = 5
    """An errback."""
    ENGINE = 6
    """A request handed to the engine from outside callbacks: `engine.crawl` in a signal handler, say."""
    ROBOTS = 7
    """A robots.txt, fetched to be read as rules."""
    DIRECT = 8
    """A request fetched past the scheduler by whoever issued it: media pipelines, `engine.download_async`."""

    @property
    def label(self) -> str:
        """The name used in reports, settings and documentation."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.label

    def __format__(self, spec: str) -> str:
        # Python 3.10 formats the label, also where a number is asked for.
        return int.__format__(self, spec)
