"""Kernels whose blocks go through many rows and leave sums over them for a second pass."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.kernels.column_sums import column_sums
from tilewright.kernels.launching import RowKernel, address_of, as_matrix, on_gpu
from tilewright.kernels.plans import ACCESS_BYTES, SHARED_BYTES, RowPlan
from tilewright.utils import HardwareInfo

THREADS = 1024  # of a multiprocessor: the sums leave no registers for more
EMULATED_BLOCKS = 3


class SummingKernel:
    """Calls a kernel of many rows a block, and the second pass: `kernel(*results, *parts, *inputs, blocks)`."""

    def __init__(self, kernel: RowKernel) -> None:
        self.kernel = kernel
        self._plans: dict[Any, RowPlan] = {}

    def __call__(
        self, results: Sequence[Any], sums: Sequence[Any], inputs: Sequence[Any], plan: RowPlan | None = None
    ) -> None:
        """Write the results, and into each of `sums` what the blocks leave in its part; those may be None.

        A part has a row for each thread row of the grid, in the precision of the last input.
        """
        x = as_matrix(inputs[0]) if 0 not in inputs[0].shape else inputs[0]
        if 0 in x.shape:
            for total in sums:
                if total is not None:
                    total[...] = 0
            return
        usual = plan or self._plan(results, sums, inputs)
        blocks = min(-(-x.shape[0] // usual.rows), _resident(x, usual))
        shape = (blocks * usual.rows, x.shape[1])
        parts = [None if total is None else _empty(inputs[-1], shape) for total in sums]
        self.kernel(*results, *parts, *inputs, blocks * usual.cluster, plan=plan, usual=usual)
        for total, part in zip(sums, parts, strict=True):
            if total is not None:
                column_sums(total, part)

    def _plan(self, results: Sequence[Any], sums: Sequence[Any], inputs: Sequence[Any]) -> RowPlan:
        tensors = (*results, *inputs)
        key = tuple(None if item is None else _facts(item) for item in tensors)
        if key not in self._plans:
            self._plans[key] = self.kernel.plan_for(*results, *(None for _ in sums), *inputs, 0)
        return self._plans[key]


def _facts(tensor: Any) -> tuple[Any, ...]:
    if isinstance(tensor, np.ndarray):
        return tensor.dtype, tensor.shape, tensor.strides, address_of(tensor) % ACCESS_BYTES
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr() % ACCESS_BYTES, tensor.is_cuda


def _resident(x: Any, plan: RowPlan) -> int:
    """Blocks, or clusters, that the device holds at once: others would begin when these end, and take as long again."""
    if not on_gpu(x):
        return EMULATED_BLOCKS
    bytes_ = max(ACCESS_BYTES * plan.count * plan.block * plan.stages * 2, 1)
    return _places(x.device.index or 0, plan.cluster) * max(min(THREADS // plan.block, SHARED_BYTES // bytes_), 1)


@functools.cache
def _places(device: int, cluster: int) -> int:
    """Multiprocessors, or groups of as many as a cluster has blocks."""
    found = HardwareInfo(device)
    return max(found.get_max_active_clusters(cluster), 1) if cluster > 1 else found.get_device_multiprocessor_count()


def _empty(like: Any, shape: tuple[int, ...]) -> Any:
    return np.empty(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(shape)
