"""The notebooks of docs/gallery: each is its script, the script runs, and it prints what the notebook shows."""

import contextlib
import importlib.util
import io
import linecache
import re
import sys
import types
from pathlib import Path

import pytest

from tilewright.base import settings

pytest.importorskip("nbclient", reason="notebooks need nbclient")
jupytext = pytest.importorskip("jupytext", reason="notebooks need jupytext")
nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GALLERY = ROOT / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))
IN_JUPYTER = ("vector_add", "softmax", "layer_norm", "transpose", "gemm")


def of_scripts(name):
    """A module of the folder scripts."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def notebooks():
    return of_scripts("notebooks")


def stored(script):
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def printed(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


def run_cells(cells, path):
    """Run the code of cells in one module, as a script would; what each prints."""
    module = types.ModuleType("gallery_" + path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        for number, cell in enumerate(cells):
            if cell.cell_type != "code":
                continue
            name = f"<{path.stem} {number}>"
            linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                exec(compile(cell.source, name, "exec"), module.__dict__)
            yield cell, text.getvalue()
    finally:
        del sys.modules[module.__name__]


def test_there_are_the_pages_that_were_asked_for():
    assert {path.stem for path in SCRIPTS} >= {*IN_JUPYTER, "pipelines", "autotuning", "inline_ptx", "debugging"}
    assert {path.stem for path in GALLERY.glob("*.ipynb")} == {path.stem for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_its_script(notebooks, script):
    """`python scripts/notebooks.py` writes them anew."""
    cells = [(cell.cell_type, cell.source) for cell in notebooks.of_script(script).cells]
    assert cells == [(cell.cell_type, cell.source) for cell in stored(script).cells]
    assert not any(output.output_type == "error" for cell in stored(script).cells for output in cell.get("outputs", []))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_prints_what_it_shows(script, monkeypatch):
    monkeypatch.chdir(ROOT)
    with settings.scope(target="emu", arch="sm_90a"):
        for cell, text in run_cells(stored(script).cells, script):
            assert text == printed(cell.outputs), cell.source


@pytest.mark.parametrize("name", IN_JUPYTER)
def test_a_notebook_runs_in_jupyter(notebooks, name, monkeypatch):
    for variable, value in notebooks.SETTINGS.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    script = GALLERY / f"{name}.py"
    shown, kept = notebooks.executed(script).cells, stored(script).cells
    assert [cell.get("outputs") for cell in shown] == [cell.get("outputs") for cell in kept]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_says_what_it_teaches_and_where_to_go_on(script):
    cells = stored(script).cells
    assert re.match(r"# [A-Z].*\n\nThis page teaches ", cells[0].source)
    assert "## Where to go on" in cells[-1].source
    links = re.findall(
        r"\]\(([^)#]+)(?:#[^)]*)?\)", "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    )
    assert links
    assert not [link for link in links if not (GALLERY / link).exists()]


def test_charts_show_figures_of_the_file():
    pytest.importorskip("matplotlib")
    charts = of_scripts("gallery_charts")
    row = {"shape": [4096, 4096, 4096], "p50_us": 137.438953472, "gbs": 5.0}
    assert abs(charts.teraflops(row) - 1000) < 1e-6
    assert charts.gigabytes(row) == 5.0
    assert charts.RESULTS.is_file()
    for chart in charts.CHARTS:
        assert (ROOT / "docs" / "images" / chart.file).is_file()


def test_the_example_of_readme_works_as_one_cell(notebooks, monkeypatch):
    for variable, value in notebooks.SETTINGS.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    code, expected = re.search(
        r"^```python\n(.*?)^```\n+```text output\n(.*?)^```", README, re.MULTILINE | re.DOTALL
    ).groups()
    source = code + "\ncompiled"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebooks.NotebookClient(notebook, timeout=notebooks.SECONDS, kernel_name="python3").execute()
    (cell,) = notebook.cells
    assert printed(cell.outputs) == expected
    assert cell.outputs[-1].data["text/plain"].startswith("<axpy, compiled for sm_90a, runs on emu; stages python")
