"""Reductions over rows, columns or both, also over the batch: what a thread, a warp, a block and all blocks fold.

A thread folds what it has into accumulators; at the end lanes fold by shuffles, warps through shared memory, all in an
order that is always the same. What a block has then goes

* to the result, where no other block has a part of it (`DIRECT`);
* to a workspace of partial results, which a second pass folds (`second_pass`), also in a fixed order (`PARTIALS`);
* by atomic operations into the result, which begins with the neutral number (`ATOMIC`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.lib.epilogue.lowering.folds import Fold
from tilewright.lib.epilogue.lowering.functions import converted
from tilewright.lib.epilogue.lowering.op import EpilogueOp, View, of_batch
from tilewright.lib.epilogue.lowering.tile import ThreadGrid, Tile, both

DIRECT, PARTIALS, ATOMIC = "direct", "partials", "atomic"


@dataclass(frozen=True)
class ReductionStore(EpilogueOp):
    """A reduction into a tensor, which hands its input on unchanged.

    Attributes:
        view: the result, with stride 0 along what is reduced.
        fold: what is computed.
        over_m: whether rows are reduced.
        over_n: whether columns are.
        over_l: which batch modes are.
        way: `DIRECT`, `PARTIALS` or `ATOMIC`. For `PARTIALS` the second tensor is the workspace (kept, batch, parts),
            where `kept` counts the rows or columns that are not reduced; the batch is whole.
    """

    view: View
    fold: Fold
    over_m: bool
    over_n: bool
    over_l: tuple[bool, ...]
    way: str = PARTIALS

    @property
    def views(self) -> tuple[View, ...]:
        workspace = View(self.fold.dtype, 1, None, (None,))  # (kept, batch, parts)
        return (self.view, workspace) if self.way == PARTIALS else (self.view,)

    def workspace(self, extents: Sequence[int], parts_m: int, parts_n: int) -> tuple[int, int, int]:
        """The shape (kept, batch, parts) of the workspace for extents (M, N, L) and so many parts along M and N.

        Its strides rise in this order.
        """
        m, n, batch = extents
        kept = (1 if self.over_m else m) * (1 if self.over_n else n)
        return kept, batch, (parts_m if self.over_m else 1) * (parts_n if self.over_n else 1)

    def smem_bytes(self, grid: ThreadGrid) -> int:
        warps = (grid.warps_m if self.over_m else 1) * (grid.warps_n if self.over_n else 1)
        return warps * self._kept_of_tile(grid) * self.fold.dtype.width // 8 if warps > 1 else 0

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        """Accumulators of the thread, the tensors, and shared memory where warps fold."""
        grid = tile.grid
        shape = (
            1 if self.over_n else grid.vector,
            1 if self.over_n else grid.columns,
            1 if self.over_m else grid.rows,
        )
        sums = cute.make_rmem_tensor(shape, self.fold.dtype)
        sums.fill(self.fold.neutral)
        warps = tile.warps(self.over_m, self.over_n)
        shared = tile.shared(self.fold.dtype, warps * self._kept_of_tile(grid)) if warps > 1 else None
        return sums, tuple(tensors), shared

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        """Fold the step's value into the accumulators."""
        sums = state[0]
        value = inputs[0] if inputs[0].dtype is self.fold.dtype else inputs[0].to(self.fold.dtype)
        groups: dict[tuple[int, int, int], list[Any]] = {}
        for place_r, row in enumerate(tile.row_range):
            for place_c, column in enumerate(tile.column_range):
                for k in range(tile.grid.vector):
                    number = value[k, place_c, place_r]
                    number = _or_neutral(tile.inside(row, column), number, self.fold.neutral)
                    place = (0, 0) if self.over_n else (k, column)
                    groups.setdefault((*place, 0 if self.over_m else row), []).append(number)
        for kept, numbers in groups.items():
            sums[kept] = self.fold(sums[kept], self.fold.tree(numbers))
        return inputs[0]

    def end_loop(self, tile: Tile, state: Any, value: Any) -> None:
        """Rows that a walk leaves behind are finished."""
        if tile.walks and not self.over_m:
            self._finish(tile, state)
            state[0].fill(self.fold.neutral)

    def end(self, tile: Tile, state: Any) -> None:
        if not tile.walks or self.over_m:
            self._finish(tile, state)

    # What the accumulators give

    def _kept_of_tile(self, grid: ThreadGrid) -> int:
        return (1 if self.over_m else grid.tile_m) * (1 if self.over_n else grid.tile_n)

    def _finish(self, tile: Tile, state: Any) -> None:
        sums, tensors, shared = state
        if shared is not None:
            tile.sync()  # what was there before is read
        for place, row, column in self._places(tile):
            number = tile.folded(sums[place], self.over_m, self.over_n, self.fold)
            if shared is None:
                self._write_of_warp(tile, tensors, row, column, place[0], number)
            else:
                self._share(tile, shared, row, column, place[0], number)
        if shared is not None:
            tile.sync()
            self._fold_warps(tile, tensors, shared)

    def _write_of_warp(self, tile: Tile, tensors: Any, row: Any, column: Any, k: int, number: Any) -> None:
        inside = tile.leads(self.over_m, self.over_n)
        inside = inside if row is None else both(inside, tile.rows_inside[row])
        inside = inside if column is None else both(inside, tile.columns_inside[column])
        m, n = 0 if row is None else tile.rows[row], 0 if column is None else tile.columns[column] + k
        self._write(inside, tile, tensors, m, n, number)

    def _share(self, tile: Tile, shared: Any, row: Any, column: Any, k: int, number: Any) -> None:
        """Leave what the warp has in shared memory, with all of other warps behind it."""
        place = 0 if row is None else tile.local_rows[row]
        place = place if column is None else tile.local_columns[column] + k
        slot = tile.warp(self.over_m, self.over_n) * self._kept_of_tile(tile.grid) + place
        store_number_if(tile.leads(self.over_m, self.over_n), shared, slot, number)

    def _places(self, tile: Tile) -> list[tuple[tuple[int, int, int], int | None, int | None]]:
        """The places of the accumulators, each with its row and column of the thread."""
        grid = tile.grid
        return [
            ((k, column or 0, row or 0), row, column)
            for row in ([None] if self.over_m else range(grid.rows))
            for column in ([None] if self.over_n else range(grid.columns))
            for k in range(1 if self.over_n else grid.vector)
        ]

    def _fold_warps(self, tile: Tile, tensors: Any, shared: Any) -> None:
        """Each thread folds what the warps have of some rows or columns of the tile."""
        kept, warps = self._kept_of_tile(tile.grid), tile.warps(self.over_m, self.over_n)
        m, n = tile.extents[:2]
        for first in range(0, kept, tile.grid.threads):
            local = tile.thread + first
            inside = local < kept if kept - first < tile.grid.threads else True
            read = cute.math.min(local, kept - 1)
            number = self.fold.tree([shared[warp * kept + read] for warp in range(warps)])
            row = 0 if self.over_m else tile.place.m + local
            column = 0 if self.over_n else tile.place.n + local
            inside = both(inside, True if self.over_m else row < m)
            inside = both(inside, True if self.over_n else column < n)
            self._write(inside, tile, tensors, row, column, number)

    def _write(self, condition: Any, tile: Tile, tensors: Any, row: Any, column: Any, number: Any) -> None:
        place = tile.place
        if self.way == PARTIALS:
            part = 0
            if self.over_m:
                part = place.part_m
            if self.over_n:
                part = part * place.parts_n + place.part_n
            kept = column if self.over_m else row if self.over_n else cute.Int64(row) * tile.extents[1] + column
            store_number_if(condition, tensors[1], (kept, place.batch, part), number)
            return
        result = of_batch(tensors[0], place.batch)
        pointer = result.iterator + row * result.stride[0] + column * result.stride[1]
        if self.way == ATOMIC:
            _fold_if(condition, pointer, number, self.fold)
        else:
            store_number_if(condition, cute.make_tensor(pointer, 1), 0, as_stored(number, self.view.dtype))


def as_stored(number: Any, dtype: Any) -> Any:
    """A number as an element of a tensor of `dtype`, by the rules of `converted`."""
    if type(number) is dtype:
        return number
    return converted(cute.full(1, number, type(number)), dtype)[0]


@cute.jit
def _or_neutral(condition: Any, number: Any, neutral: Any) -> Any:
    return number if condition else neutral


@cute.jit
def store_number_if(condition: Any, tensor: Any, place: Any, number: Any) -> None:
    """Write a number to a place where the condition, a `Boolean` or True, holds."""
    if condition:
        tensor[place] = number


@cute.jit
def _fold_if(condition: Any, pointer: Any, number: Any, fold: cutlass.Constexpr[Fold]) -> None:
    if condition:
        fold.into_memory(pointer, number)
