"""Which elements of a kernel's memory an operation accesses: modes in which all of them have one coordinate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text
from tilewright.ir.accessors import text_of
from tilewright.ir.walk import operations
from tilewright.layout import SymInt, is_static, size, sym_int
from tilewright.layout.basis import Path
from tilewright.layout.inttuple import flat
from tilewright.passes.effects import effects_of
from tilewright.passes.origin import Coordinates, Origin, origin

if TYPE_CHECKING:
    from mlir import ir

ELEMENTS = ("cute.load", "cute.store")
"""Operations on single elements, whose coordinate is written in them."""

Mode = Path | str
"""A mode of the memory's layout as a path from the outermost in; text for the linear index of a view of it."""
_MOST_INDICES = 4096


@dataclass(frozen=True)
class Access:
    """One access of an operation to a tensor. `fixed` are the values by mode that pick all elements of the access;
    `layout` is that of the whole argument or allocation, None where it is not known."""

    op: ir.Operation
    tensor: ir.Value
    writes: bool
    layout: Any
    fixed: dict[Mode, ir.Value]

    @classmethod
    def of(cls, op: ir.Operation, tensor: ir.Value, *, writes: bool = False) -> Access:
        """The access of `op` to one of its tensors."""
        place = origin(tensor)
        if place.root is None or place.coordinates is None or place.coordinates.recast:
            return cls(op, tensor, writes, None, {})
        return cls(op, tensor, writes, place.root.layout, _fixed(op, place, place.coordinates))

    @property
    def is_injective(self) -> bool:
        """True where different coordinates of the layout are different elements; of layouts that are known only at run
        time it is taken to be so, but for modes of stride 0."""
        if self.layout is None:
            return False
        if is_static(self.layout):
            return is_injective(self.layout)
        return all(type(step) is not int or step != 0 for step in flat(self.layout.stride))


def accesses_of(*roots: ir.Operation) -> list[Access]:
    """The accesses of operations and of those inside them, reads before writes."""
    found = []
    for root in roots:
        for op in operations(root):
            effects = effects_of(op) if not len(op.regions) else None
            if effects is not None:
                found += [Access.of(op, tensor) for tensor in effects.reads]
                found += [Access.of(op, tensor, writes=True) for tensor in effects.writes]
    return found


def _fixed(op: ir.Operation, place: Origin, coordinates: Coordinates) -> dict[Mode, ir.Value]:
    named = dict(place.operands)
    if op.name not in ELEMENTS:
        spread = [step.mode for step in flat(coordinates.layout.stride) if hasattr(step, "mode")]
        return {
            mode: value
            for mode, value in _plain(coordinates.start, named)
            if not any(mode[: len(other)] == other or other[: len(mode)] == mode for other in spread)
        }
    coord = _coordinate(op, named)
    found: dict[Mode, ir.Value] = dict(_plain(coordinates(*coord), named))
    linear = named.get(coord[0].expression()) if len(coord) == 1 and isinstance(coord[0], SymInt) else None
    if linear is not None and _is_numbering(coordinates):
        found[f"{coordinates}"] = linear
    return found


def _plain(coord: Any, named: dict[str, ir.Value], path: Path = ()) -> Iterator[tuple[Path, ir.Value]]:
    """The modes whose coordinate is a value as it is."""
    if isinstance(coord, tuple):
        for number, item in enumerate(coord):
            yield from _plain(item, named, (*path, number))
    elif isinstance(coord, SymInt) and coord.expression() in named:
        yield path, named[coord.expression()]


def _coordinate(op: ir.Operation, named: dict[str, ir.Value]) -> tuple[Any, ...]:
    """The coordinate of a load or store; the values of its symbols are entered into `named`."""
    *_, coord32, coord64 = build.groups(op)
    queues = {32: iter(coord32), 64: iter(coord64)}

    def leaf(width: int, divisibility: int) -> Any:
        name = f"c{len(named)}"
        named[name] = next(queues[width])
        return sym_int(divisibility, width, name)

    coord = layout_text.decode_coord(text_of(op, "coord"), leaf)
    return coord if isinstance(coord, tuple) else (coord,)


def _is_numbering(coordinates: Coordinates) -> bool:
    """True where a linear index counts different coordinates, all known."""
    layout = coordinates.layout
    if not all(type(item) is int for item in flat(coordinates.start)) or not _is_known(layout):
        return False
    count = int(size(layout))
    return count <= _MOST_INDICES and len({coordinates(index) for index in range(count)}) == count


def _is_known(layout: Any) -> bool:
    steps = (getattr(step, "value", step) for step in flat(layout.stride))
    return all(type(item) is int for item in (*flat(layout.shape), *steps))


def is_injective(layout: Any) -> bool:
    """True where it is plain that no two coordinates of a static layout share an element."""
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
