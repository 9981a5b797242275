"""The robots exclusion protocol (RFC 9309), from the text of a robots.txt to the decision on a URL.

A fetch is judged (`classify`), which changes the record of its origin (`after_fetch`), by which
URLs are judged (`Judge`, `decide`).
"""

from __future__ import annotations

from scrapy_frontier.policy.robots.agents import (
    AgentToken,
    has_contact,
    product_token,
    read_agent,
)
from scrapy_frontier.policy.robots.codec import RecordUnreadable, dump, load
from scrapy_frontier.policy.robots.decisions import (
    NO_POLICY,
    ROBOTS_ALLOW,
    ROBOTS_CLOSED,
    ROBOTS_DISALLOW,
    ROBOTS_OPERATOR,
    ROBOTS_PENDING,
    ROBOTS_UNREACHABLE,
    ROBOTS_WAIVED,
    Decision,
    OperatorAnswer,
    OperatorPolicy,
    ProtocolAnswer,
    Ruling,
)
from scrapy_frontier.policy.robots.groups import Group, Verdict
from scrapy_frontier.policy.robots.judge import (
    IntervalFloor,
    Judge,
    TextMissing,
    decide,
    interval_floor,
    robots_url,
    target_of,
)
from scrapy_frontier.policy.robots.lines import EVERYBODY, LIMIT
from scrapy_frontier.policy.robots.outcomes import (
    FETCHED,
    MAX_REDIRECTS,
    NO_GROUPS,
    NOT_MODIFIED,
    REDIRECT_LOOP,
    REDIRECT_REFUSED,
    REDIRECT_UNUSABLE,
    TOO_MANY_REDIRECTS,
    Hop,
    Meaning,
    RobotsFetch,
    RobotsOutcome,
    classify,
    hop_refusal,
)
from scrapy_frontier.policy.robots.records import (
    MAX_AGE_S,
    RobotsRecord,
    RobotsState,
    changes_rulings,
    digest_of,
)
from scrapy_frontier.policy.robots.rules import PARSER_VERSION, Rules, Sitemap
from scrapy_frontier.policy.robots.transitions import (
    UNREACHABLE_TOO_LONG,
    RobotsPolicy,
    after_fetch,
    reopen,
    reread,
)

__all__ = [
    "EVERYBODY",
    "FETCHED",
    "LIMIT",
    "MAX_AGE_S",
    "MAX_REDIRECTS",
    "NOT_MODIFIED",
    "NO_GROUPS",
    "NO_POLICY",
    "PARSER_VERSION",
    "REDIRECT_LOOP",
    "REDIRECT_REFUSED",
    "REDIRECT_UNUSABLE",
    "ROBOTS_ALLOW",
    "ROBOTS_CLOSED",
    "ROBOTS_DISALLOW",
    "ROBOTS_OPERATOR",
    "ROBOTS_PENDING",
    "ROBOTS_UNREACHABLE",
    "ROBOTS_WAIVED",
    "TOO_MANY_REDIRECTS",
    "UNREACHABLE_TOO_LONG",
    "AgentToken",
    "Decision",
    "Group",
    "Hop",
    "IntervalFloor",
    "Judge",
    "Meaning",
    "OperatorAnswer",
    "OperatorPolicy",
    "ProtocolAnswer",
    "RecordUnreadable",
    "RobotsFetch",
    "RobotsOutcome",
    "RobotsPolicy",
    "RobotsRecord",
    "RobotsState",
    "Rules",
    "Ruling",
    "Sitemap",
    "TextMissing",
    "Verdict",
    "after_fetch",
    "changes_rulings",
    "classify",
    "decide",
    "digest_of",
    "dump",
    "has_contact",
    "hop_refusal",
    "interval_floor",
    "load",
    "product_token",
    "read_agent",
    "reopen",
    "reread",
    "robots_url",
    "target_of",
]
