"""The orchard handbook: some 150 cross-linked pages about trees and the work on them.

This is the well-behaved site: it is finite, its links work (all but one, as in real life), and its
robots.txt keeps crawlers out of nothing but the search results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from example.web.almanac import AILMENTS, GLOSSARY, MONTHS, TREES, WORK, Tree
from example.web.pages import html, link, listing, pick
from scrapy_frontier.testing import Answer, Origin, Request, text

DEAD_LINKS = {"/handbook-1987.html": 404}
"""The paths that the handbook links to although they are gone, with what they answer."""

ROBOTS = """User-agent: *
Disallow: /search?
"""

SECTIONS = {
    "trees": "The trees",
    "work": "Work in the orchard",
    "ailments": "Pests and ailments",
    "months": "The orchard year",
}


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the handbook on `site`."""
    site.on("/robots.txt", text(ROBOTS))
    site.on("/", front_page(web))
    site.on("/about.html", about_page(web))
    site.on("/spellings.html", spellings_page(site))
    site.on("/glossary.html", glossary_page())
    site.on("/search", search)
    for path, title in SECTIONS.items():
        site.on(f"/{path}/", section_page(path, title))
    for path, page in tree_pages(web):
        site.on(path, page)
    for name, meaning in WORK.items():
        site.on(work_path(name), work_page(name, meaning))
    for name, (sign, cure) in AILMENTS.items():
        site.on(ailment_path(name), ailment_page(name, sign, cure))
    for number, month in enumerate(MONTHS):
        site.on(month_path(month), month_page(number))
    site.otherwise = lambda request: decoded(site, request)


def tree_path(tree: Tree) -> str:
    return f"/trees/{tree.name}/"


def work_path(name: str) -> str:
    return f"/work/{name}.html"


def ailment_path(name: str) -> str:
    return f"/ailments/{name.replace(' ', '-')}.html"


def month_path(name: str) -> str:
    return f"/months/{name.lower()}.html"


def front_page(web: Mapping[str, str]) -> Answer:
    places = [(f"/{path}/", title) for path, title in SECTIONS.items()]
    places += [("/glossary.html", "Glossary"), ("/search", "Search"), ("/about.html", "About")]
    outside = link(web["news"] + "/", "the Orchard Gazette")
    return html(
        "The orchard handbook",
        f"<p>All that a small orchard needs: {len(TREES)} kinds of trees, how to look after them, "
        f"and what to do when. What is new stands in {outside}.</p>{listing(places)}",
    )


def about_page(web: Mapping[str, str]) -> Answer:
    """Links of every sort that a page may hold, also those that no crawler should follow."""
    links = [
        ("mailto:editor@example.org", "Write to the editor"),
        ("tel:+440000000", "Ring the office"),
        ("javascript:window.print()", "Print this page"),
        ("https://www.example.org/orchards", "The national society"),
        ("/handbook-1987.html", "The first edition"),
        ("/spellings.html", "How our addresses are written"),
        (web["shop"] + "/?utm_source=handbook&utm_medium=about", "Our shop"),
    ]
    return html("About this handbook", f"<p>Made by the village.</p>{listing(links)}")


def spellings_page(site: Origin) -> Answer:
    """One page under many spellings: a crawler that knows its RFC 3986 fetches it once."""
    spellings = [
        "/trees/apple/",
        "trees/apple/",
        "./trees/../trees/apple/",
        "//" + site.url.removeprefix("http://") + "/trees/apple/",
        "HTTP://" + site.url.removeprefix("http://") + "/trees/apple/",
        "/trees/%61pple/",
        "/trees/apple/#planting",
        " /trees/apple/\n",
    ]
    return html("One address, many spellings", listing((each, repr(each)) for each in spellings))


def section_page(path: str, title: str) -> Answer:
    entries = {
        "trees": [(tree_path(tree), f"{tree.name} ({tree.latin})") for tree in TREES],
        "work": [(work_path(name), name) for name in WORK],
        "ailments": [(ailment_path(name), name) for name in AILMENTS],
        "months": [(month_path(name), name) for name in MONTHS],
    }
    return html(title, f"<p>{link('/', 'Contents')}</p>{listing(entries[path])}")


def tree_pages(web: Mapping[str, str]) -> Iterator[tuple[str, Answer]]:
    """Three pages for each tree, each linked with the neighbours in the list."""
    for number, tree in enumerate(TREES):
        path = tree_path(tree)
        following = TREES[(number + 1) % len(TREES)]
        yield path, tree_page(tree, following, web)
        yield path + "planting.html", planting_page(tree)
        yield path + "harvest.html", harvest_page(tree)


def tree_page(tree: Tree, following: Tree, web: Mapping[str, str]) -> Answer:
    ailments = [(ailment_path(name), name) for name in ailments_of(tree)]
    gear = pick(["gloves", "boots", "jackets", "hats"], tree.name)
    return html(
        tree.name.capitalize(),
        f"<p>The {tree.name} (<i>{tree.latin}</i>) grows to about {tree.height_m} metres. It wants "
        f"{link('/glossary.html#' + tree.soil, tree.soil)} soil, blossoms in "
        f"{link(month_path(tree.blossom), tree.blossom)} and is picked in "
        f"{link(month_path(tree.harvest), tree.harvest)}.</p>"
        f"<p>Read on about {link('planting.html', 'planting')} and "
        f"{link('harvest.html', 'the harvest')}.</p>"
        f"<h2>Look out for</h2>{listing(ailments)}"
        f"<p>For the work there are {link(web['shop'] + '/' + gear + '/', gear)} in the shop.</p>"
        f"<p>Next: {link('../' + following.name + '/', following.name)}. "
        f"{link('/trees/', 'All trees')}</p>",
    )


def planting_page(tree: Tree) -> Answer:
    job = pick(list(WORK), tree.name, "planting")
    distance = max(2, tree.height_m * 2 // 3)
    return html(
        f"Planting the {tree.name}",
        f"<p>Dig the hole the autumn before. Set the trees {distance} metres apart, in {tree.soil} "
        f"soil, with the graft a hand above the ground. In the first summer "
        f"{link(work_path(job), job)} matters more than feeding.</p>"
        f"<p>{link('./', 'Back to the ' + tree.name)}</p>",
    )


def harvest_page(tree: Tree) -> Answer:
    when = link(month_path(tree.harvest), tree.harvest)
    return html(
        f"Harvesting the {tree.name}",
        f"<p>Begin in {when}, on a dry day, with the lowest branches. The crop keeps for about "
        f"{tree.keeps_weeks} weeks; what is bruised goes into {tree.use}.</p>"
        f"<p>{link('./', 'Back to the ' + tree.name)}</p>",
    )


def work_page(name: str, meaning: str) -> Answer:
    trees = [(tree_path(tree), tree.name) for tree in TREES if pick(list(WORK), tree.name) == name]
    month = pick(MONTHS, name)
    return html(
        name.capitalize(),
        f"<p>{meaning} The month for it is {link(month_path(month), month)}.</p>"
        f"<h2>Trees that ask for it</h2>{listing(trees)}<p>{link('./', 'All work')}</p>",
    )


def ailment_page(name: str, sign: str, cure: str) -> Answer:
    trees = [(tree_path(tree), tree.name) for tree in TREES if name in ailments_of(tree)]
    return html(
        name.capitalize(),
        f"<p>The sign: {sign} The cure: {cure}</p><h2>Who suffers</h2>{listing(trees)}"
        f"<p>{link('./', 'All ailments')}</p>",
    )


def ailments_of(tree: Tree) -> list[str]:
    """Two or three ailments for each tree."""
    return sorted({pick(list(AILMENTS), tree.name, turn) for turn in range(3)})


def month_page(number: int) -> Answer:
    month = MONTHS[number]
    blossoms = [(tree_path(tree), tree.name) for tree in TREES if tree.blossom == month]
    harvests = [(tree_path(tree), tree.name) for tree in TREES if tree.harvest == month]
    jobs = [(work_path(name), name) for name in WORK if pick(MONTHS, name) == month]
    before, after = MONTHS[number - 1], MONTHS[(number + 1) % 12]
    return html(
        month,
        f"<h2>To do</h2>{listing(jobs)}<h2>In blossom</h2>{listing(blossoms)}"
        f"<h2>To pick</h2>{listing(harvests)}"
        f"<p>{link(month_path(before), before)} | {link(month_path(after), after)}</p>",
    )


def glossary_page() -> Answer:
    entries = "\n".join(
        f'<dt id="{word}">{word}</dt><dd>{meaning} <a href="#{pick(list(GLOSSARY), word)}">See '
        f"also</a></dd>"
        for word, meaning in GLOSSARY.items()
    )
    return html("Glossary", f"<dl>\n{entries}\n</dl><p>{link('/', 'Contents')}</p>")


def decoded(site: Origin, request: Request) -> Answer:
    """The page whose path is the decoded one: a server does not mind needless percent-encoding."""
    page = site.routes.get(unquote(request.path))
    return page if isinstance(page, Answer) else html("Not found", "", status=404)


def search(request: Request) -> Answer:
    """The form, or what it finds; every result page suggests more searches, as search pages do."""
    form = '<form action="/search"><input name="q"><button>Search</button></form>'
    if not request.query:
        popular = [(f"/search?q={name}", name) for name in ("apple", "scab", "pruning")]
        return html("Search", form + listing(popular))
    word = request.query.removeprefix("q=")
    found = [(tree_path(tree), tree.name) for tree in TREES if word in tree.name]
    related = [(f"/search?q={word}+{name}", f"{word} and {name}") for name in ("soil", "cure")]
    return html(f"Search: {word}", form + listing(found) + listing(related))
