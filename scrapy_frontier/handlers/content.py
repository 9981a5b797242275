"""What is in a page, asked of the browser where the page's own scripts cannot have a say."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error as PlaywrightError

from scrapy_frontier.handlers.failures import RenderError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

SALVAGE_S: Final = 1.5
"""Seconds that a page may take to tell what is in it, once its time is over; its scripts are ended then, and it is
asked once more."""

AGAIN_S: Final = 0.05
"""Seconds after which a page is asked again whose document was just being replaced."""

_IN_CHANGE: Final = ("is navigating", "Cannot find context", "context was destroyed")
"""What Playwright and Chromium say of such a page."""

_LENGTH: Final = "document.documentElement ? document.documentElement.outerHTML.length : 0"


async def check_size(session: CDPSession, most: int, url: str) -> None:
    """Raise `RenderError` where a page has grown beyond so many characters; 0 is no limit."""
    if not most:
        return
    tree = await session.send("Page.getFrameTree")
    frame = {"frameId": tree["frameTree"]["frame"]["id"]}
    # In a world of its own the page's scripts have redefined nothing.
    world = await session.send("Page.createIsolatedWorld", frame)
    question = {"contextId": world["executionContextId"], "expression": _LENGTH}
    found = await session.send("Runtime.evaluate", question)
    length = int(found["result"].get("value") or 0)
    if length > most:
        raise RenderError("size", f"{url}: the page has {length} characters, more than {most}")


async def salvage(page: Page, session: CDPSession, most: int, url: str) -> str:
    """What is in a page that is cut off; its scripts are ended where they let nobody in. Raises `RenderError`."""
    with suppress(TimeoutError):
        return await _read(page, session, most, url)
    with suppress(PlaywrightError, TimeoutError):
        await within(SALVAGE_S, session.send("Runtime.terminateExecution"))
    try:
        return await _read(page, session, most, url)
    except TimeoutError as error:
        raise RenderError("hung", f"{url}: its scripts let nobody in") from error


async def _read(page: Page, session: CDPSession, most: int, url: str) -> str:
    async def read() -> str:
        while True:
            try:
                await check_size(session, most, url)
                return str(await page.content())
            except PlaywrightError as error:
                if not any(mark in str(error) for mark in _IN_CHANGE):
                    raise
            await asyncio.sleep(AGAIN_S)

    return str(await within(SALVAGE_S, read()))


async def within(seconds: float, work: Any) -> Any:
    """`asyncio.wait_for`, with the builtin error on every Python."""
    try:
        return await asyncio.wait_for(work, max(0.0, seconds))
    except asyncio.TimeoutError as error:
        raise TimeoutError from error
