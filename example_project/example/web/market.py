"""The market hall: pages that scripts make, so that without a browser there is next to nothing in them.

Stalls come by XHR, the old hall sends its visitors on by a script, the goods go on as they are scrolled, the auction
opens a window, and the price list is a download.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from example.web.pages import html, listing, pick
from scrapy_frontier.testing import Answer, Origin, Request

STALLS = 6
GOODS = 40
GOODS_AT_ONCE = 8
WARES = (
    "apples",
    "cider",
    "grafting wax",
    "ladders",
    "pears",
    "perry",
    "pruning knives",
    "quinces",
)

FRONT = """
fetch('/api/stalls').then(answer => answer.json()).then(stalls => {
  for (const stall of stalls) {
    const link = document.createElement('a');
    link.href = '/stalls/' + stall;
    link.textContent = 'Stall ' + stall;
    document.getElementById('stalls').append(link);
  }
})
"""

STALL = """
const request = new XMLHttpRequest();
request.onload = () => {
  const stall = JSON.parse(request.responseText);
  document.querySelector('main').innerHTML = `<h2>${stall.sells}</h2><p class="price">£${stall.price}</p>`;
};
request.open('GET', '/api' + location.pathname);
request.send();
"""

SCROLL = """
let next = 0;
const more = document.getElementById('more');
async function load() {
  const answer = await fetch('/api/goods?from=' + next);
  const goods = await answer.json();
  next += goods.length;
  for (const one of goods) {
    const line = document.createElement('li');
    line.style.height = '200px';
    line.textContent = one;
    document.getElementById('goods').append(line);
  }
  if (goods.length === 0) more.remove();
}
new IntersectionObserver(async (entries, observer) => {
  if (!entries[0].isIntersecting) return;
  observer.unobserve(more);
  await load();
  observer.observe(more);
}).observe(more);
"""

DOWNLOAD = """
const list = document.createElement('a');
list.href = '/prices.csv';
list.download = 'prices.csv';
document.body.append(list);
list.click();
"""


def build(site: Origin, web: Mapping[str, str]) -> None:
    """Put the market hall on `site`."""
    pages = (
        ("/old-hall", "The old hall"),
        ("/goods", "All goods"),
        ("/auction", "The auction"),
        ("/prices", "The price list"),
    )
    site.on("/", _scripted("The market hall", FRONT, '<p id="stalls"></p>' + listing(pages), True))
    site.on("/old-hall", _scripted("The old hall", "location.replace('/hours')"))
    site.on("/hours", html("Hours", "<p>From six to noon.</p>"))
    site.on("/goods", _scripted("All goods", SCROLL, '<ul id="goods"></ul><p id="more">…</p>'))
    site.on("/auction", _scripted("The auction", "window.open('/auction/rules')"))
    site.on("/auction/rules", html("Rules of the auction", "<p>The hammer decides.</p>"))
    site.on("/prices", _scripted("The price list", DOWNLOAD))
    site.on("/prices.csv", Answer(_prices(), content_type="text/csv"))
    site.on("/stalls/*", _scripted("A stall", STALL, "<main></main>"))
    site.on("/api/stalls", _data(list(range(1, STALLS + 1))))
    site.on("/api/stalls/*", _stall)
    site.on("/api/goods", _goods)
    site.on("/visits.js", Answer("/* counts visitors */", content_type="text/javascript"))
    site.on(
        "/robots.txt", Answer("User-agent: *\nDisallow: /visits.js\n", content_type="text/plain")
    )


def _scripted(title: str, code: str, body: str = "", is_counted: bool = False) -> Answer:
    counter = '<script async src="/visits.js"></script>' if is_counted else ""
    return html(title, f"{body}<script>{code}</script>", head=counter)


def _data(content: object) -> Answer:
    return Answer(json.dumps(content), content_type="application/json")


def _price(ware: str) -> str:
    return f"{pick(range(1, 40), ware)}.50"


def _prices() -> str:
    return "".join(f"{ware},{_price(ware)}\n" for ware in WARES)


def _stall(request: Request) -> Answer:
    ware = pick(WARES, request.path)
    return _data({"sells": ware, "price": _price(ware)})


def _goods(request: Request) -> Answer:
    first = int(request.query.removeprefix("from=") or 0)
    last = min(first + GOODS_AT_ONCE, GOODS)
    return _data([f"Lot {n}: {pick(WARES, 'lot', n)}" for n in range(first, last)])
