"""How a block's sums get from the registers of `mma.sync` to global memory.

A thread holds pairs of neighbours along N: four lanes write 16 bytes of a 16-bit row, half of what memory takes at a
time. Such a tile therefore goes through shared memory, in which threads read whole vectors of its rows. Pairs of 32-bit
elements fill 32 bytes, and are stored as they are.
"""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.gemm_operands import LINE_BYTES, swizzle_of_lines, tiled_copy

_LEAST_STAGED_BITS = 64
PAIR = 2


def staged(dtype: type[cute.Numeric], vector: int) -> bool:
    """Whether a tile of D goes through shared memory."""
    return dtype.width < 32 and vector * dtype.width >= _LEAST_STAGED_BITS


def staging_layout(dtype: type[cute.Numeric], m: int, n: int) -> cute.ComposedLayout:
    """The tile (m, n) in shared memory, N contiguous, vectors exchanged so that all banks take part."""
    extent = min(n, LINE_BYTES * 8 // dtype.width)
    lines = cute.make_layout((8, extent), stride=(extent, 1))
    atom = cute.make_composed_layout(swizzle_of_lines(extent, dtype.width), 0, lines)
    return cute.tile_to_shape(atom, (m, n), (0, 1))


@cute.jit
def store_tile(
    d: cute.Tensor, results: cute.Tensor, mine: Any, place: Any, memory: cute.Pointer, plan: cutlass.Constexpr
) -> None:
    """The tile at `place` of d (M, N) = `results`, the fragment of a tiled MMA; shared `memory` is free."""
    if cutlass.const_expr(staged(d.element_type, plan.result.vector)):
        _store_staged(d, results, mine, place, memory, plan)
    else:
        _store_pairs(d, results, mine, place, plan)


@cute.jit
def _store_pairs(d: cute.Tensor, results: cute.Tensor, mine: Any, place: Any, plan: cutlass.Constexpr) -> None:
    m, n, _ = plan.tile
    target = mine.partition_C(cute.local_tile(d, (m, n), place))
    at = mine.partition_C(cute.local_tile(cute.make_identity_tensor(d.shape), (m, n), place))
    if (place[0] + 1) * m <= d.shape[0] and (place[1] + 1) * n <= d.shape[1]:
        cute.autovec_copy(results, target)
    elif cutlass.const_expr(plan.result.vector % PAIR == 0):
        for pair in cutlass.range_constexpr(cute.size(results) // PAIR):
            if cute.elem_less(at[PAIR * pair], d.shape):
                for i in cutlass.range_constexpr(PAIR):
                    target[PAIR * pair + i] = results[PAIR * pair + i]
    else:
        for i in cutlass.range_constexpr(cute.size(results)):
            if cute.elem_less(at[i], d.shape):
                target[i] = results[i]


@cute.jit
def _store_staged(
    d: cute.Tensor, results: cute.Tensor, mine: Any, place: Any, memory: cute.Pointer, plan: cutlass.Constexpr
) -> None:
    thread, _, _ = cute.arch.thread_idx()
    m, n, _ = plan.tile
    tile = cute.make_tensor(cute.recast_ptr(memory, dtype=d.element_type), staging_layout(d.element_type, m, n))
    cute.autovec_copy(results, mine.partition_C(tile))
    cute.arch.sync_threads()
    bits = plan.result.vector * d.element_type.width
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), d.element_type, num_bits_per_copy=bits)
    copying = tiled_copy(atom, m, n, True, plan.result.vector, plan.threads)
    part = copying.get_slice(thread)
    source, target = part.partition_S(tile), part.partition_D(cute.local_tile(d, (m, n), place))
    at = part.partition_S(cute.local_tile(cute.make_identity_tensor(d.shape), (m, n), place))
    for i in cutlass.range_constexpr(cute.size(source, mode=[1])):
        for j in cutlass.range_constexpr(cute.size(source, mode=[2])):
            if cute.elem_less(at[0, i, j], d.shape):
                held = cute.make_fragment_like(source[None, i, j])
                cute.copy(copying, source[None, i, j], held)
                cute.copy(copying, held, target[None, i, j])
