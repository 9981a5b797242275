"""Those who watch a crawl: `frontier top`, and readers of `frontier serve` who reload twice a second."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrapy_frontier.errors import FrontierError
from scrapy_frontier.report.runs import find_run
from scrapy_frontier.store.opening import open_store

RELOAD_S = 0.5

PROGRAM = [
    sys.executable,
    "-c",
    "import sys; from scrapy_frontier.cli import main; sys.exit(main())",
]


@contextmanager
def watching(folder: Path) -> Iterator[Counter[str]]:
    """Watch the crawl whose store is in `folder`, as soon as it has a run; how often something was seen."""
    seen: Counter[str] = Counter()
    is_over = threading.Event()
    url = f"sqlite:///{folder / 'frontier.db'}"
    thread = threading.Thread(target=_watch, args=(url, seen, is_over))
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


def _watch(url: str, seen: Counter[str], is_over: threading.Event) -> None:
    while not _has_run(url):
        if is_over.wait(0.05):
            return
    top = [*PROGRAM, "top", "--store", url, "--interval", str(RELOAD_S)]
    serve = [*PROGRAM, "serve", "--store", url, "--port", "0"]
    with (
        subprocess.Popen(top, stdout=subprocess.PIPE, text=True) as frames,
        subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        assert frames.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None
        while not is_over.wait(RELOAD_S):
            for path in ("", "live.json"):
                with suppress(OSError), urllib.request.urlopen(found[0] + path) as answer:
                    answer.read()
                    seen[path or "report"] += 1
        server.terminate()
        frames.terminate()
        seen["frames"] = frames.stdout.read().count(" of spider ")


def _has_run(url: str) -> bool:
    try:
        with open_store(url, read_only=True) as store, store.reader() as connection:
            find_run(connection)
    except FrontierError:
        return False
    return True
