"""A hostile web, and what a crawl must do with it.

`cases` are told once and run twice: the tests hold the frontier to what is right, and `comparison` shows Scrapy's
default beside it.
"""

import sys
from pathlib import Path

# The crawls of the crawl tests are used here as they are.
sys.path.append(str(Path(__file__).parents[1] / "crawl"))
