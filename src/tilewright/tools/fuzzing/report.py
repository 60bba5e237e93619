"""What a survey found, as rows for a file: programs by their seeds, first difference, the reduced text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.tools.fuzzing.campaign import Finding
from tilewright.tools.fuzzing.inputs import record_of
from tilewright.tools.fuzzing.program import SLOT_OF, Program, kernel

Row = Mapping[str, Any]


def row_of(finding: Finding, *, known: str = "", whole: bool = False) -> Row:
    """A finding for a JSON file: what differs first, and by which inputs; `whole` for its text too."""
    row = {"seed": finding.program.seed, "kind": finding.kind, "differing": list(finding.differing), "known": known}
    row.update(_difference(finding))
    return {**row, "ptx": kernel("k0", finding.program)} if whole else row


def _difference(finding: Finding) -> Row:
    if isinstance(finding.found, str) or isinstance(finding.wanted, str):
        return {"said": str(finding.found)[:400]}
    places = np.argwhere(finding.found != finding.wanted)
    thread, place = (int(number) for number in places[0])
    return {
        "threads": len({int(number) for number in places[:, 0]}), "thread": thread,
        "register": finding.program.outputs[place],
        "wanted": hex(int(finding.wanted[thread, place])), "found": hex(int(finding.found[thread, place])),
        "inputs": _inputs(finding.program, thread),
    }  # fmt: skip


def _inputs(program: Program, thread: int) -> dict[str, str]:
    text, record = kernel("k0", program), record_of(program)[thread]
    return {name: hex(int(record[slot])) for name, slot in SLOT_OF.items() if f"{name}, [%record" in text}
