"""Scripts as JSON, for a server that runs as a process.

    {"origins": {
        "docs": {"paths": {"/": {"links": ["/a", "${shop}/"]},
                           "/a": [{"status": 503, "headers": {"Retry-After": "1"}}, {"body":
                           "fine"}], "/old*": {"redirect": "/", "status": 301}, "/dead": {"fault":
                           "reset"}},
                 "otherwise": {"status": 404}},
        "shop": {"host": "127.0.0.2", "paths": {"/": {"body": "<p>hats</p>", "delay_s": 0.2}}}}}

An answer has the fields of `Answer`, or `links` (with `title` and `text`) for a page of links, or
`redirect`. In every text `${name}` stands for the URL of that origin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from scrapy_frontier.errors import ConfigError
from scrapy_frontier.testing.answers import Answer, Route, page, redirect
from scrapy_frontier.testing.scripted import ScriptedServer

ANSWER_KEYS = frozenset(field.name for field in fields(Answer))
PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def load_script(path: Path, server: ScriptedServer, *, host: str, port: int) -> None:
    """Open and script the origins of a JSON file on `server`.

    The first origin without a port of its own takes `port`, the next ones those that follow; 0
    means free ports. Raises ConfigError where the file says something else than a script.
    """
    try:
        origins: dict[str, dict[str, Any]] = json.loads(path.read_text())["origins"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ConfigError(
            f'{path} is not a script: it needs {{"origins": {{...}}}} ({exc})'
        ) from exc
    for number, (name, script) in enumerate(origins.items()):
        following = port + number if port else 0
        server.origin(name, script.get("host", host), script.get("port", following))
    urls = {name: origin.url for name, origin in server.origins.items()}
    for name, script in origins.items():
        origin = server.origins[name]
        for target, route in _fill(script.get("paths", {}), urls).items():
            origin.on(target, read_route(route))
        if "otherwise" in script:
            origin.otherwise = read_route(_fill(script["otherwise"], urls))


def read_route(script: Any) -> Route:
    """One answer, or a list of answers in turn."""
    return (
        [read_answer(answer) for answer in script]
        if isinstance(script, list)
        else read_answer(script)
    )


def read_answer(script: Mapping[str, Any]) -> Answer:
    """An answer from its JSON form. Raises ConfigError for a key that it does not know."""
    given = dict(script)
    headers = given.pop("headers", {})
    pairs = (
        list(headers.items()) if isinstance(headers, dict) else [tuple(pair) for pair in headers]
    )
    if "raw" in given:
        given["raw"] = str(given["raw"]).encode("latin-1")
    base = Answer()
    if "links" in given:
        base = page(given.pop("title", ""), given.pop("links"), given.pop("text", ""))
    elif "redirect" in given:
        base = redirect(given.pop("redirect"))
    unknown = given.keys() - ANSWER_KEYS
    if unknown:
        raise ConfigError(f"an answer has no {sorted(unknown)}: its keys are {sorted(ANSWER_KEYS)}")
    known = {field.name: getattr(base, field.name) for field in fields(Answer)}
    return Answer(**(known | given | {"headers": (*base.headers, *pairs)}))


def _fill(value: Any, urls: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: urls.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [_fill(part, urls) for part in value]
    if isinstance(value, dict):
        return {key: _fill(part, urls) for key, part in value.items()}
    return value
