"""`reduce` as a function of tensors: any dimensions of any strides as passes over rows or columns, and their plans.

Dimensions that lie behind each other in memory become one. One group of reduced dimensions is one pass. Of several, the
one with the least stride is reduced first, into a workspace of the accumulator's type, so the tensor is read once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tilewright.cute as cute
from tilewright.kernels import views
from tilewright.kernels.launching import address_of, on_gpu
from tilewright.kernels.plans import power_of_two
from tilewright.kernels.reduce import VECTOR_BYTES, ColumnReduction, RowReduction, launch_columns, launch_rows
from tilewright.kernels.reduce_naive import NaiveReduction, launch_naive
from tilewright.kernels.reductions import Reduction

_BLOCK = 256
_ROW_BLOCK = 128
_MOST_BLOCK = 1024
_WARP_VECTORS = 256  # a row of so many vectors is a warp's
_UNROLL = 8
_ACROSS = 16
_LONG_UNROLL = 4
_ENOUGH_BLOCKS = 256  # about two for each multiprocessor of an H100


@dataclass(frozen=True)
class Mode:
    """A dimension, or several that are one in memory: extent, strides in x and in the result (0 where reduced)."""

    extent: int
    step: int
    out_step: int
    reduced: bool


@dataclass(frozen=True)
class Pass:
    """One pass: what runs, on which views of the tensor and the result (None: as they are), with which workspace.

    Attributes:
        executor: the compiled pass.
        source: shape and strides in which it takes the tensor.
        result: shape and strides in which it takes the result.
        states: shape and types of the states of parts, where it is split.
        workspace: shape and type of the result, where another pass follows.
        divisor: of a mean.
    """

    executor: Callable[..., None]
    source: views.Strided | None
    result: views.Strided | None
    states: tuple[tuple[int, ...], tuple[Any, ...]] | None
    workspace: tuple[tuple[int, ...], Any] | None
    divisor: float

    def run(self, out: Any, x: Any) -> Any:
        """Run it; the tensor that holds the result."""
        target = out if self.workspace is None else views.empty(x, *self.workspace)
        source = x if self.source is None else self.source.of(x)
        result = target if self.result is None else self.result.of(target)
        if self.states is None:
            self.executor(source, result, self.divisor)
        else:
            shape, types = self.states
            self.executor(source, result, tuple(views.empty(x, shape, dtype) for dtype in types), self.divisor)
        return target


_prepared: dict[Any, list[Pass]] = {}


def reduce(out: Any, x: Any, name: str, dims: Sequence[int], variant: str = "auto", *, op: str = "reduce") -> None:
    """out = the reduction `name` of `x`, which has elements, over `dims`, which `out` does not have.

    Several dimensions of an argmax must lie behind each other in memory. `variant` is one of `VARIANTS`. The symbols of
    the kernels begin with `op`.
    """
    key = (op, name, variant, tuple(dims), views.facts(x), views.facts(out))
    passes = _prepared.get(key)
    if passes is None:
        passes = views.keep(_prepared, key, prepare(out, x, name, dims, variant, op=op))
    run(passes, out, x)


def run(passes: Sequence[Pass], out: Any, x: Any) -> None:
    """Run prepared passes."""
    for step in passes:
        x = step.run(out, x)


def prepare(
    out: Any, x: Any, name: str, dims: Sequence[int], variant: str = "auto", *, op: str = "reduce"
) -> list[Pass]:
    """The passes of `reduce` for tensors like these: of their types, shapes, strides and alignment."""
    modes = merged(x, out, {dim % x.ndim for dim in dims} if x.ndim else set())
    dtype, start, target = views.dtype_of(x), address_of(x), "cuda" if on_gpu(x) else "emu"
    count = math.prod(mode.extent for mode in modes if mode.reduced)
    passes = []
    while len(over := [mode for mode in modes if mode.reduced]) > 1:
        least = min(over, key=lambda mode: abs(mode.step))
        partial = Reduction("sum" if name == "mean" else name, dtype, op)
        before, modes = _around(modes, least)
        shape = tuple(mode.extent for mode in modes)
        made = _pass(partial, before, start, partial.accumulator, target, 1, variant)
        passes.append(replace(made, workspace=(shape, partial.accumulator)))
        dtype, start = partial.accumulator, 0
    passes.append(_pass(Reduction(name, dtype, op), modes, start, views.dtype_of(out), target, count, variant))
    passes[0] = replace(passes[0], source=_view(passes[0].source, x))
    passes[-1] = replace(passes[-1], result=_view(passes[-1].result, out))
    return passes


def _view(wanted: views.Strided | None, tensor: Any) -> views.Strided | None:
    """None where the tensor is as wanted."""
    return wanted and wanted.unless_of(tensor.shape, views.strides_of(tensor))


def _around(modes: list[Mode], over: Mode) -> tuple[list[Mode], list[Mode]]:
    """The modes of a first pass over one mode, into a contiguous workspace, and of what then reads the workspace."""
    before, after, step = [], [], 1
    for mode in reversed(modes):
        if mode is over:
            before.append(mode)
        else:
            before.append(Mode(mode.extent, mode.step, step, False))
            after.append(Mode(mode.extent, step, mode.out_step, mode.reduced))
            step *= mode.extent
    return before[::-1], after[::-1]


def merged(x: Any, out: Any, dims: set[int]) -> list[Mode]:
    """The dimensions of x, those of extent 1 left out, neighbours that one stride steps through taken together."""
    kept = [dim for dim in range(x.ndim) if dim not in dims]
    of_out = dict(zip(kept, views.strides_of(out), strict=True))
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


def _pass(
    reduction: Reduction, modes: list[Mode], start: int, out_type: Any, target: str, divisor: int, variant: str
) -> Pass:
    """The pass over the one reduced mode: along rows where its stride is the least, else along columns.

    All variants but "auto" go along rows.
    """
    over = next(mode for mode in modes if mode.reduced)
    kept = [mode for mode in reversed(modes) if not mode.reduced]  # the language counts the first mode fastest
    inner = min(kept, key=lambda mode: abs(mode.step), default=over)
    along_rows = variant != "auto" or inner is over or abs(over.step) <= abs(inner.step) or inner.step == 0
    outer = [mode for mode in kept if along_rows or mode is not inner] or [Mode(1, 0, 0, False)]
    last = [over] if along_rows else [over, inner]
    source = views.Strided.of_pairs([(mode.extent, mode.step) for mode in [*outer, *last]])
    results = outer if along_rows else [*outer, inner]
    result = views.Strided.of_pairs([(mode.extent, mode.out_step) for mode in results])
    rows = math.prod(mode.extent for mode in outer)
    plan, parts = (VARIANTS[variant] if along_rows else column_plan)(reduction, source, start)
    states = None
    if parts > 1:
        types = (reduction.accumulator, cute.Int64) if reduction.indexed else (reduction.accumulator,)
        states = ((rows, parts) if along_rows else (rows, parts, inner.extent)), types
    second = second_plan(plan, parts) if parts > 1 else None
    dense = source.strides[-1] == 1
    executor = _executor(plan, second, out_type, len(source.shape), dense, target)
    return Pass(executor, source, result, states, None, float(divisor))


@functools.cache
def _executor(plan: Any, second: Any, out_type: Any, rank: int, dense: bool, target: str) -> Any:
    """The compiled pass over tensors of so many modes."""
    step = plan.vector if plan.aligned else 1
    x = views.fake(plan.reduction.dtype, [*views.symbols(rank - 1), cute.sym_int(divisibility=step)], step, dense)
    out = views.fake(out_type, views.symbols(rank - 1), 1, False)
    states = None
    if second is not None:
        types = (second.reduction.dtype, cute.Int64) if plan.reduction.indexed else (second.reduction.dtype,)
        states = tuple(views.fake(dtype, views.symbols(2 if plan.by_rows else 3)) for dtype in types)
    return views.quick(cute.compile(_LAUNCH[type(plan)], x, out, states, cute.Float64(1), plan, second, target=target))


def row_plan(reduction: Reduction, x: views.Strided, start: int = 0) -> tuple[RowReduction, int]:
    """How the last mode of x is reduced, and into how many parts it is split.

    A row of up to 4 KiB is a warp's. A longer one is read by as many threads as take four vectors each, up to 1024; a
    block has at least 128. Rows are split where there are fewer blocks than two for each multiprocessor.
    """
    n, rows = x.shape[-1], math.prod(x.shape[:-1])
    vector, aligned = _row_vector(reduction, x, start)
    vectors = n // vector
    short = vectors <= _WARP_VECTORS
    threads = min(power_of_two(-(-vectors // _LONG_UNROLL)), _MOST_BLOCK)
    threads = max(min(power_of_two(vectors), 32) if short else threads, 1 if aligned else vector)
    unroll = min(power_of_two(-(-vectors // threads)), _UNROLL if short else _LONG_UNROLL)
    lines = max(_ROW_BLOCK // threads, 1)
    plan = RowReduction(reduction, vector, threads, lines, unroll, aligned)
    return plan, _parts(-(-rows // lines), -(-vectors // (threads * unroll)))


def _row_vector(reduction: Reduction, x: views.Strided, start: int) -> tuple[int, bool]:
    """Elements of a load of the rows of x, and whether all rows are aligned to it."""
    full = VECTOR_BYTES * 8 // max(reduction.dtype.width, 8)
    if x.strides[-1] != 1 or x.shape[-1] < 2 * full:
        return 1, True
    return full, x.vector(reduction.dtype, start) == full


def _naive(reduction: Reduction, x: views.Strided, start: int) -> tuple[Any, int]:
    return NaiveReduction(reduction, _BLOCK), 1


def _shuffle(reduction: Reduction, x: views.Strided, start: int) -> tuple[Any, int]:
    return RowReduction(reduction, 1, _BLOCK, 1, 1), 1


def _vectorized(reduction: Reduction, x: views.Strided, start: int) -> tuple[Any, int]:
    vector, aligned = _row_vector(reduction, x, start)
    return RowReduction(reduction, vector, _BLOCK, 1, _LONG_UNROLL, aligned), 1


def _multi_row(reduction: Reduction, x: views.Strided, start: int) -> tuple[Any, int]:
    vector, aligned = _row_vector(reduction, x, start)
    return RowReduction(reduction, vector, 32, _ROW_BLOCK // 32, _UNROLL, aligned), 1


def _split(reduction: Reduction, x: views.Strided, start: int) -> tuple[Any, int]:
    plan, _ = _vectorized(reduction, x, start)
    steps = -(-x.shape[-1] // (plan.vector * plan.threads * plan.unroll))
    return plan, max(2, _parts(math.prod(x.shape[:-1]), steps))


VARIANTS = {
    "auto": row_plan, "naive": _naive, "shuffle": _shuffle, "vectorized": _vectorized, "multi_row": _multi_row,
    "split": _split,
}  # fmt: skip
_LAUNCH: dict[type, Any] = {
    RowReduction: launch_rows, ColumnReduction: launch_columns, NaiveReduction: launch_naive,
}  # fmt: skip


def column_plan(reduction: Reduction, x: views.Strided, start: int = 0) -> tuple[ColumnReduction, int]:
    """How the last but one mode of x is reduced, and into how many parts it is split: as rows are."""
    n, inner, outer = x.shape[-2], x.shape[-1], math.prod(x.shape[:-2])
    vector = x.vector(reduction.dtype, start, 64 if reduction.dtype.width == 8 else 128)
    vectors = inner // vector
    across = min(power_of_two(vectors), _ACROSS)
    along = min(power_of_two(n), _BLOCK // across)
    unroll = min(power_of_two(-(-n // along)), _UNROLL)
    plan = ColumnReduction(reduction, vector, across, along, unroll)
    return plan, _parts(outer * -(-vectors // across), -(-n // (along * unroll)))


def _parts(blocks: int, steps: int) -> int:
    """Into how many parts each result is split, for so many blocks that take so many steps.

    Each part but the last has the same number of whole steps, as the kernels deal them.
    """
    if blocks >= _ENOUGH_BLOCKS or steps < 2:
        return 1
    parts = min(power_of_two(-(-_ENOUGH_BLOCKS // blocks)), steps)
    return -(-steps // -(-steps // parts))


def second_plan(plan: RowReduction | ColumnReduction, parts: int) -> RowReduction | ColumnReduction:
    """How the states of `parts` parts are reduced."""
    of_states = replace(plan.reduction, dtype=plan.reduction.accumulator)
    if isinstance(plan, RowReduction):
        threads = min(power_of_two(parts), _BLOCK)
        return RowReduction(of_states, 1, threads, max(_ROW_BLOCK // threads, 1), 4)
    along = min(power_of_two(parts), _MOST_BLOCK // 32)
    return ColumnReduction(of_states, 1, 32, along, min(power_of_two(-(-parts // along)), _UNROLL))
