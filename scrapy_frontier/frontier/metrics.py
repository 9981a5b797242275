"""The figures of a frontier as metrics, by the rules of Prometheus for their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scrapy_frontier.frontier.statistics import COUNTERS, MEANINGS

FAMILIES: Final = {"band": "band", "gates": "state"}
"""Figures whose last part is a label: what that is called."""

RUN: Final = "frontier_run"
"""The name of the metric that tells which run this is."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: `kind` is `counter` or `gauge`, `stats` the stats that it is made of, by the value of its label."""

    name: str
    kind: str
    label: str | None
    meaning: str
    stats: dict[str, str]

    @property
    def sample(self) -> str:
        """The name that its samples have."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    @property
    def labels(self) -> tuple[str, ...]:
        """Its labels."""
        return ("spider",) if self.label is None else ("spider", self.label)


def _metrics() -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for stat, meaning in MEANINGS.items():
        if not stat.startswith("frontier/"):
            continue
        head, _, last = stat.rpartition("/")
        label = FAMILIES.get(head.removeprefix("frontier/"))
        kind = "counter" if stat in COUNTERS else "gauge"
        if label is None:
            yield Metric(_name(stat), kind, None, meaning, {"": stat})
        elif head in families:
            families[head].stats[last] = stat
        else:
            shared = meaning.replace(f"`{last}`", f"the {label}").replace(f" {last}", f" `{label}`")
            families[head] = Metric(_name(head), kind, label, shared, {last: stat})
    yield from families.values()


def _name(stat: str) -> str:
    """`frontier/writer/mean_commit_s` as `frontier_writer_mean_commit_seconds`."""
    name = stat.replace("/", "_")
    return f"{name.removesuffix('_s')}_seconds" if name.endswith("_s") else name


METRICS: Final = tuple(_metrics())
"""All of them. The table in the documentation is made from this."""
