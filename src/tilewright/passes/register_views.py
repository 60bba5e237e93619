"""Which elements of which register allocation an operation touches.

`Registers` numbers the elements of all register allocations of a function through, so that sets of elements are ints.
A tensor operand stands for a tuple of these numbers, in colexicographic order of its layout. What is known only at run
time is not resolved: an allocation with one such use, or whose address goes anywhere else, has no numbers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir, vectors
from tilewright.ir.accessors import number_of, ptr_info, tensor_layout_text, text_of
from tilewright.layout import size, views
from tilewright.passes.rules import packed
from tilewright.passes.rules.memory import element_bytes

if TYPE_CHECKING:
    from mlir import ir

ACCESSES = frozenset(
    f"cute.{name}"
    for name in (
        "load",
        "store",
        "load_tensor",
        "store_tensor",
        "fill",
        "copy",
        "copy_value",
        "gemm",
        "wgmma",
        "wgmma_named",
    )
)
_MOST_ELEMENTS = 4096
"""Of an allocation: no thread has registers for more, and each element is a value of its own."""


@dataclass
class Allocation:
    """`count` elements of type `element`, numbered from `start`; `views` gives the numbers of its tensors' elements."""

    op: ir.Operation
    element: ir.Type
    count: int
    start: int = 0
    views: dict[Any, tuple[int, ...]] = field(default_factory=dict)
    accesses: list[ir.Operation] = field(default_factory=list)
    addresses: list[ir.Operation] = field(default_factory=list)  # of views; each before those that use it

    @property
    def mask(self) -> int:
        """The set of all elements."""
        return ((1 << self.count) - 1) << self.start


def allocation_of(op: ir.Operation) -> Allocation | None:
    """What `cute.alloc` allocates, with its uses; None where one of them is not known while compiling."""
    info = ptr_info(op.results[0].type)
    if info.space != "rmem" or packed.is_packed(info.element):
        return None
    made = Allocation(op, info.element, number_of(op, "bytes") // element_bytes(info.element))
    if made.count > _MOST_ELEMENTS or not _follow(made):
        return None
    return made


def _follow(made: Allocation) -> bool:
    """Note all uses of an allocation's address and of the tensors there; False where one is not known."""
    found: list[tuple[ir.Value, int]] = [(made.op.results[0], 0)]  # addresses and tensors, with where they begin
    while found:
        value, start = found.pop()
        for use in value.uses:
            user = use.owner.operation
            if user.name in ACCESSES and value in made.views:
                if not _is_known(user):
                    return False
                made.accesses.append(user)
                continue
            begins = _start(user, start)
            if begins is None or not _like(user.results[0].type, made):
                return False
            if user.name in ("cute.make_tensor", "cute.view") and not _note_tensor(made, user, begins):
                return False
            made.addresses.append(user)
            found.append((user.results[0], begins))
    return True


def _start(op: ir.Operation, start: int) -> int | None:
    """Where the address or tensor begins that an operation makes of one at `start`; None where it is not known."""
    if op.name in ("cute.make_tensor", "cute.ptr_cast", "cute.iterator"):
        return start
    if op.name == "cute.ptr_offset":
        moved = known_integer(op.operands[1])
        return None if moved is None else start + moved
    if op.name != "cute.view":
        return None
    if text_of(op, "moves") == "swizzle":
        return start
    (tensor,), arguments32, arguments64, *_ = build.groups(op)
    leaves = tuple(known_integer(leaf) for leaf in (*arguments32, *arguments64))
    if any(leaf is None for leaf in leaves):
        return None
    moved = _moved(
        tensor_layout_text(tensor.type), text_of(op, "algebra"), text_of(op, "arguments"), leaves, len(arguments32)
    )
    return None if moved is None else start + moved


@functools.lru_cache(maxsize=4096)
def _moved(layout: str, algebra: str, arguments: str, leaves: tuple[int, ...], narrow: int) -> int | None:
    """How far a view of a static layout begins after the tensor; `leaves` fill the arguments, `narrow` of 32 bits."""
    if "?" in layout:
        return None
    sources = {32: iter(leaves[:narrow]), 64: iter(leaves[narrow:])}
    given = layout_text.decode_arguments(arguments, lambda width, divisibility: next(sources[width]))
    return int(views.cut(layout_text.decode_layout(layout, _no_leaf), algebra, given).start)


def _like(type_: ir.Type, made: Allocation) -> bool:
    info = ptr_info(type_)
    return info.space == "rmem" and info.element == made.element


def _note_tensor(made: Allocation, op: ir.Operation, start: int) -> bool:
    places = _offsets(tensor_layout_text(op.results[0].type))
    if places is None or not all(0 <= start + place < made.count for place in places):
        return False
    made.views[op.results[0]] = tuple(start + place for place in places)
    return True


def _is_known(op: ir.Operation) -> bool:
    """Whether an access names its elements, and moves them between types that registers tell apart in no way."""
    if op.name in ("cute.load", "cute.store"):
        return element_index(op) is not None
    if op.name == "cute.copy":
        elements = {_element(operand.type) for operand in list(op.operands)[:2]}
        return len(elements) == 1 or not any(str(element) == "i1" for element in elements)
    if op.name == "cute.copy_value":  # of another pass; its predicate may be in registers
        return ptr_info(op.operands[0].type).space != "rmem"
    if op.name == "cute.gemm":
        places = _offsets(tensor_layout_text(op.operands[0].type))
        return places is not None and len(set(places)) == len(places)
    return True


def _element(type_: ir.Type) -> ir.Type:
    """Of a tensor or of a vector."""
    return type_.element_type if vectors.is_vector(type_) else ptr_info(type_).element


@functools.lru_cache(maxsize=4096)
def _offsets(text: str) -> tuple[int, ...] | None:
    """The offsets of a static layout's elements, None for a layout with leaves of run time."""
    if "?" in text:
        return None
    layout = layout_text.decode_layout(text, _no_leaf)
    count = int(size(layout))
    return tuple(int(layout(index)) for index in range(count)) if count <= _MOST_ELEMENTS else None


def _no_leaf(width: int, divisibility: int) -> int:
    raise ValueError("a layout with leaves of run time")


def element_index(op: ir.Operation) -> int | None:
    """The place in colexicographic order of the element that `load` or `store` names; None at run time."""
    *_, (tensor,), coord32, coord64 = build.groups(op)
    leaves = [known_integer(leaf) for leaf in (*coord32, *coord64)]
    if any(leaf is None for leaf in leaves):
        return None
    return _index(text_of(op, "coord"), tensor_layout_text(tensor.type), tuple(leaves[: len(coord32)]),
                  tuple(leaves[len(coord32) :]))  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _index(coord: str, layout: str, leaves32: tuple[int, ...], leaves64: tuple[int, ...]) -> int | None:
    sources = {32: iter(leaves32), 64: iter(leaves64)}
    place = layout_text.decode_coord(coord, lambda width, divisibility: next(sources[width]))
    shape = layout_text.decode_layout(layout, _no_leaf).shape if "?" not in layout else None
    return None if shape is None else _colex(place, shape)


def _colex(coord: Any, shape: Any) -> int | None:
    """The linear index of a coordinate that may be linear itself in any mode; None outside the shape."""
    if not isinstance(coord, tuple):
        return coord if 0 <= coord < _product(shape) else None
    modes = shape if isinstance(shape, tuple) else (shape,)
    if len(coord) != len(modes):
        return None
    index, step = 0, 1
    for part, extent in zip(coord, modes, strict=True):
        inner = _colex(part, extent)
        if inner is None:
            return None
        index, step = index + inner * step, step * _product(extent)
    return index


def _product(shape: Any) -> int:
    return functools.reduce(operator.mul, map(_product, shape), 1) if isinstance(shape, tuple) else int(shape)


_Compute = Mapping[str, Callable[[int, int], int]]
_ANY: _Compute = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "arith.andi": operator.and_, "arith.ori": operator.or_, "arith.xori": operator.xor,
}  # fmt: skip
_DIVISIONS: _Compute = {
    "arith.divui": operator.floordiv, "arith.divsi": operator.floordiv, "arith.floordivsi": operator.floordiv,
    "arith.remui": operator.mod, "arith.remsi": operator.mod,
}  # fmt: skip
_SHIFTS: _Compute = {"arith.shli": operator.lshift, "arith.shrui": operator.rshift, "arith.shrsi": operator.rshift}


def known_integer(value: ir.Value) -> int | None:
    """The integer that a value is known to be: a constant, or computed from constants without overflow."""
    owner = value.owner
    if not isinstance(owner, mlir.ir.Operation | mlir.ir.OpView):
        return None
    op = owner.operation
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return int(mlir.ir.IntegerAttr(attribute).value) if isinstance(attribute, mlir.ir.IntegerAttr) else None
    if op.name in ("arith.extsi", "arith.trunci"):
        found = known_integer(op.operands[0])
    elif op.name in _ANY or op.name in _DIVISIONS or op.name in _SHIFTS:
        found = _computed(op.name, *(known_integer(operand) for operand in op.operands))
    else:
        return None
    return found if found is not None and _fits(found, value.type) else None


def _computed(name: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if name in _ANY:
        return _ANY[name](left, right)
    if name in _DIVISIONS:
        return _DIVISIONS[name](left, right) if left >= 0 and right > 0 else None
    return _SHIFTS[name](left, right) if left >= 0 and 0 <= right < 64 else None


def _fits(number: int, type_: ir.Type) -> bool:
    width = type_.width if isinstance(type_, mlir.ir.IntegerType) else 64
    return -(1 << (width - 1)) <= number < 1 << (width - 1)
