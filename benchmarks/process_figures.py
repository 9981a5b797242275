"""What one process has used: CPU time of all its threads and children, and memory. Linux only."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path


def cpu_s() -> float:
    """CPU seconds of this process with all its threads, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def rss_bytes() -> int:
    """Resident memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def max_rss_bytes() -> int:
    """The highest resident memory of this program so far.

    `ru_maxrss` would not do: it starts from the memory of the process that launched this one.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def lift_file_limit() -> None:
    """Open as many files as the system allows: JOBDIR keeps one for each host and priority."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@dataclass(frozen=True)
class Spent:
    """What a piece of work took: CPU of the whole process, of the calling thread, and wall time."""

    cpu_s: float
    thread_cpu_s: float
    wall_s: float


class Stopwatch:
    """Runs from when it is made. Read it in the thread that made it."""

    def __init__(self) -> None:
        self._cpu_at = cpu_s()
        self._thread_cpu_at = time.thread_time()
        self._wall_at = time.perf_counter()

    def read(self) -> Spent:
        """What has been spent so far."""
        return Spent(
            cpu_s() - self._cpu_at,
            time.thread_time() - self._thread_cpu_at,
            time.perf_counter() - self._wall_at,
        )
