"""Traps: finite content with an infinite address space, and the brakes that hold it.

`signature` groups URLs into families, `family` counts what a family brings, `detector` decides, `mirrors` finds
mirrored trees, `content` is what a page brought, `exceptions` the setting that overrides a rule in a place.
"""

from __future__ import annotations

from scrapy_frontier.policy.traps.content import Content
from scrapy_frontier.policy.traps.detector import Referral, Traps
from scrapy_frontier.policy.traps.exceptions import TrapExceptions
from scrapy_frontier.policy.traps.family import RULES, Brake, Family
from scrapy_frontier.policy.traps.signature import SIGNATURE_VERSION, Signature, signature_of

__all__ = [
    "RULES",
    "SIGNATURE_VERSION",
    "Brake",
    "Content",
    "Family",
    "Referral",
    "Signature",
    "TrapExceptions",
    "Traps",
    "signature_of",
]
