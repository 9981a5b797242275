"""What the event loop hands to the writer: immutable messages, applied in the order in which they were sent.

A message says what happened; the writer decides, inside its transaction, what follows from it. `on_commit` of a message
is called on the event loop after the transaction is on disk, with the message's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_frontier.states import Disposition, Event

if TYPE_CHECKING:
    from scrapy_frontier.policy.budgets import Breach, Claim
    from scrapy_frontier.store.rows import Cursor


class Lease:
    """The right to work on one identity: filled in by the writer when it grants the dispatch.

    `generation` is above 0 once granted. It carries the id of a session, `session_id << 32 | n`: that of its own, or of
    a later one that has held the identity before. So it only grows for an identity, also across a power loss.
    When it expires stands in the store (`attempt.expires_ms`), by the store's own clock.
    """

    __slots__ = ("attempt_id", "generation", "identity_id")

    def __init__(self, identity_id: int) -> None:
        self.identity_id = identity_id
        self.attempt_id = 0
        self.generation = 0

    def __repr__(self) -> str:
        return f"<Lease identity={self.identity_id} attempt={self.attempt_id} generation={self.generation:#x}>"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code of the vocabulary and, as JSON text, the inputs that the decision can be recomputed from."""

    code: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What admission decided for a new identity: `event` is `ENQUEUE`, `EXCLUDE` or `DEFER`."""

    event: Event
    reason: Reason


@dataclass(frozen=True, slots=True)
class Source:
    """Who emitted references: the page (identity and attempt), or 0 and 0 for seeds and the engine."""

    identity_id: int = 0
    attempt_id: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """The answer to a `Reference`.

    `is_held`: a further reference may release the identity. `is_taken`: the request of this one will be fetched, now or
    when its turn comes. `rule`: what excludes the identity that a redirect leads to, "" where nothing does.
    """

    identity_id: int
    origin_id: int
    is_new: bool
    is_suppressed: bool
    is_held: bool
    is_taken: bool
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a URL that this process has not seen lately, or one that asks for a visit of its own.

    `is_visit`: an explicit new attempt (`dont_filter=True`) where the identity is known. `seed`: for a start request,
    which of those with this key it is in this process, from 1; else 0. `due_ms` above 0: not before that time.
    `is_direct`: its issuer fetches it himself, it is not offered to the schedule. `claims`: the budgets it counts in.
    `points`: what its rank is made of, as JSON, where that is more than the request's own priority.
    `payload` comes back untouched when the identity is scheduled by this message. Answer: `Known`.
    """

    key: bytes
    method: str
    url: str
    origin: str
    partition: int
    source: Source
    kind: int
    depth: int
    record: str | None
    rank: int
    due_ms: int
    verdict: Verdict
    at_ms: int
    is_visit: bool = False
    seed: int = 0
    is_direct: bool = False
    waiver: str | None = None
    claims: tuple[Claim, ...] = ()
    points: str | None = None
    payload: object = None
    on_commit: Callable[[Known], None] | None = None
    family: str = ""
    """Origin, a space, and the shape of the family that the URL belongs to; "" for none."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reference without a fetch key."""

    code: str
    observed: str


@dataclass(frozen=True, slots=True)
class Emission:
    """The rest of what a page emitted: references to identities known to the loop, and rejected ones.

    `targets` are identity ids, or fetch keys where the id was not known yet. `excluded` counts those among them that
    stand suppressed.
    """

    source: Source
    kind: int
    targets: Sequence[int | bytes]
    excluded: int
    rejected: Sequence[Rejected] = ()
    observations: Sequence[tuple[int | bytes, str]] = ()


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A scheduled identity goes to a worker. Answer: whether the lease was granted.

    `is_direct`: its issuer takes it himself; it has stood in no queue until now. `evidence`: the digest of the response
    that answers it in place of the wire.
    """

    lease: Lease
    at_ms: int
    reason: Reason
    on_commit: Callable[[bool], None] | None = None
    is_direct: bool = False
    evidence: bytes | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What an attempt brought: HTTP status, body size in bytes, digest of the payload, and the code of its outcome."""

    outcome: str
    status: int | None = None
    size: int | None = None
    payload: bytes | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """One event of an identity under a lease. Answer: whether it was applied, which takes the lease in force.

    `evidence` is the digest of an artifact that is durable already.
    """

    lease: Lease
    event: Event
    reason: Reason
    at_ms: int
    disposition: Disposition | None = None
    finding: Finding | None = None
    on_commit: Callable[[bool], None] | None = None
    evidence: bytes | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """An attempt failed and another follows, not before `due_ms` (0: at once), with the request of `record`."""

    lease: Lease
    reason: Reason
    at_ms: int
    due_ms: int
    record: str | None
    rank: int
    finding: Finding | None = None
    payload: object = None
    on_commit: Callable[[bool], None] | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """Useful work has gone on under these leases: each that is in force is so for its full length from now on.

    Answer: the attempt ids of those that are not in force any more.
    """

    leases: Sequence[Lease]
    at_ms: int
    on_commit: Callable[[Sequence[int]], None] | None = None


class Reclaimed(NamedTuple):
    """A lease that has been taken back. `is_scheduled`: its identity waits for another attempt."""

    identity_id: int
    attempt_id: int
    generation: int
    is_scheduled: bool


@dataclass(frozen=True, slots=True)
class Expire:
    """Take back the leases of the run whose time is over, whoever holds them. Answer: those taken back."""

    at_ms: int
    on_commit: Callable[[Sequence[Reclaimed]], None] | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """Times have come: each identity that waits for one is scheduled. Answer: how many were."""

    identity_ids: Sequence[int]
    at_ms: int
    on_commit: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class Transit:
    """One event of many identities that hold no lease: reclaim, exclude, defer, release. Answer: how many moved."""

    identity_ids: Sequence[int]
    event: Event
    reason: Reason
    at_ms: int
    disposition: Disposition | None = None
    on_commit: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class Promote:
    """An identity in the queue moves forward by so many points. Answer: its head, None where it is in no queue."""

    identity_id: int
    points: int
    on_commit: Callable[[Head | None], None]


@dataclass(frozen=True, slots=True)
class HoldBack:
    """A budget is spent: an identity that stands in the queue is held back."""

    identity_id: int
    breach: Breach
    at_ms: int


@dataclass(frozen=True, slots=True)
class LetIn:
    """Room for `limit` of the identities that wait beside a full queue. Answer: how many were let in."""

    limit: int
    at_ms: int
    on_commit: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class Reconsider:
    """Other budgets are in force: an identity that one held back is let in where its claims now have room."""

    identity_id: int
    claims: tuple[Claim, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Requeue:
    """An operator asks for a terminal identity again, with the request of `record`. Answer: whether it is scheduled."""

    identity_id: int
    record: str | None
    reason: Reason
    at_ms: int
    on_commit: Callable[[bool], None] | None = None


@dataclass(frozen=True, slots=True)
class OriginTiming:
    """The origin's gate does not open before this time; kept so that a restart does not forget it."""

    origin_id: int
    next_eligible_ms: int


@dataclass(frozen=True, slots=True)
class RobotsFetched:
    """What is known of an origin's robots.txt from now on; `text` is None where the store has it, or there is none."""

    origin: str
    record: str
    digest: str
    text: bytes | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class HealthSampled:
    """A decision about how much an origin is asked for: what it was made from, and the state after it, as JSON."""

    gate: str
    at_ms: int
    code: str
    concurrency: int
    interval_ms: int
    inputs: str
    state: str
    is_calm: bool


@dataclass(frozen=True, slots=True)
class Likened:
    """The main text of a page that was processed, and its likeness: a row of the table, without its run."""

    attempt_id: int
    identity_id: int
    values: tuple[int | str | None, ...]
    """From `version` to `canonical`, in the order of the table's columns."""


@dataclass(frozen=True, slots=True)
class PageRendered:
    """A browser was given a document, and what came of it; `sub_requests`: origin, type, outcome, count, bytes."""

    attempt_id: int
    identity_id: int
    wall_ms: int
    rule: str
    sub_requests: tuple[tuple[str, str, str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FamilyBraked:
    """A family is held from now on: the rule, and the inputs of the decision as JSON."""

    family: str
    rule: str
    detail: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SituationTold:
    """How the crawl stands, for those who watch: the record as JSON. The last one is kept."""

    at_ms: int
    record: str


@dataclass(frozen=True, slots=True)
class Tally:
    """Adds to a count that no other row carries, keeping the first example."""

    kind: str
    name: str
    count: int
    example: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A question answered from the store as it is after all messages before this one."""

    query: Callable[[Cursor], Any]
    on_commit: Callable[[Any], None]


class Head(NamedTuple):
    """A scheduled identity as the loop needs it. `payload` is the live request where one travelled with the message."""

    identity_id: int
    origin_id: int
    origin: str
    rank: int
    method: str
    url: str
    record: str | None
    depth: int
    payload: object = None


@dataclass(slots=True)
class Committed:
    """What a transaction that is now on disk means for the loop."""

    answers: list[tuple[Callable[[Any], None], Any]] = field(default_factory=list)
    scheduled: list[Head] = field(default_factory=list)
    timed: list[tuple[int, int]] = field(default_factory=list)
    """(due_ms, identity_id) of identities that now wait for a time."""
    held_back: int = 0
    """Identities that now wait beside a full queue."""
    messages: int = 0
    settled: int = 0
    """Messages among them that might have brought something to fetch."""
    rows: int = 0


Message = (
    Reference
    | Emission
    | Dispatch
    | Move
    | Retry
    | Renew
    | Expire
    | Due
    | Transit
    | Promote
    | HoldBack
    | LetIn
    | Reconsider
    | Requeue
    | OriginTiming
    | RobotsFetched
    | HealthSampled
    | Likened
    | PageRendered
    | FamilyBraked
    | SituationTold
    | Tally
    | Read
)
