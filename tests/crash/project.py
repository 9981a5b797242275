"""The project that `scrapy crawl walker` runs in."""

SPIDER_MODULES = ["tests.crash.walker"]
ADDONS = {"scrapy_frontier.Addon": 500}
TELNETCONSOLE_ENABLED = False
LOGSTATS_INTERVAL = 0
DOWNLOAD_TIMEOUT = 10
RETRY_TIMES = 2
RANDOMIZE_DOWNLOAD_DELAY = False
FRONTIER_ROBOTS_BACKOFF = 0.05
FRONTIER_GC_FREEZE = False
