"""Rules for pins: a comment of inline assembly that names the registers of a value.

    // pin gemm.tile tensor f16 smem (8,16):(16,1) : %r7

It executes nothing. The registers hold the value at that place, and memory is as the source has left it there: the
comment counts as an access to all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.passes.lowering import LoweringContext, Rules

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_LETTERS = {"i16": "h", "i32": "r", "i64": "l", "f32": "f", "f64": "d"}
_CARRIERS = {"f16": "i16", "bf16": "i16"}
_NARROW = {"i1": "i32", "i8": "i16"}


@rules.lowers("pin")
def _pin(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    values = [_register(value) for value in op.operands]
    names = ", ".join(f"${number}" for number in range(len(values)))
    attributes = {
        "asm_string": build.string(f"// pin {text_of(op, 'name')} {text_of(op, 'kind')} : {names}"),
        "constraints": build.string(",".join([*(_LETTERS[str(value.type)] for value in values), "~{memory}"])),
        "has_side_effects": mlir.ir.UnitAttr.get(),
        "asm_dialect": build.i64(0),
    }
    build.emit("llvm.inline_asm", (), values, attributes)
    return []


def _register(value: ir.Value) -> ir.Value:
    """A value in a type that a register of PTX has."""
    name = str(value.type)
    if name in _CARRIERS:
        return build.value("arith.bitcast", types.parse(_CARRIERS[name]), (value,))
    if name.startswith("f8"):
        value, name = build.value("arith.bitcast", types.parse("i8"), (value,)), "i8"
    if name in _NARROW:
        return build.value("arith.extui", types.parse(_NARROW[name]), (value,))
    if name not in _LETTERS:
        raise CompileError(f"a pin of type {name} has no register")
    return value
