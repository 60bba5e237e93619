"""Pass Name: split
Purpose: Make of the program of a core its three kernels: one that reads, one that computes, one that writes.

Input Expectations:
- tt.cb_assignment; every operation on tiles belongs to one role

Output Guarantees:
- Each kernel becomes <name>_reader, <name>_compute, <name>_writer with tt.kernel_role; host functions go through
- Each has the loops and the arithmetic of indices that it needs, and nothing else
- Every circular buffer has one producing and one consuming role

Example:
    Before: for k in range(8): tt.read_to_cb(cb_a, a, i, k); tt.consume(cb_a); tt.mm.mma(cb_a, cb_b, 0, 0, 0)
    After:  reader:  for k in range(8): tt.read_to_cb(cb_a, a, i, k)
            compute: for k in range(8): tt.consume(cb_a); tt.mm.mma(cb_a, cb_b, 0, 0, 0)

Testing:
    pytest tests/tenstorrent/test_split.py
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.passes._common import prune
from tilewright.targets.tenstorrent.passes.roles import ROLES, role_of
from tilewright.targets.tenstorrent.passing import known, module_pass
from tilewright.targets.tenstorrent.tir.nodes import Evaluate, IRModule, PrimFunc, Stmt
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, called


class _Part(IRMutator):
    """What one role does."""

    def __init__(self, role: str) -> None:
        self.role = role

    def visit_evaluate(self, op: Evaluate) -> Stmt | None:
        found = called(op)
        owner = role_of(found) if found is not None else ""
        return op if owner in ("", self.role) else None


@module_pass(opt_level=0)
def Split(mod: IRModule, ctx: Any) -> IRModule:
    """Three kernels for each."""
    made: dict[str, Any] = {}
    for name, func in mod.functions.items():
        if not isinstance(func, PrimFunc):
            made[name] = func
            continue
        if "tt.cb_assignment" not in func.attrs:
            raise PassError(f"{name} has no tt.cb_assignment", hint="run the pass tile-dfg before")
        for role in ROLES:
            body = prune(_Part(role).visit_body(func.body))
            part = func.with_body(body).with_name(f"{name}_{role}")
            made[part.name] = part.with_attr({"tt.kernel_role": role, "tt.kernel": str(name)})
    return mod.with_functions(made)


known(Split)
