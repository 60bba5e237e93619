"""The site: `make docs`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT / "src")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "Tilewright"
author = copyright = "The Tilewright developers"
version = release = PROJECT["version"]
repository = PROJECT["urls"]["Source"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "api_pages",
    "code_links",
    "repository_links",
]
exclude_patterns = ["_build", "_ext"]
suppress_warnings = [
    "misc.highlighting_failure",  # Pygments reads PTX with gaps
    "ref.python",  # `type` in a signature is the built-in one, and also an attribute of two classes
]
default_role = "code"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_render_markdown_format = "myst"

autodoc_typehints_format = "short"
autodoc_member_order = "alphabetical"
autodoc_inherit_docstrings = False

html_theme = "furo"
html_title = "Tilewright"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_repository": repository,
    "source_branch": "main",
    "source_directory": "docs/",
    "light_css_variables": {"color-brand-primary": "#00695c", "color-brand-content": "#00695c"},
    "dark_css_variables": {"color-brand-primary": "#5fd3bc", "color-brand-content": "#5fd3bc"},
}
copybutton_exclude = ".linenos, .gp, .go"

# `make linkcheck`: pages that only a signed-in reader sees, and pages whose anchors a script makes.
linkcheck_ignore = [rf"{repository}/security/.*", rf"{repository}/issues/new.*"]
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]
linkcheck_timeout = 30
linkcheck_retries = 2
