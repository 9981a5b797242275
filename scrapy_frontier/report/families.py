"""Families of URLs: how many were found and fetched, what they brought, and what the rules about traps hold of them.

All is counted from the ledger: from the identities of a family, the likeness of their pages, and the reasons for which
identities are deferred.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.report.figures import ranges
from scrapy_frontier.report.instants import iso
from scrapy_frontier.report.names import Codes, parsed, select_in, urls
from scrapy_frontier.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection

TRAP: Final = "trap."
EXAMPLES: Final = 3
SOURCES: Final = 3
_SOURCES_COUNTED: Final = 1000
_NEW: Final = 0


@dataclass(frozen=True, slots=True)
class FamilyAccount:
    """One family of one origin.

    `discovered` are its URLs and `states` how they stand; `fetched` are responses to them. `read` are pages whose text
    was looked at, `new_content` the share of them that was like no earlier page of the origin, None without any.
    `deferred` are the URLs that the brake of this family holds: `rule` and `inputs`, since `braked_at`. `sources` are
    the pages that most of these URLs were found on, or that the first was.
    """

    origin: str
    family: str
    discovered: int
    states: Mapping[str, int]
    fetched: int
    read: int
    new_content: float | None
    deferred: int
    rule: str | None
    inputs: Any
    braked_at: str | None
    released_at: str | None
    first_example: str | None
    examples: tuple[str, ...]
    sources: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The account as plain data."""
        return asdict(self)


@dataclass(slots=True)
class _Held:
    """What one brake holds."""

    count: int = 0
    rule: str = ""
    inputs: Any = None
    examples: list[int] = field(default_factory=list)
    sources: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class _Members:
    """The identities of a family."""

    states: Counter[str] = field(default_factory=Counter)
    first: int = 0
    fetched: int = 0
    kinds: Counter[int] = field(default_factory=Counter)


_FAMILIES: Final = (
    "SELECT family_id, name, rule, detail, braked_ms, released_ms FROM family WHERE run_id = :run"
    " ORDER BY family_id"
)
_MEMBERS: Final = (
    "SELECT identity.family_id, c.state, count(*), min(identity.identity_id) FROM identity"
    " JOIN current AS c ON c.identity_id = identity.identity_id {where} AND identity.family_id > 0"
    " GROUP BY identity.family_id, c.state"
)
_FETCHED: Final = (
    "SELECT i.family_id, count(*) FROM attempt JOIN identity AS i ON i.identity_id = attempt.identity_id"
    " {where} AND attempt.status IS NOT NULL AND i.family_id > 0 GROUP BY i.family_id"
)
_READ: Final = (
    "SELECT i.family_id, likeness.kind, count(*) FROM likeness"
    " JOIN identity AS i ON i.identity_id = likeness.identity_id {where} GROUP BY i.family_id, likeness.kind"
)
_HELD: Final = (
    "SELECT current.identity_id, o.origin, current.reason_id, t.detail, i.source_id FROM current"
    " JOIN identity AS i ON i.identity_id = current.identity_id"
    " JOIN origin AS o ON o.origin_id = current.origin_id"
    " JOIN transition AS t ON t.seq = current.last_seq"
    f" {{where}} AND current.state = {State.DEFERRED:d} ORDER BY current.identity_id"
)


def families(connection: Connection, run_id: int) -> tuple[FamilyAccount, ...]:
    """All families of a run: what is held first, the largest first."""
    members = _members(connection, run_id)
    held = _held(connection, run_id)
    rows = list(connection.execute(text(_FAMILIES), {"run": run_id}))
    numbers = {number for found in held.values() for number in (*found.examples, *found.sources)}
    numbers.update(found.first for found in members.values() if found.first)
    names = urls(connection, numbers)
    first_sources = _sources_of(connection, [found.first for found in members.values()])
    names = {**names, **urls(connection, set(first_sources.values()) - {0})}
    accounts = []
    for row in rows:
        origin, _, shape = row.name.partition(" ")
        found = members.get(row.family_id, _Members())
        hold = held.pop((origin, shape), _Held())
        source = first_sources.get(found.first, 0)
        accounts.append(_account(row, origin, shape, found, hold, source, names))
    return tuple(sorted(accounts, key=lambda one: (-one.deferred, -one.discovered, one.family)))


def _account(
    row: Any,
    origin: str,
    shape: str,
    found: _Members,
    hold: _Held,
    source: int,
    names: Mapping[int, str],
) -> FamilyAccount:
    read = found.kinds.total()
    examples = hold.examples or [found.first] * bool(found.first)
    sources = [number for number, _ in hold.sources.most_common(SOURCES)] or [source]
    return FamilyAccount(
        origin=origin,
        family=shape,
        discovered=found.states.total() or hold.count,
        states=dict(sorted(found.states.items())),
        fetched=found.fetched,
        read=read,
        new_content=round(found.kinds[_NEW] / read, 4) if read else None,
        deferred=hold.count,
        rule=hold.rule or (row.rule and f"{TRAP}{row.rule}"),
        inputs=parsed(row.detail) or hold.inputs,
        braked_at=iso(row.braked_ms),
        released_at=iso(row.released_ms),
        first_example=names.get(examples[0]) if examples else None,
        examples=_known(names, examples),
        sources=_known(names, sources),
    )


def _known(names: Mapping[int, str], numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(names[number] for number in numbers if number in names)


def _members(connection: Connection, run_id: int) -> dict[int, _Members]:
    found: dict[int, _Members] = {}
    only = f"identity.run_id = {run_id:d}"
    for family, state, count, first in ranges(connection, _MEMBERS, "identity.identity_id", only):
        known = found.setdefault(family, _Members())
        known.states[State(state).label] += count
        known.first = min(known.first or first, first)
    only = f"i.run_id = {run_id:d}"
    for family, count in ranges(connection, _FETCHED, "attempt.attempt_id", only):
        found.setdefault(family, _Members()).fetched += count
    for family, kind, count in ranges(connection, _READ, "likeness.attempt_id", only):
        found.setdefault(family, _Members()).kinds[kind] += count
    return found


def _held(connection: Connection, run_id: int) -> dict[tuple[str, str], _Held]:
    """What each brake holds, by origin and family, as the reasons of the deferred identities have it."""
    codes = Codes.of(connection)
    held: dict[tuple[str, str], _Held] = {}
    only = f"current.run_id = {run_id:d}"
    for identity_id, origin, reason_id, detail, source_id in ranges(
        connection, _HELD, "current.identity_id", only
    ):
        code = codes[reason_id]
        inputs = parsed(detail) if code.startswith(TRAP) else None
        if not isinstance(inputs, dict):
            continue
        key = (origin.partition(" (")[0], str(inputs.pop("family", "")))
        known = held.setdefault(key, _Held(rule=code, inputs=inputs))
        known.count += 1
        if len(known.examples) < EXAMPLES:
            known.examples.append(identity_id)
        if source_id and (source_id in known.sources or len(known.sources) < _SOURCES_COUNTED):
            known.sources[source_id] += 1
    return held


def _sources_of(connection: Connection, identity_ids: Iterable[int]) -> dict[int, int]:
    query = "SELECT identity_id, source_id FROM identity WHERE identity_id IN :ids"
    return dict(select_in(connection, query, [number for number in identity_ids if number]))
