"""Epilogues: operations in order, composed into the hooks that a kernel calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilewright.cute as cute
from tilewright.lib.epilogue.lowering.op import EpilogueOp, View
from tilewright.lib.epilogue.lowering.reductions import PARTIALS, ReductionStore
from tilewright.lib.epilogue.lowering.second_pass import launch_second_pass
from tilewright.lib.epilogue.lowering.tile import ThreadGrid, Tile


class EpilogueMixin:
    """The hooks of a kernel with an epilogue, from its `ops`, each after those whose values it takes.

    A kernel takes the epilogue as a `Constexpr`, and a tuple of what `views` and `numbers` name, in this order.
    """

    ops: tuple[EpilogueOp, ...]

    # On the host

    @property
    def views(self) -> tuple[View, ...]:
        """The tensors of all operations."""
        return tuple(view for op in self.ops for view in op.views)

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The types of the numbers of all operations."""
        return tuple(dtype for op in self.ops for dtype in op.numbers)

    @property
    def reductions(self) -> tuple[ReductionStore, ...]:
        """The reductions."""
        return tuple(op for op in self.ops if isinstance(op, ReductionStore))

    @property
    def whole_rows(self) -> bool:
        """Whether an operation needs tiles that have whole rows of the problem."""
        return any(op.whole_rows for op in self.ops)

    def fake_arguments(self) -> tuple[Any, ...]:
        """The arguments of a kernel to compile for: tensors of any extents, and numbers."""
        modes = max((len(op.views[0].steps_l) for op in self.ops if op.views), default=0)
        m, n, *batch = (cute.sym_int64() for _ in range(2 + modes))
        tensors = []
        for op in self.ops:
            extents = [m, cute.sym_int64() if op.counts_bits else n, *batch]
            for place, view in enumerate(op.views):
                own = extents[: 2 + len(view.steps_l)] if place == 0 else [cute.sym_int64() for _ in range(3)]
                tensors.append(view.fake(own))
        return (*tensors, *(dtype(1) for dtype in self.numbers))

    def smem_bytes(self, grid: ThreadGrid) -> int:
        """The bytes of shared memory that the operations take in a kernel with this grid of threads."""
        return sum(-(-op.smem_bytes(grid) // 16) * 16 for op in self.ops)

    # On the device

    def begin(self, tile: Tile, arguments: Sequence[Any]) -> list[Any]:
        """Begin a tile, or a walk over tiles: the states of the operations, for the other hooks."""
        return [op.begin(tile, mine) for op, mine in zip(self.ops, self._dealt(arguments), strict=True)]

    def begin_loop(self, tile: Tile, states: Sequence[Any]) -> list[Any]:
        """Begin to load what a step needs; `visit` takes what comes back."""
        return [op.begin_loop(tile, state) for op, state in zip(self.ops, states, strict=True)]

    def visit(self, tile: Tile, states: Sequence[Any], fetched: Sequence[Any]) -> list[Any]:
        """The values of a step, one of each operation; `end_loop` takes them."""
        values: dict[str, Any] = {}
        for op, state, mine in zip(self.ops, states, fetched, strict=True):
            values[op.name] = op.visit(tile, state, mine, [values[name] for name in op.inputs])
        return list(values.values())

    def end_loop(self, tile: Tile, states: Sequence[Any], values: Sequence[Any]) -> None:
        """Write what a step gave."""
        for op, state, value in zip(self.ops, states, values, strict=True):
            op.end_loop(tile, state, value)

    def end(self, tile: Tile, states: Sequence[Any]) -> None:
        """Write what a tile, or a walk over tiles, gave."""
        for op, state in zip(self.ops, states, strict=True):
            op.end(tile, state)

    # In the host's function, around the launch of the kernel

    def grouped(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with the batch modes of each tensor (M, N, batch modes...) grouped into one mode."""
        count = len(self.views)
        tensors = (
            tensor if cute.rank(tensor) < 3 else cute.group_modes(tensor, 2, cute.rank(tensor))
            for tensor in arguments[:count]
        )
        return (*tensors, *arguments[count:])

    def finish(self, arguments: Sequence[Any]) -> None:
        """Launch the second passes of reductions whose blocks left partial results."""
        for op, mine in zip(self.ops, self._dealt(arguments), strict=True):
            if isinstance(op, ReductionStore) and op.way == PARTIALS:
                launch_second_pass(mine[0], mine[1], op)

    def _dealt(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The arguments of each operation: its tensors, then its numbers."""
        tensors, numbers = iter(arguments[: len(self.views)]), iter(arguments[len(self.views) :])
        return [
            (*(next(tensors) for _ in op.views), *(next(numbers) for _ in op.numbers))
            for op in self.ops
        ]  # fmt: skip


@dataclass(frozen=True)
class Epilogue(EpilogueMixin):
    """An epilogue; equal ones give equal code, so that it is its own key of caches."""

    ops: tuple[EpilogueOp, ...]
