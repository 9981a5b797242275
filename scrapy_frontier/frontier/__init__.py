"""The frontier of one crawl: the one object that Scrapy's components talk to, and what it is made of.

`core`: the Frontier. `life`: opening and closing a run. `intake`: from a yielded request to a reference.
`dispatch`:
between store and schedule. `attempts`: a dispatch and its end. `direct`: requests past the scheduler. `recovery`: what
a resumed run does first.
"""

from scrapy_frontier.frontier.core import Frontier

__all__ = ["Frontier"]
