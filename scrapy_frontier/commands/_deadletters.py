"""`frontier deadletters`: what failed for good, and `frontier requeue`: once more."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.report import layout
from scrapy_frontier.report.deadletters import DEAD, Wanted, letters, with_history
from scrapy_frontier.report.lookup import look_up
from scrapy_frontier.report.redacted import redacted
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.store.opening import open_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.report.account import DeadLetter

LIMIT: Final = 100

EPILOG: Final = (
    "Dead letters are URLs that failed for good: given up (failed), answered with an error"
    " (http_error; 404 and 410 are gone, and no dead letters), or whose callback raised"
    " (callback_error). RULE is a reason (http.503, download.reset) or the name of a retry rule."
    " Exit status: 0 there are some, 1 there are none, 2 bad usage."
)

REQUEUE_EPILOG: Final = (
    "Each gets a new visit with all its attempts, and the run goes on with them when it is resumed"
    " (the same FRONTIER_RUN or JOBDIR). Its history stays. A run that a process works on is"
    " refused. Exit status: 0 all that was asked for, 1 nothing or not all of it, 2 bad usage, or"
    " the run is being crawled."
)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rule", help="only those of this reason or retry rule")
    parser.add_argument("--origin", help="only those of this origin, as https://example.com")
    parser.add_argument(
        "--family", metavar="SHAPE", help="only those of this family, as `frontier families` has it"
    )
    parser.add_argument(
        "--disposition",
        choices=[one.label for one in DEAD],
        help="only those that ended so",
    )


def _wanted(invocation: Invocation) -> Wanted:
    options = invocation.options
    origin = options.origin.rstrip("/") if options.origin else None
    return Wanted(options.rule, origin, options.disposition, options.family)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_filters(parser)
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help=f"list so many at the most (default: {LIMIT})"
    )


def _run(invocation: Invocation) -> int:
    limit = max(0, invocation.options.limit)
    reasons: Counter[str] = Counter()
    listed: list[DeadLetter] = []
    with invocation.view() as view:
        for letter in letters(view.connection, view.run_id, _wanted(invocation)):
            reasons[letter.reason] += 1
            if len(listed) < limit:
                found = with_history(view.connection, letter, is_robots_txt=False)
                listed.append(view.shown(found))
        run_id = view.run_id
    data = {
        "run": run_id,
        "total": reasons.total(),
        "by_reason": dict(reasons.most_common()),
        "deadletters": [asdict(letter) for letter in listed],
    }
    invocation.answer(_text(run_id, reasons, listed), data)
    return 0 if reasons else 1


def _text(run_id: int, reasons: Counter[str], listed: Iterable[DeadLetter]) -> str:
    if not reasons:
        return f"Run {run_id} has no such dead letters.\n"
    rows = [
        (one.reason, one.why_not or "", one.attempts, (one.last_at or "")[:19], one.url)
        for one in listed
    ]
    lines = layout.table(["reason", "not again", "attempts", "last (UTC)", "URL"], rows)
    counted = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return (
        "\n".join([*lines, "", f"{reasons.total():,} dead letters of run {run_id}: {counted}."])
        + "\n"
    )


def _add_requeue_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", help="the URL to ask for again")
    parser.add_argument("--all", action="store_true", help="all dead letters of the run")
    _add_filters(parser)


def _run_requeue(invocation: Invocation) -> int:
    from scrapy_frontier.frontier.requeue import requeue

    wanted, options = _wanted(invocation), invocation.options
    if bool(options.url) + (not wanted.is_all) + options.all != 1:
        raise ConfigError(
            "say what to requeue: a URL, or --rule, --origin, --family, --disposition, or --all"
        )
    with open_store(invocation.store_url) as store:
        with store.reader() as connection:
            run_id = find_run(connection, options.run)
            redaction = invocation.redaction(connection)
            if options.url:
                found = look_up(connection, run_id, options.url).identities
                numbers = [one.identity_id for one in found]
                if not numbers:
                    invocation.note_unknown(options.url)
            else:
                numbers = [one.identity_id for one in letters(connection, run_id, wanted)]
        wish = {key: value for key, value in _wish(options).items() if value}
        done = redacted(requeue(store, run_id, numbers, wish), redaction)
    data = {"run": run_id, "requeued": list(done.urls), "refused": dict(done.refused)}
    lines = [f"Not requeued: {url}: {why}" for url, why in done.refused.items()]
    lines.append(f"{len(done.urls):,} URLs of run {run_id} are scheduled again.")
    invocation.answer("\n".join(lines) + "\n", data)
    return 0 if done.urls and not done.refused else 1


def _wish(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "url": options.url,
        "by_rule": options.rule,
        "by_origin": options.origin,
        "by_family": options.family,
        "by_disposition": options.disposition,
    }


COMMAND = Subcommand(
    "deadletters", "List the URLs that failed for good", _add_arguments, _run, epilog=EPILOG
)

REQUEUE = Subcommand(
    "requeue",
    "Ask for URLs of a stopped run once more",
    _add_requeue_arguments,
    _run_requeue,
    epilog=REQUEUE_EPILOG,
)
