"""What kind of fault an exception of a download is, by the names of its classes and its text.

Nothing is imported for it: the classes are Scrapy's, Twisted's, OpenSSL's, h2's, aiohttp's and httpx's, and any of
them may be missing. A kind is a short stable name; `download.{kind}` is the cause in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CannotResolveHostError": "dns",
        "DNSLookupError": "dns",
        "TCPTimedOutError": "connect_timeout",
        "UserError": "connect_timeout",  # Twisted's TimeoutError, of a connection, is one
        "DownloadTimeoutError": "timeout",
        "TimeoutError": "timeout",
        "DownloadConnectionRefusedError": "refused",
        "ConnectionRefusedError": "refused",
        "NoRouteError": "unreachable",
        "UnknownHostError": "dns",
        "ConnectBindError": "unreachable",
        "ConnectError": "unreachable",
        "TunnelError": "tunnel",
        "VerificationError": "tls.wrong_host",
        "CertificateError": "tls.wrong_host",
        "InvalidBodyLengthError": "truncated",
        "ResponseDataLossError": "truncated",
        "_DataLoss": "truncated",
        "RemoteTerminatedConnection": "http2.goaway",
        "InactiveStreamClosed": "http2.unsent",
        "H2Error": "http2.protocol",
        "ParseError": "malformed",
        "BadHttpMessage": "malformed",
        "PayloadEncodingError": "truncated",  # aiohttp's, and a BadHttpMessage
        "ReadError": "reset",
        "WriteError": "reset",
        "ConnectionLost": "reset",
        "ConnectionAborted": "reset",
        "ConnectionDone": "reset",
        "ConnectionResetError": "reset",
        "BrokenPipeError": "reset",
        "ResponseFailed": "reset",
        "ResponseNeverReceived": "reset",
        "DownloadCancelledError": "cancelled",
        "CancelledError": "cancelled",
        "UnsupportedURLSchemeError": "unsupported",
        "NotSupported": "unsupported",
        "BadGzipFile": "decoding",
        "DownloadFailedError": "failed",
    }
)
"""Name of a class to the kind of fault it stands for, where no closer look is taken."""

UNKNOWN_CLASSES: Final = frozenset({"object", "BaseException", "Exception"})

VAGUE: Final = frozenset({"reset", "cancelled", "failed"})
"""That it broke off is said beside what it broke off for: the latter counts."""

CHAIN_LIMIT: Final = 20
"""Exceptions of one chain that are looked at."""

_TLS_TEXTS: Final = (
    ("certificate has expired", "tls.expired"),
    ("certificate is not yet valid", "tls.expired"),
    ("certificate expired", "tls.expired"),
    ("hostname mismatch", "tls.wrong_host"),
    ("ip address mismatch", "tls.wrong_host"),
    ("self signed", "tls.untrusted"),
    ("self-signed", "tls.untrusted"),
    ("unable to get", "tls.untrusted"),
    ("certificate verify failed", "tls.untrusted"),
    ("unexpected eof", "tls.cut"),
)


def fault_kind(error: BaseException | None) -> str:
    """The kind of a download's fault: of the innermost exception that says more than its shell."""
    kinds = [kind for cause in chain(error) if (kind := _kind_of(cause)) is not None]
    telling = [kind for kind in kinds if kind not in VAGUE]
    return (telling or kinds or [type(error).__name__])[0]


def exception_names(error: BaseException | None) -> tuple[str, ...]:
    """The import paths of all classes of an exception and of its causes, without those that say
    nothing.
    """
    names: dict[str, None] = {}
    for cause in chain(error):
        for cls in type(cause).__mro__:
            if cls.__name__ not in UNKNOWN_CLASSES:
                names[f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")] = None
    return tuple(names)


def has_no_answer(error: BaseException | None) -> bool:
    """Whether a connection ended before the first byte of an answer."""
    return any(type(cause).__name__ == "ResponseNeverReceived" for cause in chain(error))


def chain(error: BaseException | None) -> list[BaseException]:
    """The error from its innermost cause outwards: Scrapy wraps Twisted's, and those wrap others."""
    found: dict[int, BaseException] = {}
    for cause in _causes(error, 0):
        found.setdefault(id(cause), cause)
    return list(found.values())


def _causes(error: BaseException | None, depth: int) -> Iterator[BaseException]:
    if error is None or depth > CHAIN_LIMIT:
        return
    for reason in getattr(error, "reasons", None) or ():
        value = getattr(reason, "value", reason)
        if isinstance(value, BaseException):
            yield from _causes(value, depth + 1)
    yield from _causes(error.__cause__, depth + 1)
    yield error


def _kind_of(error: BaseException) -> str | None:
    names = [cls.__name__ for cls in type(error).__mro__]
    module = type(error).__module__
    text = str(error)
    # httpx has the text alone of what the ssl module raised.
    if module.startswith(("OpenSSL", "ssl")) or text.startswith("[SSL"):
        return _tls_kind(error, names)
    if names[0] == "DownloadCancelledError" and "download max size" in text:
        return "too_large"
    if "sent RST_STREAM" in text:
        # Scrapy puts the text where the exception should be, so only its shell can be asked.
        return "http2.reset"
    if (
        module.startswith("h2.")
        and "ProtocolError" in names
        and "InvalidBodyLengthError" not in names
    ):
        return "http2.protocol"
    if module == "twisted.internet.error" and names[0] == "TimeoutError":
        names = names[1:]
    if names[0] == "ConnectError" and module != "twisted.internet.error":
        return None  # httpx's is of anything; what Scrapy wraps it in says which
    if names[0] == "RemoteProtocolError":
        return "malformed" if text.startswith("illegal ") else None
    found = next((KINDS[name] for name in names if name in KINDS), None)
    if found is None and module in {"zlib", "brotli", "zstandard"}:
        return "decoding"
    return found


def _tls_kind(error: BaseException, names: list[str]) -> str:
    if "SysCallError" in names or "ZeroReturnError" in names:
        return "tls.cut"
    text = str(error).lower()
    return next((kind for mark, kind in _TLS_TEXTS if mark in text), "tls.protocol")
