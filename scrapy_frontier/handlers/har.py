"""A rendered page as an HTTP Archive (HAR 1.2, the format of browsers' network panels).

One entry for the document and one for each sub-request that was listed. Bodies are not in it: that of the document is
evidence of its own. What was refused has status 0 and says why in `comment`, as does all else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from scrapy_frontier.handlers.rendered import Document, Header, Rendered, SubRequest
from scrapy_frontier.store.artifacts.records import SECRETS, WITHHELD

VERSION: Final = "1.2"
_UNKNOWN: Final = -1


def archive(document: Document, rendered: Rendered) -> bytes:
    """The archive as JSON."""
    page = {
        "startedDateTime": _at(rendered.began_s),
        "id": "page",
        "title": document.url,
        "pageTimings": {"onContentLoad": _UNKNOWN, "onLoad": round(1000 * rendered.wall_s)},
    }
    # The document was there before the browser was asked.
    first = SubRequest(
        document.url,
        "GET",
        "document",
        f"http.{document.status}",
        len(document.body),
        rendered.began_s,
        0.0,
        (),
        document.status,
        document.headers,
    )
    log = {
        "version": VERSION,
        "creator": {"name": "scrapy_frontier", "version": version("scrapy-frontier")},
        "pages": [page],
        "entries": [_entry(one) for one in (first, *rendered.seen.requests)],
    }
    return json.dumps({"log": log}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _entry(one: SubRequest) -> dict[str, Any]:
    took_ms = round(1000 * one.took_s, 1)
    return {
        "pageref": "page",
        "startedDateTime": _at(one.at_s),
        "time": took_ms,
        "request": {
            "method": one.method,
            "url": one.url,
            "httpVersion": "",
            "cookies": [],
            "headers": _headers(one.sent, SECRETS),
            "queryString": [
                {"name": name, "value": value}
                for name, value in parse_qsl(urlsplit(one.url).query, keep_blank_values=True)
            ],
            "headersSize": _UNKNOWN,
            "bodySize": _UNKNOWN,
        },
        "response": {
            "status": one.status,
            "statusText": "",
            "httpVersion": "",
            "cookies": [],
            "headers": _headers(one.received, frozenset()),
            "content": {"size": one.size, "mimeType": _value(one.received, "content-type")},
            "redirectURL": _value(one.received, "location"),
            "headersSize": _UNKNOWN,
            "bodySize": one.size,
        },
        "cache": {},
        "timings": {"send": 0, "wait": took_ms, "receive": 0},
        "comment": one.outcome,
    }


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


def _headers(found: Sequence[Header], secret: frozenset[str]) -> list[dict[str, str]]:
    return [
        {"name": name, "value": WITHHELD if name.lower() in secret else value}
        for name, value in found
    ]


def _value(found: Sequence[Header], name: str) -> str:
    return next((value for header, value in found if header.lower() == name), "")
