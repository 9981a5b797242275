"""From references to request URLs."""

from __future__ import annotations

import pytest
from ada_url import normalize_url
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request
from w3lib.url import safe_url_string

from scrapy_frontier.identity import (
    OBSERVED_LIMIT,
    PORT_MALFORMED,
    REJECTION_RULES,
    SCHEME_UNSUPPORTED,
    URL_MALFORMED,
    URL_TOO_LONG,
    USERINFO,
    Reference,
    Rejection,
    Resolved,
    document_base,
    join,
    normalise_request_url,
    observe,
    resolve,
)

# The machine may be busy; how long an example takes is no promise.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

BASE = "http://site.example/dir/page.html"

any_text = st.text(st.characters(exclude_categories=()), max_size=60)
url_text = st.text(
    st.sampled_from("abAB01.-_~:/?#[]@!$&'()*+,;=%|{}^`\\ \t\n\x00\"<>éßя日\ud800"), max_size=40
)
urls = st.builds(
    "{}://{}{}/{}?{}#{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["h", "H.Example", "a.b.", "127.1", "[::1]", "faß.de", "xn--fa-hia.de", "a_b"]),
    st.sampled_from(["", ":80", ":443", ":8080", ":"]),
    url_text,
    url_text,
    url_text,
)
encodings = st.sampled_from(
    ["utf-8", "cp1251", "latin-1", "ascii", "shift_jis", "gb18030", "iso-2022-jp", "utf-16", "hz"]
)


def rule_of(result: Resolved | Rejection) -> str:
    assert isinstance(result, Rejection), result
    return result.rule


def url_of(result: Resolved | Rejection) -> str:
    assert isinstance(result, Resolved), result
    return result.url


@unhurried
@given(any_text | st.binary(max_size=60), any_text | st.none(), encodings | any_text)
def test_no_text_and_no_bytes_make_it_raise(
    reference: str | bytes, base: str | None, encoding: str
) -> None:
    """Every reference is resolved or rejected by one of the named rules; nothing raises."""
    result = resolve(reference, base, encoding)
    assert isinstance(result, Resolved) or result.rule in REJECTION_RULES


@unhurried
@given(url_text | urls, urls, encodings)
def test_request_url_is_a_fixpoint(reference: str, base: str, encoding: str) -> None:
    """Parsing a request URL again, or making a Request of it again, changes nothing."""
    result = resolve(reference, base, encoding)
    if isinstance(result, Resolved):
        assert normalize_url(result.url) == result.url
        assert Request(result.url).url == result.url
        assert Request(result.url, encoding="cp1252").url == result.url
        assert resolve(result.url) == Resolved(result.url, "", result.origin)
        assert resolve(result.href, base, encoding) == result
        assert result.url.startswith(f"{result.origin}/")


@unhurried
@given(urls)
def test_url_of_a_request_is_normalised_as_the_reference_is(url: str) -> None:
    """A spider's own Request leads to the same request URL as the reference resolved here."""
    resolved = resolve(url)
    if isinstance(resolved, Resolved):
        assert normalise_request_url(Request(resolved.href).url).url == resolved.url  # type: ignore[union-attr]
        assert normalise_request_url(url) == resolved


@unhurried
@given(urls)
def test_request_url_is_what_scrapy_makes_of_the_parsed_url(url: str) -> None:
    """The folding is Scrapy's own: safe_url_string of the parsed URL without its fragment."""
    resolved = resolve(url)
    if isinstance(resolved, Resolved):
        parsed = join(url)
        assert parsed is not None
        assert resolved.url == safe_url_string(parsed.partition("#")[0])


@unhurried
@given(urls)
def test_text_and_utf8_bytes_are_one_reference(url: str) -> None:
    """A reference in the bytes of its document is read by the document's encoding."""
    text = url.encode("utf-8", "replace").decode()
    assert resolve(text.encode()) == resolve(text)


def test_bytes_that_are_no_text_keep_their_bytes() -> None:
    """What the encoding of a reference in bytes cannot read is percent-encoded as it stands."""
    assert url_of(resolve(b"/\xe9?q=\xe9", BASE)) == "http://site.example/%E9?q=%E9"
    assert url_of(resolve(b"/\xff?q=\xff", BASE, "cp1251")) == "http://site.example/%D1%8F?q=%FF"


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("\\\\other.example\\p", "http://other.example/p"),
        ("///other.example/p", "http://other.example/p"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("/?", "http://site.example/"),
        ("a//b", "http://site.example/dir/a//b"),
        ("..//x", "http://site.example//x"),
    ],
)
def test_traps_of_urljoin(reference: str, url: str) -> None:
    """What urljoin sends elsewhere, or not at all, goes where a browser would go."""
    assert url_of(resolve(reference, BASE)) == url


@pytest.mark.parametrize(
    ("reference", "rule", "detail"),
    [
        ("mailto:a@site.example", SCHEME_UNSUPPORTED, "mailto"),
        ("foo://a b/", SCHEME_UNSUPPORTED, "foo"),
        ("http://user:secret@site.example/", USERINFO, ""),
        ("http://site.example:99999/", PORT_MALFORMED, "99999"),
        ("http://site.example:" + "9" * 5000, PORT_MALFORMED, "9" * 100),
        ("http://site.example:" + "0" * 5000 + "80", "", ""),
        ("http://a b/", URL_MALFORMED, "host"),
    ],
)
def test_rejection_names_rule_and_part_at_fault(reference: str, rule: str, detail: str) -> None:
    """A rejection tells the rule and what is wrong, and never repeats a password."""
    result = resolve(reference, BASE)
    if rule:
        assert isinstance(result, Rejection)
        assert (result.rule, result.observed, result.detail) == (
            rule,
            reference[:OBSERVED_LIMIT],
            detail,
        )
    else:
        assert url_of(result) == "http://site.example/"


def test_relative_reference_needs_a_base() -> None:
    """Without a base, or with one that is no hierarchy, a relative reference is malformed."""
    assert resolve("next.html") == Rejection(URL_MALFORMED, "next.html", "no base")
    assert resolve("next.html", "data:,") == Rejection(URL_MALFORMED, "next.html", "base")


def test_broken_base_counts_as_none() -> None:
    """An absolute reference survives a base that is no URL."""
    assert url_of(resolve("http://other.example/", "http://[broken")) == "http://other.example/"
    assert rule_of(resolve("next.html", "http://[broken")) == URL_MALFORMED


@pytest.mark.parametrize("reference", [None, 5, object(), bytearray(b"/a"), ["/a"]])
def test_what_is_no_text_is_malformed(reference: object) -> None:
    """A reference of another type is a rejection that names the type, not an exception."""
    result = resolve(reference, BASE)  # type: ignore[arg-type]
    assert isinstance(result, Rejection)
    assert result.rule == URL_MALFORMED
    assert type(reference).__name__ in result.detail


def test_length_is_judged_by_the_request_url() -> None:
    """`max_length` is the longest request URL that is accepted; 0 accepts any."""
    url = "http://site.example/" + "a" * 80
    assert url_of(resolve(url, max_length=100)) == url
    assert resolve(url + "a", max_length=100) == Rejection(
        URL_TOO_LONG, url + "a", "101 characters"
    )
    assert url_of(resolve(url + "#" + "f" * 100, max_length=100)) == url
    assert rule_of(normalise_request_url(url + "a", max_length=100)) == URL_TOO_LONG
    assert url_of(resolve("http://site.example/" + "a" * 100_000))


def test_huge_reference_is_kept_in_part() -> None:
    """A `data:` URL of megabytes is rejected with the beginning of its spelling."""
    result = resolve("data:image/png;base64," + "A" * 5_000_000, BASE)
    assert isinstance(result, Rejection)
    assert result.rule == SCHEME_UNSUPPORTED
    assert len(result.observed) == OBSERVED_LIMIT


@unhurried
@given(any_text)
def test_observed_spelling_can_be_stored(text: str) -> None:
    """What is kept of a spelling can be written as UTF-8, has no NUL, and is as long as found."""
    kept = observe(text)
    assert "\x00" not in kept.encode().decode()
    assert len(kept) == len(text)
    assert all(a == b or b == "\ufffd" for a, b in zip(text, kept, strict=True))


def test_reference_of_a_rejection_keeps_the_spelling_found() -> None:
    """A reference shows what was found, also where something else was resolved in its place."""
    reference = Reference.of("javascript:go('x:y')", resolve("x:y"), tag="a", rel="ugc NoFollow")
    assert reference.observed == "javascript:go('x:y')"
    assert reference.url is None
    assert reference.rejection == Rejection(SCHEME_UNSUPPORTED, "x:y", "x")
    assert reference.is_nofollow


@pytest.mark.parametrize(
    ("href", "base"),
    [
        (None, BASE),
        ("", "http://site.example/dir/page.html"),
        ("/other/", "http://site.example/other/"),
        ("//cdn.example/x/", "http://cdn.example/x/"),
        ("sub/", "http://site.example/dir/sub/"),
        ("data:text/html,", BASE),
        ("javascript:void(0)", BASE),
        ("http://[broken", BASE),
        ("ftp://files.example/", "ftp://files.example/"),
    ],
)
def test_document_base(href: str | None, base: str) -> None:
    """The base is the first `<base href>` resolved against the page, with the exceptions of HTML."""
    assert document_base(BASE, href) == base


def test_join_keeps_scheme_and_fragment() -> None:
    """`join` alone resolves every scheme; it refuses only what is no URL."""
    assert join("mailto:a@site.example", BASE) == "mailto:a@site.example"
    assert join("mailto:a@site.example?subject=я", BASE, "cp1251") == (
        "mailto:a@site.example?subject=%D1%8F"
    )
    assert join("#x", BASE) == f"{BASE}#x"
    assert join("http://a b/", BASE) is None
