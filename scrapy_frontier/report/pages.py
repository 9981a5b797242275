"""The account as its reader means it: the URLs of the crawl, without the robots.txt asked for beside them.

The account itself, in JSON and in its equations, counts every identity; what is left out here is
told as `Coverage.robots_txt`, so that both agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scrapy_frontier.identity.kinds import ReferenceKind
from scrapy_frontier.states import Disposition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_frontier.report.account import Coverage

COVERED: Final = (
    Disposition.SUCCEEDED.label,
    Disposition.REDIRECTED.label,
    Disposition.NOT_MODIFIED.label,
)
"""Dispositions of URLs that the run has an answer for, as it was meant to."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Identities, attempts, references and redirects of the crawl, without those of robots.txt.

    discovered = admitted + suppressed + deferred, and admitted = terminal + unresolved.
    """

    discovered: int
    admitted: int
    suppressed: Mapping[str, int]
    deferred: Mapping[str, int]
    terminal: Mapping[str, int]
    unresolved: Mapping[str, int]
    attempts: int
    references: int
    duplicates: int
    hops: int

    @property
    def excluded(self) -> int:
        """How many URLs a rule excludes."""
        return sum(self.suppressed.values())

    @property
    def held_back(self) -> int:
        """How many URLs something that can pass holds back."""
        return sum(self.deferred.values())

    @property
    def covered(self) -> int:
        """How many URLs the run has an answer for."""
        return sum(self.terminal.get(end, 0) for end in COVERED)


def pages_of(account: Coverage) -> Pages:
    """The pages of an account. A robots.txt is never excluded or held back."""
    identities, robots_txt = account.identities, account.robots_txt
    return Pages(
        discovered=identities.discovered - robots_txt.identities,
        admitted=identities.admitted - robots_txt.identities,
        suppressed=identities.suppressed,
        deferred=identities.deferred,
        terminal=_less(identities.terminal, robots_txt.terminal),
        unresolved=_less(identities.unresolved, robots_txt.unresolved),
        attempts=account.attempts.total - robots_txt.attempts,
        references=account.references.total - robots_txt.references,
        duplicates=account.references.duplicates - _robots_duplicates(account),
        hops=account.redirects.hops - robots_txt.hops,
    )


def _robots_duplicates(account: Coverage) -> int:
    kind = account.references.by_kind.get(ReferenceKind.ROBOTS.label)
    return 0 if kind is None else kind.duplicates


def _less(counts: Mapping[str, int], fewer: Mapping[str, int]) -> dict[str, int]:
    """What is left of the counts, the largest first."""
    left = {name: count - fewer.get(name, 0) for name, count in counts.items()}
    return {name: count for name, count in sorted(left.items(), key=lambda item: -item[1]) if count}
