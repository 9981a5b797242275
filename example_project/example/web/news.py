"""The Orchard Gazette: one short article for each day of 2024, an archive, sitemaps and a feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from example.web.almanac import AILMENTS, GROWERS, MONTHS, TREES, VILLAGES, WORK
from example.web.pages import html, link, listing, pick, xml
from scrapy_frontier.testing import Answer, Origin, text

YEAR = 2024
DAYS = [date(YEAR, 1, 1) + timedelta(days=n) for n in range(366)]
TOPICS = ("fairs", "harvest", "machines", "people", "prices", "weather")
WITHDRAWN = {"/2024/02/30/": 410}
"""Articles that the first sitemap still lists although they are gone, with what they answer."""


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the gazette on `site`."""
    sitemaps = [f"/sitemap-{quarter}.xml" for quarter in range(1, 5)]
    site.on("/robots.txt", text(f"User-agent: *\nAllow: /\nSitemap: {site.url}/sitemap.xml\n"))
    site.on("/sitemap.xml", sitemap_index(site, sitemaps))
    for quarter, path in enumerate(sitemaps):
        listed = [path_of(day) for day in DAYS if (day.month - 1) // 3 == quarter]
        site.on(path, sitemap(site, listed + (list(WITHDRAWN) if quarter == 0 else [])))
    site.on("/feed.xml", feed(site))
    site.on("/", front_page())
    site.on("/archive/", archive_page())
    for month in range(1, 13):
        site.on(f"/{YEAR}/{month:02}/", month_page(month))
    for topic in TOPICS:
        site.on(f"/topics/{topic}/", topic_page(topic))
    for number, day in enumerate(DAYS):
        site.on(path_of(day), article(number, web))
    for path, status in WITHDRAWN.items():
        site.on(path, html("Withdrawn", "<p>The printer was mistaken.</p>", status=status))


def path_of(day: date) -> str:
    return f"/{day:%Y/%m/%d}/"


def topic_of(day: date) -> str:
    return pick(TOPICS, day.isoformat())


def headline(day: date) -> str:
    key = day.isoformat()
    subject = pick([tree.name for tree in TREES], key, "subject")
    news = {
        "fairs": f"A prize for the best {subject} of the county",
        "harvest": f"First {subject} of the season is picked",
        "machines": f"New ladder reaches the top of any {subject}",
        "people": f"She has looked after one {subject} for fifty years",
        "prices": f"A pound of {subject} costs {pick(range(2, 9), key)} shillings",
        "weather": f"Night frost comes close to the {subject}",
    }
    return news[topic_of(day)]


def front_page() -> Answer:
    latest = [(path_of(day), headline(day)) for day in DAYS[-10:]]
    topics = [(f"/topics/{topic}/", topic) for topic in TOPICS]
    head = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    archive = link("/archive/", "All that was ever printed")
    return html(
        "The Orchard Gazette", listing(latest) + listing(topics) + f"<p>{archive}</p>", head=head
    )


def archive_page() -> Answer:
    months = [(f"/{YEAR}/{n:02}/", f"{name} {YEAR}") for n, name in enumerate(MONTHS, start=1)]
    return html("Archive", listing(months))


def month_page(month: int) -> Answer:
    days = [(path_of(day), headline(day)) for day in DAYS if day.month == month]
    return html(f"{MONTHS[month - 1]} {YEAR}", listing(days))


def topic_page(topic: str) -> Answer:
    days = [(path_of(day), headline(day)) for day in DAYS if topic_of(day) == topic]
    return html(f"Topic: {topic}", listing(days))


def article(number: int, web: Mapping[str, str]) -> Answer:
    day = DAYS[number]
    key = day.isoformat()
    tree, job, ailment = pick(TREES, key), pick(list(WORK), key), pick(list(AILMENTS), key)
    neighbours = [DAYS[n] for n in (number - 1, number + 1) if 0 <= n < len(DAYS)]
    handbook = link(f"{web['docs']}/trees/{tree.name}/", f"the {tree.name}")
    topic = topic_of(day)
    return html(
        headline(day),
        f'<p class="byline"><time datetime="{key}">{day.day} {MONTHS[day.month - 1]}</time>, in '
        f"{link(f'/topics/{topic}/', topic)}</p>"
        f"<p>Those who grow {handbook} spoke of {job} and of {ailment}, and of little else. "
        f"{pick(['Rain', 'Sunshine', 'A strong wind', 'Nothing new'], key)} is expected.</p>"
        f"<p>{' '.join(story(key))}</p>"
        + listing((path_of(other), headline(other)) for other in neighbours)
        + f"<p>{link(f'/{day:%Y/%m}/', 'The month')} | {link('/', 'Front page')}</p>",
    )


def story(key: str) -> Iterator[str]:
    """What is told of one day: no other day has the same to tell."""

    def some(options: Sequence[str], what: str) -> str:
        return pick(options, key, what)

    trees = [tree.name for tree in TREES]
    grower, other = some(GROWERS, "grower"), some(GROWERS, "other")
    village, rival = some(VILLAGES, "village"), some(VILLAGES, "rival")
    count = pick(range(12, 990), key, "count")
    yield f"{grower} of {village} counted {count} baskets of {some(trees, 'baskets')}."
    yield f"{other} asked {grower} for a graft of {some(trees, 'graft')} and got none."
    yield f"At {rival} they talked of {some(list(AILMENTS), 'talk')} in the {some(trees, 'talk')}."
    yield f"The way from {village} to {rival} was blocked by a cart of {some(trees, 'cart')}."


def sitemap_index(site: Origin, paths: Iterable[str]) -> Answer:
    entries = "".join(f"<sitemap><loc>{site.url}{path}</loc></sitemap>\n" for path in paths)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return xml(f'<sitemapindex xmlns="{namespace}">\n{entries}</sitemapindex>\n')


def sitemap(site: Origin, paths: Iterable[str]) -> Answer:
    entries = "".join(f"<url><loc>{site.url}{path}</loc></url>\n" for path in paths)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return xml(f'<urlset xmlns="{namespace}">\n{entries}</urlset>\n')


def feed(site: Origin) -> Answer:
    """The latest articles as RSS; its links say where the reader came from."""
    items = "".join(
        f"<item><title>{headline(day)}</title>"
        f"<link>{site.url}{path_of(day)}?utm_source=rss</link></item>\n"
        for day in DAYS[-20:]
    )
    title = f"<title>The Orchard Gazette</title><link>{site.url}/</link>"
    return xml(f'<rss version="2.0"><channel>{title}\n{items}</channel></rss>\n')
