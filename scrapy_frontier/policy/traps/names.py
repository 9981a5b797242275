"""What parameters are called that name a session, search, sort, or turn pages.

The names are those of widespread software: PHP, Java servlets, ASP.NET and ColdFusion for sessions; Apache's directory
listings (`C` and `O`), WordPress, Drupal, MediaWiki, phpBB and Magento for the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

SESSION: Final = frozenset(
    {
        "phpsessid",
        "jsessionid",
        "sessionid",
        "session_id",
        "sessid",
        "sid",
        "cfid",
        "cftoken",
        "zenid",
        "oscsid",
    }
    | {"s_id", "sessionkey", "visitid", "visit_id"}
)
SEARCH: Final = frozenset(
    {"q", "query", "search", "searchword", "keyword", "keywords", "term", "terms", "s", "find"}
)
SORT: Final = frozenset(
    {
        "sort",
        "sortby",
        "sort_by",
        "sortorder",
        "sort_order",
        "sort_dir",
        "order",
        "orderby",
        "order_by",
        "ordering",
    }
    | {"dir", "direction", "C", "O"}
)
PAGE: Final = frozenset(
    {
        "page",
        "p",
        "pg",
        "paged",
        "pageno",
        "page_no",
        "pagenum",
        "start",
        "offset",
        "skip",
        "from",
        "begin",
    }
    | {"cursor", "after", "before"}
)

_SHORT: Final = 8


@lru_cache(maxsize=8192)
def is_session(name: str, value: str) -> bool:
    """Whether a parameter names a session."""
    name = name.lower()
    if name.startswith("aspsessionid"):
        return True
    return name in SESSION and len(value) >= (_SHORT if name in {"sid", "s_id"} else 1)


def is_search(name: str) -> bool:
    """Whether a parameter holds the words of a search."""
    return name.lower() in SEARCH


def is_sort(name: str) -> bool:
    """Whether a parameter says in which order things are listed."""
    return name in SORT or (len(name) > 1 and name.lower() in SORT)


def is_page(name: str, value: str = "0") -> bool:
    """Whether a parameter with a number, or a directory above one, turns pages."""
    return name.lower() in PAGE and value.isdecimal()
