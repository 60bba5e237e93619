"""What is read from reports of Nsight Compute: `data/ncu_raw.csv` is written by hand in the form that ncu prints."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.profiling import ncu_report
from tilewright.tools.profiling.ncu_report import extract, number, parse

RAW = Path(__file__).parent / "data" / "ncu_raw.csv"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """An `ncu` that prints the recorded text for any report; the report's path."""
    program = tmp_path / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncat {RAW}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    report = tmp_path / "ncu_1.ncu-rep"
    report.write_bytes(b"")
    return report


def test_the_three_groups():
    first, second = parse(RAW.read_text().splitlines(), "r.ncu-rep")
    assert (first.kernel, first.grid, first.block) == ("copy_transpose_kernel", "(65536, 1, 1)", "(256, 1, 1)")
    assert first.metrics == {
        "GPU throughput": {"Memory": 92.81, "Compute (SM)": 31.07, "DRAM": 92.81, "Duration": 793216.0},
        "Pipe utilization": {"Tensor core": 0.0, "FMA": 3.25, "ALU": 21.5},
        "Warp stalls": {
            "Long scoreboard": 35.8, "Barrier": 1.25, "Memory throttle (LG)": 0.02, "Memory throttle (MIO)": 2.75,
        },
    }  # fmt: skip
    assert first.units["Duration"] == "ns"
    assert second.metrics["Pipe utilization"] == {"Tensor core": None, "FMA": 0.5, "ALU": 5.2}
    assert second.metrics["Warp stalls"]["Long scoreboard"] is None


def test_as_text():
    lines = list(ncu_report.lines(parse(RAW.read_text().splitlines(), "r.ncu-rep")))
    assert lines[0] == "copy_transpose_kernel  grid (65536, 1, 1)  block (256, 1, 1)  (r.ncu-rep)"
    assert lines[1].split("  ", 2)[2].strip() == (
        "Memory 92.81 %, Compute (SM) 31.07 %, DRAM 92.81 %, Duration 793,216.00 ns"
    )
    assert "Barrier 1.25 warps" in lines[3] and "Tensor core not collected" in lines[6]


@pytest.mark.parametrize(("text", "value"), [("1,234.5", 1234.5), ("0", 0.0), ("n/a", None), ("", None)])
def test_numbers(text, value):
    assert number(text) == value


def test_text_without_kernels_is_an_error():
    with pytest.raises(ArgumentError, match=r"ncu printed no kernels of r\.ncu-rep"):
        list(parse(["==WARNING== No kernels were profiled."], "r.ncu-rep"))


@pytest.mark.parametrize("name", ["CopyTranspose", "copy_transpose", "COPY", "transpose_kernel"])
def test_a_filter_ignores_case_and_underscores(ncu, name):
    assert [profile.kernel for profile in extract([ncu], name)] == ["copy_transpose_kernel"]


def test_several_reports(ncu, tmp_path):
    other = tmp_path / "ncu_2.ncu-rep"
    other.write_bytes(b"")
    assert [Path(profile.report).name for profile in extract([ncu, other])] == ["ncu_1.ncu-rep"] * 2 + [
        "ncu_2.ncu-rep"
    ] * 2
    assert (tmp_path / "calls").read_text().splitlines()[1] == f"--import {other} --csv --page raw --print-units base"


def test_what_is_not_there_is_named(ncu, monkeypatch, tmp_path):
    with pytest.raises(ArgumentError, match="no kernel is called 'softmax'") as caught:
        extract([ncu], "softmax")
    assert "copy_transpose_kernel" in str(caught.value)
    with pytest.raises(ArgumentError, match="there is no report"):
        extract([tmp_path / "other.ncu-rep"])
    monkeypatch.setattr(ncu_report, "locate", lambda program: None)
    with pytest.raises(ArgumentError, match="ncu is not installed here: it is part of Nsight Compute"):
        extract([ncu])


def test_a_report_that_ncu_refuses(ncu, tmp_path):
    (tmp_path / "bin" / "ncu").write_text("#!/bin/sh\necho '==ERROR== bad file' >&2\nexit 1\n")
    with pytest.raises(ArgumentError, match="ncu cannot read") as caught:
        extract([ncu])
    assert "==ERROR== bad file" in str(caught.value)


def test_the_script(ncu):
    script = [sys.executable, str(ROOT / "scripts" / "ncu_extract.py"), str(ncu), "--json", "--kernel", "CopyTranspose"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["kernel"] == "copy_transpose_kernel" and found["metrics"]["GPU throughput"]["Memory"] == 92.81
    assert found["units"]["Duration"] == "ns"
