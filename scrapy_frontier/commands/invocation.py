"""What every subcommand is given: its options, the settings, the store, and where to write."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_frontier.commands.liveness import is_live
from scrapy_frontier.commands.output import write
from scrapy_frontier.errors import ConfigError
from scrapy_frontier.policy.redaction import DIGEST, NOTHING, SETTING, RedactionRule
from scrapy_frontier.report.evidence import place_of
from scrapy_frontier.report.redacted import T, redacted
from scrapy_frontier.report.runs import find_run, namesakes
from scrapy_frontier.settings import store_url
from scrapy_frontier.store.artifacts import open_artifacts
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.redaction import redaction_in

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from scrapy.settings import BaseSettings
    from sqlalchemy import Connection

    from scrapy_frontier.policy.redaction import Redaction
    from scrapy_frontier.store.artifacts import Artifacts
    from scrapy_frontier.store.opening import Store


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand: `run` returns the exit status; `formats` are those it can answer in; `epilog`
    closes its help.
    """

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Invocation], int]
    formats: tuple[str, ...] = ("text", "json")
    epilog: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """One run in one snapshot of a store, and how its URLs are shown."""

    connection: Connection
    run_id: int
    is_live: bool | None
    redaction: Redaction

    def shown(self, value: T) -> T:
        """A value without what is hidden in its URLs."""
        return redacted(value, self.redaction)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a subcommand."""

    options: argparse.Namespace
    settings: BaseSettings

    @property
    def store_url(self) -> str:
        """The store of `--store`, else the one that a crawl with these settings writes to."""
        if self.options.store:
            return str(self.options.store)
        try:
            return store_url(self.settings)
        except ValueError as exc:
            raise ConfigError(f"FRONTIER_STORE: {exc}") from exc

    @property
    def is_json(self) -> bool:
        """Whether the answer is wanted as JSON."""
        return bool(self.options.format == "json")

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store, for reading. Raises `StoreError` where it cannot be."""
        with open_store(self.store_url, read_only=True) as store:
            yield store

    def redaction_rule(self) -> RedactionRule | None:
        """What `--no-redact` or FRONTIER_REDACT say; None where neither does. Raises `ConfigError`."""
        if self.options.no_redact:
            return NOTHING
        setting = self.settings.get(SETTING)
        try:
            return None if setting is None else RedactionRule.from_setting(setting)
        except ConfigError as exc:
            raise ConfigError(f"{SETTING}: {exc}") from exc

    def redaction(self, connection: Connection) -> Redaction:
        """How URLs of this store are shown: as is said here, else as its latest crawl was told to."""
        return redaction_in(connection, self.redaction_rule())

    def artifacts(self, store: Store) -> Artifacts:
        """The evidence of a store: where FRONTIER_ARTIFACTS says, else where its latest session kept it."""
        return open_artifacts(self._place(store), store.path)

    def artifacts_if_any(self, store: Store) -> Artifacts | None:
        """The evidence of a store, None where it has no place for any."""
        place = self._place(store)
        return open_artifacts(place, store.path) if place or store.path else None

    def _place(self, store: Store) -> str | None:
        named = self.settings.get("FRONTIER_ARTIFACTS")
        if named:
            return str(named)
        with store.reader() as connection:
            return place_of(connection)

    @contextmanager
    def view(self, wanted: str | None = None) -> Iterator[View]:
        """The run that `wanted`, else `--run`, names, else the latest, in one snapshot."""
        wanted = wanted if wanted is not None else self.options.run
        with self.store() as store:
            with store.reader() as connection:
                run_id = find_run(connection, wanted)
                others = namesakes(connection, run_id, wanted) if wanted is not None else ()
            if others:
                listed = ", ".join(map(str, others))
                self.note(f"{wanted!r} names several runs; this is {run_id}, others are {listed}")
            # Before the snapshot: a run that closes meanwhile must not look interrupted in it.
            live = is_live(store, run_id)
            with store.reader() as connection:
                yield View(connection, run_id, live, self.redaction(connection))

    def answer(self, text: str, data: Any, output: str | None = None) -> None:
        """Write the answer to standard output, or to the file `output`, in the wanted form."""
        if self.is_json:
            text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        if output is None:
            write(sys.stdout, text)
            return
        try:
            Path(output).write_text(text, "utf-8", errors="backslashreplace")
        except OSError as error:
            raise ConfigError(f"{output} cannot be written: {error}; name another file") from error

    def note_unknown(self, url: str) -> None:
        """Say what is amiss with a URL that is not known because it was taken from what is shown."""
        if DIGEST.search(url):
            self.note(
                "a part of this URL stands for a value that is hidden: give the URL as it is; with --no-redact it is"
                " shown so"
            )

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        write(sys.stderr, f"{text}\n")
