"""Whole crawls of a link-rich site: pages per CPU second and per second, each variant in a fresh
process.

Variants take turns (A B C A B C ...), so that what else the machine does falls on all of them; a
ratio is taken within one turn. Every variant must fetch every page of the site exactly once, or the
benchmark fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks import crawling, fresh
from benchmarks.figures import Spread, Table, ratios
from benchmarks.fresh import Figures, MeasurementError
from benchmarks.site import Plan, running
from benchmarks.spiders import SPIDERS
from benchmarks.variants import KNOWN, WATCHED, add_variant_option
from benchmarks.watchers import watching

QUICK = ["--pages", "300", "--reps", "1", "--concurrency", "16"]


def add_options(parser: argparse.ArgumentParser, variants: Sequence[str] = KNOWN) -> None:
    """The options of this benchmark."""
    add_variant_option(parser, variants)
    parser.add_argument(
        "--pages", type=int, default=3000, help="pages of the site, all of them fetched"
    )
    parser.add_argument("--links", type=int, default=20, help="links on a page")
    parser.add_argument(
        "--origins", type=int, default=500, help="origins of the site, two to an address"
    )
    parser.add_argument("--reps", type=int, default=5, help="turns; medians are taken over them")
    parser.add_argument(
        "--spider", choices=sorted(SPIDERS), default="follow", help="kind of spider"
    )
    parser.add_argument(
        "--concurrency",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[16, 64],
        metavar="N,N",
        help="values of CONCURRENT_REQUESTS",
    )
    parser.add_argument(
        "--latency-ms", type=float, default=0.0, help="time the site takes to answer"
    )


def run(options: argparse.Namespace) -> list[Table]:
    """One table for each concurrency."""
    plan = Plan(
        pages=options.pages,
        origins=min(options.origins, options.pages),
        links=options.links,
        latency_s=options.latency_ms / 1000,
    )
    return [_compare(plan, concurrency, options) for concurrency in options.concurrency]


def _compare(plan: Plan, concurrency: int, options: argparse.Namespace) -> Table:
    turns = [
        {
            variant: _crawl_once(plan, variant, concurrency, options.spider, options.folder)
            for variant in options.variants
        }
        for _ in range(options.reps)
    ]
    return _table(plan, concurrency, options, turns)


def _crawl_once(
    plan: Plan, variant: str, concurrency: int, spider: str, parent: Path | None
) -> Figures:
    with (
        fresh.scratch_folder(parent) as folder,
        running(plan) as site,
        watching(folder) if variant == WATCHED else nullcontext() as seen,
    ):
        figures = fresh.measure(
            "benchmarks.crawl:measure",
            spider=spider,
            variant=variant,
            folder=str(folder),
            settings={"CONCURRENT_REQUESTS": concurrency},
            start_url=f"{site.bases[0]}/page/0",
        )
    figures["variant"] = variant
    figures["site"] = site.counts
    figures["seen"] = dict(seen or {})
    _check(plan, figures)
    return figures


def measure(spider: str, start_url: str, **arguments: Any) -> Figures:
    """Runs in the measuring process."""
    return crawling.crawl(SPIDERS[spider], start_urls=[start_url], **arguments)


def _check(plan: Plan, figures: Figures) -> None:
    site = figures["site"]
    found = (site["distinct"], site["requests"], figures["responses"])
    if found != (plan.pages,) * 3 or figures["errors"]:
        raise MeasurementError(
            f"{figures['variant']}: the site has {plan.pages} pages and served {found[0]} of them"
            f" in {found[1]} requests; the crawl counts {found[2]} responses"
            f" and {figures['errors']} errors"
        )


def _table(
    plan: Plan, concurrency: int, options: argparse.Namespace, turns: list[dict[str, Figures]]
) -> Table:
    table = Table(
        f"crawl: {plan.pages} pages, {plan.links} links a page, {plan.origins} origins,"
        f" CONCURRENT_REQUESTS={concurrency}, spider {options.spider}, {options.reps} turns",
        ("variant", "pages/CPU s", "ratio", "pages/s", "ratio", "max RSS MB", "start-up CPU s"),
    )
    base = options.variants[0]
    for variant in options.variants:
        per_cpu = {name: [plan.pages / t[name]["cpu_s"] for t in turns] for name in (variant, base)}
        per_wall = {
            name: [plan.pages / t[name]["wall_s"] for t in turns] for name in (variant, base)
        }
        table.add(
            variant,
            Spread.of(per_cpu[variant]).text(0),
            ratios(per_cpu[variant], per_cpu[base]).text(2),
            Spread.of(per_wall[variant]).text(0),
            ratios(per_wall[variant], per_wall[base]).text(2),
            Spread.of(t[variant]["max_rss_bytes"] / 1e6 for t in turns).text(0),
            Spread.of(t[variant]["startup_cpu_s"] for t in turns).text(2),
        )
    site_cpu = Spread.of(t[base]["site"]["cpu_s"] / t[base]["wall_s"] for t in turns)
    table.notes.append(f"the site kept {site_cpu.median:.0%} of a core busy meanwhile ({base})")
    for variant in options.variants:
        if seen := turns[-1][variant]["seen"]:
            table.notes.append(f"{variant}: seen in the last turn {seen}")
    table.data.extend(figures for turn in turns for figures in turn.values())
    return table
