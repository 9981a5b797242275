"""What was rendered in a crawl, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

RENDERED: Final = "rendered"
"""Flag of a response that a browser has rendered; a limit that cut it short is a flag too."""


@dataclass(slots=True)
class Rendering:
    """The figures of a crawl's rendered pages."""

    pages: int = 0
    """Pages that were begun."""
    failed: Counter[str] = field(default_factory=Counter)
    """Pages that could not be rendered, by the kind of the failure."""
    cut: Counter[str] = field(default_factory=Counter)
    """Pages that met a limit, by its rule."""
    sub_requests: Counter[str] = field(default_factory=Counter)
    """Sub-requests, by what came of them."""
    sub_bytes: int = 0
    """Bytes of their bodies, their content coding undone."""
