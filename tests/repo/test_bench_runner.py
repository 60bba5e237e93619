"""The benchmark runner: what it finds, prints and keeps."""

import importlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bench import bench_compile, runner
from bench.runner import Row

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("x", 5, "ms"), None),
        (Row("x", 5, "ms", target=5), True),
        (Row("x", 6, "ms", target=5), False),
        (Row("x", 6, "GB/s", target=5, better="higher"), True),
        (Row("x", 4, "GB/s", target=5, better="higher"), False),
    ],
)
def test_targets(row, met):
    assert row.met is met


def test_timed_takes_the_median_after_a_warm_up(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 12.0, 20.0, 29.0])
    monkeypatch.setattr(runner.time, "perf_counter", lambda: next(clock))
    calls = []
    assert runner.timed(lambda: calls.append(0), samples=3) == 2.0
    assert len(calls) == 4


def test_every_topic_can_be_imported_and_says_what_it_is():
    for topic in runner.topics():
        module = importlib.import_module(f"bench.bench_{topic}")
        assert module.__doc__ and callable(module.rows)


def test_run_prints_and_keeps(tmp_path, monkeypatch):
    class Topic:
        """Sorting: how long it takes."""

        @staticmethod
        def rows(quick):
            yield Row("sort", 1.5 if quick else 3.0, "ms", 7, target=2.0, note="of 1,000 numbers")

    monkeypatch.setattr(runner.importlib, "import_module", lambda name: {"bench.bench_sort": Topic}[name])
    stream = io.StringIO()
    assert runner.run(["sort"], True, tmp_path, Console(file=stream, width=100)) is True
    assert runner.run(["sort"], False, tmp_path, Console(file=stream, width=100)) is False
    text = stream.getvalue()
    assert "Sorting: how long it takes." in text and "≤ 2" in text and "of 1,000 numbers" in text
    kept = json.loads((tmp_path / "sort.json").read_text())
    assert kept["rows"] == [
        {"name": "sort", "median": 3.0, "unit": "ms", "samples": 7, "target": 2.0, "better": "lower",
         "note": "of 1,000 numbers"}
    ]  # fmt: skip
    assert kept["machine"]["python"] and kept["machine"]["processor"]


def test_history_grows_by_a_line_for_each_run(tmp_path, monkeypatch):
    class Topic:
        """Sorting: how long it takes."""

        HISTORY = "sort_history.json"
        medians = iter([3.0, 2.0, 1.25])

        @classmethod
        def rows(cls, quick):
            yield Row("sort", next(cls.medians), "ms")

    monkeypatch.setattr(runner.importlib, "import_module", lambda name: {"bench.bench_sort": Topic}[name])
    console = Console(file=io.StringIO())
    for quick in (False, True, False):
        runner.run(["sort"], quick, tmp_path, console)
    kept = json.loads((tmp_path / "sort_history.json").read_text())
    assert [run["medians"] for run in kept["runs"]] == [{"sort": 3.0}, {"sort": 1.25}]
    assert all(run["processor"] and run["date"] for run in kept["runs"])


def test_compilations_are_measured_by_stage(monkeypatch):
    """The smoke size of the benchmark of compile time: what it measures, and that its parts add up."""
    monkeypatch.setattr(bench_compile, "CHECKOUT", ROOT / "nothing")
    found = {row.name: row for row in bench_compile.rows(quick=True)}
    for kernel in ("vector add", "row sum", "softmax of 4096", "200 operations"):
        own = found[f"{kernel}, without the assembler"].median
        assert 0 < own < found[f"{kernel}, all stages"].median
        stages = [found[f"{kernel}, {stage}"].median for stage in bench_compile.STAGES]
        assert all(median > 0 for median in stages) and max(stages) <= found[f"{kernel}, all stages"].median
    assert "flash attention, all stages" not in found and found["memory, most"].median > 50


@pytest.mark.slow
def test_public_sources_are_measured_where_there_is_a_checkout(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    file = tmp_path / bench_compile.EXAMPLES / "adding.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "import sys, torch\nfrom bench.kernels import vector_add\nimport cutlass.cute as cute\n"
        "a = torch.zeros(int(sys.argv[1]), device='cuda')\n"
        "cute.compile(vector_add, a, a, a)\n"
    )
    monkeypatch.setattr(bench_compile, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bench_compile, "PUBLIC", {"adding": ("adding.py", "64"), "missing": ("missing.py",)})
    names = [row.name for row in bench_compile._of_public(2)]
    assert names[:2] == ["adding, all stages", "adding, without the assembler"] and len(names) == 7
    file.write_text("print('nothing')")
    with pytest.raises(RuntimeError, match=r"adding\.py does not compile:\n.*compiles nothing"):
        list(bench_compile._of_public(2))


def test_unknown_topic():
    done = subprocess.run([sys.executable, "-m", "bench", "nothing-such"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown topic 'nothing-such'" in done.stderr
