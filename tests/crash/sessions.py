"""One schedule in action: its server, its crawls one after the other, and what each of them left behind."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from . import checks, power
from .children import Child, ask, fork
from .schedules import Kill, Schedule
from .witness import Witness

ROOT = Path(__file__).parents[2]

PATIENCE_S = 120.0
"""How long a crawl may take; one that hangs fails its schedule."""

GAP_S = 0.05
"""Longest pause between the two signals of a forced stop."""


@dataclass
class Session:
    """One crawl process: how it was to end, how it did, and when."""

    kill: Kill | None
    started_at: float
    ended_at: float = 0.0
    status: int = 0

    @property
    def was_killed(self) -> bool:
        """Whether it ended without its own doing."""
        return self.status < 0


@dataclass
class Outcome:
    """What came of a schedule: the faults found, none if all is well."""

    seed: int
    faults: list[str] = field(default_factory=list)
    kills: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    taken: int = 0
    """Transitions that power cuts took back."""
    is_durable: bool = True
    reached: list[str] = field(default_factory=list)
    sessions: int = 0
    hits: int = 0
    identities: int = 0
    repeats: int = 0
    seconds: float = 0.0


class Trial:
    """A schedule with a folder to work in.

    `store` is the URL of a PostgreSQL database, in which the schedule has a schema of its own; else the store is a file
    in that folder.
    """

    def __init__(
        self,
        schedule: Schedule,
        folder: Path,
        store: str = "",
        *,
        spawns: bool = False,
        cuts_power: bool = False,
    ) -> None:
        self.schedule = schedule
        self.folder = folder
        self.run = f"crash-{schedule.seed}-{os.getpid()}"
        self.is_on_server = store.startswith("postgresql")
        if self.is_on_server:
            store = own_schema(store, self.run.replace("-", "_"))
        self.store = store or f"sqlite:///{folder / 'store.db'}"
        self.spawns = spawns
        self.cuts_power = cuts_power
        self.granted: dict[int, Any] = {}
        """Every generation that was ever seen, to what it was granted for."""
        self.urls: dict[str, str] = {}
        self.sessions: list[Session] = []
        self.server_log = folder / "server.jsonl"
        self.notes = folder / "notes.log"
        self.trace = folder / "trace"
        self.ended: list[tuple[float, set[str]]] = []
        self.has_lost = False
        """Whether a power cut may have taken what was acknowledged, as `synchronous = NORMAL` allows."""

    def play(self) -> Outcome:
        """Crawl, kill, check and resume until the run is finished; then hold it to the server's log."""
        began = time.monotonic()
        outcome = Outcome(self.schedule.seed, is_durable=self.schedule.is_durable)
        server, stop = self._serve()
        try:
            picture = self._crawl_to_the_end(outcome)
        except Exception as error:
            outcome.faults.append(f"{type(error).__name__}: {error}")
        else:
            stop()
            server.wait(10)
            outcome.faults += checks.final(self, picture)
            outcome.identities = len(picture["ends"])
            outcome.hits = len(self.log())
            outcome.repeats = sum(picture["lost"].values())
        finally:
            stop()
            server.kill()
        outcome.sessions = len(self.sessions)
        outcome.reached = sorted(set(self.trace.read_text().split())) if self.trace.exists() else []
        outcome.seconds = time.monotonic() - began
        return outcome

    def _crawl_to_the_end(self, outcome: Outcome) -> dict[str, Any]:
        for kill in [*self.schedule.kills, None]:
            session = self._crawl(kill)
            picture = self.look()
            outcome.faults += checks.interim(self, session, picture)
            if session.status == -signal.SIGKILL and kill is not None:
                outcome.kills.append(str(kill))
                if self.cuts_power:
                    picture = self._cut_power(outcome, session, picture)
            if picture["state"] == "finished":
                return picture
        raise AssertionError(f"the run is {picture['state']} in the end: {picture['unresolved']}")

    def _cut_power(self, outcome: Outcome, session: Session, before: Any) -> Any:
        """The machine went down with the process: the store is what the disk has of it."""
        dice = random.Random(self.schedule.seed * 31 + len(self.sessions))
        outcome.cuts.append(power.cut(self.folder / "store.db", dice))
        after = self.look()
        outcome.taken += len(before["ledger"]) - len(after["ledger"])
        faults = checks.is_prefix(before, after)
        if self.schedule.is_durable:
            # A commit that was being flushed was seen before, and nobody was told of it: what is left counts.
            self.ended.pop()
            faults += checks.interim(self, session, after)
        else:
            # What was acknowledged may be gone, and is done again.
            self.ended.clear()
            self.has_lost = True
            faults += checks.sound(after)
        outcome.faults += [f"after a power cut ({outcome.cuts[-1]}): {fault}" for fault in faults]
        return after

    def look(self) -> Any:
        """What the store says now."""
        return ask(lambda: checks.look(self.store, self.run), self.folder)

    def log(self) -> list[dict[str, Any]]:
        """The server's log so far, in order of arrival."""
        lines = self.server_log.read_bytes().split(b"\n")[:-1] if self.server_log.exists() else []
        return sorted(map(json.loads, lines), key=lambda hit: float(hit["arrived_at"]))

    # Processes

    def _serve(self) -> tuple[Child, Callable[[], None]]:
        from scrapy_frontier.testing import server

        script = self.folder / "site.json"
        script.write_text(json.dumps(self.schedule.site.script()))
        ready = self.folder / "ready.log"
        stdin, alive = os.pipe()
        arguments = [str(script), "--log", str(self.server_log), "--stop-on-eof"]
        child = fork(lambda: server.main(arguments), ready, stdin=stdin)
        os.close(stdin)
        closed = False

        def stop() -> None:
            nonlocal closed
            if not closed:
                closed = True
                os.close(alive)

        deadline = time.monotonic() + 20
        while not (ready.exists() and ready.read_text().endswith("\n")):
            if child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {ready.read_text()}")
            time.sleep(0.002)
        self.urls = json.loads(ready.read_text())
        return child, stop

    def _crawl(self, kill: Kill | None) -> Session:
        before = self._count_hits()
        session = Session(kill, time.monotonic())
        log = self.folder / f"crawl-{len(self.sessions)}.log"
        environment = {
            "SCRAPY_SETTINGS_MODULE": "tests.crash.project",
            "FRONTIER_FAILPOINT": f"{kill.point}:{kill.hit}" if kill and kill.point else "",
            "FRONTIER_FAILPOINT_TRACE": str(self.trace),
        }
        start = self._spawn if self.spawns else self._fork
        child = start(environment, log)
        if kill is not None and kill.signal:
            self._interrupt(child, kill, before)
        if not child.wait(PATIENCE_S):
            child.kill()
            raise AssertionError(
                f"session {len(self.sessions)} does not end: {log.read_text()[-3000:]}"
            )
        session.ended_at, session.status = child.ended_at, child.status or 0
        self.sessions.append(session)
        return session

    def _command(self) -> list[str]:
        hosts = sorted({urlsplit(url).hostname or "" for url in self.urls.values()})
        arguments = {
            "seed": next(iter(self.urls.values())) + "/p0",
            "hosts": ",".join(hosts),
            "notes": str(self.notes),
        }
        settings = {
            "FRONTIER_STORE": self.store,
            "FRONTIER_RUN": self.run,
            **self.schedule.settings,
        }
        if self.is_on_server:
            settings["FRONTIER_ARTIFACTS"] = str(self.folder / "store.db-artifacts")
        command = ["scrapy", "crawl", "walker"]
        for name, value in arguments.items():
            command += ["-a", f"{name}={value}"]
        for name, value in settings.items():
            command += ["-s", f"{name}={value}"]
        return command

    def _fork(self, environment: dict[str, str], log: Path) -> Child:
        def work() -> None:
            from scrapy.cmdline import execute

            from scrapy_frontier import failpoints
            from scrapy_frontier.store import writer

            os.environ.update(environment)
            os.chdir(self.folder)
            if self.cuts_power:
                Witness(self.folder).install()
            failpoints.arm(
                environment["FRONTIER_FAILPOINT"], environment["FRONTIER_FAILPOINT_TRACE"]
            )
            writer.GROUP_LIMIT = self.schedule.group_limit  # type: ignore[misc]
            writer.CHECKPOINT_FRAMES = self.schedule.checkpoint_frames  # type: ignore[misc]
            sys.argv = self._command()
            execute(self._command())

        return fork(work, log)

    def _spawn(self, environment: dict[str, str], log: Path) -> Child:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *self._command()],
                cwd=self.folder,
                env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
                stdout=output,
                stderr=output,
            )
        process.returncode = 0  # waited for by its number, as all are
        return Child(process.pid)

    def _interrupt(self, child: Child, kill: Kill, before: int) -> None:
        while self._count_hits() < before + kill.after_hits and child.poll() is None:
            time.sleep(0.002)
        child.wait(kill.delay_s)
        if kill.signal == "KILL":
            child.send(signal.SIGKILL)
            return
        child.send(signal.SIGTERM)
        if kill.signal == "TERMTERM":
            child.wait(GAP_S * kill.delay_s)
            child.send(signal.SIGTERM)

    def _count_hits(self) -> int:
        return self.server_log.read_bytes().count(b"\n") if self.server_log.exists() else 0


def own_schema(url: str, name: str) -> str:
    """The URL of a new schema in a database."""
    from sqlalchemy import NullPool, create_engine, make_url, text

    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    own = make_url(url).update_query_dict({"options": f"-csearch_path={name}"})
    return own.render_as_string(hide_password=False)


def play(trial: Trial, *, keep: bool = False) -> Outcome:
    """Play a schedule. Its folder is removed afterwards unless something was found or it is to be kept."""
    trial.folder.mkdir(parents=True, exist_ok=True)
    outcome = trial.play()
    if not keep and not outcome.faults:
        shutil.rmtree(trial.folder, ignore_errors=True)
    return outcome
