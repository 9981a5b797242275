"""Reads what a crawl's settings say about robots.txt, and puts the parts together."""

from __future__ import annotations

import codecs
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.misc import load_object

from scrapy_frontier.frontier.robots import Robots, RobotsRules
from scrapy_frontier.frontier.robots_fetch import RobotsFetcher
from scrapy_frontier.logs import get_logger
from scrapy_frontier.policy.robots import (
    NO_POLICY,
    ROBOTS_ALLOW,
    ROBOTS_DISALLOW,
    Decision,
    Judge,
    OperatorPolicy,
    ProtocolAnswer,
    RobotsPolicy,
    RobotsRecord,
    Rules,
    Ruling,
    read_agent,
)

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser
    from scrapy.settings import BaseSettings

    from scrapy_frontier.frontier.core import Frontier
    from scrapy_frontier.frontier.robots_gates import RobotsGates
    from scrapy_frontier.settings import FrontierSettings
    from scrapy_frontier.store.writer import Writer

logger = get_logger(__name__)


def rules(settings: FrontierSettings, scrapy_settings: BaseSettings) -> RobotsRules | None:
    """The rules of a crawl that obeys robots.txt, None for one that does not (`ROBOTSTXT_OBEY`).

    Raises `ConfigError` for a `ROBOTSTXT_USER_AGENT` that names no robot.
    """
    if not scrapy_settings.getbool("ROBOTSTXT_OBEY"):
        return None
    agent = read_agent(
        scrapy_settings.get("ROBOTSTXT_USER_AGENT"), scrapy_settings.get("USER_AGENT")
    )
    for warning in agent.warnings:
        logger.warning("%s", warning, extra={"action": "robots_agent"})
    days = settings.robots_unreachable_days
    policy = RobotsPolicy(
        backoff_s=settings.robots_backoff_s,
        max_backoff_s=max(3600.0, settings.robots_backoff_s),
        max_tries=settings.robots_max_tries,
        gives_way=days is not None,
        unreachable_days=30.0 if days is None else days,
    )
    operator = None
    if settings.robots_rules is not None:
        operator = Rules.parse(settings.robots_rules.encode()).for_agent(agent.token)
    return RobotsRules(agent, policy, settings.crawl_delay_cap_s, operator)


def make(
    frontier: Frontier, chosen: RobotsRules | None, writer: Writer, gates: RobotsGates
) -> Robots | None:
    """The robots of an open run."""
    if chosen is None:
        return None
    crawler = frontier.crawler
    parser = load_object(crawler.settings["ROBOTSTXT_PARSER"])
    agent = crawler.settings.get("ROBOTSTXT_USER_AGENT") or crawler.settings["USER_AGENT"]

    async def announce(record: RobotsRecord) -> None:
        """Keep the sitemaps it names, and send Scrapy's own signal, with a parser as its receivers expect."""
        sitemaps = [sitemap.url for sitemap in Rules.parse(record.text).sitemaps]
        frontier.opened.intake.take_sitemaps(f"{record.origin}/robots.txt", sitemaps)
        await crawler.signals.send_catch_log_async(
            signals.robots_parsed,
            robotparser=parser.from_crawler(crawler, _without_mark(record.text)),
            request=Request(f"{record.origin}/robots.txt"),
        )

    def judge_of(record: RobotsRecord) -> Judge:
        if parser is ProtegoRobotParser:
            return Judge(record)
        return ParserJudge(record, parser.from_crawler(crawler, _without_mark(record.text)), agent)

    return Robots(
        chosen,
        RobotsFetcher(crawler),
        writer,
        frontier.clock,
        random.Random(),
        settled=gates.settled,
        changed=gates.changed,
        parsed=announce,
        judge_of=judge_of,
    )


def _without_mark(text: bytes) -> bytes:
    """The text as parsers that know no byte order mark can read it."""
    return text.removeprefix(codecs.BOM_UTF8)


class ParserJudge(Judge):
    """Lets the parser that a project chose by `ROBOTSTXT_PARSER` read the rules; all else is decided as without it."""

    def __init__(self, record: RobotsRecord, parser: RobotParser, user_agent: str) -> None:
        super().__init__(record)
        self._parser = parser
        self._user_agent = user_agent

    def decide(
        self, agent_token: str, url: str, now: float, operator: OperatorPolicy = NO_POLICY
    ) -> Decision:
        """Decide as `Judge` does, with the parser's word in the place of the line that decides."""
        decision = super().decide(agent_token, url, now, operator)
        if decision.protocol.verdict is None:
            return decision
        is_allowed = self._parser.allowed(url, self._user_agent)
        protocol = ProtocolAnswer(
            Ruling.ALLOWED if is_allowed else Ruling.FORBIDDEN,
            ROBOTS_ALLOW if is_allowed else ROBOTS_DISALLOW,
        )
        return replace(decision, protocol=protocol)
