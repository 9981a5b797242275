"""Resolvers for Scrapy whose answers age: `TWISTED_DNS_RESOLVER = "scrapy_frontier.resolver.AgeingResolver"`.

`AgeingResolver` asks the operating system, `TtlResolver` asks the name servers and heeds the TTL of their answers;
the latter needs the extra `dns`. Either belongs to the process: all crawls in it share one resolver and its cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.resolver.ageing import AgeingResolver
from scrapy_frontier.resolver.process import (
    forget,
    forget_unreached,
    look_up_fault,
    warn_of_unused,
)

if TYPE_CHECKING:
    from scrapy_frontier.resolver.ttl import TtlResolver as TtlResolver

__all__ = [
    "AgeingResolver",
    "TtlResolver",
    "forget",
    "forget_unreached",
    "look_up_fault",
    "warn_of_unused",
]


def __getattr__(name: str) -> Any:
    if name != "TtlResolver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from scrapy_frontier.resolver.ttl import TtlResolver
    except ModuleNotFoundError as exc:
        raise ConfigError(
            "TWISTED_DNS_RESOLVER: the TtlResolver needs dnspython; install scrapy-frontier[dns], or"
            " choose scrapy_frontier.resolver.AgeingResolver"
        ) from exc
    return TtlResolver
