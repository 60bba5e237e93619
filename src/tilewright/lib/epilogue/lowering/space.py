"""The space of an epilogue: modes through which each of its tensors goes with one stride, in a good order.

The modes of the graph, (L, M, N), are cut where a tensor has several strides in one, those of extent 1 are left out,
and the rest are put into the order in which most bytes lie behind each other. Neighbours through which all tensors step
alike become one. The fastest mode is then the kernel's N, another its M, and what is left its batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.base.errors import EpilogueError
from tilewright.cute import Numeric
from tilewright.lib.epilogue.lowering.op import BITS

Factors = tuple[tuple[int, int], ...]
"""Extents and strides of a mode, slowest first."""


@dataclass(frozen=True)
class Operand:
    """A tensor of an epilogue, on the host.

    Attributes:
        name: of its node.
        dtype: the element type.
        modes: of the graph, (L, M, N), each in factors.
        start: the address of the first element.
        reduced: whether it is the result of a reduction, over the modes along which its strides are 0.
        bits: whether it is a mask of bits: strides count bits, and the kernel takes it as bytes along N.
    """

    name: str
    dtype: type[Numeric]
    modes: tuple[Factors, ...]
    start: int = 0
    reduced: bool = False
    bits: bool = False

    @property
    def element_bytes(self) -> int:
        """The bytes of an element."""
        return max(self.dtype.width // 8, 1)


@dataclass
class Axis:
    """A mode of the space: its extent, and the stride of each operand, by name."""

    extent: int
    strides: dict[str, int]


@dataclass(frozen=True)
class Space:
    """The modes in which a kernel goes through an epilogue's tensors.

    Attributes:
        m: the mode of rows; its extent is 1 where there is only one mode.
        n: the fastest mode.
        batch: the others, the fastest first.
    """

    m: Axis
    n: Axis
    batch: tuple[Axis, ...] = ()
    operands: Mapping[str, Operand] = field(default_factory=dict)

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N, and the product of the batch's extents."""
        return self.m.extent, self.n.extent, math.prod(axis.extent for axis in self.batch)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """M, N and the batch modes, the order in which kernels take tensors."""
        return self.m, self.n, *self.batch

    def strides(self, name: str) -> tuple[int, ...]:
        """The strides of an operand along `axes`; those of the bytes of a mask."""
        found = tuple(axis.strides[name] for axis in self.axes)
        if not self.operands[name].bits:
            return found
        return tuple(1 if axis is self.n else step // BITS for axis, step in zip(self.axes, found, strict=True))

    def shape(self, name: str) -> tuple[int, ...]:
        """The extents of an operand along `axes`; those of the bytes of a mask."""
        bits = self.operands[name].bits
        return tuple(-(-axis.extent // BITS) if bits and axis is self.n else axis.extent for axis in self.axes)

    def moves(self, name: str) -> bool:
        """Whether an operand has an element for each place of the space."""
        return all(axis.strides[name] != 0 or axis.extent == 1 for axis in self.axes)

    def aligned(self, name: str, most: int, along: Axis | None = None) -> int:
        """The most elements, up to `most`, to which the address and the strides of an operand are aligned.

        1 where its elements do not lie behind each other along the mode, N where it is not given.
        """
        operand, along = self.operands[name], self.n if along is None else along
        if along.strides[name] != 1:
            return 1
        others = [axis.strides[name] for axis in self.axes if axis is not along]
        count = most
        while count > 1 and (operand.start % (count * operand.element_bytes) or any(step % count for step in others)):
            count //= 2
        return count


def space_of(operands: Sequence[Operand], shape: Sequence[int], rows_whole: bool = False) -> Space:
    """The space of operands whose modes have the extents `shape`.

    Args:
        operands: the tensors.
        shape: (L, M, N) of the graph.
        rows_whole: whether the last mode of the graph must be N, and nothing but it.

    Raises:
        EpilogueError: two tensors cut a mode where it cannot be cut for both.
    """
    axes = [axis for mode, extent in enumerate(shape) for axis in cut(operands, mode, extent)]
    row = None
    if rows_whole:
        axes += [Axis(1, {op.name: 0 for op in operands})] if shape[-1] == 1 else []
        row = axes[-1]
    if rows_whole and sum(len(op.modes[-1]) > 1 for op in operands):
        raise EpilogueError(
            "A function of whole rows needs rows with one stride.",
            values={op.name: op.modes[-1] for op in operands if len(op.modes[-1]) > 1},
            hint="store a reshaped tensor by a kernel of its own",
        )
    axes = [axis for axis in axes if axis.extent > 1 or axis is row]
    made = _assigned(_merged(_ordered(axes, operands, row), row), operands)
    for operand in operands:
        if operand.bits:
            check_bits(made, operand)
    return made


def check_bits(space: Space, operand: Operand) -> None:
    """Refuse a mask whose bits a kernel cannot take as bytes along N.

    Raises:
        EpilogueError: it shows the strides.
    """
    others = [axis.strides[operand.name] for axis in space.axes if axis is not space.n]
    if space.n.strides[operand.name] != 1 or any(step % BITS for step in others):
        raise EpilogueError(
            f"The bits of {operand.name} do not lie behind each other along rows of the kernel.",
            values={"strides in bits": tuple(axis.strides[operand.name] for axis in space.axes)},
            hint="give a mask whole bytes for each row, and masks of one epilogue the same last mode",
        )


def cut(operands: Sequence[Operand], mode: int, extent: int) -> list[Axis]:
    """The modes, slowest first, into which the operands cut a mode of the graph."""
    ends = {1, extent}
    for operand in operands:
        reach = 1
        for factor, _ in reversed(operand.modes[mode]):
            reach *= factor
            ends.add(reach)
    order = sorted(ends)
    if any(b % a for a, b in itertools.pairwise(order)):
        shown = {op.name: op.modes[mode] for op in operands if len(op.modes[mode]) > 1}
        raise EpilogueError(
            f"The reshapes of {', '.join(shown)} cut a mode of {extent} elements in ways that do not fit together.",
            values={name: f"extents and strides {factors}" for name, factors in shown.items()},
            hint="reshape one of the arrays before the call, where NumPy or PyTorch may copy it",
        )
    return [
        Axis(b // a, {op.name: _stride_at(op.modes[mode], a) for op in operands})
        for a, b in reversed(list(itertools.pairwise(order)))
    ]


def _stride_at(factors: Factors, step: int) -> int:
    """The stride of every `step`-th element of a mode; 0 where the mode has one element."""
    reach = 1
    if all(extent == 1 for extent, _ in factors):
        return 0
    for extent, stride in reversed(factors):
        if step < reach * extent:
            return stride * (step // reach)
        reach *= extent
    return factors[0][1]


def _ordered(axes: Sequence[Axis], operands: Sequence[Operand], row: Axis | None) -> list[Axis]:
    """The modes, slowest first: last the one along which most bytes lie behind each other."""
    if len(axes) < 2:
        return list(axes)

    def weight(axis: Axis) -> int:
        return sum(op.element_bytes for op in operands if axis.strides[op.name] == 1)

    last = row
    if last is None:
        bits = [axis for axis in axes for op in operands if op.bits and axis.strides[op.name] == 1]
        last = bits[0] if bits else max(reversed(list(axes)), key=weight)
    leaders = [op for op in operands if last.strides[op.name] == 1] or list(operands)
    leader = max(leaders, key=lambda op: sum(axis.strides[op.name] != 0 for axis in axes))
    others = [axis for axis in axes if axis is not last]
    order = {id(axis): place for place, axis in enumerate(others)}
    others.sort(key=lambda axis: (-abs(axis.strides[leader.name]), order[id(axis)]))
    return [*others, last]


def _merged(axes: Sequence[Axis], row: Axis | None) -> list[Axis]:
    """Neighbours through which all operands step alike as one."""
    made: list[Axis] = []
    for axis in axes:
        last = made[-1] if made else None
        if last is not None and axis is not row and _follow(last, axis):
            made[-1] = Axis(last.extent * axis.extent, axis.strides)
        else:
            made.append(axis)
    return made


def _follow(outer: Axis, inner: Axis) -> bool:
    return all(outer.strides[name] == step * inner.extent for name, step in inner.strides.items())


def _assigned(axes: Sequence[Axis], operands: Sequence[Operand]) -> Space:
    """Which mode is N, M and which are the batch."""
    still = {op.name: 0 for op in operands}
    by_name = {op.name: op for op in operands}
    if not axes:
        return Space(Axis(1, still), Axis(1, {name: 1 for name in still}), (), by_name)
    *others, last = axes
    if not others:
        return Space(Axis(1, still), last, (), by_name)

    def wish(axis: Axis) -> int:
        """How much is saved when a thread holds several places along a mode.

        Most by reductions, then by tensors whose elements lie behind each other there, then by broadcasts.
        """
        still = [op for op in operands if axis.strides[op.name] == 0 and last.strides[op.name] != 0]
        across = [op for op in operands if axis.strides[op.name] == 1 and last.strides[op.name] > 1]
        return sum(1000 if op.reduced else 1 for op in still) + 10 * sum(op.element_bytes for op in across)

    rows = max(reversed(others), key=wish)
    batch = [axis for axis in reversed(others) if axis is not rows]
    return Space(rows, last, tuple(batch), by_name)
