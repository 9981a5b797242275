"""Artifacts: equal bytes are one, altered ones are found, and what was written is durable before it is named."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.errors import ArtifactError, ConfigError
from scrapy_frontier.store.artifacts import (
    Artifacts,
    Body,
    Exchange,
    ResponseRecord,
    beside,
    digest_of,
    open_artifacts,
)
from scrapy_frontier.store.artifacts.content import name_of
from scrapy_frontier.store.artifacts.places import LocalPlace
from scrapy_frontier.store.artifacts.records import WITHHELD
from scrapy_frontier.store.artifacts.sweep import sweep

fsspec = pytest.importorskip("fsspec")

DAY_S = 24 * 3600.0


def local(folder: Path) -> Artifacts:
    return open_artifacts(str(folder / "evidence"), None)


def files(artifacts: Artifacts) -> list[str]:
    return sorted(kept.name for kept in artifacts.place.listing())


def age(artifacts: Artifacts, digest: bytes, by_s: float) -> Path:
    """Let an artifact of a folder look as if it had been written earlier."""
    path = Path(artifacts.url) / name_of(digest)
    at = time.time() - by_s
    os.utime(path, (at, at))
    return path


@pytest.fixture(params=["folder", "memory"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Artifacts:
    """Artifacts in a folder, and in what behaves as an object store does."""
    if request.param == "folder":
        return local(tmp_path)
    return open_artifacts(f"memory://bucket{tmp_path}", None)


@given(contents=st.lists(st.binary(max_size=2000), max_size=12))
@settings(max_examples=25, deadline=None)
def test_equal_bytes_are_one_artifact_and_come_back(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    artifacts = local(tmp_path_factory.mktemp("artifacts"))
    digests = [artifacts.put(content) for content in contents]
    assert [artifacts.get(digest) for digest in digests] == contents
    assert len(files(artifacts)) == len(set(contents))


@given(content=st.binary(min_size=1, max_size=400), data=st.data())
@settings(max_examples=150, deadline=None)
def test_no_altered_artifact_is_ever_taken_for_the_bytes_it_names(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, data: st.DataObject
) -> None:
    """Whatever happens to the file, reading gives the very bytes, or an error."""
    artifacts = local(tmp_path_factory.mktemp("artifacts"))
    digest = artifacts.put(content)
    path = Path(artifacts.url) / name_of(digest)
    stored = path.read_bytes()
    position = data.draw(st.integers(0, len(stored) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "insert", "other"])):
        case "flip":
            flipped = stored[position] ^ data.draw(st.integers(1, 255))
            altered = stored[:position] + bytes([flipped]) + stored[position + 1 :]
        case "cut":
            altered = stored[:position]
        case "insert":
            altered = stored[:position] + data.draw(st.binary(min_size=1)) + stored[position:]
        case _:
            altered = data.draw(st.binary())
    path.write_bytes(altered)
    try:
        found = artifacts.get(digest)
    except ArtifactError as error:
        told = str(error)
    else:
        told, content = digest.hex(), found
    assert digest.hex() in told
    assert digest_of(content) == digest


def test_content_of_every_bit_pattern_is_found_altered(artifacts: Artifacts) -> None:
    """An artifact whose bytes are those of another one is no gzip fault: only the digest tells."""
    one, other = artifacts.put(b"one"), artifacts.put(b"other")
    with artifacts.place.open(name_of(other)) as file:
        wrong = file.read()
    if isinstance(artifacts.place, LocalPlace):
        (artifacts.place.root / name_of(one)).write_bytes(wrong)
    else:
        fsspec.filesystem("memory").pipe_file(f"{artifacts.url[8:]}/{name_of(one)}", wrong)
    with pytest.raises(ArtifactError, match="altered"):
        artifacts.check(one)
    assert artifacts.check(other) == 5


def test_a_missing_artifact_is_told_apart_from_an_altered_one(artifacts: Artifacts) -> None:
    with pytest.raises(ArtifactError) as caught:
        artifacts.get(digest_of(b"never kept"))
    assert caught.value.is_missing


def test_a_folder_is_made_only_when_something_is_kept(tmp_path: Path) -> None:
    artifacts = local(tmp_path)
    assert files(artifacts) == []
    assert list(tmp_path.iterdir()) == []
    artifacts.put(b"")
    assert artifacts.get(digest_of(b"")) == b""


def test_an_artifact_is_synced_before_it_has_its_name_and_its_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves an artifact whole, or none of it; and one that is named is on disk."""
    happened: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        happened.append("sync directory" if path.is_dir() else "sync file")
        fsync(descriptor)

    def watched_replace(path: Path, target: Path) -> Path:
        happened.append("rename")
        return replace(path, target)

    artifacts = local(tmp_path)
    artifacts.put(b"makes the folders")
    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    (artifacts.place.root / name_of(digest_of(b"x"))).parent.mkdir(exist_ok=True)  # type: ignore[attr-defined]
    artifacts.put(b"x")
    assert happened == ["sync file", "rename", "sync directory"]


def test_a_file_that_was_cut_off_is_written_anew_when_its_bytes_come_again(tmp_path: Path) -> None:
    digest = local(tmp_path).put(b"some content")
    path = Path(local(tmp_path).url) / name_of(digest)
    path.write_bytes(path.read_bytes()[:9])
    again = local(tmp_path)
    again.put(b"some content")
    assert again.get(digest) == b"some content"


def test_a_full_or_forbidden_place_is_an_error_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    artifacts = local(tmp_path)
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(ArtifactError, match=r"No space left.*FRONTIER_ARTIFACTS"):
        artifacts.put(b"x")
    monkeypatch.undo()
    assert files(artifacts) == [], "what could not be written has left something behind"


@pytest.mark.parametrize("content", [b"", b"\0" * 3_000_000, os.urandom(3_000_000)])
def test_empty_and_huge_bodies(artifacts: Artifacts, content: bytes) -> None:
    digest = artifacts.put(content)
    assert artifacts.get(digest) == content
    assert artifacts.check(digest) == len(content)


def _keep_many(folder: str, worker: int) -> None:
    artifacts = open_artifacts(folder, None)
    for number in range(150):
        artifacts.put(b"shared %d" % number)
        artifacts.put(b"own %d %d" % (worker, number))


def test_two_processes_share_one_folder(tmp_path: Path) -> None:
    folder = str(tmp_path / "evidence")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_keep_many, args=(folder, worker)) for worker in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    artifacts = open_artifacts(folder, None)
    digests = [digest for digest, _ in artifacts.listing()]
    assert len(digests) == 150 + 2 * 150
    for digest in digests:
        artifacts.check(digest)
    assert not any(name.startswith("tmp/") for name in files(artifacts))


# Sweeping


def nothing(_digests: Collection[bytes]) -> set[bytes]:
    return set()


def test_an_orphan_is_swept_after_its_grace_and_not_before(tmp_path: Path) -> None:
    artifacts = local(tmp_path)
    named, orphan, young = (
        artifacts.put(b"named"),
        artifacts.put(b"orphan"),
        artifacts.put(b"young"),
    )
    for digest in (named, orphan):
        age(artifacts, digest, 2 * DAY_S)
    swept = sweep(artifacts, lambda digests: {named} & set(digests), time.time(), DAY_S)
    assert (swept.seen, swept.removed, swept.young) == (3, 1, 1)
    assert {digest for digest, _ in artifacts.listing()} == {named, young}


def test_a_dry_run_removes_nothing(tmp_path: Path) -> None:
    artifacts = local(tmp_path)
    age(artifacts, artifacts.put(b"orphan"), 2 * DAY_S)
    assert sweep(artifacts, nothing, time.time(), DAY_S, dry_run=True).removed == 1
    assert len(files(artifacts)) == 1


def test_a_grace_that_cannot_protect_work_in_flight_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="grace"):
        sweep(local(tmp_path), nothing, time.time(), 10.0)


def test_bytes_that_come_again_are_young_again(tmp_path: Path) -> None:
    """A crawl that meets an old orphan's bytes is about to name it."""
    digest = local(tmp_path).put(b"seen before")
    age(local(tmp_path), digest, 2 * DAY_S)
    local(tmp_path).put(b"seen before")
    assert sweep(local(tmp_path), nothing, time.time(), DAY_S).young == 1
    assert local(tmp_path).get(digest) == b"seen before"


def test_bytes_that_come_while_they_are_swept_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts, crawl = local(tmp_path), local(tmp_path)
    digest = artifacts.put(b"contended")
    age(artifacts, digest, 2 * DAY_S)
    replace = Path.replace

    def interfering(path: Path, target: Path) -> Path:
        if target.name.endswith(".swept"):
            crawl.put(b"contended")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interfering)
    assert sweep(artifacts, nothing, time.time(), DAY_S).removed == 0
    assert artifacts.get(digest) == b"contended"


def test_what_an_interrupted_sweep_moved_aside_comes_back_where_it_is_named(tmp_path: Path) -> None:
    artifacts = local(tmp_path)
    digest = artifacts.put(b"named")
    path = age(artifacts, digest, 2 * DAY_S)
    path.replace(path.with_name(path.name + ".swept"))
    sweep(artifacts, lambda digests: {digest} & set(digests), time.time(), DAY_S)
    assert artifacts.get(digest) == b"named"


def test_what_an_interrupted_write_left_is_swept(tmp_path: Path) -> None:
    artifacts = local(tmp_path)
    artifacts.put(b"x")
    left = Path(artifacts.url) / "tmp" / "1-0-abc.gz"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    assert sweep(artifacts, nothing, time.time(), DAY_S).removed == 1
    assert not left.exists()


def test_files_that_are_no_artifacts_are_left_alone(tmp_path: Path) -> None:
    artifacts = local(tmp_path)
    artifacts.put(b"x")
    (Path(artifacts.url) / "notes").mkdir()
    note = Path(artifacts.url) / "notes" / "read me"
    note.write_text("mine")
    os.utime(note, (0, 0))
    sweep(artifacts, nothing, time.time(), DAY_S)
    assert note.exists()


def test_an_object_store_is_swept_too() -> None:
    artifacts = open_artifacts("memory://swept", None)
    named, orphan = artifacts.put(b"named"), artifacts.put(b"orphan")
    swept = sweep(artifacts, lambda digests: {named} & set(digests), time.time() + 2 * DAY_S, DAY_S)
    assert (swept.removed, swept.young) == (1, 0)
    assert artifacts.get(named) == b"named"
    with pytest.raises(ArtifactError):
        artifacts.get(orphan)


# Places and records


def test_the_folder_stands_beside_the_store(tmp_path: Path) -> None:
    store = tmp_path / "crawl.db"
    assert open_artifacts(None, store).url == str(tmp_path / "crawl.db.artifacts")
    assert open_artifacts(f"file://{tmp_path}/a%20b", store).url == f"{tmp_path}/a b"
    assert beside(None) is None
    with pytest.raises(ConfigError, match="FRONTIER_ARTIFACTS"):
        open_artifacts(None, None)


def test_an_unknown_kind_of_place_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="gopher"):
        open_artifacts("gopher://hole", None)


_text = st.text(st.characters(max_codepoint=255), max_size=20)
_headers = st.lists(st.tuples(_text, _text), max_size=4).map(tuple)
_bodies = st.builds(Body, st.integers(0, 2**40), st.just("ab"), st.booleans())


@given(
    record=st.builds(
        ResponseRecord,
        form=st.sampled_from(["wire", "seen"]),
        url=st.text(max_size=50),
        status=st.integers(100, 599),
        protocol=st.none() | st.just("HTTP/1.1"),
        headers=_headers,
        body=_bodies,
        received_ms=st.integers(0, 2**42),
        flags=st.lists(_text, max_size=2).map(tuple),
        request=st.none() | st.builds(Exchange, _text, _text, _headers, _bodies),
    )
)
@settings(max_examples=50, deadline=None)
def test_records_come_back_as_they_were(record: ResponseRecord) -> None:
    assert ResponseRecord.load(record.dump()) == record


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"<html>", b"\xff\xff"])
def test_other_bytes_are_no_record(content: bytes) -> None:
    with pytest.raises(ArtifactError, match="no record"):
        ResponseRecord.load(content)


def test_secrets_of_a_request_are_withheld() -> None:
    headers = (("Cookie", "id=1"), ("authorization", "Basic x"), ("Accept", "*/*"))
    sent = Exchange.of("GET", "http://a.example/", headers, Body(0, "", True))
    assert dict(sent.headers) == {"Cookie": WITHHELD, "authorization": WITHHELD, "Accept": "*/*"}
