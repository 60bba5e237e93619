"""The site: its table of contents has every page, and its extensions say what they should. `make docs` builds it."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")


def extension(name):
    """A module of docs/_ext, which is on the path of Sphinx alone."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents():
    """The pages that the tables of contents name, with those that a pattern finds."""
    lines = [line for block in re.findall(r"```\{toctree\}\n(.*?)```", INDEX, re.DOTALL) for line in block.splitlines()]
    entries = [line for line in lines if line and not line.startswith(":")]
    for entry in entries:
        yield from sorted(DOCS.glob(entry + ".*")) if "*" in entry else [DOCS / entry]


def pages():
    found = [path for kind in ("*.md", "*.ipynb") for path in DOCS.rglob(kind)]
    return {path.relative_to(DOCS).with_suffix("") for path in found if "api" not in path.relative_to(DOCS).parts}


def test_every_page_is_in_the_contents_once():
    named = [path.relative_to(DOCS).with_suffix("") for path in contents()]
    assert len(named) == len(set(named))
    assert set(named) - {Path("api/index")} == pages() - {Path("index")}


def test_the_contents_are_in_the_order_of_the_tables():
    captions = re.findall(r":caption: (\w+)", INDEX)
    assert captions == re.findall(r"^## (\w+)", INDEX, re.MULTILINE) == ["Start", "Learn", "Reference", "Internals"]


def test_each_page_that_teaches_says_what():
    for title in ("Start", "Learn"):
        table = INDEX.split(f"## {title}\n")[1].split("\n## ")[0]
        named = set(re.findall(r"^\| \[[^]]*\]\(([^.)][^)]*)\) \| \w", table, re.MULTILINE))
        tree = INDEX.split(f":caption: {title}\n")[1].split("```")[0].split()
        assert {Path(path).with_suffix("") for path in named} == {Path(path) for path in tree}


def test_public_names_are_described_once():
    pages = extension("api_pages")
    written, texts = {}, {}
    for name in ("tilewright.layout", "tilewright.cute"):
        texts[name] = pages.page(name, "Title", written)
    assert "autoclass:: tilewright.layout.Layout\n" in texts["tilewright.layout"]
    assert "{py:obj}`Layout <tilewright.layout.Layout>`" in texts["tilewright.cute"]
    entries = re.findall(r":: (tilewright\S+)", "".join(texts.values()))
    assert len(entries) == len(set(entries)) > 100
    assert "autofunction:: tilewright.cute.make_tiled_copy_tv\n" in texts["tilewright.cute"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Adds `a` and `b`s."], ["Adds \\ ``a``\\  and \\ ``b``\\ s.", ""]),
        (["a * b, x_ and |c|"], ["a \\* b, x\\_ and \\|c\\|", ""]),
        (["One.", "", "| a | b |", "|---|---|"], ["One.", "", "::", "", "   | a | b |", "   |---|---|", ""]),
        (["* one", "* of `a`", "  and b"], ["* one", "* of \\ ``a``\\  and b", ""]),
        (["1. one", "2. two"], ["1. one", "2. two", ""]),
        (["x", "", "    code()", ""], ["x", "", "::", "", "       code()", ""]),
        (
            ["Args:", "    a: one", "        or two.", "    *rest: `b`s.", "", "Returns:", "    Three."],
            [":param a: one or two.", ":param \\*rest: \\ ``b``\\ s.", "", ":returns: Three.", ""],
        ),
        (["Raises:", "    ValueError: it is wrong."], [":raises ValueError: it is wrong.", ""]),
    ],
)
def test_docstrings_become_text_without_markup(lines, expected):
    assert extension("api_pages").restructured(lines) == expected


def test_every_entry_of_the_reference_has_a_docstring_of_its_own():
    pages = extension("api_pages")
    assert pages.describes(inspect.getdoc)
    assert not pages.describes(inspect) and not pages.describes(3) and not pages.describes(lambda: None)
    assert not pages.describes(int), "cute.Int is Python's"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../CONTRIBUTING.md#ops)", "[a](https://host/repo/blob/main/CONTRIBUTING.md#ops)"),
        ("[a](decisions)", "[a](https://host/repo/tree/main/docs/decisions)"),
        ("[a](language.md#types)", "[a](language.md#types)"),
        ("[a](https://elsewhere/x)", "[a](https://elsewhere/x)"),
    ],
)
def test_links_out_of_the_site_are_absolute(link, expected):
    assert extension("repository_links").absolute(link, DOCS / "page.md", DOCS, "https://host/repo") == expected
