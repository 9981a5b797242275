"""The server's own account: an entry per request, in memory and, line by line, in a file.

The file is the ground truth of tests that kill the crawler: a line is written, unbuffered, when the
request departs. That is just before the last bytes of its answer go out, so that a client that has
the answer finds the line, or when the connection is lost.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from io import FileIO
from itertools import pairwise
from pathlib import Path


@dataclass(slots=True)
class Hit:
    """One request that reached the server; times are of the system's monotonic clock, in seconds.

    `concurrency` counts the requests in flight at this origin at the arrival, this one included.
    `outcome` is `sent`, `reset`, `closed`, or `abandoned` where the client or the server's own end
    cut the answer short; it is empty while the answer is being made.
    """

    origin: str
    method: str
    path: str
    headers: dict[str, str]
    arrived_at: float
    concurrency: int
    departed_at: float | None = None
    status: int | None = None
    outcome: str = ""

    @property
    def url(self) -> str:
        """The absolute URL that was asked for: origin and raw request target."""
        return self.origin + self.path


class RequestLog:
    """The hits of one server in order of arrival. Safe to read while the server runs."""

    def __init__(self, path: Path | None = None, hits: Iterable[Hit] = ()) -> None:
        self.hits: list[Hit] = list(hits)
        self._file = FileIO(path, "a") if path else None

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(list(self.hits))

    def __repr__(self) -> str:
        return f"<RequestLog of {len(self)} hits>"

    @classmethod
    def load(cls, path: Path) -> RequestLog:
        """Read a log file, without an unfinished last line that a killed server may have left."""
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        hits = (Hit(**json.loads(line)) for line in lines)
        return cls(hits=sorted(hits, key=lambda hit: hit.arrived_at))

    def arrive(self, hit: Hit) -> None:
        """Note a request before it is answered."""
        self.hits.append(hit)

    def depart(self, hit: Hit, outcome: str) -> None:
        """Note the end of a request and write its line."""
        hit.departed_at = time.monotonic()
        hit.outcome = outcome
        if self._file:
            self._file.write(_line(hit))

    def close(self) -> None:
        """Close the file; the hits stay readable."""
        if self._file:
            self._file.close()
            self._file = None

    def of(self, origin: str) -> list[Hit]:
        """The hits of one origin, such as `http://127.0.0.1:8000`."""
        return [hit for hit in self if hit.origin == origin]

    def origins(self) -> list[str]:
        """Every origin that was asked at least once, in order of first arrival."""
        return list(dict.fromkeys(hit.origin for hit in self))

    def hits_by_path(self, origin: str | None = None) -> Counter[str]:
        """How often each raw request target was asked for, at one origin or at all."""
        return Counter(hit.path for hit in self if origin in {None, hit.origin})

    def hits_by_url(self) -> Counter[str]:
        """How often each absolute URL was asked for."""
        return Counter(hit.url for hit in self)

    def max_simultaneous(self, origin: str) -> int:
        """The most requests that were ever in flight at this origin at once; 0 where none came."""
        return max((hit.concurrency for hit in self.of(origin)), default=0)

    def smallest_interval_s(self, origin: str) -> float | None:
        """The shortest time between two arrivals at this origin; None with fewer than two."""
        arrivals = [hit.arrived_at for hit in self.of(origin)]
        return min((later - earlier for earlier, later in pairwise(arrivals)), default=None)

    def smallest_gap_s(self, origin: str) -> float | None:
        """The shortest time from the end of an answer to the next arrival, negative for an overlap.

        This is what a limit of one request at a time with a pause between them promises; None with
        fewer than two.
        """
        gaps = []
        latest_end = None
        for hit in self.of(origin):
            if latest_end is not None:
                gaps.append(hit.arrived_at - latest_end)
            end = hit.departed_at if hit.departed_at is not None else float("inf")
            latest_end = end if latest_end is None else max(latest_end, end)
        return min(gaps, default=None)

    def wait_for(self, count: int, *, timeout_s: float = 10.0) -> None:
        """Block until `count` requests have arrived. Raises TimeoutError where they do not come."""
        deadline = time.monotonic() + timeout_s
        while len(self) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self)} of {count} requests came within {timeout_s} s")
            time.sleep(0.002)


_FIELDS = tuple(field.name for field in fields(Hit))


def _line(hit: Hit) -> bytes:
    return json.dumps({name: getattr(hit, name) for name in _FIELDS}).encode() + b"\n"
