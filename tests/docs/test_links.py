"""Links of the documents: each leads to a file of the repository and a heading in it, or is an address in full."""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.blocks import find_blocks

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
OF_FILES = f"{REPOSITORY}/blob/main"
IN_REPOSITORY = re.compile(re.escape(REPOSITORY) + r"/(?:blob|tree)/main/(.*)")
RAW = re.compile(re.escape(REPOSITORY.replace("github.com", "raw.githubusercontent.com")) + r"/main/(.*)")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
BARE = re.compile(r"https?://[^\s)\]>\"'`|]+")
FILES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    + [ROOT / "examples" / "puzzles" / "README.md"]
    + [path for kind in ("*.md", "*.ipynb") for path in (ROOT / "docs").rglob(kind)]
    + list((ROOT / "examples").rglob("*.ipynb"))
)


def prose(path: Path) -> str:
    """The text of a document without its blocks of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    lines = text.splitlines()
    for block in find_blocks(text):
        lines[block.line - 1 : block.line - 1 + len(block.lines)] = [""] * len(block.lines)
    return "\n".join(lines)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub and MyST make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.*)$", prose(path), re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def problem(link: str, page: Path) -> str:
    """What is wrong with a link of a page, or an empty text."""
    address = urlsplit(link)
    own = IN_REPOSITORY.fullmatch(link) or RAW.fullmatch(link)
    if own:
        target, _, anchor = own[1].partition("#")
        path = ROOT / target
    elif address.scheme == "mailto":
        return "" if "@" in address.path else f"{link}: an address has an @"
    elif address.scheme or link.startswith("//"):
        complete = address.scheme in ("https", "http") and re.fullmatch(
            r"[\w-]+(\.[\w-]+)+(:\d+)?|localhost:\d+", address.netloc
        )
        return "" if complete else f"{link}: the address is not complete"
    else:
        target, anchor = unquote(address.path), address.fragment
        path = page.parent / target if target else page
    if not path.exists():
        return f"{link}: there is no such file"
    if anchor and path.suffix in (".md", ".ipynb") and unquote(anchor) not in anchors(path):
        return f"{link}: {path.name} has no heading with that anchor"
    return ""


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_links_lead_somewhere(path):
    text = re.sub(r"``.*?``|`[^`\n]*`", "", prose(path))
    links = {*LINK.findall(text), *(link.rstrip(".,;:") for link in BARE.findall(text))}
    problems = [found for link in sorted(links) if (found := problem(link, path))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("page.md", ""),
        ("page.md#two-words", ""),
        ("#two-words", ""),
        ("page.md#a-b", "page.md#a-b: page.md has no heading with that anchor"),
        ("page.md#cutecopy-twice-1", ""),
        ("page.md#in-a-block", "page.md#in-a-block: page.md has no heading with that anchor"),
        ("other.md", "other.md: there is no such file"),
        (f"{OF_FILES}/README.md#quick-start", ""),
        (f"{OF_FILES}/README.md#nowhere", f"{OF_FILES}/README.md#nowhere: README.md has no heading with that anchor"),
        (f"{OF_FILES}/docs/nothere.md", f"{OF_FILES}/docs/nothere.md: there is no such file"),
        ("https://example.org/a", ""),
        ("https:/example.org/a", "https:/example.org/a: the address is not complete"),
        ("ftp://example.org/a", "ftp://example.org/a: the address is not complete"),
        ("https://example", "https://example: the address is not complete"),
        ("mailto:someone", "mailto:someone: an address has an @"),
    ],
)  # fmt: skip
def test_wrong_links_are_found(link, expected, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Two words\n\n## `cute.copy`, twice\n\n## [`cute.copy`](x.md), twice\n\n```bash\n# In a block\n```\n"
    )
    assert problem(link, page) == expected
