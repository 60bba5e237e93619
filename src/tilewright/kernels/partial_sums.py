"""Kernels whose blocks go through many rows and leave sums over them for a second pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewright.kernels.column_sums import column_sums
from tilewright.kernels.launching import RowKernel, as_matrix, on_gpu
from tilewright.kernels.plans import RowPlan, row_plan
from tilewright.utils import HardwareInfo

backward_plan = partial(row_plan, registers=128)  # the sums, and the next rows, stay in registers beside the rows
EMULATED_BLOCKS = 3


def with_parts(
    kernel: RowKernel, results: Sequence[Any], sums: Sequence[Any], inputs: Sequence[Any], plan: Any = None
) -> None:
    """Run `kernel(*results, *parts, *inputs, blocks)`, then add up each of `parts` into its place of `sums`.

    A part has a row for each thread row of the grid, in the precision of the last input; one for None is None.
    """
    x = as_matrix(inputs[0])
    if 0 in x.shape:
        for total in sums:
            if total is not None:
                total[...] = 0
        return
    plan = plan or kernel.plan_for(*results, *sums, *inputs, 0)
    blocks = min(-(-x.shape[0] // plan.rows), _resident(x, plan))
    shape = (blocks * plan.rows, x.shape[1])
    parts = [None if total is None else _empty(inputs[-1], shape) for total in sums]
    kernel(*results, *parts, *inputs, blocks * plan.cluster, plan=plan)
    for total, part in zip(sums, parts, strict=True):
        if total is not None:
            column_sums(total, part)


def _resident(x: Any, plan: RowPlan) -> int:
    if not on_gpu(x):
        return EMULATED_BLOCKS
    blocks = HardwareInfo().get_device_multiprocessor_count() * max(plan.resident, 1)
    return max(blocks // plan.cluster, 1)


def _empty(like: Any, shape: tuple[int, ...]) -> Any:
    return np.empty(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(shape)
