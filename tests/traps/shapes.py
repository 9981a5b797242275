"""Sites with the shape of generated documentation, whose pages hardly differ: nothing may be deferred on them.

Each is made of the paths that a generator gives its pages and of text in its manner; the real trees are measured by
`python -m tests.traps.trees`.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_frontier.testing.zoo.words import WORDS, article, listing, number_of, page
from tests.traps.walk import Site

Pages = dict[str, str]


def javadoc() -> Pages:
    """Packages of classes; of most classes the use is told by the same sentence."""
    pages: Pages = {}
    packages = [f"org/example/{word}" for word in WORDS[:6]]
    for package in packages:
        classes = [word.capitalize() for word in WORDS[number_of(package) % 40 :][:20]]
        for name in classes:
            up = "../" * (package.count("/") + 1)
            nav = listing([(f"{up}index.html", "Overview"), ("package-summary.html", "Package")])
            pages[f"/{package}/{name}.html"] = page(
                f"Class {name}",
                nav + article(package, name) + listing([(f"class-use/{name}.html", "Use")]),
            )
            pages[f"/{package}/class-use/{name}.html"] = page(
                f"Uses of Class {name}",
                f"<p>No usage of {package.replace('/', '.')}.{name} in this library.</p>",
            )
        links = listing([(f"{name}.html", name) for name in classes])
        pages[f"/{package}/package-summary.html"] = page(package, links)
        pages[f"/{package}/package-use.html"] = page(
            package, "<p>No usage of this package is known here.</p>"
        )
    pages["/"] = page(
        "Library", listing([(f"{one}/package-summary.html", one) for one in packages])
    )
    pages["/index.html"] = pages["/"]
    return pages


def doxygen() -> Pages:
    """One flat folder: classes, their members in a page beside each, sources, and indexes by letter."""
    pages: Pages = {}
    classes = [
        f"class{one.capitalize()}{two.capitalize()}" for one in WORDS[:8] for two in WORDS[8:16]
    ]
    for name in classes:
        pages[f"/{name}.html"] = page(
            name,
            article(name)
            + listing([(f"{name}-members.html", "All"), (f"{name}_8h_source.html", "Source")]),
        )
        members = "".join(
            f"<tr><td>{WORDS[number_of(name, n) % 99]}()</td></tr>" for n in range(12)
        )
        pages[f"/{name}-members.html"] = page(f"{name} Member List", f"<table>{members}</table>")
        pages[f"/{name}_8h_source.html"] = page(
            f"{name}.h", f"<pre>{article(name, 'source')}</pre>"
        )
    letters = [f"functions_{letter}.html" for letter in "abcdefghijklmnop"]
    for letter in letters:
        members = [name for name in classes if number_of(letter, name) % 4 == 0]
        links = [*((one, one) for one in letters), *((f"{name}.html", name) for name in members)]
        pages[f"/{letter}"] = page("Class Members", listing(links))
    pages["/"] = page(
        "Index", listing([*((f"{name}.html", name) for name in classes), (letters[0], "Members")])
    )
    return pages


def sphinx() -> Pages:
    """Chapters in folders, each with links to the one before and after; sources; an index by letter."""
    pages: Pages = {}
    chapters = [
        f"/{part}/{word}.html"
        for part in ("library", "howto", "reference", "c-api")
        for word in WORDS[:40]
    ]
    for place, chapter in enumerate(chapters):
        turn = [
            (chapters[max(0, place - 1)], "previous"),
            (chapters[(place + 1) % len(chapters)], "next"),
        ]
        module = chapter.replace("/library/", "/_modules/")
        pages[chapter] = page(chapter, article(chapter) + listing([*turn, (module, "source")]))
        if module != chapter:
            pages[module] = page("Source code", article("source", chapter))
    for letter in "ABCDEFGH":
        pages[f"/genindex-{letter}.html"] = page(f"Index of {letter}", article("index", letter))
    index = [(f"/genindex-{letter}.html", letter) for letter in "ABCDEFGH"]
    pages["/"] = page("Documentation", listing([(chapters[0], "Start"), *index]))
    return pages


def texinfo() -> Pages:
    """Hundreds of numbered nodes that only lead to each other."""
    nodes = [f"/manual/node{n}.html" for n in range(1, 300)]
    pages = {
        node: page(f"Node {n}", article(node) + listing([(nodes[(n + 1) % len(nodes)], "Next")]))
        for n, node in enumerate(nodes)
    }
    return {**pages, "/": page("Manual", listing([(nodes[0], "Start")]))}


def blog() -> Pages:
    """Posts below their date, a list for each month, and lists of lists; half of the months are empty."""
    pages: Pages = {}
    months = [(year, month) for year in range(2009, 2016) for month in range(1, 13)]
    for year, month in months:
        posts = [
            f"/blog/{year}/{month:02}/{word}-in-the-{WORDS[year % 90]}"
            for word in WORDS[month * 3 :][:4]
        ]
        pages[f"/blog/{year}/{month:02}/"] = page(
            "Posts", listing([(post, post) for post in posts])
        )
        for post in posts:
            pages[post] = page(post, article(post))
    pages["/"] = page(
        "Blog",
        listing([(f"/blog/{year}/{month:02}/", f"{month}/{year}") for year, month in months]),
    )
    return pages


def threads() -> Pages:
    """A forum: threads by number in the query, each with pages."""
    pages: Pages = {}
    topics = [f"/viewtopic.php?t={n}" for n in range(1, 120)]
    for topic in topics:
        parts = [topic, *(f"{topic}&start={n}" for n in (15, 30))]
        for part in parts:
            pages[part] = page("Topic", article(part) + listing([(one, "page") for one in parts]))
    pages["/"] = page("Forum", listing([(topic, topic) for topic in topics]))
    return pages


def register() -> Pages:
    """Numbered records that differ in little more than numbers, found one from another."""
    records = [f"/parcels/{n}" for n in range(1, 300)]
    pages = {
        record: page(
            f"Parcel {n}",
            f"<p>Parcel {n} measures {number_of(record) % 9000} square metres and belongs to"
            f" {WORDS[number_of(record, 1) % 100]} {WORDS[number_of(record, 2) % 100]}.</p>"
            + listing([(records[(n + step) % len(records)], "Neighbour") for step in (1, 2)]),
        )
        for n, record in enumerate(records)
    }
    return {**pages, "/": page("Land register", listing([(records[0], "First")]))}


SHAPES: Mapping[str, Pages] = {
    make.__name__: make() for make in (javadoc, doxygen, sphinx, texinfo, blog, threads, register)
}


def site_of(pages: Pages) -> Site:
    """The pages as a site."""
    return pages.get
