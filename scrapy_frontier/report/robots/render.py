"""Records of robots.txt, and what they say of a URL, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_frontier.policy.robots import RobotsState, Ruling
from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock, instant
from scrapy_frontier.report.layout import counted, printable
from scrapy_frontier.report.robots.run_policy import OBEY, RULES_SETTING
from scrapy_frontier.report.robots.tables import STATES
from scrapy_frontier.report.robots.words import DIGEST_SHOWN, asked_again, trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy_frontier.policy.robots import RobotsRecord
    from scrapy_frontier.report.robots.answers import RecordAnswer, UrlAnswer, Word
    from scrapy_frontier.report.robots.run_policy import RunPolicy

LINES_SHOWN: Final = 100
"""Lines of a robots.txt that are shown unless all of them are wanted."""

_MARGIN: Final = 15
_DIGEST_IN_TABLE: Final = 8


def render_records(records: Sequence[RecordAnswer]) -> str:
    """A line for each origin."""
    if not records:
        return "No robots.txt on record.\n"
    headings = ["state", "reason", "age", "expires", "fails", "delay", "size", "digest", "origin"]
    # An origin is there to be copied into the next command.
    return "\n".join(layout.table(headings, [_row(one) for one in records], is_cut=False)) + "\n"


def _row(one: RecordAnswer) -> tuple[str | int, ...]:
    record = one.record
    if record is None:
        return ("unreadable", "", "", "", 0, "", "", "", one.origin)
    return (
        "old copy" if record.is_standing_in else _SHORT[record.state],
        record.trouble or record.reason,
        "" if one.age_s is None else _rough(one.age_s),
        _expiry(one, record),
        record.failures,
        f"{one.floor.asked_s:g} s" if one.floor else "",
        layout.size(len(record.text)) if record.has_copy else "",
        record.digest[:_DIGEST_IN_TABLE],
        one.origin,
    )


def _expiry(one: RecordAnswer, record: RobotsRecord) -> str:
    """When it expires; of one that cannot be had, when it is asked for again."""
    if record.unreachable_since is not None:
        left_s = record.next_try_at - one.now
        return f"retry {_rough(left_s)}" if left_s > 0 else "retry now"
    left_s = one.expires_in_s or 0.0
    return _rough(left_s) if left_s > 0 else "expired"


_SHORT: Final = {
    RobotsState.PENDING: "unread",
    RobotsState.RULES: "rules",
    RobotsState.ALLOW_ALL: "allows all",
    RobotsState.DISALLOW_ALL: "unreachable",
}


def _rough(seconds: float) -> str:
    """A time span in its largest unit."""
    value, unit = layout.duration(seconds).split(" ")[:2]
    return f"{value} {unit}"


def render_record(one: RecordAnswer, policy: RunPolicy, *, is_full: bool = False) -> str:
    """The whole record of an origin, and its text with the numbers of its lines."""
    lines = [one.origin, *_record_lines(one, policy)]
    text = one.lines()
    if text:
        lines += ["", *_numbered(text, is_full=is_full)]
    return "\n".join(lines) + "\n"


def _record_lines(one: RecordAnswer, policy: RunPolicy) -> list[str]:
    record = one.record
    if record is None:
        return _parts({"State": [f"unreadable: {one.fault}. The next crawl fetches it again."]})
    return _parts(
        {
            "State": [_state(record), *_age(one, record)],
            "Trouble": _trouble(record, one.now),
            "Redirects": [f"{hop.status} to {hop.target}" for hop in record.hops],
            "Text": _text(record),
            "Sitemaps": list(one.sitemaps),
            "Agent": [_agent(one, policy), *_delay(one)],
        }
    )


def _parts(parts: dict[str, list[str]]) -> list[str]:
    return [
        line
        for label, texts in parts.items()
        for line in layout.labelled(f"  {label}", [printable(text) for text in texts], _MARGIN)
    ]


def _state(record: RobotsRecord) -> str:
    words = STATES[record.state.label][0]
    if record.reason:
        words += f" ({record.reason})"
    if record.is_standing_in:
        return f"{words}: an old copy, which stands in for a newer one that cannot be had."
    return f"{words}; the run that tried last has given up." if record.is_closed else f"{words}."


def _age(one: RecordAnswer, record: RobotsRecord) -> list[str]:
    if one.age_s is None:
        return []
    had = "Tried" if record.state is RobotsState.DISALLOW_ALL else "Fetched"
    lines = [f"{had} {clock(instant(record.fetched_at))}, {_span(one.age_s)} ago."]
    left_s = one.expires_in_s
    if left_s is not None and record.state is not RobotsState.DISALLOW_ALL:
        at = clock(instant(record.expires_at))
        lines.append(
            f"Expires {at}, in {_span(left_s)}."
            if left_s > 0
            else f"Expired {at}, {_span(-left_s)} ago: asked for again before the next URL."
        )
    return lines


def _span(seconds: float) -> str:
    return layout.duration(max(0.0, seconds))


def _trouble(record: RobotsRecord, now: float) -> list[str]:
    if not record.trouble:
        return []
    return [f"{trouble(record)}.", f"It may be asked for again {asked_again(record, now)}."]


def _text(record: RobotsRecord) -> list[str]:
    if not record.has_copy:
        return []
    kind = f", {record.content_type}" if record.content_type else ""
    cut = ", cut: there was more than is read of a robots.txt" if record.is_cut else ""
    lines = [f"{layout.size(len(record.text))}{kind}, digest {record.digest}{cut}."]
    validators = {"ETag": record.etag, "Last-Modified": record.last_modified}
    return lines + [f"{name}: {value}" for name, value in validators.items() if value]


def _agent(one: RecordAnswer, policy: RunPolicy) -> str:
    name = f"{policy.agent.token} (from {policy.agent.setting} of run {policy.run_id})"
    if one.record is None or one.record.state is not RobotsState.RULES:
        return f"{name}."
    return f"{name}: the group for {one.group} holds." if one.group else f"{name}: no group holds."


def _delay(one: RecordAnswer) -> list[str]:
    if one.floor is None:
        return []
    capped = f", of which {one.floor.floor_s:g} s are kept" if one.floor.is_capped else ""
    return [f"Crawl-delay {one.floor.asked_s:g} s, line {one.floor.line_number}{capped}."]


def _numbered(lines: Sequence[str], *, is_full: bool) -> Iterable[str]:
    shown = lines if is_full else lines[:LINES_SHOWN]
    width = max(4, len(str(len(lines))) + 2)
    for number, line in enumerate(shown, 1):
        text = printable(line.expandtabs().rstrip())
        text = text if is_full else layout.shorten(text, layout.WIDTH - width - 2)
        yield f"{number:>{width}}  {text}".rstrip()
    more = len(lines) - len(shown)
    if more:
        yield f"{'...':>{width}}  {counted(more, 'more line')}: --full shows all of them."


def render_url(one: UrlAnswer, origin: str, policy: RunPolicy) -> str:
    """What each side says of a URL, what follows, and by which record."""
    parts = {
        "robots.txt": [_protocol(one)],
        "Operator": [_operator(one.operator, policy)],
        "So": [_SO[Ruling(one.ruling)].format(rule=one.rule)],
    }
    return "\n".join([printable(one.url), *_parts(parts | _record(one, origin, policy))]) + "\n"


def _record(one: UrlAnswer, origin: str, policy: RunPolicy) -> dict[str, list[str]]:
    """By which record a URL was judged."""
    known = one.record
    if known is None or known.record is None:
        fault = f"unreadable: {known.fault}" if known else "none in this store"
        return {"Record": [f"{origin}: {fault}."]}
    return {
        "Record": [f"{origin} {_state(known.record)}", *_age(known, known.record)],
        "Trouble": _trouble(known.record, known.now),
        "Agent": [_agent(known, policy)],
    }


_SO: Final = {
    Ruling.ALLOWED: "it may be fetched ({rule}).",
    Ruling.FORBIDDEN: "it is excluded ({rule}).",
    Ruling.WAITING: "it waits ({rule}).",
}


def _protocol(one: UrlAnswer) -> str:
    word, known = one.protocol, one.record
    record = None if known is None else known.record
    if record is None:
        return "not known: it is asked for before the first URL of the origin."
    if word.ruling == Ruling.WAITING.value:
        return f"cannot be had: {record.trouble or record.reason}."
    if record.state is RobotsState.ALLOW_ALL:
        return f"{STATES[record.state.label][0]} ({record.reason})."
    digest = f", copy {record.digest[:DIGEST_SHOWN]}" if record.has_copy else ""
    old = "; this copy has expired, and a newer one may say otherwise" if one.is_expired else ""
    return f"{_words(word)}{digest}{old}."


def _words(word: Word, text: str = "") -> str:
    verb = "allowed" if word.ruling == Ruling.ALLOWED.value else "forbidden"
    if word.line is not None:
        group = f", in the group for {word.group}" if word.group else ""
        return f'{verb} by line {word.line}{text} ("{word.text}"{group})'
    if word.group:
        return f"{verb}: no line of the group for {word.group} matches"
    return f"{verb}: no group is for this agent"


def _operator(word: Word | None, policy: RunPolicy) -> str:
    if not policy.obeys:
        return f"{OBEY} is off in run {policy.run_id}, which asks no robots.txt."
    if word is not None:
        return f"{_words(word, f' of {RULES_SETTING}')}."
    if policy.operator.rules is None:
        return f"says nothing: {RULES_SETTING} is not set."
    return f"says nothing: no line of {RULES_SETTING} forbids it."
