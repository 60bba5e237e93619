"""The circles of imports that scripts/check_circles.py finds, and what it lets pass."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_circles", ROOT / "scripts" / "check_circles.py")
check_circles = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_circles)


def circles_of(folder, sources):
    for name, text in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_circles.circles(check_circles.import_graph(folder))


@pytest.mark.parametrize(
    "back",
    [
        "from p.a import x",
        "import p.a",
        "from p import a",
        "def f():\n    from p import a",
        "if TYPE_CHECKING:\n    from p.a import x",
        "module = importlib.import_module('p.a')",
    ],
)
def test_an_import_back_makes_a_circle_wherever_it_stands(tmp_path, back):
    assert circles_of(tmp_path, {"p/__init__.py": "", "p/a.py": "from p import b", "p/b.py": back}) == [["p.a", "p.b"]]


def test_circles_go_through_several_modules_and_are_told_apart(tmp_path):
    sources = {"p/__init__.py": "", "p/a.py": "import p.b", "p/b.py": "import p.c", "p/c.py": "import p.a\nimport p.d",
               "p/d.py": "import p.e", "p/e.py": "import p.d"}  # fmt: skip
    assert circles_of(tmp_path, sources) == [["p.a", "p.b", "p.c"], ["p.d", "p.e"]]


def test_shared_modules_and_reexports_are_no_circles(tmp_path):
    sources = {"p/__init__.py": "from p.a import x", "p/a.py": "from p import b, c", "p/b.py": "from p.c import y",
               "p/c.py": "import os"}  # fmt: skip
    assert circles_of(tmp_path, sources) == []


def test_a_module_that_asks_its_package_for_a_reexported_name_is_one(tmp_path):
    sources = {"p/__init__.py": "from p.a import x", "p/a.py": "from p import y"}
    assert circles_of(tmp_path, sources) == [["p", "p.a"]]


def test_the_package_has_none():
    assert check_circles.main() == 0
