"""The op of docs/adding-an-op.md, added to a copy of the checkout: its tests and its benchmark run there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import find_blocks

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = find_blocks((ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8"))
COPIED = (
    "src/tilewright", "tests/bench", "tests/tools/test_kernel_names.py", "tests/conftest.py", "tests/op_cases.py",
    "bench", "pyproject.toml",
)  # fmt: skip
OP = "l2_normalize"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy with the files of the page, and what the page says to add to others."""
    root = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, root / name)
    for block in BLOCKS:
        if block.file:
            assert not (ROOT / block.file).exists(), "the page's op is to be added, not there"
            (root / block.file).write_text(block.text)
    package = root / "src" / "tilewright"
    insert(package / "ops" / "__init__.py", "from tilewright.ops.layernorm", f"from tilewright.ops.{OP} import {OP}\n")
    insert(package / "ops" / "__init__.py", '    "copy_transpose"', f'    "{OP}",\n')
    table = package / "tools" / "benching" / "subjects" / "table.py"
    insert(
        table,
        "from tilewright.tools.benching.subjects.subject",
        f"from tilewright.tools.benching.subjects import {OP}\n",
    )
    insert(table, "    **copy_transpose.SUBJECTS", f"    **{OP}.SUBJECTS,\n")
    for suite in ("smoke", "standard", "host", "full"):  # `peers` has the cases of `standard`
        insert(root / "bench" / "suites.yaml", "      - ", listed("cases"), after=f"  {suite}:", until="cases:")
    insert(root / "bench" / "suites.yaml", "  copy_transpose:", listed("emulated"), after="emulated:")
    insert(root / "tests/tools/test_kernel_names.py", '    "copy_transpose"', f'    "{OP}": lambda: ops.{OP}(X),\n')
    counts = root / "tests" / "bench" / "test_subjects.py"
    counts.write_text(counts.read_text().replace("count = {", f'count = {{"{OP}_backward": 1, '))
    return root


def listed(word):
    """The lines of the page's block of YAML of this name, without the anchors of the file's first suite."""
    (block,) = [block for block in BLOCKS if block.words == ["yaml", word]]
    return block.text.replace("*small", "[[4096, 1000]]").replace("*wide_and_narrow", "[float32, bfloat16]")


def insert(path, before, text, after="", until=""):
    """Insert lines before the first line that begins with `before`, and comes after these two texts."""
    found = path.read_text()
    start = found.index(until, found.index(after)) if after else 0
    place = found.index("\n" + before, start) + 1
    path.write_text(found[:place] + text + found[place:])


def run(checkout, *command):
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "TILEWRIGHT_VERIFY": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_of_a_file_says_where_it_goes():
    named = [f"`{block.file}`" for block in BLOCKS if block.file]
    text = (ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
    assert len(named) == 6 and all(name in text for name in named)


def test_its_files_pass_the_checks_of_the_project(checkout):
    files = [block.file for block in BLOCKS if block.file]
    run(checkout, "-m", "ruff", "check", *files)
    run(checkout, "-m", "ruff", "format", "--check", *files)
    run(checkout, "-m", "mypy", *(file for file in files if file.startswith("src")))


def test_its_tests_pass(checkout):
    out = run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/test_{OP}.py")
    assert " passed" in out and "failed" not in out


@pytest.mark.parametrize("word", ["correctness", "compile"])
def test_its_tests_are_chosen_by_name(checkout, word):
    out = run(checkout, "-m", "pytest", "-q", "--collect-only", f"tests/test_{OP}.py", "-k", word)
    names = [line.partition("::")[2] for line in out.splitlines() if "::" in line]
    assert names and all(word in name for name in names)


@pytest.mark.slow
def test_its_benchmark_is_right_on_the_emulator(checkout):
    pytest.importorskip("torch", reason="benchmarks of ops need PyTorch")
    command = "from tilewright.tools.cli import main; main()", "bench", "--suite", "smoke", "--op", OP
    out = run(checkout, "-c", *command, "--target", "emu", "--out", str(checkout / "results.json"))
    assert out.count("right on the emulator: 1 launch") == 4
    out = run(checkout, f"bench/benchmark_{OP}.py", "--target", "emu", "--backend", "kernel", "--dtype", "float32")
    assert out.count("right on the emulator: 1 launch") == 2


def test_the_suites_are_complete_with_it(checkout):
    """What the repository asks of every op holds for the page's."""
    pytest.importorskip("torch", reason="benchmarks of ops need PyTorch")
    chosen = f"every_op or every_operator or {OP}"
    out = run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/bench", "tests/tools", "-k", chosen)
    assert " passed" in out and "failed" not in out
