"""Operations that write values out: stores of tensors, and of masks of bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute import Uint32
from tilewright.lib.epilogue.lowering.functions import converted
from tilewright.lib.epilogue.lowering.op import BITS, EpilogueOp, View, aligned, of_batch
from tilewright.lib.epilogue.lowering.tile import Tile, both


@dataclass(frozen=True)
class NoStore(EpilogueOp):
    """A value that gets a name, and is no output."""

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        return inputs[0]


@dataclass(frozen=True)
class TensorStore(EpilogueOp):
    """A tensor of outputs, which hands its value on unchanged."""

    view: View

    @property
    def views(self) -> tuple[View, ...]:
        return (self.view,)

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        return of_batch(tensors[0], tile.place.batch)

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        return inputs[0]

    def _store_across(self, tile: Tile, state: Any, value: Any) -> None:
        """Write by accesses along M."""
        vector, columns, rows = tile.shape
        held = cute.make_rmem_tensor((rows, vector, columns), self.view.dtype)
        seen = cute.make_layout((vector, columns, rows), stride=(rows, rows * vector, 1))
        cute.make_tensor(held.iterator, seen).store(converted(value, self.view.dtype))
        first = tile.row_range[0]
        for place, column in enumerate(tile.column_range):
            line = state.iterator + tile.rows[first] + tile.columns[column] * state.stride[1]
            for k in range(vector):
                target = aligned(line + k * state.stride[1], self.view, rows)
                copy_if(tile.inside(first, column), held[None, k, place], target)

    def end_loop(self, tile: Tile, state: Any, value: Any) -> None:
        if self.view.across:
            self._store_across(tile, state, value)
            return
        held = cute.make_rmem_tensor(tile.shape, self.view.dtype)
        held.store(converted(value, self.view.dtype))
        step_m, step_n = state.stride
        for place_r, row in enumerate(tile.row_range):
            line = state.iterator + tile.rows[row] * step_m
            for place_c, column in enumerate(tile.column_range):
                if self.view.step_n == 1:
                    target = aligned(line + tile.columns[column], self.view, tile.grid.vector)
                else:
                    first = line + tile.columns[column] * step_n
                    target = cute.make_tensor(first, cute.make_layout(tile.grid.vector, stride=step_n))
                copy_if(tile.inside(row, column), held[None, place_c, place_r], target)


@dataclass(frozen=True)
class MaskStore(EpilogueOp):
    """A mask of bits: bit n % 8 of byte n // 8 of a row is whether element n of the value is not 0.

    Bytes, seen as a tensor (M, N / 8, ...) with stride 1 along them; bits behind the end of a row are 0.
    """

    view: View
    counts_bits: ClassVar[bool] = True

    @property
    def views(self) -> tuple[View, ...]:
        return (self.view,)

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        return of_batch(tensors[0], tile.place.batch)

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        return inputs[0]

    def end_loop(self, tile: Tile, state: Any, value: Any) -> None:
        width = tile.grid.vector
        truths = value if value.dtype is cute.Boolean else value != 0
        for place_r, row in enumerate(tile.row_range):
            line = state.iterator + tile.rows[row] * state.stride[0]
            for place_c, column in enumerate(tile.column_range):
                found = [truths[k, place_c, place_r] for k in range(width)]
                first = line + tile.columns[column] // BITS
                if width >= BITS:
                    inside = tile.inside(row, column)
                    for byte in range(width // BITS):
                        _write_byte(inside, first, byte, _packed(found[byte * BITS : (byte + 1) * BITS]))
                    continue
                place = tile.columns[column] % BITS
                mine = _zero_unless(tile.columns_inside[column], _packed(found) << Uint32(place))
                for distance in tile.grid.lanes_n[: (BITS // width).bit_length() - 1]:
                    mine = mine | cute.arch.shuffle_sync_bfly(mine, distance)
                _write_byte(both(tile.inside(row, column), place == 0), first, 0, mine)


def _packed(truths: Sequence[Any]) -> Any:
    bits = Uint32(0)
    for place, truth in enumerate(truths):
        bits = bits | (Uint32(truth) << place)
    return bits


@cute.jit
def _write_byte(condition: Any, pointer: Any, offset: cutlass.Constexpr[int], bits: Any) -> None:
    if condition:
        cute.make_tensor(pointer + offset, 1)[0] = bits.to(pointer.dtype)


@cute.jit
def _zero_unless(condition: Any, bits: Any) -> Any:
    return bits if condition else Uint32(0)


@cute.jit
def copy_if(condition: Any, source: Any, target: Any) -> None:
    """Copy where the condition, a `Boolean` or True, holds."""
    if condition:
        cute.autovec_copy(source, target)
