"""Traps: what a signature says of a URL, what puts a brake on a family, and what overrides it."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.traps import Content, TrapExceptions, Traps, signature_of
from scrapy_frontier.policy.traps.family import RULES

ORIGIN = "http://site.example"


@pytest.mark.parametrize(
    ("target", "shape", "trait"),
    [
        ("/", "/", "plain"),
        ("/library/os.html", "/library/{name}.html", "plain"),
        ("/api/org/example/Thing.html", "/api/**/{name}.html", "plain"),
        ("/products/17", "/products/{number}", "plain"),
        ("/files/0123abcd99ff/", "/files/{hex}/", "plain"),
        ("/2031/05/12/", "/{year}/**", "calendar"),
        ("/news/2031-05-12", "/news/{date}", "calendar"),
        ("/day?year=2031&month=5", "/{name}?month={number}&year={number}", "calendar"),
        ("/boots/?size=M&colour=red", "/{name}/?colour={text}&size={text}", "query"),
        ("/list?page=3", "/{name}?page={number}", "pagination"),
        ("/products/7?from=boots", "/products/{number}?from={text}", "query"),
        ("/list/page/3/", "/list/**/page/{number}/", "pagination"),
        ("/find?q=plums", "/{name}?q={text}", "search"),
        ("/pub/?C=N;O=D", "/{name}/?C={text}&O={text}", "sort"),
    ],
)
def test_a_signature_groups_urls_by_their_shape(target: str, shape: str, trait: str) -> None:
    found = signature_of(target)
    assert (found.shape, found.trait) == (shape, trait)


@pytest.mark.parametrize(
    "target",
    [
        "/a/b;jsessionid=9F0A",
        "/a/b?PHPSESSID=1",
        "/1f2e3d4c5b6a/a/b",
        "/(S(x1y2z3))/a/b",
        "/a/b?sid=0123456789",
    ],
)
def test_what_names_a_session_is_no_part_of_a_shape(target: str) -> None:
    found = signature_of(target)
    assert (found.plain, found.shape, found.has_session) == ("/a/b", "/a/{name}", True)


def test_a_group_of_segments_that_stands_three_times_in_a_row_is_suspicious() -> None:
    assert signature_of("/a/b/a/b/a/b/").is_repeating
    assert signature_of("/x/feed/feed/feed").is_repeating
    assert not signature_of("/a/b/a/c/a/d").is_repeating
    assert not signature_of("/boost/boost/x.html").is_repeating
    assert signature_of("/" + "/".join(map(str, range(40)))).is_repeating


@given(st.text(max_size=60))
def test_any_target_has_a_signature(target: str) -> None:
    found = signature_of(f"/{target}")
    assert found == signature_of(f"/{target}")
    assert signature_of(found.plain).plain == found.plain or found.has_session


@given(st.permutations([("a", "1"), ("b", "2"), ("c", "3")]))
def test_the_order_of_parameters_makes_no_other_family(pairs: list[tuple[str, str]]) -> None:
    query = "&".join(f"{name}={value}" for name, value in pairs)
    assert signature_of(f"/x?{query}").plain == "/x?a=1&b=2&c=3"


def same(traps: Traps, url: str, *, like: str = "", is_read: bool = True) -> Content:
    return Content(
        traps.family_of(url, ORIGIN), 1, is_read, is_read, is_read, is_read, False, 0.0, like
    )


def test_a_date_out_of_any_sensible_range_is_held_at_once() -> None:
    traps = Traps(2026)
    brake = traps.refer(f"{ORIGIN}/9031/05/12/", ORIGIN).brake
    assert brake is not None
    assert brake.code == "trap.calendar"
    assert brake.detail() == {"family": "/{year}/**", "year": 9031, "from": 1400, "to": 2029}
    assert traps.refer(f"{ORIGIN}/2027/05/12/", ORIGIN).brake is None


def test_permutations_are_held_once_a_sample_of_them_has_proved_to_be_copies() -> None:
    traps = Traps(2026)
    pairs = ["a=1", "b=2", "c=3", "d=4"]
    urls = [f"{ORIGIN}/x?{'&'.join(order)}" for order in permutations(pairs)]
    held = []
    for url in urls:
        brake = traps.refer(url, ORIGIN).brake
        if brake is None:
            traps.fetched(url, ORIGIN, same(traps, url, like=urls[0]), 0)
        else:
            held.append(brake)
    assert len(held) == len(urls) - 1 - RULES["permutation"]
    assert {brake.code for brake in held} == {"trap.permutation"}
    assert {brake.inputs["like"] for brake in held} == {"/x?a=1&b=2&c=3&d=4"}


def test_a_permutation_that_brings_another_page_takes_the_suspicion_back() -> None:
    traps = Traps(2026)
    urls = [f"{ORIGIN}/x?{'&'.join(order)}" for order in permutations(["a=1", "b=2", "c=3", "d=4"])]
    for place, url in enumerate(urls):
        assert traps.refer(url, ORIGIN).brake is None
        content = same(traps, url, like=urls[0])
        if place % 3 == 0:
            content = Content(traps.family_of(url, ORIGIN), place, True, True)
        traps.fetched(url, ORIGIN, content, 0)


def test_a_copy_of_a_copy_does_not_take_the_suspicion_back() -> None:
    """`/0/print/print` is like `/0`, not like `/0/print`, which it was found on and is like `/0` too."""
    traps = Traps(2026)
    for number in range(4):
        page = f"{ORIGIN}/{number}"
        for url in (page, f"{page}/print", f"{page}/print/print"):
            traps.refer(url, ORIGIN)
            is_copy = url != page
            content = Content(
                traps.family_of(url, ORIGIN),
                digest=number,
                is_read=True,
                is_judged=True,
                is_same=is_copy,
                is_exact=is_copy,
                like=page if is_copy else "",
            )
            traps.fetched(url, ORIGIN, content, outside=0)
    brake = traps.hold(f"{ORIGIN}/3/print/print", ORIGIN)
    assert brake is not None
    assert (brake.rule, brake.inputs["dry"]) == ("trailing", RULES["trailing"])


def test_a_family_that_brings_new_pages_is_not_held() -> None:
    traps = Traps(2026)
    for number in range(100):
        url = f"{ORIGIN}/list?page={number}"
        assert traps.refer(url, ORIGIN).brake is None
        traps.fetched(url, ORIGIN, same(traps, url), outside=1)


def test_a_released_family_is_not_held_again() -> None:
    traps = Traps(2026)
    urls = [f"{ORIGIN}/list?page={number}" for number in range(40)]
    for url in urls:
        traps.refer(url, ORIGIN)
        traps.fetched(url, ORIGIN, same(traps, url), 0)
    assert traps.hold(urls[-1], ORIGIN) is not None
    assert [known.shape for known in traps.braked] == ["/{name}?page={number}"]
    traps.release(ORIGIN, "/{name}?page={number}")
    for url in urls:
        traps.fetched(url, ORIGIN, same(traps, url), 0)
    assert traps.hold(urls[-1], ORIGIN) is None


def test_a_brake_that_is_restored_holds_as_before() -> None:
    traps, resumed = Traps(2026), Traps(2026)
    urls = [f"{ORIGIN}/list?page={number}" for number in range(10)]
    for url in urls:
        traps.refer(url, ORIGIN)
        traps.fetched(url, ORIGIN, same(traps, url), 0)
    (known,) = traps.braked
    assert known.brake is not None
    resumed.restore(known.origin, known.shape, known.rule, dict(known.brake.inputs))
    assert resumed.hold(f"{ORIGIN}/list?page=99", ORIGIN) == traps.hold(
        f"{ORIGIN}/list?page=99", ORIGIN
    )


def test_an_exception_covers_the_named_rules_in_its_place() -> None:
    entries = [{"place": "site.example/archive/", "rules": ["calendar"], "name": "ours"}]
    exceptions = TrapExceptions.from_setting(entries)
    assert exceptions.find("calendar", f"{ORIGIN}/archive/1/", ORIGIN) == "ours"
    assert exceptions.find("calendar", f"{ORIGIN}/other/", ORIGIN) is None
    assert exceptions.find("search", f"{ORIGIN}/archive/1/", ORIGIN) is None


@pytest.mark.parametrize(
    "value",
    [
        "site.example",
        [{"place": "*", "rules": ["calendar"]}],
        [{"place": "site.example"}],
        [{"place": "site.example", "rules": []}],
        [{"place": "site.example", "rules": ["kalendar"]}],
        [{"place": "site.example", "rules": ["calendar"], "why": "x"}],
    ],
)
def test_an_exception_must_be_narrower_than_the_rules(value: object) -> None:
    with pytest.raises(ConfigError):
        TrapExceptions.from_setting(value)
