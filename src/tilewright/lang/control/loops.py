"""`for` and `while` loops of run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, mlir
from tilewright.lang import leaves
from tilewright.lang.control import blocks
from tilewright.lang.control.loop_carried import CarriedPlace, LoopState
from tilewright.lang.control.ranges import range as Range
from tilewright.lang.control.trip_count import Counter, counter
from tilewright.lang.control.variables import MISSING, Place
from tilewright.lang.numbers import arithmetic

if TYPE_CHECKING:
    from mlir import ir


def attributes(loop: Range, unsigned: bool) -> Mapping[str, ir.Attribute]:
    """The options of `cutlass.range` as attributes of the `scf.for`."""
    found: dict[str, ir.Attribute] = {}
    if unsigned:
        found["unsignedCmp"] = build.attribute("unit")
    if not leaves.is_dynamic(loop.unroll) and loop.unroll >= 1:
        found["tilewright.unroll"] = build.i32(int(loop.unroll))
    if loop.unroll_full:
        found["tilewright.unroll_full"] = build.attribute("unit")
    if loop.prefetch_stages is not None:
        found["tilewright.prefetch_stages"] = build.i32(int(loop.prefetch_stages))
    if loop.vectorize:
        found["tilewright.vectorize"] = build.attribute("unit")
    return found


def run_for(loop: Range, state: LoopState, targets: Sequence[str], body: Callable[[Any], object]) -> None:
    """Trace a `for` over a range of run time; `targets` are the names that its head assigns."""
    count = counter(loop)
    _adapt_targets(state, targets, count.dtype)
    initial = state.initial()
    op = blocks.new_for(count.bounds, initial, attributes(loop, count.unsigned))
    with blocks.provisional(op):
        _trace_for(op, count, state, initial, body)


def _trace_for(
    op: ir.Operation, count: Counter, state: LoopState, initial: Sequence[ir.Value], body: Callable[[Any], object]
) -> None:
    block = op.regions[0].blocks[0]
    induction, *arguments = block.arguments
    with blocks.inside(block):
        state.enter(arguments)
        body(count.index(induction))
        born = _Born(state.born if count.trips else [])  # only where the body surely runs
        yielded = state.leave()
    changed = _changed(yielded, arguments, initial)
    results = blocks.finish_for(op, yielded, changed, born.initial(), born.values)
    state.finish(results[: len(initial)], changed)
    born.finish(results[len(initial) :])


def run_while(state: LoopState, test: Callable[[], ir.Value], body: Callable[[], object]) -> None:
    """Trace a `while`; `test` gives its condition as an i1."""
    initial = state.initial()
    op = blocks.new_while(initial)
    with blocks.provisional(op):
        _trace_while(op, state, initial, test, body)


def _trace_while(
    op: ir.Operation,
    state: LoopState,
    initial: Sequence[ir.Value],
    test: Callable[[], ir.Value],
    body: Callable[[], object],
) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    with blocks.inside(before):
        state.enter(before.arguments)
        condition = test()
        born = _Born(state.born)  # the test runs at least once
        passed = state.leave()
    tested = _changed(passed, before.arguments, initial)
    arguments = list(after.arguments)
    with blocks.inside(after):
        state.enter(arguments)
        born.finish([after.add_argument(value.type, op.location) for value in born.values])
        body()
        yielded = state.leave()
    looped = _changed(yielded, arguments, initial)
    # The test may change a value too, and its last run is after the last body.
    changed = [a or b for a, b in zip(tested, looped, strict=True)]
    results = blocks.finish_while(op, condition, passed, yielded, changed, born.values)
    state.finish(results[: len(initial)], changed)
    born.finish(results[len(initial) :])


def _adapt_targets(state: LoopState, targets: Sequence[str], dtype: Any) -> None:
    """A Python number in a loop variable takes the type of the index."""
    for item in state.carried:
        if isinstance(item, CarriedPlace) and item.name in targets and isinstance(item.before, int):
            item.structure = leaves.Number(dtype)


def _changed(values: Sequence[ir.Value], arguments: Sequence[ir.Value], initial: Sequence[ir.Value]) -> list[bool]:
    """Which values differ between iterations: not handed through, and not the constant that they were before."""
    return [
        value not in (argument, before) and not _same_constant(value, before)
        for value, argument, before in zip(values, arguments, initial, strict=True)
    ]


def _same_constant(a: ir.Value, b: ir.Value) -> bool:
    first, second = a.owner, b.owner
    if getattr(first, "name", "") != "arith.constant" or getattr(second, "name", "") != "arith.constant":
        return False
    return bool(first.attributes["value"] == second.attributes["value"])


class _Born:
    """Variables that get their first value in a body which surely runs; they live on after the loop."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.parts: list[tuple[Place, leaves.Structure, int]] = []
        self.values: list[ir.Value] = []
        for place in places:
            value = place.get()
            if value is MISSING or not (found := _machine_numbers(value)):
                continue
            self.parts.append((place, leaves.structure_of(value), len(found)))
            self.values += found

    def initial(self) -> list[ir.Value]:
        """Values that nobody reads, for the operand list of the loop."""
        return [arithmetic.constant(0, value.type) for value in self.values]

    def finish(self, results: Sequence[ir.Value]) -> None:
        remaining = iter(results)
        for place, structure, _ in self.parts:
            place.set(structure.build(remaining))


def _machine_numbers(value: Any) -> list[ir.Value]:
    """The leaves of a value when all are integers or floats, else none."""
    structure = leaves.structure_of(value)
    found = structure.values(value)
    kinds = (mlir.ir.IntegerType, mlir.ir.FloatType, mlir.ir.VectorType)
    return found if all(isinstance(leaf.type, kinds) for leaf in found) else []
