"""Serving a directory of files as a static web server does."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from mimetypes import MimeTypes
from pathlib import Path
from urllib.parse import quote, unquote

from scrapy_frontier.testing.answers import Answer, Request, redirect
from scrapy_frontier.testing.origins import NOT_FOUND, Origin

INDEX = "index.html"
# Built from Python's own table: the system's differ from machine to machine.
TYPES = MimeTypes()


def serve_tree(origin: Origin, prefix: str, directory: Path) -> None:
    """Serve `directory` below `prefix` (`/` or `/python`) as a plain web server does.

    A directory is its index.html, with a 301 where the slash is missing; the rest is 404. Raises
    NotADirectoryError where there is no such directory.
    """
    if not directory.is_dir():
        raise NotADirectoryError(f"cannot serve {directory}: it is not a directory")
    base = "/" + prefix.strip("/")
    origin.on(base.rstrip("/") + "/*", tree_handler(base, directory))
    if base != "/":
        origin.on(base, redirect(base + "/", HTTPStatus.MOVED_PERMANENTLY))


def tree_handler(base: str, directory: Path) -> Callable[[Request], Answer]:
    """A handler that answers paths below `base` with the files of `directory`."""

    def answer(request: Request) -> Answer:
        path = unquote(request.path.removeprefix(base).lstrip("/"))
        if "\0" in path or ".." in path.split("/"):
            return NOT_FOUND
        file = directory / path
        if file.is_dir():
            if not request.path.endswith("/"):
                return _add_slash(request)
            file /= INDEX
        elif path.endswith("/"):
            return NOT_FOUND
        return _file(file) if file.is_file() else NOT_FOUND

    return answer


def content_type(name: str) -> str:
    """The media type by the name. HTML carries no charset: the page's own declaration decides."""
    media_type, encoding = TYPES.guess_type(name)
    if encoding:
        return f"application/{encoding}"
    if media_type and media_type.startswith("text/") and media_type != "text/html":
        return f"{media_type}; charset=utf-8"
    return media_type or "application/octet-stream"


def _file(file: Path) -> Answer:
    return Answer(file.read_bytes(), content_type=content_type(file.name))


def _add_slash(request: Request) -> Answer:
    query = f"?{request.query}" if request.query else ""
    return redirect(quote(unquote(request.path)) + "/" + query, HTTPStatus.MOVED_PERMANENTLY)
