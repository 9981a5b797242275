"""The place of a store's artifacts: the one that was named, or a folder beside the store."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.store.artifacts.content import Artifacts
from scrapy_frontier.store.artifacts.places import LocalPlace
from scrapy_frontier.store.artifacts.remote import RemotePlace

SUFFIX: Final = ".artifacts"
"""What the name of the folder beside a store ends with: `frontier.db` has `frontier.db.artifacts`."""


def beside(store_path: Path | None) -> str | None:
    """The place beside a store; None for a store without a file."""
    return None if store_path is None else str(store_path) + SUFFIX


def open_artifacts(named: str | None, store_path: Path | None) -> Artifacts:
    """The artifacts in the place that FRONTIER_ARTIFACTS names: a path, `file://`, or a URL that fsspec knows.

    Nothing is made or read yet. Raises `ConfigError` where there is no such place.
    """
    place = named or beside(store_path)
    if place is None:
        raise ConfigError(
            "a store without a file has no place for evidence: set FRONTIER_ARTIFACTS"
        )
    if "://" in place and not place.startswith("file:"):
        return Artifacts(RemotePlace(place))
    if place.startswith("file:"):
        place = unquote(urlsplit(place).path)
    return Artifacts(LocalPlace(Path(place).absolute()))
