"""A URL without the values that a rule hides: each of them replaced by a digest, all else as it stands.

=============================================  ====================================================
found                                          shown
=============================================  ====================================================
``/a?page=2&access_token=s3cr3t``              ``/a?page=2&access_token=~k2dz4qv7ma``
``/go?to=https%3A%2F%2Fx%2F%3Fsid%3D9``        ``/go?to=https%3A%2F%2Fx%2F%3Fsid%3D~p4wd7ounqe``
``/a;jsessionid=9F0A/b``, ``/(S(x1))/b``       ``/a;jsessionid=~b7c2mxk3ta/b``, ``/(S(~...))/b``
``/cb#id_token=e.y.J``                         ``/cb#id_token=~u5tq2h6kzd``
``https://name:word@host/``                    ``https://~r3xy7dnobm@host/``
=============================================  ====================================================
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from scrapy_frontier.policy.redaction.rule import RedactionRule

DIGEST_BYTES: Final = 6
"""Of a digest: 48 bits, so that among a million values two are shown alike about once in five hundred runs."""

KEY_BYTES: Final = 32

DIGEST: Final = re.compile("~[a-z2-7]{10}")
"""What stands in place of a value."""

_MAYBE = re.compile(r"[=@]|%(?:25)*(?:3D|40)|/\([A-Z]\(", re.IGNORECASE)
_NAME = re.compile(r"(?:^|(?<=[?&#;/\\=]))([^?&#;/\\=]*)=")
"""What stands before an equals sign that is not encoded."""

_MARK = re.compile(r"[?&#;/\\=]|%(?:25)*(?:2[36F]|3[BDF])", re.IGNORECASE)
_SIGNS: Final = {"23": "#", "26": "&", "2F": "/", "3B": ";", "3D": "=", "3F": "?"}
_KEPT = re.compile(rf"{DIGEST.pattern}|\{{[a-z]+\}}")
"""A value that is one of our digests, or of the shape of a family (`sid={hex}`), is shown as it is."""

_BEFORE_NAME = re.compile(r"[\s,|(){}\"':!]")
_NESTED: Final = 4
"""How often a name is unquoted at the most."""

_USERINFO = re.compile(
    r"((?:[A-Z][A-Z\d+.-]*:)?[/\\]{2}|(?:https?|wss?|ftp):[/\\]?)([^/\\?#]+)(?=@)"
    r"|((?:%(?:25)*2F){2})((?:(?!%(?:25)*(?:2[36F]|3F|40))[^/?#&@])+)(?=@|%(?:25)*40)",
    re.IGNORECASE,
)
_WEB = re.compile(r"(?:https?|wss?|ftp):|[/\\]", re.IGNORECASE)
_NO_PASSWORD: Final = frozenset({"", "***"})
_ASPNET = re.compile(r"(?<=/\()(?:[A-Z]\([^()/]*\))+(?=\))")
_ASPNET_PART = re.compile(r"([SFA])\(([^()]+)\)")
"""Sessions, tickets of logins and anonymous users; `X` only tells whether cookies work."""

_STARTS_AS_URL = re.compile(
    r"\s*(?:[A-Z][A-Z\d+.-]*:[/\\]{2}|https?:|[A-Z]{3,7} https?:|[/\\?#])", re.IGNORECASE
)
_WORD = re.compile(r"[^\s\"<>`]+")
_AFTER_WORD: Final = "'.,:;!?)]}"
_KNOWN_NAMES: Final = 10_000


class Redaction:
    """A rule and the key of the digests. Applying it twice changes nothing more."""

    __slots__ = ("_key", "_known", "_open", "rule")

    def __init__(self, rule: RedactionRule, key: bytes) -> None:
        self.rule = rule
        self._key = key
        self._known: dict[str, bool] = {}
        self._open: set[str] = set()

    @property
    def is_off(self) -> bool:
        """Whether everything is shown."""
        return self.rule.is_off

    def digest(self, value: str) -> str:
        """What is shown in place of a value."""
        content = value.encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(content, key=self._key, digest_size=DIGEST_BYTES).digest()
        return "~" + base64.b32encode(found).decode("ascii").rstrip("=").lower()

    def fetch_key(self, key: str) -> str:
        """What is shown in place of the fetch key of a URL that is not shown whole: it would tell, by trying."""
        found = hashlib.blake2b(key.encode(), key=self._key, digest_size=len(key) // 2)
        return found.hexdigest()

    def text(self, text: str) -> str:
        """A sentence with URLs in it, or a URL alone."""
        if self.is_off or not _MAYBE.search(text):
            return text
        if _STARTS_AS_URL.match(text):
            return self.url(text)
        return _WORD.sub(lambda found: self._word(found.group()), text)

    def _word(self, word: str) -> str:
        end = len(word.rstrip(_AFTER_WORD))
        return self.url(word[:end]) + word[end:]

    def fragment(self, fragment: str) -> str:
        """A fragment without its `#`."""
        return self.url(f"#{fragment}")[1:]

    def url(self, url: str) -> str:
        """A URL or reference, however it is spelled: all of it is one."""
        if self._is_plain(url):
            return url
        url = _USERINFO.sub(self._userinfo, url)
        if "/(" in url and self.hides("sessionid"):
            url = _ASPNET.sub(self._session_directory, url)
        shown, copied = [], 0
        for start, end in self._hidden(url):
            shown += [url[copied:start], self.digest(url[start:end])]
            copied = end
        return "".join([*shown, url[copied:]]) if shown else url

    def _is_plain(self, url: str) -> bool:
        """The short way for most URLs: nothing is encoded in it, and all its names are known to hide nothing."""
        if "%" in url or "@" in url or "/(" in url:
            return self.is_off or not _MAYBE.search(url)
        return self._open.issuperset(_NAME.findall(url)) or self.is_off

    def hides(self, name: str) -> bool:
        """Whether values of a parameter of this name are hidden."""
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _KNOWN_NAMES:
                self._known.clear()
            known = self._known[name] = self.rule.hides(name)
        return known

    def _hidden(self, url: str) -> Iterator[tuple[int, int]]:
        """Where the hidden values are. A nested URL is read as it stands: `%253D` is an equals sign two levels down."""
        name_at, is_path, has_query, hidden_to = 0, False, False, 0
        for mark in _MARK.finditer(url):
            if mark.start() < hidden_to:
                continue
            sign, depth = _sign(mark.group())
            if sign == "=" and self._is_hidden(url[name_at : mark.start()], depth):
                hidden_to = _end(url, mark.end(), depth, is_path=is_path and not has_query)
                if hidden_to > mark.end() and not _KEPT.fullmatch(url, mark.end(), hidden_to):
                    yield mark.end(), hidden_to
            has_query |= depth == 0 and sign in "?#"
            is_path |= sign in "/\\;"
            name_at = mark.end()

    def _is_hidden(self, name: str, depth: int) -> bool:
        if "%" in name:
            for _ in range(min(depth + 1, _NESTED)):
                name = unquote(name)
        is_hidden = self.hides(name) or self.hides(_BEFORE_NAME.split(name)[-1])
        if not is_hidden and len(self._open) < _KNOWN_NAMES:
            self._open.add(name)
        return is_hidden

    def _userinfo(self, found: re.Match[str]) -> str:
        before, who = (found[1], found[2]) if found[1] else (found[3], found[4])
        if found[1] and not _WEB.match(before):
            # A database or an object store: who asks there is no secret, the password is.
            name, colon, word = who.partition(":")
            return before + name + colon + (word if word in _NO_PASSWORD else self._shown(word))
        return before + self._shown(who)

    def _shown(self, value: str) -> str:
        return value if DIGEST.fullmatch(value) else self.digest(value)

    def _session_directory(self, found: re.Match[str]) -> str:
        return _ASPNET_PART.sub(lambda part: f"{part[1]}({self._shown(part[2])})", found.group())


def _sign(mark: str) -> tuple[str, int]:
    """The character that a mark stands for, and how often it is percent-encoded."""
    return (mark, 0) if len(mark) == 1 else (_SIGNS[mark[-2:].upper()], (len(mark) - 1) // 2)


def _end(url: str, start: int, depth: int, *, is_path: bool) -> int:
    """Where the value ends that begins at `start`, behind an equals sign of that depth."""
    ends = r"[&#/\\?;]" if is_path else "[&#]"
    if depth:
        ends += f"|%(?:25){{0,{depth - 1}}}2[36]"
    found = re.compile(ends).search(url, start)
    return found.start() if found else len(url)
