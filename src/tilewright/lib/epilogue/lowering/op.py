"""The base of epilogue operations, and what is compiled in of their tensors.

The order of the hooks, which `compose.EpilogueMixin` calls for all operations of an epilogue:

    begin(tile)                      once for each tile, or for each walk over tiles
        begin_loop(step)             for each step: begin to load
        visit(step)                  compute; where all loads of a step stand before its computations, they overlap
        end_loop(step)               write
    end(tile)                        fold over threads and write what was folded

A step is a tile, or a part of one (`Tile.step`). A kernel may call `begin_loop` of later steps before `visit` of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright.cute as cute
from tilewright.cute import Numeric
from tilewright.lib.epilogue.lowering.tile import ThreadGrid, Tile

BITS = 8  # of a byte of a mask
Step = int | None
"""A stride that is compiled in: 0, 1, or None for one known at run time."""


@dataclass(frozen=True)
class View:
    """What is compiled in of a tensor that is seen as (M, N, batch modes...).

    Attributes:
        dtype: the element type.
        step_m: the stride along M.
        step_n: the stride along N.
        steps_l: the strides of the batch modes, the fastest first.
        align: to how many elements the address and all strides but that of accesses are aligned.
        across: whether accesses go along M, where the rows of a thread follow each other (`ThreadGrid.rows_follow`),
            not along N.
    """

    dtype: type[Numeric]
    step_m: Step
    step_n: Step
    steps_l: tuple[Step, ...] = ()
    align: int = 1
    across: bool = False

    @property
    def bytes(self) -> int:
        """The alignment in bytes."""
        return max(self.align * max(self.dtype.width, 8) // 8, 1)

    def fake(self, extents: Sequence[Any]) -> Any:
        """A tensor to compile for, with these extents, symbols or numbers, along M, N and the batch modes."""
        steps = [
            cute.sym_int64(divisibility=self.align if self.across or self.step_n == 1 else 1) if step is None else step
            for step in (self.step_m, self.step_n, *self.steps_l)
        ]
        return cute.runtime.make_fake_tensor(self.dtype, tuple(extents), stride=tuple(steps), assumed_align=self.bytes)


@dataclass(frozen=True)
class EpilogueOp:
    """An operation of an epilogue: what is compiled in of it; equal operations give equal code.

    Attributes:
        name: of its node.
        inputs: the names of the operations whose values it takes, in order.
    """

    name: str
    inputs: tuple[str, ...]

    # On the host

    whole_rows: ClassVar[bool] = False
    """Whether it needs tiles that have whole rows of the problem."""
    counts_bits: ClassVar[bool] = False
    """Whether its tensor has a bit for each element: bytes along N."""

    @property
    def views(self) -> tuple[View, ...]:
        """Its tensors, in the order in which a kernel takes them."""
        return ()

    @property
    def numbers(self) -> tuple[type[Numeric], ...]:
        """Its numbers of run time, in the order in which a kernel takes them."""
        return ()

    def smem_bytes(self, grid: ThreadGrid) -> int:
        """The bytes of shared memory that it takes beside what the kernel has."""
        return 0

    # On the device

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        """Begin a tile with its tensors and numbers; what comes back is the `state` of the other hooks."""
        return tensors

    def begin_loop(self, tile: Tile, state: Any) -> Any:
        """Begin to load what a step needs; what comes back is what `visit` gets as `fetched`."""
        return None

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        """The value of a step, a `TensorSSA` of the tile's `shape`, from those of its inputs."""
        raise NotImplementedError

    def end_loop(self, tile: Tile, state: Any, value: Any) -> None:
        """Write what a step gave."""

    def end(self, tile: Tile, state: Any) -> None:
        """Write what a tile, or a walk over tiles, gave."""


def of_batch(tensor: Any, batch: Any) -> Any:
    """The tensor (M, N) of a batch of a tensor (M, N, batch modes)."""
    return tensor[None, None, batch] if cute.rank(tensor) > 2 else tensor


def aligned(pointer: Any, view: View, count: int) -> Any:
    """`count` elements that follow each other at a pointer, which is as aligned as the view says."""
    return cute.make_tensor(pointer.with_alignment(view.bytes), cute.make_layout(count))
