"""`frontier artifact`: the bytes that a transition's evidence names."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from scrapy_frontier.commands.invocation import Subcommand
from scrapy_frontier.errors import ArtifactError, ConfigError
from scrapy_frontier.store.artifacts import ResponseRecord
from scrapy_frontier.store.artifacts.content import DIGEST_SIZE

if TYPE_CHECKING:
    import argparse

    from scrapy_frontier.commands.invocation import Invocation
    from scrapy_frontier.store.artifacts import Artifacts

EPILOG: Final = (
    "DIGEST is what `frontier history URL` shows behind the word evidence: the record of a response,"
    " which is JSON and names the digest of the body. With --body the bytes of that body are"
    " written. Exit status: 0 written; 1 there is no such artifact, it was altered, or the body was"
    " not kept; 2 bad usage."
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("digest", metavar="DIGEST", help="64 hexadecimal digits")
    parser.add_argument(
        "--body", action="store_true", help="write the body that the record names, not the record"
    )
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="write to this file (default: standard output)"
    )


def _run(invocation: Invocation) -> int:
    digest: bytes | None = _digest(invocation.options.digest)
    with invocation.store() as store:
        artifacts = invocation.artifacts(store)
    try:
        assert digest is not None
        if invocation.is_json:
            invocation.answer("", asdict(ResponseRecord.load(artifacts.get(digest))))
            return 0
        if invocation.options.body:
            digest = _body_of(artifacts, digest)
        if digest is not None:
            artifacts.check(digest)  # before the first byte goes out
        _write(artifacts, digest, invocation.options.output)
    except ArtifactError as error:
        invocation.note(f"frontier artifact: {error}")
        return 1
    return 0


def _digest(text: str) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != DIGEST_SIZE:
        raise ConfigError(f"{text!r} is no digest: give the {2 * DIGEST_SIZE} hexadecimal digits")
    return digest


def _body_of(artifacts: Artifacts, digest: bytes) -> bytes | None:
    """The digest of the body that a record names; None for an empty one, which is no artifact."""
    body = ResponseRecord.load(artifacts.get(digest)).body
    if not body.is_kept:
        raise ArtifactError(f"the body of {body.size} bytes was not kept: see FRONTIER_EVIDENCE")
    return bytes.fromhex(body.digest) if body.size else None


def _write(artifacts: Artifacts, digest: bytes | None, output: str | None) -> None:
    if output is None:
        _copy(artifacts, digest, sys.stdout.buffer)
        return
    try:
        with Path(output).open("wb") as file:
            _copy(artifacts, digest, file)
    except OSError as error:
        raise ConfigError(f"--output {output}: {error}") from error


def _copy(artifacts: Artifacts, digest: bytes | None, file: BinaryIO) -> None:
    file.writelines(() if digest is None else artifacts.chunks(digest))
    file.flush()


COMMAND = Subcommand(
    "artifact", "Write the evidence of a transition", _add_arguments, _run, epilog=EPILOG
)
