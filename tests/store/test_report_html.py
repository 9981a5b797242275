"""The report as one page of HTML: whole, escaped, the same account as the other forms."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from report_ledger import Ledger, account_of, crawl

from scrapy_frontier.cli import main
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.html import read_facts, render_html
from scrapy_frontier.report.html.facts import Facts
from scrapy_frontier.report.html.timeline import SLICES_WANTED, percentile_s, slice_width
from scrapy_frontier.states import Disposition, Event

HOSTILE = "http://a.example/<script>alert(1)</script>?q='\"><img src=x onerror=alert(2)>\x1b[31m\u202e</title>"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """A finished run in which everything happens."""
    made = Ledger()
    crawl(made)
    yield made
    made.store.close()


def facts_of(ledger: Ledger) -> Facts:
    """What the page reads beside the account."""
    with ledger.read() as connection:
        return read_facts(connection, ledger.run_id)


def page_of(ledger: Ledger) -> str:
    """The page of the ledger's run."""
    return render_html(account_of(ledger), facts_of(ledger))


def data_of(page: str, name: str) -> Any:
    """The rows of one table of the page."""
    found = re.search(
        rf'data-table="{name}">.*?<script type="application/json">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None, f"no table {name}"
    return json.loads(found[1])


def test_the_first_screen_says_what_the_text_says(ledger: Ledger) -> None:
    """Asked, covered, not covered, whether it adds up: in the words of the text report."""
    page = page_of(ledger)
    assert "Adds up" in page
    assert "It adds up: all" in page
    assert "http://a.example/" in page


def test_an_account_that_does_not_add_up_says_so(ledger: Ledger) -> None:
    """A row that was tampered with shows on the first screen."""
    ledger.tamper("DELETE FROM current WHERE identity_id = 1")
    assert "Does not add up" in page_of(ledger)


def test_broken_links_name_the_pages_that_carry_them(ledger: Ledger) -> None:
    """A URL that failed for good, with the page it is linked from."""
    (broken,) = facts_of(ledger).graph.broken
    assert broken.url == "http://a.example/broken"
    assert (broken.pages, broken.carried_by) == (1, ("http://a.example/",))


def test_a_url_that_only_a_sitemap_names_is_orphaned(ledger: Ledger) -> None:
    """Links and redirects reach; a sitemap does not."""
    before = facts_of(ledger).graph
    ledger.refer("http://a.example/lost", kind=ReferenceKind.SITEMAP)
    after = facts_of(ledger).graph
    assert before.orphaned == 0
    assert after.orphans == ("http://a.example/lost",)
    assert after.reachable == before.reachable


def test_a_redirect_is_no_link_away() -> None:
    """Depths count links, at least; what a redirect leads to is as far as the redirect."""
    ledger = Ledger()
    page = ledger.fetch(ledger.seed("http://a.example/"))
    moved = ledger.refer("http://a.example/moved", page=page)
    ledger.finish()
    hop = ledger.fetch(moved, 301)
    target = ledger.refer("http://a.example/target", page=hop, kind=ReferenceKind.REDIRECT)
    last = ledger.fetch(target)
    ledger.refer("http://a.example/beyond", page=last)
    facts = facts_of(ledger)
    assert facts.graph.by_depth == {0: 1, 1: 2, 2: 1}
    (chain,) = facts.graph.chains
    assert chain.urls == ("http://a.example/moved", "http://a.example/target")


def test_a_circle_of_redirects_ends(ledger: Ledger) -> None:
    """A chain that comes back to itself is told once."""
    there, back = ledger.seed("http://a.example/there"), ledger.seed("http://a.example/back")
    for page, target in ((there, back), (back, there)):
        lease = ledger.dispatch(page)
        ledger.emit(ledger.respond(lease, 302), targets=(target,), kind=ReferenceKind.REDIRECT)
        ledger.process(lease, Disposition.REDIRECTED, Event.REDIRECT, "http.302")
    assert all(len(chain.urls) <= 3 for chain in facts_of(ledger).graph.chains)


def test_attempts_of_odd_urls_can_be_found(ledger: Ledger) -> None:
    """Both attempts of the URL that failed, and none of those that succeeded at once."""
    odd = {one.url: one for one in facts_of(ledger).odd}
    assert odd["http://a.example/broken"].attempts == 2
    assert "http://a.example/" not in odd


def test_every_attempt_stands_in_one_slice(ledger: Ledger) -> None:
    """The timeline adds up to the account."""
    slices = facts_of(ledger).timeline.slices
    assert sum(sum(one.by_class.values()) for one in slices) == account_of(ledger).attempts.total


@pytest.mark.parametrize("span_ms", [0, 1, 59_999, 3_600_000, 86_400_000, 10**11, 10**13])
def test_no_span_makes_too_many_slices(span_ms: int) -> None:
    """Also of a run of years."""
    assert span_ms // slice_width(span_ms) <= SLICES_WANTED


def test_a_percentile_is_a_latency_that_was_seen() -> None:
    """The smallest one that so many do not exceed."""
    assert percentile_s([], 50) is None
    assert percentile_s([1000], 95) == 1.0
    assert percentile_s(list(range(1, 101)), 95) == 0.095


def test_text_of_the_web_is_text(ledger: Ledger) -> None:
    """No tag, no end of an element and no control character of a URL reaches the page."""
    ledger.give_up(ledger.dispatch(ledger.seed(HOSTILE)))
    page = page_of(ledger)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    (row,) = [row for row in data_of(page, "deadletters") if "alert" in row[0]]
    assert "<script>alert(1)</script>" in row[0]
    assert "\\x1b[31m\\u202e" in row[0]


def test_the_page_asks_nobody_for_anything(ledger: Ledger) -> None:
    """No address stands where a browser would load it from."""
    page = page_of(ledger)
    assert not re.findall(r'(?:src|href|action|xlink:href)="(?!#|data:,)[^"]*"', page)
    assert "url(" not in page
    assert "@import" not in page


def test_thousands_of_origins_stay_a_small_page(ledger: Ledger) -> None:
    """All rows are there as data, few as elements."""
    for number in range(1500):
        ledger.exclude(f"http://host{number}.example/", "scope.origin")
    page = page_of(ledger)
    assert len(data_of(page, "origins")) == 1502
    assert page.count("<tr>") < 400
    assert len(page) < 400_000


def test_an_empty_run_has_a_page() -> None:
    """Nothing found, nothing attempted."""
    assert "Nothing was attempted." in page_of(Ledger())


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the file that -o names, else to standard output."""
    ledger = Ledger(tmp_path / "f.db")
    crawl(ledger)
    ledger.store.close()
    command = ["report", "--store", ledger.url, "--format", "html"]
    assert main([*command, "-o", str(tmp_path / "report.html")]) == 0
    assert main(command) == 0
    out, _ = capsys.readouterr()
    assert out == (tmp_path / "report.html").read_text("utf-8")
    assert main([*command, "-o", str(tmp_path / "none" / "report.html")]) == 2


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


SCROLLING = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  return [...document.querySelectorAll(".wide, section")].filter(
    (one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML.slice(0, 200));
}"""
"""Tables, charts and sections of which a part is out of sight, with all that can be opened opened."""


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path")
def test_in_a_browser_it_sorts_filters_and_is_quiet(ledger: Ledger, tmp_path: Path) -> None:
    """No error, no request but the file itself; tables answer the keyboard; nothing is wider than a phone."""
    api = pytest.importorskip("playwright.sync_api")
    ledger.give_up(ledger.dispatch(ledger.seed(HOSTILE)))
    for number in range(120):
        ledger.exclude(f"http://host{number}.example/", "scope.origin")
    place = tmp_path / "report.html"
    place.write_text(page_of(ledger), "utf-8")

    def look() -> tuple[list[str], list[str], dict[str, Any]]:
        with api.sync_playwright() as play:
            browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
            complaints: list[str] = []
            requests: list[str] = []
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("dialog", lambda dialog: complaints.append(dialog.message))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(place.as_uri())
            origins = page.locator('[data-table="origins"]')
            seen: dict[str, Any] = {"width": page.evaluate("document.documentElement.scrollWidth")}
            seen["scrolling"] = page.evaluate(SCROLLING)
            seen["rows"] = origins.locator("tbody tr").count()
            seen["label"] = origins.locator("tbody td").first.get_attribute("data-label")
            origins.locator("th button").first.press("Enter")
            seen["sort"] = origins.locator("th").first.get_attribute("aria-sort")
            seen["first"] = origins.locator("tbody td").first.inner_text()
            origins.locator("input").fill("host119")
            seen["found"] = origins.locator("tbody tr").count()
            page.set_viewport_size({"width": 1280, "height": 900})
            page.reload()
            seen["rows of a desk"] = origins.locator("tbody tr").count()
            seen["broad width"] = page.evaluate("document.documentElement.scrollWidth")
            browser.close()
            return complaints, requests, seen

    # Its calls wait in a loop of their own, which this thread has one of already.
    with ThreadPoolExecutor(1) as threads:
        complaints, requests, seen = threads.submit(look).result()
    assert complaints == []
    assert requests == [place.as_uri()] * 2  # it was loaded twice
    assert seen == {
        "width": 390,
        "scrolling": [],
        "rows": 10,
        "label": "Origin",
        "rows of a desk": 50,
        "broad width": 1280,
        "sort": "ascending",
        "first": "http://a.example",
        "found": 1,
    }
