"""What is known to be wrong still: tests, by their names, that hold the frontier to what is right and fail.

A line goes when its fault is mended.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}
