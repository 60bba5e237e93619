"""Plans that a measurement found faster than the rule's, shipped for a chip: `tuned/<arch>.json`.

Each file says on which card and with which versions it was measured. For each kernel it has the lengths of rows and the
sizes of elements at which a plan other than the rule's was faster by more than the noise; the rule goes
for all other lengths. `python -m bench.tune_rows` writes it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from importlib import resources
from typing import Any

from tilewright.kernels.plans import RowPlan

PLAN_FIELDS = ("threads", "rows", "vector", "count", "cluster", "stages", "resident", "turns")


def tuned_plan(arch: str, kernel: str, columns: int, size: int, held: int, vector: int) -> RowPlan | None:
    """The plan that was measured best for rows of this length on this chip; None where the rule shall choose.

    Args:
        arch: the chip that is compiled for.
        kernel: the kernel's name, `softmax_online` for instance.
        columns: elements of a row.
        size: bytes of the narrowest element of the rows that are read.
        held: rows that a thread holds at the same time.
        vector: elements of an access. A tuned plan holds for the alignment that it was measured with.
    """
    found = _table(arch).get((kernel, columns, size, held))
    return found if found is not None and found.vector == vector else None


def entry_of(kernel: str, columns: int, size: int, held: int, plan: RowPlan) -> dict[str, Any]:
    """The row of a table for a plan."""
    facts = {"kernel": kernel, "columns": columns, "bytes": size, "held": held}
    return facts | {name: getattr(plan, name) for name in PLAN_FIELDS}


def plan_of(entry: dict[str, Any]) -> RowPlan:
    """The plan of a row of a table."""
    plan = RowPlan(columns=entry["columns"], **{name: entry[name] for name in PLAN_FIELDS if name in entry})
    exact = plan.tile * plan.cluster * plan.turns == plan.columns
    return plan if exact else dataclasses.replace(plan, columns=0)


@functools.cache
def _table(arch: str) -> dict[tuple[str, int, int, int], RowPlan]:
    """The plans for a chip, of which `sm_90` and `sm_90a` are names."""
    file = resources.files("tilewright.kernels").joinpath("tuned", f"{arch.rstrip('af')}.json")
    if not file.is_file():
        return {}
    entries = json.loads(file.read_text())["plans"]
    return {(item["kernel"], item["columns"], item["bytes"], item["held"]): plan_of(item) for item in entries}
