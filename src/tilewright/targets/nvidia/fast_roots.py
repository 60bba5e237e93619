"""Square roots with `fastmath=True` as `sqrt.approx.f32`; MLIR's conversion drops the flag on its way to libdevice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.context import located
from tilewright.ir.walk import operations
from tilewright.targets.nvidia.tile_rules import intrinsic

if TYPE_CHECKING:
    from mlir import ir

_FAST = re.compile(r"\b(fast|afn)\b")


def use_fast_roots(kernel: ir.Operation) -> None:
    """Replace `math.sqrt` of Float32, alone or in vectors, where it may be approximate."""
    for op in operations(kernel):
        if op.name == "math.sqrt" and _FAST.search(str(op.attributes["fastmath"])):
            _replace(op)


def _replace(op: ir.Operation) -> None:
    type_, f32 = op.results[0].type, types.parse("f32")
    with mlir.ir.InsertionPoint(op), located(lambda: op.location):
        if type_ == f32:
            root = _root(op.operands[0])
        elif isinstance(type_, mlir.ir.VectorType) and type_.element_type == f32:
            root = build.value("vector.from_elements", type_, [_root(part) for part in _parts(op.operands[0])])
        else:
            return
        op.results[0].replace_all_uses_with(root)
        op.erase()


def _parts(vector: ir.Value) -> list[ir.Value]:
    op = build.emit("vector.to_elements", [types.parse("f32")] * mlir.ir.VectorType(vector.type).shape[0], (vector,))
    return list(op.results)


def _root(value: ir.Value) -> ir.Value:
    root = intrinsic("llvm.nvvm.sqrt.approx.f", (value,), value.type)
    assert root is not None
    return root
