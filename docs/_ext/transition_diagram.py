"""The transition table as a drawing: which moves there are is read from it, where they run stands here.

A move of the table without a way in the drawing, or a way without a move, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from scrapy_frontier.states import TRANSITIONS, State

S = State

WIDTH: Final = 1040
HEIGHT: Final = 430
LINE_HEIGHT: Final = 14


class Box(NamedTuple):
    """A state: its upper left corner and its size."""

    x: int
    y: int
    width: int
    height: int = 44


class Way(NamedTuple):
    """A move: the corners of its line, and where its events are written, on one line or each on its own."""

    points: str
    x: int
    y: int
    anchor: str = "middle"
    is_stacked: bool = False


BOXES: Final[Mapping[State, Box]] = {
    S.SUPPRESSED: Box(10, 20, 850),
    S.DISCOVERED: Box(10, 170, 110),
    S.ADMITTED: Box(190, 170, 110),
    S.SCHEDULED: Box(370, 170, 120),
    S.FETCHING: Box(590, 170, 110),
    S.FETCHED: Box(770, 170, 90),
    S.DEFERRED: Box(10, 320, 430),
    S.RETRYABLE: Box(590, 320, 270),
    S.TERMINAL: Box(945, 90, 85, 325),
}

WAYS: Final[Mapping[tuple[State, State], Way]] = {
    (S.DISCOVERED, S.ADMITTED): Way("120,192 190,192", 145, 186),
    (S.ADMITTED, S.SCHEDULED): Way("300,192 370,192", 335, 186),
    (S.SCHEDULED, S.FETCHING): Way("490,184 590,184", 540, 178),
    (S.FETCHING, S.FETCHED): Way("700,192 770,192", 727, 186),
    (S.FETCHED, S.TERMINAL): Way("860,204 945,204", 902, 210, is_stacked=True),
    (S.FETCHING, S.SCHEDULED): Way("590,204 490,204", 540, 218),
    (S.FETCHED, S.SCHEDULED): Way("785,214 785,256 450,256 450,214", 550, 250),
    (S.FETCHING, S.RETRYABLE): Way("645,214 645,320", 651, 292, "start"),
    (S.FETCHED, S.RETRYABLE): Way("830,214 830,320", 824, 292, "end"),
    (S.RETRYABLE, S.SCHEDULED): Way("590,342 475,342 475,214", 532, 336),
    (S.DISCOVERED, S.DEFERRED): Way("65,214 65,320", 71, 272, "start"),
    (S.ADMITTED, S.DEFERRED): Way("245,214 245,320", 251, 272, "start"),
    (S.SCHEDULED, S.DEFERRED): Way("385,214 385,320", 379, 272, "end"),
    (S.DEFERRED, S.SCHEDULED): Way("410,320 410,214", 416, 292, "start"),
    (S.DISCOVERED, S.SUPPRESSED): Way("65,170 65,64", 71, 98, "start"),
    (S.DEFERRED, S.SUPPRESSED): Way("174,320 174,64", 179, 118, "start"),
    (S.ADMITTED, S.SUPPRESSED): Way("232,170 232,64", 237, 98, "start"),
    (S.SUPPRESSED, S.ADMITTED): Way("286,64 286,170", 291, 118, "start"),
    (S.SCHEDULED, S.SUPPRESSED): Way("390,170 390,64", 396, 98, "start"),
    (S.FETCHING, S.SUPPRESSED): Way("645,170 645,64", 651, 84, "start"),
    (S.RETRYABLE, S.SUPPRESSED): Way("757,320 757,64", 762, 84, "start"),
    (S.TERMINAL, S.SCHEDULED): Way("945,108 470,108 470,170", 840, 103),
    (S.SCHEDULED, S.TERMINAL): Way("440,170 440,128 945,128", 840, 123),
    (S.FETCHING, S.TERMINAL): Way("680,170 680,148 945,148", 840, 143),
    (S.RETRYABLE, S.TERMINAL): Way("860,342 945,342", 902, 336),
    (S.DEFERRED, S.TERMINAL): Way("225,364 225,398 945,398", 560, 392),
}

HEAD: Final = f"""\
<figure class="frontier-diagram" tabindex="0" aria-label="The states of a URL and the moves between them">
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">
<title>The states of a URL and the moves between them</title>
<defs><marker id="frontier-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"
markerHeight="7" orient="auto"><path d="M0,0 L10,5 L0,10 z"/></marker></defs>"""


def moves() -> Mapping[tuple[State, State], list[str]]:
    """The events of each move between two states at rest."""
    found: dict[tuple[State, State], list[str]] = {}
    for source, successors in TRANSITIONS.items():
        for event, target in successors.items():
            if source is not S.ABSENT:
                found.setdefault((source, target), []).append(event.label)
    return found


def svg() -> str:
    """The drawing, as HTML."""
    events = moves()
    if events.keys() != WAYS.keys():
        unlike = sorted(events.keys() ^ WAYS.keys())
        raise ValueError(f"the drawing and the transition table differ in {unlike}: see WAYS")
    lines = [line for move, names in events.items() for line in _way(WAYS[move], move, names)]
    boxes = [line for state, box in BOXES.items() for line in _box(state, box)]
    return "\n".join([HEAD, *lines, *boxes, "</svg>", "</figure>"])


def _way(way: Way, move: tuple[State, State], names: list[str]) -> Iterator[str]:
    kind = "exclusion" if move[1] is S.SUPPRESSED else "move"
    yield f'<polyline class="{kind}" points="{way.points}" marker-end="url(#frontier-arrow)"/>'
    texts = names if way.is_stacked else [", ".join(names)]
    for number, text in enumerate(texts):
        y = way.y + LINE_HEIGHT * (number + way.is_stacked)
        yield f'<text class="event" x="{way.x}" y="{y}" text-anchor="{way.anchor}">{text}</text>'


def _box(state: State, box: Box) -> Iterator[str]:
    x, y = box.x + box.width // 2, box.y + box.height // 2 + 5
    yield (
        f'<rect class="{state}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
        ' rx="6"/>'
    )
    yield f'<text class="state" x="{x}" y="{y}" text-anchor="middle">{state}</text>'
