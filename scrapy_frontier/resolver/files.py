"""The system's files about names: read again when they change, as a crawl may run for weeks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from scrapy_frontier.resolver.answers import Address, read_address

RESOLV_CONF: Final = Path("/etc/resolv.conf")

LOOPBACK: Final = ("127.0.0.1", "::1")


def hosts_path() -> Path:
    """Where this system keeps its hosts file."""
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32/drivers/etc/hosts")
    return Path("/etc/hosts")


class WatchedFile:
    """Remembers how a file looked; also one that is not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, ...] | None = (-1,)

    def notice_change(self) -> bool:
        """Whether it looks otherwise than the last time, and remember how; True at first."""
        before, self._stamp = self._stamp, self._read_stamp()
        return self._stamp != before

    def _read_stamp(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class HostsFile:
    """The names that the hosts file gives addresses (hosts(5)), and `localhost`, which has them anyway."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = WatchedFile(path or hosts_path())
        self._addresses: dict[str, list[Address]] = {}

    def addresses_of(self, name: str) -> tuple[Address, ...]:
        """The addresses of a name in ASCII and lower case, none if it is not listed."""
        if self._file.notice_change():
            self._addresses = _read_hosts(self._file.path)
        name = name.removesuffix(".")
        found = self._addresses.get(name)
        if found is None and (name == "localhost" or name.endswith(".localhost")):
            # Never asked of a name server (RFC 6761, section 6.3).
            found = [address for text in LOOPBACK if (address := read_address(text))]
        return tuple(found or ())


def _read_hosts(path: Path) -> dict[str, list[Address]]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return {}
    addresses: dict[str, list[Address]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        address = read_address(words[0]) if words else None
        if address is None:
            continue
        for name in words[1:]:
            known = addresses.setdefault(name.lower(), [])
            if address not in known:
                known.append(address)
    return addresses
