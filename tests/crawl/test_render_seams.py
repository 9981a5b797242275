"""What is relied on of scrapy-playwright beyond its documented interface: a new one fails here, and says where."""

from __future__ import annotations

import inspect

import pytest

handler = pytest.importorskip("scrapy_playwright.handler")
_utils = pytest.importorskip("scrapy_playwright._utils")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("_create_page", ["self", "request", "spider"]),
        ("_download_request_with_page", ["self", "request", "page", "spider"]),
        ("_apply_page_methods", ["self", "page", "request", "spider"]),
        ("_maybe_launch_in_thread", ["self"]),
        ("_maybe_launch_browser", ["self"]),
        ("_launch", ["self"]),
        ("_browser_disconnected_callback", ["self"]),
    ],
)
def test_methods_of_the_handler(name: str, parameters: list[str]) -> None:
    method = getattr(handler.ScrapyPlaywrightDownloadHandler, name)
    assert list(inspect.signature(method).parameters) == parameters
    assert inspect.iscoroutinefunction(method)


def test_names_beside_the_handler() -> None:
    for name in ("_attach_page_event_handlers", "_maybe_execute_page_init_callback"):
        found = list(inspect.signature(getattr(_utils, name)).parameters)
        assert set(found) == {"page", "request", "spider", "context_name"}
    fields = handler.Config.__dataclass_fields__
    for name in ("launch_options", "startup_context_kwargs", "use_threaded_loop"):
        assert name in fields


def test_content_is_read_after_page_methods() -> None:
    """Where the page comes to rest is waited for between the two."""
    source = inspect.getsource(handler.ScrapyPlaywrightDownloadHandler._download_request_with_page)
    assert source.index("_apply_page_methods") < source.index("_get_page_content")
