"""The fetch key: what makes two requests one identity, by a numbered normaliser.

Version 1 compares the exact request URL after RFC 3986 section 6.2.2.1 (upper case in
percent-encodings) and 6.2.2.2 (no percent-encoding of unreserved characters). Scheme, host, port
and dot segments are already in normal form there. Nothing else is made equal: no parameter is left
out, sorted or decoded, no path changes case, no slashes are merged, unless a parameter rule says
so. Fragments are no part of a request URL.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scrapy_frontier.identity.parameters import ParameterRules

NORMALISER_VERSION: Final = 1
"""The version of the rules that make a fetch key; it is the first thing that the key digests."""

KEY_SIZE: Final = 16
"""The length of a fetch key in bytes."""

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX_DIGITS = frozenset("0123456789ABCDEFabcdef")
# A percent-encoding, together with a stray % (one that encodes nothing) right before it.
_PERCENT_ENCODED = re.compile(r"(%(?![0-9A-Fa-f]{2})[0-9A-Fa-f]?)?%([0-9A-Fa-f]{2})")


def comparison_url(request_url: str) -> str:
    """Return the spelling that request URLs are compared by. Idempotent; never sent anywhere."""
    if "%" not in request_url:
        return request_url
    return _PERCENT_ENCODED.sub(_normalise, request_url)


def _normalise(match: re.Match[str]) -> str:
    stray, digits = match.groups(default="")
    character = chr(int(digits, 16))
    # A digit behind a stray % would become a percent-encoding that was not there: %%41 is not %A,
    # and %4%31 not %41.
    if character in _UNRESERVED and not (stray and character in _HEX_DIGITS):
        return f"{stray}{character}"
    return f"{stray}%{digits.upper()}"


def fetch_key(
    method: str,
    request_url: str,
    body: bytes = b"",
    *,
    role: str = "page",
    rules: ParameterRules | None = None,
) -> bytes:
    """Return the `KEY_SIZE` bytes that stand for role, method, comparison URL and body.

    `request_url` must come from `resolve` or `normalise_request_url`. `role` keeps apart what is
    fetched for another purpose under the same URL (a robots.txt read as rules, a page). `rules` act
    on the comparison URL only.
    """
    url = comparison_url(request_url)
    if rules is not None:
        url = rules.apply(url).url
    text = f"{NORMALISER_VERSION}\0{role}\0{method.upper()}\0{url}".encode("utf-8", "surrogatepass")
    if body:
        text += b"\0" + hashlib.blake2b(body, digest_size=32).digest()
    return hashlib.blake2b(text, digest_size=KEY_SIZE).digest()
