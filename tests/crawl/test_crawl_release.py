"""What traps hold is said by name, let go by an operator, and fetched when the run is resumed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from crawls import Crawl, Lab
from test_crawl_traps import SETTINGS, Tame

from scrapy_frontier.cli import main
from scrapy_frontier.frontier.release import Wanted, release
from scrapy_frontier.policy.traps import Traps
from scrapy_frontier.report.families import FamilyAccount, families
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.testing import page
from scrapy_frontier.testing.zoo import TrapSite, serve
from scrapy_frontier.testing.zoo.endless import Calendar, Facets, SortOrders

PROJECT = Path(__file__).parents[2] / "example_project"


@pytest.fixture
def web() -> Iterator[ModuleType]:
    """The sites of the example project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PROJECT))
        yield importlib.import_module("example.web")
        for name in [name for name in sys.modules if name.partition(".")[0] == "example"]:
            patch.delitem(sys.modules, name)


async def tame(lab: Lab) -> Crawl:
    return await lab.crawl(Tame, SETTINGS, seeds=[lab.main / ""], patience_s=90)


def accounts(crawl: Crawl) -> dict[str, FamilyAccount]:
    with open_store(crawl.store_url, read_only=True) as store, store.reader() as connection:
        return {one.family: one for one in families(connection, crawl.run_id)}


async def test_the_calendar_of_the_example_project_ends_by_itself(
    lab: Lab, web: ModuleType
) -> None:
    web.calendar.build(lab.main, {})
    crawl = await tame(lab)
    crawl.assert_exhausted()
    assert len(crawl.log.hits_by_url()) < 120
    (held,) = [one for one in crawl.coverage.families if one.deferred]
    assert (held.rule, held.family) == ("trap.calendar", "/{year}/**")
    assert held.first_example in crawl.fates
    assert held.deferred == crawl.coverage.identities.deferred["trap.calendar"]
    assert held.sources


async def test_the_facets_of_the_example_shop_end_by_themselves(lab: Lab, web: ModuleType) -> None:
    web.shop.build(lab.main, {"docs": "http://127.0.0.1:9"})
    settings = {**SETTINGS, "FRONTIER_SCOPE": {"include": [lab.main.url]}}
    crawl = await lab.crawl(Tame, settings, seeds=[lab.main / ""], patience_s=90)
    crawl.assert_exhausted()
    products = {f"{lab.main.url}/products/{product.sku}" for product in web.shop.PRODUCTS}
    fetched = {url.partition("?")[0] for url in crawl.log.hits_by_url()}
    assert products <= fetched
    assert len(crawl.log.hits_by_url()) < 500
    held = [one for one in crawl.coverage.families if one.deferred]
    assert "trap.facets" in {one.rule for one in held}
    assert all(one.first_example and one.deferred for one in held)


async def test_every_number_of_a_family_is_in_the_ledger(lab: Lab) -> None:
    serve(Calendar(30), lab.main)
    crawl = await tame(lab)
    members = [one for one in accounts(crawl).values() if one.states]
    for one in members:
        assert one.discovered == sum(one.states.values())
        assert one.read <= one.fetched <= one.discovered
    held = sum(one.deferred for one in accounts(crawl).values())
    assert held == sum(crawl.coverage.identities.deferred.values())
    in_families = crawl.rows("SELECT count(*) FROM identity WHERE family_id > 0")[0][0]
    assert in_families == sum(one.discovered for one in members)


async def test_a_released_family_is_fetched_on_resume_and_not_held_again(lab: Lab) -> None:
    serve(SortOrders(40), lab.main)
    first = await tame(lab)
    family = "/list/{number}.html?dir={text}&sort={text}"
    held = accounts(first)[family]
    assert held.deferred > 0
    before = first.coverage.run.policy_version
    with open_store(first.store_url) as store:
        found = release(store, first.run_id, Wanted(family=family))
    assert found.identities == held.deferred
    assert found.policy_version != before
    (version,) = first.rows(
        "SELECT DISTINCT p.digest FROM transition AS t JOIN context AS c USING (context_id)"
        " JOIN policy AS p USING (policy_id) JOIN reason AS r USING (reason_id)"
        " WHERE r.code = 'operator.release'"
    )
    assert version == (found.policy_version,)
    second = await tame(lab)
    assert second.run_id == first.run_id
    second.assert_exhausted()
    after = accounts(second)[family]
    assert (after.deferred, after.discovered) == (0, after.states["terminal"])
    assert after.released_at is not None


async def test_a_resumed_run_holds_what_it_held(lab: Lab) -> None:
    serve(SortOrders(60), lab.main)
    settings = {**SETTINGS, "CLOSESPIDER_PAGECOUNT": 25}
    first = await lab.crawl(Tame, settings, seeds=[lab.main / ""], patience_s=60)
    assert first.coverage.run.state == "stopped"
    second = await tame(lab)
    second.assert_sound()
    sorted_pages = [url for url in second.log.hits_by_url() if "sort=" in url]
    assert len(sorted_pages) < 30
    assert second.coverage.identities.deferred["trap.sort"] == 36 - len(sorted_pages)


async def test_one_url_is_released_by_the_command(lab: Lab, capsys: Any) -> None:
    serve(SortOrders(40), lab.main)
    first = await tame(lab)
    deferred = first.coverage.identities.deferred["trap.sort"]
    url = next(url for url, fate in first.fates.items() if fate.reason == "trap.sort")
    assert main(["release", url, "--store", first.store_url]) == 0
    assert "Let go 1 URL" in capsys.readouterr().out
    assert main(["release", url, "--store", first.store_url]) == 1
    capsys.readouterr()
    second = await tame(lab)
    assert second.fate(url).end == "succeeded"
    assert second.coverage.identities.deferred["trap.sort"] == deferred - 1


async def test_what_a_budget_holds_is_released_by_its_rule(lab: Lab, capsys: Any) -> None:
    """The limit stays in force: it holds what is discovered after the release."""
    lab.main.on("/", page("start", [f"/{number}" for number in range(9)]))
    lab.main.otherwise = page("any", ["/later"])
    settings = {"FRONTIER_MAX_URLS_PER_ORIGIN": 1}
    first = await lab.crawl(Tame, {**settings, "FRONTIER_MAX_URLS": 50}, seeds=[lab.main / ""])
    assert first.coverage.identities.deferred == {"budget.origin_urls": 9}
    store = ["--store", first.store_url]
    assert main(["release", "--rule", "trap.sort", *store]) == 1
    assert main(["release", "--rule", "budget%", *store]) == 1
    assert main(["release", "--rule", "budget.origin_urls", "--origin", "http://b", *store]) == 1
    assert main(["release", "--rule", "budget.origin_urls", *store]) == 0
    assert "Let go 9 URLs" in capsys.readouterr().out
    second = await lab.crawl(Tame, settings, seeds=[lab.main / ""])
    second.assert_sound()
    assert second.run_id == first.run_id
    assert set(second.log.hits_by_path()) == {"/", *(f"/{number}" for number in range(9))}
    assert second.coverage.identities.deferred == {"budget.origin_urls": 1}
    assert second.fate(lab.main / "later").reason == "budget.origin_urls"


async def test_what_the_bytes_of_an_origin_hold_is_fetched_once_released(lab: Lab) -> None:
    lab.main.on("/", page("start", [f"/{number}" for number in range(9)]))
    lab.main.otherwise = page("any")
    settings = {"FRONTIER_MAX_BYTES_PER_ORIGIN": 1}
    first = await lab.crawl(Tame, settings, seeds=[lab.main / ""])
    assert first.coverage.identities.deferred == {"budget.origin_bytes": 9}
    with open_store(first.store_url) as store:
        found = release(store, first.run_id, Wanted(rule="budget.origin_bytes"))
    assert found.identities == 9
    second = await lab.crawl(Tame, settings, seeds=[lab.main / ""])
    second.assert_exhausted()
    assert second.coverage.identities.deferred == {}


@pytest.mark.parametrize("make", [SortOrders, Facets, Calendar])
async def test_the_families_in_the_store_are_those_of_the_ledger(
    lab: Lab, make: type[TrapSite]
) -> None:
    """Numbers of families are folds: a rebuild from the URLs alone gives the same groups."""
    serve(make(40), lab.main)
    crawl = await tame(lab)
    rows = crawl.rows(
        "SELECT i.url, f.name FROM identity AS i JOIN family AS f ON f.family_id = i.family_id"
        " WHERE i.run_id = f.run_id ORDER BY i.identity_id"
    )
    rebuilt = Traps(2026)
    names = [f"{lab.main.url} {rebuilt.refer(url, lab.main.url).shape}" for url, _ in rows]
    assert len(rows) > 40
    assert names == [name for _, name in rows]
    out = lab.folder / "identities.jsonl"
    command = ["export", "identities", "-o", str(out), "--format", "jsonl"]
    assert main([*command, "--store", crawl.store_url]) == 0
    exported = map(json.loads, out.read_text("utf-8").splitlines())
    assert {one["url"]: one["family"] for one in exported if one["family"]} == dict(rows)


async def test_the_command_shows_families_with_their_evidence(lab: Lab, capsys: Any) -> None:
    serve(SortOrders(40), lab.main)
    crawl = await tame(lab)
    capsys.readouterr()
    assert main(["families", "--held", "--store", crawl.store_url]) == 0
    shown = capsys.readouterr().out
    assert "trap.sort holds" in shown
    assert "dry" in shown
    assert main(["families", "--store", crawl.store_url, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["families"]
    assert found[0]["rule"] == "trap.sort"
    assert found[0]["new_content"] is not None
    assert found[0]["examples"]
    assert found[0]["sources"]


async def test_duplicates_are_shown_with_what_the_pages_call_canonical(
    lab: Lab, web: ModuleType
) -> None:
    web.shop.build(lab.main, {"docs": "http://127.0.0.1:9"})
    settings = {**SETTINGS, "FRONTIER_SCOPE": {"include": [lab.main.url]}}
    crawl = await lab.crawl(Tame, settings, seeds=[lab.main / ""], patience_s=90)
    groups = [one for one in crawl.coverage.duplicates if one.same and "/products/" in one.url]
    assert groups
    for group in groups:
        assert group.candidate in group.canonicals
        assert group.url.partition("?")[0] in group.canonicals
    assert crawl.rows("SELECT count(*) FROM identity WHERE url LIKE '%/products/%?%'")[0][0] > 64


async def test_without_likeness_nothing_is_recorded_of_it(lab: Lab) -> None:
    serve(SortOrders(20), lab.main)
    settings = {**SETTINGS, "FRONTIER_LIKENESS": False}
    crawl = await lab.crawl(Tame, settings, seeds=[lab.main / ""], patience_s=60)
    assert crawl.rows("SELECT count(*) FROM likeness") == [(0,)]
    assert crawl.coverage.duplicates == ()
