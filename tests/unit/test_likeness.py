"""Likeness: equal texts, nearly equal ones, and different ones are told apart, without a scan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier.policy.likeness import (
    RADIUS,
    Likeness,
    LikenessIndex,
    SeenPhrases,
    distance,
    likeness_of,
    main_text,
)
from scrapy_frontier.testing.zoo.words import sentence

ORIGIN = "http://site.example"


def likeness(html: str, url: str = f"{ORIGIN}/x") -> Likeness:
    return likeness_of(main_text(html, url))


def text_of(key: object, count: int = 60) -> str:
    return " ".join(f"<p>{sentence(key, n)}</p>" for n in range(count))


def test_digest_and_simhash_are_the_same_on_every_machine() -> None:
    found = likeness("<p>The quick brown fox.</p><p>The lazy dog sleeps in the sun.</p>")
    assert (found.digest, found.bare, found.simhash, found.words) == (
        -2144754214709784545,
        -2144754214709784545,
        -4591349433087317976,
        11,
    )


def test_boilerplate_is_no_part_of_the_main_text() -> None:
    framed = "<nav>Home</nav><script>x()</script><p>Some text.</p><footer>Imprint</footer>"
    assert main_text(framed).phrases == main_text("<p>Some  text.</p><!-- note -->").phrases
    assert main_text("<div>Menu</div><main><p>Some text.</p></main>").phrases == ("some text",)


def test_what_repeats_the_address_is_no_part_of_the_bare_text() -> None:
    one = likeness("<p>No results for pears</p>", f"{ORIGIN}/search?q=pears")
    other = likeness("<p>No results for plums</p>", f"{ORIGIN}/search?q=plums")
    assert one.bare == other.bare
    assert one.digest != other.digest


def test_dates_and_numbers_say_nothing_on_pages_of_a_calendar() -> None:
    one = main_text("<p>Events on Monday, 3 May 2031</p>", f"{ORIGIN}/2031/05/03/", is_counted=True)
    other = main_text(
        "<p>Events on Sunday, 7 June 2032</p>", f"{ORIGIN}/2032/06/07/", is_counted=True
    )
    assert one.bare == other.bare == ("events on",)


def test_a_page_with_a_few_changed_sentences_is_near_and_another_one_is_not() -> None:
    index = LikenessIndex(100)
    index.add(ORIGIN, likeness(text_of("a")), 1, "first")
    changed = likeness(text_of("a", 58) + "<p>An advertisement.</p>")
    match = index.find(ORIGIN, changed)
    assert match is not None
    assert (match.number, match.is_exact) == (1, False)
    assert match.distance <= RADIUS
    assert index.find(ORIGIN, likeness(text_of("b"))) is None
    assert index.find("http://other.example", changed) is None


def test_an_equal_text_is_found_as_such() -> None:
    index = LikenessIndex(100)
    index.add(ORIGIN, likeness(text_of("a", 3)), 7, "first")
    match = index.find(ORIGIN, likeness(text_of("a", 3)))
    assert match is not None
    assert (match.number, match.is_exact, match.is_same) == (7, True, True)


@given(st.integers(-(2**63), 2**63 - 1), st.sets(st.integers(0, 63), max_size=RADIUS))
def test_whatever_bits_differ_the_bands_find_what_is_within_the_radius(
    simhash: int, flipped: set[int]
) -> None:
    hashes = tuple(range(8))
    bits = simhash & (2**64 - 1)
    for place in flipped:
        bits ^= 1 << place
    other = bits - 2**64 if bits >> 63 else bits
    index = LikenessIndex(10)
    index.add(ORIGIN, Likeness(1, 2, simhash, 99, hashes), 1, "first")
    match = index.find(ORIGIN, Likeness(3, 4, other, 99, hashes))
    assert match is not None
    assert match.distance == distance(simhash, other) == len(flipped)


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=40))
def test_a_bit_is_set_where_most_phrases_have_it(phrases: list[bytes]) -> None:
    import hashlib

    from scrapy_frontier.policy.likeness import _simhash

    digests = [hashlib.blake2b(one, digest_size=8).digest() for one in phrases]
    numbers = [int.from_bytes(one, "big") for one in digests]
    found = _simhash(digests) & (2**64 - 1)
    for place in range(64):
        votes = sum(number >> place & 1 for number in numbers)
        assert (found >> place & 1) == (votes > len(numbers) / 2)


def test_memory_is_bounded_and_what_is_used_is_kept() -> None:
    index = LikenessIndex(50)
    pages = [likeness(text_of(n, 12)) for n in range(200)]
    for number, page in enumerate(pages):
        index.add(ORIGIN, page, number, str(number))
        assert index.find(ORIGIN, pages[0]) is not None
    assert index.find(ORIGIN, pages[100]) is None


def test_phrases_that_an_origin_has_had_are_not_new() -> None:
    seen = SeenPhrases()
    first = likeness(text_of("a", 20)).hashes
    assert seen.share_new(ORIGIN, first) == 1.0
    assert seen.share_new(ORIGIN, first) == 0.0
    assert seen.share_new("http://other.example", first) == 1.0
    half = first[:10] + likeness(text_of("b", 10)).hashes
    assert seen.share_new(ORIGIN, half) == 0.5
