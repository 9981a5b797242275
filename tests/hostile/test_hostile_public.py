"""Faults that users of Scrapy and its neighbours have reported, by their numbers in tests/data/cases.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from scrapy_frontier.policy.robots import Rules, interval_floor
from scrapy_frontier.policy.robots.records import RobotsRecord, RobotsState

from .cases import CASES, public
from .lab import HostileLab
from .plans import Case

REPORTED: Final = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
    if case["kind"] in {"redirect", "meta-refresh", "auth-cookies", "robots"}
}


def variants(number: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", public(number), ids=str)


def test_none_is_left_out() -> None:
    """Every reported case of these kinds is staged, and has a test of its name."""
    staged = {number.split(".")[0] for number in CASES if number.startswith("FC")}
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_FC")}
    assert set(REPORTED) == staged == tested


# robots.txt


@variants("FC01")
async def test_FC01_simultaneous_first_requests_wait_for_one_robots_txt(
    lab: HostileLab, case: Case
) -> None:
    """However many requests a fresh host has, robots.txt is fetched once, and judges each of them."""
    result, _ = await lab.hold(case)
    assert result.fate(lab.web.a / "private/0").attempts == 0


@variants("FC02")
async def test_FC02_a_server_error_is_no_permission(lab: HostileLab, case: Case) -> None:
    """While robots.txt answers 5xx nothing is fetched, and the verdict is not final."""
    result, _ = await lab.hold(case)
    assert result.coverage.identities.unresolved == {"scheduled": 2}
    assert result.coverage.identities.suppressed == {}


@variants("FC04")
async def test_FC04_robots_txt_may_be_on_another_host(lab: HostileLab, case: Case) -> None:
    """A redirect of robots.txt off the site is followed whatever the spider's domains are."""
    await lab.hold(case)


@variants("FC05")
async def test_FC05_a_byte_order_mark_is_no_part_of_a_line(lab: HostileLab, case: Case) -> None:
    """A byte order mark is ignored, whichever parser reads the rules."""
    await lab.hold(case)


def test_FC05_a_text_that_begins_with_the_mark() -> None:
    """The parser itself does not stumble over the mark either."""
    rules = Rules.parse("\ufeffUser-agent: *\nDisallow: /private\n".encode())
    assert not rules.for_agent("bot").decide("/private/x").allowed


@variants("FC06")
async def test_FC06_groups_are_found_by_the_whole_product_token(
    lab: HostileLab, case: Case
) -> None:
    """A group holds for the robot of its name, not for one whose name contains it."""
    await lab.hold(case)


@variants("FC07")
async def test_FC07_dot_segments_do_not_slip_past_a_rule(lab: HostileLab, case: Case) -> None:
    """What is judged is what would be sent."""
    await lab.hold(case)


@variants("FC10")
async def test_FC10_a_url_without_a_path_has_the_path_slash(lab: HostileLab, case: Case) -> None:
    """`Disallow: /` keeps everybody out of `http://host` and `http://host?q` too."""
    await lab.hold(case)


@variants("FC11")
async def test_FC11_http_and_https_have_rules_of_their_own(lab: HostileLab, case: Case) -> None:
    """Rules hold for one scheme, host and port."""
    await lab.hold(case)


@variants("FC13")
async def test_FC13_crawl_delay_is_kept(lab: HostileLab, case: Case) -> None:
    """Crawl-delay is a floor for the interval, by the server's own log."""
    await lab.hold(case)


@pytest.mark.parametrize(("value", "seconds"), REPORTED["FC13"]["input"]["values_to_parse"].items())
def test_FC13_values_of_crawl_delay(value: str, seconds: float | str | None) -> None:
    """A number of seconds with a remark behind is read; what is no such number is not there; too much is capped."""
    text = f"User-agent: *\nDisallow: /x\nCrawl-delay: {value}\n".encode()
    record = RobotsRecord("http://a.example", RobotsState.RULES, digest="0", text=text)
    floor = interval_floor(record, "bot", 300.0)
    if seconds is None:
        assert floor is None
    elif isinstance(seconds, str):
        assert floor is not None
        assert (floor.floor_s, floor.is_capped) == (300.0, True)
    else:
        assert floor is not None
        assert (floor.floor_s, floor.is_capped) == (seconds, False)


# Redirects


@variants("FC14")
async def test_FC14_a_redirect_to_itself_is_asked_again(lab: HostileLab, case: Case) -> None:
    """A cookie may open the way; where it does not, the errback is told in the end."""
    await lab.hold(case)


@variants("FC17")
async def test_FC17_a_redirect_does_not_leave_the_allowed_domains(
    lab: HostileLab, case: Case
) -> None:
    """Every hop is judged by the scope, unless the request was let out."""
    await lab.hold(case)


@variants("FC18")
async def test_FC18_odd_bytes_in_location(lab: HostileLab, case: Case) -> None:
    """Bytes are percent-encoded as they are; white space goes as the URL Standard says."""
    await lab.hold(case)


@variants("FC19")
async def test_FC19_slashes_and_backslashes(lab: HostileLab, case: Case) -> None:
    """They lead where a browser would go."""
    await lab.hold(case)


@variants("FC22")
async def test_FC22_user_names_and_passwords(lab: HostileLab, case: Case) -> None:
    """The user's own are sent as `Authorization`; others' are refused by name."""
    result, _ = await lab.hold(case)
    if not case.number.endswith("a"):
        assert result.coverage.references.rejected == {"userinfo": 1}


@variants("FC24")
async def test_FC24_an_endless_chain_is_cut(lab: HostileLab, case: Case) -> None:
    """The errback is told, with the whole chain."""
    _, seen = await lab.hold(case)
    (error,) = seen.failures
    assert error.chain == tuple(lab.web.a / f"r?n={number}" for number in range(5))
    assert error.url == lab.web.a / "r?n=5"


# Credentials


@variants("FC25")
async def test_FC25_credentials_stay_with_their_origin(lab: HostileLab, case: Case) -> None:
    """Authorization and Cookie go along within an origin, and nowhere else."""
    await lab.hold(case)


@variants("FC27")
async def test_FC27_cookies_of_the_user_reach_their_host(lab: HostileLab, case: Case) -> None:
    """A cookie goes to the host it is for, if the user says so, and not if another server does."""
    await lab.hold(case)


# Meta refresh


@variants("FC29")
async def test_FC29_text_is_no_markup(lab: HostileLab, case: Case) -> None:
    """A refresh within what is not parsed as elements of the page is none."""
    await lab.hold(case)


@variants("FC30")
async def test_FC30_a_page_that_reloads_itself_is_delivered(lab: HostileLab, case: Case) -> None:
    """A reload leads nowhere."""
    await lab.hold(case)


@variants("FC32")
async def test_FC32_spellings_of_a_refresh(lab: HostileLab, case: Case) -> None:
    """A refresh is read as HTML says it is."""
    await lab.hold(case)
