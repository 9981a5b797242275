"""The reference pages, made from the code: each part is a function that returns Markdown.

What the code can say itself is read from it. What it cannot (what a state or a reason means) stands
here beside the names, and `tests/unit/test_docs.py` fails as soon as one side knows more names than
the other.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any, Final
from unittest import mock

import log_actions
import reason_codes
import scrapy_names
from sqlalchemy import Column, Table

from scrapy_frontier.commands.registry import SUBCOMMANDS, add_subcommands
from scrapy_frontier.frontier.metrics import METRICS
from scrapy_frontier.frontier.statistics import ELSEWHERE
from scrapy_frontier.frontier.statistics import MEANINGS as STATS
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.policy.health import CODES as HEALTH_CODES
from scrapy_frontier.policy.health import MEANINGS
from scrapy_frontier.policy.redaction import SHIPPED_NAMES
from scrapy_frontier.policy.retry import TABLE
from scrapy_frontier.scheduling.gates import GateState
from scrapy_frontier.scheduling.selector import GREATEST_RANK, LEAST_RANK, BandTable
from scrapy_frontier.settings import FrontierSettings, setting_name
from scrapy_frontier.states import DISPOSITIONS, TRANSITIONS, Disposition, Event, State
from scrapy_frontier.store import schema

TYPES: Final = {
    "bool": "`True` or `False`",
    "str": "text",
    "str | None": "text",
    "int": "whole number",
    "float": "number of seconds",
    "int | None": "whole number",
    "float | None": "number",
    "PlaceBudgets": "dictionary",
    "PriorityRules": "dictionary",
    "Weights": "dictionary",
    "RedactionRule": "list of names",
    "Scope": "dictionary",
    "RenderAllow": "dictionary",
    "ParameterRules": "list of rules",
    "TrapExceptions": "list of dictionaries",
    "tuple[RetryRule, ...]": "dictionary",
    "tuple[float, ...]": "list of numbers",
    "tuple[str, ...]": "list of names",
}
"""How a setting's type is called, by the annotation of its field."""

STATES: Final[Mapping[State, str]] = {
    State.DISCOVERED: "The run has met the first reference to it.",
    State.ADMITTED: "Identity and scope allow it.",
    State.SCHEDULED: "It stands in the queue of its origin.",
    State.FETCHING: "An attempt is under way.",
    State.FETCHED: "Its response is on disk; its callback has not ended.",
    State.TERMINAL: "It has come to its end, and its disposition says to which.",
    State.RETRYABLE: "Its attempt failed and another one is to follow.",
    State.DEFERRED: "Something that can pass holds it back: a time, a depth, a request that has been lost.",
    State.SUPPRESSED: "A named rule excludes it.",
}

EVENTS: Final[Mapping[Event, str]] = {
    Event.DISCOVER: "The first reference to it was seen.",
    Event.ADMIT: "The scope allows it.",
    Event.REJECT: "It cannot be requested.",
    Event.EXCLUDE: "A rule excludes it: the scope, robots.txt, a component of Scrapy.",
    Event.DEFER: "A rule holds it back for the time being.",
    Event.ENQUEUE: "It was put into the queue of its origin.",
    Event.DISPATCH: "It was handed to the downloader.",
    Event.CANCEL: "It was taken out of the queue for good.",
    Event.RESPOND: "Its response was captured.",
    Event.FAIL: "The attempt failed, or its response asks for another one.",
    Event.RECLAIM: "The process that worked on it is gone.",
    Event.GIVE_UP: "There will be no further attempt.",
    Event.PROCESS: "Its callback has ended, and all that it yielded is on disk.",
    Event.REDIRECT: "Its response led to another URL.",
    Event.NOT_MODIFY: "Its response says that nothing has changed.",
    Event.BECOME_DUE: "The time of the next attempt has come.",
    Event.RELEASE: "What held it back has passed.",
    Event.READMIT: "Another policy version, or a request that asks for it, lets it in after all.",
    Event.REVISIT: "It is asked for again on purpose: `dont_filter=True`, or an operator.",
}

DISPOSITION_MEANINGS: Final[Mapping[Disposition, str]] = {
    Disposition.SUCCEEDED: "It was fetched and its callback has ended.",
    Disposition.REDIRECTED: "It led to another URL, which is an identity of its own.",
    Disposition.NOT_MODIFIED: "It answered 304.",
    Disposition.GONE: "It answered 404 or 410.",
    Disposition.HTTP_ERROR: "It answered with another status from 400 on.",
    Disposition.FAILED: "It brought no response, and there will be no further attempt.",
    Disposition.CALLBACK_ERROR: "It was fetched, and its callback raised.",
    Disposition.CANCELLED: "It was taken out of the queue, because its request could not be made again.",
}

KINDS: Final[Mapping[ReferenceKind, str]] = {
    ReferenceKind.SEED: "`start()` of the spider",
    ReferenceKind.LINK: "a callback",
    ReferenceKind.REDIRECT: "a response that leads on",
    ReferenceKind.SITEMAP: "an entry of a sitemap",
    ReferenceKind.ERRBACK: "an errback",
    ReferenceKind.ENGINE: "a component outside callbacks, by `engine.crawl()`",
    ReferenceKind.ROBOTS: "the frontier itself: a robots.txt, to be read as rules",
    ReferenceKind.DIRECT: "whoever fetches it himself: a media pipeline, `engine.download_async()`",
}

GATES: Final[Mapping[GateState, str]] = {
    GateState.OPEN: "One more request may leave now.",
    GateState.BUSY: "As many requests as are allowed are under way.",
    GateState.INTERVAL: "The interval since the last request has not passed.",
    GateState.BACKOFF: "It is left alone until a time, because it asked for that or failed.",
    GateState.ROBOTS_PENDING: "Its robots.txt has not been read.",
    GateState.ROBOTS_UNAVAILABLE: "Its robots.txt cannot be had.",
    GateState.OWNED_ELSEWHERE: "Another worker has it.",
    GateState.CLOSED: "Nothing is sent to it in this run: it did nothing but fail, or its robots.txt is out of reach.",
}


def settings() -> str:
    """Every FRONTIER_* setting, with its type, default and meaning."""
    return "\n\n".join(
        f"```{{confval}} {setting_name(item)}\n:type: {TYPES[str(item.type)]}\n"
        f":default: {item.metadata['shown'] or _code(item.default)}\n\n{item.metadata['meaning']}\n```"
        for item in fields(FrontierSettings)
    )


def redaction() -> str:
    """The names of parameters whose values are hidden by default."""
    return ", ".join(map(_code, SHIPPED_NAMES)) + "."


def states() -> str:
    """The states and what each of them means."""
    return _table(("state", "what it means"), ((_code(one), text) for one, text in STATES.items()))


def events() -> str:
    """The events and what each of them means."""
    return _table(("event", "what happened"), ((_code(one), text) for one, text in EVENTS.items()))


def transitions() -> str:
    """The transition table: what may happen in each state, and which state follows."""
    rows = []
    for state, moves in TRANSITIONS.items():
        if state is State.ABSENT:
            continue
        by_target: dict[State, list[str]] = {}
        for event, target in moves.items():
            by_target.setdefault(target, []).append(_code(event))
        allowed = "; ".join(
            f"{', '.join(names)} → **{target}**" for target, names in by_target.items()
        )
        rows.append((f"**{state}**", allowed))
    return _table(("state", "events that are allowed → the state that follows"), rows)


def dispositions() -> str:
    """The dispositions, and the events that give them."""
    rows = [
        (
            _code(one),
            text,
            ", ".join(_code(event) for event, given in DISPOSITIONS.items() if one in given),
        )
        for one, text in DISPOSITION_MEANINGS.items()
    ]
    return _table(("disposition", "what it means", "given by"), rows)


def kinds() -> str:
    """What can emit a reference."""
    return _table(("kind", "emitted by"), ((_code(one), text) for one, text in KINDS.items()))


def gates() -> str:
    """What the gate of an origin can say."""
    rows = ((_code(one.label), text) for one, text in GATES.items())
    return _table(("gate", "what it means"), rows)


def health_decisions() -> str:
    """What can be decided about the pace of an origin."""
    rows = ((_code(code), f"{text[0].upper()}{text[1:]}.") for code, text in HEALTH_CODES.items())
    return _table(("decision", "when"), rows)


def health_outcomes() -> str:
    """What a request says of the health of its origin."""
    rows = ((_code(kind.label), f"{text[0].upper()}{text[1:]}.") for kind, text in MEANINGS.items())
    return _table(("outcome", "what it is"), rows)


def bands() -> str:
    """The priority bands and their shares."""
    table = BandTable(shares=FrontierSettings().band_shares)
    rows = [
        (str(band), _priorities(*table.ranks(band)), f"{share:g}")
        for band, share in enumerate(table.shares)
    ]
    return _table(("band", "priority", "share"), rows)


def reasons() -> str:
    """The reason codes of transitions and attempts."""
    rows = ((_code(code), text) for code, text in reason_codes.REASONS.items())
    return _table(("code", "what it means"), rows)


def rejections() -> str:
    """The rules that reject a reference."""
    rows = ((_code(code), text) for code, text in reason_codes.REJECTIONS.items())
    return _table(("rule", "what is rejected"), rows)


def exclusions() -> str:
    """The rules that exclude a URL."""
    rows = ((_code(code), text) for code, text in reason_codes.EXCLUSIONS.items())
    return _table(("rule", "what is excluded"), rows)


def holds() -> str:
    """The rules that hold a URL back."""
    rows = ((_code(code), text) for code, text in reason_codes.HOLDS.items())
    return _table(("rule", "what is held back"), rows)


def retry_rules() -> str:
    """The built-in rules of retries, in their order."""
    rows = (
        (
            _code(rule.name),
            rule.meaning,
            f"{rule.counts.value}{', unreached' if rule.is_unreached else ''}",
            "yes" if rule.holds_gate else "",
            "yes" if rule.is_unapplied else "",
        )
        for rule in TABLE
    )
    return _table(("rule", "what came", "counts as", "shuts the gate", "sent twice"), rows)


def statistics() -> str:
    """The figures in Scrapy's stats."""
    rows = ((_code(name), meaning) for name, meaning in {**STATS, **ELSEWHERE}.items())
    return _table(("stat", "what it counts"), rows)


def metrics() -> str:
    """What Prometheus is told."""
    rows = (
        (_code(metric.sample), metric.kind, ", ".join(metric.labels), metric.meaning)
        for metric in METRICS
    )
    return _table(("metric", "type", "labels", "what it counts"), rows)


def actions() -> str:
    """The actions of log records."""
    rows = (
        (
            _code(action),
            ", ".join(sorted(levels)).replace("log", "info, warning"),
            log_actions.ACTIONS[action],
        )
        for action, levels in sorted(log_actions.used().items())
    )
    return _table(("action", "level", "what the record says"), rows)


def scrapy_settings() -> str:
    """The settings of Scrapy that are read."""
    rows = ((_code(name), text) for name, text in scrapy_names.SETTINGS.items())
    return _table(("setting", "what the frontier takes from it"), rows)


def request_meta() -> str:
    """The keys of `Request.meta` that are read."""
    rows = ((_code(name), text) for name, text in scrapy_names.META.items())
    return _table(("key", "what it does"), rows)


def command(name: str) -> str:
    """What `scrapy frontier NAME -h` prints."""
    return f"```text\n{_parsers()[name].format_help().rstrip()}\n```"


def commands() -> str:
    """The subcommands, a line each."""
    return _table(
        ("command", "what it does"),
        ((f"[`{one.name}`](#{one.name})", f"{one.summary}.") for one in SUBCOMMANDS),
    )


def store() -> str:
    """The tables of the store."""
    notes = _notes()
    return "\n\n".join(
        f"**`{name}`**\n\n{notes.get(name, '')}\n\n{_columns(table)}"
        for name, table in schema.metadata.tables.items()
    )


PARTS: Final[Mapping[str, Callable[..., str]]] = {
    part.__name__: part
    for part in (
        settings,
        states,
        events,
        transitions,
        dispositions,
        kinds,
        gates,
        health_decisions,
        health_outcomes,
        bands,
        reasons,
        rejections,
        redaction,
        exclusions,
        holds,
        retry_rules,
        statistics,
        metrics,
        actions,
        scrapy_settings,
        request_meta,
        command,
        commands,
        store,
    )
}
"""What the directive `frontier-reference` can put into a page, by name."""


def _parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each subcommand."""
    with mock.patch.dict(os.environ, {"COLUMNS": "88", "NO_COLOR": "1"}):
        parser = argparse.ArgumentParser(prog="scrapy frontier")
        add_subcommands(parser, parser.prog)
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return dict(action.choices)


def _priorities(least_rank: int, greatest_rank: int) -> str:
    """A range of ranks as the priorities that Scrapy's users give; rank = -priority."""
    if greatest_rank == GREATEST_RANK:
        return f"less than {1 - least_rank}"
    if least_rank == LEAST_RANK:
        return f"{-greatest_rank} and more"
    return " to ".join(dict.fromkeys((str(-greatest_rank), str(-least_rank))))


def _notes() -> dict[str, str]:
    """What `store/schema.py` says below each table; such texts are not kept at run time."""
    body = ast.parse(inspect.getsource(schema)).body
    notes = {}
    for statement, following in pairwise(body):
        match statement, following:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                notes[name] = " ".join(text.split())
    return notes


def _columns(table: Table) -> str:
    rows = [(_code(column.name), _type(column), _remarks(column)) for column in table.columns]
    return _table(("column", "type", ""), rows)


def _type(column: Column[Any]) -> str:
    name = type(column.type).__name__
    return {"BigInteger": "integer", "Integer": "integer", "LargeBinary": "bytes"}.get(
        name, name.lower()
    )


def _remarks(column: Column[Any]) -> str:
    remarks = []
    if column.primary_key:
        remarks.append("primary key")
    remarks += [f"refers to `{key.column.table.name}`" for key in column.foreign_keys]
    if column.unique:
        remarks.append("unique")
    if column.nullable:
        remarks.append("may be null")
    return ", ".join(remarks)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(value: object) -> str:
    return f"`{value}`"
