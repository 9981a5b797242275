"""A worker in a process of its own: it does on a store what it is told on standard input, a JSON list a line.

It writes through the package's own writer, as a crawl does, and answers each line with one of its own. `hammer` lets it
work by itself, beside others, for a while.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from apply_bench import reference
from sqlalchemy import text

from scrapy_frontier.frontier.runs import open_run, transaction
from scrapy_frontier.policy.leases import LeasePolicy
from scrapy_frontier.states import Disposition, Event
from scrapy_frontier.store.apply import Applier
from scrapy_frontier.store.messages import (
    Committed,
    Dispatch,
    Expire,
    Finding,
    Lease,
    Move,
    Reason,
    Renew,
)
from scrapy_frontier.store.opening import open_store
from scrapy_frontier.store.rows import cursor_of
from scrapy_frontier.store.writer import Writer


class Worker:
    """A session of run 1, or of a new run, with leases of `length_ms`."""

    def __init__(self, url: str, length_ms: int) -> None:
        self.store = open_store(url, create=True)
        with self.store.reader() as connection:
            run_id = connection.scalar(text("SELECT max(run_id) FROM run"))
        with transaction(self.store, "opening a run") as connection:
            run = open_run(connection, run_id, spider="s", name="run", policy={}, versions={})
        # No expiry is the last: each URL must come to its end here.
        rule = LeasePolicy(length_ms / 1000, 1_000_000)
        applier = Applier(run.run_id, run.context_id, run.session_id, rule)
        with transaction(self.store, "loading") as connection:
            applier.load(cursor_of(connection))
        self.writer = Writer(
            self.store, applier, post=lambda call: call(), deliver=_deliver, failed=_fail
        )
        self.writer.start()
        self.leases: dict[int, Lease] = {}

    def ask(self, make: Callable[[Callable[[Any], None]], Any]) -> Any:
        """Send the message that `make` makes of a callback; its answer, once that is on disk."""
        came = threading.Event()
        answer: list[Any] = []

        def take(value: Any) -> None:
            answer.append(value)
            came.set()

        self.writer.send(make(take))
        assert came.wait(30), "the writer did not answer"
        return answer[0]

    def refer(self, path: str) -> int:
        return int(self.ask(lambda take: reference(path, on_commit=take)).identity_id)

    def dispatch(self, identity_id: int, at_ms: int) -> int:
        """The generation that was granted, 0 for none."""
        lease = Lease(identity_id)
        granted = self.ask(lambda take: Dispatch(lease, at_ms, Reason("band.0"), take))
        if granted:
            self.leases[lease.generation] = lease
        return lease.generation if granted else 0

    def respond(self, generation: int, payload: str, at_ms: int) -> bool:
        finding = Finding("http.200", 200, 1, bytes.fromhex(payload))
        lease = self.leases[generation]
        return bool(
            self.ask(
                lambda take: Move(
                    lease, Event.RESPOND, Reason("http.200"), at_ms, None, finding, take
                )
            )
        )

    def finish(self, generation: int, at_ms: int) -> bool:
        lease = self.leases[generation]
        end = Disposition.SUCCEEDED
        return bool(
            self.ask(
                lambda take: Move(lease, Event.PROCESS, Reason("http.200"), at_ms, end, None, take)
            )
        )

    def renew(self, generation: int, at_ms: int) -> list[int]:
        lease = self.leases[generation]
        return list(self.ask(lambda take: Renew([lease], at_ms, take)))

    def expire(self, at_ms: int) -> list[int]:
        return [one.generation for one in self.ask(lambda take: Expire(at_ms, take))]

    def hammer(self, seed: int, identities: int, seconds: float) -> dict[str, int]:
        """Dispatch, dawdle, respond, finish and take back what others dawdle with, as fast as it goes."""
        luck = random.Random(seed)
        counts = {"finished": 0, "late": 0, "expired": 0}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now_ms = int(time.time() * 1000)
            counts["expired"] += len(self.expire(now_ms))
            generation = self.dispatch(luck.randint(1, identities), now_ms)
            if not generation:
                continue
            if luck.random() < 0.5:
                time.sleep(luck.random() * 0.03)
            payload = luck.randbytes(32).hex()
            ended = self.respond(generation, payload, now_ms) and self.finish(generation, now_ms)
            counts["finished" if ended else "late"] += 1
        return counts

    def close(self) -> bool:
        self.writer.stop()
        self.store.close()
        return True


def _deliver(committed: Committed) -> None:
    for answer, value in committed.answers:
        answer(value)


def _fail(error: Exception) -> None:
    sys.exit(f"the writer failed: {error}")


def main() -> None:
    """Obey until standard input ends."""
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(getattr(worker, verb)(*arguments)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
