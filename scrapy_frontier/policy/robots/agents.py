"""Under which name a crawl looks for its group in a robots.txt, and whether its operator can be
reached.

A group is chosen by a product token, `[A-Za-z_-]+` (RFC 9309, section 2.2.1), never by searching a
whole User-Agent header for words. The token is the leading part of the header's first product:
`MyBot/1.0 (+https://...)` is MyBot. A header that starts like a browser's names its robot behind
`compatible;`, and without that it names none: only the groups of `*` hold for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.robots.lines import EVERYBODY

ROBOTS_SETTING: Final = "ROBOTSTXT_USER_AGENT"
AGENT_SETTING: Final = "USER_AGENT"

_TOKEN = re.compile(r"[A-Za-z_-]+")
_PRODUCT = re.compile(r"[^\s/();]*")
_BROWSER: Final = "mozilla/"
_COMPATIBLE = re.compile(r"\bcompatible;\s*([A-Za-z_-]+)", re.IGNORECASE)
_CONTACT = re.compile(r"https?://[^\s/]+\.|\bwww\.|[^\s@<>(;]@[^\s@]+\.", re.IGNORECASE)
_OF_SCRAPY = re.compile(r"https?://(?:www\.)?scrapy\.org\S*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AgentToken:
    """The product token of a crawl, the setting it was read from, and what its operator should be
    warned of. `token` is "*" where only the groups for everybody hold.
    """

    token: str
    setting: str
    warnings: tuple[str, ...] = ()


def product_token(user_agent: str) -> str:
    """Return the product token of a setting or a User-Agent header as it is written there, "" where
    it names no robot.
    """
    text = user_agent.strip()
    if text.lower().startswith(_BROWSER):
        named = _COMPATIBLE.search(text)
        return named.group(1) if named else ""
    token = _TOKEN.match(text)
    return token.group() if token else ""


def has_contact(user_agent: str) -> bool:
    """Whether a User-Agent header tells where its operator can be reached: a URL or an e-mail
    address. That of Scrapy itself reaches nobody who could help.
    """
    return bool(_CONTACT.search(_OF_SCRAPY.sub("", user_agent)))


def read_agent(robotstxt_user_agent: str | None, user_agent: str | None) -> AgentToken:
    """Read the token of a crawl from the values of `ROBOTSTXT_USER_AGENT`, which goes first, and
    `USER_AGENT`.

    Raises `ConfigError` for a `ROBOTSTXT_USER_AGENT` that names no robot; "*" is allowed.
    """
    header = user_agent or ""
    warnings = [] if has_contact(header) else [_no_contact(header)]
    if not robotstxt_user_agent:
        return _read(AGENT_SETTING, header, warnings)
    if robotstxt_user_agent.strip() == EVERYBODY:
        return AgentToken(EVERYBODY, ROBOTS_SETTING, tuple(warnings))
    if not product_token(robotstxt_user_agent):
        raise ConfigError(
            f"{ROBOTS_SETTING} = {robotstxt_user_agent!r} names no robot: start it with a product"
            " token of letters, _ and -, such as 'MyBot'"
        )
    return _read(ROBOTS_SETTING, robotstxt_user_agent, warnings)


def _read(setting: str, value: str, warnings: list[str]) -> AgentToken:
    token = product_token(value)
    product = _PRODUCT.match(value.strip())
    if not token:
        warnings.append(
            f"{setting} = {value!r} names no robot, so only the groups of * in a robots.txt hold;"
            f" set {ROBOTS_SETTING} to a product token such as 'MyBot'"
        )
    elif product and _is_longer(product.group(), token):
        warnings.append(
            f"{setting} = {value!r}: in a robots.txt this robot is called {token!r}, for a product"
            f" token has letters, _ and - only; set {ROBOTS_SETTING} to a name of these"
        )
    return AgentToken(token or EVERYBODY, setting, tuple(warnings))


def _is_longer(product: str, token: str) -> bool:
    return product != token and product.startswith(token)


def _no_contact(user_agent: str) -> str:
    return (
        f"{AGENT_SETTING} = {user_agent!r} tells nobody how to reach you: add a URL or an e-mail"
        " address, such as 'MyBot/1.0 (+https://example.com/bot)'"
    )
