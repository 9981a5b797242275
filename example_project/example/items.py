"""What the spiders bring home."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass
class Page:
    """A page of the handbook."""

    url: str
    title: str
    section: str
    words: int


@dataclass
class Product:
    """Something the shop sells."""

    url: str
    sku: str
    name: str
    price: Decimal


@dataclass
class Article:
    """An article of the gazette."""

    url: str
    headline: str
    day: str
    topic: str


@dataclass
class Parcel:
    """A parcel of the land register."""

    url: str
    number: int


@dataclass
class Price:
    """What something costs at the market."""

    url: str
    ware: str
    price: str


@dataclass
class Visit:
    """How one request of the `everything` spider ended: with a status, or with a failure."""

    url: str
    status: int | None
    failure: str | None = None
