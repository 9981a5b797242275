"""Retries, in place of Scrapy's: the frontier decides whether and when, and the URL waits outside any slot.

The settings `RETRY_ENABLED`, `RETRY_TIMES`, `RETRY_HTTP_CODES`, `RETRY_EXCEPTIONS`, `RETRY_PRIORITY_ADJUST` and
`RETRY_GIVE_UP_LOG_LEVEL`, and the keys `dont_retry`, `max_retry_times`, `priority_adjust` and `give_up_log_level` of
meta, mean what they mean to Scrapy's middleware, and its statistics are kept.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares import retry
from scrapy.utils.response import response_status_message

from scrapy_frontier.frontier import Frontier
from scrapy_frontier.frontier.retries import count_on
from scrapy_frontier.policy.retry import EXHAUSTED

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_frontier.frontier.retries import Judgement


class RetryMiddleware(retry.RetryMiddleware):
    """Asks the frontier. What did not come off the wire (a cache's answer, say) is judged as Scrapy does."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """The request of the next attempt, or the response where there is to be none."""
        attempt = Frontier.of(self.crawler).attempts.get(request)
        if attempt is None or not attempt.is_captured:
            return super().process_response(request, response)
        if attempt.judgement is None:
            return response
        return (
            self.follow(request, attempt.judgement, response_status_message(response.status))
            or response
        )

    def process_exception(  # type: ignore[override]
        self, request: Request, exception: Exception
    ) -> Request | Response | None:
        """The request of the next attempt, or None where there is to be none."""
        attempt = Frontier.of(self.crawler).attempts.get(request)
        if attempt is None or attempt.judgement is None or attempt.exception is not exception:
            return super().process_exception(request, exception)
        return self.follow(request, attempt.judgement, exception)

    def follow(
        self, request: Request, judgement: Judgement, reason: str | Exception
    ) -> Request | None:
        """The request of the attempt that a judgement allows; None where it allows none."""
        decision = judgement.decision
        if decision.why_not == EXHAUSTED:
            # Says so in the log and in the statistics, and gives no request.
            return self._ask(request, reason, -1)
        if not decision.retries:
            return None
        following = self._ask(request, reason, sys.maxsize)
        if following is not None:
            count_on(following, request, decision)
            Frontier.of(self.crawler).next_attempts[following] = judgement
        return following

    def _ask(self, request: Request, reason: str | Exception, times: int) -> Request | None:
        assert self.crawler.spider is not None
        return retry.get_retry_request(
            request,
            spider=self.crawler.spider,
            reason=reason,
            max_retry_times=times,
            priority_adjust=request.meta.get("priority_adjust", self.priority_adjust),
            give_up_log_level=request.meta.get("give_up_log_level", self.give_up_log_level),
        )
