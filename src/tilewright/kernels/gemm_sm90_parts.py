"""Few tiles with long K: products are made in parts along K, as a batch, and a second kernel adds their sums.

    A (M, K) as (parts, M, K / parts) ┐
                                      ├──► sums (parts, M, N) ──► D (M, N)
    B (K, N) as (parts, K / parts, N) ┘

Nobody waits for anybody, and all multiprocessors take part in both kernels. Sums are added in the order of the parts,
so that the result is the same each time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import views
from tilewright.kernels.gemm_sm90 import launch_gemm_sm90
from tilewright.kernels.gemm_sm90_calls import described, fake, resident_clusters
from tilewright.kernels.gemm_sm90_plans import PART_VECTOR, Sm90Plan
from tilewright.kernels.launching import on_gpu

_THREADS = 128


@cute.kernel
def add_parts_kernel(sums: cute.Tensor, d: cute.Tensor, parts: cutlass.Constexpr) -> None:
    """d (M, N) = the sums (parts, M, N) over their parts; a thread has a vector of a row."""
    number = cute.arch.block_idx()[0] * _THREADS + cute.arch.thread_idx()[0]
    across = d.shape[1] // PART_VECTOR
    if number < d.shape[0] * across:
        row, column = number // across, number % across
        total = cute.local_tile(sums[0, row, None], (PART_VECTOR,), (column,)).load()
        for part in cutlass.range_constexpr(1, parts):
            total = total + cute.local_tile(sums[part, row, None], (PART_VECTOR,), (column,)).load()
        cute.local_tile(d[row, None], (PART_VECTOR,), (column,)).store(total.to(d.element_type))


@cute.jit
def launch_gemm_sm90_parts(
    a: cute.Tensor, b: cute.Tensor, sums: cute.Tensor, d: cute.Tensor, clusters: cute.Int32, plan: cutlass.Constexpr
) -> None:
    """d (M, N) = the sum over the parts of a (parts, M, K) · b (parts, K, N), which go to `sums`."""
    launch_gemm_sm90(a, b, sums, clusters, None, None, of_a_part(plan))
    vectors = d.shape[0] * (d.shape[1] // PART_VECTOR)
    add_parts_kernel(sums, d, plan.parts).launch(grid=(cute.ceil_div(vectors, _THREADS), 1, 1), block=(_THREADS, 1, 1))


def of_a_part(plan: Sm90Plan) -> Sm90Plan:
    """The plan of the products of all parts, whose results are sums."""
    return replace(plan, parts=1, result=plan.accumulator, n_major=True)


@dataclass(frozen=True)
class PartsCall:
    """What runs for A, B and D of one configuration: the executor, the views of A and B by parts, and D's shape."""

    executor: Callable[..., None]
    a: views.Strided
    b: views.Strided
    d: views.Strided | None
    sums: tuple[int, int, int]
    accumulator: type[cute.Numeric]
    clusters: int

    def plain(self, out: Any, a: Any, b: Any) -> None:
        """out = a · b."""
        sums = views.empty(a, self.sums, self.accumulator)
        result = out if self.d is None else self.d.of(out)
        self.executor(self.a.of(a), self.b.of(b), sums, result, self.clusters)


def prepare(matrices: Sequence[views.Strided], tensors: Sequence[Any], plan: Sm90Plan) -> PartsCall:
    """What runs for A (M, K), B (K, N) and D (M, N) with a plan of several parts."""
    (m, k), n = matrices[0].shape, matrices[1].shape[1]
    each = k // plan.parts
    (down, along), (deep, across) = matrices[0].strides, matrices[1].strides
    seen = (
        views.Strided((plan.parts, m, each), (each * along, down, along)),
        views.Strided((plan.parts, each, n), (each * deep, deep, across)),
    )
    a, b = (described(view, plan.dtype) for view in seen)
    d = described(matrices[2], views.dtype_of(tensors[2])).unless_of(tensors[2].shape, views.strides_of(tensors[2]))
    gpu, size = on_gpu(tensors[0]), plan.cluster[0] * plan.cluster[1]
    rows, columns = plan.tile[0] * plan.cluster[0], plan.tile[1] * plan.cluster[1]
    tiles = -(-m // rows) * -(-n // columns) * plan.parts
    clusters = min(tiles, resident_clusters(gpu, size))
    executor = _executor(plan, "cuda" if gpu else "emu")
    return PartsCall(executor, a, b, d, (plan.parts, m, n), plan.accumulator, clusters)


@functools.cache
def _executor(plan: Sm90Plan, target: str) -> Any:
    """The compiled function, for any extents and strides."""
    a, b = fake(plan.dtype, 3, plan.k_major[0]), fake(plan.dtype, 3, not plan.k_major[1])
    sums = fake(plan.accumulator, 3, True)
    assert plan.result is not None
    d = fake(plan.result, 2, True)
    return views.quick(cute.compile(launch_gemm_sm90_parts, a, b, sums, d, cute.Int32(1), plan, target=target))
