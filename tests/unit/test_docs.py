"""The documentation names what the code has, and what it shows works."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType
from typing import Any

import pytest
from documentation import DOCS, FENCE, PAGES, ROOT, blocks
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from scrapy_frontier import failpoints
from scrapy_frontier.addon import Addon
from scrapy_frontier.commands.registry import SUBCOMMANDS
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.frontier.metrics import METRICS
from scrapy_frontier.frontier.statistics import ELSEWHERE, MEANINGS
from scrapy_frontier.identity import REJECTION_RULES
from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.scheduling.gates import GateState
from scrapy_frontier.settings import FrontierSettings, setting_name
from scrapy_frontier.states import Disposition, Event, State
from scrapy_frontier.store import schema

SETTING = re.compile(r"\bFRONTIER_[A-Z_]+\b")


@pytest.fixture(scope="module")
def extensions() -> Iterator[None]:
    """What makes the reference is no installed package: its folder goes on the path for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "_ext"))
        yield
        for name in (
            "reference",
            "log_actions",
            "reason_codes",
            "scrapy_names",
            "transition_diagram",
        ):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def reference(extensions: None) -> ModuleType:
    import reference

    return reference


def names_in(markdown: str) -> set[str]:
    """What stands in code marks."""
    return set(re.findall(r"`([^`]+)`", markdown))


def assigned(source: str) -> dict[str, Any]:
    """The settings that a block assigns."""
    return {
        statement.targets[0].id: eval(compile(ast.Expression(statement.value), "block", "eval"))
        for statement in ast.parse(source).body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


def test_every_setting_is_in_the_reference(reference: ModuleType) -> None:
    """The page of settings has an entry for every FRONTIER_* setting."""
    found = set(re.findall(r"\{confval\} (\w+)", reference.settings()))
    assert found == {setting_name(item) for item in fields(FrontierSettings)}


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("states", [state.label for state in State if state is not State.ABSENT]),
        ("events", [event.label for event in Event]),
        ("dispositions", [disposition.label for disposition in Disposition]),
        ("kinds", [kind.label for kind in ReferenceKind]),
        ("gates", [gate.label for gate in GateState]),
        ("rejections", REJECTION_RULES),
        ("statistics", [*MEANINGS, *ELSEWHERE]),
        ("metrics", [metric.sample for metric in METRICS]),
        ("commands", [command.name for command in SUBCOMMANDS]),
        ("store", [table.name for table in schema.metadata.sorted_tables]),
    ],
)
def test_every_name_is_in_the_reference(reference: ModuleType, part: str, names: Any) -> None:
    """No state, event, disposition, kind, gate, rule, stat, command or table is left out."""
    assert set(names) <= names_in(reference.PARTS[part]())


def test_every_command_has_a_section(reference: ModuleType) -> None:
    """The page of commands has a section for each, with what `-h` prints."""
    page = (DOCS / "reference" / "commands.md").read_text("utf-8")
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == [one.name for one in SUBCOMMANDS]
    assert re.findall(r"command (\w+)$", page, re.MULTILINE) == [one.name for one in SUBCOMMANDS]
    for command in SUBCOMMANDS:
        assert f"usage: scrapy frontier {command.name}" in reference.command(command.name)


def test_every_reason_is_in_the_reference(extensions: None) -> None:
    """What the code writes as a reason is explained, and nothing is explained that it does not write."""
    import reason_codes

    parts = ("REASONS", "HOLDS", "EXCLUSIONS", "REJECTIONS")
    known = [code for part in parts for code in getattr(reason_codes, part)]
    patterns = {reason_codes.pattern(code) for code in known}
    assert reason_codes.used() <= patterns
    source = "".join(path.read_text("utf-8") for path in (ROOT / "scrapy_frontier").rglob("*.py"))
    assert [code for code in known if code.partition("{")[0].rstrip(".") not in source] == []


def test_every_log_record_has_an_action_that_is_in_the_reference(extensions: None) -> None:
    """Each call of a logger in the source passes one, and the table has all of them and no other."""
    import log_actions

    assert set(log_actions.used()) == set(log_actions.ACTIONS)
    (call,) = ast.parse("logger.info('x', extra={'other': 1})").body
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    with pytest.raises(ValueError, match="without extra"):
        list(log_actions._actions(call.value, "x.py:1"))


def test_all_that_is_read_of_scrapy_is_in_the_reference(extensions: None) -> None:
    """Every setting of Scrapy and every key of meta that the code reads is on its page."""
    import scrapy_names

    assert scrapy_names.used_settings() == set(scrapy_names.SETTINGS)
    assert scrapy_names.used_meta() <= set(scrapy_names.META)


def test_the_drawing_shows_every_move(extensions: None) -> None:
    """The drawing has a line for each move of the transition table, and all its events."""
    import transition_diagram

    drawing = transition_diagram.svg()
    moves = transition_diagram.moves()
    assert drawing.count("<polyline") == len(moves)
    written = {
        name for text in re.findall(r">([\w, ]+)</text>", drawing) for name in text.split(", ")
    }
    assert written == {event.label for event in Event if event is not Event.DISCOVER} | {
        state.label for state in State if state is not State.ABSENT
    }


def test_pages_name_no_setting_that_does_not_exist() -> None:
    """A FRONTIER_* name in the prose is a setting, or a variable of the environment that tests read."""
    known = {setting_name(item) for item in fields(FrontierSettings)}
    known |= {failpoints.VARIABLE, failpoints.TRACE_VARIABLE, "FRONTIER_TEST_POSTGRESQL"}
    for page in PAGES:
        assert set(SETTING.findall(page.read_text("utf-8"))) <= known, page


@pytest.mark.parametrize("page", ["README.md", "example_project/README.md", "benchmarks/README.md"])
def test_links_lead_somewhere(page: str) -> None:
    """A link to a file leads to one. (Links between the pages of docs/ are checked by its build.)"""
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


@pytest.mark.parametrize("source", blocks("json"))
def test_settings_in_json_are_accepted(source: str) -> None:
    """A scope suggestion that a page shows is read as settings without complaint."""
    FrontierSettings.from_settings(Settings(json.loads(source)))


@pytest.mark.parametrize("source", blocks("yaml"))
def test_alerts_ask_for_metrics_that_exist(source: str) -> None:
    """A metric in an alert is one of the table."""
    named = set(re.findall(r"frontier_\w+", source))
    assert named
    assert named <= {metric.sample for metric in METRICS}


@pytest.mark.parametrize("source", blocks("console"))
def test_commands_exist(source: str, reference: ModuleType) -> None:
    """A command that a page shows is one, with options that it has."""
    parsers = reference._parsers()
    for line in re.findall(r"^\$ scrapy(?:-| )frontier (.*)$", source, re.MULTILINE):
        name, *arguments = re.split(r" (?:>|\|\|) ", line)[0].replace("'", "").split()
        parsers[name].parse_args(arguments)


def test_the_readme_turns_it_on() -> None:
    """The one line of the README, taken into a project's settings, puts the frontier into its place."""
    (line,) = {
        line
        for line in (ROOT / "README.md").read_text("utf-8").splitlines()
        if line.startswith("ADDONS = ")
    }
    settings = Settings(assigned(line))
    for addon in settings["ADDONS"]:
        load_object(addon)().update_settings(settings)
    assert settings["SCHEDULER"] == "scrapy_frontier.scheduler.Scheduler"


def test_spelled_out_is_what_the_add_on_does() -> None:
    """The settings of "Turn it on" are those that the add-on makes, component by component."""
    page = (DOCS / "turn-it-on.md").read_text("utf-8")
    (source,) = (text for language, text in FENCE.findall(page) if "SCHEDULER = " in text)
    by_hand, by_addon = Settings(assigned(source)), Settings()
    Addon().update_settings(by_addon)
    assert by_hand["SCHEDULER"] == by_addon["SCHEDULER"]
    assert by_hand["DOWNLOAD_SLOTS"] == by_addon.getdict("DOWNLOAD_SLOTS")
    for name in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS"):
        assert loaded(by_hand[name]) == loaded(by_addon[name]), name


def loaded(components: Any) -> dict[Any, Any]:
    """Components by their classes, however they are spelled."""
    return {load_object(key): order for key, order in components.items()}


def test_an_unknown_setting_would_be_found() -> None:
    """The checks above stand on this: a misspelled setting is refused."""
    with pytest.raises(ConfigError, match="FRONTIER_STORES is not a setting"):
        FrontierSettings.from_settings(Settings({"FRONTIER_STORES": "x"}))
