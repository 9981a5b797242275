"""The web of a run: what links reach, what they do not, and which of them are broken."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.report.html.chains import redirect_chains
from scrapy_frontier.report.html.facts import Broken, LinkGraph
from scrapy_frontier.report.names import label, streamed, urls
from scrapy_frontier.states import Disposition
from scrapy_frontier.store.edges import unpack

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.report.names import Codes

BROKEN_LISTED: Final = 1000
PAGES_PER_BROKEN: Final = 3
ORPHANS_LISTED: Final = 200

_BROKEN_ENDS: Final = (Disposition.GONE, Disposition.HTTP_ERROR, Disposition.FAILED)
_LINKS: Final = frozenset({ReferenceKind.LINK, ReferenceKind.ERRBACK})
_ROOTS: Final = frozenset({ReferenceKind.SEED})
_ASIDE: Final = (ReferenceKind.ROBOTS, ReferenceKind.DIRECT)
"""Kinds of references to what is no page of the web that is crawled."""

_EMISSIONS: Final = (
    "SELECT source_id, kind, targets FROM emission WHERE run_id = :run"
    f" AND kind NOT IN ({_ASIDE[0]:d}, {_ASIDE[1]:d}) ORDER BY emission_id"
)
_URLS: Final = (
    "SELECT identity_id FROM identity WHERE run_id = :run"
    f" AND kind NOT IN ({_ASIDE[0]:d}, {_ASIDE[1]:d}) ORDER BY identity_id"
)
_BROKEN: Final = (
    "SELECT c.identity_id, c.disposition, c.reason_id FROM current AS c"
    " JOIN identity AS i ON i.identity_id = c.identity_id WHERE c.run_id = :run"
    f" AND c.disposition IN ({', '.join(f'{end:d}' for end in _BROKEN_ENDS)})"
    f" AND i.kind NOT IN ({_ASIDE[0]:d}, {_ASIDE[1]:d}) ORDER BY c.identity_id"
)


@dataclass(slots=True)
class _Web:
    """The references of a run as they are packed: an edge takes a byte or two."""

    roots: set[int] = field(default_factory=set)
    links: defaultdict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    redirects: defaultdict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    count: int = 0
    pages_of: dict[int, list[int]] = field(default_factory=dict)
    """The pages that carry a link to each broken URL."""


def link_graph(connection: Connection, run_id: int, codes: Codes) -> LinkGraph:
    """The figures of the web between the URLs of a run. A redirect leads on without being a link away."""
    broken = {row[0]: row for row in connection.execute(text(_BROKEN), {"run": run_id})}
    web = _read(connection, run_id, broken)
    depths = _depths(web)
    known = list(connection.scalars(streamed(_URLS), {"run": run_id}))
    orphans = [number for number in known if number not in depths]
    chains_total, chains = redirect_chains(connection, web.redirects, codes)
    return LinkGraph(
        urls=len(known),
        links=web.count,
        reachable=len(known) - len(orphans),
        by_depth=dict(
            sorted(Counter(depths[number] for number in known if number in depths).items())
        ),
        orphaned=len(orphans),
        orphans=tuple(_urls(connection, orphans[:ORPHANS_LISTED])),
        broken_total=len(web.pages_of),
        broken=tuple(_broken(connection, web, broken, codes)),
        chains_total=chains_total,
        chains=chains,
    )


def _read(connection: Connection, run_id: int, broken: Mapping[int, Any]) -> _Web:
    web = _Web()
    for source, kind, packed in connection.execute(streamed(_EMISSIONS), {"run": run_id}):
        if source == 0:
            web.roots.update(unpack(packed) if kind in _ROOTS else ())
        elif kind == ReferenceKind.REDIRECT:
            web.redirects[source].append(packed)
        elif kind in _LINKS:
            web.links[source].append(packed)
            targets = unpack(packed)
            web.count += len(targets)
            for target in broken.keys() & set(targets):
                web.pages_of.setdefault(target, []).append(source)
    return web


def _depths(web: _Web) -> dict[int, int]:
    """How many links each URL is away from the start URLs, at least."""
    depths = dict.fromkeys(sorted(web.roots), 0)
    waiting = deque(depths)
    while waiting:
        page = waiting.popleft()
        for target in _targets(web.redirects.get(page, ())):
            if depths.get(target, depths[page] + 1) > depths[page]:
                depths[target] = depths[page]
                waiting.appendleft(target)
        for target in _targets(web.links.get(page, ())):
            if target not in depths:
                depths[target] = depths[page] + 1
                waiting.append(target)
    return depths


def _targets(parts: Iterable[bytes]) -> Iterator[int]:
    for packed in parts:
        yield from unpack(packed)


def _broken(
    connection: Connection, web: _Web, broken: Mapping[int, Any], codes: Codes
) -> Iterator[Broken]:
    """Those that the most pages link to, first."""
    pages_of = {target: list(dict.fromkeys(pages)) for target, pages in web.pages_of.items()}
    ordered = sorted(pages_of, key=lambda target: (-len(pages_of[target]), target))
    for target in islice(ordered, BROKEN_LISTED):
        pages = pages_of[target]
        found = _urls(connection, [target, *pages[:PAGES_PER_BROKEN]])
        _, disposition, reason_id = broken[target]
        yield Broken(
            url=found[0],
            end=label(Disposition, disposition),
            reason=codes[reason_id],
            pages=len(pages),
            carried_by=tuple(found[1:]),
        )


def _urls(connection: Connection, numbers: list[int]) -> list[str]:
    known = urls(connection, numbers)
    return [known.get(number, f"identity {number}") for number in numbers]
