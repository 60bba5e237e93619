"""Buffers of several stages that a loop goes round in: how many iterations ahead one of them may be filled.

    for i in cutlass.range(n, prefetch_stages=2):
        cute.copy(atom, source[None, i], buffer[None, i % 3])        # asynchronous
        ...
        use(buffer[None, i % 3])

It is read off coordinates: all accesses to the buffer in the loop pick the same stage, a mode of its layout is indexed
by it, and it goes round: `i % 3`, or a carried value that counts 0, 1, 2, 0, ...
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir
from tilewright.ir.accessors import constant_of, is_tensor, number_of, text_of
from tilewright.ir.walk import operations
from tilewright.layout import SymInt, is_static, sym_int
from tilewright.layout.basis import Path
from tilewright.layout.inttuple import flat
from tilewright.passes.effects import effects_of, may_overlap, name_of
from tilewright.passes.loop_bodies import Body, same_value
from tilewright.passes.origin import Origin, origin

if TYPE_CHECKING:
    from mlir import ir

_ELEMENTS = ("cute.load", "cute.store")


@dataclass(frozen=True)
class Buffer:
    """A buffer that the loop goes round in: the tensor, its stages, the place in the body of its last access."""

    tensor: ir.Value
    stages: int
    last: int


def buffer_of(copy: ir.Operation, body: Body, moved: set[int]) -> Buffer | str:
    """The buffer that an asynchronous copy fills; text that says why it is none.

    `moved` are the places in the body of what is done earlier.
    """
    target = copy.operands[1]
    name, stages = name_of(target), _stages(target, (), body)
    if not stages:
        return f"each iteration fills the same part of {name}; let it go round in stages, as {name}[..., i % stages]"
    last, first = -1, min(moved)
    for place, op in enumerate(body.operations):
        for inner in operations(op):
            for tensor, coord in _accesses(inner):
                if not may_overlap(tensor, target):
                    continue
                if not _same_stage(stages, _stages(tensor, coord, body)):
                    return f"{name} is accessed in another stage than the one that the iteration fills"
                if place < first:
                    return f"{name} is accessed before it is filled"
                last = max(last, place)
    turns = min((turn for _, turn in stages.values()), default=0)
    return Buffer(target, turns, last)


def _accesses(op: ir.Operation) -> list[tuple[ir.Value, tuple[Any, ...]]]:
    """The tensors that an operation reads or writes, with the coordinates of single elements."""
    found = effects_of(op) if not op.regions else None
    if found is None:
        return []
    coord = (op,) if op.name in _ELEMENTS else ()
    return [(tensor, coord) for tensor in (*found.reads, *found.writes) if is_tensor(tensor)]


Stages = dict[Path, tuple["ir.Value", int]]
"""By mode of the root, a path from the outermost in: the value that picks the stage, and after how many iterations it
comes again."""


def _same_stage(wanted: Stages, found: Stages) -> bool:
    return any(mode in found and same_value(value, found[mode][0]) for mode, (value, _) in wanted.items())


def _stages(tensor: ir.Value, access: tuple[Any, ...], body: Body) -> Stages:
    """The modes of the root in which the tensor, or the element accessed, has one coordinate, and it goes round."""
    place = origin(tensor)
    if place.root is None or place.coordinates is None or place.coordinates.recast:
        return {}
    layout = place.root.layout
    if not is_static(layout) or not is_injective(layout):
        return {}
    starts, named = _coordinate(place, access)
    spread = [] if access else [basis.mode for basis in _bases(place)]
    found: Stages = {}
    for mode, start in _leaves(starts):
        value = named.get(start.expression()) if isinstance(start, SymInt) and not _touched(mode, spread) else None
        turns = turns_of(value, body) if value is not None else 0
        if value is not None and turns > 1:
            found[mode] = value, turns
    return found


def _coordinate(place: Origin, access: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, ir.Value]]:
    """The first coordinate of the root that is accessed, and the values of its symbols."""
    assert place.coordinates is not None
    named = dict(place.operands)
    if not access:
        return tuple(place.coordinates.start), named
    (op,) = access
    *_, coord32, coord64 = build.groups(op)
    queues = {32: iter(coord32), 64: iter(coord64)}

    def leaf(width: int, divisibility: int) -> Any:
        value = next(queues[width])
        name = f"c{len(named)}"
        named[name] = value
        return sym_int(divisibility, width, name)

    coord = layout_text.decode_coord(text_of(op, "coord"), leaf)
    return place.coordinates(*(coord if isinstance(coord, tuple) else (coord,))), named


def _leaves(coord: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of a coordinate by their modes."""
    if not isinstance(coord, tuple):
        yield path, coord
        return
    for number, item in enumerate(coord):
        yield from _leaves(item, (*path, number))


def _touched(mode: Path, spread: list[Path]) -> bool:
    """True where a tensor extends along a mode, or along one inside or around it."""
    return any(mode[: len(other)] == other or other[: len(mode)] == mode for other in spread)


def _bases(place: Origin) -> list[Any]:
    assert place.coordinates is not None
    return [step for step in flat(place.coordinates.layout.stride) if hasattr(step, "mode")]


def is_injective(layout: Any) -> bool:
    """True where no two coordinates of a static layout share an element."""
    modes = sorted(
        (abs(int(stride)), int(extent))
        for extent, stride in zip(flat(layout.shape), flat(layout.stride), strict=True)
        if int(extent) > 1
    )
    reach = 0
    for stride, extent in modes:
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def turns_of(value: ir.Value, body: Body) -> int:
    """After how many iterations a value comes again, all before being different; 0 where that is not known."""
    number = body.number_of(value)
    if number is not None:
        return _cycle(value, body.yielded[number])
    if isinstance(value.owner, mlir.ir.Block):
        return 0
    op = value.owner.operation
    if op.name in ("arith.remui", "arith.remsi") and op.operands[0] == body.index and constant_of(body.step) == 1:
        return abs(int(constant_of(op.operands[1]) or 0))
    return 0


MOST_STAGES = 64


def _cycle(argument: ir.Value, following: ir.Value) -> int:
    """The length of the cycle 0, 1, ..., 0 that a carried value goes through; 0 where it is none."""
    for count in range(1, MOST_STAGES + 1):
        after = _evaluated(following, {argument: count - 1})
        if after == 0:
            return count
        if after != count:
            return 0
    return 0


def _evaluated(value: ir.Value, known: dict[ir.Value, int]) -> int | None:
    """The number that a value is where those in `known` are; None where it depends on others."""
    if value in known:
        return known[value]
    if isinstance(value.owner, mlir.ir.Block):
        return None
    op = value.owner.operation
    if op.name == "arith.constant":
        found = constant_of(value)
        return found if isinstance(found, int) else None
    if op.name == "scf.if":
        condition = _evaluated(op.operands[0], known)
        if condition is None:
            return None
        end = list(op.regions[0 if condition else 1].blocks[0].operations)[-1].operation
        return _evaluated(end.operands[mlir.ir.OpResult(value).result_number], known)
    function = _COMPARE.get(number_of(op, "predicate")) if op.name == "arith.cmpi" else _ARITHMETIC.get(op.name)
    operands = [_evaluated(operand, known) for operand in op.operands]
    if function is None or any(item is None or item < 0 for item in operands):
        return None
    return int(function(*operands))


_COMPARE: dict[int, Any] = dict(
    enumerate([operator.eq, operator.ne] + 2 * [operator.lt, operator.le, operator.gt, operator.ge])
)
"""Of numbers that are not negative; signed and unsigned then agree."""
_ARITHMETIC: dict[str, Any] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul, "arith.xori": operator.xor,
    "arith.remui": lambda a, b: a % b if b else -1, "arith.remsi": lambda a, b: a % b if b else -1,
    "arith.select": lambda c, a, b: a if c else b, "arith.extui": lambda a: a, "arith.extsi": lambda a: a,
    "arith.trunci": lambda a: a,
}  # fmt: skip
