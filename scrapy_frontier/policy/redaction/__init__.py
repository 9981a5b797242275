"""`FRONTIER_REDACT`: which values in URLs are not shown to readers of reports, logs and exports.

What is stored is never changed. In place of a value stands a digest of it that is made with a key of the store's: two
values stay two, equal ones stay equal, and nobody without the store can find out which value it was by trying.
"""

from scrapy_frontier.policy.redaction.rule import NOTHING, SETTING, SHIPPED_NAMES, RedactionRule
from scrapy_frontier.policy.redaction.urls import DIGEST, KEY_BYTES, Redaction

__all__ = [
    "DIGEST",
    "KEY_BYTES",
    "NOTHING",
    "SETTING",
    "SHIPPED_NAMES",
    "Redaction",
    "RedactionRule",
]
