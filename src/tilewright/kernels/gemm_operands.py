"""How an operand of a matrix product comes from global memory to the registers of `mma.sync`.

An operand is a matrix (rows, K): A has rows M, B has rows N. One of its modes is contiguous in memory, and stays so in
shared memory, where its vectors of 16 bytes change places so that neither the copies that write them nor `ldmatrix`
meet a bank twice:

    lines of up to 128 bytes      line 0   | 0 1 2 3 4 5 6 7 |   vectors of 16 bytes; the vector's place
    along the contiguous mode     line 1   | 1 0 3 2 5 4 7 6 |   is its number, XOR the line's number modulo 8
                                  line 2   | 2 3 0 1 6 7 4 5 |

Elements of 16 bits reach registers by `ldmatrix`, transposed where rows are contiguous. Of the other types it can read
those whose K is contiguous, since a register holds neighbours along K; the rest is read element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.nvgpu import cpasync, warp

LINE_BYTES = 128
ALIGNMENT = 1024  # of shared memory: after so many bytes an exchange of vectors repeats
VECTOR_BITS = 128
_LEAST_ASYNC_BITS = 32  # of one cp.async


@dataclass(frozen=True)
class Operand:
    """An operand's element type and order in memory.

    Attributes:
        dtype: element type.
        k_major: whether K is contiguous, else the rows are.
        vector: elements of one copy, along the contiguous mode; its extent, all strides and the address are multiples.
        dense: whether the contiguous mode has stride 1; where not, `vector` is 1.
    """

    dtype: type[cute.Numeric]
    k_major: bool
    vector: int
    dense: bool = True

    @property
    def bits(self) -> int:
        """Bits of one copy."""
        return self.vector * self.dtype.width

    @property
    def asynchronous(self) -> bool:
        """Whether `cp.async` can move such vectors."""
        return self.bits >= _LEAST_ASYNC_BITS

    @property
    def by_ldmatrix(self) -> bool:
        """Whether `ldmatrix` can read it."""
        return self.dtype.width == 16 or (self.k_major and self.dtype.width < 64)

    def shared_layout(self, rows: int, k: int, stages: int) -> cute.ComposedLayout:
        """(rows, k, stages) in shared memory."""
        extent = min(k if self.k_major else rows, LINE_BYTES * 8 // self.dtype.width)
        lines = (8, extent) if self.k_major else (extent, 8)
        atom = cute.make_layout(lines, stride=(extent, 1) if self.k_major else (1, extent))
        swizzle = (vectors_of_lines if self.by_ldmatrix else segments_of_lines)(extent, self.dtype.width)
        return cute.tile_to_shape(cute.make_composed_layout(swizzle, 0, atom), (rows, k, stages), (0, 1, 2))

    def shared_bytes(self, rows: int, k: int, stages: int) -> int:
        """Bytes of `shared_layout`."""
        return rows * k * stages * self.dtype.width // 8

    def shared(self, memory: cute.Pointer, rows: int, k: int, stages: int) -> cute.Tensor:
        """The tensor (rows, k, stages) at `memory`."""
        return cute.make_tensor(
            cute.recast_ptr(memory.align(ALIGNMENT), dtype=self.dtype), self.shared_layout(rows, k, stages)
        )

    def tiled_copy(self, rows: int, k: int, threads: int) -> cute.TiledCopy:
        """How `threads` threads read a tile (rows, k), side by side along the contiguous mode."""
        op: cute.CopyOp = cute.nvgpu.CopyUniversalOp()
        if self.asynchronous:
            wide = self.bits == VECTOR_BITS
            op = cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL if wide else cpasync.LoadCacheMode.ALWAYS)
        atom = cute.make_copy_atom(op, self.dtype, num_bits_per_copy=self.bits)
        return tiled_copy(atom, rows, k, self.k_major, self.vector, threads)

    def reading(self) -> cute.CopyAtom:
        """How a warp reads it from shared memory."""
        multiplied = cutlass.TFloat32 if self.dtype is cute.Float32 else self.dtype
        if self.by_ldmatrix:
            kind = warp.LdMatrix8x16x8bOp if self.dtype.width == 8 else warp.LdMatrix8x8x16bOp
            return cute.make_copy_atom(kind(not self.k_major, 4), multiplied)
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), multiplied, num_bits_per_copy=self.dtype.width)


def vectors_of_lines(extent: int, width: int) -> cute.Swizzle:
    """Vectors of 16 bytes in lines of `extent` elements of `width` bits, exchanged by the number of their 128 bytes."""
    vector = VECTOR_BITS // width
    return cute.make_swizzle(min(3, (extent // vector).bit_length() - 1), vector.bit_length() - 1, 3)


def segments_of_lines(extent: int, width: int) -> cute.Swizzle:
    """Segments of 32 bytes in lines of `extent` elements, exchanged by the line: single elements of four are read."""
    segment = 2 * VECTOR_BITS // width
    return cute.make_swizzle(2, segment.bit_length() - 1, max((extent // segment).bit_length() - 1, 2))


def tiled_copy(
    atom: cute.CopyAtom, rows: int, columns: int, row_major: bool, vector: int, threads: int
) -> cute.TiledCopy:
    """A copy of a tile (rows, columns): neighbouring threads take neighbouring vectors of the contiguous mode."""
    along = min((columns if row_major else rows) // vector, threads)
    across = threads // along
    if row_major:
        return cute.make_tiled_copy_tv(
            atom, cute.make_layout((across, along), stride=(along, 1)), cute.make_layout((1, vector))
        )
    return cute.make_tiled_copy_tv(atom, cute.make_layout((along, across)), cute.make_layout((vector, 1)))


class Feed:
    """A block's copies of the tiles of one operand to shared memory, and the predicates under which they are made.

    K need not be a multiple of the tile's: the first tile begins before the matrix, so that it alone is cut off along
    K. What lies outside the matrix is zero in shared memory.
    """

    def __init__(self, operand: Operand, source: cute.Tensor, tile: Any, row: Any, shared: cute.Tensor, threads: int):
        """Tiles of `tile` = (rows, k) of `source` (rows, K) at row `row`, to stages of `shared` (rows, k, stages)."""
        thread, _, _ = cute.arch.thread_idx()
        self.operand = operand
        self.copying = operand.tiled_copy(tile[0], tile[1], threads)
        mine = self.copying.get_slice(thread)
        extent = source.shape[1]
        before = extent - cute.ceil_div(extent, tile[1]) * tile[1]
        tiles = cute.domain_offset((0, before, 0), cute.local_tile(source, tile, (row, None)))
        aligned = tiles.iterator.align(operand.bits // 8) if operand.bits >= 8 else tiles.iterator
        self.source = mine.partition_S(cute.make_tensor(aligned, tiles.layout))
        self.target = mine.partition_D(shared)
        places = cute.local_tile(cute.make_identity_tensor(source.shape), tile, (row, None))
        self.places = mine.partition_S(cute.domain_offset((0, before, 0), places))
        (_, self.pieces), self.rows, self.columns = (self.source.shape[mode] for mode in range(3))
        self.inside = cute.make_rmem_tensor(
            cute.make_layout((1, self.rows, self.columns), stride=(0, 1, 0)), cutlass.Boolean
        )
        for r in cutlass.range_constexpr(self.rows):
            self.inside[0, r, 0] = cute.elem_less(self.places[0, r, 0, 0][0], source.shape[0])

    @cute.jit
    def load_first(self, tile: cute.Integer, stage: cutlass.Constexpr) -> None:
        """Begin to copy tile `tile`, which may begin before column 0."""
        inside = cute.make_rmem_tensor((1, self.rows, self.columns), cutlass.Boolean)
        for c in cutlass.range_constexpr(self.columns):
            for r in cutlass.range_constexpr(self.rows):
                inside[0, r, c] = self.inside[0, r, 0] and self.places[0, r, c, tile][1] >= 0
        self._move(tile, stage, inside)

    @cute.jit
    def load(self, tile: cute.Integer, stage: cute.Integer) -> None:
        """Begin to copy tile `tile`, not the first one."""
        self._move(tile, stage, self.inside)

    @cute.jit
    def _move(self, tile: cute.Integer, stage: cute.Integer, inside: cute.Tensor) -> None:
        source, target = self.source[None, None, None, tile], self.target[None, None, None, stage]
        if cutlass.const_expr(self.operand.asynchronous):
            cute.copy(self.copying, source, target, pred=inside)
        else:
            held = cute.make_fragment_like(target)
            held.fill(0)
            cute.copy(self.copying, source, held, pred=inside)
            cute.copy(self.copying, held, target)
