"""Floats to integers, as `cvt.rzi` makes them: towards zero, clamped; NaN as `hw.saturation` says.

This is the way of every processor; the chips with `cvt` have their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.hw.saturation import nan_has_a_bit
from tilewright.ir import build, vectors

if TYPE_CHECKING:
    from mlir import ir

UNORDERED = 14  # predicate of `arith.cmpf`


def is_integer(name: str) -> bool:
    """True for the short names of integer types."""
    return name[0] in "iu"


def convert(value: ir.Value, source: str, target: str) -> ir.Value:
    """A native float or vector of type `source` as the integer type `target`."""
    if source in ("f16", "bf16"):
        value = build.value("arith.extf", vectors.like(value, "f32"), (value,))
    kind = "fptosi" if target[0] == "i" else "fptoui"
    found = build.intrinsic(f"llvm.{kind}.sat", vectors.like(value, target), (value,))
    if nan_has_a_bit(64 if source == "f64" else 32, width_of(target)):
        return nan_as_bit(found, value, width_of(target))
    return found


def width_of(target: str) -> int:
    """The bits of an integer type."""
    return int(target[1:])


def nan_as_bit(found: ir.Value, value: ir.Value, width: int) -> ir.Value:
    """`found`, but where the float is NaN the integer whose highest bit alone is set."""
    predicate = {"predicate": build.i64(UNORDERED)}
    is_nan = build.value("arith.cmpf", vectors.like(value, "bool"), (value, value), predicate)
    bit = number(-(1 << (width - 1)), found)
    return build.value("arith.select", found.type, (is_nan, bit, found))


def number(constant: int, model: ir.Value) -> ir.Value:
    """An integer constant of the type of `model`."""
    if vectors.is_vector(model.type):
        return build.splat(constant, model.type)
    return build.constant(constant, model.type)
