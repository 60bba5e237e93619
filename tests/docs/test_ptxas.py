"""docs/ptxas.md has every known fault with its versions, and the program that shows it."""

import re
from pathlib import Path

from tilewright.targets.nvidia.mends.ptxas_faults import FAULTS
from tilewright.tools.fuzzing.known import PROGRAMS
from tilewright.tools.fuzzing.program import Step

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "ptxas.md").read_text(encoding="utf-8")


def versions(fault):
    first, last = (".".join(map(str, version)) for version in (fault.first, fault.last))
    return first if first == last else f"{first} to {last}"


def test_the_table_is_that_of_the_compiler():
    rows = re.findall(r"^\| `?([\w ]+?)`? \| (.+?) \| ([\d. to]+) \| (.+?) \|$", TEXT, re.MULTILINE)
    assert [(name, what, of) for name, what, of, _ in rows] == [
        (fault.name, fault.what.replace("_", "`_`") if fault.mend is None else fault.what, versions(fault))
        for fault in FAULTS
    ]
    assert [mend == "none" for *_, mend in rows] == [fault.mend is None for fault in FAULTS]


def test_the_program_of_each_fault_is_shown():
    assert set(PROGRAMS) == {fault.name for fault in FAULTS}
    for programs in PROGRAMS.values():
        for node in programs[0].body:
            if isinstance(node, Step):
                assert all(line.replace(" \t", " ") in TEXT for line in node.lines)
