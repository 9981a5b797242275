"""Two processes on one store: renewal, expiry, reclaim and late arrival hold between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apply_bench import NOW, needs_two_writers
from store_kinds import KINDS

from scrapy_frontier.report.verify import verify
from scrapy_frontier.store.opening import open_store

pytestmark = needs_two_writers

LENGTH_MS = 60_000
FIRST, SECOND = (b"1" * 32).hex(), (b"2" * 32).hex()


class Process:
    """A worker, and the verbs it understands."""

    def __init__(self, url: str, length_ms: int = LENGTH_MS) -> None:
        here = Path(__file__).parent
        self._process = subprocess.Popen(
            [sys.executable, str(here / "lease_worker.py"), url, str(length_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._line() == "ready"

    def tell(self, verb: str, *arguments: Any) -> None:
        """Give an order without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([verb, *arguments]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What came of the order."""
        return json.loads(self._line())

    def ask(self, verb: str, *arguments: Any) -> Any:
        """Give an order and wait."""
        self.tell(verb, *arguments)
        return self.answer()

    def kill(self) -> None:
        """Kill the process as the system would; a second time changes nothing."""
        if self._process.returncode is not None:
            return
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the worker has died"
        return line.strip()


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the store will be; on SQLite, where tests say what the time is, unless they are `on_both_stores`."""
    if getattr(request, "param", "sqlite") == "postgresql":
        return str(request.getfixturevalue("databases").store_url())
    return f"sqlite:///{tmp_path / 'store.db'}"


on_both_stores = pytest.mark.parametrize("url", KINDS, indirect=True)


@pytest.fixture
def pair(url: str) -> Iterator[tuple[Process, Process]]:
    """Two workers of one run."""
    one = Process(url)
    two = Process(url)
    yield one, two
    one.kill()
    two.kill()


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """The answer of the store."""
    with open_store(url, read_only=True) as store, store.reader() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def findings(url: str) -> list[str]:
    """What an audit finds."""
    with open_store(url, read_only=True) as store:
        return [finding.text for finding in verify(store).findings]


@on_both_stores
def test_lease_of_one_worker_keeps_the_other_away(url: str, pair: tuple[Process, Process]) -> None:
    """While it is in force, and as long as it is renewed, nobody else gets the URL."""
    one, two = pair
    number = one.ask("refer", "a")
    generation = one.ask("dispatch", number, NOW)
    assert two.ask("dispatch", number, NOW) == 0
    assert two.ask("expire", NOW + LENGTH_MS - 1) == []
    assert one.ask("renew", generation, NOW + 50_000) == []
    assert two.ask("expire", NOW + LENGTH_MS + 1) == []
    assert two.ask("dispatch", number, NOW + LENGTH_MS + 1) == 0
    assert one.ask("respond", generation, FIRST, NOW)
    assert one.ask("finish", generation, NOW)
    assert findings(url) == []


def test_late_result_of_the_one_changes_nothing_for_the_other(
    url: str, pair: tuple[Process, Process]
) -> None:
    """Expired, taken back, dispatched anew: the old worker's generation fences it off, before and after the end."""
    one, two = pair
    number = one.ask("refer", "a")
    old = one.ask("dispatch", number, NOW)
    assert two.ask("expire", NOW + LENGTH_MS) == [old]
    new = two.ask("dispatch", number, NOW + LENGTH_MS)
    assert new > old
    assert len(one.ask("renew", old, NOW + LENGTH_MS)) == 1
    assert one.ask("respond", old, FIRST, NOW + LENGTH_MS) is False
    assert two.ask("respond", new, SECOND, NOW + LENGTH_MS)
    assert one.ask("finish", old, NOW + LENGTH_MS) is False
    assert two.ask("finish", new, NOW + LENGTH_MS)
    assert one.ask("respond", old, FIRST, NOW + LENGTH_MS) is False
    assert one.ask("respond", old, SECOND, NOW + LENGTH_MS) is False
    assert rows(url, "SELECT generation, event, hex(payload) FROM late ORDER BY late_id") == [
        (old, 9, FIRST.upper()),
        (old, 13, ""),
    ]
    assert rows(url, "SELECT hex(first_payload), hex(payload) FROM quarantine") == [
        (FIRST.upper(), SECOND.upper())
    ]
    assert rows(url, "SELECT hex(payload) FROM attempt ORDER BY attempt_id") == [
        ("",),
        (SECOND.upper(),),
    ]
    assert findings(url) == []


def test_lease_of_a_killed_worker_is_taken_back_when_it_expires(
    url: str, pair: tuple[Process, Process]
) -> None:
    """Not before: that it is dead cannot be seen from here."""
    one, two = pair
    number = one.ask("refer", "a")
    old = one.ask("dispatch", number, NOW)
    one.kill()
    assert two.ask("expire", NOW + 1) == []
    assert two.ask("expire", NOW + LENGTH_MS) == [old]
    new = two.ask("dispatch", number, NOW + LENGTH_MS)
    assert two.ask("respond", new, FIRST, NOW)
    assert two.ask("finish", new, NOW)
    assert findings(url) == []


@on_both_stores
def test_two_workers_that_take_leases_from_each_other(url: str) -> None:
    """Whatever they do at once, each URL ends once, with one payload, and every late result is on record."""
    identities = 30
    one, two = Process(url, 10), Process(url, 10)
    try:
        for number in range(identities):
            (one if number % 2 else two).ask("refer", f"{number}")
        for seed, process in enumerate((one, two)):
            process.tell("hammer", seed, identities, 3.0)
        counts = [process.answer() for process in (one, two)]
        for process in (one, two):
            assert process.ask("close")
    finally:
        one.kill()
        two.kill()
    finished = sum(count["finished"] for count in counts)
    late = sum(count["late"] for count in counts)
    assert finished > 0
    assert sum(count["expired"] for count in counts) > 0
    assert late > 0, "none came late: the test shows nothing"
    assert rows(url, "SELECT count(*) FROM current WHERE state = 6") == [(finished,)]
    assert rows(url, "SELECT count(DISTINCT attempt_id) FROM late") == [(late,)]
    assert findings(url) == []
