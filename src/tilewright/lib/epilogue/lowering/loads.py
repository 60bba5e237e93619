"""Operations that bring values in: loads of tensors, however they broadcast, the accumulator, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright.cute as cute
from tilewright.cute import Boolean, Numeric, Uint32
from tilewright.lib.epilogue.lowering.op import BITS, EpilogueOp, View, aligned, of_batch
from tilewright.lib.epilogue.lowering.tile import Tile


@dataclass(frozen=True)
class TensorLoad(EpilogueOp):
    """A tensor, of which a thread loads each of its elements once: where it broadcasts, they are repeated in registers.

    Attributes:
        view: the tensor; stride 0 along M is a row, along N a column, along both a scalar of memory.
    """

    view: View

    @property
    def views(self) -> tuple[View, ...]:
        return (self.view,)

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        """The tensor of the batch and, where each step would load the same, what it holds."""
        tensor = of_batch(tensors[0], tile.place.batch)
        return tensor, self._load(tile, tensor) if self._stays(tile) else None

    def begin_loop(self, tile: Tile, state: Any) -> Any:
        tensor, held = state
        return self._load(tile, tensor) if held is None else held

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        vector, columns, rows = tile.shape
        moves_m, moves_n = self.view.step_m != 0, self.view.step_n != 0
        width = vector if moves_n else 1
        if self.view.across:
            steps = (rows * moves_n, rows * width * moves_n, 1)
        else:
            steps = (int(moves_n), width * moves_n, width * (columns if moves_n else 1) * moves_m)
        return cute.make_tensor(fetched.iterator, cute.make_layout((vector, columns, rows), stride=steps)).load()

    def _stays(self, tile: Tile) -> bool:
        return tile.walks and self.view.step_m == 0

    def _load_across(self, tile: Tile, tensor: Any) -> Any:
        """The same as a register tensor (rows, vector, columns), from accesses along M."""
        rows, columns = tile.row_range, tile.column_range if self.view.step_n != 0 else tile.column_range[:1]
        width = tile.grid.vector if self.view.step_n != 0 else 1
        held = cute.make_rmem_tensor((len(rows), width, len(columns)), self.view.dtype)
        first = tile.rows[rows[0]]
        first = first if tile.grid.whole_m else cute.math.min(first, tile.extents[0] - len(rows))
        for place, column in enumerate(columns):
            line = tensor.iterator + first + tile.read_columns[column] * tensor.stride[1]
            for k in range(width):
                cute.autovec_copy(aligned(line + k * tensor.stride[1], self.view, len(rows)), held[None, k, place])
        return held

    def _load(self, tile: Tile, tensor: Any) -> Any:
        """What the thread needs, a register tensor (vector, columns, rows): extents are 1 where the view broadcasts."""
        if self.view.across:
            return self._load_across(tile, tensor)
        rows = tile.row_range if self.view.step_m != 0 else tile.row_range[:1]
        columns = tile.column_range if self.view.step_n != 0 else tile.column_range[:1]
        width = tile.grid.vector if self.view.step_n != 0 else 1
        held = cute.make_rmem_tensor((width, len(columns), len(rows)), self.view.dtype)
        step_m, step_n = tensor.stride
        for place_r, row in enumerate(rows):
            line = tensor.iterator + tile.read_rows[row] * step_m
            for place_c, column in enumerate(columns):
                target = held[None, place_c, place_r]
                if self.view.step_n == 1:
                    source = aligned(line + tile.read_columns[column], self.view, width)
                else:
                    first = line + tile.read_columns[column] * step_n
                    source = cute.make_tensor(first, cute.make_layout(width, stride=step_n))
                cute.autovec_copy(source, target)
        return held


@dataclass(frozen=True)
class MaskLoad(EpilogueOp):
    """A mask of bits as `stores.MaskStore` writes it, as Booleans."""

    view: View
    counts_bits: ClassVar[bool] = True

    @property
    def views(self) -> tuple[View, ...]:
        return (self.view,)

    def begin(self, tile: Tile, tensors: Sequence[Any]) -> Any:
        return of_batch(tensors[0], tile.place.batch)

    def begin_loop(self, tile: Tile, state: Any) -> Any:
        """The bytes of each vector."""
        count = -(-tile.grid.vector // BITS)
        return [
            [state[tile.read_rows[row], tile.read_columns[column] // BITS + byte] for byte in range(count)]
            for row in tile.row_range
            for column in tile.column_range
        ]

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        vector, columns, _ = tile.shape
        bits = []
        for place, found in enumerate(fetched):
            first = tile.read_columns[tile.column_range[place % columns]] % BITS if vector < BITS else 0
            bits += [(Uint32(found[k // BITS]) >> Uint32(first + k % BITS)) & Uint32(1) for k in range(vector)]
        return cute.TensorSSA.from_elements(bits).reshape(tile.shape).to(Boolean)


@dataclass(frozen=True)
class Accumulator(EpilogueOp):
    """What the kernel hands over as `tile.accumulator`."""

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        return tile.accumulator


@dataclass(frozen=True)
class NumberLoad(EpilogueOp):
    """A number of the host, given when the kernel is called."""

    dtype: type[Numeric]

    @property
    def numbers(self) -> tuple[type[Numeric], ...]:
        return (self.dtype,)

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        return cute.full(tile.shape, state[0], self.dtype)


@dataclass(frozen=True)
class Immediate(EpilogueOp):
    """A number that is compiled in."""

    value: float
    dtype: type[Numeric]

    def visit(self, tile: Tile, state: Any, fetched: Any, inputs: Sequence[Any]) -> Any:
        return cute.full(tile.shape, self.value, self.dtype)
