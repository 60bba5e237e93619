"""`gemm_grouped` as a function of tensors: groups of rows, each times a matrix of its own.

On sm_90 it is one launch, where the copy engine takes A and B; else there is a product for each group, whose end the
host reads.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import tilewright.cute as cute
from tilewright.base import settings
from tilewright.kernels import gemm_sm90_calls, views
from tilewright.kernels.gemm import gemm
from tilewright.kernels.gemm_epilogue import Fused
from tilewright.kernels.gemm_fusion import plain
from tilewright.kernels.gemm_moves import readable
from tilewright.kernels.gemm_sm90_grouped import BOUNDS_BYTES, MOST_GROUPS, launch_gemm_sm90_grouped
from tilewright.kernels.gemm_sm90_plans import Kind, Sm90Plan, sm90_plans
from tilewright.kernels.launching import address_of, on_gpu

_calls: dict[Any, Any] = {}


def gemm_grouped(out: Any, a: Any, b: Any, ends: Any, plan: Sm90Plan | None = None) -> None:
    """Rows `ends[g - 1]` to `ends[g]` of out (M, N) = those of a (M, K) · b[g] (K, N), for each of the G groups.

    Rows behind the last end are left alone. `ends`, (G,) of Int32, lie where the other tensors do, and do not fall;
    what lies behind M counts as M. `plan` overrides the choice.
    """
    if 0 in out.shape or 0 in b.shape:
        return _one_by_one(out, a, b, ends)
    a, b = readable(a, b, whatever_size=True)
    key = plan, settings.get("arch"), *map(views.facts, (out, a, b, ends))
    if key not in _calls:
        views.keep(_calls, key, _prepare(out, a, b, ends, plan))
    call = _calls[key]
    if call is None:
        return _one_by_one(out, a, b, ends)
    executor, clusters = call
    executor(a, b, ends, (out,), clusters)
    return None


def plans_of(out: Any, a: Any, b: Any) -> list[Sm90Plan]:
    """The plans for these tensors, the rule's choice first; none where there is a product for each group."""
    kind = _kind(out, a, b)
    gpu = on_gpu(a)
    if kind is None or b.shape[0] > MOST_GROUPS or not gemm_sm90_calls.has_sm90(gpu):
        return []
    (m, k), (groups, _, n) = a.shape, b.shape
    capacity = gemm_sm90_calls.shared_capacity(gpu) - BOUNDS_BYTES
    extents = max(m // groups, 1), n, k, groups  # as if all groups had as many rows
    return sm90_plans(kind, extents, gemm_sm90_calls.multiprocessors(gpu), capacity, splits=False)


def _kind(out: Any, a: Any, b: Any) -> Kind | None:
    left, right = _matrix(a), _matrix(b)
    found = gemm_sm90_calls.kind_of((left, right), (a, b))
    return found if found is None or views.strides_of(out)[-1] == 1 else None


def _matrix(tensor: Any) -> views.Strided:
    return views.Strided(tuple(tensor.shape), views.strides_of(tensor))


def _prepare(out: Any, a: Any, b: Any, ends: Any, plan: Sm90Plan | None) -> Any:
    """The executor and its clusters; None where there is no kernel for all groups."""
    plans = plans_of(out, a, b)
    if not plans:
        return None
    chosen, gpu = plan or plans[0], on_gpu(a)
    size = chosen.cluster[0] * chosen.cluster[1]
    rows, columns = chosen.tile[0] * chosen.cluster[0], chosen.tile[1] * chosen.cluster[1]
    most = (-(-a.shape[0] // rows) + b.shape[0]) * -(-b.shape[-1] // columns)
    clusters = min(most, gemm_sm90_calls.resident_clusters(gpu, size))
    fused = plain(chosen, _matrix(out), views.dtype_of(out), address_of(out))
    return _executor(chosen, fused, "cuda" if gpu else "emu"), clusters


@functools.cache
def _executor(plan: Sm90Plan, fused: Fused, target: str) -> Any:
    """The compiled function, for any extents and strides."""
    return views.quick(compiled(plan, fused, target))


def compiled(plan: Sm90Plan, fused: Fused, target: str, options: str = "") -> Any:
    """The compiled function of a, b, ends and the epilogue's arguments, for any extents and strides."""
    a = gemm_sm90_calls.fake(plan.dtype, 2, plan.k_major[0])
    b = gemm_sm90_calls.fake(plan.dtype, 3, not plan.k_major[1])
    ends = cute.runtime.make_fake_tensor(cute.Int32, (cute.sym_int(),), stride=(1,), assumed_align=4)
    fakes = a, b, ends, fused.epilogue.fake_arguments(), cute.Int32(1), plan, fused
    return cute.compile(launch_gemm_sm90_grouped, *fakes, target=target, options=options)


def gemm_grouped_outer(out: Any, a: Any, b: Any, ends: Any) -> None:
    """out[g] (K, N) = the transpose of a's rows of group g, (K, rows), times those of b (M, N): a gradient.

    There is a product for each group, whose end the host reads. A group without rows has zeros.
    """
    for group, start, end in _bounds(ends, a.shape[0]):
        gemm(out[group], a[start:end].swapaxes(0, 1), b[start:end])


def _one_by_one(out: Any, a: Any, b: Any, ends: Any) -> None:
    for group, start, end in _bounds(ends, out.shape[0]):
        if end > start:
            gemm(out[start:end], a[start:end], b[group])


def _bounds(ends: Any, rows: int) -> Iterator[tuple[int, int, int]]:
    """Each group with its first row and its end."""
    start = 0
    for group, end in enumerate(ends.tolist()):
        end = max(min(end, rows), start)
        yield group, start, end
        start = end
