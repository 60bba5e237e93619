"""The plainest reduction of rows: a block a row, one element at a time, halved in shared memory.

It is here to be read first and to be measured against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.reductions import Reduction


@dataclass(frozen=True)
class NaiveReduction:
    """What is computed, and the threads of a block, a power of two."""

    reduction: Reduction
    threads: int
    vector: ClassVar[int] = 1
    aligned: ClassVar[bool] = True
    by_rows: ClassVar[bool] = True


@cute.kernel
def naive_kernel(x: cute.Tensor, out: cute.Tensor, divisor: Any, plan: cutlass.Constexpr) -> None:
    """A block reduces one row of x (rows, n) into out (rows)."""
    reduction = plan.reduction
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = x.shape[1]
    state = reduction.start(type(n))
    for k in range(thread, n, plan.threads):
        state = reduction.combine(state, reduction.widen(reduction.lift(x[row, k], type(n)(k))))

    allocator = cutlass.utils.SmemAllocator()
    shared = [allocator.allocate_tensor(type(number), cute.make_layout((plan.threads,))) for number in state]
    _put(shared, thread, state)
    cute.arch.sync_threads()
    half = cutlass.Int32(plan.threads // 2)
    while half > 0:
        if thread < half:
            state = reduction.combine(
                tuple(place[thread] for place in shared), tuple(place[thread + half] for place in shared)
            )
            _put(shared, thread, state)
        cute.arch.sync_threads()
        half = half // 2
    if thread == 0:
        out[row] = reduction.finish(state, divisor, out.element_type)


@cute.jit
def _put(shared: Any, place: cute.Integer, state: Any) -> None:
    for tensor, number in zip(shared, state, strict=True):
        tensor[place] = number


@cute.jit
def launch_naive(
    x: cute.Tensor, out: cute.Tensor, states: Any, divisor: Any, plan: cutlass.Constexpr, second: cutlass.Constexpr
) -> None:
    """out (rows...) = the reduction of x (rows..., n) over n."""
    lines = cute.group_modes(x, 0, cute.rank(x) - 1)
    results = cute.group_modes(out, 0, cute.rank(out))
    kernel = naive_kernel(lines, results, divisor, plan)
    kernel.set_name_prefix(plan.reduction.op)
    kernel.launch(grid=(cute.size(lines, mode=[0]), 1, 1), block=(plan.threads, 1, 1))
