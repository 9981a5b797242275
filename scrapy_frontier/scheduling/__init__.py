"""Which URL next, and when: gates, lanes, the selector, and the schedule made of them. No I/O and
no clock.
"""

from scrapy_frontier.scheduling.counts import Counts
from scrapy_frontier.scheduling.due import DueQueue, DueRefill
from scrapy_frontier.scheduling.gates import Gate, GateSnapshot, GateState, SchedulingError
from scrapy_frontier.scheduling.hotset import Rotated
from scrapy_frontier.scheduling.lanes import Head, Lane, Refill
from scrapy_frontier.scheduling.schedule import Pick, Schedule
from scrapy_frontier.scheduling.selector import BandTable

__all__ = [
    "BandTable",
    "Counts",
    "DueQueue",
    "DueRefill",
    "Gate",
    "GateSnapshot",
    "GateState",
    "Head",
    "Lane",
    "Pick",
    "Refill",
    "Rotated",
    "Schedule",
    "SchedulingError",
]
