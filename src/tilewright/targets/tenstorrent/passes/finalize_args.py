"""Pass Name: finalize-args
Purpose: Number the arguments of each kernel, in one table that the kernels and the plan share.

Input Expectations:
- Kernels with tt.kernel_role; arguments of run time are tt.runtime_arg with a name

Output Guarantees:
- tt.runtime_args: 32-bit arguments in order: the addresses of the tensors that the kernel touches, start_id and count,
  numbers of the user
- Each tt.runtime_arg has its index, each tensor that is touched a tt.make_accessor
- tt.compile_time_args: the tensors whose accessors take compile-time arguments, in order

Example:
    Before: start_id = tt.runtime_arg(name='start_id')
    After:  a_addr = tt.runtime_arg(name='a', kind='address', index=0)
            acc_a = tt.make_accessor(a, a_addr)
            start_id = tt.runtime_arg(name='start_id', kind='start_id', index=1)

Testing:
    pytest tests/tenstorrent/test_finalize_args.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.targets.tenstorrent.passes._common import Names, let
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import Call, Expr, LetStmt, PrimFunc, Stmt, Var, seq
from tilewright.targets.tenstorrent.tir.visitors import IRMutator, called, calls, used_vars

ACCESSOR = "!tt.accessor"


class _Numbered(IRMutator):
    """Writes the indices, and accessors in the place of tensors."""

    def __init__(self, indices: dict[str, int], accessors: dict[Var, Var], numbers: dict[Var, Var]) -> None:
        self.indices, self.accessors, self.numbers = indices, accessors, numbers

    def visit_let(self, op: LetStmt) -> Stmt | None:
        found = called(op)
        if found is not None and found.op.name == "tt.runtime_arg":
            name = found.attrs["name"]
            attrs = found.attrs.updated({"kind": name, "index": self.indices[name]})
            return replace(op, value=replace(found, attrs=attrs))
        return super().visit_let(op)

    def visit_call(self, op: Call) -> Expr:
        return super().visit_call(op)

    def visit_var(self, op: Var) -> Expr:
        return self.accessors.get(op) or self.numbers.get(op) or op


@func_pass(opt_level=0)
def FinalizeArgs(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Number the arguments."""
    if "tt.kernel_role" not in func.attrs:
        return func
    names = Names(func)
    used = used_vars(func.body)
    tensors = [param for param in func.params if param in func.buffer_map and param in used]
    scalars = [param for param in func.params if param not in func.buffer_map and param in used]
    table: list[dict[str, Any]] = [{"name": item.name, "kind": "address"} for item in tensors]
    known_names = [found.attrs["name"] for found in calls(func.body, "tt.runtime_arg")]
    table += [{"name": name, "kind": name} for name in ("start_id", "count") if name in known_names]
    table += [{"name": item.name, "kind": "scalar", "dtype": item.dtype} for item in scalars]
    indices = {entry["name"]: number for number, entry in enumerate(table)}
    head: list[Stmt] = []
    accessors, numbers = {}, {}
    for item in tensors:
        address = names.var(f"{item.name}_addr")
        accessors[item] = names.var(f"acc_{item.name}", ACCESSOR)
        head.append(let(address, "tt.runtime_arg", name=item.name, kind="address", index=indices[item.name]))
        head.append(let(accessors[item], "tt.make_accessor", item, address))
    for item in scalars:
        numbers[item] = names.var(f"arg_{item.name}", item.dtype)
        head.append(let(numbers[item], "tt.runtime_arg", name=item.name, kind="scalar", index=indices[item.name]))
    body = _Numbered(indices, accessors, numbers).visit_body(func.body)
    return func.with_body(seq([*head, body])).with_attr({
        "tt.runtime_args": table,
        "tt.compile_time_args": [item.name for item in tensors],
    })  # fmt: skip


known(FinalizeArgs)
