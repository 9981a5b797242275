"""What `FRONTIER_REDACT` hides is not shown; all else stays as it is spelled, and different URLs stay different."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier import logs
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.redaction import DIGEST, NOTHING, Redaction, RedactionRule
from scrapy_frontier.report.redacted import redacted

KEY = b"k" * 32
HIDE = Redaction(RedactionRule(), KEY)

NAMES = [
    "token",
    "access_token",
    "X-API-Key",
    "user[email]",
    "sid",
    "PHPSESSID",
    "Signature",
    "pwd",
]
PLAIN = ["page", "q", "sort", "monkey", "author", "keyword", "design", "passage", "s", "id"]

SECRETS = st.text(
    st.characters(codec="utf-8", exclude_characters="&#~{", exclude_categories=["Cc", "Cs"]),
    min_size=1,
).filter(lambda value: len(value.strip("'.,:;!?)]}")) > 0)


def value_of(url: str, name: str) -> str:
    """What is shown as the value of a parameter."""
    return url.partition(f"{name}=")[2].partition("&")[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_name_is_known_however_it_is_spelled(name: str) -> None:
    """Upper case, underscores, hyphens and brackets make no other name; percent-encoding neither."""
    for spelled in (name, name.upper(), quote(name), f"%{ord(name[0]):02x}{name[1:]}"):
        shown = HIDE.url(f"https://e.example/p?page=2&{spelled}=v4lue&x=1")
        assert "v4lue" not in shown
        assert shown.startswith(f"https://e.example/p?page=2&{spelled}=~")
        assert shown.endswith("&x=1")


@pytest.mark.parametrize("name", PLAIN)
def test_what_only_looks_like_one_is_shown(name: str) -> None:
    """A reader of reports sees pages, searches and orders."""
    url = f"https://e.example/p;v=1?{name}=v4lue#part"
    assert HIDE.url(url) == url


@given(
    SECRETS, st.sampled_from(NAMES), st.sampled_from(["?{}", "?a=1&{}", "?a=1;{}", "#{}", "#/r?{}"])
)
def test_all_of_a_value_is_hidden(secret: str, name: str, form: str) -> None:
    """To the next `&` or `#`: also blanks, quotes, equals signs, slashes and semicolons."""
    url = "https://e.example/path" + form.format(f"{name}={secret}") + "&b=2"
    shown = HIDE.url(url)
    assert shown == url.replace(f"={secret}&b=2", f"={HIDE.digest(secret)}&b=2")
    assert HIDE.url(shown) == shown


@given(SECRETS, st.integers(1, 4))
def test_a_nested_url_is_read_at_any_depth(secret: str, depth: int) -> None:
    """A value may hold a URL, percent-encoded once or many times; what stands around it is left alone."""
    nested = f"https://e.example/?n=1&token={quote(secret, safe='')}&z=3"
    for _ in range(depth):
        nested = quote(nested, safe="")
    shown = HIDE.url(f"https://e.example/go?to={nested}&last=1")
    encoded = quote(secret, safe="")
    for _ in range(depth):
        encoded = quote(encoded, safe="")
    assert shown == f"https://e.example/go?to={nested}&last=1".replace(
        encoded + quote_often("&z=3", depth), HIDE.digest(encoded) + quote_often("&z=3", depth)
    )


def quote_often(text: str, depth: int) -> str:
    """Percent-encoded so many times."""
    for _ in range(depth):
        text = quote(text, safe="")
    return text


@given(st.lists(SECRETS, min_size=2, max_size=8, unique=True))
def test_different_values_stay_different(secrets: list[str]) -> None:
    """Two URLs stay two rows; the same value is shown the same way wherever it stands."""
    shown = [HIDE.url(f"/p?token={secret}") for secret in secrets]
    assert len(set(shown)) == len(secrets)
    assert [HIDE.url(f"/q?sid={secret}")[7:] for secret in secrets] == [url[9:] for url in shown]


def test_only_the_key_tells_which_value_it_was() -> None:
    """With another key every digest is another one: without it there is nothing to try values against."""
    other = Redaction(RedactionRule(), b"o" * 32)
    assert HIDE.url("/p?pin=1234") != other.url("/p?pin=1234")
    assert HIDE.fetch_key("ab" * 20) != other.fetch_key("ab" * 20)
    assert len(HIDE.fetch_key("ab" * 20)) == 40


@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("https://e.example/a;jsessionid=9F0A/b?x=1", "9F0A"),
        ("https://e.example/(S(9F0A)X(1))/b", "9F0A"),
        ("https://name:9F0A@e.example/", "9F0A"),
        ("http:9F0A@e.example/", "9F0A"),
        ("//9F0A:x@e.example/", "9F0A"),
        ("/go?u=https%3A%2F%2Fme%3A9F0A%40e.example%2F", "9F0A"),
        ("postgresql+psycopg://me:9F0A@db/crawls", "9F0A"),
        ("access_token=9F0A", "9F0A"),
        ("/p?to\nken=9F0A", "9F0A"),
        ("POST https://e.example/?sid=9F0A 9F0A", "9F0A"),
    ],
)
def test_secrets_outside_the_query(url: str, hidden: str) -> None:
    """Sessions in paths, who asks in the authority, fragments and spellings of pages."""
    shown = HIDE.url(url)
    assert hidden not in shown
    assert DIGEST.search(shown)
    assert HIDE.url(shown) == shown


@pytest.mark.parametrize(
    "url",
    [
        "https://e.example/@user/post",
        "https://e.example/a//b?token=",
        "postgresql+psycopg://me@db/crawls",
        "postgresql+psycopg://me:***@db/crawls",
        "/{name}?sid={hex}",
        "mailto:someone@e.example",
    ],
)
def test_what_hides_nothing_stays_as_it_is(url: str) -> None:
    """No value, no password, the shape of a family: nothing to hide."""
    assert HIDE.url(url) == url
    assert HIDE.text(url) == url


def test_a_sentence_keeps_its_words() -> None:
    """In a text a value ends with its word, and what stands behind it is left."""
    shown = HIDE.text("No answer from 'https://e.example/?token=abc', password=xy/z; given up.")
    assert shown == (
        f"No answer from 'https://e.example/?token={HIDE.digest('abc')}',"
        f" password={HIDE.digest('xy/z')}; given up."
    )


def test_projects_add_names_and_take_them_back() -> None:
    """`default` are the shipped ones, `*` is anything, `!` shows."""
    rule = RedactionRule.from_setting(["default", "clientnr", "x_*", "!code"])
    assert [rule.hides(name) for name in ("token", "client-nr", "x_1", "code", "nr")] == [
        *(True, True, True),
        *(False, False),
    ]
    assert not RedactionRule.from_setting(["clientnr"]).hides("token")
    assert RedactionRule.from_setting("*").hides("anything")
    assert RedactionRule.from_setting(rule.to_setting()) == rule
    assert RedactionRule.from_setting("default,clientnr") == RedactionRule.from_setting(
        '["default", "clientnr"]'
    )


@pytest.mark.parametrize("value", [[], (), False, "[]", "off", "False", "0", ""])
def test_it_can_be_switched_off(value: Any) -> None:
    """Then URLs are shown as they are."""
    rule = RedactionRule.from_setting(value)
    assert rule == NOTHING
    assert (
        Redaction(rule, KEY).text("https://a:b@e.example/?token=1")
        == "https://a:b@e.example/?token=1"
    )


@pytest.mark.parametrize("value", [None, True, "True", "1", ["default"]])
def test_it_is_on_by_default(value: Any) -> None:
    """The shipped names."""
    assert RedactionRule.from_setting(value) == RedactionRule()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a=b"], "'a=b' is more than a name: write the name"),
        (["a b"], "'a b' is more than a name"),
        (["_"], "'_' has no letter or digit"),
        ([7], "7 is no name of a parameter: write names as text"),
        (["!code"], "hides nothing: put 'default' before it"),
        (["a**"], "'a\\*\\*' has two stars in a row"),
        ({"token": True}, "is no list of names"),
        ("[token", "is no JSON"),
    ],
)
def test_a_bad_name_is_refused_with_what_to_write(value: Any, said: str) -> None:
    """A pattern that hides nothing, or means more than a name, would be noticed when it is too late."""
    with pytest.raises(ConfigError, match=said):
        RedactionRule.from_setting(value)


@dataclass(frozen=True)
class Row:
    url: str
    fragment: str | None
    detail: Any
    count: int


def test_values_of_any_shape_are_redacted() -> None:
    """Fields, mappings and sequences; what needs no change is the same object."""
    row = Row("/p?token=a b", "id_token=a/b", {"why": "at /x?sid=1 again", "n": [1, "/y?sid=1"]}, 3)
    shown = redacted(row, HIDE)
    assert shown.url == f"/p?token={HIDE.digest('a b')}"
    assert shown.fragment == f"id_token={HIDE.digest('a/b')}"
    assert shown.detail["n"] == [1, f"/y?sid={HIDE.digest('1')}"]
    assert "?sid=1" not in shown.detail["why"]
    assert shown.count == 3
    plain = Row("/p?page=1", None, {"a": (1, 2)}, 3)
    assert redacted(plain, HIDE) is plain


def test_no_log_record_of_the_package_shows_what_is_hidden(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Messages, arguments, objects among them, and tracebacks."""
    logger = logs.get_logger("scrapy_frontier.test")
    with caplog.at_level(logging.DEBUG, logger.name):
        logger.info("Run in %s", "https://e.example/?token=s3cr3t", extra={"action": "x"})
        logger.info("Of %r: %s", ValueError("https://e.example/?sid=s3cr3t"), {"u": "/?sid=s3cr3t"})
        logger.info("https://e.example/?sid=s3cr3t")
        logger.info("%(url)s has %(count)d", {"url": "/?sid=s3cr3t", "count": 3})
        try:
            raise RuntimeError("at https://e.example/?sid=s3cr3t")
        except RuntimeError as error:
            logger.error("It broke: %s", error, exc_info=error)
    assert "s3cr3t" not in caplog.text
    assert caplog.text.count("~") >= 6
    assert "RuntimeError" in caplog.text
    assert "has 3" in caplog.text


def test_what_one_open_crawl_hides_is_hidden_for_all(caplog: pytest.LogCaptureFixture) -> None:
    """Loggers belong to the process; after the crawls the shipped names are hidden again."""
    logger = logs.get_logger("scrapy_frontier.test")
    off, own = Redaction(NOTHING, KEY), Redaction(RedactionRule(("nr",)), KEY)
    url = "https://e.example/?nr=n1&token=t1"
    with caplog.at_level(logging.INFO, logger.name):
        for opened, shown in (
            ([off], url),
            ([off, own], f"https://e.example/?nr={own.digest('n1')}&token=t1"),
        ):
            for one in opened:
                logs.begin(one)
            logger.info("%s", url)
            for one in opened:
                logs.end(one)
            assert caplog.messages[-1] == shown
        logger.info("%s", url)
    assert "nr=n1" in caplog.messages[-1]
    assert "t1" not in caplog.messages[-1]


def test_every_logger_of_the_package_redacts() -> None:
    """A module that took its logger from `logging` itself would write what it likes."""
    package = Path(logs.__file__).parent
    own = {package / "logs.py", *(package / "testing").rglob("*.py")}
    modules = [path for path in package.rglob("*.py") if path not in own]
    assert [path for path in modules if "getLogger(__name__)" in path.read_text("utf-8")] == []
    assert sum("get_logger(__name__)" in path.read_text("utf-8") for path in modules) > 20
