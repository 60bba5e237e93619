"""A tile from one distribution to another: values that a thread already has are picked, else through shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import vectors
from tilewright.layout import Layout
from tilewright.targets.nvidia.tiles.access import Window, put_all, take_all
from tilewright.targets.nvidia.tiles.assignment import GROUP_BYTES
from tilewright.targets.nvidia.tiles.block import Block, when
from tilewright.targets.nvidia.tiles.distribution import Distribution

if TYPE_CHECKING:
    from mlir import ir

    from tilewright.lang.tensors.tensor import Tensor


def row_major(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> Layout:
    """The compact layout whose last mode, or the last of `order`, is contiguous."""
    strides, step = [0] * len(shape), 1
    for mode in reversed(order or tuple(range(len(shape)))):
        strides[mode] = step
        step *= shape[mode]
    return Layout(shape if len(shape) > 1 else shape[0], tuple(strides) if len(shape) > 1 else strides[0])


def converted(block: Block, op: ir.Operation, vector: ir.Value, source: Distribution, target: Distribution) -> ir.Value:
    """The elements of a tile as `target` has them. `op` is what needs them."""
    if source == target:
        return vector
    if source.threads == target.threads and set(target.values) <= set(source.values):
        return vectors.shuffle(vector, [source.values.index(value) for value in target.values])
    element, count = vector.type.element_type, 1
    for extent in source.shape:
        count *= extent
    memory = block.shared(element, row_major(source.shape), count)
    block.meet_again(op)
    write(block, memory, vector, source)
    block.meet()
    return take_all(_window(block, memory, target))


def write(block: Block, memory: Tensor, vector: ir.Value, held: Distribution) -> None:
    """A tile to shared memory of its shape; of those who hold the same, one writes."""
    seen, first = _window(block, memory, held), block.first_of_copies(held)
    when(True if first is None else first, None, lambda: put_all(seen, vector))


def _window(block: Block, memory: Tensor, held: Distribution) -> Window:
    strides = memory.stride if isinstance(memory.stride, tuple) else (memory.stride,)
    fast = next((mode for mode, step in enumerate(strides) if step == 1), len(held.shape) - 1)
    most = max(GROUP_BYTES * 8 // memory.element_type.width, 1)
    return Window(block, memory, [0] * len(held.shape), held, fast, held.run(fast, most))
