"""`tilewright profile`: the command lines that reach the profilers, and the emulator in their place."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.profiling import commands, running
from tilewright.tools.profiling.commands import TOOLS, Wanted, command_line, parse

ROOT = Path(__file__).resolve().parents[2]
RAW = Path(__file__).parent / "data" / "ncu_raw.csv"
FAKE = """#!{python}
import json, os, pathlib, sys
pathlib.Path(os.environ["CALLS"]).open("a").write(json.dumps(sys.argv) + "\\n")
words = sys.argv[1:]
if "--import" in words:
    print(open({raw!r}).read())
for name in ("--export", "--output", "--log-file"):
    if name in words:
        pathlib.Path(words[words.index(name) + 1]).write_text("========= ERROR SUMMARY: 0 errors")
sys.exit(int(os.environ.get("STATUS", "0")))
"""


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """Programs called ncu, nsys and compute-sanitizer that note how they were called; the working folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ncu", "nsys", "compute-sanitizer"):
        program = folder / name
        program.write_text(FAKE.format(python=sys.executable, raw=str(RAW)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path


def profile(*words, cwd, **changes):
    command = [sys.executable, "-c", "from tilewright.tools.cli import main; main()", "profile", *words]
    environment = {**os.environ, **changes}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def calls(folder):
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


REPORT = Path("profiles/x")


def line(name, *words, monkeypatch):
    monkeypatch.setattr(commands, "locate", lambda program: f"/bin/{program}")
    return command_line(TOOLS[name], parse(words), REPORT)


@pytest.mark.parametrize(
    ("name", "words", "options"),
    [
        ("ncu", ["--"], ["--set", "full"]),
        ("ncu", ["--set=basic", "--"], ["--set=basic"]),
        ("ncu", ["--set", "detailed", "--"], ["--set", "detailed"]),
        ("ncu", ["--section=SpeedOfLight", "--clock-control", "none", "--"],
         ["--section=SpeedOfLight", "--clock-control", "none"]),
        ("ncu", ["--set=launchstats", "--"], ["--section=LaunchStats"]),
        ("ncu", ["--set", "launchstats", "--"], ["--section=LaunchStats"]),
        ("ncu", ["--kernel-name", "copy_transpose", "--"], ["--kernel-name", "regex:copy_transpose", "--set", "full"]),
        ("ncu", ["--kernel-name=sum", "--metrics", "m", "--"], ["--kernel-name", "regex:sum", "--metrics", "m"]),
        ("ncu", ["--extract", "--"],
         ["--section=SpeedOfLight", "--section=ComputeWorkloadAnalysis", "--section=WarpStateStats"]),
        ("sanitizer", ["--tool", "racecheck", "--kernel-name", "softmax", "--"],
         ["--kernel-name", "kns=softmax", "--tool", "racecheck"]),
        ("nsys", ["--trace=cuda,nvtx", "--"], ["--trace=cuda,nvtx"]),
    ],
)  # fmt: skip
def test_what_reaches_the_tool(name, words, options, monkeypatch):
    found = line(name, *words, "python", "-m", "x", "--", "--extract", monkeypatch=monkeypatch)
    start = {
        "ncu": ["/bin/ncu", "--target-processes", "all", "--export", str(REPORT)],
        "nsys": ["/bin/nsys", "profile", "--output", str(REPORT)],
        "sanitizer": ["/bin/compute-sanitizer", "--log-file", str(REPORT), "--error-exitcode", "1"],
    }[name]
    assert found == [*start, *options, "python", "-m", "x", "--", "--extract"]


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("ncu", ["python", "x.py"], "where does the command begin"),
        ("ncu", ["--"], "there is no command to profile"),
        ("ncu", ["--kernel-name", "--", "x"], None),
        ("ncu", ["--kernel-name=", "--", "x"], "--kernel-name has no value"),
        ("nsys", ["--kernel-name", "a", "--", "x"], "nsys has no filter by kernel"),
        ("nsys", ["--extract", "--", "x"], "--extract reads reports of ncu"),
    ],
)
def test_what_cannot_be_done_is_said(name, words, message, monkeypatch):
    with pytest.raises(ArgumentError, match=message or "--kernel-name has no value"):
        line(name, *words, monkeypatch=monkeypatch)


def test_ncu_and_extraction(fakes):
    words = [
        "--kernel-name",
        "copy_transpose",
        "--extract",
        "--clock-control=none",
        "--",
        "python",
        "x.py",
        "--warmup",
        "2",
    ]
    done = profile("ncu", *words, cwd=fakes)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = calls(fakes)
    report = re.search(r"wrote (profiles/ncu_\d{8}_\d{6}\.ncu-rep)", done.stdout)[1]
    assert (fakes / report).exists()
    assert first[1:5] == ["--target-processes", "all", "--export", report]
    assert first[-5:] == ["--clock-control=none", "python", "x.py", "--warmup", "2"]
    assert second[1:3] == ["--import", report]
    assert "Memory 92.81 %" in done.stdout and "Long scoreboard 35.80 warps" in done.stdout


def test_the_sanitizers_words_are_shown_and_its_status_passed_on(fakes):
    done = profile("sanitizer", "--", "python", "x.py", cwd=fakes, STATUS="1")
    assert done.returncode == 1
    assert "ERROR SUMMARY: 0 errors" in done.stdout and "wrote profiles/sanitizer_" in done.stdout


def test_nsys(fakes):
    done = profile("nsys", "--", "pytest", "tests/x.py", cwd=fakes)
    assert done.returncode == 0 and "wrote profiles/nsys_" in done.stdout
    assert calls(fakes)[0][1] == "profile" and calls(fakes)[0][-2:] == ["pytest", "tests/x.py"]


def test_the_script_is_the_command(fakes):
    environment = {**os.environ, "PATH": f"{fakes / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = [str(ROOT / "scripts" / "profile.sh"), "ncu", "--set=launchstats", "--", "python", "x.py"]
    done = subprocess.run(script, cwd=fakes, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert calls(fakes)[0][-3:] == ["--section=LaunchStats", "python", "x.py"]


def test_a_missing_tool_is_named_and_the_emulator_offered(tmp_path):
    done = profile("nsys", "--", "python", "x.py", cwd=tmp_path, PATH="/usr/bin:/bin", CUDA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "nsys is not installed here: it is part of Nsight Systems" in done.stderr
    assert "tilewright profile emu -- python x.py" in done.stderr
    assert not (tmp_path / "profiles").exists()


def test_an_unknown_profiler(tmp_path):
    done = profile("perf", "--", "x", cwd=tmp_path)
    assert done.returncode == 1 and "there is no profiler 'perf'" in done.stderr


def test_tools_of_the_toolkit_are_found(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert commands.locate("ncu") == str(program)


SCRIPT = """
import numpy as np
import tilewright.cute as cute

@cute.kernel
def axpy_kernel(a: cute.Float32, x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = a * x[i] + y[i]

@cute.jit
def axpy(a: cute.Float32, x: cute.Tensor, y: cute.Tensor):
    axpy_kernel(a, x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))

x, y = np.ones(64, np.float32), np.ones(64, np.float32)
for _ in range(2):
    axpy(2.0, x, y)
assert (y == 5).all()
"""


def test_the_emulator_counts_what_a_command_launches(tmp_path):
    (tmp_path / "x.py").write_text(SCRIPT)
    done = profile("emu", "--kernel-name", "AxpyKernel", "--", sys.executable, "x.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "counted while emulating, not measured on a GPU" in done.stdout
    assert "axpy_kernel: 1 blocks of 64 threads, 2 launches alike" in done.stdout
    assert "24 sectors of 32 bytes, 24 if each request were coalesced, 24 different ones" in done.stdout
    other = profile("emu", "--kernel-name", "gemm", "--", sys.executable, "x.py", cwd=tmp_path)
    assert "No such kernel ran on the emulator. Kernels that ran:" in other.stdout and "axpy_kernel" in other.stdout


def test_the_emulator_passes_the_status_on(tmp_path):
    done = profile("emu", "--", sys.executable, "-c", "raise SystemExit(5)", cwd=tmp_path)
    assert done.returncode == 5 and "Kernels that ran: none" in done.stdout


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(()), "there is no command to run"),
        (Wanted(("x",), ("--set=full",)), "the emulator has no option --set=full"),
        (Wanted(("x",), extract=True), "the emulator has no option --extract"),
        (Wanted(("no-such-program",)), "there is no program 'no-such-program'"),
    ],
)
def test_what_the_emulator_cannot_do(wanted, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=message):
        running.emulate(wanted)
