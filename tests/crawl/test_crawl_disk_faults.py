"""Whatever the disk or the database does to a crawl: a clear error, a clean stop, a store that verifies.

Each crawl is a process of its own and each fault is a real one. What was committed is there
afterwards, and the crawl goes on from it as soon as the cause is gone.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest
from crawls import Lab, Result
from disks import FailingDisk, remount, small_disk
from processes import CrawlProcess, make_web
from test_crawl_processes import SETTINGS, wait_for_hits

from scrapy_frontier.cli import main
from scrapy_frontier.store import sqlite
from scrapy_frontier.store.sqlite import DRIVER

pytestmark = pytest.mark.slow

PAGES = 40


@pytest.fixture
def web(lab: Lab) -> Lab:
    """A web of some pages, each of which takes its time."""
    make_web(lab.main, PAGES, delay_s=0.02)
    return lab


def crawl(lab: Lab, place: Path | None = None, **settings: Any) -> CrawlProcess:
    """Begin a crawl, or go on with it, on a store in `place`."""
    store = f"sqlite:///{(place or lab.folder) / 'store.db'}"
    reports = lab.folder / "reports"
    options = {**SETTINGS, "FRONTIER_STORE": store, "FRONTIER_REPORT_DIR": reports, **settings}
    return CrawlProcess(lab.folder, lab.main / "p0", options)


def assert_clean_stop(process: CrawlProcess, *words: str) -> None:
    """It has ended by itself: the cause and the remedy are told, the reason, a status, and an account."""
    output = process.wait()
    for word in words:
        assert word in output, output[-6000:]
    assert "Spider closed (frontier_error)" in output
    assert process.process.returncode == 1
    assert "Traceback (most recent call last):\n  File" not in output.partition("Spider closed")[2]
    assert "The account adds up: all" in output or "The report could not be made" in output


def assert_goes_on(lab: Lab, place: Path | None = None) -> None:
    """The store is sound, and the run comes to its end with every page fetched."""
    url = f"sqlite:///{(place or lab.folder) / 'store.db'}"
    assert main(["verify", "--store", url]) == 0
    with crawl(lab, place) as process:
        output = process.wait()
    assert process.process.returncode == 0
    result = Result(url, lab.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished", output
    assert set(result.ends()) == {"succeeded", "redirected"}
    assert len(result.fates) >= PAGES


def test_a_full_disk(web: Lab, tmp_path: Path) -> None:
    """With room on the disk again, the run goes on."""
    with small_disk(tmp_path / "disk", "700k") as disk:
        with crawl(web, disk) as process:
            assert_clean_stop(
                process, "the disk is full; free some space, then start the run again"
            )
        remount(disk, "size=64m")
        assert_goes_on(web, disk)


def test_a_limit_on_file_size(web: Lab) -> None:
    """A quota or a limit that is reached in the middle of a crawl."""
    with crawl(web) as process:
        wait_for_hits(web, process, 12)
        reached = (web.folder / "store.db-wal").stat().st_size + 50_000
        resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (reached, reached))
        assert_clean_stop(
            process, "the operating system refused a read or write; look for a failing"
        )
    assert_goes_on(web)


def test_a_disk_that_fails(web: Lab, tmp_path: Path) -> None:
    """I/O errors from one moment on, also for what is read."""
    with FailingDisk(tmp_path) as disk:
        with crawl(web, disk.place) as process:
            wait_for_hits(web, process, 12)
            disk.fail()
            assert_clean_stop(process, "the operating system refused a read or write")
        disk.repair()
        assert_goes_on(web, disk.place)


def test_a_read_only_file_system(web: Lab, tmp_path: Path) -> None:
    """The crawl does not begin, and the store can be read as it is."""
    with small_disk(tmp_path / "disk", "64m") as disk:
        with crawl(web, disk, CLOSESPIDER_PAGECOUNT=20) as process:
            process.wait()
        remount(disk, "ro")
        asked = len(web.server.log)
        with crawl(web, disk) as process:
            output = process.wait()
        assert process.process.returncode == 1
        assert "cannot be written" in output, output[-3000:]
        assert len(web.server.log) == asked
        assert main(["verify", "--store", f"sqlite:///{disk / 'store.db'}"]) == 0


@pytest.mark.parametrize("victim", ["store.db", "store.db-wal"])
def test_a_file_that_is_deleted_under_a_running_crawl(web: Lab, victim: str) -> None:
    """SQLite would write on into a file without a name; the crawl stops instead. A backup goes on."""
    store, copy = web.store_url, str(web.folder / "copy.db")
    with crawl(web) as process:
        wait_for_hits(web, process, 12)
        assert main(["backup", copy, "--store", store]) == 0
        (web.folder / victim).unlink()
        assert_clean_stop(process, f"{victim} was deleted while", "Put a backup back")
    assert main(["backup", copy, "--restore", "--overwrite", "--store", store]) == 0
    assert main(["verify", "--store", store]) == 0


def damage(path: Path, how: str) -> None:
    """Harm the file of a store that nobody has open."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if how == "cut":
            file.truncate(size // 2 // 4096 * 4096)
            return
        # Every page but those of the schema: some are read at once, some at the end.
        for page in range(size // 4096 // 2, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xa5" * 2048)


@pytest.mark.parametrize("how", ["cut", "pages"])
def test_a_damaged_store(web: Lab, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Verify names the damage, a crawl says what to do and stops, and the backup goes on."""
    store, copy = web.store_url, str(web.folder / "copy.db")
    with crawl(web, CLOSESPIDER_PAGECOUNT=30) as process:
        process.wait()
    assert main(["backup", copy, "--store", store]) == 0
    damage(web.folder / "store.db", how)
    assert main(["verify", "--store", store]) != 0
    said = "".join(capsys.readouterr())
    assert "integrity_check:" in said or "the store is damaged" in said
    with crawl(web) as process:
        output = process.wait()
    assert process.process.returncode == 1, output[-4000:]
    assert "the store is damaged; stop writing to it" in output
    assert "restore a backup" in output
    assert main(["backup", copy, "--restore", "--overwrite", "--store", store]) == 0
    assert main(["verify", "--store", store]) == 0


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for another process for tenths of a second instead of many."""
    pragmas = (("busy_timeout", 100), *sqlite._WRITER_PRAGMAS[1:])
    assert sqlite._WRITER_PRAGMAS[0][0] == "busy_timeout"
    monkeypatch.setattr(sqlite, "_WRITER_PRAGMAS", pragmas)


@pytest.mark.usefixtures("_impatient")
async def test_a_store_that_another_process_does_not_let_go(web: Lab) -> None:
    """It is waited for; then the spider is closed, and the run goes on once the store is free."""
    path = str(web.folder / "store.db")
    holder = DRIVER.connect(path, isolation_level=None, check_same_thread=False)
    begun = []

    def hold(response: Any) -> None:
        if not begun and len(web.server.log) > 20:
            begun.append(holder.execute("BEGIN IMMEDIATE"))

    def watch(crawler: Any) -> None:
        from scrapy import signals

        crawler.signals.connect(hold, signals.response_received, weak=False)

    done = await web.crawl(settings=SETTINGS, before=watch, seeds=[web.main / "p0"])
    assert begun
    assert done.reason == "frontier_error"
    assert done.stats["frontier/writer/busy_retries"] > 0
    holder.execute("ROLLBACK")
    holder.close()
    Result(web.store_url, web.server.log).assert_reconciled()
    again = await web.crawl(settings=SETTINGS, seeds=[web.main / "p0"])
    again.assert_finished()


STEPPING = """
import time
real = time.time
ahead_s = float(__import__("os").environ["AHEAD_S"])
time.time = lambda: real() + ahead_s
"""


def test_a_clock_that_was_set_back(web: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was begun an hour ahead goes on at once, and its account adds up."""
    from processes import SPIDER

    monkeypatch.setenv("AHEAD_S", "3600")
    settings = {**SETTINGS, "FRONTIER_STORE": web.store_url, "DOWNLOAD_DELAY": 0.01}
    with CrawlProcess(web.folder, web.main / "p0", settings, STEPPING + SPIDER) as process:
        wait_for_hits(web, process, 12)
        process.kill()
    monkeypatch.setenv("AHEAD_S", "0")
    with CrawlProcess(web.folder, web.main / "p0", settings, STEPPING + SPIDER) as process:
        output = process.wait()
    assert "s behind the last entry of the ledger" in output
    result = Result(web.store_url, web.server.log).assert_reconciled()
    assert result.coverage.run.state == "finished", output
