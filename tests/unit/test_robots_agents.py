"""The product token of a crawl, and whether its operator can be reached."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.robots import AgentToken, Rules, has_contact, product_token, read_agent

CONTACT = "MyBot/1.0 (+https://example.com/bot)"


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("MyBot", "MyBot"),
        ("MyBot/1.0 (+https://example.com)", "MyBot"),
        ("  my_bot-x (me@example.com)", "my_bot-x"),
        ("Scrapy/2.19 (+https://scrapy.org)", "Scrapy"),
        ("Mozilla/5.0 (compatible; MyBot/1.4; +https://example.com)", "MyBot"),
        ("Mozilla/5.0 AppleWebKit/5 (KHTML, like Gecko; compatible; MyBot/1; x) Safari/5", "MyBot"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:99.0) Gecko/20100101 Firefox/99.0", ""),
        ("Mozilla/5.0 (incompatible; Other)", ""),
        ("MJ12bot/v1.4", "MJ"),
        ("360Spider", ""),
        ("", ""),
    ],
)
def test_the_token_is_the_leading_product(user_agent, token):
    """A browser's header names its robot behind `compatible;`, or none."""
    assert product_token(user_agent) == token


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_token_is_one_of_the_rfc_or_none(user_agent):
    """Whatever the setting: RFC 9309 knows letters, underscore and hyphen."""
    assert re.fullmatch("[A-Za-z_-]*", product_token(user_agent))


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z_-]{1,12}", fullmatch=True), st.sampled_from(["", "/1.0", " x", "2"]))
def test_a_line_and_a_header_are_read_alike(name, tail):
    """Who copies the product of a User-Agent header into robots.txt addresses that robot."""
    rules = Rules.parse(f"User-agent: {name}{tail}\nDisallow: /\n".encode())
    token = product_token(f"{name}{tail} (+https://example.com)")
    assert not rules.for_agent(token).decide("/x").allowed


@pytest.mark.parametrize(
    "user_agent",
    [CONTACT, "MyBot (http://example.com/)", "MyBot (me@example.com)", "MyBot (www.example.com)"],
)
def test_a_contact_is_a_url_or_an_address(user_agent):
    """Either tells where to complain."""
    assert has_contact(user_agent)


@pytest.mark.parametrize(
    "user_agent",
    ["", "MyBot/1.0", "Scrapy/2.19 (+https://scrapy.org)", "MyBot (http://localhost)", "a@b"],
)
def test_no_contact(user_agent):
    """Scrapy's own site reaches nobody who could stop the crawl."""
    assert not has_contact(user_agent)


def test_the_setting_for_robots_goes_first():
    """ROBOTSTXT_USER_AGENT chooses the group, USER_AGENT only where it is not set."""
    assert read_agent("Other", CONTACT) == AgentToken("Other", "ROBOTSTXT_USER_AGENT")
    assert read_agent(None, CONTACT) == AgentToken("MyBot", "USER_AGENT")
    assert read_agent("", CONTACT) == AgentToken("MyBot", "USER_AGENT")
    assert read_agent("*", CONTACT) == AgentToken("*", "ROBOTSTXT_USER_AGENT")


@pytest.mark.parametrize("value", ["360Spider", "Mozilla/5.0 (X11)", "/1.0"])
def test_a_setting_for_robots_must_name_one(value):
    """It has no other purpose; the message shows the value and the remedy."""
    with pytest.raises(ConfigError, match=r"ROBOTSTXT_USER_AGENT = .* such as 'MyBot'"):
        read_agent(value, CONTACT)


@pytest.mark.parametrize(
    ("user_agent", "token", "problems"),
    [
        (CONTACT, "MyBot", []),
        ("MyBot/1.0", "MyBot", ["how to reach you"]),
        ("MJ12bot/1 (+https://example.com)", "MJ", ["called 'MJ'"]),
        ("Mozilla/5.0 (X11; Linux x86_64)", "*", ["how to reach you", "names no robot"]),
        (None, "*", ["how to reach you", "names no robot"]),
    ],
)
def test_an_operator_is_warned(user_agent, token, problems):
    """Of an agent that nobody can reach, or that no robots.txt can name; nothing is refused."""
    agent = read_agent(None, user_agent)
    assert agent.token == token
    assert len(agent.warnings) == len(problems)
    for warning, problem in zip(agent.warnings, problems, strict=True):
        assert problem in warning
        assert warning.startswith("USER_AGENT = ")
