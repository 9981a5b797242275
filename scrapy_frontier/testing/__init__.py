"""What tests need, this package's and its users': a moved clock and a scripted loopback server.

`server.py` is the same server as a command. It is not imported here: `python -m` runs it.
"""

from __future__ import annotations

from scrapy_frontier.testing.answers import Answer, Request, Route, page, redirect, text
from scrapy_frontier.testing.clock import MovedClock
from scrapy_frontier.testing.log import Hit, RequestLog
from scrapy_frontier.testing.origins import Origin
from scrapy_frontier.testing.process import ServerProcess
from scrapy_frontier.testing.scripted import ScriptedServer
from scrapy_frontier.testing.tree import serve_tree

__all__ = [
    "Answer",
    "Hit",
    "MovedClock",
    "Origin",
    "Request",
    "RequestLog",
    "Route",
    "ScriptedServer",
    "ServerProcess",
    "page",
    "redirect",
    "serve_tree",
    "text",
]
