"""Floats to integers by `cvt.rzi` alone. LLVM's own saturating conversion compares and selects around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, types, vectors
from tilewright.passes.rules.float_to_int import nan_as_bit, number, width_of

if TYPE_CHECKING:
    from mlir import ir


def convert(value: ir.Value, source: str, target: str) -> ir.Value:
    """A native float or vector of type `source` as the integer type `target`; LLVM's `f2i.rz` is `cvt.rzi.s32.f32`."""
    width, signed = width_of(target), target[0] == "i"
    if width > 64:
        raise CompileError(
            "no instruction makes an integer of 128 bits of a float",
            values={"from": source, "to": target},
            hint="convert to 64 bits first",
        )
    if source in ("f16", "bf16"):
        value = build.value("arith.extf", vectors.like(value, "f32"), (value,))
    name = f"llvm.nvvm.{'d' if source == 'f64' else 'f'}2{'' if signed else 'u'}{'ll' if width == 64 else 'i'}.rz"
    whole = _each(value, name, types.parse("i64" if width == 64 else "i32"))
    return whole if width >= 32 else _narrowed(whole, value, source, target)


def _each(value: ir.Value, name: str, result: ir.Type) -> ir.Value:
    """The intrinsic takes single numbers."""
    if not vectors.is_vector(value.type):
        return build.intrinsic(name, result, (value,))
    found = vectors.poison(types.parse(f"vector<{value.type.shape[0]}x{result}>"))
    for index in range(value.type.shape[0]):
        found = vectors.insert(found, build.intrinsic(name, result, (vectors.extract(value, index),)), index)
    return found


def _narrowed(whole: ir.Value, value: ir.Value, source: str, target: str) -> ir.Value:
    """Clamped to fewer than 32 bits."""
    width, signed = width_of(target), target[0] == "i"
    if signed:
        whole = build.value("arith.maxsi", whole.type, (whole, number(-(1 << (width - 1)), whole)))
        whole = build.value("arith.minsi", whole.type, (whole, number((1 << (width - 1)) - 1, whole)))
    else:
        whole = build.value("arith.minui", whole.type, (whole, number((1 << width) - 1, whole)))
    found = build.value("arith.trunci", vectors.like(whole, target), (whole,))
    # A NaN became the least signed number, which clamps to the right one; of unsigned ones it would clamp to the most.
    return nan_as_bit(found, value, width) if source == "f64" and not signed else found
