"""`gemm` as a function of tensors: their views, the choice of a plan, compiled kernels by configuration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.kernels import views
from tilewright.kernels.elementwise import together
from tilewright.kernels.gemm_operands import Operand
from tilewright.kernels.gemm_plans import GemmPlan, Result, gemm_plan
from tilewright.kernels.gemm_sm80 import launch_gemm_sm80
from tilewright.kernels.gemm_split import workspace_elements
from tilewright.kernels.launching import address_of, on_gpu
from tilewright.utils import HardwareInfo

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8")
"""Element types of A and B."""
RESULTS = ("float16", "bfloat16", "float32", "float64", "int8", "int32")
"""Element types of D."""


@dataclass(frozen=True)
class _Call:
    """What runs for tensors of one configuration: the executor, the views that it takes, and a workspace's size."""

    executor: Callable[..., None]
    views: tuple[views.Strided | None, ...]
    accumulator: type[cute.Numeric]
    workspace: int
    counters: int

    def __call__(self, *tensors: Any) -> None:
        given = [tensor if view is None else view.of(tensor) for view, tensor in zip(self.views, tensors, strict=True)]
        if not self.workspace:
            self.executor(*given)
            return
        counters = views.empty(given[0], (self.counters,), cute.Int32)
        counters.fill(0) if isinstance(counters, np.ndarray) else counters.zero_()
        self.executor(*given, views.empty(given[0], (self.workspace,), self.accumulator), counters)


_calls: dict[Any, _Call] = {}


def gemm(out: Any, a: Any, b: Any, plan: GemmPlan | None = None) -> None:
    """out (..., M, N) = a (..., M, K) · b (..., K, N), batches broadcast to that of `out`; of any strides.

    Tensors of a GPU run there, others on the emulator. `plan` overrides the choice.
    """
    key = (plan, views.facts(out), views.facts(a), views.facts(b))
    call = _calls.get(key)
    if call is None:
        if 0 in out.shape:
            return
        call = views.keep(_calls, key, _prepare(out, a, b, plan))
    call(out, a, b)


def plan_of(out: Any, a: Any, b: Any) -> GemmPlan:
    """The plan that `gemm` takes for these tensors."""
    return _planned(*_matrices(out, a, b), (out, a, b))


def _prepare(out: Any, a: Any, b: Any, plan: GemmPlan | None) -> _Call:
    shaped = _matrices(out, a, b)
    plan = plan or _planned(*shaped, (out, a, b))
    rank = len(shaped[0].shape)
    executor = _executor(plan, views.dtype_of(out), rank, "cuda" if on_gpu(out) else "emu")
    needed = tuple(view.unless_of(t.shape, views.strides_of(t)) for view, t in zip(shaped, (out, a, b), strict=True))
    *batch, m, n = shaped[0].shape
    m, n = (n, m) if plan.result.turned else (m, n)
    tiles = math.prod(batch) * -(-m // plan.tile[0]) * -(-n // plan.tile[1])
    elements = workspace_elements(tiles, plan.splits, plan.tile) if plan.splits > 1 else 0
    return _Call(executor, needed, plan.accumulator, elements, tiles)


def _matrices(out: Any, a: Any, b: Any) -> list[views.Strided]:
    """The three as (batch..., rows, columns) of one batch; dimensions of it through which all step alike are one."""
    batch = tuple(out.shape[:-2])
    steps = [_batch_steps(tensor, batch) for tensor in (out, a, b)]
    extents, merged = together(batch, steps)
    if math.prod(batch) == 1:
        extents, merged = (), [()] * 3
    return [
        views.Strided((*extents[::-1], *tensor.shape[-2:]), (*of_one[::-1], *views.strides_of(tensor)[-2:]))
        for tensor, of_one in zip((out, a, b), merged, strict=True)
    ]


def _batch_steps(tensor: Any, batch: Sequence[int]) -> tuple[int, ...]:
    """Strides of the batch as broadcast to `batch`."""
    own, strides = tensor.shape[:-2], views.strides_of(tensor)[:-2]
    missing = (0,) * (len(batch) - len(own))
    return missing + tuple(0 if extent == 1 else step for extent, step in zip(own, strides, strict=True))


def _planned(out: views.Strided, a: views.Strided, b: views.Strided, tensors: Sequence[Any]) -> GemmPlan:
    dtype, result = views.dtype_of(tensors[1]), views.dtype_of(tensors[0])
    starts = [address_of(tensor) for tensor in tensors]
    left, right = _operand(a, dtype, starts[1], -1), _operand(b, dtype, starts[2], -2)
    *batch, m, n = out.shape
    turned = out.strides[-1] != 1 and out.strides[-2] == 1
    target = views.Strided(out.shape, out.strides)
    if turned:
        left, right, m, n = right, left, n, m
        target = views.Strided((*batch, m, n), (*out.strides[:-2], out.strides[-1], out.strides[-2]))
    vector = target.vector(result, starts[0])
    multiprocessors = _multiprocessors(on_gpu(tensors[0]))
    dense = target.strides[-1] == 1
    return gemm_plan(left, right, (m, n, a.shape[-1], math.prod(batch)), Result(vector, dense, turned), multiprocessors)


def _operand(matrix: views.Strided, dtype: type[cute.Numeric], start: int, of_k: int) -> Operand:
    """An operand whose K is dimension `of_k`."""
    rows = -3 - of_k
    k_major = matrix.strides[of_k] == 1 or matrix.strides[rows] != 1
    inner, outer = (of_k, rows) if k_major else (rows, of_k)
    order = views.Strided(
        (*matrix.shape[:-2], matrix.shape[outer], matrix.shape[inner]),
        (*matrix.strides[:-2], matrix.strides[outer], matrix.strides[inner]),
    )
    return Operand(dtype, k_major, order.vector(dtype, start), matrix.strides[inner] == 1)


@functools.cache
def _multiprocessors(gpu: bool) -> int:
    """Multiprocessors of the device; of an H100 on the emulator."""
    return HardwareInfo().get_device_multiprocessor_count() if gpu else 132


@functools.cache
def _executor(plan: GemmPlan, result: type[cute.Numeric], rank: int, target: str) -> Any:
    """The compiled function of tensors of so many modes, with any extents and strides."""
    left, right = (plan.b, plan.a) if plan.result.turned else (plan.a, plan.b)
    a = _fake(left.dtype, rank, left.vector, -1 if left.k_major else -2, left.dense)
    b = _fake(right.dtype, rank, right.vector, -2 if right.k_major else -1, right.dense)
    d = _fake(result, rank, plan.result.vector, -2 if plan.result.turned else -1, plan.result.dense)
    workspace = counters = None
    if plan.splits > 1:
        workspace, counters = (
            cute.runtime.make_fake_tensor(dtype, (cute.sym_int64(),), stride=(1,), assumed_align=16)
            for dtype in (plan.accumulator, cute.Int32)
        )
    compiled = cute.compile(launch_gemm_sm80, d, a, b, None, workspace, counters, plan, None, target=target)
    return views.quick(compiled)


def _fake(dtype: type[cute.Numeric], rank: int, vector: int, contiguous: int, dense: bool) -> Any:
    """A tensor to compile for, whose dimension `contiguous` has stride 1 where it is `dense`."""
    extents: list[Any] = [cute.sym_int() for _ in range(rank)]
    strides: list[Any] = [cute.sym_int64(divisibility=vector) for _ in range(rank)]
    extents[contiguous] = cute.sym_int(divisibility=vector)
    strides[contiguous] = 1 if dense else cute.sym_int64()
    return cute.runtime.make_fake_tensor(
        dtype, extents, stride=strides, assumed_align=max(vector * dtype.width // 8, 1)
    )
