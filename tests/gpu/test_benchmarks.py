"""Benchmarks of ops and the profilers, on a GPU."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.tools.benching import cases

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]


def tilewright(*arguments, cwd):
    command = [sys.executable, "-c", "from tilewright.tools.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=500, check=False)


def test_the_smoke_suite(tmp_path):
    out = tmp_path / "results.json"
    suites = ROOT / "bench" / "suites.yaml"
    done = tilewright("bench", "--suite", "smoke", "--suites", str(suites), "--out", str(out), cwd=tmp_path)
    found = json.loads(out.read_text())
    assert done.returncode == 0 and not found["failures"], done.stdout + done.stderr
    suite = cases.read_suites(suites)["smoke"]
    measured = {
        (row["op"], tuple(row["shape"]), row["dtype"]) for row in found["results"] if row["backend"] == "kernel"
    }
    assert measured == {(case.op, case.shape, case.dtype) for case in suite.cases}
    for row in found["results"]:
        assert 0 < row["p50_us"] <= row["p90_us"]
        assert row["gbs"] == pytest.approx(row["bytes"] / row["p50_us"] / 1e3)
        assert 0 < row["fraction_of_copy"] < 1.5
    assert len(found["roofs"]) == len(suite.cases)


@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute (ncu) is not installed")
def test_ncu_and_its_metrics(tmp_path):
    script = ROOT / "bench" / "benchmark_copy_transpose.py"
    options = [
        "--backend",
        "kernel",
        "--shape",
        "1024x1024",
        "--dtype",
        "float32",
        "--warmup",
        "0",
        "--iterations",
        "1",
    ]
    profiled = ["--kernel-name", "copy_transpose", "--clock-control", "none", "--extract"]
    command = [sys.executable, str(script), *options, "--out", str(tmp_path / "r.json")]
    done = tilewright("profile", "ncu", *profiled, "--", *command, cwd=tmp_path)
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        pytest.skip("this user may not read the GPU's counters")
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = (tmp_path / "profiles").glob("*.ncu-rep")
    shown = tilewright("profile", "extract", str(report), "--json", "--kernel", "CopyTranspose", cwd=tmp_path)
    launches = json.loads(shown.stdout)
    assert launches and all("copy_transpose" in launch["kernel"] for launch in launches)
    for group in launches[0]["metrics"].values():
        assert all(value is not None for value in group.values()), launches[0]["metrics"]
