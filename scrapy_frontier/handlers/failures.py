"""What can go wrong with a page in the browser, by name; `render.{kind}` is the cause in the ledger."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Error as PlaywrightError

GONE_TEXTS: Final = (
    "has been closed",
    "connection closed",
    "browser closed",
    "browser has been closed",
)


class RenderError(Exception):
    """A page could not be rendered. `kind` is one of:

    `crashed` (its renderer died, out of memory for one), `closed` (the browser or its context went away), `hung` (its
    scripts let nobody in), `limit` (it met one of its ceilings, and `FRONTIER_RENDER_PARTIAL` is off), `launch` (there
    is no browser), `guard` (its requests could not be watched), `aborted`, `net` (Chromium's own `net::` failures),
    `pages` (the budget of rendered pages is spent), `size` (it has grown beyond `DOWNLOAD_MAXSIZE`),
    `failed` (anything else).
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def cause(self) -> str:
        """The cause as the ledger has it."""
        return f"render.{self.kind}"


def failure_of(error: PlaywrightError) -> RenderError:
    """What an error of Playwright's means."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    lower = text.lower()
    if "crash" in lower:
        return RenderError("crashed", text)
    if type(error).__name__ == "TargetClosedError" or any(mark in lower for mark in GONE_TEXTS):
        return RenderError("closed", text)
    if "err_aborted" in lower:
        return RenderError("aborted", text)
    return RenderError("net" if "net::err_" in lower else "failed", text)
