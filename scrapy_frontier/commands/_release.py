"""`frontier release`: let go what rules hold back, so that a resumed run fetches it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report.layout import counted
from scrapy_frontier.report.lookup import look_up
from scrapy_frontier.store.opening import open_store

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.frontier.release import Released, Wanted

EPILOG: Final = (
    "Name one thing: a URL, which is let go whatever rule holds it back; a family, as `frontier"
    " families` writes it; an origin, with all that rules about traps hold on it; or a rule, as the"
    " report writes it (trap.sort, budget.origin_urls), with all that it holds, or what it holds in"
    " the family or on the origin named beside it. What traps held is not held again in this run;"
    " budgets hold for what is discovered from then on. The run must not be at work; resume it, and what was let"
    " go is fetched. Exit status: 0 something was let go, 1 nothing of it is held back, 2 bad usage."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", nargs="?", metavar="URL")
    parser.add_argument("--family", metavar="SHAPE", help="the family with this shape")
    parser.add_argument("--origin", metavar="ORIGIN", help="this origin, or the family there only")
    parser.add_argument("--rule", metavar="RULE", help="what this rule holds, a budget's too")


def _run(invocation: Invocation) -> int:
    from scrapy_frontier.frontier.release import release

    options = invocation.options
    is_group = any((options.family, options.origin, options.rule))
    if (options.url is not None) == is_group:
        raise ConfigError(
            "name a URL, or --family, --origin or --rule (together: what all of them name)"
        )
    with invocation.view() as view:
        run_id = view.run_id
        wanted = _wanted(invocation, view.connection, run_id)
        url = view.shown(options.url)
    if wanted is None:
        invocation.note_unknown(options.url)
        invocation.answer(f"Run {run_id} does not know {url}.\n", {"run": run_id, "identities": 0})
        return 1
    with open_store(invocation.store_url) as store:
        found = release(store, run_id, wanted)
    invocation.answer(_text(found), asdict(found))
    return 0 if found.identities or found.families else 1


def _wanted(invocation: Invocation, connection: object, run_id: int) -> Wanted | None:
    from scrapy_frontier.frontier.release import Wanted

    options = invocation.options
    if options.url is None:
        origin = options.origin and options.origin.rstrip("/")
        return Wanted(origin, options.family, rule=options.rule)
    found = look_up(connection, run_id, options.url)  # type: ignore[arg-type]
    numbers = tuple(one.identity_id for one in found.identities)
    return Wanted(identities=numbers) if numbers else None


def _text(found: Released) -> str:
    if not found.identities and not found.families:
        return f"Nothing of that is held back in run {found.run}.\n"
    urls = counted(found.identities, "URL")
    lines = [f"Let go {urls} of run {found.run}, under policy version {found.policy_version}."]
    lines += [f"Not held again in this run: {name}" for name in found.families]
    return "\n".join([*lines, "Resume the run to have them fetched."]) + "\n"


COMMAND = Subcommand(
    "release",
    "Let go what is held back: a URL, a family or an origin",
    _add_arguments,
    _run,
    epilog=EPILOG,
)
