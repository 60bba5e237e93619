"""The rows of docs/seeds.md: each test that it names exists; what has no test elsewhere is tested here."""

import ast
import functools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import ops
from tilewright.tools.benching.cases import Suite

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d", line)
]
OPS = [name for name in ops.__all__ if not name.startswith("set_")]


@functools.cache
def functions(path):
    """The names of a file's functions, methods too."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


PASSES_AND_COMMUNICATION = range(1, 56)
PIPELINE_AND_INTRODUCTION = range(56, 218)


def test_every_row_is_there_once():
    numbers = [int(number) for number, *_ in ROWS]
    assert len(numbers) == len(set(numbers)) and set(numbers) >= {
        *range(218, 315),
        *PASSES_AND_COMMUNICATION,
        *PIPELINE_AND_INTRODUCTION,
    }


@pytest.mark.parametrize(("number", "promise", "state", "shown"), ROWS, ids=[number for number, *_ in ROWS])
def test_what_a_row_names_exists(number, promise, state, shown):
    assert re.match(r"(holds|differs|open)\b", state)
    names = re.findall(r"`([^`]+)`", shown)
    assert names
    for path, _, test in (name.partition("::") for name in names):
        if test:
            assert test in functions(path), f"{path} has no {test}"
        elif path == "make check":
            makefile = (ROOT / "Makefile").read_text()
            assert "ruff check $(RUFF_PATHS)" in makefile and "ruff format --check $(RUFF_PATHS)" in makefile
        else:
            assert (ROOT / path).exists()


@pytest.mark.parametrize("op", OPS)
def test_the_tests_of_ops_have_the_names_that_are_typed(op):
    """`pytest tests/test_<op>.py::test_<op>_correctness`, `-k correctness`, `-k compile`."""
    names = {name for name in functions(f"tests/test_{op}.py") if name.startswith("test_")}
    assert f"test_{op}_correctness" in names
    assert any("compile" in name for name in names)


def bench(script, *options):
    """Run a benchmark on the emulator."""
    done = subprocess.run(
        [sys.executable, script, *options, "--target", "emu"], cwd=ROOT, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "right on the emulator" in done.stdout, done.stderr


@pytest.mark.slow
def test_the_command_for_quick_profiling(tmp_path):
    pytest.importorskip("torch", reason="benchmarks of ops need PyTorch")
    script, out = "bench/benchmark_copy_transpose.py", str(tmp_path / "results.json")
    bench(script, "--warmup", "2", "--iterations", "1", "--out", out)


@pytest.mark.slow
def test_two_runs_have_the_same_rows(tmp_path):
    pytest.importorskip("torch", reason="benchmarks of ops need PyTorch")
    files = [tmp_path / name for name in ("first.json", "second.json")]
    for file in files:
        bench("bench/run.py", "--suite", "smoke", "--op", "softmax_online", "--out", str(file))
    first, second = (json.loads(file.read_text())["results"] for file in files)
    assert first and first == second


def test_pre_commit_runs_checks_of_make():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    makefile = (ROOT / "Makefile").read_text()
    entries = [hook["entry"].split() for repository in found["repos"] for hook in repository["hooks"]]
    assert len(entries) == 4
    for program, command, *_ in entries:
        assert f"$(BIN)/{program.removeprefix('.venv/bin/')} {command}" in makefile


def test_the_documented_counts_are_the_defaults():
    text = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| (\d+ \| [^|]+?) \|", text, re.MULTILINE))
    assert rows == {
        "timing": f"{Suite.warmup} | {Suite.iterations}",
        "quick profiling": "2 | 1 to 3",
        "deep profiling (`--set full`)": "1 | 1",
    }


def test_a_reference_checkout_is_not_linted(tmp_path):
    for name in (".gitignore", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for folder in ("quack", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bad.py").write_text("import os,sys\n")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format", "concise", "."], cwd=tmp_path, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "bad.py" in done.stdout and "quack" not in done.stdout
