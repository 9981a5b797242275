"""A crawl frontier for Scrapy that can be trusted: durable, fair, and with an account of every URL."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_frontier.addon import Addon as Addon
    from scrapy_frontier.frontier.hops import HopRefused as HopRefused
    from scrapy_frontier.linkextractors import LinkExtractor as LinkExtractor

__all__ = ["Addon", "HopRefused", "LinkExtractor", "__version__"]

__version__ = version("scrapy-frontier")

_PLACES = {
    "Addon": "scrapy_frontier.addon",
    "HopRefused": "scrapy_frontier.frontier.hops",
    "LinkExtractor": "scrapy_frontier.linkextractors",
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the command-line tools import this package at every start of Scrapy.
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
