"""The link extractor: Scrapy's own, but by the URL Standard and without silent losses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Request
from scrapy.linkextractors import LinkExtractor as ScrapysLinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_frontier import LinkExtractor as PublicLinkExtractor
from scrapy_frontier.identity import PORT_MALFORMED, SCHEME_UNSUPPORTED, URL_MALFORMED
from scrapy_frontier.linkextractors import LinkExtractor
from scrapy_frontier.observations import observed_reference, observed_references

URL = "http://site.example/dir/page.html"


def page(body: str, encoding: str = "utf-8", url: str = URL) -> HtmlResponse:
    return HtmlResponse(url, body=body.encode(encoding, "xmlcharrefreplace"), encoding=encoding)


def links_of(response: HtmlResponse, **arguments: Any) -> list[str]:
    return [link.url for link in LinkExtractor(**arguments).extract_links(response)]


# Pages on which Scrapy and the URL Standard agree, so that all else can be compared.
anchors = st.builds(
    '<{tag} {attribute}="{href}" {rel}>{text}</{tag}>'.format,
    tag=st.sampled_from(["a", "area", "link", "b"]),
    attribute=st.sampled_from(["href", "src", "data-url"]),
    href=st.sampled_from(
        [
            "/1",
            "next.html",
            "../up.html?a=1&b",
            " /blank ",
            "#top",
            "",
            "/f#a",
            "/f#b",
            "/doc.pdf",
            "http://other.example/x",
            "https://www.other.example/y.zip",
            "mailto:someone@site.example",
            "/caf\u00e9?q=\u00e9",
        ]
    ),
    rel=st.sampled_from(["", 'rel="nofollow"', 'rel="next, NOFOLLOW"', 'rel="me"']),
    text=st.sampled_from(["", "Next", "a <b>bold</b> word", "caf\u00e9"]),
)
pages = st.lists(anchors, max_size=8).map(
    lambda found: f"<html><body><div id=main>{''.join(found[::2])}</div>{''.join(found)}</body>"
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "allow": st.sampled_from([(), r"\.html", [r"/\d", "other"], re.compile("#a")]),
        "deny": st.sampled_from([(), "other", [r"\?", "#b"]]),
        "allow_domains": st.sampled_from([(), "site.example", ["other.example"]]),
        "deny_domains": st.sampled_from([(), "other.example"]),
        "restrict_xpaths": st.sampled_from([(), "//div", ["//div", "//body"]]),
        "restrict_css": st.sampled_from([(), "#main"]),
        "restrict_text": st.sampled_from([None, "Next", "bold"]),
        "tags": st.sampled_from(["a", ("a", "area"), "*", ("a", "link", "b")]),
        "attrs": st.sampled_from(["href", ("href", "src"), "*"]),
        "deny_tags": st.sampled_from([(), "b"]),
        "deny_attrs": st.sampled_from([(), "data-url"]),
        "canonicalize": st.booleans(),
        "unique": st.booleans(),
        "deny_extensions": st.sampled_from([None, (), ["html"]]),
        "strip": st.booleans(),
        "process_value": st.sampled_from(
            [None, lambda value: None if "up" in value else value.replace("next", "other")]
        ),
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pages, arguments)
def test_it_is_scrapys_extractor_where_the_two_agree(body: str, given_: dict[str, Any]) -> None:
    """Every argument and filter means what it means in Scrapy's LinkExtractor."""
    if given_.get("restrict_text"):
        # Scrapy drops the repetitions of a URL first, and then looks at the text of the one that is left.
        given_["unique"] = False
    if "*" in given_.get("attrs", ()):
        given_["deny_attrs"] = ["id", "rel"]
    response = page(body)
    theirs = [
        link
        for link in ScrapysLinkExtractor(**given_).extract_links(response)
        if link.url.startswith("http")
    ]
    assert LinkExtractor(**given_).extract_links(response) == theirs


def test_text_is_looked_at_before_repetitions_are_dropped() -> None:
    """A link whose text fits is found, also where the same URL stands before it with another text."""
    found = LinkExtractor(restrict_text="Next").extract_links(
        page('<a href="/1">1</a><a href="/1">Next</a><a href="/1">Next</a>')
    )
    assert [(link.url, link.text) for link in found] == [("http://site.example/1", "Next")]


def test_it_is_the_packages_public_name() -> None:
    """A project imports it as it imports Scrapy's."""
    assert PublicLinkExtractor is LinkExtractor
    assert issubclass(LinkExtractor, ScrapysLinkExtractor)


def test_links_are_resolved_as_a_browser_does() -> None:
    """The traps of urljoin go to the right host and path."""
    hrefs = ["\\\\other.example\\p", "///third.example/q", "a//b", "http://faß.example/"]
    hrefs += ["http://site.example/a/../b", "http:next.html", "/[1]"]
    response = page("".join(f"<a href='{href}'>x</a>" for href in hrefs))
    assert links_of(response) == [
        "http://other.example/p",
        "http://third.example/q",
        "http://site.example/dir/a//b",
        "http://xn--fa-hia.example/",
        "http://site.example/b",
        "http://site.example/dir/next.html",
        "http://site.example/%5B1%5D",
    ]


@pytest.mark.parametrize("filler", [0, 5000, 200_000])
def test_base_counts_wherever_it_stands(filler: int) -> None:
    """A `<base>` behind a long head is the document's base all the same."""
    head = f"<head><script>{'x' * filler}</script><BASE target=_top><base href='/other/'>"
    response = page(f"<html>{head}<base href='/third/'></head><body><a href=a>a</a></body>")
    assert links_of(response) == ["http://site.example/other/a"]


def test_base_that_is_no_base_does_not_count() -> None:
    """A `<base>` in a comment or in a script is text; one that is no URL leaves the page's own."""
    for head in (
        "<!-- <base href='/other/'> -->",
        "<script>'<base href=/other/>'</script>",
        "<base href='http://[broken'>",
        "<base href='data:,'>",
        "<base target=_top>",
    ):
        assert links_of(page(f"<head>{head}</head><a href=a>")) == ["http://site.example/dir/a"]


def test_base_is_read_in_every_encoding() -> None:
    """A `<base>` is found in UTF-16 too, and the query is UTF-8 then."""
    body = "<head><base href='/other/'></head><a href='a?q=é'>"
    assert links_of(page(body, "utf-16")) == ["http://site.example/other/a?q=%C3%A9"]


def test_reference_keeps_what_was_observed() -> None:
    """A link comes with the spelling found, tag, attribute, rel, anchor text and fragment."""
    response = page('<a class=x href=" a//b#f " rel="nofollow ugc">An \n <b>anchor</b></a>')
    (link,) = LinkExtractor().extract_links(response)
    (reference,) = LinkExtractor().extract(response)
    assert link.reference == reference  # type: ignore[attr-defined]
    assert (link.url, link.nofollow) == ("http://site.example/dir/a//b#f", True)
    assert reference.observed == "a//b#f"
    assert reference.url == "http://site.example/dir/a//b"
    assert (reference.fragment, reference.tag, reference.attribute) == ("f", "a", "href")
    assert (reference.rel, reference.text) == ("nofollow ugc", "An anchor")
    assert reference.is_nofollow


REJECTED = [
    ("javascript:void(0)", SCHEME_UNSUPPORTED),
    ("tel:+420123", SCHEME_UNSUPPORTED),
    ("ftp://files.example/", SCHEME_UNSUPPORTED),
    ("http://site.example:99999/", PORT_MALFORMED),
    ("http://a b/", URL_MALFORMED),
    ("http://[", URL_MALFORMED),
]


def test_rejected_references_are_told_with_their_rule() -> None:
    """A link that cannot be requested is no Link, and is not lost: `extract` shows it in its place."""
    body = "".join(
        f"<a href='{href}'>x</a><a href='/{n}'>y</a>" for n, (href, _) in enumerate(REJECTED)
    )
    response = page(body)
    references = LinkExtractor(allow="/").extract(response)
    assert len(references) == 2 * len(REJECTED)
    for (href, rule), reference in zip(REJECTED, references[::2], strict=True):
        assert reference.rejection is not None
        assert (reference.observed, reference.rejection.rule, reference.url) == (href, rule, None)
    assert links_of(response) == [f"http://site.example/{n}" for n in range(len(REJECTED))]


def test_filtered_links_are_no_references() -> None:
    """What the project's own filters leave out is neither accepted nor rejected."""
    response = page("<a href=/a>a</a><a href=/b>b</a><a href=/b>again</a><a href=x:y>x</a>")
    observed = [r.observed for r in LinkExtractor(allow="/b").extract(response)]
    assert observed == ["/b", "/b", "x:y"]


def test_process_value_sees_what_cannot_be_requested() -> None:
    """`process_value` can make a link of a javascript: value; what it returns is resolved."""

    def unwrap(value: str) -> str | None:
        match = re.search(r"javascript:goTo\('(.*?)'", value)
        return match[1] if match else None

    body = "<base href='/base/'><a href=\"javascript:goTo('../é b.html'); return false\">x</a><a href=/y>y"
    (reference,) = LinkExtractor(process_value=unwrap).extract(page(body))
    assert reference.url == "http://site.example/%C3%A9%20b.html"
    assert reference.observed == "javascript:goTo('../é b.html'); return false"


def test_process_value_that_breaks_a_link_is_told() -> None:
    """What `process_value` returns may be no URL: a rejection of the value found."""
    (reference,) = LinkExtractor(process_value=lambda value: "http://[").extract(
        page("<a href=/a>")
    )
    assert reference.observed == "/a"
    assert reference.rejection is not None
    assert reference.rejection.rule == URL_MALFORMED


def test_characters_that_the_encoding_lacks_do_not_lose_the_link() -> None:
    """The query is in the document's encoding, what it lacks as a numeric reference (FC52)."""
    response = page("<a href='/a?q=п☃'>x</a><a href='/я'>y</a>", "cp1251")
    assert links_of(response) == [
        "http://site.example/a?q=%EF%26%239731%3B",
        "http://site.example/%D1%8F",
    ]


def test_page_remembers_what_was_found_on_it() -> None:
    """After extraction the references, rejected ones too, can be read from the page."""
    response = page("<a href=/a>a</a><a href=mailto:x>b</a><a href=/a>a</a><a href=mailto:x>b</a>")
    assert observed_references(response) == []
    LinkExtractor().extract_links(response)
    found = sorted(reference.observed for reference in observed_references(response))
    assert found == ["/a", "mailto:x", "mailto:x"]
    LinkExtractor(tags="a", unique=False).extract_links(response)
    LinkExtractor(restrict_css="b").extract_links(response)
    found = sorted(reference.observed for reference in observed_references(response))
    assert found == ["/a", "/a", "mailto:x", "mailto:x"]
    assert observed_references(response.replace()) == []


def test_crawl_spider_rules_take_it() -> None:
    """It works in the rules of a CrawlSpider."""

    class Spider(CrawlSpider):
        name = "rules"
        rules = (Rule(LinkExtractor(allow="/b"), callback="parse_b"),)

        def parse_b(self, response: Any) -> None: ...

    spider = Spider()
    response = page("<a href=a//b>b</a><a href=/a>a</a><a href=javascript:x>j</a>")
    response.request = Request(URL)
    requests = list(spider._requests_to_follow(response))
    assert [request.url for request in requests] == ["http://site.example/dir/a//b"]
    assert requests[0].meta["link_text"] == "b"
    reference = observed_reference(requests[0], response)
    assert reference is not None
    assert (reference.observed, reference.text) == ("a//b", "b")
    assert observed_reference(requests[0]) is None
    assert observed_reference(Request(f"{requests[0].url}#x"), response) == reference
    assert observed_reference(Request(f"{requests[0].url}?x"), response) is None


def test_a_subclass_may_choose_links() -> None:
    """The hook that Scrapy's documentation names for subclasses works."""

    class Shortest(LinkExtractor):
        def _process_links(self, links: list[Any]) -> list[Any]:
            return sorted(super()._process_links(links), key=lambda link: len(link.url))[:1]

    (link,) = Shortest().extract_links(page("<a href=/aaa>1</a><a href=/a>2</a>"))
    assert link.url == "http://site.example/a"
