"""The second pass of reductions: what the blocks left in a workspace, folded in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import utils
from tilewright.lib.epilogue.lowering.folds import Fold
from tilewright.lib.epilogue.lowering.reductions import ReductionStore, as_stored, store_number_if

THREADS = 256
ACROSS = 32
UNROLL = 8


@dataclass(frozen=True)
class SecondPass:
    """How a workspace is folded.

    Attributes:
        fold: what is computed.
        across: threads of a block along what is kept.
        along: threads of a block along the parts.
    """

    fold: Fold
    across: int
    along: int

    @classmethod
    def of(cls, reduction: ReductionStore) -> SecondPass:
        """That of a reduction: a block for each result where one is kept of a batch, else a lane."""
        across = 1 if reduction.over_m and reduction.over_n else ACROSS
        return cls(reduction.fold, across, THREADS // across)


@cute.kernel
def second_pass_kernel(result: cute.Tensor, parts: cute.Tensor, plan: cutlass.Constexpr[SecondPass]) -> None:
    """result (kept, batch) = the fold of parts (kept, batch, parts) over the last mode."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    kept, _, count = parts.shape
    strips = cute.ceil_div(kept, plan.across)
    place = type(kept)(block % strips) * plan.across + thread % plan.across
    batch, first = block // strips, thread // plan.across
    fold = plan.fold
    total = fold.neutral
    read = cute.math.min(place, kept - 1)  # no branch, so that several loads are under way
    for part in cutlass.range(type(count)(first), count, plan.along, unroll=UNROLL):
        total = fold(total, parts[read, batch, part])
    shared = utils.SmemAllocator().allocate_tensor(fold.dtype, cute.make_layout((plan.across, plan.along)))
    shared[thread % plan.across, first] = total
    cute.arch.sync_threads()
    step = plan.along // 2
    while cutlass.const_expr(step > 0):
        if first < step:
            shared[thread % plan.across, first] = fold(
                shared[thread % plan.across, first], shared[thread % plan.across, first + step]
            )
        cute.arch.sync_threads()
        step //= 2
    number = as_stored(shared[thread % plan.across, 0], result.element_type)
    store_number_if((first == 0) & (place < kept), result, (place, batch), number)


@cute.jit
def launch_second_pass(result: Any, parts: Any, reduction: cutlass.Constexpr[ReductionStore]) -> None:
    """Fold the workspace (kept, batch, parts) of a reduction into its result, seen as (M, N, batch modes)."""
    plan = SecondPass.of(reduction)
    shape, stride = result.layout.shape, result.layout.stride
    over_m, over_n, over_l = reduction.over_m, reduction.over_n, reduction.over_l
    if cutlass.const_expr(over_m or over_n):
        mode, step = ((1 if over_n else shape[1]), stride[1]) if cutlass.const_expr(over_m) else (shape[0], stride[0])
    else:
        mode, step = (shape[1], shape[0]), (stride[1], stride[0])
    if cutlass.const_expr(over_l or len(shape) < 3):
        layout = cute.make_layout((mode, 1), stride=(step, 0))
    else:
        layout = cute.make_layout((mode, shape[2]), stride=(step, stride[2]))
    kept, batch, _ = parts.shape
    second_pass_kernel(cute.make_tensor(result.iterator, layout), parts, plan).launch(
        grid=(cute.ceil_div(kept, plan.across) * batch, 1, 1), block=(THREADS, 1, 1)
    )
