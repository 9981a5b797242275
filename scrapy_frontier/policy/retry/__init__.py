"""Whether another attempt follows: rules over outcomes, waits, and a decision that can be repeated from the ledger.

No I/O, no clock, no randomness of its own: `decide(question, rules)` is a function.
"""

from scrapy_frontier.policy.retry.decisions import (
    DISABLED,
    DONT_RETRY,
    EXHAUSTED,
    NOT_IDEMPOTENT,
    NOT_TRANSIENT,
    Decision,
    decide,
    record,
    recorded,
    weigh,
)
from scrapy_frontier.policy.retry.faults import exception_names, fault_kind, has_no_answer
from scrapy_frontier.policy.retry.overrides import read_rules
from scrapy_frontier.policy.retry.questions import Question
from scrapy_frontier.policy.retry.retry_after import read_retry_after
from scrapy_frontier.policy.retry.rules import IDEMPOTENT, Limits, RetryRule, RetryRules, Terms
from scrapy_frontier.policy.retry.table import TABLE, BuiltIn, Counts, built_in

__all__ = [
    "DISABLED",
    "DONT_RETRY",
    "EXHAUSTED",
    "IDEMPOTENT",
    "NOT_IDEMPOTENT",
    "NOT_TRANSIENT",
    "TABLE",
    "BuiltIn",
    "Counts",
    "Decision",
    "Limits",
    "Question",
    "RetryRule",
    "RetryRules",
    "Terms",
    "built_in",
    "decide",
    "exception_names",
    "fault_kind",
    "has_no_answer",
    "read_retry_after",
    "read_rules",
    "record",
    "recorded",
    "weigh",
]
