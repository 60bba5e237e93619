"""loop-tile: loops over tiles of so many iterations, and loops over the iterations of a tile.

before: `scf.for %i = %a to %b { scf.for %j = %c to %d { body(%i, %j) } }`
after:  with `loop-tile{size=8,4}`: loops over tiles of 8 x 4 iterations, and inside them two loops over the iterations
        of one tile and `body(%i, %j)`; the last tiles are smaller where the sizes do not divide the trip counts

A list of sizes tiles nests of as many loops, of which each has nothing but arithmetic around the next one; in every
kernel and host function, the outermost such nests. One size tiles single loops, the outermost ones, whose order of
iterations stays: these are always tiled. A nest of several is tiled where that changes no result: iterations of all its
loops but one are independent. Where it is not, a remark says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tilewright.base.errors import PassError
from tilewright.ir import build, mlir
from tilewright.ir.accessors import constant_of
from tilewright.ir.context import located
from tilewright.ir.walk import operations
from tilewright.passes.accessed_elements import accesses_of
from tilewright.passes.effects import effects_of, is_pure, name_of
from tilewright.passes.iterations import conflict
from tilewright.passes.kernel_remarks import remark
from tilewright.passes.loop_bodies import Body, clone, is_inside, is_invariant, mapped
from tilewright.passes.loop_building import binary, compare, for_loop
from tilewright.passes.loop_counts import trip_count, trips_of
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import functions

if TYPE_CHECKING:
    from mlir import ir


@register
class LoopTile(Pass):
    """Tiles nests of loops: loops over tiles, and inside them loops over the iterations of one tile.

    `size` are the iterations of a tile: a number, or several separated by commas, from the outermost loop in. A nest is
    tiled where the order of its iterations does not matter; a remark of the report says why another one is not.
    """

    name = "loop-tile"
    options: ClassVar[Mapping[str, object]] = {"size": "32"}

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.sizes = _sizes(self["size"])

    def run(self, module: ir.Operation) -> None:
        build.forget_pure()
        for function in functions(module):
            nests = _nests(function, len(self.sizes))
            while nests:
                self._tile(nests.pop())
        build.forget_pure()

    def _tile(self, nest: list[ir.Operation]) -> None:
        bodies = [Body(loop) for loop in nest]
        reason = _cannot(bodies)
        if reason:
            remark(nest[0], f"loop-tile does not tile this loop: {reason}")
        else:
            _tile(bodies, self.sizes)


def _sizes(given: object) -> list[int]:
    parts = list(given) if isinstance(given, tuple | list) else str(given).split(",")
    try:
        sizes = [int(str(part)) for part in parts]
    except ValueError:
        sizes = [0]
    if min(sizes, default=0) < 1:
        raise PassError(
            "loop-tile: a size is a number of iterations, at least 1",
            values={"size": given},
            hint="write loop-tile{size=32}, or loop-tile{size=8,4} for nests of two loops",
        )
    return sizes


def _nests(function: ir.Operation, depth: int) -> list[list[ir.Operation]]:
    """The outermost nests of so many loops."""
    found: list[list[ir.Operation]] = []
    for op in operations(function):
        if op.name != "scf.for" or any(is_inside(op, nest[0]) for nest in found):
            continue
        nest = [op]
        while len(nest) < depth and (inner := _only_loop(nest[-1])) is not None:
            nest.append(inner)
        if len(nest) == depth:
            found.append(nest)
    return found


def _only_loop(loop: ir.Operation) -> ir.Operation | None:
    """The loop inside another that has nothing but arithmetic around it."""
    *inside, _ = [op.operation for op in loop.regions[0].blocks[0].operations]
    loops = [op for op in inside if op.name == "scf.for"]
    others = [op for op in inside if op.name != "scf.for"]
    return loops[0] if len(loops) == 1 and all(is_pure(op) and not len(op.regions) for op in others) else None


def _cannot(bodies: list[Body]) -> str:
    """Why a nest is not tiled."""
    if any(constant_of(body.step) is None for body in bodies):
        return "its step is known only at run time"
    if len(bodies) == 1:
        return ""
    if any(body.initial for body in bodies):
        return "it carries a value from one iteration to the next"
    bounds = [bound for body in bodies[1:] for bound in (body.lower, body.upper)]
    if not all(is_invariant(bound, bodies[0].loop) for bound in bounds):
        return "the bounds of an inner loop depend on the index of an outer one"
    found = effects_of(*bodies[-1].operations)
    if found.unknown:
        return f"{found.unknown[0][1]} in its body may write memory or wait for other threads"
    if found.waits:
        return f"{found.waits[0].name} in its body waits for other threads"
    if any(inner.name in _ORDERED for op in bodies[-1].operations for inner in operations(op)):
        return "its body prints or makes asynchronous copies, in order"
    tensor = conflict(accesses_of(*bodies[-1].operations), [body.index for body in bodies], most=1, stores=True)
    return f"iterations may depend on each other through {name_of(tensor)}" if tensor is not None else ""


_ORDERED = ("gpu.printf", "cute.async_commit", "cute.async_wait", "cute.copy")


@dataclass
class _Tiles:
    """The tiles of one loop: how many there are, and where that of a number begins and ends."""

    body: Body
    size: int
    count: ir.Value

    @classmethod
    def of(cls, body: Body, size: int) -> _Tiles:
        """The trip count and the number of tiles, at the insertion point: both as numbers without sign."""
        kind, known = body.index.type, trips_of(body)
        if known is not None:
            return cls(body, size, build.constant(-(-known // size), kind))
        trips, zero, one = trip_count(body), build.constant(0, kind), build.constant(1, kind)
        last = binary("divui", binary("subi", trips, one), build.constant(size, kind))
        some = compare("ult", zero, trips)
        return cls(body, size, build.value("arith.select", kind, (some, binary("addi", last, one), zero)))

    def bounds(self, number: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The bounds of the loop over the iterations of a tile."""
        body, kind = self.body, self.body.index.type
        length = build.constant(int(constant_of(body.step) or 1) * self.size, kind)
        start = binary("addi", body.lower, binary("muli", number, length))
        trips = trips_of(body)
        if trips is not None and trips % self.size == 0:
            return start, binary("addi", start, length)
        whole = compare("ugt", binary("subi", body.upper, start), length)
        return start, build.value("arith.select", kind, (whole, binary("addi", start, length), body.upper))


def _tile(bodies: list[Body], sizes: list[int]) -> None:
    """Put the tiled nest in the place of the nest."""
    first, location = bodies[0], bodies[0].loop.location
    mapping: dict[ir.Value, ir.Value] = {}
    with mlir.ir.InsertionPoint(first.loop), located(lambda: location):
        for op in [op for body in bodies[:-1] for op in body.operations if op.name != "scf.for"]:
            if all(is_invariant(result, first.loop) for result in op.results):
                clone(op, mapping)  # the bounds of the loops inside are computed from such
        for body in bodies:
            body.lower, body.upper, body.step = mapped(mapping, [body.lower, body.upper, body.step])
        tiles = [_Tiles.of(body, size) for body, size in zip(bodies, sizes, strict=True)]
        results = _outer(tiles, [], bodies, mapping, first.initial)
    for old, new in zip(first.loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    first.loop.erase()


def _outer(
    tiles: list[_Tiles],
    numbers: list[ir.Value],
    bodies: list[Body],
    mapping: dict[ir.Value, ir.Value],
    carried: list[ir.Value],
) -> list[ir.Value]:
    """The loops over tiles, from the one after those whose `numbers` are given on."""
    if len(numbers) == len(tiles):
        return _inner(tiles, numbers, bodies, mapping, carried)
    tile = tiles[len(numbers)]
    kind = tile.body.index.type
    zero, one = build.constant(0, kind), build.constant(1, kind)

    def inside(number: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        return _outer(tiles, [*numbers, number], bodies, mapping, values)

    return for_loop(tile.body, (zero, tile.count, one), carried, inside, {"unsignedCmp": build.attribute("unit")})


def _inner(
    tiles: list[_Tiles],
    numbers: list[ir.Value],
    bodies: list[Body],
    mapping: dict[ir.Value, ir.Value],
    carried: list[ir.Value],
) -> list[ir.Value]:
    """The loops over the iterations of a tile, and the bodies."""
    if not tiles:
        return carried
    body, rest = tiles[0].body, tiles[1:]
    low, high = tiles[0].bounds(numbers[0])

    def inside(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        mapping.update({body.index: index, **dict(zip(body.carried, values, strict=True))})
        for op in body.operations:
            if not rest or op.name != "scf.for":
                clone(op, mapping)
        _inner(rest, numbers[1:], bodies, mapping, [])
        return mapped(mapping, body.yielded)

    kept = {name: body.loop.attributes[name] for name in body.loop.attributes if name != "operandSegmentSizes"}
    return for_loop(body, (low, high, body.step), carried, inside, kept)
