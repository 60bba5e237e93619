"""`tilewright bench` for ops, and the scripts of `bench/` that call it, on the emulator."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import missing_gpu
from tilewright.base.errors import ArgumentError, CudaDriverDependencyError
from tilewright.tools.benching import plan
from tilewright.tools.benching.plan import Request

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "bench" / "suites.yaml"
OPS = sorted(path.stem.removeprefix("benchmark_") for path in (ROOT / "bench").glob("benchmark_*.py"))
needs_torch = pytest.mark.skipif(not plan.importlib.util.find_spec("torch"), reason="benchmarks of ops need PyTorch")


def run(*command, cwd=ROOT):
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=240, check=False
    )  # fmt: skip


def tilewright(*arguments, cwd=ROOT):
    return run("-c", "from tilewright.tools.cli import main; main()", *arguments, cwd=cwd)


@needs_torch
def test_an_op_is_checked_and_counted_on_the_emulator(tmp_path):
    out = tmp_path / "results.json"
    done = tilewright("bench", "--suite", "smoke", "--op", "softmax_online", "--target", "emu", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "counted; no times" in done.stdout and done.stdout.count("right on the emulator: 1 launch") == 4
    assert f"wrote {out}" in done.stdout
    found = json.loads(out.read_text())
    assert found["machine"]["device"] == "emulator" and not found["failures"]
    assert {(row["op"], row["backend"]) for row in found["results"]} == {
        ("softmax_online", "kernel"), ("softmax_online_backward", "kernel"),
    }  # fmt: skip
    row = found["results"][0]
    assert row["bytes"] == 2 * 3 * 1000 * 4 and "p50_us" not in row
    (launch,) = row["emulator"]
    assert "softmax_online" in launch["kernel"]
    assert launch["distinct_sectors"] == row["bytes"] // 32


@pytest.mark.slow
@needs_torch
def test_the_documented_command_lines(tmp_path):
    """The names that are typed: run.py, benchmark_<op>.py with a tile size, benchmark_online_softmax.py."""
    out = str(tmp_path / "r.json")
    for command in (
        ("bench/benchmark_copy_transpose.py", "--tile-size", "16", "--dtype", "float32"),
        ("bench/benchmark_online_softmax.py", "--backend", "ref", "--dtype", "float32"),
        ("bench/benchmark_online_softmax.py", "--backend", "kernel", "--dtype", "float32"),
        ("bench/run.py", "--suite", "smoke", "--op", "reduce", "--dtype", "bfloat16"),
    ):
        done = run(*command, "--warmup", "1", "--iterations", "1", "--target", "emu", "--out", out)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = json.loads(Path(out).read_text())["results"]
        wanted = command[command.index("--backend") + 1] if "--backend" in command else "kernel"
        assert rows and {row["backend"] for row in rows} == {wanted}
        if "--tile-size" in command:
            assert rows[0]["options"] == {"tile_size": 16}


@pytest.mark.skipif(not missing_gpu(), reason="this machine has a GPU")
@needs_torch
def test_without_a_gpu_it_says_so():
    done = tilewright("bench", "--suite", "smoke")
    assert done.returncode == 1
    assert "CudaDriverDependencyError: there is no GPU to time on" in done.stderr
    assert "--target emu checks results on small shapes" in done.stderr


@needs_torch
def test_every_op_has_a_script():
    ops = {case.op.removesuffix("_backward") for case in plan.cases.read_suites(SUITES)["full"].cases}
    assert ops | {"online_softmax"} == set(OPS)
    for name in OPS:
        text = (ROOT / "bench" / f"benchmark_{name}.py").read_text()
        assert f'main("{name if name != "online_softmax" else "softmax_online"}")' in text


def planned(**options):
    return plan.plan(Request(target="emu", **options), SUITES)[0]


@needs_torch
def test_an_op_alone_has_the_documented_counts_and_a_suite_its_own():
    alone, suite = planned(op="rmsnorm"), planned(suite="smoke", op="rmsnorm")
    assert (alone.name, alone.warmup, alone.iterations) == ("rmsnorm", 10, 100)
    assert (suite.name, suite.warmup, suite.iterations) == ("smoke", 2, 10)
    assert planned(suite="smoke", op="rmsnorm", iterations=3).iterations == 3
    assert {case.op for case in alone.cases} == {"rmsnorm", "rmsnorm_backward"}


@needs_torch
def test_shapes_and_dtypes_that_are_given():
    chosen = planned(op="softmax_online", shapes=["2x8", "5"], dtypes=["float16"])
    assert {(case.op, case.shape, case.dtype) for case in chosen.cases} == {
        (op, shape, "float16") for op in ("softmax_online", "softmax_online_backward") for shape in ((2, 8), (5,))
    }


@needs_torch
def test_peers_are_not_run_on_the_emulator():
    assert planned(suite="peers", op="rmsnorm").backends == ("kernel",)
    assert planned(suite="peers", op="rmsnorm", backends=["ref", "torch"]).backends == ("ref",)


@needs_torch
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suite": "tiny"}, "there is no suite 'tiny'"),
        ({"op": "convolution"}, "the suite has no case of 'convolution'"),
        ({"op": "rmsnorm", "backends": ["cudnn"]}, "there is no backend 'cudnn'"),
        ({"op": "rmsnorm", "dtypes": ["fp32"]}, "there is no dtype 'fp32'"),
        ({"op": "rmsnorm", "shapes": ["3x"]}, "'3x' is not a shape"),
        ({"op": "rmsnorm", "shapes": ["0x4"]}, "'0x4' is not a shape"),
        ({"op": "rmsnorm", "tile_size": 16}, "--tile-size is for one op"),
        ({"op": "rmsnorm", "iterations": 0}, "--iterations 0 is too small"),
        ({"op": "rmsnorm", "warmup": -1}, "--warmup -1 is too small"),
    ],
)
def test_what_does_not_exist_is_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        planned(**options)


def test_targets(monkeypatch):
    monkeypatch.setattr(plan.driver, "available", lambda: True)
    assert plan.choose_target(None) == "cuda"
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")
    assert plan.choose_target(None) == "emu" and plan.choose_target("cuda") == "cuda"
    with pytest.raises(ArgumentError, match="there is no target 'tpu'"):
        plan.choose_target("tpu")
    monkeypatch.setattr(plan.driver, "available", lambda: False)
    with pytest.raises(CudaDriverDependencyError, match="there is no GPU to time on"):
        plan.choose_target("cuda")


def test_without_torch_it_says_so(monkeypatch):
    monkeypatch.setattr(plan.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match="the benchmarks of ops need PyTorch"):
        planned(suite="smoke")


def test_files_are_compared_and_drawn(tmp_path):
    row = {"op": "a", "backend": "kernel", "shape": [2, 8], "dtype": "float32", "bytes": 8, "gbs": 1.0,
           "fraction_of_copy": 0.5, "p90_us": 1.0}  # fmt: skip
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps({"machine": {}, "results": [{**row, "p50_us": 2.0}]}))
    new.write_text(json.dumps({"machine": {}, "results": [{**row, "p50_us": 1.0}]}))
    done = tilewright("bench", "--compare", str(old), str(new), cwd=tmp_path)
    assert done.returncode == 0 and "0.500        faster" in done.stdout
    pytest.importorskip("matplotlib", reason="charts need matplotlib")
    done = tilewright("bench", "--draw", str(new), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new.png").exists() and (tmp_path / "new.svg").exists()
