"""Commands and migrations killed at each of their boundaries: what they write is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_frontier.failpoints import POINTS, VARIABLE
from scrapy_frontier.report.verify import verify
from scrapy_frontier.store import migrations, schema, sqlite
from scrapy_frontier.store.backup import back_up
from scrapy_frontier.store.opening import open_store

from .schedules import ELSEWHERE

sys.path.append(str(Path(__file__).parents[1] / "store"))

from apply_bench import Bench

FILE_POINTS = ("file.written", "file.synced", "file.named")

MIGRATE_POINTS = ("migrate.begun", "migrate.step", "migrate.before_commit", "migrate.committed")

COMMAND_POINTS = {
    "export": ("export.page", *FILE_POINTS),
    "backup": FILE_POINTS,
    "restore": ("restore.log_gone", *FILE_POINTS),
    "migrate": MIGRATE_POINTS,
}
"""Where each of them is killed."""

PAGES = 30

MAIN = "import sys; from scrapy_frontier.cli import main; sys.exit(main())"


def test_every_point_of_the_commands_is_killed_at() -> None:
    """What no crawl reaches is reached here."""
    killed = {point for points in COMMAND_POINTS.values() for point in points}
    assert killed == {name for name in POINTS if name.startswith(ELSEWHERE)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a run that has fetched some pages; its log is not empty."""
    path = tmp_path / "store.db"
    fill(path, PAGES)
    return path


def fill(path: Path, count: int) -> None:
    """Fetch some pages into a store."""
    with open_store(f"sqlite:///{path}", create=True) as store:
        bench = Bench(store)
        for number in range(count):
            lease, _ = bench.fetch(f"page{number}")
            bench.finish(lease)


def run(point: str, *command: str) -> int:
    """Run a command that is killed at a point ("": not at all); its exit status."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        VARIABLE: point,
    }
    ended = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode


def frontier(path: Path, *arguments: str) -> tuple[str, ...]:
    """`scrapy-frontier` on a store."""
    return ("-c", MAIN, *arguments, "--store", f"sqlite:///{path}")


def identities(path: Path) -> int:
    """How many identities a sound store has."""
    with open_store(f"sqlite:///{path}", read_only=True) as opened:
        found = verify(opened)
        assert found.findings == ()
        return found.identities


@pytest.mark.parametrize("point", COMMAND_POINTS["export"])
def test_an_export_that_is_killed_leaves_no_half_file(store: Path, point: str) -> None:
    """The file is there with all rows, or not; the store is as it was; a further export works."""
    target = store.with_name("export.jsonl")
    arguments = ("export", "identities", "--output", str(target))
    assert run(point, *frontier(store, *arguments)) == -signal.SIGKILL
    assert target.exists() == (point == "file.named")
    assert identities(store) == PAGES
    target.unlink(missing_ok=True)
    assert run("", *frontier(store, *arguments)) == 0
    assert len(target.read_text().splitlines()) == PAGES


@pytest.mark.parametrize("point", COMMAND_POINTS["backup"])
def test_a_backup_that_is_killed_leaves_no_half_copy(store: Path, point: str) -> None:
    """The copy is there and sound, or not there; a further backup works."""
    target = store.with_name("copy.db")
    assert run(point, *frontier(store, "backup", str(target))) == -signal.SIGKILL
    if point == "file.named":
        assert identities(target) == PAGES
    else:
        assert not target.exists()
    target.unlink(missing_ok=True)
    assert run("", *frontier(store, "backup", str(target))) == 0
    assert identities(target) == identities(store) == PAGES


@pytest.mark.parametrize("point", COMMAND_POINTS["restore"])
def test_a_restore_that_is_killed_can_be_made_again(store: Path, point: str) -> None:
    """What stands in the place of the store is sound at any moment, and a further restore works."""
    copy = store.with_name("copy.db")
    with open_store(f"sqlite:///{store}", read_only=True) as opened:
        back_up(opened, copy)
    store.unlink()
    fill(store, 3)
    arguments = ("backup", "--restore", str(copy), "--overwrite")
    assert run(point, *frontier(store, *arguments)) == -signal.SIGKILL
    assert identities(store) == (PAGES if point == "file.named" else 3)
    assert run("", *frontier(store, *arguments)) == 0
    assert identities(store) == PAGES


@pytest.mark.parametrize("point", MIGRATE_POINTS)
def test_a_migration_that_is_killed_leaves_the_old_store_or_the_new(
    tmp_path: Path, point: str
) -> None:
    """Nothing between them, and the next opening goes on from there."""
    path = tmp_path / "old.db"
    make_oldest(path)
    opening = (
        "-c",
        f"from scrapy_frontier.store.opening import open_store; open_store('sqlite:///{path}').close()",
    )
    assert run(point, *opening) == -signal.SIGKILL
    expected = schema.SCHEMA_VERSION if point == "migrate.committed" else "0001"
    assert marked(path) == (expected, [(1, "digest")])
    assert run("", *opening) == 0
    assert marked(path) == (schema.SCHEMA_VERSION, [(1, "digest")])
    assert identities(path) == 0


def make_oldest(path: Path) -> None:
    """A store of the first schema."""
    engine = sqlite.writing_engine(f"{path.as_uri()}?mode=rwc", "FULL")
    oldest = migrations._steps_after(None)[0]
    with engine.connect() as connection, connection.begin():
        with migrations.Operations.context(migrations.MigrationContext.configure(connection)):
            oldest.module.upgrade()
        for key, value in (("product", schema.PRODUCT), ("schema", "0001"), ("version", "0.0.1")):
            connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))
        connection.exec_driver_sql("INSERT INTO policy VALUES (1, 'digest', '{}', 0)")
    engine.dispose()


def marked(path: Path) -> tuple[str, list[tuple[int, str]]]:
    """The schema that a store says it has, and its policies."""
    connection = sqlite.DRIVER.connect(str(path))
    ((found,),) = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall()
    policies = connection.execute("SELECT policy_id, digest FROM policy").fetchall()
    connection.close()
    return found, policies
