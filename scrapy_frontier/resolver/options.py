"""The settings that a resolver reads, all of them settings of the process."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.resolver.cache import Lifetimes
from scrapy_frontier.settings import FrontierSettings

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

SETTINGS: Final = {
    "floor_s": "FRONTIER_DNS_FLOOR",
    "ceiling_s": "FRONTIER_DNS_CEILING",
    "negative_s": "FRONTIER_DNS_NEGATIVE",
    "limit": "DNSCACHE_SIZE",
    "timeout_s": "DNS_TIMEOUT",
}
"""Where each field of `ResolverOptions` comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverOptions:
    """How long answers are kept (`Lifetimes`), how many (0: none), and for how many seconds a request waits for one."""

    floor_s: float = 60.0
    ceiling_s: float = 3600.0
    negative_s: float = 30.0
    limit: int = 10_000
    timeout_s: float = 60.0

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> ResolverOptions:
        """Read and check the settings. Raises `ConfigError` that names the one at fault."""
        frontier = FrontierSettings.from_settings(settings)
        if frontier.dns_floor_s > frontier.dns_ceiling_s:
            raise ConfigError(
                f"FRONTIER_DNS_FLOOR = {frontier.dns_floor_s:g} is above FRONTIER_DNS_CEILING ="
                f" {frontier.dns_ceiling_s:g}: lower the one or raise the other"
            )
        return cls(
            floor_s=frontier.dns_floor_s,
            ceiling_s=frontier.dns_ceiling_s,
            negative_s=frontier.dns_negative_s,
            limit=settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0,
            timeout_s=settings.getfloat("DNS_TIMEOUT"),
        )

    @property
    def lifetimes(self) -> Lifetimes:
        """The part that is about time."""
        return Lifetimes(self.floor_s, self.ceiling_s, self.negative_s)

    def differing(self, other: ResolverOptions) -> list[str]:
        """The names of the settings in which two differ."""
        names = (item.name for item in fields(self))
        return [SETTINGS[name] for name in names if getattr(self, name) != getattr(other, name)]
