"""Reductions of tiles: within a thread, among the lanes of a warp by shuffles, among warps through shared memory.

The order is the same in every run: first a thread's own elements, then lanes by butterflies, then warps in the order of
their numbers. All who held a part hold the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, types, vectors
from tilewright.ir.accessors import number_of, text_of
from tilewright.lang import arch
from tilewright.lang.numbers.numeric import from_mlir_type
from tilewright.passes.rules.values import combiner, tree
from tilewright.targets.nvidia.tiles.block import Block, every, when
from tilewright.targets.nvidia.tiles.distribution import LANE_BITS, Distribution, folded
from tilewright.targets.nvidia.tiles.exchange import row_major

if TYPE_CHECKING:
    from mlir import ir

Combine = Callable[["ir.Value", "ir.Value"], "ir.Value"]


def fold(block: Block, op: ir.Operation, vector: ir.Value, source: Distribution) -> tuple[ir.Value, Distribution]:
    """The elements of a `cute.tile_reduce`, and who holds them."""
    axis, combine = number_of(op, "axis"), combiner(text_of(op, "kind"))
    target = folded(source, [axis])
    dtype = from_mlir_type(vector.type.element_type)
    parts: dict[tuple[int, ...], list[ir.Value]] = {value: [] for value in target.values}
    for number, value in enumerate(source.values):
        kept = tuple(0 if mode == axis else item for mode, item in enumerate(value))
        parts[kept].append(vectors.extract(vector, number))
    found = [tree(items, combine) for items in parts.values()]
    bits = source.bits_along(axis)
    for bit in (bit for bit in bits if bit < LANE_BITS):
        found = [combine(item, _of_lane(item, 1 << bit)) for item in found]
    warps = [bit for bit in bits if bit >= LANE_BITS]
    if warps:
        found = _among_warps(block, op, found, target, warps, combine)
    made = build.value("vector.from_elements", types.vector(len(found), dtype.facts.name), found)
    return made, target


def _of_lane(value: ir.Value, distance: int) -> ir.Value:
    """What the lane at a distance holds."""
    found: ir.Value = arch.shuffle_sync_bfly(from_mlir_type(value.type).from_ir(value), distance).ir_value()
    return found


def _among_warps(
    block: Block,
    op: ir.Operation,
    found: list[ir.Value],
    target: Distribution,
    warps: list[int],
    combine: Combine,
) -> list[ir.Value]:
    """Fold what each warp has found: a row of shared memory for each of them."""
    shape = (1 << len(warps), math.prod(target.shape))
    memory = block.shared(found[0].type, row_major(shape), math.prod(shape))
    dtype = memory.element_type
    places = [_place(block, target, number) for number in range(len(found))]
    alone = _one_of_each_warp(block, target, warps)
    block.meet_again(op)

    def write() -> None:
        for place, value in zip(places, found, strict=True):
            memory[block.number_of(warps), place] = dtype.from_ir(value)

    when(alone, None, write)
    block.meet()
    return [tree([memory[warp, place].ir_value() for warp in range(shape[0])], combine) for place in places]


def _place(block: Block, target: Distribution, number: int) -> Any:
    """Which of the results a thread's value is, counted with the last mode fastest."""
    place: Any = 0
    step = 1
    for mode in reversed(range(len(target.shape))):
        place = place + (block.part(target, mode) + target.values[number][mode]) * step
        step *= target.shape[mode]
    return place


def _one_of_each_warp(block: Block, target: Distribution, warps: list[int]) -> Any:
    """Whether this thread is the first of those in its warp that have found the same."""
    same = [bit for bit, step in enumerate(target.threads) if step is None and bit not in warps]
    mask = sum(1 << bit for bit in same)
    return every([block.thread & mask == 0] if mask else [])
