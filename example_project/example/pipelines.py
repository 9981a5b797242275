"""What happens to the items on their way out."""

from __future__ import annotations

from scrapy.exceptions import DropItem

from example.items import Product


class OneOfEachProduct:
    """Keeps the first of the pages that show the same product.

    The shop shows one product under many addresses. Which addresses are one page is for the shop to
    say; which items are one product, we know by the number on it.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def process_item(self, item: object) -> object:
        if isinstance(item, Product):
            if item.sku in self.seen:
                raise DropItem(f"{item.sku} is known already", log_level="DEBUG")
            self.seen.add(item.sku)
        return item
