"""The second pass of reductions: what the blocks left in a workspace, folded in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
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
    kept, count = cute.size(parts, mode=[0]), cute.size(parts, mode=[2])
    strips = cute.ceil_div(kept, plan.across)
    place = type(kept)(block % strips) * plan.across + thread % plan.across
    batch, first = block // strips, thread // plan.across
    fold = plan.fold
    total = fold.neutral
    read = cute.math.min(place, kept - 1)  # no branch, so that several loads are under way
    for part in cutlass.range(type(count)(first), count, plan.along, unroll=UNROLL):
        total = fold(total, parts[read, batch, part])
    shared = utils.SmemAllocator().allocate_tensor(fold.dtype, cute.make_layout((plan.across, plan.along)))
    across = thread % plan.across
    shared[across, first] = total
    cute.arch.sync_threads()
    for level in cutlass.range_constexpr(plan.along.bit_length() - 1):
        step = plan.along >> (level + 1)
        if first < step:
            shared[across, first] = fold(shared[across, first], shared[across, first + step])
        cute.arch.sync_threads()
    number = as_stored(shared[across, 0], result.element_type)
    store_number_if((first == 0) & (place < kept), result, (place, batch), number)


@cute.jit
def launch_second_pass(result: Any, parts: Any, reduction: cutlass.Constexpr[ReductionStore]) -> None:
    """Fold the workspace (kept, batch, parts) of a reduction into its result, seen as (M, N, batch modes...)."""
    plan = SecondPass.of(reduction)
    layout, states = _layouts(result.layout, parts.layout, reduction)
    kept, batch = cute.size(states, mode=[0]), cute.size(states, mode=[1])
    second_pass_kernel(
        cute.make_tensor(result.iterator, layout), cute.make_tensor(parts.iterator, states), plan
    ).launch(grid=(cute.ceil_div(kept, plan.across) * batch, 1, 1), block=(THREADS, 1, 1))


def _layouts(result: Any, parts: Any, reduction: ReductionStore) -> tuple[Any, Any]:
    """The result as (kept, batch), and the workspace as (kept, batch, parts): reduced batch modes count as parts."""
    (m, n, *extents), (step_m, step_n, *steps) = _flat(result.shape), _flat(result.stride)
    kept = [(n, step_n)] if not reduction.over_n else []  # N is the fastest in the workspace
    kept += [(m, step_m)] if not reduction.over_m else []
    (count, _, many), (step, step_l, step_p) = parts.shape, parts.stride
    batch, of_parts, folded = [], [], [(many, step_p)]
    for extent, step_out, over in zip(extents, steps, reduction.over_l, strict=True):
        if over:
            folded.append((extent, step_l))
        else:
            batch.append((extent, step_out))
            of_parts.append((extent, step_l))
        step_l = step_l * extent
    return _layout(kept, batch), _layout([(count, step)], of_parts, folded)


def _layout(*modes: Sequence[tuple[Any, Any]]) -> Any:
    """A layout whose modes have these extents and strides, fastest first; one without has extent 1."""
    shape = tuple(tuple(extent for extent, _ in mode) or 1 for mode in modes)
    stride = tuple(tuple(step for _, step in mode) or 0 for mode in modes)
    return cute.make_layout(shape, stride=stride)


def _flat(modes: Any) -> tuple[Any, ...]:
    return tuple(item for mode in modes for item in (_flat(mode) if isinstance(mode, tuple) else (mode,)))
