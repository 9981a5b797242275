"""A simulated crawl: the real schedule, gates, health and retry policy in virtual time, against
simulated servers.

`Store` is what would be on disk and outlives a process; `Process` is what would be in memory.
Whoever simulates more (a process killed between two writes, say) changes when the one reaches the
other.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from random import Random

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.frontier.health import Health
from scrapy_frontier.policy.health import Outcome, kind_of_failure, kind_of_status
from scrapy_frontier.policy.politeness import OriginPolicy, draw_interval
from scrapy_frontier.policy.retry import Question, decide
from scrapy_frontier.scheduling import GateState, Pick, Schedule
from scrapy_frontier.store.messages import HealthSampled, Message
from scrapy_frontier.testing.simulation.book import Book
from scrapy_frontier.testing.simulation.servers import Reply, SimulatedServer
from scrapy_frontier.testing.simulation.timeline import EPOCH, Timeline
from scrapy_frontier.testing.simulation.urls import Url, Urls
from scrapy_frontier.testing.simulation.world import CrawlPlan, Site, World

FIRST_HEADS = 64


class Store:
    """What outlives a process: the URLs, when each origin may be asked next, the health of gates."""

    def __init__(self) -> None:
        self.urls = Urls()
        self.next_eligible: dict[int, float] = {}
        self.samples: list[HealthSampled] = []
        self._health: dict[str, HealthSampled] = {}

    def send(self, message: Message) -> None:
        """Keep what the health of origins has to say."""
        if isinstance(message, HealthSampled):
            self.samples.append(message)
            self._health[message.gate] = message

    def keep_timing(self, origin_id: int, until: float, now: float) -> None:
        """An origin is not asked before this."""
        if until > now:
            self.next_eligible[origin_id] = max(until, self.next_eligible.get(origin_id, 0.0))

    def troubled(self) -> list[tuple[str, str]]:
        """What a new process is told of gates that were not at ease."""
        return [(gate, m.state) for gate, m in self._health.items() if not m.is_calm]


class Simulation:
    """One run of a world. The same world and plan give the same run."""

    def __init__(self, world: World, plan: CrawlPlan | None = None) -> None:
        self.world = world
        self.plan = CrawlPlan() if plan is None else plan
        self.timeline = Timeline()
        self.store = Store()
        self.book = Book(self.plan.limit)
        self.sites: dict[int, Site] = dict(enumerate(world.sites, 1))
        self._policies = {site.name: site.policy or self.plan.policy for site in world.sites}
        self.servers = {
            number: SimulatedServer(
                site.server, EPOCH, f"{world.seed} {site.name}", self.plan.timeout_s
            )
            for number, site in self.sites.items()
        }
        self.random = Random(world.seed)
        self.closed: Counter[int] = Counter()
        for number, site in self.sites.items():
            for _ in range(site.urls):
                self.store.urls.schedule(self.store.urls.new(number))
        self.process = Process(self)
        for restart_s in self.plan.restarts:
            self.timeline.at(EPOCH + restart_s, self.restart)

    def __repr__(self) -> str:
        return f"<Simulation of {len(self.sites)} sites, {self.timeline!r}, {self.store.urls!r}>"

    def run(self, until_s: float | None = None) -> Simulation:
        """Let it happen, to its end or to an instant from the start. Raises `InvariantBroken`."""
        self.process.pump()
        while (until_s is None or self.timeline.now() < EPOCH + until_s) and self.timeline.step():
            pass
        return self

    def restart(self) -> None:
        """Kill the process; what was under way is taken back, and another process goes on."""
        urls, now = self.store.urls, self.timeline.now()
        under_way = self.process.under_way
        self.process.is_dead = True
        self.book.lose()
        for url in under_way.values():
            urls.schedule(url)
        self.process = Process(self)
        for number, due_at in list(urls.due.items()):
            self.timeline.at(due_at, partial(self.process.come_due, urls.of(number)))
        self.timeline.at(now, self.process.pump)

    def base_policy(self, name: str) -> OriginPolicy:
        """The configured policy of an origin."""
        return self._policies[name]


class Process:
    """What is in memory: the schedule, the health of origins, the requests under way."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.timeline = simulation.timeline
        self.store = simulation.store
        self.book = simulation.book
        plan = simulation.plan
        self.schedule = Schedule(
            max_hot_origins=plan.hot_origins,
            window=plan.window,
            longest_hold_s=plan.longest_hold_s,
        )
        self.health = Health(
            plan.health,
            self.schedule,
            self.store.send,
            self.timeline,
            simulation.base_policy,
            self._close,
            self.store.keep_timing,
        )
        self.health.load(self.store.troubled())
        self.cold = dict.fromkeys(self.store.urls.origins())
        self.schedule.cold_waiting = len(self.cold)
        self.under_way: dict[int, Url] = {}
        self.has_answered: set[int] = set()
        self.is_dead = False
        self._wakes_at = float("inf")

    def pump(self) -> None:
        """Hand out all that may go now, and plan when to look again."""
        if self.is_dead:
            return
        now = self.timeline.now()
        self._ask(now)
        while len(self.under_way) < self.book.limit:
            pick = self.schedule.next(now)
            if pick is None:
                break
            self._dispatch(pick, now)
            self._ask(now)
        wakes_at = self.schedule.next_at(now)
        is_full = len(self.under_way) >= self.book.limit
        if wakes_at is not None and not is_full and now < wakes_at < self._wakes_at:
            self._wakes_at = wakes_at
            self.timeline.at(wakes_at, self._wake)

    def come_due(self, url: Url) -> None:
        """The time has come that a URL has waited for."""
        if self.is_dead or url.number not in self.store.urls.due:
            return
        head = self.store.urls.schedule(url)
        now, name = self.timeline.now(), self._name(url.origin_id)
        if not self.schedule.add(url.origin_id, head, now) and url.origin_id not in self.cold:
            eligible_at = self.store.next_eligible.get(url.origin_id, 0.0)
            made = self.schedule.ensure_origin(
                url.origin_id, name, self.health.policy(name), now, next_eligible_at=eligible_at
            )
            if not made or not self.schedule.add(url.origin_id, head, now):
                self.cold[url.origin_id] = None
                self.schedule.cold_waiting = len(self.cold)
        self._note(url.origin_id, now)
        self.pump()

    def _wake(self) -> None:
        self._wakes_at = float("inf")
        self.pump()

    def _name(self, origin_id: int) -> str:
        return self.simulation.sites[origin_id].name

    def _dispatch(self, pick: Pick, now: float) -> None:
        url = self.store.urls.of(pick.head.identity_id)
        self.store.urls.take(url)
        self.under_way[url.number] = url
        url.attempts += 1
        policy = self.health.policy(pick.gate_key)
        interval_s = draw_interval(policy, self.simulation.random)
        base = self.simulation.base_policy(pick.gate_key)
        self.book.ask(pick.gate_key, now, base=base, policy=policy, interval_s=interval_s)
        eligible_at = self.schedule.charge(pick.gate_key, now, interval_s)
        self.store.keep_timing(url.origin_id, eligible_at, now)
        self._note(url.origin_id, now)
        reply = self.simulation.servers[url.origin_id].ask(now)
        self.timeline.at(reply.at, partial(self._end, url, reply, now))

    def _end(self, url: Url, reply: Reply, started_at: float) -> None:
        if self.is_dead:
            return
        now, name = self.timeline.now(), self._name(url.origin_id)
        del self.under_way[url.number]
        outcome = reply.failure or str(reply.status)
        self.book.end(name, now, outcome, self.health.policy(name))
        self.store.keep_timing(url.origin_id, self.schedule.release(name, now), now)
        kind = kind_of_failure(reply.failure) if reply.failure else kind_of_status(reply.status)
        if kind is not None:
            self.health.observe(name, url.origin_id, Outcome(kind, started_at, now))
        if reply.status == 200:
            url.end = "succeeded"
        else:
            self._retry(url, reply, now, name)
        if not reply.failure:
            self.has_answered.add(url.origin_id)
        self._note(url.origin_id, now)
        self.pump()

    def _retry(self, url: Url, reply: Reply, now: float, name: str) -> None:
        question = Question(
            cause=f"download.{reply.failure}" if reply.failure else f"http.{reply.status}",
            at_ms=milliseconds(now),
            seed=self.simulation.random.getrandbits(32),
            origin=name,
            faults=url.faults,
            holds=url.holds,
            has_answered=url.origin_id in self.has_answered,
            retry_after=reply.retry_after,
        )
        decision, _ = decide(question, self.simulation.plan.retry)
        if decision.hold_until_ms:
            until = decision.hold_until_ms / 1000
            self.schedule.hold(name, until, GateState.BACKOFF, now)
            self.store.keep_timing(url.origin_id, until, now)
        if not decision.retries:
            url.end = "failed"
            return
        url.count(decision.counts)
        self.store.urls.due[url.number] = decision.due_ms / 1000
        self.timeline.at(decision.due_ms / 1000, partial(self.come_due, url))

    def _close(self, origin_id: int, reason: str) -> None:
        self.simulation.closed[origin_id] += 1

    def _note(self, origin_id: int, now: float) -> None:
        """From when on the origin's next URL could go."""
        name = self._name(origin_id)
        opens_at = None
        if self.store.urls.waiting(origin_id):
            gate = self.schedule.gate_snapshot(name, now)
            opens_at = now if gate is None else gate.opens_at
        self.book.could(name, opens_at)

    def _ask(self, now: float) -> None:
        """The store answers at once."""
        for refill in self.schedule.refills():
            self.schedule.refilled(refill, *self.store.urls.heads(refill), now)
        for rotated in self.schedule.rotated(now):
            if self.store.urls.waiting(rotated.origin_id):
                self.cold[rotated.origin_id] = None
        self.schedule.cold_waiting = len(self.cold)
        for _ in range(self.schedule.wants_activation(now)):
            origin_id = next(iter(self.cold))
            del self.cold[origin_id]
            self.schedule.cold_waiting = len(self.cold)
            self.schedule.activating(origin_id)
            self._activate(origin_id, now)

    def _activate(self, origin_id: int, now: float) -> None:
        name = self._name(origin_id)
        heads, more = self.store.urls.first(origin_id, FIRST_HEADS)
        band = self.schedule.bands.band_of(0)
        self.schedule.activate(
            origin_id,
            name,
            self.health.policy(name),
            [(band, heads, more)] if heads else [],
            now,
            next_eligible_at=self.store.next_eligible.get(origin_id, 0.0),
        )
        self._note(origin_id, now)


def samples_as_text(simulation: Simulation) -> str:
    """Every decision of a run, a line each: the same for the same world and plan."""
    return "\n".join(
        json.dumps([m.gate, m.at_ms, m.code, m.concurrency, m.interval_ms])
        for m in simulation.store.samples
    )
