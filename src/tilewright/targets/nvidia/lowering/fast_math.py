"""Functions of Float32 with `fastmath=True` as the approximate instructions, which take denormals as 0.

MLIR's conversion and LLVM would choose the forms that keep denormals (`ex2.approx`, `lg2.approx`, `rsqrt.approx`), for
which the assembler adds a comparison and two products, or drop the flag on its way to libdevice (`sqrt`, `tanh`). These
are the forms of `nvcc -use_fast_math` (CUDA C++ Programming Guide, "Intrinsic Functions").
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.context import located, names_of
from tilewright.ir.walk import operations
from tilewright.passes.lowering import LoweringContext
from tilewright.targets.nvidia.lowering.tile_rules import approximate

if TYPE_CHECKING:
    from mlir import ir

_FAST = re.compile(r"\b(fast|afn)\b")
Function = Callable[["ir.Value", LoweringContext], "ir.Value"]


def use_fast_math(kernel: ir.Operation, context: LoweringContext) -> None:
    """Replace the functions of `FAST` on Float32, alone or in vectors, where they may be approximate."""
    if names_of(kernel).isdisjoint(FAST):
        return
    for op in operations(kernel):
        if op.name in FAST and _FAST.search(str(op.attributes["fastmath"])):
            _replace(op, functools.partial(_called, op.name, context))


def _called(name: str, context: LoweringContext, value: ir.Value) -> ir.Value:
    return FAST[name](value, context)


def _replace(op: ir.Operation, function: Callable[[ir.Value], ir.Value]) -> None:
    type_, f32 = op.results[0].type, types.parse("f32")
    with mlir.ir.InsertionPoint(op), located(lambda: op.location):
        if type_ == f32:
            found = function(op.operands[0])
        elif isinstance(type_, mlir.ir.VectorType) and type_.element_type == f32:
            found = build.value("vector.from_elements", type_, [function(part) for part in _parts(op.operands[0])])
        else:
            return
        op.results[0].replace_all_uses_with(found)
        op.erase()


def _parts(vector: ir.Value) -> list[ir.Value]:
    op = build.emit("vector.to_elements", [types.parse("f32")] * mlir.ir.VectorType(vector.type).shape[0], (vector,))
    return list(op.results)


def _instruction(kind: str) -> Function:
    return lambda value, context: approximate(kind, value, context)


def _scaled(value: ir.Value, factor: float) -> ir.Value:
    return build.value("arith.mulf", value.type, (value, build.constant(factor, value.type)))


FAST: dict[str, Function] = {
    "math.sqrt": _instruction("sqrt"),
    "math.rsqrt": _instruction("rsqrt"),
    "math.exp2": _instruction("exp2"),
    "math.exp": lambda value, context: approximate("exp2", _scaled(value, math.log2(math.e)), context),
    "math.log2": _instruction("log2"),
    "math.log": lambda value, context: _scaled(approximate("log2", value, context), math.log(2)),
    "math.log10": lambda value, context: _scaled(approximate("log2", value, context), math.log10(2)),
    "math.sin": _instruction("sin"),
    "math.cos": _instruction("cos"),
    "math.tanh": _instruction("tanh"),
}
