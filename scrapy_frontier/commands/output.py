"""Writing to the streams of a command."""

from __future__ import annotations

import os
from typing import TextIO


def write(stream: TextIO, text: str) -> None:
    """Write to a stream of any encoding; a reader that has gone away is no error."""
    encoding = stream.encoding or "utf-8"
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        mute(stream)


def mute(stream: TextIO) -> None:
    """Let all further writes go nowhere: the interpreter flushes once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
