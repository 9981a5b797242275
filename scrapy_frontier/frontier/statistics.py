"""The figures of a frontier, by the names they have in Scrapy's stats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.policy.health import BACK_OFF, EASE
from scrapy_frontier.scheduling import BandTable, GateState
from scrapy_frontier.store.vitals import log_bytes

if TYPE_CHECKING:
    from scrapy_frontier.frontier.life import Open

Figure = tuple[str, Callable[["Open"], Any]]


def _of_band(opened: Open, band: int) -> int:
    return opened.dispatch.by_band[band]


FIGURES: Final[Mapping[str, Figure]] = MappingProxyType(
    {
        "frontier/references": (
            "references seen: links, seeds, redirects",
            lambda o: o.intake.references,
        ),
        "frontier/duplicates": (
            "references to a URL seen lately, which cost no look-up in the store",
            lambda o: o.intake.duplicates,
        ),
        "frontier/unserialisable": (
            "requests that live in memory only and are lost if the process dies",
            lambda o: o.intake.unserialisable,
        ),
        "frontier/dispatched": (
            "requests handed to the downloader",
            lambda o: o.dispatch.handed_out,
        ),
        "frontier/answered": ("responses that came", lambda o: o.answered),
        "frontier/failed": (
            "downloads that failed, not those that a component of this side dropped",
            lambda o: o.failed,
        ),
        "frontier/in_flight": ("requests on the wire", lambda o: o.wire.in_flight),
        "frontier/scheduled": (
            "URLs that could be dispatched as far as they themselves are concerned, in memory and in the store",
            lambda o: o.dispatch.scheduled,
        ),
        "frontier/timed": ("URLs that wait for a time", lambda o: o.dispatch.timed),
        "frontier/held_back": (
            "URLs that wait beside a full queue (`FRONTIER_MAX_PENDING`)",
            lambda o: o.dispatch.backpressure.held_back,
        ),
        **{
            f"frontier/band/{band}": (
                f"URLs among those scheduled in priority band {band}",
                partial(_of_band, band=band),
            )
            for band in range(len(BandTable()))
        },
        "frontier/promoted": (
            "URLs moved forward because the references to them had doubled",
            lambda o: o.dispatch.promotion.promoted,
        ),
        "frontier/window": ("scheduled URLs held in memory", lambda o: o.dispatch.heads),
        "frontier/origins": ("origins held in memory", lambda o: o.dispatch.hot_origins),
        "frontier/health/held_back": (
            "origins that are asked for less than their limits allow, because of how they fare",
            lambda o: o.dispatch.health.held_back,
        ),
        "frontier/health/backed_off": (
            "decisions to ask an origin for less after trouble",
            lambda o: o.dispatch.health.codes[BACK_OFF],
        ),
        "frontier/health/eased": (
            "decisions to ask an origin for less because its answers take longer",
            lambda o: o.dispatch.health.codes[EASE],
        ),
        "frontier/health/closed": (
            "origins closed for this run, because they do nothing but fail or their robots.txt cannot be had",
            lambda o: len(o.dispatch.closed),
        ),
        "frontier/writer/commits": ("transactions committed", lambda o: o.writer.vitals.commits),
        "frontier/writer/rows": ("transitions committed", lambda o: o.writer.rows),
        "frontier/writer/pending": ("messages not on disk yet", lambda o: o.writer.pending),
        "frontier/writer/slowest_commit_s": (
            "the longest transaction, in seconds",
            lambda o: round(o.writer.vitals.slowest_commit_s, 4),
        ),
        "frontier/writer/mean_commit_s": (
            "the mean transaction, in seconds",
            lambda o: round(o.writer.vitals.mean_commit_s, 4),
        ),
        "frontier/writer/queue_age_s": (
            "how long the oldest message that is not on disk yet has waited, in seconds",
            lambda o: round(o.writer.lag_s, 4),
        ),
        "frontier/writer/longest_queue_age_s": (
            "the longest that a message has waited for its transaction, in seconds",
            lambda o: round(o.writer.vitals.longest_wait_s, 4),
        ),
        "frontier/store/log_bytes": (
            "size of the write-ahead log's file, which shrinks when the store is closed",
            lambda o: log_bytes(o.store.path),
        ),
        "frontier/store/checkpoints": (
            "how often the log was taken into the store",
            lambda o: o.writer.vitals.checkpoints,
        ),
        "frontier/store/log_frames": (
            "pages in the log at the last checkpoint",
            lambda o: o.writer.vitals.log_frames,
        ),
        "frontier/store/log_frames_left": (
            "pages of them that it could not take in, because a reader held it up",
            lambda o: o.writer.vitals.log_frames_left,
        ),
        "frontier/writer/busy_retries": (
            "transactions tried again because another process held the store",
            lambda o: o.writer.busy_retries,
        ),
        "frontier/refused": (
            "moves the transition table does not allow: always 0",
            lambda o: o.writer.refused,
        ),
        "frontier/evidence/kept": (
            "responses that were kept as evidence",
            lambda o: o.evidence.kept if o.evidence is not None else 0,
        ),
        "frontier/evidence/bytes": (
            "bytes of their bodies that were kept, as they came off the wire",
            lambda o: o.evidence.bytes if o.evidence is not None else 0,
        ),
        "frontier/render/pages": (
            "pages that a browser was given",
            lambda o: o.frontier.rendering.pages,
        ),
        "frontier/render/failed": (
            "pages that it could not render",
            lambda o: o.frontier.rendering.failed.total(),
        ),
        "frontier/render/cut": (
            "pages that met a limit of time, sub-requests or bytes",
            lambda o: o.frontier.rendering.cut.total(),
        ),
        "frontier/render/sub_requests": (
            "what rendered pages asked for beside their documents, allowed or not",
            lambda o: o.frontier.rendering.sub_requests.total(),
        ),
        "frontier/render/sub_bytes": (
            "bytes that it brought, their content coding undone",
            lambda o: o.frontier.rendering.sub_bytes,
        ),
        "frontier/leases/renewed": (
            "leases renewed because work went on",
            lambda o: o.leases.renewed,
        ),
        "frontier/leases/expired": (
            "leases taken back for want of a sign of work",
            lambda o: o.leases.expired,
        ),
        "frontier/leases/lost": (
            "attempts whose lease was taken back, or not granted, and whose result reached no callback",
            lambda o: o.leases.lost,
        ),
        "scheduler/enqueued": (
            "as Scrapy's scheduler counts: references that were not a known duplicate",
            lambda o: o.intake.references - o.intake.duplicates,
        ),
        "scheduler/dequeued": (
            "as Scrapy's scheduler counts: requests handed out",
            lambda o: o.dispatch.handed_out,
        ),
        "dupefilter/filtered": (
            "as Scrapy's duplicate filter counts",
            lambda o: o.intake.duplicates,
        ),
    }
)
"""Name to (meaning, how to read it)."""

GATES: Final[Mapping[str, str]] = {
    f"frontier/gates/{state.label}": f"origins in memory with work whose gate says `{state.label}`"
    for state in GateState
}

MEANINGS: Final[Mapping[str, str]] = {
    **{name: meaning for name, (meaning, _) in FIGURES.items()},
    **GATES,
}
"""What each figure counts. The table of statistics in the documentation is made from this."""

COUNTERS: Final = frozenset(
    {
        "frontier/answered",
        "frontier/dispatched",
        "frontier/duplicates",
        "frontier/evidence/bytes",
        "frontier/evidence/kept",
        "frontier/failed",
        "frontier/health/backed_off",
        "frontier/health/eased",
        "frontier/leases/expired",
        "frontier/leases/lost",
        "frontier/leases/renewed",
        "frontier/promoted",
        "frontier/references",
        "frontier/refused",
        "frontier/render/cut",
        "frontier/render/failed",
        "frontier/render/pages",
        "frontier/render/sub_bytes",
        "frontier/render/sub_requests",
        "frontier/store/checkpoints",
        "frontier/unserialisable",
        "frontier/writer/busy_retries",
        "frontier/writer/commits",
        "frontier/writer/rows",
    }
)
"""Figures that only grow while a process lives; all others go up and down."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "robotstxt/forbidden": "as Scrapy's robots.txt middleware counts: URLs that robots.txt forbids",
    "playwright/page_count/closed": "as scrapy-playwright counts: pages that were closed",
}
"""What the package counts where it happens, under the names of others."""


def read(opened: Open) -> dict[str, Any]:
    """All figures as they are now; takes time in proportion to the origins in memory."""
    states = opened.dispatch.counts().gates_by_state
    return {
        **{name: figure(opened) for name, (_, figure) in FIGURES.items()},
        **{f"frontier/gates/{state.label}": states.get(state, 0) for state in GateState},
    }
