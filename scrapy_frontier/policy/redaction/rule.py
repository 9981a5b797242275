"""The names of `FRONTIER_REDACT`: those that are shipped, and those of a project.

Names are compared by their letters and digits alone, without regard to case: `api_key`, `apiKey` and `X-API-Key` are
`*apikey`, `user[email]` is `*email*`. A shipped name stands here where what bears it is a secret, a session or a person
on most sites; hiding too much costs a reader little, for different values stay different.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from scrapy_frontier.errors import ConfigError

SETTING: Final = "FRONTIER_REDACT"

SHIPPED: Final = "default"
"""The entry of the setting that stands for `SHIPPED_NAMES`."""

SHOWN: Final = "!"
"""Before a name: its values are shown, whatever another entry says."""

SHIPPED_NAMES: Final = (
    # What lets its bearer in. `code` is that of OAuth's redirects (RFC 6749, section 4.1.2).
    *("*token*", "*secret*", "*passw*", "pwd", "pass", "passcode", "passphrase", "pin", "otp"),
    *("key", "*apikey*", "*accesskey*", "*authkey", "*appkey", "*privatekey", "*sharekey"),
    *("subscriptionkey", "resourcekey", "auth", "*oauth*", "authorization", "authcode", "code"),
    *("codeverifier", "*credential*", "jwt", "bearer", "assertion", "saml*", "relaystate"),
    *("ticket", "invite", "invitecode", "invitation", "activation", "activationcode"),
    *("confirmation", "confirmationcode", "verificationcode", "resetcode", "unsubscribe"),
    # Signed URLs: Amazon, Google, Azure, CloudFront, Akamai.
    *("*signature", "sig", "sign", "hmac", "hdnea", "hdnts"),
    # Sessions: PHP, servlets, ASP.NET, ColdFusion, shops.
    *("*session*", "sess", "*sessid*", "sid", "cfid", "zenid", "oscsid", "xtcsid", "visitid"),
    # People, and what mailings call their readers: Mailchimp, Marketo, HubSpot, Vero, Omeda, MailerLite.
    *("user", "userid", "username", "uid", "login", "logon", "authuser", "*email*", "mail"),
    *("account", "accountid", "accountnumber", "customerid", "memberid", "phone*", "mobile"),
    *("telephone", "firstname", "lastname", "fullname", "surname", "birth*", "dob", "ssn", "iban"),
    *("cardnumber", "creditcard*", "mceid", "mkttok", "hsenc", "veroid", "olyencid", "olyanonid"),
    "mlsubscriber*",
)
"""Names of parameters whose values are hidden without a word in the settings; `*` stands for anything."""

_MEANT: Final = re.compile(r"[^\w*]|_")
_OFF: Final = frozenset({"", "off", "none", "false", "0"})
_ON: Final = frozenset({"on", "true", "1"})


@dataclass(frozen=True)
class RedactionRule:
    """Names of parameters whose values are hidden, and of those that are shown all the same."""

    hidden: tuple[str, ...] = (SHIPPED,)
    shown: tuple[str, ...] = ()

    @classmethod
    def from_setting(cls, value: object) -> RedactionRule:
        """Read the setting: a list of names, True for the shipped ones, False or an empty list for none.

        As text: JSON, or names with commas between them. Raises `ConfigError`.
        """
        if isinstance(value, str):
            value = _from_text(value)
        if isinstance(value, bool) or value is None:
            return cls() if value or value is None else NOTHING
        if not isinstance(value, list | tuple | set | frozenset):
            raise ConfigError(f"{value!r} is no list of names; [] hides nothing")
        entries = [_read(entry) for entry in value]
        hidden = tuple(name for name in entries if not name.startswith(SHOWN))
        shown = tuple(name.removeprefix(SHOWN) for name in entries if name.startswith(SHOWN))
        if shown and not hidden:
            raise ConfigError(
                f"{value!r} says what is shown, and hides nothing: put {SHIPPED!r} before it"
            )
        return cls(hidden, shown)

    def to_setting(self) -> list[str]:
        """The value of the setting that reads as this rule."""
        return [*self.hidden, *(SHOWN + name for name in self.shown)]

    @property
    def is_off(self) -> bool:
        """Whether it hides nothing."""
        return not self.hidden

    def hides(self, name: str) -> bool:
        """Whether values of a parameter of this name are hidden."""
        compared = _compared(name)
        return bool(self._hidden.fullmatch(compared)) and not self._shown.fullmatch(compared)

    @cached_property
    def _hidden(self) -> re.Pattern[str]:
        given = (name for name in self.hidden if name != SHIPPED)
        return _pattern([*given, *(SHIPPED_NAMES if SHIPPED in self.hidden else ())])

    @cached_property
    def _shown(self) -> re.Pattern[str]:
        return _pattern(self.shown)


NOTHING: Final = RedactionRule(hidden=())
"""The rule that hides nothing."""


def _compared(name: str) -> str:
    return _MEANT.sub("", name.casefold()).replace("*", "")


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    parts = [re.escape(_MEANT.sub("", name.casefold())).replace(r"\*", ".*") for name in names]
    return re.compile("|".join(parts) or "(?!)", re.DOTALL)


def _from_text(value: str) -> object:
    text = value.strip()
    if text.casefold() in _OFF | _ON:
        return text.casefold() in _ON
    if not text.startswith("["):
        return text.split(",")
    try:
        return json.loads(text)
    except ValueError as exc:
        raise ConfigError(f"{value!r} is no JSON: {exc}") from exc


def _read(entry: object) -> str:
    if not isinstance(entry, str):
        raise ConfigError(f"{entry!r} is no name of a parameter: write names as text")
    name = entry.strip()
    bare = name.removeprefix(SHOWN)
    if any(char in bare for char in "=&?#;/!") or any(char.isspace() for char in bare):
        raise ConfigError(f"{entry!r} is more than a name: write the name of a parameter alone")
    if not _MEANT.sub("", bare):
        raise ConfigError(
            f"{entry!r} has no letter or digit to compare: write the name of a parameter; '*' hides"
            " every value"
        )
    if "**" in bare:
        raise ConfigError(f"{entry!r} has two stars in a row: one stands for anything")
    return name
