"""How the documentation is built: `sphinx-build -W docs docs/_build/html`."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "scrapy_frontier"
author = "the scrapy_frontier developers"
copyright = f"2026, {author}"
release = version = installed_version("scrapy-frontier")

extensions = ["frontier_reference", "myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "sphinx_rtd_theme"
html_theme_options = {"navigation_depth": 3, "collapse_navigation": False}
html_static_path = ["_static"]
html_css_files = ["frontier.css"]
html_title = f"scrapy_frontier {release}"
html_show_sourcelink = False

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
