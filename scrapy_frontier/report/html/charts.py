"""The charts of the page, as SVG that takes its colours from the page: dark or light, on paper too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

import pygal
from markupsafe import Markup
from pygal.style import Style

from scrapy_frontier.report.layout import printable

if TYPE_CHECKING:
    from scrapy_frontier.report.html.facts import Growth, Pace, Sample, Timeline

# Its finder of plug-ins, of which there are none here, answers no import of today's Python: each that fails would warn.
sys.meta_path[:] = [
    finder for finder in sys.meta_path if not isinstance(finder, pygal.PluginImportFixer)
]

_INK: Final = "var(--ink)"
_LINES: Final[tuple[Mapping[str, str], ...]] = (
    {},
    {"dasharray": "7, 4"},
    {"dasharray": "2, 4"},
    {"dasharray": "11, 4, 2, 4"},
)
"""Lines differ in their strokes too, for who cannot tell their colours apart."""

_STYLE: Final = Style(
    background="transparent",
    plot_background="transparent",
    foreground=_INK,
    foreground_strong=_INK,
    foreground_subtle="var(--rule)",
    guide_stroke_color="var(--rule)",
    major_guide_stroke_color="var(--rule)",
    colors=tuple(f"var(--chart-{number})" for number in range(1, 7)),
    opacity="1",
    opacity_hover="1",
    transition="none",
    font_family="inherit",
    label_font_size=12,
    major_label_font_size=12,
    legend_font_size=13,
    title_font_size=13,
    value_font_size=12,
    value_label_font_size=12,
)
_SHARED: Final[Mapping[str, Any]] = {
    "style": _STYLE,
    "js": (),
    "disable_xml_declaration": True,
    "width": 760,
    "height": 280,
    "margin": 8,
    "margin_right": 36,
    "legend_at_bottom": True,
    "legend_box_size": 12,
    "truncate_label": -1,
    "truncate_legend": 40,
    "show_minor_x_labels": False,
    "x_labels_major_count": 6,
    "show_dots": False,
    "stroke_style": {"width": 2},
    "include_x_axis": True,
}
_NARROW: Final[Mapping[str, Any]] = {
    **_SHARED,
    "width": 340,
    "height": 300,
    "margin": 4,
    "margin_right": 28,
    "legend_at_bottom_columns": 1,
    "truncate_legend": 34,
    "x_labels_major_count": 3,
}
"""The same for a phone, where the words of a broad chart would be too small to read."""

_STEPS: Final = 60

_BARS_NARROW: Final = 12
"""Bars that can all bear a name on a narrow chart."""

_LONG_MS: Final = 24 * 3600 * 1000

_CLASSES: Final = (
    ("answered (2xx, 3xx)", ("1xx", "2xx", "3xx")),
    ("client errors (4xx)", ("4xx",)),
    ("server errors (5xx)", ("5xx",)),
    ("no answer", ("none",)),
)


def throughput_chart(timeline: Timeline) -> Markup | None:
    """Attempts per second, by how they were answered; None where there is too little to draw."""
    seconds = timeline.width_ms / 1000
    drawn = {
        name: [sum(one.by_class.get(key, 0) for key in keys) / seconds for one in timeline.slices]
        for name, keys in _CLASSES
    }
    drawn = {name: values for name, values in drawn.items() if any(values)}
    return _lines("chart-throughput", drawn, _times(timeline), lambda rate: f"{rate:.3g}")


def latency_chart(timeline: Timeline) -> Markup | None:
    """How long attempts took: the median, and what 95 of 100 did not exceed."""
    drawn: dict[str, list[float | None]] = {
        "median": [one.median_s for one in timeline.slices],
        "95 of 100 within": [one.slowest_s for one in timeline.slices],
    }
    return _lines("chart-latency", drawn, _times(timeline), lambda took: f"{took:.3g} s")


def pace_chart(pace: Pace) -> Markup | None:
    """The interval between requests that the origins with the most decisions were held to; None if it never changed."""
    if len({(sample.origin, sample.interval_s) for sample in pace.samples}) == len(
        {sample.origin for sample in pace.samples}
    ):
        return None
    moments = _evenly(sorted({sample.at_ms for sample in pace.samples}))
    drawn: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(sample.origin for sample in pace.samples):
        held = [one for one in pace.samples if one.origin == name]
        drawn[name] = [_held_at(held, at) for at in moments]
    labels = instants(moments)
    return _lines("chart-pace", drawn, labels, lambda interval: f"{interval:.3g} s")


def _evenly(moments: Sequence[int]) -> list[int]:
    """The same span in even steps, none under a second: the axis tells seconds."""
    if len(moments) < 2:
        return []
    span = moments[-1] - moments[0]
    steps = min(_STEPS, max(span // 1000, 1))
    return [moments[0] + -(-span * step // steps) for step in range(steps + 1)]


def _held_at(samples: Sequence[Sample], at_ms: int) -> float | None:
    """The interval of the latest decision at that time; None before the first."""
    before = [one.interval_s for one in samples if one.at_ms <= at_ms]
    return before[-1] if before else None


def growth_charts(
    growth: Sequence[Growth], timeline: Timeline
) -> list[tuple[str, str, Markup | None]]:
    """Of each family its shape, its origin, and its URLs, fetches and new content over the run."""
    labels = _times(timeline)
    return [
        (
            one.family,
            one.origin,
            _lines(
                f"chart-growth-{place}",
                {"found": one.found, "fetched": one.fetched, "with new content": one.brought},
                labels,
                lambda count: f"{count:,.0f}",
            ),
        )
        for place, one in enumerate(growth, 1)
    ]


def depth_chart(by_depth: Mapping[int, int]) -> Markup | None:
    """How many URLs are how many links away from the start; the far ones in one last bar."""
    if not by_depth:
        return None
    far = 25
    bars = {str(depth): count for depth, count in by_depth.items() if depth < far}
    rest = sum(count for depth, count in by_depth.items() if depth >= far)
    if rest:
        bars[f"{far}+"] = rest

    def draw(shared: Mapping[str, Any]) -> Any:
        options = {**shared, "show_minor_x_labels": shared is _SHARED or len(bars) <= _BARS_NARROW}
        chart = pygal.Bar(
            **options,
            show_legend=False,
            value_formatter=lambda count: f"{count:,.0f}",
            x_title="links away from the start",
        )
        chart.x_labels = list(bars)
        chart.add("URLs", list(bars.values()))
        return chart

    return _svg(draw, "chart-depth")


def instants(moments: Sequence[int]) -> list[str]:
    """Times for an axis, to the second, or to the minute where the run took longer than a day."""
    is_long = bool(moments) and moments[-1] - moments[0] > _LONG_MS
    form = "%m-%d %H:%M" if is_long else "%H:%M:%S"
    return [f"{datetime.fromtimestamp(at / 1000, timezone.utc):{form}}" for at in moments]


def _times(timeline: Timeline) -> list[str]:
    return instants([one.start_ms for one in timeline.slices])


def _lines(
    name: str, drawn: Mapping[str, Sequence[float | None]], labels: Sequence[str], form: Any
) -> Markup | None:
    if len(labels) < 2 or not drawn:
        return None

    def draw(shared: Mapping[str, Any]) -> Any:
        chart = pygal.Line(**shared, value_formatter=form, min_scale=3, max_scale=6)
        chart.x_labels = list(labels)
        for place, (title, values) in enumerate(drawn.items()):
            stroke = {"width": 2, **_LINES[place % len(_LINES)]}
            chart.add(printable(title), list(values), stroke_style=stroke)
        return chart

    return _svg(draw, name)


def _svg(draw: Callable[[Mapping[str, Any]], Any], name: str) -> Markup:
    """The chart twice; the page shows the one that there is room for."""
    return Markup("").join(
        _drawn(draw(shared), f"{name}-{size}", size)
        for size, shared in (("broad", _SHARED), ("narrow", _NARROW))
    )


def _drawn(chart: Any, name: str, size: str) -> Markup:
    chart.uuid = name
    chart.add_xml_filter(_without_scripts)
    # The library escapes what it is given.
    return Markup(f'<div class="chart-{size}">{chart.render(is_unicode=True)}</div>')


def _without_scripts(root: Any) -> Any:
    """The drawing alone: its values stand in it as titles."""
    for definitions in root.findall("defs"):
        for script in definitions.findall("script"):
            definitions.remove(script)
    return root
