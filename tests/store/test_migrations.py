"""An older store becomes a store of this schema, whole and forwards, or stays as it was."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

import scrapy_frontier
from scrapy_frontier.cli import main
from scrapy_frontier.errors import StoreError
from scrapy_frontier.store import migrations, schema, sqlite
from scrapy_frontier.store.opening import open_store

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{newest}"


def upgrade() -> None:
    op.create_table("novelty", sa.Column("x", sa.Integer()))
    with op.batch_alter_table("policy", table_kwargs={{"sqlite_strict": True}}) as policy:
        policy.add_column(sa.Column("label", sa.Text(), nullable=False, server_default="none"))
    {then}
"""

MIGRATE = """
import sys
from pathlib import Path
from scrapy_frontier.store import migrations, schema
from scrapy_frontier.store.opening import open_store
migrations.HERE = Path(sys.argv[1])
schema.SCHEMA_VERSION = "9999"
open_store(sys.argv[2]).close()
"""

Future = Callable[[str], None]


def clauses(connection: Connection) -> dict[str, tuple[list[str], list[tuple[object, ...]]]]:
    """Every table, index and trigger: its clauses in any order, and its columns in their order.

    SQLAlchemy and Alembic write the constraints of a table in different orders, and SQLite quotes the name of a table
    that was rebuilt; neither means anything.
    """
    found = {}
    for kind, name, sql in sqlite.ask(connection, "SELECT type, name, sql FROM sqlite_master"):
        parts = re.split(r",\s*\n|\(\n|\n\)", re.sub(r"[ \t]+", " ", (sql or "").replace('"', "")))
        body = sorted(part.strip() for part in parts)
        columns = sqlite.ask(connection, f'PRAGMA table_xinfo("{name}")')
        found[f"{kind} {name}"] = (body, columns)
    return found


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store of today's schema, which `future` makes an old one; it has a run with its policy."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    with open_store(url, create=True) as store, store.writer_connection().begin():
        connection = store.writer_connection()
        connection.execute(text("INSERT INTO policy VALUES (1, 'digest', '{}', 0)"))
        connection.execute(
            text("INSERT INTO run VALUES (1, 'r', 's', 'running', 0, NULL, NULL, NULL, 1)")
        )
        connection.execute(text("UPDATE meta SET value = '0.0.1' WHERE key = 'version'"))
    return url


@pytest.fixture
def future(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Future:
    """Makes this package one that has a further migration, which ends as its argument says."""
    place = tmp_path / "migrations"

    def make(then: str) -> None:
        shutil.copytree(migrations.HERE, place)
        code = NEXT.format(newest=schema.SCHEMA_VERSION, then=then)
        (place / "versions" / "9999_next.py").write_text(code)
        monkeypatch.setattr(migrations, "HERE", place)
        monkeypatch.setattr(schema, "SCHEMA_VERSION", "9999")

    return make


def state(url: str) -> tuple[str, str, bool, list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Schema and version marks, whether the new table is there, the policies and the runs."""
    path = url.removeprefix("sqlite:///")
    connection = sqlite.DRIVER.connect(path)
    marks = dict(connection.execute("SELECT key, value FROM meta"))
    novelty = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'novelty'").fetchone()
    policies = connection.execute("SELECT * FROM policy").fetchall()
    runs = connection.execute("SELECT run_id, policy_id FROM run").fetchall()
    connection.close()
    return marks["schema"], marks["version"], novelty is not None, policies, runs


OLD = (schema.SCHEMA_VERSION, "0.0.1", False, [(1, "digest", "{}", 0)], [(1, 1)])
NEW = ("9999", scrapy_frontier.__version__, True, [(1, "digest", "{}", 0, "none")], [(1, 1)])


def test_sum_of_migrations_is_the_schema(tmp_path: Path) -> None:
    """A store migrated from nothing and a new one have the same tables, checks and triggers."""
    engine = sqlite.writing_engine(f"{(tmp_path / 'migrated.db').as_uri()}?mode=rwc", "FULL")
    with engine.connect() as connection, connection.begin():
        migrations.upgrade(connection, None)
        migrated = clauses(connection)
    engine.dispose()
    with open_store("sqlite://") as store:
        created = clauses(store.writer_connection())
    assert migrated == created
    assert "trigger transition_no_DELETE" in created
    assert all("STRICT" in " ".join(created[name][0]) for name in created if "table " in name)


def test_migrations_form_one_line_forwards() -> None:
    """One newest version, the one this package names; no way back is offered."""
    directory = ScriptDirectory(str(migrations.HERE))
    assert directory.get_heads() == [schema.SCHEMA_VERSION]
    for script in directory.walk_revisions():
        assert script.path.rpartition("/")[2].startswith(f"{script.revision}_")
        assert not hasattr(script.module, "downgrade")


def test_older_store_is_migrated_when_opened_for_writing(url: str, future: Future) -> None:
    """Its rows stay, also those that refer to a table that is rebuilt; its marks are renewed."""
    future("pass")
    with open_store(url) as store:
        assert sqlite.ask(store.writer_connection(), "PRAGMA foreign_keys") == [(1,)]
    assert state(url) == NEW
    open_store(url, read_only=True).close()


def test_the_command_migrates_without_a_crawl(
    url: str, future: Future, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a report needs of an older store; once more it changes nothing, and a store that is not there is none."""
    future("")
    assert main(["report", "--store", url]) == 2
    assert "scrapy frontier migrate" in capsys.readouterr().err
    for _ in range(2):
        assert main(["migrate", "--store", url]) == 0
        assert state(url) == NEW
    assert main(["migrate", "--store", f"{url}.not-there"]) == 2


def test_migration_that_fails_changes_nothing(url: str, future: Future) -> None:
    """An error half way undoes all of it."""
    future("op.execute('SELECT * FROM no_such_table')")
    with pytest.raises(StoreError, match=r"opening sqlite:///.*no such table: no_such_table"):
        open_store(url)
    assert state(url) == OLD


def test_migration_never_leaves_dangling_rows(url: str, future: Future) -> None:
    """Foreign keys are off while tables are rebuilt, and checked before the commit."""
    future("op.execute('DELETE FROM policy')")
    with pytest.raises(StoreError, match="was not migrated: 1 rows refer to rows that are missing"):
        open_store(url)
    assert state(url) == OLD


def migrate(tmp_path: Path, url: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", MIGRATE, str(tmp_path / "migrations"), url]
    return subprocess.Popen(command, env=environment)


def test_death_during_a_migration_leaves_the_old_store(
    tmp_path: Path, url: str, future: Future
) -> None:
    """kill -9 at the last step of a migration: the old store is there, and can be migrated."""
    future("import os; os.kill(os.getpid(), 9)")
    assert migrate(tmp_path, url).wait() == -signal.SIGKILL
    assert state(url) == OLD


def test_processes_may_migrate_one_store_at_once(tmp_path: Path, url: str, future: Future) -> None:
    """One migrates it, the other finds it done."""
    future("import time; time.sleep(0.2)")
    processes = [migrate(tmp_path, url) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert state(url) == NEW
