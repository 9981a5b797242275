"""Exports as WARC 1.1 (ISO 28500:2017), by warcio: what the evidence of a run holds, for web archives.

Each response that came over the wire makes a `response`, a `request` and a `metadata` record, joined by
`WARC-Concurrent-To`; redirects and errors are responses like others. What was answered from evidence was no exchange
and is left out. The ids of records are made from the ledger, so two exports of one run are alike.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple
from urllib.parse import urlsplit

from scrapy_frontier import __version__
from scrapy_frontier.errors import ArtifactError, ConfigError
from scrapy_frontier.report.evidence import place_of
from scrapy_frontier.states import Event
from scrapy_frontier.store.artifacts import Body, Exchange, Header, ResponseRecord, open_artifacts
from scrapy_frontier.store.artifacts.records import WITHHELD

if TYPE_CHECKING:
    from scrapy_frontier.report.exports.export import Export
    from scrapy_frontier.store.artifacts import Artifacts

SUBJECT: Final = "transitions"
"""The rows whose evidence is written."""

REPLAYED: Final = "evidence.replayed"

_NAMESPACE: Final = uuid.UUID("5b3f0f4e-8d4b-4f0e-9d0c-5d6f2c7a1b90")


def write(export: Export, file: BinaryIO) -> int:
    """A gzip member for each record; returns how many responses were written.

    Raises `ConfigError` where warcio is not installed, and `ArtifactError` where evidence is not whole.
    """
    warc = _warcio(file)
    with export.store.reader() as connection:
        place = place_of(connection)
    artifacts = open_artifacts(place, export.store.path)
    _write_info(warc, export)
    count = 0
    for received in _received(export):
        _write_exchange(warc, artifacts, received)
        count += 1
    return count


class _Received(NamedTuple):
    """A response on record."""

    seq: int
    run: int
    key: str
    attempt: int
    evidence: str

    def record_id(self, kind: str) -> str:
        """The same for each export of the same response."""
        return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, f'{self.evidence} {self.seq} {kind}')}>"


def _received(export: Export) -> Iterator[_Received]:
    names = [column.name for column in export.columns]
    for rows in export.pages():
        for values in rows:
            row = dict(zip(names, values, strict=True))
            is_response = row["event"] == Event.RESPOND.label and row["reason"] != REPLAYED
            if is_response and row["evidence"]:
                yield _Received(*(row[name] for name in _Received._fields))


def _write_info(warc: Any, export: Export) -> None:
    info = {
        "software": f"scrapy_frontier {__version__}",
        "format": "WARC File Format 1.1",
        "description": f"run {export.moment.run_id} as of transition {export.moment.seq};"
        " transfer codings are undone, and headers of requests that hold secrets are left out",
    }
    warc.write_record(warc.create_warcinfo_record(None, info))


def _write_exchange(warc: Any, artifacts: Artifacts, received: _Received) -> None:
    record = ResponseRecord.load(artifacts.get(bytes.fromhex(received.evidence)))
    common = {"WARC-Date": _date(record.received_ms)}
    response_id = received.record_id("response")
    about = {**common, "WARC-Record-ID": response_id}
    if record.ip_address is not None:
        about["WARC-IP-Address"] = record.ip_address
    if not record.body.is_kept:
        about["WARC-Truncated"] = "length"
    head = _head(f"{record.status} {_phrase(record.status)}", record.headers, _version(record))
    content = _content(artifacts, record.body)
    warc.write_record(_record(warc, "response", record.url, head, content, about))
    joined = {**common, "WARC-Concurrent-To": response_id}
    if record.request is not None:
        about = {**joined, "WARC-Record-ID": received.record_id("request")}
        if not record.request.body.is_kept:
            about["WARC-Truncated"] = "length"
        content = _content(artifacts, record.request.body)
        head = _request_head(record.request)
        warc.write_record(_record(warc, "request", record.url, head, content, about))
    about = {**joined, "WARC-Record-ID": received.record_id("metadata")}
    fields = _fields(received, record)
    warc.write_record(_record(warc, "metadata", record.url, None, fields, about))


def _record(
    warc: Any, kind: str, url: str, head: Any, content: bytes, headers: dict[str, str]
) -> Any:
    return warc.create_warc_record(
        url,
        kind,
        payload=io.BytesIO(content),
        length=len(content),
        http_headers=head,
        warc_headers_dict=headers,
        warc_content_type="application/warc-fields" if head is None else "",
    )


def _content(artifacts: Artifacts, body: Body) -> bytes:
    if not body.is_kept or not body.size:
        return b""
    content = artifacts.get(bytes.fromhex(body.digest))
    if len(content) != body.size:
        raise ArtifactError(f"evidence {body.digest} has {len(content)} bytes, not {body.size}")
    return content


def _fields(received: _Received, record: ResponseRecord) -> bytes:
    """What the ledger says of the exchange."""
    fields = {
        "frontier-run": received.run,
        "frontier-transition": received.seq,
        "frontier-attempt": received.attempt,
        "frontier-key": received.key,
        "frontier-evidence": received.evidence,
        "body-size": record.body.size,
        "body-blake2b-256": record.body.digest,
        "protocol": record.protocol or "unknown",
    }
    lines = [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"flag: {flag}" for flag in record.flags]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _request_head(request: Exchange) -> Any:
    parts = urlsplit(request.url)
    target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    headers = [header for header in request.headers if header[1] != WITHHELD]
    if not any(name.lower() == "host" for name, _ in headers):
        headers.insert(0, ("Host", parts.netloc.rpartition("@")[2]))
    return _head(f"{request.method} {target} HTTP/1.1", tuple(headers), None)


def _head(line: str, headers: tuple[Header, ...], protocol: str | None) -> Any:
    from warcio.statusandheaders import StatusAndHeaders

    safe = [(_one_line(name), _one_line(value)) for name, value in headers]
    return StatusAndHeaders(line, safe, protocol=protocol or "", is_http_request=protocol is None)


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def _version(record: ResponseRecord) -> str:
    """Later versions of HTTP have no status line: by custom theirs is written as that of 1.1."""
    return record.protocol if record.protocol in ("HTTP/1.0", "HTTP/1.1") else "HTTP/1.1"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _date(milliseconds: int) -> str:
    at = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def _warcio(file: BinaryIO) -> Any:
    try:
        from warcio.warcwriter import WARCWriter
    except ImportError as exc:
        raise ConfigError(
            "--format warc needs warcio: pip install 'scrapy-frontier[warc]'"
        ) from exc
    return WARCWriter(file, gzip=True, warc_version="1.1")
