"""Loops of many turns that are to be unrolled in full, as two loops in each other.

LLVM takes time that grows with the square of the turns that it unrolls at once. It begins with the innermost loop, so
that two loops of 250 and 256 turns cost it what their instructions do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tilewright.ir import build, mlir
from tilewright.ir.accessors import constant_of
from tilewright.ir.context import located
from tilewright.passes.loop_bodies import Body, clone, mapped
from tilewright.passes.loop_building import binary, for_loop
from tilewright.passes.loop_counts import trips_of

if TYPE_CHECKING:
    from mlir import ir

MOST: Final = 1024
"""Turns of a loop that is unrolled at once."""
SIZE: Final = 256
"""Turns of the inner loops that longer ones become."""


def split(loop: ir.Operation) -> None:
    """Put two or three loops in the place of an `scf.for` of more than `MOST` turns; they have its attributes."""
    body = Body(loop)
    trips, lower, step = trips_of(body), constant_of(body.lower), constant_of(body.step)
    if trips is None or lower is None or step is None or trips <= MOST:
        return
    with mlir.ir.InsertionPoint(loop), located(lambda: loop.location):
        loops = _Loops(body, int(step))
        results = loops.whole(int(lower) + int(step) * (trips - trips % SIZE))
        if trips % SIZE:
            results = loops.rest(results)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


class _Loops:
    """The loops that stand for one, made at the insertion point."""

    def __init__(self, body: Body, step: int) -> None:
        self.body = body
        self.kind = body.index.type
        self.width = step * SIZE
        self.kept = {name: body.loop.attributes[name] for name in body.loop.attributes if name != "operandSegmentSizes"}

    def whole(self, end: int) -> list[ir.Value]:
        """The loop over groups of `SIZE` turns, which end before index `end`, around one over the turns of a group."""
        self.end = build.constant(end, self.kind)
        bounds = self.body.lower, self.end, build.constant(self.width, self.kind)
        return for_loop(self.body, bounds, self.body.initial, self._group, self.kept)

    def rest(self, carried: list[ir.Value]) -> list[ir.Value]:
        """The loop over the turns that are left."""
        return for_loop(self.body, (self.end, self.body.upper, self.body.step), carried, self._turn, self.kept)

    def _group(self, first: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        bounds = build.constant(0, self.kind), build.constant(self.width, self.kind), self.body.step

        def turn(past: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            return self._turn(binary("addi", first, past), values)

        return for_loop(self.body, bounds, carried, turn, self.kept)

    def _turn(self, index: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        mapping = {self.body.index: index, **dict(zip(self.body.carried, carried, strict=True))}
        for op in self.body.operations:
            clone(op, mapping)
        return mapped(mapping, self.body.yielded)
