"""Cookies between Scrapy's jar and the context of a page: the jar is the one that lasts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http.cookiejar import Cookie
from typing import Any, Final

_SAME_SITE: Final = {"lax": "Lax", "strict": "Strict", "none": "None"}


def to_browser(jar: Iterable[Cookie]) -> list[dict[str, Any]]:
    """The cookies of a jar as a context takes them."""
    return [_browser_cookie(cookie) for cookie in jar if cookie.domain and cookie.value is not None]


def header(cookies: Iterable[Mapping[str, Any]]) -> str:
    """The `Cookie` header that sends these."""
    return "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)


def differ(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> bool:
    """Whether cookies were set, changed or removed."""
    return _values(before) != _values(after)


def take_back(
    jar: Any, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> None:
    """Bring what a page has changed into Scrapy's jar, and nothing else: pages rendered at once share one."""
    known, left = _values(before), _values(after)
    for cookie in after:
        if known.get(_place(cookie)) != cookie["value"]:
            jar.set_cookie(_jar_cookie(cookie))
    for cookie in list(jar.jar):
        place = _place(_browser_cookie(cookie))
        if place in known and place not in left:
            jar.jar.clear(cookie.domain, cookie.path, cookie.name)


Place = tuple[str, str, str]


def _place(cookie: Mapping[str, Any]) -> Place:
    return str(cookie["domain"]).lstrip("."), str(cookie["path"]), str(cookie["name"])


def _values(cookies: Iterable[Mapping[str, Any]]) -> dict[Place, str]:
    return {_place(one): str(one["value"]) for one in cookies}


def _browser_cookie(cookie: Cookie) -> dict[str, Any]:
    # The jar of Python writes hosts without a dot as `localhost.local`.
    found: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "domain": cookie.domain.removesuffix(".local"),
        "path": cookie.path or "/",
        "secure": bool(cookie.secure),
        "httpOnly": cookie.has_nonstandard_attr("HttpOnly"),
    }
    if cookie.expires:
        found["expires"] = float(cookie.expires)
    same_site = _SAME_SITE.get(str(cookie.get_nonstandard_attr("SameSite") or "").lower())
    if same_site and (same_site != "None" or cookie.secure):
        found["sameSite"] = same_site
    return found


def _jar_cookie(cookie: Mapping[str, Any]) -> Cookie:
    domain, expires = str(cookie["domain"]), float(cookie.get("expires", -1))
    rest = {"HttpOnly": ""} if cookie.get("httpOnly") else {}
    return Cookie(
        version=0,
        name=str(cookie["name"]),
        value=str(cookie["value"]),
        port=None,
        port_specified=False,
        domain=domain,
        domain_specified=domain.startswith("."),
        domain_initial_dot=domain.startswith("."),
        path=str(cookie["path"]),
        path_specified=True,
        secure=bool(cookie.get("secure")),
        expires=None if expires < 0 else int(expires),
        discard=expires < 0,
        comment=None,
        comment_url=None,
        rest=rest,
    )
