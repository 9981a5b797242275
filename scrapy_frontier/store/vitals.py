"""How a writer is doing: how long its commits take, how old its queue gets, how its log is emptied."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Vitals:
    """Figures of one writer. The writer's thread sets them, everyone may read them."""

    commits: int = 0
    commit_s: float = 0.0
    """Time of all commits together."""
    slowest_commit_s: float = 0.0
    longest_wait_s: float = 0.0
    """The oldest that a message has been when its transaction began."""
    checkpoints: int = 0
    log_frames: int = 0
    """Pages in the write-ahead log at the last checkpoint."""
    log_frames_left: int = 0
    """Those of them that it could not take into the store, because a reader still needs the old ones."""
    held_up_at: float | None = None
    """Monotonic time of the first of the checkpoints in a row that left some; None where none did."""

    @property
    def mean_commit_s(self) -> float:
        """The mean time of a commit."""
        return self.commit_s / self.commits if self.commits else 0.0

    @property
    def held_up_s(self) -> float:
        """For how long checkpoints have not got through."""
        return 0.0 if self.held_up_at is None else time.monotonic() - self.held_up_at

    def committed(self, took_s: float, waited_s: float) -> None:
        """A transaction is on disk."""
        self.commits += 1
        self.commit_s += took_s
        self.slowest_commit_s = max(self.slowest_commit_s, took_s)
        self.longest_wait_s = max(self.longest_wait_s, waited_s)

    def checkpointed(self, frames: int, copied: int) -> None:
        """A checkpoint was made; negative numbers where there is no log."""
        self.checkpoints += 1
        self.log_frames = max(frames, 0)
        self.log_frames_left = max(frames - copied, 0)
        if not self.log_frames_left:
            self.held_up_at = None
        elif self.held_up_at is None:
            self.held_up_at = time.monotonic()


def log_bytes(path: Path | None) -> int:
    """Size of the file of the write-ahead log; it keeps the greatest size it had until the store is closed."""
    if path is None:
        return 0
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0
