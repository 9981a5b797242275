"""What was received, kept as artifacts: bytes under the digest of themselves, in a folder or an object store.

The ledger refers to them by digest. An artifact is durable before the transaction that names it begins, so that a
committed reference points to bytes that are there (design, invariant 5); one that nothing names is an orphan.
"""

from scrapy_frontier.store.artifacts.content import Artifacts, digest_of
from scrapy_frontier.store.artifacts.opening import beside, open_artifacts
from scrapy_frontier.store.artifacts.records import Body, Exchange, Header, ResponseRecord

__all__ = [
    "Artifacts",
    "Body",
    "Exchange",
    "Header",
    "ResponseRecord",
    "beside",
    "digest_of",
    "open_artifacts",
]
