"""Disks that fill up, go away, or fail: real ones, made for a test."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_SHUT_DOWN = 0x8004587D
"""`EXT4_IOC_SHUTDOWN`: the file system refuses all further work, as over a disk that has gone."""

_WITHOUT_FLUSH = 2


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of its own, no larger than `size`, at `place`."""
    place.mkdir()
    if not _mounts("-t", "tmpfs", "-o", f"size={size}", "none", str(place)):
        pytest.skip("mounting a file system needs root")
    try:
        yield place
    finally:
        _unmount(place)


def remount(place: Path, options: str) -> None:
    """Change a disk: `size=64m`, `ro`, `rw`."""
    assert _mounts("-o", f"remount,{options}", str(place))


class FailingDisk:
    """A disk that can be made to fail while files on it are open, and be repaired."""

    def __init__(self, folder: Path) -> None:
        self.image = folder / "disk.img"
        self.place = folder / "disk"
        self.place.mkdir()
        with self.image.open("wb") as file:
            file.truncate(32 << 20)
        made = subprocess.run(
            ["mkfs.ext4", "-q", "-F", str(self.image)], capture_output=True, check=False
        )
        if made.returncode or not self._mount():
            pytest.skip("failing disk: this machine has no loop device to mount")

    def _mount(self) -> bool:
        return _mounts("-o", "loop", str(self.image), str(self.place))

    def fail(self) -> None:
        """From now on every write and read is an I/O error."""
        folder = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _SHUT_DOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(folder)

    def repair(self) -> None:
        """Take it out and put it in again: what had reached the disk is there."""
        _unmount(self.place)
        assert self._mount()

    def __enter__(self) -> FailingDisk:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.CalledProcessError):
            _unmount(self.place)


def _mounts(*arguments: str) -> bool:
    return not subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode


def _unmount(place: Path) -> None:
    subprocess.run(["umount", str(place)], check=True, capture_output=True)
