"""Why a reference can have no fetch key: the named rejections, as values.

A reference that is rejected here has no identity; it is recorded as an edge with the name of its
rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SCHEME_UNSUPPORTED: Final = "scheme.unsupported"
USERINFO: Final = "userinfo"
PORT_MALFORMED: Final = "port.malformed"
URL_MALFORMED: Final = "url.malformed"
URL_TOO_LONG: Final = "url.too_long"

REJECTION_RULES: Final = (
    SCHEME_UNSUPPORTED,
    USERINFO,
    PORT_MALFORMED,
    URL_MALFORMED,
    URL_TOO_LONG,
)
"""The names of all rules that reject a reference, as they appear in reports (design section 3)."""

OBSERVED_LIMIT: Final = 2048
"""How many characters of an observed spelling are kept: `data:` URLs can be megabytes long."""

# SQLite cannot encode lone surrogates, PostgreSQL refuses NUL in text.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A reference that cannot be requested, with the rule that says so.

    `observed` is the reference as `observe` keeps it. `detail` is the part at fault: the scheme,
    the port, the length, or a short word for what could not be read; it never repeats credentials.
    """

    rule: str
    observed: str
    detail: str = ""


def observe(reference: str) -> str:
    """Return the spelling of `reference` in a form that every store can hold.

    It is cut to `OBSERVED_LIMIT` characters, and NUL and lone surrogates become U+FFFD; all else
    stays as found.
    """
    text = reference[:OBSERVED_LIMIT]
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)
