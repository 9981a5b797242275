"""What a verification finds: each breach names the invariant, the identity and the numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LIMIT: Final = 1000
"""Findings that are kept; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach. `invariant` is its number in the design, 0 for damage to the store itself.

    `identity` is 0 where no single identity is at fault.
    """

    invariant: int
    identity: int
    text: str


@dataclass(slots=True)
class Findings:
    """Collects findings up to a limit."""

    kept: list[Finding] = field(default_factory=list)
    omitted: int = 0

    def add(self, invariant: int, identity: int, text: str) -> None:
        """Note one breach."""
        if len(self.kept) < LIMIT:
            self.kept.append(Finding(invariant, identity, text))
        else:
            self.omitted += 1
