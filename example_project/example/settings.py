"""Settings of the example project: one line is new, the rest is plain Scrapy."""

from __future__ import annotations

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]

# The one line that turns the frontier on. Without it the spiders run on Scrapy's own scheduler:
#     scrapy crawl docs -s ADDONS={}
ADDONS = {"scrapy_frontier.Addon": 500}

# Where the account of each crawl is kept; if this is not set, in a SQLite file under .scrapy/.
# FRONTIER_STORE = "sqlite:///.scrapy/frontier.db"

# Who we are and whom to ask: a crawler that can be reached is a crawler that is not banned.
USER_AGENT = "example (+https://www.example.org/our-crawler)"
ROBOTSTXT_OBEY = True

# Manners. These limits hold for each origin, that is for each scheme, host and port. The delay
# suits a loopback interface; for other people's servers a second or more is right.
CONCURRENT_REQUESTS = 16
CONCURRENT_REQUESTS_PER_DOMAIN = 4
DOWNLOAD_DELAY = 0.01
DOWNLOAD_TIMEOUT = 10

# Failures worth another try get two more.
RETRY_TIMES = 2

ITEM_PIPELINES = {"example.pipelines.OneOfEachProduct": 300}
FEEDS = {"output/%(name)s.jsonl": {"format": "jsonlines", "overwrite": True}}
LOG_LEVEL = "INFO"

# The little web that is crawled here: eleven sites on 127.0.0.1, on this port and the ten after it.
# The ports are fixed so that a crawl that was killed finds the same addresses when it is resumed;
# 0 takes free ones.
EXTENSIONS = {"example.extensions.LocalWeb": 0}
EXAMPLE_WEB_PORT = 18700
# Set to False when `python -m example.web` serves it in another terminal.
EXAMPLE_WEB_ENABLED = True
# A file to which the web appends a line of JSON per request: the other side's story.
EXAMPLE_WEB_LOG = None

# What a browser renders: nothing, unless a request asks for it. For the market hall, whose pages are made by scripts:
#     scrapy crawl market -s FRONTIER_RENDER=all
# FRONTIER_RENDER = "asked"

# One origin of the little web never gives its robots.txt: give up on it soon, its pages stay in the account.
FRONTIER_ROBOTS_MAX_TRIES = 2
FRONTIER_ROBOTS_BACKOFF = 1
