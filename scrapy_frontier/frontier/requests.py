"""Between live requests and the records of the store.

A stored request names its callback and errback as methods of the spider; data classes and items in its meta are
restored only from modules that the project trusts, so that a store that others may write to cannot name any code.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from itemadapter import ItemAdapter
from scrapy import Request, Spider
from scrapy.http.request import NO_CALLBACK

from scrapy_frontier.errors import IdentityError
from scrapy_frontier.frontier.slots import META_KEY, AutomaticSlot
from scrapy_frontier.identity import NotSerialisable, RequestRecord, dump, load

TRANSIENT_META: Final = frozenset(
    {
        "download_latency",
        "cached_response",
        "_dont_cache",
        "playwright_page",
        "frontier_rendered",
        "autothrottle_dont_adjust_delay",
        "frontier_delay",
        "frontier_not_before",
    }
)
"""Keys that belong to one download, or whose wish has been recorded otherwise."""

_NO_CALLBACK_NAME: Final = "NO_CALLBACK"

PAGE_METHOD: Final = "scrapy_playwright.page:PageMethod"
"""What scrapy-playwright calls on a page, stored by its name and arguments; one that is a function is not."""


class RequestCodec:
    """Writes requests of one spider as records and makes them live again."""

    def __init__(self, spider: Spider, trusted_modules: Iterable[str] = ()) -> None:
        self._spider = spider
        self._trusted = (type(spider).__module__.partition(".")[0], *trusted_modules)
        self._names: dict[Any, str] = {}

    def dump(self, request: Request) -> str:
        """The record of a request, without its URL. Raises `NotSerialisable`, naming the part that cannot be stored."""
        meta = request.meta
        if META_KEY in meta or not TRANSIENT_META.isdisjoint(meta):
            meta = {
                key: value
                for key, value in meta.items()
                if key not in TRANSIENT_META and not isinstance(value, AutomaticSlot)
            }
        cls = type(request)
        record = RequestRecord(
            method=request.method,
            headers=_headers(request),
            body=request.body,
            cookies=request.cookies,
            meta=meta,
            cb_kwargs=request.cb_kwargs,
            callback=self._name(request.callback, "callback"),
            errback=self._name(request.errback, "errback"),
            priority=request.priority,
            dont_filter=request.dont_filter,
            encoding=request.encoding,
            flags=tuple(request.flags),
            request_class="" if cls is Request else f"{cls.__module__}:{cls.__qualname__}",
            extra={} if cls is Request else _extra(request),
        )
        return dump(record, self)

    def load(self, url: str, text: str) -> Request:
        """The request of a record. Raises `IdentityError` where the spider no longer has what the record names."""
        record = load(text, self)
        cls = self._class(record.request_class) if record.request_class else Request
        if not (isinstance(cls, type) and issubclass(cls, Request)):
            raise IdentityError(
                f"{record.request_class}, named by a stored request, is no request class"
            )
        try:
            return cls(
                url,
                method=record.method,
                headers=[
                    (name.encode("latin-1"), None if value is None else value.encode("latin-1"))
                    for name, value in record.headers
                ],
                body=record.body,
                cookies=record.cookies,
                meta=record.meta,
                cb_kwargs=record.cb_kwargs,
                callback=self._method(record.callback),
                errback=self._method(record.errback),
                priority=record.priority,
                dont_filter=record.dont_filter,
                encoding=record.encoding,
                flags=list(record.flags),
                **record.extra,
            )
        except (TypeError, ValueError) as exc:
            raise IdentityError(
                f"the stored request for {url} cannot be made again: {exc}"
            ) from exc

    def encode_object(self, value: Any) -> tuple[str, Any] | None:
        """Items and data classes, by the import path of their class and their fields; None for anything else."""
        if (found := _page_method(value)) is not None:
            return found
        if isinstance(value, type) or not ItemAdapter.is_item(value) or isinstance(value, dict):
            return None
        if "<locals>" in type(value).__qualname__:
            return None
        if dataclasses.is_dataclass(value) and not all(
            item.init for item in dataclasses.fields(value)
        ):
            return None
        return f"{type(value).__module__}:{type(value).__qualname__}", dict(ItemAdapter(value))

    def decode_object(self, tag: str, payload: Any) -> Any:
        """The item that `encode_object` wrote. Raises `IdentityError` unless its class is trusted and is an item's."""
        if tag == PAGE_METHOD:
            return _made_again(payload)
        cls = self._class(tag)
        if not ItemAdapter.is_item_class(cls):
            raise IdentityError(f"{tag}, named by a stored request, is not an item or data class")
        return cls(**payload)

    def _name(self, function: Any, part: str) -> str:
        if function is None:
            return ""
        if function is NO_CALLBACK:
            return _NO_CALLBACK_NAME
        if getattr(function, "__self__", None) is self._spider:
            name = self._names.get(function.__func__) or self._find_name(function)
            if name is not None:
                return name
        raise NotSerialisable(
            part,
            f"{function!r} is not a method of spider {self._spider.name!r}, so it cannot be stored by name",
        )

    def _find_name(self, method: Any) -> str | None:
        """The attribute of the spider that holds this method; private names as the class spells them, mangled."""
        name = method.__name__
        for candidate in (name, *_mangled(type(self._spider), name)):
            found = getattr(self._spider, candidate, None)
            if getattr(found, "__func__", None) is method.__func__:
                self._names[method.__func__] = candidate
                return str(candidate)
        return None

    def _method(self, name: str) -> Callable[..., Any] | None:
        if not name:
            return None
        if name == _NO_CALLBACK_NAME:
            return NO_CALLBACK
        found = getattr(self._spider, name, None)
        if getattr(found, "__self__", None) is not self._spider:
            raise IdentityError(
                f"spider {self._spider.name!r} has no method {name!r} any more, but stored requests"
                " name it"
            )
        return found

    def _class(self, path: str) -> Any:
        module, _, name = path.partition(":")
        if module.partition(".")[0] not in {"scrapy", "scrapy_frontier"} and not self._is_trusted(
            module
        ):
            raise IdentityError(
                f"{path} is not restored from the store: add its package to FRONTIER_TRUSTED_MODULES if you trust it"
            )
        try:
            found: Any = sys.modules.get(module) or importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as exc:
            raise IdentityError(
                f"{path}, named by a stored request, cannot be imported: {exc}"
            ) from exc
        return found

    def _is_trusted(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self._trusted)


def _headers(request: Request) -> tuple[tuple[str, str | None], ...]:
    if not request.headers:
        return ()
    return tuple(
        (name.decode("latin-1"), None if value is None else value.decode("latin-1"))
        for name, values in request.headers.items()
        for value in values or (None,)
    )


def _extra(request: Request) -> dict[str, Any]:
    """The attributes that a subclass of Request adds to what makes it again."""
    return {
        name: getattr(request, name)
        for name in request.attributes
        if name not in Request.attributes
    }


def _mangled(cls: type, name: str) -> Iterable[str]:
    if name.startswith("__") and not name.endswith("__"):
        return [f"_{base.__name__.lstrip('_')}{name}" for base in cls.__mro__]
    return []


def _page_method(value: Any) -> tuple[str, Any] | None:
    cls = type(value)
    if f"{cls.__module__}:{cls.__qualname__}" != PAGE_METHOD or not isinstance(value.method, str):
        return None
    return PAGE_METHOD, {"method": value.method, "args": list(value.args), "kwargs": value.kwargs}


def _made_again(payload: Any) -> Any:
    try:
        cls = importlib.import_module("scrapy_playwright.page").PageMethod
    except ImportError as exc:
        raise IdentityError(
            "a stored request calls page methods: install scrapy-playwright (extra `playwright`)"
        ) from exc
    return cls(payload["method"], *payload["args"], **payload["kwargs"])
