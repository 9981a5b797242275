"""Between the store and the schedule: fills the window, releases what has become due, and says when to wake.

All of it runs on the event loop. Questions to the store travel through the writer, so that an answer shows every message
sent before the question.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.clock import milliseconds
from scrapy_frontier.identity import host_of
from scrapy_frontier.policy.politeness import OriginPolicy, PolitenessRules, draw_interval
from scrapy_frontier.scheduling import DueQueue, Refill, Schedule
from scrapy_frontier.scheduling import Head as Scheduled
from scrapy_frontier.store import rows
from scrapy_frontier.store.messages import Committed, Due, Head, OriginTiming, Read

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.clock import Clock
    from scrapy_frontier.store.writer import Writer

DUE_LIMIT: Final = 10_000
"""Waiting times held in memory; later ones stay in the store."""
