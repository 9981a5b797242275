"""A witness inside SQLite: at each flush of a file it keeps a copy of what the disk holds from then on.

What a power cut leaves is what was flushed, and any part of what was written since. No unprivileged test can cut the
power; but SQLite asks for each flush through its file methods (sqlite.org/c3ref/io_methods.html), and there it is seen.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

OK = 0

FLUSHED = ".flushed"
"""Suffix of the copy of a file as it was flushed last."""

_OPEN = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    # The name as an address: SQLite keeps the parameters of a URI behind it.
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Vfs(ctypes.Structure):
    """The head of `sqlite3_vfs`."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("app_data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
    ]


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`, version 3."""

    _fields_ = [
        ("version", ctypes.c_int),
        *[(name, ctypes.c_void_p) for name in ("close", "read", "write", "truncate", "sync")],
        *[(f"other{number}", ctypes.c_void_p) for number in range(13)],
    ]


WITNESSES: list[Witness] = []
"""Those installed: SQLite calls them for as long as the process lives."""


class Witness:
    """Watches the files in `folder` that this process opens through SQLite."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._paths: dict[int, str] = {}
        self._watched: dict[int, Any] = {}
        self._kept: list[Any] = []

    def install(self) -> None:
        """From now on, every file that SQLite opens is watched."""
        library = _library()
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        vfs = library.sqlite3_vfs_find(None).contents
        original = _OPEN(vfs.open)

        def opened(vfs_at: int, name_at: int, file_at: int, flags: int, out: int) -> int:
            status = original(vfs_at, name_at, file_at, flags, out)
            if status == OK and name_at:
                self._watch(os.fsdecode(ctypes.string_at(name_at)), file_at)
            return status

        callback = _OPEN(opened)
        self._kept += [original, callback]
        vfs.open = ctypes.cast(callback, ctypes.c_void_p)
        WITNESSES.append(self)

    def _watch(self, path: str, file_at: int) -> None:
        if not path.startswith(self._folder):
            return
        self._paths[file_at] = path
        place = ctypes.cast(file_at, ctypes.POINTER(ctypes.c_void_p))
        methods_at = place[0]
        if methods_at not in self._watched:
            self._watched[methods_at] = self._with_sync(methods_at)
        place[0] = ctypes.addressof(self._watched[methods_at])

    def _with_sync(self, methods_at: int) -> _Methods:
        methods = _Methods.from_buffer_copy(_Methods.from_address(methods_at))
        original = _SYNC(methods.sync)

        def synced(file_at: int, flags: int) -> int:
            path = self._paths[file_at]
            # What was written before the flush began; the copy has its name once the flush is over.
            shutil.copyfile(path, f"{path}.flushing")
            status = original(file_at, flags)
            if status == OK:
                Path(f"{path}.flushing").replace(path + FLUSHED)
            return status

        callback = _SYNC(synced)
        self._kept += [original, callback]
        methods.sync = ctypes.cast(callback, ctypes.c_void_p)
        return methods


def _library() -> Any:
    """The SQLite that the stores of this process are opened with."""
    from scrapy_frontier.store.sqlite import DRIVER

    name = "pysqlite3._sqlite3" if DRIVER.__name__.startswith("pysqlite3") else "_sqlite3"
    module = __import__(name, fromlist=["_"])
    return ctypes.CDLL(module.__file__)
