"""`frontier serve`: the report of a run on a web page, live."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.commands.output import write
from scrapy_frontier.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.commands.serving.access import Access

HOST: Final = "127.0.0.1"
PORT: Final = 8090


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        default=HOST,
        metavar="ADDRESS",
        help=f"address to listen on (default: {HOST}); any other than a loopback one makes a token that readers need",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        help=f"port to listen on, 0 for a free one (default: {PORT})",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that browsers call this server by, besides its address (may be repeated)",
    )


def _run(invocation: Invocation) -> int:
    from twisted.internet import reactor as installed

    from scrapy_frontier.commands.serving.access import Access
    from scrapy_frontier.commands.serving.pages import Pages
    from scrapy_frontier.commands.serving.site import site

    reactor: Any = installed
    options = invocation.options
    access = Access.of(
        "127.0.0.1" if options.host == "localhost" else options.host, options.allow_host
    )
    with invocation.store() as store:
        pages = Pages(store, options.run, rule=invocation.redaction_rule())
        port = _listen(reactor, options.port, site(pages, access), access.address)
        write(sys.stdout, _greeting(access, port.getHost().port))
        reactor.addSystemEventTrigger("before", "shutdown", pages.close)
        reactor.run()
    return 0


def _listen(reactor: Any, port: int, factory: Any, address: str) -> Any:
    from twisted.internet.error import CannotListenError

    try:
        return reactor.listenTCP(port, factory, interface=address)
    except (CannotListenError, OverflowError) as error:
        reason = getattr(error, "socketError", error)
        raise ConfigError(
            f"{address} port {port} cannot be listened on: {reason}; choose another --port or --host"
        ) from error


def _greeting(access: Access, port: int) -> str:
    # The address that stands for all of a machine's own is none to connect to.
    host = socket.gethostname() if access.address in {"0.0.0.0", "::"} else access.address
    host = f"[{host}]" if ":" in host else host
    query = f"?token={access.token}" if access.token is not None else ""
    warning = (
        "Others can reach it: what they read, and the token, go over the wire as they are. A tunnel or a proxy with TLS"
        " hides them.\n"
        if access.token is not None
        else ""
    )
    return f"Serving the report at http://{host}:{port}/{query}\n{warning}Ctrl-C ends it.\n"


COMMAND = Subcommand(
    "serve", "Serve the report of a run as a live web page, on this machine", _add_arguments, _run
)
