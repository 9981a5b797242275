"""The built-in rules: for each outcome of an attempt, whether another attempt is worth while.

A cause is `http.{status}` or `download.{kind}`, as the ledger has it. The first rule that fits
decides, unless a rule of the project's does (`FRONTIER_RETRY_RULES`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final


class Counts(Enum):
    """What an outcome counts as.

    `NOT`: it is no matter of trying again. `FAULT`: it takes one of `RETRY_TIMES`. `HOLD`: it is no
    fault of the URL, and counted apart.
    """

    NOT = "not"
    FAULT = "fault"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One row of the table.

    `holds_gate`: nothing is sent to the origin until the next attempt is due. `is_unapplied`: the
    server has not acted on the request, so that a POST may be sent again (RFC 9110, section 9.2.2).
    `is_unreached`: no connection came about; at an origin that has answered before this is an
    outage, which counts as a hold and shuts the gate.
    """

    name: str
    causes: tuple[str, ...]
    counts: Counts
    meaning: str
    holds_gate: bool = False
    is_unapplied: bool = False
    is_unreached: bool = False

    def fits(self, cause: str) -> bool:
        """Whether the rule speaks of this cause."""
        return any(fnmatchcase(cause, pattern) for pattern in self.causes)


def _not(name: str, meaning: str, *causes: str) -> BuiltIn:
    return BuiltIn(name, causes or (name,), Counts.NOT, meaning)


def _fault(name: str, meaning: str, *causes: str, is_unapplied: bool = False) -> BuiltIn:
    return BuiltIn(name, causes or (name,), Counts.FAULT, meaning, is_unapplied=is_unapplied)


def _unreached(name: str, meaning: str) -> BuiltIn:
    return BuiltIn(name, (name,), Counts.FAULT, meaning, is_unapplied=True, is_unreached=True)


def _wait(name: str, meaning: str) -> BuiltIn:
    return BuiltIn(name, (name,), Counts.HOLD, meaning, holds_gate=True, is_unapplied=True)


def _neighbour(name: str, meaning: str, *, is_unapplied: bool = False) -> BuiltIn:
    return BuiltIn(name, (name,), Counts.HOLD, meaning, is_unapplied=is_unapplied)


TABLE: Final = (
    _wait("http.429", "Too many requests (RFC 6585, section 4)."),
    _wait("http.503", "The server cannot serve at the moment (RFC 9110, section 15.6.4)."),
    _wait("http.529", "The site is overloaded (a status of some CDNs)."),
    _fault(
        "http.408",
        "The server waited in vain for the request (RFC 9110, section 15.5.9).",
        is_unapplied=True,
    ),
    _fault("http.425", "Too early (RFC 8470, section 5.2).", is_unapplied=True),
    _fault("http.500", "An error in the server."),
    _fault("http.502", "A gateway got a bad answer."),
    _fault("http.504", "A gateway got no answer in time."),
    _fault("http.507", "The server has no room at the moment (RFC 4918, section 11.5)."),
    _fault(
        "http.52x",
        "A CDN did not reach its server, or got no good answer.",
        *(f"http.{status}" for status in (520, 521, 522, 523, 524, 527, 530)),
    ),
    _not("http.5xx", "Any other 5xx: the server says that it does not do this.", "http.5??"),
    _fault("http.206", "Part of the content, which nobody asked for (RFC 9110, section 15.3.7)."),
    _not("http.gone", "There is no such page.", "http.404", "http.410"),
    _not("http.4xx", "Any other 4xx: the request is at fault.", "http.4??"),
    _not("http.any", "Any other status is an answer.", "http.*"),
    _not("download.dns.not_found", "The look-up says for certain that there is no such host."),
    _unreached("download.dns.timeout", "The look-up of the host took too long."),
    _unreached("download.dns", "The look-up of the host failed, for a reason that is not known."),
    _unreached("download.refused", "The connection was refused."),
    _unreached("download.connect_timeout", "The connection did not come about in time."),
    _unreached("download.unreachable", "There is no way to the host."),
    _fault("download.tunnel", "The proxy did not open a way to the host.", is_unapplied=True),
    _fault("download.tls.cut", "The connection broke off in the TLS handshake.", is_unapplied=True),
    _not("download.tls.expired", "The certificate is not valid at this time."),
    _not("download.tls.untrusted", "The certificate is self-signed, or of an unknown authority."),
    _not("download.tls.wrong_host", "The certificate is that of another host."),
    _not("download.tls.protocol", "The TLS handshake failed: there is nothing both sides speak."),
    _fault("download.timeout", "The response did not come, or did not end, in time."),
    _fault("download.reset", "The connection broke off."),
    _neighbour(
        "download.stale",
        "The server had closed the kept connection before the request came (RFC 9112, section 9.3.1).",
    ),
    _fault("download.truncated", "The body is shorter than it should be, or its gzip is cut."),
    _fault("download.malformed", "What came is not HTTP."),
    _neighbour(
        "download.http2.protocol",
        "The HTTP/2 connection ended with an error, perhaps by the fault of another response.",
    ),
    _neighbour("download.http2.goaway", "The server ended the HTTP/2 connection."),
    _neighbour(
        "download.http2.unsent",
        "The HTTP/2 connection ended before the request was sent.",
        is_unapplied=True,
    ),
    _fault("download.http2.reset", "The server reset the HTTP/2 stream."),
    _not("download.too_large", "The response is larger than `DOWNLOAD_MAXSIZE`."),
    _not("download.decoding", "The body cannot be decoded."),
    _not("download.cancelled", "The download was cancelled on this side."),
    _not("download.unsupported", "Nothing here can fetch this scheme."),
    _fault("download.failed", "The download failed in some other way."),
    _not("download.any", "Any other exception is an error in a program.", "download.*"),
    _fault("render.crashed", "The renderer of the page has died, for want of memory for one."),
    _fault("render.closed", "The browser, or the page's context in it, went away."),
    _fault("render.launch", "The browser does not start."),
    _fault("render.guard", "The requests of the page could not be watched, so it was closed."),
    _fault("render.aborted", "The browser gave up the navigation."),
    _fault("render.net", "The browser failed with an error of its own (`net::`)."),
    _not("render.hung", "The scripts of the page let nobody in, even when its time was over."),
    _not("render.limit", "The page met one of its limits, and `FRONTIER_RENDER_PARTIAL` is off."),
    _not("render.pages", "As many pages were rendered as `FRONTIER_RENDER_PAGES` allows."),
    _not("render.size", "The page has grown beyond `DOWNLOAD_MAXSIZE`."),
    _fault("render.failed", "Rendering failed in some other way.", "render.*"),
    _fault("retry.asked", "The spider or a middleware asks for it, by `get_retry_request`."),
    _not("callback.exception", "The callback raised."),
    _not("ignored", "A component raised `IgnoreRequest`.", "request.ignored", "response.ignored"),
    _not("other", "Anything else.", "*"),
)
"""The rules in their order; the table of the documentation is made from this."""


def built_in(cause: str) -> BuiltIn:
    """The built-in rule for a cause."""
    return next(rule for rule in TABLE if rule.fits(cause))
