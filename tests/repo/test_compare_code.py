"""scripts/compare_code.py: what it records, and what it says of two records."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("compare_code", ROOT / "scripts" / "compare_code.py")
compare_code = importlib.util.module_from_spec(SPEC)
sys.modules["compare_code"] = compare_code
SPEC.loader.exec_module(compare_code)
Kernel, Program, Record = compare_code.Kernel, compare_code.Program, compare_code.Record


def record(instructions=100, registers=20, spills=0, seconds=0.5):
    kernels = [Kernel("s", "k#1", instructions, registers, spills, 0, 10), Kernel("s", "other#1", 1000, 32, 0, 0, 10)]
    program = Program("s", "f#1", 5, 50, dict.fromkeys(compare_code.STAGES, seconds))
    return Record({kernel.key: kernel for kernel in kernels}, {program.key: program})


def compared(tmp_path, before, after):
    before.write(tmp_path / "before.json")
    after.write(tmp_path / "after.json")
    return compare_code.main(["--read", str(tmp_path / "after.json"), "--against", str(tmp_path / "before.json")])


@pytest.mark.parametrize(
    ("after", "status", "said"),
    [
        (record(), 0, "instructions       1100 -> 1100      +0.0 %"),
        (record(instructions=90), 0, "better s k#1: instructions 100 -> 90"),
        (record(instructions=101), 1, "instructions       1100 -> 1101      +0.1 %"),
        (record(instructions=103), 1, "WORSE  s k#1: instructions 100 -> 103"),
        (record(registers=22), 0, "registers            52 -> 54"),
        (record(registers=23), 1, "registers 20 -> 23"),
        (record(spills=4), 1, "spills 0 -> 4"),
        (record(seconds=0.25), 0, "2500.0   1250.0  -50.0 %"),
    ],
)
def test_limits(tmp_path, capsys, after, status, said):
    assert compared(tmp_path, record(), after) == status
    assert said in capsys.readouterr().out


def test_kernels_in_one_record_only_are_counted(tmp_path, capsys):
    after = record()
    del after.kernels["s other#1"]
    assert compared(tmp_path, record(), after) == 0
    assert "1 kernels in both, 1 in one" in capsys.readouterr().out


def test_the_kernels_of_the_demonstration(tmp_path, capsys):
    saved = tmp_path / "demo.json"
    assert compare_code.main(["--only", "demo", "--save", str(saved)]) == 0
    found = Record.read(saved)
    assert len(found.kernels) == len(found.programs) == 4
    assert all(kernel.instructions > 10 and kernel.registers > 4 for kernel in found.kernels.values())
    assert all(program.operations > 10 and program.seconds["ptx"] > 0 for program in found.programs.values())
    assert capsys.readouterr().out.startswith("4 kernels, ")
