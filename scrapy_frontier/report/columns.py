"""Numbers by identity id, in a temporary file that is mapped into memory.

The operating system keeps of it in memory what it has room for, so that a store with more
identities than memory can be replayed.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Final, Literal

Code = Literal["q", "i", "B"]

_WIDTHS: Final[dict[Code, int]] = {"q": 8, "i": 4, "B": 1}

_SPARE: Final = 1024
"""Slots added beyond what was asked for, so that a few more identities need no new file."""


class Column:
    """One number for each id from 0 on, 0 until it is set."""

    def __init__(self, stack: ExitStack, code: Code) -> None:
        self._stack = stack
        self._code = code
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self.view = memoryview(b"").cast(code)
        stack.callback(self._release)

    def resize(self, size: int) -> None:
        """Make room for the ids below `size`, keeping what is set."""
        file = tempfile.TemporaryFile()  # noqa: SIM115
        length = size * _WIDTHS[self._code]
        file.truncate(length)
        mapped = mmap.mmap(file.fileno(), length)
        view = memoryview(mapped).cast(self._code)
        view[: len(self.view)] = self.view
        self._release()
        self._file, self._map, self.view = file, mapped, view

    def _release(self) -> None:
        self.view.release()
        if self._map is not None:
            self._map.close()
        if self._file is not None:
            self._file.close()


class Columns:
    """What a replay knows of each identity: what its row says, and where its transitions led."""

    def __init__(self, stack: ExitStack) -> None:
        self.size = 0
        self.run = Column(stack, "q")
        self.origin = Column(stack, "q")
        self.source = Column(stack, "q")
        """The page whose callback yielded the first reference, 0 for none."""
        self.last_seq = Column(stack, "q")
        self.state = Column(stack, "B")
        self.disposition = Column(stack, "B")
        self.reason = Column(stack, "q")
        self.attempt = Column(stack, "q")
        """The last attempt that a dispatch named."""
        self.generation = Column(stack, "q")
        self.dispatches = Column(stack, "i")
        """Dispatch events less attempts: 0 at the end."""
        self._all = [column for column in vars(self).values() if isinstance(column, Column)]

    def make_room(self, highest: int) -> None:
        """Have a slot for every id up to `highest`."""
        if highest < self.size:
            return
        self.size = highest + 1 + _SPARE
        for column in self._all:
            column.resize(self.size)


@contextmanager
def columns() -> Iterator[Columns]:
    """Columns without a slot; their files are gone at the end of the block."""
    with ExitStack() as stack:
        yield Columns(stack)
