"""`reduce` as a function of tensors: any dimensions of any strides as passes over rows or columns, and their plans.

Dimensions that lie behind each other in memory become one. One group of reduced dimensions is one pass. Of several, the
one with the least stride is reduced first, into a workspace of the accumulator's type, so the tensor is read once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilewright.cute as cute
from tilewright.kernels import views
from tilewright.kernels.launching import on_gpu
from tilewright.kernels.plans import power_of_two
from tilewright.kernels.reduce import VECTOR_BYTES, ColumnReduction, RowReduction, launch_columns, launch_rows
from tilewright.kernels.reductions import Reduction

MULTIPROCESSORS = 132
_BLOCK = 256
_ROW_BLOCK = 128
_UNROLL = 8
_PER_MULTIPROCESSOR = 8  # blocks of a pass that is split


@dataclass(frozen=True)
class Mode:
    """A dimension, or several that are one in memory: extent, strides in x and in the result (0 where reduced)."""

    extent: int
    step: int
    out_step: int
    reduced: bool


def reduce(out: Any, x: Any, name: str, dims: Sequence[int]) -> None:
    """out = the reduction `name` of `x` over `dims`; x has elements, and out has its shape, with or without `dims`.

    Several dimensions of an argmax must lie behind each other in memory.
    """
    modes = merged(x, out, {dim % x.ndim for dim in dims})
    count = math.prod(mode.extent for mode in modes if mode.reduced)
    steps = sorted((mode for mode in modes if mode.reduced), key=lambda mode: abs(mode.step))
    while len(steps) > 1:
        x, modes = _first_pass(x, modes, steps.pop(0), "sum" if name == "mean" else name)
        steps = [mode for mode in modes if mode.reduced]
    _run(out, x, modes, name, count)


def merged(x: Any, out: Any, dims: set[int]) -> list[Mode]:
    """The dimensions of x, those of extent 1 left out, neighbours that one stride steps through taken together."""
    kept = [dim for dim in range(x.ndim) if dim not in dims]
    steps = views.strides_of(out)
    of_out = {dim: steps[dim if out.ndim == x.ndim else place] for place, dim in enumerate(kept)}
    modes: list[Mode] = []
    for dim, (extent, step) in enumerate(zip(x.shape, views.strides_of(x), strict=True)):
        mode = Mode(extent, step, of_out.get(dim, 0), dim in dims)
        if extent == 1:
            continue
        if modes and _continues(modes[-1], mode):
            modes[-1] = Mode(modes[-1].extent * extent, step, mode.out_step, mode.reduced)
        else:
            modes.append(mode)
    return modes if any(mode.reduced for mode in modes) else [*modes, Mode(1, 1, 0, True)]


def _continues(mode: Mode, inner: Mode) -> bool:
    one_in_x = mode.step == inner.extent * inner.step and mode.reduced == inner.reduced
    return one_in_x and mode.out_step == inner.extent * inner.out_step


def _first_pass(x: Any, modes: list[Mode], over: Mode, name: str) -> tuple[Any, list[Mode]]:
    """Reduce one mode into a workspace; the workspace and its modes."""
    rest = [mode for mode in modes if mode is not over]
    steps = [math.prod(mode.extent for mode in rest[place + 1 :]) for place in range(len(rest))]
    workspace = views.empty(x, [mode.extent for mode in rest], Reduction(name, views.dtype_of(x)).accumulator)
    pairs = list(zip(rest, steps, strict=True))
    kept = [Mode(mode.extent, mode.step, step, False) for mode, step in pairs]
    place = modes.index(over)
    _run(workspace, x, [*kept[:place], over, *kept[place:]], name, over.extent)
    return workspace, [Mode(mode.extent, step, mode.out_step, mode.reduced) for mode, step in pairs]


def _run(out: Any, x: Any, modes: list[Mode], name: str, divisor: int) -> None:
    """One pass over the reduced mode of `modes`: along rows where its stride is the least, else along columns."""
    over = next(mode for mode in modes if mode.reduced)
    kept = [mode for mode in reversed(modes) if not mode.reduced]  # the language counts the first mode fastest
    inner = min(kept, key=lambda mode: abs(mode.step), default=over)
    reduction = Reduction(name, views.dtype_of(x))
    if inner is over or abs(over.step) <= abs(inner.step) or inner.step == 0:
        outer = kept or [Mode(1, 0, 0, False)]
        line = views.strided(x, [*(m.extent for m in outer), over.extent], [*(m.step for m in outer), over.step])
        result = views.strided(out, [m.extent for m in outer], [m.out_step for m in outer])
        plan, parts = row_plan(reduction, line)
        _call("rows", plan, line, result, (math.prod(line.shape[:-1]), parts), divisor)
    else:
        outer = [mode for mode in kept if mode is not inner] or [Mode(1, 0, 0, False)]
        last = [over, inner]
        block = views.strided(x, [m.extent for m in [*outer, *last]], [m.step for m in [*outer, *last]])
        result = views.strided(
            out, [*(m.extent for m in outer), inner.extent], [*(m.out_step for m in outer), inner.out_step]
        )
        plan, parts = column_plan(reduction, block)
        _call("columns", plan, block, result, (math.prod(block.shape[:-2]), parts, inner.extent), divisor)


_compiled: dict[Any, Any] = {}


def _call(kind: str, plan: Any, x: Any, out: Any, workspace: tuple[int, ...], divisor: int) -> None:
    states = None
    reduction, parts = plan.reduction, workspace[1]
    if parts > 1:
        types = (reduction.accumulator, cute.Int64) if reduction.indexed else (reduction.accumulator,)
        states = tuple(views.empty(x, workspace, dtype) for dtype in types)
    executor = _executor(kind, plan, x, out, parts)
    executor(x, out, *(() if states is None else (states,)), float(divisor))


def _executor(kind: str, plan: Any, x: Any, out: Any, parts: int) -> Any:
    dense = views.strides_of(x)[-1] == 1
    target = "cuda" if on_gpu(x) else "emu"
    second = second_plan(kind, plan.reduction, parts) if parts > 1 else None
    out_type = views.dtype_of(out)
    key = (kind, plan, second, out_type, x.ndim, dense, target)
    if key not in _compiled:
        step = plan.vector if getattr(plan, "aligned", True) else 1
        extents = [*(cute.sym_int() for _ in x.shape[1:]), cute.sym_int(divisibility=step)]
        states = None
        if second is not None:
            width = 3 if kind == "columns" else 2
            types = (plan.reduction.accumulator, cute.Int64) if plan.reduction.indexed else (second.reduction.dtype,)
            states = tuple(views.fake(dtype, [cute.sym_int() for _ in range(width)]) for dtype in types)
        made = views.fake(out_type, [cute.sym_int() for _ in out.shape], 1, False)
        launch = launch_rows if kind == "rows" else launch_columns
        _compiled[key] = cute.compile(
            launch, views.fake(plan.reduction.dtype, extents, step, dense), made, states, cute.Float64(1), plan, second,
            target=target,
        )  # fmt: skip
    return _compiled[key]


def row_plan(reduction: Reduction, x: Any) -> tuple[RowReduction, int]:
    """How the last mode of x is reduced, and into how many parts it is split.

    A thread takes up to eight vectors at a time, a row up to 256 threads, a block at least 128. Rows are split where
    there are fewer blocks than two for each multiprocessor.
    """
    n, rows = x.shape[-1], math.prod(x.shape[:-1])
    full = VECTOR_BYTES * 8 // max(reduction.dtype.width, 8)
    dense = views.strides_of(x)[-1] == 1
    vector = full if dense and n >= 2 * full else 1
    vectors = n // vector
    threads = min(power_of_two(-(-vectors // _UNROLL)), _BLOCK)
    aligned = vector == 1 or views.vector(x) == full
    threads = max(threads, min(power_of_two(vectors), 32), 1 if aligned else vector)
    unroll = min(power_of_two(-(-vectors // threads)), _UNROLL)
    lines = max(_ROW_BLOCK // threads, 1)
    blocks = -(-rows // lines)
    plan = RowReduction(reduction, vector, threads, lines, unroll, aligned)
    return plan, _parts(blocks, vectors // (threads * unroll))


def column_plan(reduction: Reduction, x: Any) -> tuple[ColumnReduction, int]:
    """How the last but one mode of x is reduced, and into how many parts it is split: as rows are."""
    n, inner, outer = x.shape[-2], x.shape[-1], math.prod(x.shape[:-2])
    vector = views.vector(x, cap=64 if reduction.dtype.width == 8 else 128)
    vectors = inner // vector
    across = min(power_of_two(vectors), 32)
    along = min(power_of_two(n), _BLOCK // across)
    unroll = min(power_of_two(-(-n // along)), _UNROLL)
    plan = ColumnReduction(reduction, vector, across, along, unroll)
    return plan, _parts(outer * -(-vectors // across), n // (along * unroll))


def _parts(blocks: int, steps: int) -> int:
    """Into how many parts each result is split, for so many blocks that take so many steps."""
    if blocks >= 2 * MULTIPROCESSORS or steps < 2:
        return 1
    return min(-(-_PER_MULTIPROCESSOR * MULTIPROCESSORS // blocks), steps)


def second_plan(kind: str, reduction: Reduction, parts: int) -> Any:
    """How the states of `parts` parts are reduced."""
    of_states = Reduction(reduction.name, reduction.accumulator)
    if kind == "rows":
        threads = min(power_of_two(parts), _BLOCK)
        return RowReduction(of_states, 1, threads, max(_ROW_BLOCK // threads, 1), 4)
    along = min(power_of_two(parts), _BLOCK // 32)
    return ColumnReduction(of_states, 1, 32, along, min(power_of_two(-(-parts // along)), _UNROLL))
