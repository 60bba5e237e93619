"""`gemm` as a function of tensors: their views, the choice of a plan, compiled kernels by configuration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.compiler.target_choice import choose_arch
from tilewright.cute import testing
from tilewright.hw.chips import chip
from tilewright.kernels import gemm_sm90_calls, gemm_sm90_parts, views
from tilewright.kernels.elementwise import together
from tilewright.kernels.epilogue_plans import check_reached, memory_of
from tilewright.kernels.gemm_epilogue import Fused
from tilewright.kernels.gemm_fusion import ACCUMULATOR, fitting, plain
from tilewright.kernels.gemm_moves import readable
from tilewright.kernels.gemm_operands import Operand
from tilewright.kernels.gemm_plans import GemmPlan, gemm_plans
from tilewright.kernels.gemm_sm80 import launch_gemm_sm80
from tilewright.kernels.gemm_sm90_calls import Sm90Call
from tilewright.kernels.gemm_sm90_parts import PartsCall
from tilewright.kernels.gemm_sm90_plans import Sm90Plan
from tilewright.kernels.gemm_split import workspace_elements
from tilewright.kernels.launching import address_of, on_gpu
from tilewright.kernels.views import FLOAT8
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.lowering.reductions import PARTIALS
from tilewright.utils import HardwareInfo

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "float8_e4m3fn", "float8_e5m2")
"""Element types of A and B."""


@dataclass(frozen=True)
class _Call:
    """What runs for tensors of one configuration: the executor, the views that it takes, and a workspace's size.

    `views` are those of A, of B and of D, where D is the epilogue's only tensor.
    """

    executor: Callable[..., None]
    views: tuple[views.Strided | None, ...]
    accumulator: type[cute.Numeric]
    workspace: int
    counters: int

    def plain(self, out: Any, a: Any, b: Any) -> None:
        """out = a · b."""
        a, b, out = (
            tensor if view is None else view.of(tensor) for view, tensor in zip(self.views, (a, b, out), strict=True)
        )
        self._run(a, b, (out,))

    def fused(self, a: Any, b: Any, arguments: tuple[Any, ...]) -> None:
        """The epilogue of a · b, on its arguments."""
        a, b = (tensor if view is None else view.of(tensor) for view, tensor in zip(self.views, (a, b), strict=True))
        self._run(a, b, arguments)

    def _run(self, a: Any, b: Any, arguments: tuple[Any, ...]) -> None:
        if not self.workspace:
            self.executor(a, b, arguments)
            return
        counters = views.empty(a, (self.counters,), cute.Int32)
        counters.fill(0) if isinstance(counters, np.ndarray) else counters.zero_()
        self.executor(a, b, arguments, views.empty(a, (self.workspace,), self.accumulator), counters)


_calls: dict[Any, _Call | Sm90Call | PartsCall] = {}


def gemm(out: Any, a: Any, b: Any, plan: GemmPlan | Sm90Plan | None = None, splits: bool = True) -> None:
    """out (..., M, N) = a (..., M, K) · b (..., K, N), batches broadcast to that of `out`; of any strides.

    Tensors of a GPU run there, others on the emulator. `plan` overrides the choice. Without `splits` no products along
    K are shared by blocks: each row of `out` is added up in one order, whatever the other extents are.
    """
    a, b = readable(a, b, whatever_size=not splits)
    key = _key(plan, splits, out, a, b)
    call = _calls.get(key)
    if call is None:
        if 0 in out.shape:
            return
        made = prepare(out, a, b, plan or plans_of(out, a, b, splits)[0])
        call = views.keep(_calls, key, made)
    call.plain(out, a, b)


def _key(plan: GemmPlan | Sm90Plan | None, splits: bool, out: Any, a: Any, b: Any) -> tuple[Any, ...]:
    arch = None if on_gpu(out) else settings.get("arch")
    return plan, splits, arch, views.facts(out), views.facts(a), views.facts(b)


def plans_of(out: Any, a: Any, b: Any, splits: bool = True) -> list[GemmPlan | Sm90Plan]:
    """The plans for these tensors: those of `wgmma` where it takes them, else of `mma.sync`; the rule's choice first.

    Without `splits`, products along K are not shared by blocks (see `gemm`).
    """
    matrices = matrices_of((a, b, out), tuple(out.shape[:-2]))
    found: list[GemmPlan | Sm90Plan] = [*gemm_sm90_calls.candidates(matrices, (a, b, out), splits)]
    if found:
        return found
    _check_width(a)
    *operands, target = matrices
    turned = target.strides[-1] != 1 and target.strides[-2] == 1
    plans = _planned(operands, (a, b), target.shape[-2:], turned)
    return [plan for plan in plans if splits or plan.splits == 1]


def _check_width(a: Any) -> None:
    if views.dtype_of(a) in FLOAT8:
        raise ArgumentError(
            "gemm: elements of 8-bit floats need wgmma of sm_90",
            values={"a": tuple(a.shape), "arch": choose_arch(settings.get("arch"), "cuda" if on_gpu(a) else "emu")},
            hint="convert them to float16 first; strides are multiples of 16 bytes in both operands",
        )


def tune(out: Any, a: Any, b: Any, most: int = 8) -> GemmPlan | Sm90Plan:
    """Time the `most` plans that the rule prefers; the fastest, which `gemm` takes for such tensors from now on.

    Such tensors are of these types, shapes, strides, alignments and on this device. `out` holds the product afterwards.
    """

    def run(plan: GemmPlan | Sm90Plan) -> Callable[[], None]:
        return lambda: gemm(out, a, b, plan=plan)

    left, right = readable(a, b)
    best: GemmPlan | Sm90Plan = testing.tune(run, {"plan": plans_of(out, left, right)[:most]})["plan"]
    gemm(out, a, b, plan=best)
    views.keep(_calls, _key(None, True, out, left, right), _calls[_key(best, True, out, left, right)])
    return best


def plan_of(out: Any, a: Any, b: Any) -> GemmPlan | Sm90Plan:
    """The plan that `gemm` takes for these tensors."""
    return plans_of(out, a, b)[0]


def prepare(out: Any, a: Any, b: Any, plan: GemmPlan | Sm90Plan) -> _Call | Sm90Call | PartsCall:
    """What runs for such tensors with this plan."""
    matrices = matrices_of((a, b, out), tuple(out.shape[:-2]))
    if isinstance(plan, Sm90Plan) and plan.result is not None:
        way = gemm_sm90_parts if plan.parts > 1 else gemm_sm90_calls
        return way.prepare(matrices, (a, b, out), plan)
    *operands, target = matrices
    result = _result(target, isinstance(plan, GemmPlan) and plan.turned)
    fused = plain(plan, result, views.dtype_of(out), address_of(out))
    if isinstance(plan, Sm90Plan):
        return gemm_sm90_calls.prepare((*operands, result), (a, b, out), plan, fused)
    executor = _executor(plan, fused, len(target.shape), "cuda" if on_gpu(out) else "emu")
    return _call(executor, plan, (*operands, result), (a, b, out))


def _result(matrix: views.Strided, turned: bool) -> views.Strided:
    """D, or its transpose, as (M, N, batch...), the fastest batch mode first."""
    order = (-1, -2) if turned else (-2, -1)
    shape, strides = (
        (*(of_all[place] for place in order), *of_all[-3::-1]) for of_all in (matrix.shape, matrix.strides)
    )
    return views.Strided(shape, strides)


def prepare_fused(
    dag: DAGIR, a: Any, b: Any, arrays: Mapping[str, Any], plan: GemmPlan | Sm90Plan | None = None, way: str = PARTIALS
) -> Callable[[Any, Any, Mapping[str, Any]], None]:
    """The kernel of a (L, M, K) · b (L, K, N) with an epilogue: a function of a, b, and arrays and numbers by name.

    Args:
        dag: the epilogue's graph, after its passes; its load `accum` is the product.
        a: a tensor like that of later calls: of its type, shape, strides, alignment and device; L may be absent or 1.
        b: likewise.
        arrays: the epilogue's operands and outputs, likewise.
        plan: overrides the choice.
        way: `PARTIALS` or `ATOMIC`, of reductions whose results several blocks share.

    Raises:
        EpilogueError: the epilogue takes too much shared memory, or a tensor does not fit the product's tiles.
    """
    batch, m, n = dag.get_node_meta(ACCUMULATOR).shape
    shaped = matrices_of((a, b), (batch,))
    plans = [plan] if plan else fused_plans_of(shaped, (a, b), (m, n))
    target = "cuda" if on_gpu(a) else "emu"
    starts = {name: address_of(memory_of(array)) for name, array in arrays.items() if hasattr(array, "shape")}
    available = chip(choose_arch(settings.get("arch"), target)).shared_optin
    plan, made = fitting(dag, starts, plans, available, way)
    if 0 in (batch, m, n):
        check_reached(dag, {meta.name: arrays[meta.name].shape for meta in dag.outputs()})
        return lambda a, b, given: made.fill(given)
    call: _Call | Sm90Call
    if isinstance(plan, Sm90Plan):
        call = gemm_sm90_calls.prepare(shaped, (a, b), plan, made.fused)
    else:
        call = _call(_executor(plan, made.fused, len(shaped[0].shape), target), plan, shaped, (a, b))
    return lambda a, b, given: call.fused(a, b, made.arguments(given, a))


def fused_plans_of(
    matrices: Sequence[views.Strided], tensors: Sequence[Any], extents: tuple[int, int]
) -> list[GemmPlan | Sm90Plan]:
    """The plans with an epilogue for A and B, seen as (batch..., rows, columns), the best first."""
    found = gemm_sm90_calls.candidates(matrices, tensors)
    if not found:
        _check_width(tensors[0])
    if views.dtype_of(tensors[0]) in FLOAT8:
        return [*found]
    return [*found, *_planned(matrices, tensors, extents, False)]


def _call(executor: Any, plan: GemmPlan, shaped: Sequence[views.Strided], tensors: Sequence[Any]) -> _Call:
    needed = tuple(view.unless_of(t.shape, views.strides_of(t)) for view, t in zip(shaped, tensors, strict=True))
    (*batch, rows, _), columns = shaped[0].shape, shaped[1].shape[-1]
    m, n = (columns, rows) if plan.turned else (rows, columns)
    tiles = math.prod(batch) * -(-m // plan.tile[0]) * -(-n // plan.tile[1])
    elements = workspace_elements(tiles, plan.splits, plan.tile) if plan.splits > 1 else 0
    return _Call(executor, needed, plan.accumulator, elements, tiles)


def matrices_of(tensors: Sequence[Any], batch: tuple[int, ...]) -> list[views.Strided]:
    """The tensors as (batch..., rows, columns) of one batch; dimensions of it through which all step alike are one."""
    extents, merged = together(batch, [_batch_steps(tensor, batch) for tensor in tensors])
    if math.prod(batch) == 1:
        extents, merged = (), [()] * len(tensors)
    return [
        views.Strided((*extents[::-1], *tensor.shape[-2:]), (*of_one[::-1], *views.strides_of(tensor)[-2:]))
        for tensor, of_one in zip(tensors, merged, strict=True)
    ]


def _batch_steps(tensor: Any, batch: Sequence[int]) -> tuple[int, ...]:
    """Strides of the batch as broadcast to `batch`."""
    own, strides = tensor.shape[:-2], views.strides_of(tensor)[:-2]
    missing = (0,) * (len(batch) - len(own))
    return missing + tuple(0 if extent == 1 else step for extent, step in zip(own, strides, strict=True))


def _planned(
    matrices: Sequence[views.Strided], tensors: Sequence[Any], extents: Sequence[int], turned: bool
) -> list[GemmPlan]:
    """The plans for A, B and the extents (M, N) of D, the best first; of the transpose if D is to be `turned`."""
    (a, b), dtype, (m, n) = matrices, views.dtype_of(tensors[0]), extents
    left, right = _operand(a, dtype, address_of(tensors[0]), -1), _operand(b, dtype, address_of(tensors[1]), -2)
    if turned:
        left, right, m, n = right, left, n, m
    batch = math.prod(a.shape[:-2])
    return gemm_plans(left, right, (m, n, a.shape[-1], batch), turned, _multiprocessors(on_gpu(tensors[0])))


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
def _executor(plan: GemmPlan, fused: Fused, rank: int, target: str) -> Any:
    """The compiled function of A and B of so many modes, with any extents and strides, and the epilogue's arguments."""
    left, right = (plan.b, plan.a) if plan.turned else (plan.a, plan.b)
    a = _fake(left.dtype, rank, left.vector, -1 if left.k_major else -2, left.dense)
    b = _fake(right.dtype, rank, right.vector, -2 if right.k_major else -1, right.dense)
    workspace = counters = None
    if plan.splits > 1:
        workspace, counters = (
            cute.runtime.make_fake_tensor(dtype, (cute.sym_int64(),), stride=(1,), assumed_align=16)
            for dtype in (plan.accumulator, cute.Int32)
        )
    fakes = a, b, fused.epilogue.fake_arguments(), workspace, counters
    return views.quick(cute.compile(launch_gemm_sm80, *fakes, plan, fused, target=target))


def _fake(dtype: type[cute.Numeric], rank: int, vector: int, contiguous: int, dense: bool) -> Any:
    """A tensor to compile for, whose dimension `contiguous` has stride 1 where it is `dense`."""
    extents: list[Any] = [cute.sym_int() for _ in range(rank)]
    strides: list[Any] = [cute.sym_int64(divisibility=vector) for _ in range(rank)]
    extents[contiguous] = cute.sym_int(divisibility=vector)
    strides[contiguous] = 1 if dense else cute.sym_int64()
    return cute.runtime.make_fake_tensor(
        dtype, extents, stride=strides, assumed_align=max(vector * dtype.width // 8, 1)
    )
