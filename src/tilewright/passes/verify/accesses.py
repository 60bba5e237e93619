"""Verifiers of loads, stores and atomic operations."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import TilewrightError
from tilewright.ir import layout_text
from tilewright.layout import views
from tilewright.passes.verify.operation import (
    Invalid,
    Memory,
    OpSummary,
    check_leaves,
    leaf,
    same_element,
    tensor,
    whole_vector,
)
from tilewright.passes.verify.table import verifies
from tilewright.passes.verify.views import inside

_ANY_INTEGER = frozenset(f"{sign}{width}" for sign in "iu" for width in (32, 64))
_ATOMIC = {
    "add": _ANY_INTEGER | {"f16", "f32", "f64"},
    **dict.fromkeys(("and", "or", "xor", "min", "max", "exch", "cas"), _ANY_INTEGER),
    **dict.fromkeys(("inc", "dec"), frozenset(("u32",))),
}
_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("cta", "cluster", "gpu", "sys")


@verifies("load")
def _load(op: OpSummary) -> None:
    (source,), leaves32, leaves64 = op.groups
    same_element("the result", op.results[0], tensor(source))
    _coordinate(op, tensor(source), leaves32, leaves64)


@verifies("store")
def _store(op: OpSummary) -> None:
    (value,), (target,), leaves32, leaves64 = op.groups
    same_element("the value", value, tensor(target))
    _coordinate(op, tensor(target), leaves32, leaves64)


@verifies("load_tensor")
def _load_tensor(op: OpSummary) -> None:
    whole_vector("the result", op.results[0], tensor(op.groups[0][0]))


@verifies("store_tensor")
def _store_tensor(op: OpSummary) -> None:
    whole_vector("the value", op.groups[0][0], tensor(op.groups[1][0]))


@verifies("fill")
def _fill(op: OpSummary) -> None:
    target = tensor(op.groups[1][0])
    same_element("the value", op.groups[0][0], target)
    target.count("fill")


@verifies("atomic")
def _atomic(op: OpSummary) -> None:
    (value,), compared, (target,), leaves32, leaves64 = op.groups
    memory, kind = tensor(target), op.text("kind")
    same_element("the value", value, memory)
    _coordinate(op, memory, leaves32, leaves64)
    if op.results[0] != value:
        raise Invalid("the old number is of the type of the value", value=value, result=op.results[0])
    name, sign, width = kind[:-1], kind[-1:], str(value).lstrip("bif")
    allowed = _ATOMIC.get(name)
    if allowed is None or (f"{sign}{width}" not in allowed) or (sign == "f") != (str(value)[0] in "bf"):
        raise Invalid(f"there is no atomic operation {kind!r} of {value}", kinds=", ".join(sorted(_ATOMIC)))
    if len(compared) != (name == "cas") or any(other != value for other in compared):
        raise Invalid("cas compares with one number of the value's type, other kinds with none", compared=len(compared))
    if memory.space == "rmem":
        raise Invalid("registers have no atomic operations", tensor=memory.type)
    op.one_of("order", _ORDERS)
    op.one_of("scope", _SCOPES)


def _coordinate(op: OpSummary, memory: Memory, leaves32: Any, leaves64: Any) -> None:
    """The coordinate must be readable, fit the shape, and not be known to lie outside."""
    written = op.text("coord")
    check_leaves("coord", written, leaves32, leaves64)
    try:
        coord = layout_text.decode_coord(written, leaf)
        again = layout_text.encode(coord)[0]
    except (TilewrightError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise Invalid("the coordinate cannot be read", coord=written, reason=f"{error}") from error
    shape = views.outer_of(memory.layout).shape
    if again != written or not _fits(coord, shape):
        raise Invalid(
            "the coordinate does not fit the tensor",
            "give one integer for each mode, or one that counts through the modes, the first fastest",
            coord=written,
            layout=memory.text,
        )
    if not inside(coord, shape):
        raise Invalid("the coordinate is outside the tensor", coord=written, layout=memory.text)


def _fits(coord: Any, shape: Any) -> bool:
    if isinstance(coord, tuple):
        return isinstance(shape, tuple) and len(coord) == len(shape) and all(map(_fits, coord, shape))
    return coord is not None and not hasattr(coord, "shape")
