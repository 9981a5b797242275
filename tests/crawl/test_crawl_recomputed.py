"""The report is no more than a sum of the export: each number can be had again from the exported rows alone."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from typing import Any

from crawls import Follower, Lab
from scrapy import Request

from scrapy_frontier.cli import main
from scrapy_frontier.testing import Answer, Origin, page, redirect, text

UNRESOLVED = ("discovered", "admitted", "scheduled", "fetching", "fetched", "retryable")


class Motley(Follower):
    """Follows all, raises on one page, and asks for another one twice."""

    def parse(self, response: Any) -> Any:
        if response.url.endswith("/bad"):
            raise RuntimeError("a fault of the callback")
        yield from response.follow_all(css="a")
        if response.url.endswith("/twice") and "again" not in response.meta:
            yield Request(response.url, dont_filter=True, meta={"again": True})


def motley(main_origin: Origin, other: Origin) -> None:
    """Two origins with something of everything."""
    links = ["/a", "/b", "/gone", "/bad", "/moved", "/out", "/private/x", "/twice", "/down", "/a"]
    links += ["mailto:x@y.example", "http://u:p@z.example/", *(f"/q?n={n}" for n in range(9))]
    links += [f"{other.url}/{n}" for n in range(9)]
    main_origin.on("/", page("", links))
    main_origin.on("/robots.txt", text("User-agent: *\nDisallow: /private/\n"))
    main_origin.on("/gone", text("gone", 410))
    main_origin.on("/moved", redirect("/a2"))
    main_origin.on("/out", redirect(f"{other.url}/landing"))
    main_origin.on("/down", text("down", 500))
    main_origin.on("/a2", page("a2", ["/deep"]))
    main_origin.otherwise = page("any", ["/", "/b#part"])
    other.on("/robots.txt", text("", 404))
    other.otherwise = Answer(b"x" * 500)


async def test_every_number_of_the_report_follows_from_the_export(lab: Lab) -> None:
    """Transitions, identities, attempts, edges and rejections hold all that the report says."""
    other = lab.server.origin("other")
    motley(lab.main, other)
    settings = {
        "ROBOTSTXT_OBEY": True,
        "RETRY_TIMES": 1,
        "FRONTIER_RETRY_DELAY": 0.05,
        "FRONTIER_MAX_URLS_PER_ORIGIN": 14,
        "FRONTIER_MAX_QUERIES_PER_PATH": 3,
        "DEPTH_LIMIT": 3,
        "CLOSESPIDER_ITEMCOUNT": 0,
    }
    result = await lab.crawl(Motley, settings, seeds=[lab.main / "", lab.main / "twice"])
    result.assert_sound()
    exported = Exported(lab)
    report = result.coverage.to_json()

    assert report["identities"] == exported.identities()
    assert report["identities"]["deferred"].keys() >= {"budget.origin_urls", "budget.queries"}
    told = {name: report["attempts"][name] for name in ("total", "by_outcome", "open", "retries")}
    assert told == exported.attempts()
    assert report["references"] | {"by_kind": {}} == exported.references() | {"by_kind": {}}
    assert {o["origin"]: o["identities"] for o in report["origins"]} == exported.by_origin("state")
    assert {o["origin"]: o["bytes"] for o in report["origins"]} == exported.bytes_by_origin()
    cut = {(b["rule"], b["pattern"]): b for b in report["budgets"]}
    assert {key: (b["limit"], b["deferred"], b["first_example"]) for key, b in cut.items()} == (
        exported.budgets()
    )
    assert {letter["url"] for letter in report["deadletters"]} == exported.dead_letters()
    assert {
        (c["state"], c["disposition"], c["rule"]): (c["count"]) for c in report["causes"]
    } == exported.causes()
    assert report["redirects"]["hops"] == exported.hops()
    left = report["unfinished"]
    assert left["identities"] == sum(exported.identities()["deferred"].values())
    assert sum(region["deferred"] for region in left["regions"]) == left["identities"]


class Exported:
    """The exported rows of the latest run, and what they add up to."""

    def __init__(self, lab: Lab) -> None:
        self.rows = {
            subject: _export(lab.store_url, subject)
            for subject in ("transitions", "identities", "attempts", "edges", "rejections")
        }

    def identities(self) -> dict[str, Any]:
        """How many identities stand where."""
        states = Counter(row["state"] for row in self.rows["identities"])

        def by(state: str, name: str) -> dict[str, int]:
            return dict(
                Counter(row[name] for row in self.rows["identities"] if row["state"] == state)
            )

        unresolved = {state: states[state] for state in UNRESOLVED if states[state]}
        return {
            "discovered": len(self.rows["identities"]),
            "admitted": states["terminal"] + sum(unresolved.values()),
            "suppressed": by("suppressed", "reason"),
            "deferred": by("deferred", "reason"),
            "terminal": by("terminal", "disposition"),
            "unresolved": unresolved,
        }

    def attempts(self) -> dict[str, Any]:
        """How many attempts brought what."""
        outcomes = Counter(row["outcome"] for row in self.rows["attempts"])
        return {
            "total": len(self.rows["attempts"]),
            "by_outcome": {outcome: n for outcome, n in outcomes.items() if outcome is not None},
            "open": outcomes[None],
            "retries": sum(row["event"] == "become_due" for row in self.rows["transitions"]),
        }

    def references(self) -> dict[str, Any]:
        """How many references led where. The first edge to an identity is the fresh one."""
        targets = Counter(row["target"] for row in self.rows["edges"])
        suppressed = {
            row["identity"] for row in self.rows["identities"] if row["state"] == "suppressed"
        }
        further = {target: count - 1 for target, count in targets.items()}
        excluded = sum(count for target, count in further.items() if target in suppressed)
        rejected = Counter(row["rule"] for row in self.rows["rejections"])
        return {
            "total": targets.total() + rejected.total(),
            "fresh": len(targets),
            "duplicates": sum(further.values()) - excluded,
            "excluded": excluded,
            "rejected": dict(rejected),
            "by_kind": {},
        }

    def by_origin(self, name: str) -> dict[str, dict[str, int]]:
        """Identities of each origin by one of their columns."""
        found: dict[str, Counter[str]] = {}
        for row in self.rows["identities"]:
            found.setdefault(row["origin"], Counter())[row[name]] += 1
        return {origin: dict(counts) for origin, counts in found.items()}

    def bytes_by_origin(self) -> dict[str, int]:
        """What the attempts brought from each origin."""
        origins = {row["identity"]: row["origin"] for row in self.rows["identities"]}
        found: Counter[str] = Counter(dict.fromkeys(origins.values(), 0))
        for row in self.rows["attempts"]:
            found[origins[row["identity"]]] += row["size"] or 0
        return dict(found)

    def budgets(self) -> dict[tuple[str, str | None], tuple[Any, int, str]]:
        """What each budget holds: its limit, how many identities, the first of them."""
        found: dict[tuple[str, str | None], tuple[Any, int, str]] = {}
        last = {row["identity"]: row for row in self.rows["transitions"]}
        for row in self.rows["identities"]:
            if row["state"] == "deferred" and row["reason"].startswith(("budget.", "depth.")):
                inputs = last[row["identity"]]["detail"]
                key = (row["reason"], inputs.get("pattern"))
                _, count, first = found.get(key, (0, 0, row["url"]))
                found[key] = (inputs["limit"], count + 1, first)
        return found

    def dead_letters(self) -> set[str]:
        """What failed for good."""
        ends = {"failed", "http_error", "callback_error"}
        return {row["url"] for row in self.rows["identities"] if row["disposition"] in ends}

    def causes(self) -> dict[tuple[str, str | None, str | None], int]:
        """How many identities stand where for which reason."""
        return dict(
            Counter(
                (row["state"], row["disposition"], row["reason"]) for row in self.rows["identities"]
            )
        )

    def hops(self) -> int:
        """References by redirect to identities that are not kept out."""
        kept_out = {
            row["identity"] for row in self.rows["identities"] if row["state"] == "suppressed"
        }
        return sum(
            row["kind"] == "redirect" and row["target"] not in kept_out
            for row in self.rows["edges"]
        )


def _export(store_url: str, subject: str) -> list[dict[str, Any]]:
    binary = io.BytesIO()
    out = io.TextIOWrapper(binary, write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(["export", subject, "--format", "jsonl", "--store", store_url]) == 0
    return [json.loads(line) for line in binary.getvalue().splitlines()]
