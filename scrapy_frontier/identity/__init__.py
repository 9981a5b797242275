"""From a reference to what is fetched once.

Resolved URL, fetch key, origin, parameter rules, request records. Pure: no clock, no random, no
I/O, and nothing of Scrapy, SQLAlchemy or Twisted.
"""

from scrapy_frontier.identity.keys import KEY_SIZE, NORMALISER_VERSION, comparison_url, fetch_key
from scrapy_frontier.identity.origins import (
    PARTITIONS,
    Origin,
    host_of,
    origin_of,
    partition,
    split_origin,
)
from scrapy_frontier.identity.parameters import (
    Applied,
    ParameterClass,
    ParameterRule,
    ParameterRules,
    Treatment,
    classify,
)
from scrapy_frontier.identity.places import Place
from scrapy_frontier.identity.records import RequestRecord, dump, load
from scrapy_frontier.identity.references import Reference
from scrapy_frontier.identity.rejections import (
    OBSERVED_LIMIT,
    PORT_MALFORMED,
    REJECTION_RULES,
    SCHEME_UNSUPPORTED,
    URL_MALFORMED,
    URL_TOO_LONG,
    USERINFO,
    Rejection,
    observe,
)
from scrapy_frontier.identity.resolve import (
    Resolved,
    document_base,
    join,
    normalise_request_url,
    resolve,
)
from scrapy_frontier.identity.tracking import TRACKING_PARAMETERS, TRACKING_PARAMETERS_VERSION
from scrapy_frontier.identity.values import Codec, NotSerialisable

__all__ = [
    "KEY_SIZE",
    "NORMALISER_VERSION",
    "OBSERVED_LIMIT",
    "PARTITIONS",
    "PORT_MALFORMED",
    "REJECTION_RULES",
    "SCHEME_UNSUPPORTED",
    "TRACKING_PARAMETERS",
    "TRACKING_PARAMETERS_VERSION",
    "URL_MALFORMED",
    "URL_TOO_LONG",
    "USERINFO",
    "Applied",
    "Codec",
    "NotSerialisable",
    "Origin",
    "ParameterClass",
    "ParameterRule",
    "ParameterRules",
    "Place",
    "Reference",
    "Rejection",
    "RequestRecord",
    "Resolved",
    "Treatment",
    "classify",
    "comparison_url",
    "document_base",
    "dump",
    "fetch_key",
    "host_of",
    "join",
    "load",
    "normalise_request_url",
    "observe",
    "origin_of",
    "partition",
    "resolve",
    "split_origin",
]
