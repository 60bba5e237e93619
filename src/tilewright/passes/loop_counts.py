"""Which iterations of an `scf.for` come: indices and conditions as operations, numbers where bounds are constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import constant_of
from tilewright.passes.loop_bodies import Body
from tilewright.passes.loop_building import binary, compare, less

if TYPE_CHECKING:
    from mlir import ir


def trips_of(body: Body) -> int | None:
    """How often a loop over constant bounds runs; None where one is known only at run time."""
    bounds = [constant_of(bound) for bound in (body.lower, body.upper, body.step)]
    numbers = [int(bound) for bound in bounds if bound is not None]
    if len(numbers) < 3 or numbers[2] <= 0 or ("unsignedCmp" in body.loop.attributes and min(numbers) < 0):
        return None
    return len(range(*numbers))


def trip_count(body: Body) -> ir.Value:
    """How often a loop runs, as a number without sign."""
    kind, trips = body.index.type, trips_of(body)
    if trips is not None:
        return build.constant(trips, kind)
    zero, one = build.constant(0, kind), build.constant(1, kind)
    some = compare(less(body.loop), body.lower, body.upper)
    last = binary("divui", binary("subi", binary("subi", body.upper, body.lower), one), body.step)
    return build.value("arith.select", kind, (some, binary("addi", last, one), zero))


class Counter:
    """Which iterations come, without overflow: distances to the upper bound are compared, without sign."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.type = body.index.type
        self.step = int(constant_of(body.step) or 0)
        self.trips = trips_of(body)

    def comes(self, iteration: int) -> ir.Value | bool:
        """Whether there is an iteration of this number."""
        if self.trips is not None:
            return iteration < self.trips
        some = compare(less(self.body.loop), self.body.lower, self.body.upper)
        if iteration == 0:
            return some
        return binary("andi", some, self.comes_after(self.body.lower, iteration))

    def comes_after(self, index: ir.Value, iterations: int) -> ir.Value:
        """Whether there is an iteration so many after that of `index`."""
        if not self._fits(iterations):
            return build.constant(0, types.parse("i1"))
        distance = binary("subi", self.body.upper, index)
        return compare("ugt", distance, build.constant(self.step * iterations, self.type))

    def later(self, index: ir.Value, iterations: int) -> ir.Value:
        """The index so many iterations later."""
        if iterations == 0 or not self._fits(iterations):
            return index
        if index == self.body.lower and self.trips is not None:
            return build.constant(int(constant_of(index) or 0) + self.step * iterations, self.type)
        return binary("addi", index, build.constant(self.step * iterations, self.type))

    def whole_turns(self, left: int, times: int) -> ir.Value:
        """Where a loop of step 1 that does `times` iterations in one ends, so that at least `left` are left."""
        if self.trips is not None:
            return self.later(self.body.lower, max(self.trips - left, 0) // times * times)
        room = binary("subi", binary("subi", self.body.upper, self.body.lower), build.constant(left, self.type))
        size = build.constant(times, self.type)
        whole = binary("addi", self.body.lower, binary("muli", binary("divui", room, size), size))
        return build.value("arith.select", self.type, (self.comes(left), whole, self.body.lower))

    def _fits(self, iterations: int) -> bool:
        width = 64 if isinstance(self.type, mlir.ir.IndexType) else self.type.width
        return self.step * iterations < 1 << width
