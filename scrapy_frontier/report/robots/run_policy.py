"""What a run's policy version says about robots.txt: whose rules it reads, and what its operator adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from scrapy_frontier.policy.robots import (
    AgentToken,
    IntervalFloor,
    Judge,
    OperatorPolicy,
    RobotsState,
    Rules,
    read_agent,
)
from scrapy_frontier.report.names import parsed
from scrapy_frontier.settings import FrontierSettings

if TYPE_CHECKING:
    from sqlalchemy import Connection

OBEY: Final = "ROBOTSTXT_OBEY"

RULES_SETTING: Final = "FRONTIER_ROBOTS_RULES"

_POLICY: Final = (
    "SELECT p.text FROM run AS r JOIN policy AS p ON p.policy_id = r.policy_id"
    " WHERE r.run_id = :run"
)


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """How a run deals with robots.txt, by the policy version that it was last opened with."""

    run_id: int
    obeys: bool
    agent: AgentToken
    operator: OperatorPolicy
    delay_cap_s: float

    @classmethod
    def of(cls, connection: Connection, run_id: int) -> RunPolicy:
        """Read it from the text of the policy. Raises `ConfigError` for an agent that is no robot."""
        inputs = _inputs(connection, run_id)
        agent = read_agent(inputs.get("ROBOTSTXT_USER_AGENT"), inputs.get("USER_AGENT"))
        obeys = _is_on(inputs.get(OBEY))
        rules = str(inputs.get(RULES_SETTING) or "").strip()
        operator = OperatorPolicy(waiver="" if obeys else OBEY)
        if obeys and rules:
            operator = OperatorPolicy(rules=Rules.parse(rules.encode()).for_agent(agent.token))
        cap_s = inputs.get("FRONTIER_CRAWL_DELAY_CAP") or FrontierSettings().crawl_delay_cap_s
        return cls(run_id, obeys, agent, operator, float(cap_s))

    def interval_floor(self, judge: Judge) -> IntervalFloor | None:
        """What Crawl-delay asks of this run, and what it grants."""
        if judge.record.state is not RobotsState.RULES:
            return None
        return judge.interval_floor(self.agent.token, self.delay_cap_s)


def obeys_robots(connection: Connection, run_id: int) -> bool:
    """Whether a run obeys robots.txt."""
    return _is_on(_inputs(connection, run_id).get(OBEY))


def _inputs(connection: Connection, run_id: int) -> dict[str, Any]:
    inputs = parsed(connection.scalar(text(_POLICY), {"run": run_id}))
    return inputs if isinstance(inputs, dict) else {}


def _is_on(value: object) -> bool:
    """A switch as Scrapy reads it; the command line gives it as text."""
    return str(value).strip().lower() in {"true", "1"}
