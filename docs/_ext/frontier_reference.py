"""The directive `frontier-reference`: a part of the reference, made from the code.

::

    ```{frontier-reference} settings
    ```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import reference
import transition_diagram
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import scrapy_frontier

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SOURCES = [
    *Path(scrapy_frontier.__file__).parent.rglob("*.py"),
    *Path(__file__).parent.glob("*.py"),
]


class FrontierReference(SphinxDirective):
    """`frontier-reference PART [ARGUMENT]`, where PART is one of `reference.PARTS`."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse what the part says as if it stood in the page."""
        for source in SOURCES:
            self.env.note_dependency(source)
        part, *arguments = self.arguments
        if part not in reference.PARTS:
            raise self.error(f"no part {part!r}; there are {', '.join(reference.PARTS)}")
        return self.parse_text_to_nodes(reference.PARTS[part](*arguments))


class TransitionDiagram(SphinxDirective):
    """`transition-diagram`: the transition table as a picture."""

    def run(self) -> list[nodes.Node]:
        """Put the drawing into the page itself, so that its text can be found and read out."""
        return [nodes.raw("", transition_diagram.svg(), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the directives known to Sphinx."""
    app.add_directive("frontier-reference", FrontierReference)
    app.add_directive("transition-diagram", TransitionDiagram)
    return {"parallel_read_safe": True}
