"""Redirects and retries: each hop is an identity, each retry an attempt, and all have their end."""

from __future__ import annotations

from typing import Any

from crawls import Follower, Lab, on_both_stores
from scrapy import Request
from scrapy.downloadermiddlewares.retry import get_retry_request

from scrapy_frontier.testing import Answer, page, redirect, text

# Redirects


@on_both_stores
async def test_redirect_chain(lab: Lab) -> None:
    """Each hop is an identity that ends as redirected; the last one succeeds."""
    lab.main.on("/a", redirect("/b", 301))
    lab.main.on("/b", redirect("/c", 302))
    lab.main.on("/c", page("end"))
    result = await lab.crawl(seeds=[lab.main / "a"])
    result.assert_exhausted()
    ends = [result.fate(lab.main / path).end for path in "abc"]
    assert ends == ["redirected", "redirected", "succeeded"]
    assert result.coverage.redirects.hops == 2
    assert result.coverage.references.by_kind["redirect"].total == 2


async def test_redirect_to_a_known_page(lab: Lab) -> None:
    """A hop to a page that was seen is a duplicate; the page that redirected has its end all the same."""
    lab.main.on("/", page("", ["/old", "/new"]))
    lab.main.on("/old", redirect("/new"))
    lab.main.on("/new", page("new"))
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/old": 1, "/new": 1}
    assert result.fate(lab.main / "old").end == "redirected"


async def test_redirect_loop(lab: Lab) -> None:
    """A circle of redirects ends at once: each of its pages is known after one turn."""
    lab.main.on("/a", redirect("/b"))
    lab.main.on("/b", redirect("/a"))
    result = await lab.crawl(seeds=[lab.main / "a"])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/a": 1, "/b": 1}
    assert result.ends() == {"redirected": 2}


async def test_redirect_to_itself(lab: Lab) -> None:
    """A page that redirects to itself, to set a cookie say, is asked again, and not for ever."""
    lab.main.on("/once", [redirect("/once"), page("in")])
    lab.main.on("/ever", redirect("/ever"))
    seeds = [lab.main / "once", lab.main / "ever"]
    result = await lab.crawl(settings={"REDIRECT_MAX_TIMES": 3}, seeds=seeds)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/once": 2, "/ever": 4}
    assert result.fate(lab.main / "once").end == "succeeded"
    assert result.fate(lab.main / "ever").state == "terminal"


@on_both_stores
async def test_redirect_out_of_the_scope(lab: Lab) -> None:
    """A hop is judged like a link: what the scope excludes is not asked for."""
    other = lab.server.origin("other", "127.0.0.2")
    lab.main.on("/", redirect(f"{other.url}/away"))
    result = await lab.crawl(
        settings={"FRONTIER_SCOPE": {"include": [lab.main.url]}}, seeds=[lab.main / ""]
    )
    result.assert_exhausted()
    assert result.log.of(other.url) == []
    assert result.fate(f"{other.url}/away").reason == "scope.origin"
    assert result.fate(lab.main / "").end == "redirected"


async def test_redirect_of_a_post(lab: Lab) -> None:
    """A 303 after a POST is a GET; the two are two identities."""

    class Posts(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "form", method="POST", body=b"a=1")

    lab.main.on("/form", redirect("/thanks", 303))
    lab.main.on("/thanks", page("thanks"))
    result = await lab.crawl(Posts)
    result.assert_exhausted()
    assert result.fate(f"POST {lab.main / 'form'}").end == "redirected"
    assert result.fate(lab.main / "thanks").end == "succeeded"


async def test_meta_refresh(lab: Lab) -> None:
    """A refresh in the page is a redirect, whatever its status."""
    lab.main.on("/", Answer('<meta http-equiv="refresh" content="0;url=/next">'))
    lab.main.on("/next", page("next"))
    result = await lab.crawl(seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/": 1, "/next": 1}
    assert result.fate(lab.main / "").end == "redirected"


async def test_redirect_that_a_spider_takes_itself(lab: Lab) -> None:
    """`handle_httpstatus_list` and `dont_redirect` keep their meaning: the callback gets the response."""

    class Takes(Follower):
        handle_httpstatus_list = [302]

        def parse(self, response: Any) -> Any:
            yield {"status": response.status}

    lab.main.on("/", redirect("/next"))
    result = await lab.crawl(Takes, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"status": 302}]
    assert result.log.hits_by_path() == {"/": 1}


# Retries


@on_both_stores
async def test_retries_are_attempts_of_one_identity(lab: Lab) -> None:
    """Failures and bad answers are tried again and counted; the identity ends once."""
    lab.main.on("/weak", [Answer(status=503), Answer(status=500), page("well")])
    lab.main.on("/dead", Answer(status=502))
    seeds = [lab.main / "weak", lab.main / "dead"]
    result = await lab.crawl(seeds=seeds)
    result.assert_exhausted()
    weak, dead = result.fate(seeds[0]), result.fate(seeds[1])
    assert (weak.end, weak.attempts) == ("succeeded", 3)
    assert (dead.end, dead.attempts) == ("http_error", 3)
    assert result.coverage.attempts.retries == 4
    assert result.coverage.identities.discovered == 2


async def test_download_failures_are_retried_and_given_up(lab: Lab) -> None:
    """What never brings a response ends as failed, with its attempts."""
    lab.main.on("/late", Answer(fault="stall"))
    result = await lab.crawl(
        settings={"DOWNLOAD_TIMEOUT": 0.2, "RETRY_TIMES": 1}, seeds=[lab.main / "late"]
    )
    result.assert_exhausted()
    late = result.fate(lab.main / "late")
    assert (late.end, late.reason, late.attempts) == ("failed", "download.timeout", 2)
    assert [letter.url for letter in result.coverage.deadletters] == [lab.main / "late"]


async def test_retry_from_a_callback(lab: Lab) -> None:
    """`get_retry_request` in a callback makes a further attempt of the same identity."""

    class Insists(Follower):
        def parse(self, response: Any) -> Any:
            if b"not yet" in response.body:
                yield get_retry_request(response.request, spider=self, reason="not yet")
            else:
                yield {"body": response.text}

    lab.main.on("/", [text("not yet"), text("not yet"), text("now")])
    result = await lab.crawl(Insists, seeds=[lab.main / ""])
    result.assert_exhausted()
    assert result.items == [{"body": "now"}]
    assert result.fate(lab.main / "").attempts == 3
    assert result.coverage.identities.discovered == 1


async def test_retry_settings_keep_their_meaning(lab: Lab) -> None:
    """`dont_retry` and `max_retry_times` of a request go before the settings."""

    class Wishes(Follower):
        async def start(self) -> Any:
            yield Request(lab.main / "never", meta={"dont_retry": True})
            yield Request(lab.main / "once", meta={"max_retry_times": 1})

    lab.main.otherwise = Answer(status=500)
    result = await lab.crawl(Wishes)
    result.assert_exhausted()
    assert result.log.hits_by_path() == {"/never": 1, "/once": 2}
