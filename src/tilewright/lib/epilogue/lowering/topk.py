"""Softmax over the greatest k values of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright.cute as cute
from tilewright.cute import Int32, Numeric
from tilewright.lib.epilogue.lowering.functions import converted
from tilewright.lib.epilogue.lowering.op import EpilogueOp
from tilewright.lib.epilogue.lowering.reductions import store_number_if
from tilewright.lib.epilogue.lowering.tile import ThreadGrid, Tile, both

_BEHIND = (1 << 31) - 1
"""A column behind all others."""

Found = tuple[Any, Any]
"""A value and its column."""


@dataclass(frozen=True)
class TopKSoftmax(EpilogueOp):
    """Softmax over the greatest `k` values of each row, and 0 for the others; rows lie whole in a tile.

    The threads of a row find its greatest value `k` times, each time of those not yet found; of equal values the one of
    the smaller column is found first.
    """

    k: int
    dtype: type[Numeric]
    result: type[Numeric] | None = None
    whole_rows: ClassVar[bool] = True

    def smem_bytes(self, grid: ThreadGrid) -> int:
        count = grid.warps_n * grid.threads_m * grid.rows
        return count * (self.dtype.width // 8 + 4) if grid.warps_n > 1 else 0

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        """Shared memory for what the warps of each row find."""
        grid = tile.grid
        if grid.warps_n == 1:
            return None
        count = grid.warps_n * grid.threads_m * grid.rows
        return tile.shared(self.dtype, count), tile.shared(Int32, count)

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        value = inputs[0].to(self.dtype)
        vector, columns, rows = tile.shape
        made: list[Any] = [None] * (vector * columns * rows)
        for place_r, row in enumerate(tile.row_range):
            places = [(k, c) for c in range(columns) for k in range(vector)]
            line = [value[k, c, place_r] for k, c in places]
            powers = self._row(tile, state, row, line, [self._column(tile, k, c) for k, c in places])
            made[place_r * vector * columns : (place_r + 1) * vector * columns] = powers
        found = cute.TensorSSA.from_elements(made).reshape(tile.shape)
        return found if self.result is None else converted(found, self.result)

    def _column(self, tile: Tile, k: int, place: int) -> Any:
        column = tile.column_range[place]
        return _select(tile.columns_inside[column], Int32(tile.columns[column]) + k, Int32(_BEHIND))

    def _row(self, tile: Tile, state: Any, row: int, line: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
        """The results of the thread's elements of a row."""
        least = self.dtype(-math.inf)
        left = [_select(column != _BEHIND, x, least) for x, column in zip(line, columns, strict=True)]
        zero = self.dtype(0.0)
        first, total = zero, zero
        kept = [Int32(0) for _ in line]
        for turn in range(self.k):
            best = self._best(tile, state, row, list(zip(left, columns, strict=True)))
            first = best[0] if turn == 0 else first
            total = total + _select(best[1] != _BEHIND, cute.math.exp(best[0] - first), zero)
            hits = [column == best[1] for column in columns]
            kept = [_select(hit, Int32(1), old) for hit, old in zip(hits, kept, strict=True)]
            left = [_select(hit, least, x) for hit, x in zip(hits, left, strict=True)]
        return [
            _select(mark != 0, cute.math.exp(x - first) / total, zero) for x, mark in zip(line, kept, strict=True)
        ]  # fmt: skip

    def _best(self, tile: Tile, state: Any, row: int, pairs: list[Found]) -> Found:
        """The greatest of what all threads of the row have, in every one of them."""
        best = _tree(pairs)
        for distance in tile.grid.lanes_n:
            best = _greater(best, tuple(cute.arch.shuffle_sync_bfly(item, distance) for item in best))
        if state is None:
            return best
        warps = tile.grid.warps_n
        line = tile.local_rows[row] * warps
        lead = tile.leads(False, True)
        tile.sync()  # what the last turn left is read
        for shared, item in zip(state, best, strict=True):
            store_number_if(lead, shared, line + tile.warp(False, True), item)
        tile.sync()
        return _tree([(state[0][line + warp], state[1][line + warp]) for warp in range(warps)])


def _tree(pairs: list[Found]) -> Found:
    while len(pairs) > 1:
        folded = [_greater(a, b) for a, b in zip(pairs[::2], pairs[1::2], strict=False)]
        pairs = folded + pairs[len(pairs) // 2 * 2 :]
    return pairs[0]


def _greater(a: Found, b: Any) -> Found:
    wins = (b[0] > a[0]) | both(b[0] == a[0], b[1] < a[1])
    return _select(wins, b[0], a[0]), _select(wins, b[1], a[1])


@cute.jit
def _select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b
