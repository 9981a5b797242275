"""The text of a robots.txt: what its lines mean, and which of them decides on a path."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_frontier.policy.robots import LIMIT, Rules, Sitemap, Verdict
from scrapy_frontier.policy.robots.lines import read_text
from scrapy_frontier.policy.robots.patterns import normalise_target

patient = settings(deadline=None)
"""Timings of a busy machine are no failures."""

EVERYBODY = "User-agent: *\n"


def decide(text: str | bytes, path: str, agent: str = "spindle") -> Verdict:
    body = text.encode() if isinstance(text, str) else text
    return Rules.parse(body).for_agent(agent).decide(path)


def test_a_verdict_names_the_line_that_decides():
    """The number counts from 1 and all lines; the text is the line as its author wrote it."""
    text = "# of 2024\r\n\r\nUser-agent: *\r\n  Disallow : /p  # keep out\r\nAllow: /p/ok\r\n"
    assert decide(text, "/p/x") == Verdict(False, 4, "Disallow : /p  # keep out")
    assert decide(text, "/p/ok") == Verdict(True, 5, "Allow: /p/ok")


def test_without_a_matching_rule_no_line_decides():
    """Allowed because nothing forbids it, and the robots.txt itself whatever forbids it."""
    assert decide("User-agent: *\nDisallow: /p", "/q") == Verdict(True)
    assert decide("User-agent: *\nDisallow: /", "/robots.txt") == Verdict(True)


def test_of_equal_rules_the_first_line_is_named():
    """Lines that say the same twice are one rule."""
    text = "User-agent: *\nDisallow: /p\nDisallow: /p\nDisallow: /*q\nDisallow: /**q"
    assert decide(text, "/p").line_number == 2
    assert decide(text, "/q").line_number == 5  # longer, so more specific


def test_a_long_line_is_shown_in_part():
    """An explanation stays readable."""
    shown = decide(f"User-agent: *\nDisallow: /{'a' * 9000}*", f"/{'a' * 9000}").line_text
    assert shown.startswith("Disallow: /aaa")
    assert len(shown) == 501


def test_a_group_knows_whose_it_is():
    """The agent's own token, everybody's, or nobody's where the file has no group for it."""
    rules = Rules.parse(b"User-agent: Spindle\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n")
    assert rules.for_agent("SPINDLE").token == "spindle"
    assert rules.for_agent("loom").token == "*"
    assert rules.for_agent("").token == "*"
    assert Rules.parse(b"User-agent: spindle\nDisallow: /").for_agent("loom").token == ""
    assert rules.agents == {"spindle", "*"}


def test_sitemaps_belong_to_no_group():
    """They are listed with their lines wherever they stand, as they are written."""
    rules = Rules.parse(
        b"Sitemap: https://a.example/1.xml\nUser-agent: x\nDisallow: /\nSITEMAP : /2.xml # two\n"
        b"Sitemap:\nSitemap https://a.example/3.xml\n"
    )
    assert rules.sitemaps == (
        Sitemap("https://a.example/1.xml", 1),
        Sitemap("/2.xml", 4),
        Sitemap("https://a.example/3.xml", 6),
    )


def test_the_longest_crawl_delay_of_merged_groups_holds():
    """Whoever asks twice gets what keeps both promises, and the line is known."""
    text = (
        "User-agent: spindle\nCrawl-delay: 2\n\nUser-agent: *\nCrawl-delay: 60\n\n"
        "User-agent: spindle\nDisallow:\ncrawl-delay: 1e1\nCrawl-delay: soon\n"
    )
    group = Rules.parse(text.encode()).for_agent("spindle")
    assert (group.crawl_delay_s, group.crawl_delay_line) == (10.0, 9)
    assert Rules.parse(text.encode()).for_agent("loom").crawl_delay_s == 60.0
    assert Rules.parse(b"User-agent: *\nDisallow: /").for_agent("loom").crawl_delay_s is None


def test_a_crawl_delay_is_for_the_agents_right_above_it():
    """Rules behind it are for all agents above, delays for those since the last delay or rule."""
    rules = Rules.parse(
        b"Crawl-delay: 9\nUser-agent: a\nUser-agent: b\nCrawl-delay: 2\nUser-agent: *\n"
        b"Crawl-delay: 3\nCrawl-delay: 5\nDisallow: /p\nUser-agent: c\nDisallow:\n"
    )
    assert [rules.for_agent(token).crawl_delay_s for token in "abxc"] == [2, 2, 5, None]
    assert [rules.for_agent(token).decide("/p").allowed for token in "abxc"] == [False] * 3 + [True]


@pytest.mark.parametrize(
    "value", ["1e999", "1_0", "+3", "0x10", "\u0663", "1.2.3", ".", "e5", "9" * 40]
)
def test_what_is_no_plain_number_is_no_crawl_delay(value):
    """Only digits, a point and an exponent make a delay."""
    text = f"User-agent: *\nCrawl-delay: {value}\n"
    assert Rules.parse(text.encode()).for_agent("x").crawl_delay_s is None


def test_octets_that_are_no_utf_8_match_the_same_octets():
    """A path in another encoding is percent-encoded octet by octet, as in the URL."""
    text = b"User-agent: *\nDisallow: /caf\xe9\n"
    assert not decide(text, "/caf%E9").allowed
    assert decide(text, "/caf%C3%A9").allowed
    assert decide(text, "/caf%e9/x").line_text == "Disallow: /caf\ufffd"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_byte_order_mark_tells_the_encoding(encoding):
    """UTF-16 is read where its mark says so (RFC 9309, 2.2.2)."""
    mark = "\ufeff" if encoding.endswith(("le", "be")) else ""
    text = f"{mark}User-agent: *\nDisallow: /ツ\n".encode(encoding)
    assert not decide(text, "/%E3%83%84").allowed


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/a[1]|{x}", "/a%5B1%5D%7C%7Bx%7D"),  # what Scrapy's requests encode
        ("/a b", "/a%20b"),
        ('/"<>\\^`', "/%22%3C%3E%5C%5E%60"),
        ("/%7Euser", "/~user"),
        ("/*url=http://", "/go?x=1&url=http://b.example/"),
        ("/go?u=http%3A%2F%2Fb", "/go?u=http://b"),
        ("/go*?u=a:b*/c", "/go/on?u=a%3Ab&v=1%2Fc"),
        ("/a%24", "/a$"),
        ("/a$b", "/a%24b"),
        ("/%2A", "/*"),
        ("*/p", "/x/p"),
        ("/p$", "/p#top"),
        ("/?x", "?x"),
    ],
)
def test_two_spellings_of_one_path(rule, path):
    """A rule matches the path that it means, in whatever spelling either comes."""
    assert not decide(f"User-agent: *\nDisallow: {rule}\n", path).allowed


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/a%2Fb", "/a/b"),
        ("/go/http%3A", "/go/http:"),
        ("/a?b%26c", "/a?b&c"),
        ("p", "/p"),
        ("%2Fp", "/p"),
        ("$", "/"),
        ("/%2A", "/x"),
        ("/a$", "/a$"),
    ],
)
def test_reserved_octets_mean_what_they_are(rule, path):
    """Encoded delimiters are no delimiters, and encoded operators no operators."""
    assert decide(f"User-agent: *\nDisallow: {rule}\n", path).allowed


def test_prose_is_no_rule():
    """A forgotten colon is forgiven where there are two words, not in a sentence."""
    assert not decide("User-agent spindle\nDisallow /p", "/p").allowed
    assert decide("User-agent: *\nDisallow it all: please", "/it").allowed
    assert not Rules.parse(b"allow me to explain\nuser-agent of mine\n").has_groups


def test_text_is_cut_at_a_line_end():
    """What is beyond 500 KiB is not there, and half a line is no line."""
    text = b"User-agent: *\nDisallow: /early\n" + b"#" * LIMIT + b"\nDisallow: /late\n"
    assert read_text(text) == (text[:31], True)
    assert read_text(b"#" * LIMIT) == (b"#" * LIMIT, False)
    assert read_text(b"#" * (LIMIT + 1)) == (b"", True)
    wide = "User-agent: *\n".encode("utf-16") + "Disallow: /x\n".encode("utf-16-le") * LIMIT
    kept = read_text(wide)
    assert kept.is_cut
    assert LIMIT - 13 < len(kept.text) <= LIMIT


HOSTILE = {
    "one pattern of wildcards": b"Disallow: /" + b"*a" * 200_000 + b"b\n",
    "many patterns of wildcards": b"".join(
        b"Disallow: /*a*a*a*a*a*a*b%d\n" % number for number in range(15_000)
    ),
    "stray percent signs": b"Disallow: /" + b"%4" * 200_000 + b"\n",
    "question marks": b"Disallow: /" + b"?:" * 200_000 + b"\n",
    "prefixes of all lengths": b"".join(b"Disallow:/" + b"a" * size + b"\n" for size in range(980)),
    "agents": b"User-agent: x\nDisallow: /a\n" * 18_000,
    "line ends": b"\r" * LIMIT,
    "marks": b"\xef\xbb\xbf" * (LIMIT // 3),
    "blanks": b"Disallow:" + b" \t" * (LIMIT // 3) + b"/a",
    "a number": b"Crawl-delay: " + b"9" * 400_000,
    "words": b"a " * (LIMIT // 2),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_cost_little(text):
    """Nothing in half a megabyte takes more than about its length to read and to match."""
    started_at = time.perf_counter()
    rules = Rules.parse(EVERYBODY.encode() + text)
    for agent in ("x", "y"):
        rules.for_agent(agent).decide(f"/{'a' * 2000}?u=a:b")
    assert time.perf_counter() - started_at < 3.0


@patient
@given(st.binary(max_size=300), st.text(max_size=40))
def test_any_bytes_and_any_path_have_an_answer(text, path):
    """Nothing raises, and asking again gives the same."""
    rules = Rules.parse(text)
    first = rules.for_agent("spindle").decide(path)
    assert Rules.parse(text).for_agent("spindle").decide(path) == first
    assert rules.for_agent("spindle").decide(path) == first


fields = st.sampled_from(["User-agent", "Allow", "Disallow", "Crawl-delay", "Sitemap", "Other"])
values = st.text("spindle*$/?%2Fab:#", max_size=10)
line_ends = st.sampled_from(["\n", "\r", "\r\n"])
files = st.lists(st.builds("{}: {}{}".format, fields, values, line_ends), max_size=20).map("".join)
paths = st.text("ab/?%2F:$*", max_size=10).map("/{}".format)


@patient
@given(files, paths)
def test_line_ends_do_not_matter(text, path):
    """LF, CR and CRLF end a line alike."""
    unix = re.sub("\r\n?", "\n", text)
    assert decide(text, path) == decide(unix, path)


@patient
@given(st.binary(max_size=200))
def test_cutting_is_done_once(text):
    """What was kept of a text is kept whole."""
    kept = read_text(text).text
    assert read_text(kept) == (kept, False)


@patient
@given(paths, st.sampled_from(["spindle", "loom"]))
def test_a_path_has_one_spelling(path, agent):
    """Bringing it to that spelling again changes nothing."""
    spelling = normalise_target(path)
    assert normalise_target(spelling) == spelling


rule_values = st.text("ab/*$?:%3A", max_size=7).map("/{}".format)
rules_of_one = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), rule_values), max_size=8)


def written(rules):
    """A group for everybody; its last line makes sure that it has a rule, and so an end."""
    lines = "".join(f"{name}: {value}\n" for name, value in rules)
    return f"{EVERYBODY}{lines}Disallow:\n"


@patient
@given(rules_of_one, rule_values, paths)
def test_one_more_disallow_never_allows_more(rules, value, path):
    """What was forbidden stays forbidden."""
    before = decide(written(rules), path)
    after = decide(written([*rules, ("Disallow", value)]), path)
    assert before.allowed or not after.allowed


@patient
@given(rules_of_one, rule_values, paths)
def test_one_more_allow_never_forbids_more(rules, value, path):
    """What was allowed stays allowed."""
    before = decide(written(rules), path)
    after = decide(written([*rules, ("Allow", value)]), path)
    assert after.allowed or not before.allowed


@patient
@given(rules_of_one, paths, st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(rules, path, random):
    """The longest match decides, wherever it stands."""
    shuffled = random.sample(rules, len(rules))
    assert decide(written(rules), path).allowed == decide(written(shuffled), path).allowed


@patient
@given(rules_of_one, rules_of_one, paths)
def test_rules_of_others_do_not_matter(own, others, path):
    """An agent with a group of its own has no other rules, and merging is as if it were one."""
    mine = written(own).replace("*", "spindle", 1)
    assert decide(mine + written(others), path) == decide(mine, path)
    split = mine + "".join(f"User-agent: spindle\n{name}: {value}\n" for name, value in others)
    joined = mine + written(others).removeprefix(EVERYBODY)
    assert decide(split, path).allowed == decide(joined, path).allowed


def naive(rules, path):
    """RFC 9309, section 2.2.2, as one reads it: every rule as a regular expression."""
    best = (0, True)
    for name, value in rules:
        is_anchored = value.endswith("$")
        body = value[:-1] if is_anchored else value
        expression = ".*".join(map(re.escape, body.split("*"))) + ("$" if is_anchored else "")
        if re.match(expression, path):
            best = max(best, (len(value), name == "Allow"))
    return best[1]


plain_values = st.text("ab/?*", max_size=7).map("/{}".format)
plain_rules = st.lists(
    st.tuples(
        st.sampled_from(["Allow", "Disallow"]),
        st.builds("{}{}".format, plain_values, st.sampled_from(["", "$"])),
    ),
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(plain_rules, st.text("ab/", max_size=10).map("/{}".format))
def test_the_longest_match_decides(rules, path):
    """The index of prefixes and the early end of the search change no answer."""
    assert decide(written(rules), path).allowed == naive(rules, path)
