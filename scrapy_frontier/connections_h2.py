"""HTTP/2: a response of the wrong length fails alone, not with all its neighbours on the connection.

That is an error of its stream (RFC 9113, section 8.1.1); h2 ends the connection for it, and Scrapy does not read
`DOWNLOAD_FAIL_ON_DATALOSS` here. The private names that this relies on, tested in `tests/crawl/test_crawl_http2.py`:

- `handler._pool.get_connection(key, uri, endpoint)` and `put_connection(protocol, key)` of Scrapy's HTTP/2 handler;
- `protocol._new_stream(request, spider)`, and of its streams `close()`, `_request`, `_response`, `_deferred_response`;
- `protocol.conn._begin_new_stream()` of h2, and `_track_content_length()` of the streams that it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import ResponseDataLossError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.http import Response

DATALOSS: Final = "dataloss"

_BODILESS: Final = frozenset({204, 304})


def mend(protocol: Any) -> None:
    """Have this connection keep the lengths of its responses apart."""
    begin: Callable[..., Any] = protocol.conn._begin_new_stream
    make: Callable[..., Any] = protocol._new_stream

    def begin_new_stream(*args: Any, **kwargs: Any) -> Any:
        stream = begin(*args, **kwargs)
        stream._track_content_length = _not_tracked
        return stream

    def new_stream(*args: Any, **kwargs: Any) -> Any:
        return _heed_length(make(*args, **kwargs))

    protocol.conn._begin_new_stream = begin_new_stream
    protocol._new_stream = new_stream


def _not_tracked(length: int, end_stream: bool) -> None:
    """In place of h2's own check, which takes the whole connection down."""


def _heed_length(stream: Any) -> Any:
    close: Callable[..., None] = stream.close

    def watched(reason: Any, *args: Any, **kwargs: Any) -> None:
        is_cut = reason.name in {"RESET", "CONNECTION_LOST"} and stream._response["body"].tell()
        if reason.name == "ENDED" and not _is_whole(stream) and _fails_on_dataloss(stream):
            stream.metadata["stream_closed_server"] = True
            stream._deferred_response.errback(ResponseDataLossError(_said(stream)))
            return
        if is_cut and not _fails_on_dataloss(stream):
            reason = type(reason).ENDED
        if reason.name == "ENDED" and (is_cut or not _is_whole(stream)):
            stream._deferred_response = _Flagging(stream._deferred_response)
        close(reason, *args, **kwargs)

    stream.close = watched
    return stream


def _is_whole(stream: Any) -> bool:
    """Whether the body has the length that its header says; where no body belongs, and where none is said, it has."""
    said = stream._response["headers"].get(b"Content-Length")
    if said is None or stream._request.method == "HEAD" or stream._response["status"] in _BODILESS:
        return True
    return bool(said.isdigit() and int(said) == stream._response["body"].tell())


def _fails_on_dataloss(stream: Any) -> bool:
    default = stream._crawler.settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
    return bool(stream._request.meta.get("download_fail_on_dataloss", default))


def _said(stream: Any) -> str:
    said = stream._response["headers"].get(b"Content-Length").decode("latin-1")
    return f"{stream._request.url}: {stream._response['body'].tell()} bytes, Content-Length {said}"


class _Flagging:
    """Stands before the Deferred of a response that is not whole, and marks it before anybody sees it."""

    def __init__(self, deferred: Any) -> None:
        self._deferred = deferred

    def callback(self, response: Response) -> None:
        """Hand on the response, marked."""
        response.flags.append(DATALOSS)
        self._deferred.callback(response)

    def errback(self, *failure: Any) -> None:
        """Hand on a failure."""
        self._deferred.errback(*failure)
