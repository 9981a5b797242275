"""The browser: where it is found, and how it is started without any way to a network.

All that a page needs is handed to it by the guard. What slips past the guard (a web socket, a worker, a prefetch, a
name to look up, a route of the project's that lets a request through) meets a proxy that nobody answers for.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error as PlaywrightError

from scrapy_frontier.errors import ConfigError

if TYPE_CHECKING:
    from playwright.async_api import Browser
    from scrapy.settings import BaseSettings

PATHS: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""Names that Chromium goes by on the path, the leanest first."""

QUIET_FLAGS: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--no-first-run",
    # Chromium has called it by either name.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)

_tried: Final[set[tuple[str, ...]]] = set()

PROBE_MS: Final = 2000
"""How long a browser may try to reach the network, in milliseconds."""

_FOREIGN: Final = {
    "PLAYWRIGHT_CDP_URL": "a browser that runs elsewhere has a network of its own",
    "PLAYWRIGHT_CONNECT_URL": "a browser that runs elsewhere has a network of its own",
    "PLAYWRIGHT_BROWSER_PROVIDER": "what it starts may have a network",
}


class NoNetwork:
    """A port on loopback that is taken and not listened on, so that every connection to it is refused."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.address: str = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        """Give the port back, once the browser is gone."""
        self._socket.close()


def check(settings: BaseSettings) -> None:
    """Raise `ConfigError` for settings of scrapy-playwright's under which no guard could hold."""
    for name, reason in _FOREIGN.items():
        if settings.get(name):
            raise ConfigError(f"{name} cannot be used with the frontier, for {reason}: remove it")
    kind = settings.get("PLAYWRIGHT_BROWSER_TYPE") or "chromium"
    if kind != "chromium":
        raise ConfigError(
            f"PLAYWRIGHT_BROWSER_TYPE = {kind!r}: only chromium can be cut off from the network; remove it"
        )


def executable(configured: str | None, options: Mapping[str, Any]) -> str | None:
    """The browser to start: the setting, else Playwright's option, else one on the path, else Playwright's own."""
    if configured is not None:
        found = shutil.which(configured)
        if found is None:
            raise ConfigError(f"FRONTIER_RENDER_EXECUTABLE = {configured!r} is no program")
        return found
    if options.get("executable_path") or options.get("channel"):
        return options.get("executable_path")
    return next(filter(None, map(shutil.which, PATHS)), None)


def options(given: Mapping[str, Any], path: str | None, proxy: str) -> dict[str, Any]:
    """The options to launch with: the project's own, and last (the last one wins) what cuts off the network."""
    kept = {name: value for name, value in given.items() if name != "proxy"}
    args: Iterable[str] = given.get("args") or ()
    # Features that the project's flags switch off stay off: a second flag of that name would replace Playwright's.
    kept["args"] = [
        *(flag for flag in args if not flag.startswith(("--proxy", "--no-proxy", "--host-r"))),
        *QUIET_FLAGS,
        f"--proxy-server={proxy}",
        "--proxy-bypass-list=<-loopback>",
    ]
    if path is not None:
        kept["executable_path"] = path
    # The crawl closes the browser itself: a signal must not take it from pages that are being finished.
    for name in ("handle_sigint", "handle_sigterm", "handle_sighup"):
        kept.setdefault(name, False)
    return kept


async def reaches_out(browser: Browser, given: Mapping[str, Any]) -> bool:
    """Whether a browser finds a way to a port on loopback: flags may be overruled, by a managed policy for one.

    What was started in the same way before, by this process, has been tried out.
    """
    flags = (flag for flag in given.get("args", ()) if not flag.startswith("--proxy-server="))
    way = (str(given.get("executable_path")), *flags)
    if way in _tried:
        return False
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        context = await browser.new_context()
        try:
            page = await context.new_page()
            with suppress(PlaywrightError):
                url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
                await page.goto(url, timeout=PROBE_MS)
        finally:
            await context.close()
        with suppress(BlockingIOError):
            listener.accept()[0].close()
            return True
    _tried.add(way)
    return False


def context_options(given: Mapping[str, Any], user_agent: str | None) -> dict[str, Any]:
    """The options of a page's context. A profile on disk would be another browser, a proxy another way out."""
    kept = {name: value for name, value in given.items() if name not in {"proxy", "user_data_dir"}}
    if user_agent:
        kept.setdefault("user_agent", user_agent)
    return {**kept, "service_workers": "block", "accept_downloads": False}
