"""The orchard shop: few products, and far too many addresses for them.

Each category can be sorted and narrowed by colour and size, and the links keep the order in which a
visitor chose: `?colour=red&size=M` and `?size=M&colour=red` are two addresses of one page. Links to
products carry tracking parameters, which change nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from example.web.pages import html, link, listing, pick
from scrapy_frontier.testing import Answer, Origin, Request

CATEGORIES = ("boots", "gloves", "hats", "jackets")
FACETS = {
    "sort": ("price", "-price", "name"),
    "colour": ("green", "grey", "red", "blue"),
    "size": ("S", "M", "L"),
}
PRODUCTS_PER_CATEGORY = 16
PRODUCTS_PER_PAGE = 6
STYLES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Holly")


class Product(NamedTuple):
    """One thing to buy; prices are in pence."""

    sku: str
    name: str
    category: str
    colour: str
    size: str
    price: int

    @property
    def path(self) -> str:
        return f"/products/{self.sku}"


def make_product(category: str, number: int) -> Product:
    sku = f"{category[0].upper()}{number:02}"
    style = STYLES[number % len(STYLES)]
    colour, size = pick(FACETS["colour"], sku), pick(FACETS["size"], sku)
    price = 1500 + pick(range(0, 6000, 50), sku)
    return Product(sku, f"{style} {category}", category, colour, size, price)


PRODUCTS = [make_product(c, n) for c in CATEGORIES for n in range(PRODUCTS_PER_CATEGORY)]


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the shop on `site`."""
    site.on("/", front_page())
    for category in CATEGORIES:
        site.on(f"/{category}/", category_page)
    for product in PRODUCTS:
        site.on(product.path, product_page(product, site, web))


def front_page() -> Answer:
    categories = [(f"/{category}/", category) for category in CATEGORIES]
    advertised = "?utm_source=shop&utm_medium=front"
    offers = [(p.path + advertised, p.name) for p in islice(PRODUCTS, 0, None, 8)]
    return html("The orchard shop", listing(categories) + "<h2>Offers</h2>" + listing(offers))


def category_page(request: Request) -> Answer:
    """The products of a category as the query narrows and sorts them, six to a page."""
    category = request.path.strip("/")
    chosen = dict(parse_qsl(request.query))
    number = int(chosen.pop("page", "1"))
    products = choose(category, chosen)
    shown = products[(number - 1) * PRODUCTS_PER_PAGE : number * PRODUCTS_PER_PAGE]
    if number > 1 and not shown:
        return html("No such page", f"<p>{link(request.path, 'Back')}</p>", status=404)
    return html(
        f"{category.capitalize()}, page {number}",
        listing((f"{p.path}?from={category}", f"{p.name}, {p.colour}, {p.size}") for p in shown)
        + pager(request.path, chosen, len(products))
        + facets(request.path, chosen)
        + f"<p>{link('/', 'Home')}</p>",
    )


def choose(category: str, chosen: Mapping[str, str]) -> list[Product]:
    """The products that match the chosen colour and size, in the chosen order."""
    products = [
        product
        for product in PRODUCTS
        if product.category == category
        and chosen.get("colour", product.colour) == product.colour
        and chosen.get("size", product.size) == product.size
    ]
    sort = chosen.get("sort", "")
    if sort:
        products.sort(key=lambda p: getattr(p, sort.removeprefix("-")), reverse=sort[0] == "-")
    return products


def pager(path: str, chosen: Mapping[str, str], total: int) -> str:
    pages = range(1, -(-total // PRODUCTS_PER_PAGE) + 1)
    if len(pages) < 2:
        return ""
    return listing((address(path, {**chosen, "page": str(n)}), f"page {n}") for n in pages)


def facets(path: str, chosen: Mapping[str, str]) -> str:
    """A link for each facet value: one more choice, or, where it is chosen, one less."""
    links = []
    for name, values in FACETS.items():
        without = {key: value for key, value in chosen.items() if key != name}
        for value in values:
            is_chosen = chosen.get(name) == value
            query = without if is_chosen else {**without, name: value}
            links.append((address(path, query), f"{name}: {value}{' (remove)' * is_chosen}"))
    return listing(links)


def address(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def product_page(product: Product, site: Origin, web: Mapping[str, str]) -> Answer:
    canonical = f'<link rel="canonical" href="{site.url}{product.path}">'
    others = [p for p in PRODUCTS if p.category == product.category and p.colour == product.colour]
    also = [(f"{p.path}?from={product.sku}", p.name) for p in others if p != product]
    return html(
        product.name,
        f'<p class="price" data-sku="{product.sku}">£{product.price / 100:.2f}</p>'
        f"<p>{product.colour}, size {product.size}, for the orchard and the way there.</p>"
        f"<h2>Goes well with</h2>{listing(also[:3])}"
        f"<p>{link(f'/{product.category}/', product.category)} | "
        f"{link(web['docs'] + '/', 'The handbook')}</p>",
        head=canonical,
    )
