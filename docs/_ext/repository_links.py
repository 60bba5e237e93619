"""Links from pages to files of the repository that are not part of the site.

The pages are written for a reader of the repository, whose links are relative: `../CONTRIBUTING.md`, `decisions/`.
Where such a link leads out of `docs/`, or to a folder, the site links to the repository's own page of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(\]\()(?!\w+:)([^)#\s]+)(#[^)\s]*)?(\))")


def absolute(text: str, page: Path, docs: Path, repository: str) -> str:
    """The page's text, its links out of the site made absolute."""

    def replaced(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        inside = target.is_relative_to(docs) and target.is_file()
        if inside or not target.exists():
            return found[0]
        kind = "tree" if target.is_dir() else "blob"
        address = f"{repository}/{kind}/main/{target.relative_to(docs.parent)}"
        return f"{found[1]}{address}{found[3] or ''}{found[4]}"

    return LINK.sub(replaced, text)


def on_source_read(app: Any, document: str, source: list[str]) -> None:
    """Rewrite a Markdown page before it is parsed."""
    page = Path(app.env.doc2path(document))
    if page.suffix == ".md":
        source[0] = absolute(source[0], page, Path(app.srcdir).resolve(), app.config.repository)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("repository", "", "env")
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
