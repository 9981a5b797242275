"""Frames one after the other: in place at a terminal, below each other elsewhere."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, TextIO

from tqdm.utils import disp_trim

from scrapy_frontier.commands.output import write

# Control sequences of ECMA-48 (CSI), the last two with xterm's private modes.
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"


@contextmanager
def frames(stream: TextIO) -> Iterator[Callable[[Sequence[str]], None]]:
    """What shows a frame. A terminal is as it was before when the block ends, however it ends."""
    if not stream.isatty():
        yield lambda lines: write(stream, "\n".join([*lines, "", ""]))
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    write(stream, _ENTER)
    try:
        yield lambda lines: write(stream, painted(lines, *shutil.get_terminal_size()))
    finally:
        write(stream, _LEAVE)
        signal.signal(signal.SIGTERM, before)


def painted(lines: Sequence[str], columns: int, rows: int) -> str:
    """The frame over the one before it, cut to the size of the terminal."""
    shown = [f"{disp_trim(line, columns)}{_REST_OF_LINE}" for line in lines[: rows - 1]]
    return _HOME + "\r\n".join(shown) + _REST_OF_SCREEN


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
