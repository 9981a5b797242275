"""The scripted server as a command.

    python -m scrapy_frontier.testing.server SCRIPT.json --port 0 --log FILE

It prints one line of JSON with the URL of each origin when it is ready, and serves until SIGINT or
SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.testing.script import load_script
from scrapy_frontier.testing.scripted import ScriptedServer
from scrapy_frontier.testing.tree import serve_tree


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m scrapy_frontier.testing.server", description=__doc__
    )
    parser.add_argument("script", nargs="?", type=Path, help="origins and answers as JSON")
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port of the first origin, the others follow; 0: free ones",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address of origins that name none")
    parser.add_argument("--log", type=Path, help="append a line of JSON per request to this file")
    parser.add_argument(
        "--tree",
        action="append",
        default=[],
        metavar="[ORIGIN]/PREFIX=DIRECTORY",
        help="serve a directory; trees of one ORIGIN share a port; may be repeated",
    )
    parser.add_argument(
        "--stop-on-eof", action="store_true", help="stop when standard input is closed"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop. Returns 0, or 2 where the arguments make no sense."""
    options = make_parser().parse_args(arguments)
    try:
        server = ScriptedServer(options.log)
        open_origins(server, options)
    except (ConfigError, OSError) as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 2
    with server:
        print(json.dumps({name: origin.url for name, origin in server.origins.items()}), flush=True)
        wait_for_end(stop_on_eof=options.stop_on_eof)
    return 0


def open_origins(server: ScriptedServer, options: argparse.Namespace) -> None:
    """Open what script and trees ask for. Raises ConfigError or, for ports and files, OSError."""
    if options.script:
        load_script(options.script, server, host=options.host, port=options.port)
    for tree in options.tree:
        place, equals, directory = tree.partition("=")
        name, slash, prefix = place.partition("/")
        if not (equals and slash):
            raise ConfigError(f"--tree {tree!r} is not of the form [ORIGIN]/PREFIX=DIRECTORY")
        name = name or "main"
        if name not in server.origins:
            port = options.port + len(server.origins) if options.port else 0
            server.origin(name, options.host, port)
        serve_tree(server.origins[name], prefix, Path(directory))
    if not server.origins:
        raise ConfigError("nothing to serve: give a SCRIPT or a --tree")


def wait_for_end(*, stop_on_eof: bool) -> None:
    """Block until SIGINT, SIGTERM or, if asked, the end of standard input."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    if stop_on_eof:
        threading.Thread(target=wait_for_eof, args=(ended,), daemon=True).start()
    ended.wait()


def wait_for_eof(ended: threading.Event) -> None:
    """Read standard input to its end. Unbuffered: a buffer's lock would get in the way of exit."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ended.set()


if __name__ == "__main__":
    sys.exit(main())
