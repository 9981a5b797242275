"""Our reading of robots.txt against that of Protego, the parser that Scrapy uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from scrapy_frontier.policy.robots import Rules, target_of

VECTORS = json.loads(
    (Path(__file__).parents[1] / "data" / "robots_vectors.json").read_text(encoding="utf-8")
)

PREFIX = "it takes the group of a token that the agent's name only starts with"
UNKNOWN_ENDS = "it lets a line that is no rule end the list of agents (RFC 9309, 2.2.4)"
NO_CUT = "it does not cut the value of a User-agent line behind its token, as Google does"
DECODES = "it takes an encoded delimiter for the delimiter"
AS_WRITTEN = "it compares reserved octets of the query as they are written (table of 2.2.2)"

# Where Protego 0.7 answers otherwise, and why we do not.
KNOWN = {
    "agent-token-01": PREFIX,
    "agent-token-02": PREFIX,
    "agent-token-05": PREFIX,
    "agent-token-06": PREFIX,
    "other-records-03": UNKNOWN_ENDS,
    "other-records-04": UNKNOWN_ENDS,
    "agent-token-13": NO_CUT,
    "agent-token-14": NO_CUT,
    "agent-star-02": NO_CUT,
    "pct-20": DECODES,
    "pct-22": AS_WRITTEN,
}


def protego_allows(text: str, agent: str, url: str) -> bool:
    return Protego.parse(text.removeprefix("\ufeff")).can_fetch(url, agent)


@pytest.mark.parametrize("vector", VECTORS["match"], ids=lambda v: v["id"])
def test_protego_agrees_but_for_what_is_known(vector: dict[str, Any]) -> None:
    """On every vector the two agree, or the reason why not is on the list above."""
    ours = Rules.parse(vector["robots"].encode()).for_agent(vector["agent"])
    allowed = ours.decide(target_of(vector["url"])).allowed
    theirs = protego_allows(vector["robots"], vector["agent"], vector["url"])
    assert allowed == theirs or vector["id"] in KNOWN


def test_protego_chooses_groups_by_any_word_of_a_header() -> None:
    """Why a whole header is never handed to a parser: this one finds `compatible` in it."""
    vector = next(v for v in VECTORS["header"] if v["id"] == "header-03")
    theirs = protego_allows(vector["robots"], vector["header"], vector["url"])
    assert theirs is not vector["allow"]


def test_protego_counts_a_question_mark_as_three_octets() -> None:
    """Why no pattern of the property below has one: to us `/*` is as long as `/?`, and the allow wins."""
    text = "User-agent: spindle\nAllow: /*\nDisallow: /?"
    assert Rules.parse(text.encode()).for_agent("spindle").decide("/?").allowed
    assert not protego_allows(text, "spindle", "http://site.example/?")


paths = st.text("ab/?.", max_size=8).map(lambda text: f"/{text}")
patterns = st.builds(
    lambda path, end: f"{path}{end}",
    st.text("ab/.*", max_size=6).map("/{}".format),
    st.sampled_from(["", "$"]),
)
rules = st.tuples(st.sampled_from(["Allow", "Disallow"]), patterns)
groups = st.tuples(
    st.sampled_from(["spindle", "loom", "*"]), st.lists(rules, min_size=1, max_size=6)
)
texts = st.lists(groups, max_size=4).map(
    lambda found: "\n".join(
        f"User-agent: {agent}\n" + "\n".join(f"{field}: {pattern}" for field, pattern in lines)
        for agent, lines in found
    )
)


@settings(max_examples=300, deadline=None)
@given(texts, paths, st.sampled_from(["spindle", "loom", "shuttle"]))
def test_plain_files_are_read_alike(text: str, path: str, agent: str) -> None:
    """Without the special cases of the list, any file and any path have the same answer."""
    ours = Rules.parse(text.encode()).for_agent(agent).decide(path).allowed
    assert ours == protego_allows(text, agent, f"http://site.example{path}")
