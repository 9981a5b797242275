"""FRONTIER_* settings: each is read once, checked, and refused by name with what it must be."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings
from sqlalchemy import make_url

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.settings import PREFIX, FrontierSettings, setting_name, store_url

NAMES = {setting_name(item) for item in fields(FrontierSettings)}


def read(**values: Any) -> FrontierSettings:
    """The settings of a project with these values."""
    return FrontierSettings.from_settings(Settings(values, priority="project"))


def test_defaults_are_valid_as_they_stand() -> None:
    """A project that sets nothing gets the defaults, each of which its own reader accepts."""
    assert read() == FrontierSettings()
    for item in fields(FrontierSettings):
        if isinstance(item.default, (bool, int, float, str)):
            assert item.metadata["read"](item.default) == item.default


def test_every_setting_has_a_meaning_and_a_name() -> None:
    """The table of the documentation is made from the fields: none is without a sentence."""
    for item in fields(FrontierSettings):
        assert setting_name(item).startswith(PREFIX)
        assert setting_name(item) == setting_name(item).upper()
        assert item.metadata["meaning"].rstrip().endswith(".")
        assert callable(item.metadata["read"])


def test_none_is_the_default() -> None:
    """A setting that is None is as if it were not set, as in Scrapy."""
    assert read(**dict.fromkeys(NAMES)) == FrontierSettings()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("FRONTIER_STOER", "FRONTIER_STORE"),
        ("FRONTIER_KNOWN_URL", "FRONTIER_KNOWN_URLS"),
        ("FRONTIER_MAX_LAG_S", "FRONTIER_MAX_LAG"),
    ],
)
def test_unknown_setting_is_refused_with_the_nearest(name: str, near: str) -> None:
    """A mistyped setting would silently do nothing: it is an error that names the right one."""
    with pytest.raises(ConfigError, match=rf"^{name} is not a setting .*did you mean {near}\?$"):
        read(**{name: 1})


def test_unknown_setting_without_a_near_one() -> None:
    """Then all known ones are listed."""
    with pytest.raises(ConfigError) as caught:
        read(FRONTIER_XYZZYQ=1)
    assert all(name in str(caught.value) for name in NAMES)


def test_settings_of_others_are_none_of_ours() -> None:
    """Only the prefix with its underscore is ours."""
    assert read(FRONTIERS=1, MY_FRONTIER_STORE=2) == FrontierSettings()


WRONG: list[tuple[str, Any, str]] = [
    ("FRONTIER_ENABLED", "perhaps", "True or False"),
    ("FRONTIER_ENABLED", 2, "True or False"),
    ("FRONTIER_STORE", 5, "non-empty string"),
    ("FRONTIER_STORE", "  ", "non-empty string"),
    ("FRONTIER_RUN", ["a"], "non-empty string"),
    ("FRONTIER_SYNCHRONOUS", "OFF", "FULL or NORMAL"),
    ("FRONTIER_WINDOW", 0, "at least 1"),
    ("FRONTIER_WINDOW", -5, "at least 1"),
    ("FRONTIER_WINDOW", 1.5, "whole number"),
    ("FRONTIER_WINDOW", "many", "many"),
    ("FRONTIER_HOT_ORIGINS", "", "''"),
    ("FRONTIER_KNOWN_URLS", [1], r"\[1\]"),
    ("FRONTIER_MAX_QUEUE", 0, "at least 1"),
    ("FRONTIER_MAX_QUEUE", float("inf"), "inf"),
    ("FRONTIER_MAX_LAG", 0, "above 0"),
    ("FRONTIER_MAX_LAG", "nan", "above 0"),
    ("FRONTIER_MAX_LAG", float("inf"), "above 0"),
    ("FRONTIER_BAND_SHARES", [1, 2, 3], "7 numbers"),
    ("FRONTIER_BAND_SHARES", [1, 1, 1, 1, 1, 1, 0], "above 0"),
    ("FRONTIER_BAND_SHARES", "1,1,1,1,1,1,x", "x"),
    ("FRONTIER_TRUSTED_MODULES", 5, "list of names"),
    ("FRONTIER_TRUSTED_MODULES", [1], "list of names"),
    ("FRONTIER_SCOPE", {"allow": []}, "allow"),
    ("FRONTIER_SCOPE", 5, "dictionary"),
    ("FRONTIER_PARAMETER_RULES", [{"parameter": "a"}], "parameter"),
    ("FRONTIER_LINK_INVENTORY", "x", "True or False"),
]


@pytest.mark.parametrize(("name", "value", "part"), WRONG)
def test_wrong_value_names_setting_value_and_remedy(name: str, value: Any, part: str) -> None:
    """The message alone tells an operator which line to change, and to what."""
    with pytest.raises(ConfigError, match=rf"(?s)^{name}.*{part}"):
        read(**{name: value})


RIGHT: list[tuple[str, Any, Any]] = [
    ("FRONTIER_ENABLED", "false", False),
    ("FRONTIER_ENABLED", "1", True),
    ("FRONTIER_ENABLED", 0, False),
    ("FRONTIER_STORE", " sqlite:///a.db ", "sqlite:///a.db"),
    ("FRONTIER_RUN", "", None),
    ("FRONTIER_SYNCHRONOUS", "normal", "NORMAL"),
    ("FRONTIER_WINDOW", "50", 50),
    ("FRONTIER_WINDOW", 50.0, 50),
    ("FRONTIER_MAX_LAG", "2.5", 2.5),
    ("FRONTIER_BAND_SHARES", "7,6,5,4,3,2,1", (7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0)),
    ("FRONTIER_TRUSTED_MODULES", "shop, news", ("shop", "news")),
    ("FRONTIER_TRUSTED_MODULES", ["shop"], ("shop",)),
    ("FRONTIER_LINK_INVENTORY", "True", True),
]


@pytest.mark.parametrize(("name", "value", "expected"), RIGHT)
def test_texts_of_the_command_line_are_read(name: str, value: Any, expected: Any) -> None:
    """`-s NAME=VALUE` gives texts; they mean what the Python values mean."""
    field = name.removeprefix(PREFIX).lower()
    found = read(**{name: value})
    assert getattr(found, field, getattr(found, f"{field}_s", None)) == expected


def test_scope_and_rules_from_the_command_line() -> None:
    """Dictionaries and lists may be given as JSON, as Scrapy's own settings take them."""
    scope = {"include": ["https://docs.example.com/"]}
    rules = ["tracking"]
    from_text = read(FRONTIER_SCOPE=json.dumps(scope), FRONTIER_PARAMETER_RULES=json.dumps(rules))
    from_values = read(FRONTIER_SCOPE=scope, FRONTIER_PARAMETER_RULES=rules)
    for place in ("https://docs.example.com/a", "https://other.example.com/"):
        origin = place[: place.index("/", 8)]
        assert from_text.scope.decide(place, origin) == from_values.scope.decide(place, origin)
    assert len(from_text.parameter_rules.rules) == len(from_values.parameter_rules.rules) == 1


# Where the store is


def test_store_is_what_the_setting_says() -> None:
    """FRONTIER_STORE goes before everything else."""
    settings = Settings({"FRONTIER_STORE": "sqlite:///x.db", "JOBDIR": "job"})
    assert store_url(settings) == "sqlite:///x.db"


@pytest.mark.parametrize("name", ["job", "a job", "50%", "what?", "j#1", "ünï"])
def test_store_stands_in_the_jobdir(tmp_path: Path, name: str) -> None:
    """Without a store of its own, a job keeps its ledger in its folder, whatever that is called."""
    folder = tmp_path / name
    url = store_url(Settings({"JOBDIR": str(folder)}))
    assert make_url(url).database == str(folder / "frontier.db")


def test_store_stands_in_the_project_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project without JOBDIR has one store, in `.scrapy`; nothing is made by asking."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scrapy.utils.project.inside_project", lambda: False)
    url = store_url(Settings())
    assert Path(str(make_url(url).database)).name == "frontier.db"
    assert list(tmp_path.iterdir()) == []
