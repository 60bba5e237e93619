"""What `tilewright doctor` prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.targets.nvidia.doctor import Row
from tilewright.tools.commands import doctor


def printed(*rows):
    return [str(line) for line in doctor.lines(rows)]


def test_marks_and_remedies():
    rows = (
        Row("Python", "3.11", True, "unused"),
        Row("ptxas", "missing", False, "pip install x"),
        Row("torch", "none"),
    )
    assert printed(*rows) == ["✓ Python  3.11", "✗ ptxas   missing", "          → pip install x", "· torch   none"]


@pytest.mark.parametrize(("ok", "status"), [(True, 0), (None, 0), (False, 1)])
def test_strict_fails_only_for_what_is_missing(monkeypatch, ok, status):
    monkeypatch.setattr(doctor.doctor, "rows", lambda: [Row("part", "value", ok, "remedy")])
    monkeypatch.setattr(sys, "argv", ["tilewright"])
    if status == 0:
        assert doctor.command(strict=True) is None
    else:
        with pytest.raises(doctor.typer.Exit) as end:
            doctor.command(strict=True)
        assert end.value.exit_code == status


def test_all_parts_are_reported():
    program = "from tilewright.tools.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "doctor"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    named = {line[2:].split("  ")[0] for line in done.stdout.splitlines() if not line.startswith("  ")}
    assert {"Python", "MLIR", "ptxas", "nvdisasm", "driver", "torch"} <= named


def test_profilers_and_optional_packages_are_reported_with_remedies(monkeypatch):
    monkeypatch.setattr(doctor, "locate", lambda program: "/opt/bin/ncu" if program == "ncu" else None)
    rows = {row.name: row for row in (*doctor._profilers(), *doctor._optional())}
    assert (rows["ncu"].value, rows["ncu"].ok) == ("/opt/bin/ncu", True)
    assert (rows["nsys"].value, rows["nsys"].ok) == ("not installed", None)
    assert "Nsight Systems" in rows["nsys"].remedy and "tilewright profile emu" in rows["nsys"].remedy
    assert {"compute-sanitizer", "PyYAML", "matplotlib", "triton", "quack"} <= rows.keys()
    missing = [row for row in rows.values() if row.ok is None]
    assert all(row.remedy for row in missing)


def test_env_check_is_doctor():
    command = [sys.executable, "-m", "tilewright.env_check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert re.match(r"✓ Tilewright +0\.", done.stdout) and "compute-sanitizer" in done.stdout


def test_unused_files_are_listed_and_large_and_none_is_a_tool_that_is_used(capsys):
    doctor.command(unused=True)
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert all(path.is_file() for path in paths)
    assert {"cicc", "nvcc", "nvlink", "llvm-exegesis"} <= {path.name for path in paths}
    assert not {"ptxas", "nvdisasm", "libnvvm.so.4", "libLLVM.so"} & {path.name for path in paths}
    assert sum(path.stat().st_size for path in paths) > 250e6
    sizes = next(row for row in doctor._own() if row.name == "sizes")
    assert re.fullmatch(r"`tilewright doctor --unused` lists \d+ MB that Tilewright never opens", sizes.remedy)
