"""How a long piece of work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and how much it is (0: unknown); "" at the end."""


def silent(_step: str, _done: int, _total: int) -> None:
    """Nobody watches."""
