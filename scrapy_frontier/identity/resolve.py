"""From a reference to the request URL: the one place where this package resolves URLs.

The parser is the WHATWG URL Standard's (ada-url). The *request URL* is what Scrapy will really
send: the WHATWG result without fragment, folded by `w3lib.url.safe_url_string` exactly as
`scrapy.Request` does it. It is a fixpoint of both: parsing it again, or making a Request of it
again, changes nothing. Nothing here raises for any text or bytes: what cannot be requested comes
back as a `Rejection`.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from ada_url import join_url, normalize_url
from w3lib.encoding import resolve_encoding
from w3lib.url import safe_url_string

from scrapy_frontier.identity.query_encoding import encode_query, strip_reference
from scrapy_frontier.identity.rejections import (
    PORT_MALFORMED,
    SCHEME_UNSUPPORTED,
    URL_MALFORMED,
    URL_TOO_LONG,
    USERINFO,
    Rejection,
    observe,
)

_HTTP: Final = ("http://", "https://")
_AUTHORITY_START: Final = len("https://")

# An http(s) URL out of the WHATWG parser in which safe_url_string changes nothing: a host of plain
# labels, and only characters that it keeps in the path ("_PATH_SAFEST_CHARS" there) and in the
# query.
_is_plain = re.compile(
    r"https?://[a-z0-9._-]+(?::[0-9]+)?/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*(?:\?[A-Za-z0-9._~!$&()*+,;=:@/?%-]+)?"
).fullmatch

_SURROGATE = re.compile("[\ud800-\udfff]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Special schemes take any number of slashes of either kind before the authority.
_AUTHORITY = re.compile(r"(?:https?:)?[/\\]*([^/\\?#]*)", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]?|[^:]*):(.*)", re.DOTALL)
_DETAIL_LIMIT: Final = 100


@dataclass(frozen=True, slots=True)
class Resolved:
    """A reference that can be requested.

    `url` is the request URL (without fragment), `fragment` what stood behind the `#`,
    percent-encoded (empty where there was none), `origin` the scheme, host and non-default port of
    `url`, a trailing dot of the host kept.
    """

    url: str
    fragment: str
    origin: str

    @property
    def href(self) -> str:
        """The request URL with the fragment of this reference."""
        return f"{self.url}#{self.fragment}" if self.fragment else self.url


def resolve(
    reference: str | bytes,
    base: str | None = None,
    encoding: str = "utf-8",
    *,
    max_length: int = 0,
) -> Resolved | Rejection:
    """Resolve a reference as found against the base URL of its document.

    `encoding` is the document's: it is applied to the query, and to a reference given in bytes.
    `max_length` is the longest request URL that is accepted, in characters; 0 accepts any. URL
    Standard, section 4.4; rules of rejection: `REJECTION_RULES`.
    """
    text = reference if isinstance(reference, str) else _decode(reference, encoding)
    if text is None:
        return Rejection(URL_MALFORMED, "", f"a reference of type {type(reference).__name__}")
    href = join(text, base, encoding)
    if href is None:
        return _explain_failure(text, base)
    return _admit(href, text, max_length)


def normalise_request_url(url: str, *, max_length: int = 0) -> Resolved | Rejection:
    """Bring the URL of a `scrapy.Request` to the request URL, its fragment apart.

    `Request.url` is already folded by Scrapy, but not resolved by the URL Standard: it may hold dot
    segments, backslashes, a default port, another spelling of the host.
    """
    try:
        href = normalize_url(url)
    except ValueError:
        return resolve(url, max_length=max_length)
    return _admit(href, url, max_length)


def join(reference: str, base: str | None = None, encoding: str = "utf-8") -> str | None:
    """Return the absolute URL by the URL Standard alone, None if there is none.

    It is of any scheme and has its fragment. A base that is itself no URL counts as no base.
    """
    if not reference.isascii():
        reference = _scalar_values(reference)
    reference = encode_query(reference, encoding)
    try:
        return join_url(base, reference) if base else normalize_url(reference)
    except ValueError:
        if base and not _is_url(base):
            return join(reference)
        return None


def document_base(page_url: str, base_href: str | None, encoding: str = "utf-8") -> str:
    """Return the base URL of a page from the `href` of its first `<base>` element that has one.

    HTML Standard, section 4.2.3, "set the frozen base URL": it is resolved against the page's own
    URL, which also stands in where there is no such element, where it is no URL, or where its
    scheme is `data` or `javascript`.
    """
    if base_href is None:
        return page_url
    href = join(base_href, page_url, encoding)
    if href is None or href.startswith(("data:", "javascript:")):
        return page_url
    return href


def _admit(href: str, observed: str, max_length: int) -> Resolved | Rejection:
    """Take the result of the URL parser to the request URL, or say why it has none."""
    if not href.startswith(_HTTP):
        return Rejection(SCHEME_UNSUPPORTED, observe(observed), href.partition(":")[0])
    url, _, fragment = href.partition("#")
    origin = url[: url.index("/", _AUTHORITY_START)]
    if "@" in origin:
        return Rejection(USERINFO, observe(observed))
    if not _is_plain(url):
        folded = _fold(url)
        if folded is None:
            return Rejection(URL_MALFORMED, observe(observed), "no stable spelling")
        url = folded
        origin = url[: url.index("/", _AUTHORITY_START)]
    if max_length and len(url) > max_length:
        return Rejection(URL_TOO_LONG, observe(observed), f"{len(url)} characters")
    return Resolved(url, fragment, origin)


def _fold(url: str) -> str | None:
    """Fold as scrapy.Request does, until neither it nor the parser changes anything."""
    for _ in range(3):
        try:
            folded = safe_url_string(url)
            parsed = normalize_url(folded)
        except ValueError:
            return None
        if folded == url == parsed:
            return url
        url = parsed
    return None


def _explain_failure(text: str, base: str | None) -> Rejection:
    """Name the rule by which the URL parser refused `text`."""
    observed = observe(text)
    text = strip_reference(text)
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() not in {"http", "https"}:
        return Rejection(SCHEME_UNSUPPORTED, observed, scheme[1].lower()[:_DETAIL_LIMIT])
    if scheme is None and not _starts_authority(text):
        return Rejection(URL_MALFORMED, observed, "no base" if not base else "base")
    port = _malformed_port(text)
    if port is not None:
        return Rejection(PORT_MALFORMED, observed, observe(port)[:_DETAIL_LIMIT])
    return Rejection(URL_MALFORMED, observed, "host")


def _starts_authority(text: str) -> bool:
    return len(text) > 1 and text[0] in "/\\" and text[1] in "/\\"


def _malformed_port(text: str) -> str | None:
    """Return the port at fault in a URL that does not parse; None if the fault is elsewhere."""
    match = _AUTHORITY.match(text)
    authority = match[1].rpartition("@")[2] if match else ""
    parts = _HOST_AND_PORT.fullmatch(authority)
    if parts is None:
        return None
    host, port = parts[1], parts[2]
    if _is_port(port) or not _is_url(f"http://{host}/"):
        return None
    return port


def _is_port(text: str) -> bool:
    digits = text.lstrip("0") or "0"
    return digits.isascii() and digits.isdigit() and len(digits) <= 5 and int(digits) <= 0xFFFF


def _is_url(text: str) -> bool:
    try:
        normalize_url(text)
    except ValueError:
        return False
    return True


def _scalar_values(text: str) -> str:
    """Join surrogate pairs and make lone surrogates U+FFFD (Web IDL, USVString)."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_PERCENT_ENCODE: Final = "scrapy_frontier.percent_encode"


def _percent_encode_undecodable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    undecodable = error.object[error.start : error.end]
    return "".join(f"%{byte:02X}" for byte in undecodable), error.end


codecs.register_error(_PERCENT_ENCODE, _percent_encode_undecodable)


def _decode(reference: object, encoding: str) -> str | None:
    """Decode a reference given in bytes; what its encoding cannot read is percent-encoded."""
    if not isinstance(reference, bytes):
        return None
    try:
        return reference.decode(resolve_encoding(encoding) or "utf-8", _PERCENT_ENCODE)
    except (LookupError, ValueError):
        return reference.decode("utf-8", _PERCENT_ENCODE)
