"""The rules about traps on documentation trees of a Debian system: nothing may be deferred there.

python -m tests.traps.trees [FOLDER ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from tests.traps.walk import Site, Walk, walk

TREES: Mapping[str, tuple[str, str]] = {
    "python3-doc": ("Sphinx", "/usr/share/doc/python3.11/html"),
    "python-django-doc": ("Sphinx", "/usr/share/doc/python-django-doc/html"),
    "git-doc": ("AsciiDoc", "/usr/share/doc/git-doc"),
    "postgresql-doc-15": ("DocBook", "/usr/share/doc/postgresql-doc-15/html"),
    "sqlite3-doc": ("SQLite's own", "/usr/share/doc/sqlite3"),
    "libeigen3-doc": ("Doxygen", "/usr/share/doc/libeigen3-dev/html"),
    "libcommons-lang3-java-doc": ("Javadoc", "/usr/share/doc/libcommons-lang3-java/api"),
    "openjdk-17-doc": ("Javadoc", "/usr/share/doc/openjdk-17-jre-headless/api"),
    "libgtk-3-doc": ("GTK-Doc", "/usr/share/gtk-doc/html"),
    "valgrind": ("DocBook", "/usr/share/doc/valgrind/html"),
}
"""Package, generator, and where its pages are installed."""


def site_of(folder: Path) -> Site:
    """The files of a folder as a site; a directory without an index page lists what is in it."""

    def page(target: str) -> str | None:
        path = folder / unquote(target.partition("?")[0]).lstrip("/")
        try:
            if path.is_dir():
                path = path / "index.html"
                if not path.exists():
                    return "".join(_listing(path.parent))
            if path.suffix not in {".html", ".htm", ".xhtml"}:
                return None
            return path.read_text("utf-8", "replace")
        except (OSError, ValueError):
            return None

    return page


def _listing(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        name = path.name + "/" * path.is_dir()
        yield f'<p><a href="{name}">{name}</a></p>\n'


def seeds_of(folder: Path) -> list[str]:
    """Every page of the tree, after the entry page: what is not linked is judged too."""
    pages = sorted(path for path in folder.rglob("*.htm*") if path.is_file())
    return ["/", *(f"/{path.relative_to(folder)}" for path in pages)]


def measure(folder: Path, limit: int = 100_000) -> Walk:
    """Crawl one tree, from its entry page and from every page of it."""
    return walk(site_of(folder), limit=limit, seeds=seeds_of(folder))


def main() -> None:
    folders = [Path(one) for one in sys.argv[1:]] or [Path(path) for _, path in TREES.values()]
    for folder in folders:
        if not folder.exists():
            print(f"{folder}: not installed")
            continue
        found = measure(folder)
        print(
            f"{folder}: {len(found.fetched)} fetched, {len(found.deferred)} deferred {dict(found.rules)}"
        )
        for target, brake in list(found.deferred.items())[:5]:
            print("   ", target, brake)


if __name__ == "__main__":
    main()
