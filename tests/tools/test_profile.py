"""`tilewright profile`: the command lines that reach the profilers, and the emulator in their place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tilewright.base.errors import ArgumentError
from tilewright.tools.commands.profile import command
from tilewright.tools.profiling import commands, running
from tilewright.tools.profiling.commands import TOOLS, Wanted, command_line, parse

ROOT = Path(__file__).resolve().parents[2]
RAW = Path(__file__).parent / "data" / "ncu_raw.csv"
FAKE = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$1" in --import) cat {raw};; esac
while [ $# -gt 0 ]; do
    case "$1" in
        --export) touch "$2.ncu-rep";;
        --output) touch "$2.nsys-rep";;
        --log-file) echo "========= ERROR SUMMARY: 0 errors" > "$2";;
    esac
    shift
done
exit ${{STATUS:-0}}
"""


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """Programs called ncu, nsys and compute-sanitizer that note how they were called; the working folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ncu", "nsys", "compute-sanitizer"):
        program = folder / name
        program.write_text(FAKE.format(folder=tmp_path, raw=RAW))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def profile(*words):
    """Run the command; its exit status."""
    try:
        command(words[0], list(words[1:]))
    except typer.Exit as end:
        return end.exit_code
    return 0


def calls(folder):
    return [line.split() for line in (folder / "calls").read_text().splitlines()]


REPORT = Path("profiles/x.rep")


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
        "ncu": ["/bin/ncu", "--target-processes", "all", "--export", "profiles/x"],
        "nsys": ["/bin/nsys", "profile", "--output", "profiles/x"],
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


def test_ncu_and_extraction(fakes, capsys):
    words = ["--kernel-name", "copy_transpose", "--extract", "--clock-control=none", "--", "python", "x.py", "--warmup"]
    assert profile("ncu", *words, "2") == 0
    printed = capsys.readouterr().out
    first, second = calls(fakes)
    report = re.search(r"wrote (profiles/ncu_\d{8}_\d{6}\.ncu-rep)", printed)[1]
    assert (fakes / report).exists()
    assert first[:4] == ["--target-processes", "all", "--export", report.removesuffix(".ncu-rep")]
    assert first[-5:] == ["--clock-control=none", "python", "x.py", "--warmup", "2"]
    assert second[:2] == ["--import", report]
    assert "Memory 92.81 %" in printed and "Long scoreboard 35.80 warps" in printed


def test_reports_do_not_overwrite_each_other(fakes):
    for _ in range(3):
        assert profile("nsys", "--", "x") == 0
    assert len(list((fakes / "profiles").iterdir())) == 3


def test_the_sanitizers_words_are_shown_and_its_status_passed_on(fakes, monkeypatch, capsys):
    monkeypatch.setenv("STATUS", "1")
    assert profile("sanitizer", "--", "python", "x.py") == 1
    printed = capsys.readouterr().out
    assert "ERROR SUMMARY: 0 errors" in printed and "wrote profiles/sanitizer_" in printed


def test_nsys(fakes, capsys):
    assert profile("nsys", "--", "pytest", "tests/x.py") == 0
    assert "wrote profiles/nsys_" in capsys.readouterr().out
    assert calls(fakes)[0][0] == "profile" and calls(fakes)[0][-2:] == ["pytest", "tests/x.py"]


def test_a_tool_that_writes_no_report(fakes):
    (fakes / "bin" / "ncu").write_text("#!/bin/sh\nexit 9\n")
    with pytest.raises(ArgumentError, match="ncu wrote no report"):
        profile("ncu", "--", "x")


def test_the_script_is_the_command(fakes):
    environment = {**os.environ, "PATH": f"{fakes / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = [str(ROOT / "scripts" / "profile.sh"), "ncu", "--set=launchstats", "--", "python", "x.py"]
    done = subprocess.run(script, cwd=fakes, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert calls(fakes)[0][-3:] == ["--section=LaunchStats", "python", "x.py"]


def test_a_missing_tool_is_named_and_the_emulator_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands.shutil, "which", lambda program, path: None)
    with pytest.raises(ArgumentError, match="nsys is not installed here: it is part of Nsight Systems") as caught:
        profile("nsys", "--", "python", "x.py")
    assert "tilewright profile emu -- python x.py" in str(caught.value)
    assert not (tmp_path / "profiles").exists()


def test_an_unknown_profiler():
    with pytest.raises(ArgumentError, match="there is no profiler 'perf'"):
        profile("perf", "--", "x")


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


def test_the_emulator_counts_what_a_command_launches(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text(SCRIPT)
    assert profile("emu", "--kernel-name", "AxpyKernel", "--", sys.executable, "x.py") == 0
    printed = capsys.readouterr().out
    assert "counted while emulating, not measured on a GPU" in printed
    assert "axpy_kernel: 1 block of 64 threads, 2 launches alike" in printed
    assert "24 sectors of 32 bytes, 24 if each request were coalesced, 24 different ones" in printed


def test_a_kernel_that_did_not_run_on_the_emulator(monkeypatch, capsys):
    monkeypatch.setattr(running, "emulate", lambda wanted: (0, [{"kernel": "axpy_kernel"}]))
    assert profile("emu", "--kernel-name", "gemm", "--", "x") == 0
    assert capsys.readouterr().out == "No such kernel ran on the emulator. Kernels that ran: axpy_kernel.\n"


def test_the_emulator_passes_the_status_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert profile("emu", "--", sys.executable, "-c", "raise SystemExit(5)") == 5
    assert "Kernels that ran: none" in capsys.readouterr().out


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
