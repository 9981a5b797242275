"""Whether, and when, another attempt follows: decided from recorded inputs alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from scrapy_frontier.policy.retry.backoff import asked_s, backoff_s
from scrapy_frontier.policy.retry.questions import Question
from scrapy_frontier.policy.retry.retry_after import read_retry_after
from scrapy_frontier.policy.retry.rules import IDEMPOTENT, RetryRules, Terms
from scrapy_frontier.policy.retry.table import Counts

NOT_TRANSIENT: Final = "not_transient"
"""Why not: by its rule it would come to the same again."""
EXHAUSTED: Final = "exhausted"
"""Why not: all attempts of its kind are used up."""
DISABLED: Final = "disabled"
"""Why not: `RETRY_ENABLED` is False."""
DONT_RETRY: Final = "dont_retry"
"""Why not: the request says so."""
NOT_IDEMPOTENT: Final = "not_idempotent"
"""Why not: the request may have been acted on, and twice is not the same as once."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether another attempt follows. `why_not` is "" where one does.

    `due_ms`: not before this time. `remaining`: how many more of its kind may follow after it.
    `hold_until_ms` above 0: nothing goes to the origin before then. `retry_after`: how that header
    was read, and `skew_s` by how much the server's clock is ahead.
    """

    rule: str
    counts: Counts
    why_not: str = ""
    due_ms: int = 0
    delay_s: float = 0.0
    remaining: int = 0
    hold_until_ms: int = 0
    retry_after: str = ""
    skew_s: float | None = None

    @property
    def retries(self) -> bool:
        """Whether another attempt follows."""
        return not self.why_not

    @property
    def is_transient(self) -> bool:
        """Whether trying again may help at all."""
        return self.counts is not Counts.NOT

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "counts": self.counts.value}


def decide(question: Question, rules: RetryRules) -> tuple[Decision, Terms]:
    """What follows by the rules in force, and the terms it was decided by."""
    terms = rules.terms(question)
    return weigh(question, terms), terms


def weigh(question: Question, terms: Terms) -> Decision:
    """What follows by these terms. Same inputs, same answer."""
    used = question.holds if terms.counts is Counts.HOLD else question.faults
    asked = read_retry_after(
        question.retry_after, question.date, question.at_ms / 1000, terms.retry_after_cap_s
    )
    if asked is not None and asked.wait_s is not None:
        delay_s = hold_s = asked_s(asked.wait_s, question.seed)
    else:
        # The URL waits longer each time; that one page keeps failing must not stop all others.
        delay_s = backoff_s(terms.delay_s, used, terms.max_delay_s, question.seed)
        hold_s = backoff_s(terms.delay_s, 0, terms.max_delay_s, question.seed)
    due_ms = question.at_ms + int(delay_s * 1000)
    why_not = _why_not(question, terms, used)
    return Decision(
        rule=terms.rule,
        counts=terms.counts,
        why_not=why_not,
        due_ms=0 if why_not else max(due_ms, question.not_before_ms),
        delay_s=0.0 if why_not else delay_s,
        remaining=0 if why_not else terms.times - used - 1,
        hold_until_ms=question.at_ms + int(hold_s * 1000) if terms.holds_gate else 0,
        retry_after="" if asked is None else asked.note,
        skew_s=None if asked is None else asked.skew_s,
    )


def _why_not(question: Question, terms: Terms, used: int) -> str:
    if terms.counts is Counts.NOT:
        return NOT_TRANSIENT
    if not question.is_enabled:
        return DISABLED
    if question.is_refused:
        return DONT_RETRY
    if not _may_be_sent_again(question, terms):
        return NOT_IDEMPOTENT
    return EXHAUSTED if used >= terms.times else ""


def _may_be_sent_again(question: Question, terms: Terms) -> bool:
    return (
        question.method.upper() in IDEMPOTENT
        or terms.may_repeat
        or question.may_repeat
        or question.is_sent is False
    )


def record(question: Question, terms: Terms, decision: Decision, **others: Any) -> str:
    """All of it as the detail of a transition; `others` stands beside it."""
    data = {
        **others,
        "rule": decision.rule,
        "decision": {key: value for key, value in decision.to_json().items() if key != "rule"},
        "terms": terms.to_json(),
        "inputs": question.to_json(),
    }
    return json.dumps(data, ensure_ascii=False)


def recorded(
    detail: str | Mapping[str, Any] | None,
) -> tuple[Question, Terms, dict[str, Any]] | None:
    """(inputs, terms, the decision as plain data) of a transition's detail; None where it holds none."""
    data = json.loads(detail) if isinstance(detail, str) else detail
    if not isinstance(data, Mapping) or "inputs" not in data or "terms" not in data:
        return None
    return (
        Question.from_json(data["inputs"]),
        Terms.from_json(data["terms"]),
        {"rule": data["rule"], **data["decision"]},
    )
