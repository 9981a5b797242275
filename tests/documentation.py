"""The pages of the documentation and their code blocks, for the tests that hold them to the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
    *(
        ROOT / name
        for name in (
            "README.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "example_project/README.md",
            "benchmarks/README.md",
        )
    ),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[Any]:
    """Every code block of that language, as parameters of a test."""
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        for number, (found, text) in enumerate(FENCE.findall(page.read_text("utf-8")))
        if found == language
    ]
