"""The tables of a store: the ledger, its projection, and what they refer to.

One store holds many runs. Every integer id is handed out by the single writer inside its transaction. Times are integer
milliseconds since the epoch (`*_ms`), always UTC. The ledger is the table `transition`: triggers forbid to change or
delete its rows; `current`, the projection, can be rebuilt from it at any time.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

from scrapy_frontier.states import TRANSITIONS, Disposition, Event, State
from scrapy_frontier.store.guards import GUARDS as GUARDS

SCHEMA_VERSION: Final = "0008"
"""The newest migration this package knows; `meta.schema` of a store names the one it has."""

PRODUCT: Final = "scrapy_frontier"

Big = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()


def _table(name: str, *parts: Column[Any] | CheckConstraint | UniqueConstraint | Index) -> Table:
    return Table(name, metadata, *parts, sqlite_strict=True)


def _id(name: str) -> Column[int]:
    return Column(name, Big, primary_key=True, autoincrement=False)


def _labels(kind: type[State] | type[Event] | type[Disposition]) -> str:
    return ", ".join(str(int(member)) for member in kind)


def _legal_moves() -> str:
    """Every (event, from * 16 + to) pair that the transition table allows, as a SQL predicate."""
    by_event: dict[int, list[int]] = {}
    for source, successors in TRANSITIONS.items():
        for happened, target in successors.items():
            by_event.setdefault(int(happened), []).append(from_to(source, target))
    return " OR ".join(
        f"(event = {happened} AND from_to IN ({', '.join(map(str, sorted(pairs)))}))"
        for happened, pairs in sorted(by_event.items())
    )


def from_to(source: State, target: State) -> int:
    """Both ends of a move in one small integer, as the column `transition.from_to` holds it."""
    return int(source) * 16 + int(target)


meta = _table(
    "meta",
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

policy = _table(
    "policy",
    _id("policy_id"),
    Column("digest", Text, nullable=False, unique=True),
    Column("text", Text, nullable=False),
    Column("created_ms", Big, nullable=False),
)
"""Each policy version whole: the digest of every setting and rule in force, and their text as JSON."""

run = _table(
    "run",
    _id("run_id"),
    Column("name", Text, nullable=False),
    Column("spider", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("started_ms", Big, nullable=False),
    Column("finished_ms", Big),
    Column("stop_reason", Text),
    Column("stop_detail", Text),
    Column("policy_id", Big, ForeignKey("policy.policy_id"), nullable=False),
    CheckConstraint("state IN ('running', 'stopped', 'finished')", name="run_state"),
    Index("ix_run_name", "name"),
)
"""`running`: open, or its process died; `stopped`: ended early, resumable; `finished`: nothing was left to do."""

session = _table(
    "session",
    _id("session_id"),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("worker", Text, nullable=False),
    Column("policy_id", Big, ForeignKey("policy.policy_id"), nullable=False),
    Column("started_ms", Big, nullable=False),
    Column("ended_ms", Big),
    Column("detail", Text, nullable=False),
    Index("ix_session_run", "run_id"),
)
"""One opening of a run by one process. Its id is the epoch of the generations it grants: it is on disk before any."""

reason = _table("reason", _id("reason_id"), Column("code", Text, nullable=False, unique=True))

origin = _table(
    "origin",
    _id("origin_id"),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("origin", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("next_eligible_ms", Big, nullable=False, server_default=text("0")),
    UniqueConstraint("run_id", "origin", name="ux_origin"),
)

identity = _table(
    "identity",
    _id("identity_id"),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("origin_id", Big, ForeignKey("origin.origin_id"), nullable=False),
    Column("method", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("source_id", Big, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("record", Text),
    Column("family_id", Big, nullable=False, server_default=text("0")),
    CheckConstraint("length(key) = 16", name="identity_key"),
    Index("ux_identity_key", "run_id", "key", unique=True),
)
"""`source_id`: the identity whose page gave the first reference, 0 for none. `record`: the request, as
`identity.records` writes it; null where it could not be serialised. `family_id`: 0 for what is in no family."""

family = _table(
    "family",
    _id("family_id"),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("rule", Text),
    Column("detail", Text),
    Column("braked_ms", Big),
    Column("released_ms", Big),
    UniqueConstraint("run_id", "name", name="ux_family"),
)
"""A structural signature of URLs on one origin; `name` is the origin, a space, and the shape of signature `version`.

`rule` and `detail`: the brake on it and the inputs that the decision was made from; `released_ms`: an operator has let
the family go, and no brake is put on it in this run any more. What it holds is counted from the ledger."""

likeness = _table(
    "likeness",
    Column("attempt_id", Big, primary_key=True, autoincrement=False),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("identity_id", Big, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Big, nullable=False),
    Column("bare", Big, nullable=False),
    Column("simhash", Big, nullable=False),
    Column("words", Integer, nullable=False),
    Column("novelty", Integer, nullable=False),
    Column("outside", Integer, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("like_id", Big, nullable=False),
    Column("distance", Integer, nullable=False),
    Column("canonical", Text),
    Index("ix_likeness_run", "run_id", "attempt_id"),
)
"""The main text of a fetched page, and its likeness to an earlier one of its origin: a relation between fetches.

`kind`: 0 new, 1 the same text, 2 the same but for what repeats the page's own address, 3 nearly the same; `like_id` is
the identity that it is like. `novelty`: phrases that the origin had not had before, in thousandths; `outside`: new URLs
on it that are not more of the same. `canonical`: the `rel=canonical` that the page names."""

visit = _table(
    "visit",
    _id("visit_id"),
    Column("identity_id", Big, ForeignKey("identity.identity_id"), nullable=False),
    Column("record", Text),
    Column("rank", Big, nullable=False),
    Column("due_ms", Big, nullable=False),
    Column("is_waiting", Integer, nullable=False),
    Index(
        "ix_visit_waiting",
        "identity_id",
        sqlite_where=text("is_waiting = 1"),
        postgresql_where=text("is_waiting = 1"),
    ),
)
"""A further request for an identity that has one already: `dont_filter=True`, a retry, an operator's requeue."""

current = _table(
    "current",
    _id("identity_id"),
    Column("run_id", Big, nullable=False),
    Column("origin_id", Big, nullable=False),
    Column("state", Integer, nullable=False),
    Column("disposition", Integer, nullable=False),
    Column("reason_id", Big, nullable=False),
    Column("rank", Big, nullable=False),
    Column("due_ms", Big, nullable=False),
    Column("visit_id", Big, nullable=False),
    Column("attempt_id", Big, nullable=False),
    Column("generation", Big, nullable=False),
    Column("last_seq", Big, nullable=False),
    CheckConstraint(f"state IN ({_labels(State)}) AND state <> 0", name="current_state"),
    CheckConstraint(
        f"(state = 6) = (disposition <> 0) AND disposition IN (0, {_labels(Disposition)})",
        name="current_disposition",
    ),
    Index(
        "ix_current_scheduled",
        "origin_id",
        "rank",
        "identity_id",
        sqlite_where=text("state = 3"),
        postgresql_where=text("state = 3"),
    ),
    Index(
        "ix_current_deferred",
        "run_id",
        "reason_id",
        "rank",
        "identity_id",
        sqlite_where=text("state = 8"),
        postgresql_where=text("state = 8"),
    ),
    Index(
        "ix_current_due",
        "run_id",
        "due_ms",
        sqlite_where=text("due_ms > 0"),
        postgresql_where=text("due_ms > 0"),
    ),
    Index(
        "ix_current_leased",
        "run_id",
        sqlite_where=text("state IN (4, 5)"),
        postgresql_where=text("state IN (4, 5)"),
    ),
)
"""The projection: where each identity stands. `due_ms` is above 0 while a time holds it (retryable, deferred until)."""

context = _table(
    "context",
    _id("context_id"),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("policy_id", Big, ForeignKey("policy.policy_id"), nullable=False),
    Column("session_id", Big, ForeignKey("session.session_id"), nullable=False),
    UniqueConstraint("run_id", "policy_id", "session_id", name="ux_context"),
)
"""Who wrote a transition, and under which policy version, as one integer."""

transition = _table(
    "transition",
    _id("seq"),
    Column("identity_id", Big, nullable=False),
    Column("prev_seq", Big, nullable=False),
    Column("attempt_id", Big, nullable=False),
    Column("event", Integer, nullable=False),
    Column("from_to", Integer, nullable=False),
    Column("disposition", Integer, nullable=False),
    Column("at_ms", Big, nullable=False),
    Column("context_id", Big, nullable=False),
    Column("reason_id", Big, nullable=False),
    Column("detail", Text),
    Column("evidence", LargeBinary),
    CheckConstraint(_legal_moves(), name="transition_legal"),
    CheckConstraint(
        f"(from_to % 16 = 6) = (disposition <> 0) AND event IN ({_labels(Event)})",
        name="transition_disposition",
    ),
)
"""The ledger. `prev_seq` chains the history of one identity; `detail` holds the inputs of the reason, as JSON;
`evidence` is the digest of an artifact: the response that the transition is about."""

attempt = _table(
    "attempt",
    _id("attempt_id"),
    Column("identity_id", Big, nullable=False),
    Column("session_id", Big, nullable=False),
    Column("visit_id", Big, nullable=False),
    Column("generation", Big, nullable=False),
    Column("dispatched_ms", Big, nullable=False),
    Column("finished_ms", Big),
    Column("status", Integer),
    Column("size", Big),
    Column("payload", LargeBinary),
    Column("outcome_id", Big),
    Column("expires_ms", Big, nullable=False, server_default=text("0")),
)
"""One dispatch of one identity. `outcome_id` refers to `reason`; null while it is under way. Its lease: the worker's
session, the generation, and the time after which it may be taken back, which renewal moves on."""

late = _table(
    "late",
    _id("late_id"),
    Column("run_id", Big, nullable=False),
    Column("identity_id", Big, nullable=False),
    Column("attempt_id", Big, nullable=False),
    Column("generation", Big, nullable=False),
    Column("event", Integer, nullable=False),
    Column("outcome_id", Big, nullable=False),
    Column("status", Integer),
    Column("size", Big),
    Column("payload", LargeBinary),
    Column("at_ms", Big, nullable=False),
    Index("ix_late_attempt", "attempt_id"),
)
"""What an attempt brought when its lease was not in force any more: evidence, which changed no state."""

quarantine = _table(
    "quarantine",
    _id("quarantine_id"),
    Column("run_id", Big, nullable=False),
    Column("identity_id", Big, nullable=False),
    Column("attempt_id", Big, nullable=False),
    Column("generation", Big, nullable=False),
    Column("outcome_id", Big, nullable=False),
    Column("status", Integer),
    Column("size", Big),
    Column("first_payload", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("at_ms", Big, nullable=False),
    CheckConstraint("payload <> first_payload", name="quarantine_differs"),
    Index("ix_quarantine_attempt", "attempt_id"),
)
"""A second result of one attempt whose bytes are others than those of the first: never applied."""

emission = _table(
    "emission",
    _id("emission_id"),
    Column("run_id", Big, nullable=False),
    Column("source_id", Big, nullable=False),
    Column("attempt_id", Big, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("fresh", Integer, nullable=False),
    Column("duplicates", Integer, nullable=False),
    Column("excluded", Integer, nullable=False),
    Column("rejected", Integer, nullable=False),
    Column("targets", LargeBinary, nullable=False),
    Column("observations", LargeBinary),
    CheckConstraint("total = fresh + duplicates + excluded + rejected", name="emission_total"),
    Index("ix_emission_source", "source_id"),
)
"""The references one page emitted, packed: see `store.edges`. `source_id` is 0 for seeds and the engine."""

rejection = _table(
    "rejection",
    _id("rejection_id"),
    Column("run_id", Big, nullable=False),
    Column("source_id", Big, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("reason_id", Big, nullable=False),
    Column("observed", Text, nullable=False),
)
"""A reference without a fetch key, by the named rule that refuses it."""

seed = _table(
    "seed",
    _id("identity_id"),
    Column("requests", Integer, nullable=False),
)
"""How many seed requests of an identity are in the ledger, so that a resumed `start()` repeats none."""

robots = _table(
    "robots",
    Column("origin", Text, primary_key=True),
    Column("record", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("updated_ms", Big, nullable=False),
)
"""What is known of each origin's robots.txt, for all runs of the store: `policy.robots.codec` reads the record."""

robots_text = _table(
    "robots_text",
    Column("digest", Text, primary_key=True),
    Column("text", LargeBinary, nullable=False),
)
"""Each text of a robots.txt once; reasons in the ledger name the digest of the one that decided."""

health = _table(
    "health",
    Column("run_id", Big, primary_key=True),
    Column("gate", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("is_calm", Integer, nullable=False),
    Column("updated_ms", Big, nullable=False),
)
"""How the origin behind each gate stands: the state after its last sample, as `policy.health` writes it. `is_calm`: it
may be asked for all that its bounds allow."""

health_sample = _table(
    "health_sample",
    _id("sample_id"),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("gate", Text, nullable=False),
    Column("at_ms", Big, nullable=False),
    Column("code", Text, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("interval_ms", Big, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("state", Text, nullable=False),
    Index("ix_health_sample", "run_id", "gate", "sample_id"),
)
"""Each decision about the pace of an origin: `inputs` (bounds, state before, window) and `state` (after) as JSON."""
situation = _table(
    "situation",
    Column("run_id", Big, primary_key=True, autoincrement=False),
    Column("at_ms", Big, nullable=False),
    Column("record", Text, nullable=False),
)
"""What the process that works on a run last said of itself, for who watches it: `report.situation` reads the record."""

budget = _table(
    "budget",
    Column("run_id", Big, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("pattern", Text, primary_key=True),
    Column("most", Big, nullable=False),
    Column("used", Big, nullable=False),
    Column("held", Big, nullable=False),
    Column("first_id", Big, nullable=False),
    Column("first_ms", Big, nullable=False),
)
"""What is spent of each budget on admission, and what it has held back so far: how many identities, which one first
(`first_id`, 0 for none), and when. `pattern` says of what part of the web it is; `most` is the limit in force last."""

rendering = _table(
    "rendering",
    Column("attempt_id", Big, primary_key=True, autoincrement=False),
    Column("run_id", Big, ForeignKey("run.run_id"), nullable=False),
    Column("identity_id", Big, nullable=False),
    Column("wall_ms", Big, nullable=False),
    Column("rule", Text, nullable=False),
    Index("ix_rendering_run", "run_id", "attempt_id"),
)
"""The document of an attempt was given to a browser. `rule`: the limit that cut the page short, or the failure that it
ended with; "" where neither."""

sub_request = _table(
    "sub_request",
    Column("attempt_id", Big, primary_key=True, autoincrement=False),
    Column("origin", Text, primary_key=True),
    Column("type", Text, primary_key=True),
    Column("outcome", Text, primary_key=True),
    Column("run_id", Big, nullable=False),
    Column("count", Big, nullable=False),
    Column("bytes", Big, nullable=False),
    Index("ix_sub_request_run", "run_id", "attempt_id"),
)
"""What a rendered page has asked for of one origin, by type and outcome (`http.{status}`, or the rule that refused it):
how often, and the bytes that came, their content coding undone. What was sent has an identity and an attempt, too."""

tally = _table(
    "tally",
    Column("run_id", Big, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("count", Big, nullable=False),
    Column("example", Text),
)
"""Counts with one example each that no row above carries: parameter rules, waivers."""


@event.listens_for(metadata, "after_create")
def _guard(_target: MetaData, connection: Connection, **_options: object) -> None:
    for statement in GUARDS.get(connection.dialect.name, ()):
        connection.exec_driver_sql(statement)
