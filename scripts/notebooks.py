"""Notebooks from scripts: `python scripts/notebooks.py [FILE.py ...]` runs scripts and writes FILE.ipynb beside each.

The scripts of `FOLDERS` are in the percent format, which is Python with `# %%` between cells. The notebooks have their
cells and what they print and draw on the emulator. `tests/docs/test_notebooks.py` holds both equal.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs/gallery", "examples/puzzles")
SETTINGS = {
    "TILEWRIGHT_TARGET": "emu", "TILEWRIGHT_ARCH": "sm_90a", "TILEWRIGHT_NO_CACHE": "1", "TILEWRIGHT_PROGRESS": "0",
    "NO_COLOR": "1",
}  # fmt: skip
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
SECONDS = 300


def main(files: Iterable[str]) -> int:
    """Write the notebooks of `files`, or of all scripts; the exit status."""
    os.environ.update(SETTINGS)
    os.environ["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    for script in [Path(file).resolve() for file in files] or scripts():
        notebook = executed(script) if runs(script) else of_script(script)
        nbformat.write(notebook, script.with_suffix(".ipynb"))
        print(script.relative_to(ROOT).with_suffix(".ipynb"), flush=True)
    return 0


def scripts() -> list[Path]:
    """All scripts that have notebooks, in order."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("[!_]*.py")) if of_cells(path)]


def of_cells(script: Path) -> bool:
    """Whether a file is in the percent format."""
    return script.read_text(encoding="utf-8").startswith("# %%")


def runs(script: Path) -> bool:
    """Whether the notebook shows what its cells print: a puzzle without its solution ends in an error."""
    return script.parent.name != "puzzles"


def of_script(script: Path) -> Any:
    """The notebook of a script, not run."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.from_dict({})
    return notebook


def executed(script: Path) -> Any:
    """The notebook of a script, run in a kernel of Jupyter."""
    notebook = of_script(script)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": ROOT}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = list(kept(cell.outputs))
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def kept(outputs: Iterable[Any]) -> Iterator[Any]:
    """Outputs without what changes from run to run: addresses of objects, counts of cells; one stream for each name."""
    streams: dict[str, Any] = {}
    for output in outputs:
        if output.output_type == "stream" and output.name in streams:
            streams[output.name].text += output.text
            continue
        if output.output_type == "stream":
            streams[output.name] = output
        if "text/plain" in output.get("data", {}):
            output.data["text/plain"] = re.sub(r" at 0x[0-9a-f]+", "", output.data["text/plain"])
        yield output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
