"""Artifacts in an object store, through fsspec (the extra `artifacts`)."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from scrapy_frontier.errors import ArtifactError, ConfigError
from scrapy_frontier.store.artifacts.places import KNOWN_LIMIT, TOUCHED_FOR_S, Kept


class RemotePlace:
    """A prefix of an object store. A put is atomic and durable there once it has returned, or it is no object store."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            fsspec = importlib.import_module("fsspec")
        except ImportError as error:
            raise ConfigError(
                f"FRONTIER_ARTIFACTS = {url!r} needs fsspec: pip install scrapy-frontier[artifacts], and the package of"
                " the file system itself, such as s3fs"
            ) from error
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"FRONTIER_ARTIFACTS = {url!r}: {error}") from error
        self._touched: dict[str, float] = {}

    def put(self, name: str, content: bytes) -> None:
        """Write the object; one that is there is written again, which gives it a new time."""
        now = time.monotonic()
        if now - self._touched.get(name, -TOUCHED_FOR_S) < TOUCHED_FOR_S:
            return
        with _errors(f"writing evidence to {self.url}/{name}"):
            self._files.pipe_file(self._path(name), content)
        if len(self._touched) >= KNOWN_LIMIT:
            self._touched.clear()
        self._touched[name] = now

    def open(self, name: str) -> BinaryIO:
        """Open an object for reading."""
        with _errors(f"reading evidence from {self.url}/{name}"):
            return cast("BinaryIO", self._files.open(self._path(name), "rb"))

    def listing(self) -> Iterator[Kept]:
        """All objects under the prefix."""
        with _errors(f"listing the evidence in {self.url}"):
            self._files.invalidate_cache()
            for path, info in self._files.find(self._root, detail=True).items():
                name = "/".join(path.rsplit("/", 2)[-2:])
                yield Kept(name, self._changed_at(path), int(info.get("size") or 0))

    def remove_if_old(self, name: str, before: float) -> bool:
        """Remove an object that is old; an object store cannot make looking and removing one step."""
        with _errors(f"sweeping {self.url}/{name}"):
            if self._changed_at(self._path(name)) >= before:
                return False
            self._files.rm_file(self._path(name))
        self._touched.pop(name, None)
        return True

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _changed_at(self, path: str) -> float:
        changed: Any = self._files.modified(path)
        return float(changed.timestamp() if hasattr(changed, "timestamp") else changed)


@contextmanager
def _errors(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArtifactError(f"{what}: there is no such object", is_missing=True) from error
    except Exception as error:  # file systems raise what their clients raise
        raise ArtifactError(
            f"{what}: {error!r}; mend the place that FRONTIER_ARTIFACTS names, then start again: what was committed"
            " stays"
        ) from error
