"""May this URL be fetched? What robots.txt says and what the operator says, side by side.

The protocol's answer is never changed by the operator's: a waiver lets a URL through that
robots.txt forbids, a rule of the operator's holds back one that it allows, and the decision shows
both. Where the operator says two things at once, the stricter one holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from scrapy_frontier.policy.robots.groups import Group, Verdict
from scrapy_frontier.policy.robots.records import RobotsRecord

ROBOTS_ALLOW: Final = "robots.allow"
"""Nothing forbids it."""
ROBOTS_DISALLOW: Final = "robots.disallow"
"""A line of robots.txt forbids it."""
ROBOTS_PENDING: Final = "robots.pending"
"""It waits for a robots.txt that was not fetched yet, or has expired."""
ROBOTS_UNREACHABLE: Final = "robots.unreachable"
"""It waits for a robots.txt that cannot be fetched."""
ROBOTS_CLOSED: Final = "robots.closed"
"""Its robots.txt could not be fetched, and this run has stopped trying."""
ROBOTS_OPERATOR: Final = "robots.operator"
"""A rule of the operator's forbids it."""
ROBOTS_WAIVED: Final = "robots.waived"
"""Robots.txt does not let it through (now), but a waiver does."""


class Ruling(Enum):
    """What may become of a URL: fetched, excluded, or held until more is known."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class OperatorPolicy:
    """What the operator adds to robots.txt.

    `waiver`: the name of what lets everything through (`dont_obey_robotstxt`, `ROBOTSTXT_OBEY`), ""
    for none. `rules`: what is forbidden besides, written as in a robots.txt and read by
    `Rules.for_agent`; an allow in it is only an exception to its own disallows.
    """

    waiver: str = ""
    rules: Group | None = None


NO_POLICY: Final = OperatorPolicy()


@dataclass(frozen=True, slots=True)
class ProtocolAnswer:
    """What robots.txt says. `rule`: one of the codes above; `verdict`: the line that decides, None
    where not the text decides; `group`: the token whose rules were read.
    """

    ruling: Ruling
    rule: str
    verdict: Verdict | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class OperatorAnswer:
    """What the operator says; `ruling` is None where nothing was said. `waiver`: what lets the URL
    through; `verdict`: the line of the operator's rules that forbids it.
    """

    ruling: Ruling | None = None
    waiver: str = ""
    verdict: Verdict | None = None


SILENT: Final = OperatorAnswer()


@dataclass(frozen=True, slots=True)
class Decision:
    """Both answers, and what follows; `record`: the one that was in force."""

    protocol: ProtocolAnswer
    operator: OperatorAnswer
    record: RobotsRecord | None

    @property
    def ruling(self) -> Ruling:
        """What may become of the URL."""
        return self.protocol.ruling if self.operator.ruling is None else self.operator.ruling

    @property
    def rule(self) -> str:
        """The code of the reason, for the ledger."""
        if self.operator.ruling is Ruling.FORBIDDEN:
            return ROBOTS_OPERATOR
        if self.operator.waiver and self.protocol.ruling is not Ruling.ALLOWED:
            return ROBOTS_WAIVED
        return self.protocol.rule

    def as_data(self) -> dict[str, object]:
        """The inputs of the decision as plain data, for the ledger."""
        data: dict[str, object] = {"protocol": _protocol_data(self.protocol, self.record)}
        if self.operator.ruling is not None:
            data["operator"] = _operator_data(self.operator)
        return data


def _protocol_data(answer: ProtocolAnswer, record: RobotsRecord | None) -> dict[str, object]:
    data: dict[str, object] = {"rule": answer.rule, **_verdict_data(answer.verdict)}
    if answer.group:
        data["group"] = answer.group
    if record is not None:
        data |= _record_data(record)
    return data


def _record_data(record: RobotsRecord) -> dict[str, object]:
    """Which copy decided, and whether it was a recent one."""
    data = {
        "state": record.state.label,
        "reason": record.reason,
        "fetched_at": record.fetched_at,
        "parser_version": record.parser_version,
        "digest": record.digest,
        "trouble": record.trouble,
        "unreachable_since": record.unreachable_since,
    }
    return {name: value for name, value in data.items() if value not in (None, "")}


def _operator_data(answer: OperatorAnswer) -> dict[str, object]:
    data = _verdict_data(answer.verdict)
    if answer.waiver:
        data["waiver"] = answer.waiver
    return data


def _verdict_data(verdict: Verdict | None) -> dict[str, object]:
    if verdict is None or verdict.line_number is None:
        return {}
    return {"line": verdict.line_number, "text": verdict.line_text}
