"""One export under way: a run at a moment, read page by page in short snapshots.

No snapshot lasts longer than a page, so that the write-ahead log can be taken into the store while
an export runs; that all pages speak of one moment is the doing of `exports.moment`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from scrapy_frontier import failpoints
from scrapy_frontier.errors import StoreError
from scrapy_frontier.report.exports.moment import Moment, take_moment
from scrapy_frontier.report.exports.shown import as_shown
from scrapy_frontier.report.exports.subjects import Column, Row, Subject
from scrapy_frontier.store.progress import Progress, silent

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scrapy_frontier.policy.redaction import Redaction
    from scrapy_frontier.store.opening import Store

_PAGE_END: Final = (
    "SELECT max({key}) FROM (SELECT {key} FROM {table} WHERE {key} > :after AND {key} <= :bound"
    " ORDER BY {key} LIMIT :size) AS page"
)


@dataclass(frozen=True, slots=True)
class Export:
    """What a format is given to write: the run, its moment, and the rows of one subject."""

    store: Store
    subject: Subject
    moment: Moment
    progress: Progress = silent
    redaction: Redaction | None = None

    @classmethod
    def begin(
        cls,
        store: Store,
        subject: Subject,
        run_id: int,
        progress: Progress = silent,
        redaction: Redaction | None = None,
    ) -> Export:
        """Fix the moment: now. `redaction`: what is hidden in the rows, None for nothing."""
        with store.reader() as connection:
            return cls(store, subject, take_moment(connection, run_id), progress, redaction)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the rows."""
        return self.subject.columns

    def pages(self) -> Iterator[Sequence[Row]]:
        """The rows, in the order of their ids. Raises `StoreError` if the run is dropped meanwhile."""
        subject, bound = self.subject, self.moment.bound(self.subject.table)
        after, step = 0, f"Exporting {self.subject.name}"
        shown = as_shown(self.redaction, subject.columns)
        while True:
            with self.store.reader() as connection:
                upto = self._page_end(connection, after, bound)
                if upto is None:
                    self._check_run(connection)
                    break
                rows = subject.read(connection, self.moment, after, upto)
            after = upto
            if rows:
                yield shown(rows)
                failpoints.reach("export.page")
            self.progress(step, after, bound)
        self.progress("", 0, 0)

    def _page_end(self, connection: Connection, after: int, bound: int) -> int | None:
        """The last id of the next page, whatever runs its rows belong to; None at the end."""
        query = _PAGE_END.format(key=self.subject.key, table=self.subject.table)
        found = connection.scalar(
            text(query), {"after": after, "bound": bound, "size": self.subject.page}
        )
        return None if found is None else int(found)

    def _check_run(self, connection: Connection) -> None:
        query = text("SELECT count(*) FROM run WHERE run_id = :run")
        if not connection.scalar(query, {"run": self.moment.run_id}):
            raise StoreError(
                f"run {self.moment.run_id} was pruned while it was exported: the export is not"
                " whole; export from a backup that still has the run"
            )
