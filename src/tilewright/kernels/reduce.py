"""The kernels of `reduce`: over the last mode of a matrix, and over the middle mode of (outer, n, inner).

Both read vectors of up to 128 bits, several of them before the first is used, and fold what a thread reads in a tree.
Then lanes and warps, or threads of a column, combine their states in a fixed order, so results are the same in every
run. Where there are too few results to fill the device, `parts` blocks share each and a second pass over their states
finishes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels.reductions import Reduction

VECTOR_BYTES = 16


@dataclass(frozen=True)
class RowReduction:
    """How rows are read.

    Attributes:
        reduction: what is computed.
        vector: elements of one load.
        threads: threads of a row, a power of two.
        rows: rows of a block.
        unroll: loads that a thread issues before it uses the first.
        aligned: whether each row begins at a multiple of the vector and is a multiple of it long. Else a row's first
            and last elements are read one by one, and `threads` is at least `vector`.
    """

    reduction: Reduction
    vector: int
    threads: int
    rows: int
    unroll: int
    aligned: bool = True
    by_rows: ClassVar[bool] = True


@dataclass(frozen=True)
class ColumnReduction:
    """How columns are read.

    Attributes:
        reduction: what is computed.
        vector: columns of one load.
        across: threads of a block along the columns.
        along: threads of a block along n.
        unroll: loads that a thread issues before it uses the first.
    """

    reduction: Reduction
    vector: int
    across: int
    along: int
    unroll: int
    aligned: ClassVar[bool] = True
    by_rows: ClassVar[bool] = False


@cute.jit
def _read(
    vectors: cute.Tensor,
    at: cute.Integer,
    stop: cute.Integer,
    index: cute.Integer,
    plan: cutlass.Constexpr,
    whole: cutlass.Constexpr,
) -> Any:
    """The state of vectors at, at + threads, ...; those from `stop` on do not count. `index` is that of vector 0."""
    reduction, width = plan.reduction, plan.vector
    held = cute.make_rmem_tensor((width, plan.unroll), reduction.dtype)
    if cutlass.const_expr(not whole):
        held.fill(reduction.neutral)
    for u in cutlass.range_constexpr(plan.unroll):
        v = at + u * plan.threads
        if cutlass.const_expr(whole):
            cute.autovec_copy(vectors[None, v], held[None, u])
        else:
            if v < stop:
                cute.autovec_copy(vectors[None, v], held[None, u])
    first = index + at * width
    folded = []
    for u in cutlass.range_constexpr(plan.unroll):
        behind = [type(first)(u * plan.threads * width + k) for k in range(width)]
        folded.append(reduction.fold([reduction.lift(held[k, u], behind[k]) for k in range(width)]))
    return reduction.widen(reduction.moved(reduction.fold(folded), first))


@cute.jit
def _read_one(row: cute.Tensor, k: cute.Integer, known: Any, reduction: cutlass.Constexpr) -> Any:
    """The state of element k, whose index is `known` where it is the state of another pass."""
    index = k
    if cutlass.const_expr(known is not None):
        index = type(k)(known[k])
    return reduction.widen(reduction.lift(row[k], index))


@cute.jit
def _block_state(state: Any, plan: cutlass.Constexpr) -> Any:
    """The state of each row of the block, in its first thread."""
    reduction = plan.reduction
    state = reduction.across(state, min(plan.threads, 32))
    if cutlass.const_expr(plan.threads > 32):
        warps = plan.threads // 32
        thread, _, _ = cute.arch.thread_idx()
        lane, warp = thread % 32, thread // 32
        allocator = cutlass.utils.SmemAllocator()
        shared = [allocator.allocate_tensor(type(number), cute.make_layout((plan.rows * warps,))) for number in state]
        if lane == 0:
            for place, number in zip(shared, state, strict=True):
                place[warp] = number
        cute.arch.sync_threads()
        state = reduction.start(type(state[-1]))
        if warp % warps == 0:
            if lane < warps:
                state = tuple(place[warp + lane] for place in shared)
            state = reduction.across(state, warps)
    return state


@cute.jit
def _write(outs: Any, row: cute.Integer, part: cute.Integer, state: Any, divisor: Any, plan: cutlass.Constexpr) -> None:
    """The result of a row, where `outs` is one tensor (rows,), or the states of its parts, tensors (rows, parts)."""
    if cutlass.const_expr(cute.rank(outs[0]) == 1):
        outs[0][row] = plan.reduction.finish(state, divisor, outs[0].element_type)
    else:
        for out, number in zip(outs, state, strict=True):
            out[row, part] = number


@cute.kernel
def rows_kernel(
    x: cute.Tensor, known: Any, outs: Any, parts: cute.Integer, divisor: Any, plan: cutlass.Constexpr
) -> None:
    """A group of threads reduces one part of one row of x (rows, n)."""
    reduction = plan.reduction
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    rows, n = cute.size(x, mode=[0]), x.shape[1]
    part, row = block % parts, type(n)(block // parts) * plan.rows + thread // plan.threads
    t = type(n)(thread % plan.threads)
    state = reduction.start(type(n))
    if row < rows:
        line = x[row, None]
        if cutlass.const_expr(plan.vector == 1):
            chunk = cute.ceil_div(n, parts)
            for k in cutlass.range(part * chunk + t, min(n, (part + 1) * chunk), plan.threads, unroll=plan.unroll):
                state = reduction.combine(
                    state, _read_one(line, k, None if known is None else known[row, None], reduction)
                )
        else:
            head: Any = 0
            if cutlass.const_expr(not plan.aligned):
                head = _to_boundary(line.iterator, n)
                if part == 0 and t < head:
                    state = _read_one(line, t, None, reduction)
            vectors = (n - head) // plan.vector
            base = (line.iterator + head).with_alignment(VECTOR_BYTES * plan.vector // _full(reduction.dtype))
            whole = cute.make_tensor(base, cute.make_layout((plan.vector, vectors), stride=(1, plan.vector)))
            stride = plan.threads * plan.unroll
            chunk = cute.ceil_div(cute.ceil_div(vectors, stride), parts) * stride
            at, stop = part * chunk, min(vectors, (part + 1) * chunk)
            steps = max(stop - at, 0) // stride
            for step in range(steps):
                state = reduction.combine(state, _read(whole, at + step * stride + t, stop, head, plan, True))
            at += steps * stride
            if at < stop:
                state = reduction.combine(state, _read(whole, at + t, stop, head, plan, False))
            if cutlass.const_expr(not plan.aligned):
                k = head + vectors * plan.vector + t
                if part == parts - 1 and k < n:
                    state = reduction.combine(state, _read_one(line, k, None, reduction))
    state = _block_state(state, plan)
    if row < rows and t == 0:
        _write(outs, row, part, state, divisor, plan)


def _full(dtype: type[cute.Numeric]) -> int:
    """Elements of the widest load."""
    return VECTOR_BYTES * 8 // max(dtype.width, 8)


@cute.jit
def _to_boundary(pointer: Any, n: cute.Integer) -> cute.Integer:
    """How many of the n elements at `pointer` stand before the first multiple of 16 bytes."""
    size = max(pointer.dtype.width // 8, 1)
    before = cute.Int32((-pointer.toint()) % VECTOR_BYTES) // size
    return min(type(n)(before), n)


@cute.kernel
def columns_kernel(
    x: cute.Tensor, known: Any, outs: Any, parts: cute.Integer, divisor: Any, plan: cutlass.Constexpr
) -> None:
    """A block reduces one part of `across` vectors of columns of x (vector, outer, n, inner / vector)."""
    reduction, width, along = plan.reduction, plan.vector, plan.along
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    _, _, n, vectors = x.shape
    strips = cute.ceil_div(vectors, plan.across)
    strip, rest = type(n)(block % strips), block // strips
    part, outer = rest % parts, rest // parts
    c, r = thread % plan.across, type(n)(thread // plan.across)
    column = strip * plan.across + c

    states = tuple(reduction.start(type(n)) for _ in range(width))
    if column < vectors:
        stride = along * plan.unroll
        chunk = cute.ceil_div(cute.ceil_div(n, stride), parts) * stride
        at, stop = part * chunk, min(n, (part + 1) * chunk)
        steps = max(stop - at, 0) // stride
        for step in range(steps):
            states = _read_columns(x, known, states, outer, at + step * stride + r, stop, column, plan, True)
        at += steps * stride
        if at < stop:
            states = _read_columns(x, known, states, outer, at + r, stop, column, plan, False)

    places = cute.make_layout((along, plan.across * width), stride=(plan.across * width, 1))
    allocator = cutlass.utils.SmemAllocator()
    shared = [allocator.allocate_tensor(type(number), places) for number in states[0]]
    for k in cutlass.range_constexpr(width):
        for place, number in zip(shared, states[k], strict=True):
            place[r, c * width + k] = number
    cute.arch.sync_threads()
    for step in cutlass.range_constexpr(cute.ceil_div(plan.across * width, plan.across * along)):
        mine = step * plan.across * along + thread
        where = strip * plan.across * width + mine
        if mine < plan.across * width and where < vectors * width:
            state = tuple(place[0, mine] for place in shared)
            for k in cutlass.range_constexpr(1, along):
                state = reduction.combine(state, tuple(place[k, mine] for place in shared))
            _write_column(outs, outer, part, where, state, divisor, plan)


@cute.jit
def _read_columns(
    x: cute.Tensor,
    known: Any,
    states: Any,
    outer: cute.Integer,
    at: cute.Integer,
    stop: cute.Integer,
    column: cute.Integer,
    plan: cutlass.Constexpr,
    whole: cutlass.Constexpr,
) -> Any:
    """The states of a vector of columns after its rows at, at + along, ... as far as they are below `stop`."""
    reduction, width = plan.reduction, plan.vector
    held = cute.make_rmem_tensor((width, plan.unroll), reduction.dtype)
    if cutlass.const_expr(not whole):
        held.fill(reduction.neutral)
    for u in cutlass.range_constexpr(plan.unroll):
        row = at + u * plan.along
        if cutlass.const_expr(whole):
            cute.autovec_copy(x[None, outer, row, column], held[None, u])
        else:
            if row < stop:
                cute.autovec_copy(x[None, outer, row, column], held[None, u])
    n = x.shape[2]
    first = at
    indices = [type(n)(u * plan.along) for u in range(plan.unroll)]
    if cutlass.const_expr(known is not None):
        for u in cutlass.range_constexpr(plan.unroll):
            indices[u] = type(n)(known[outer, min(at + u * plan.along, n - 1), column])
        first = type(n)(0)
    results = []
    for k in cutlass.range_constexpr(width):
        folded = reduction.fold([reduction.lift(held[k, u], indices[u]) for u in range(plan.unroll)])
        results.append(reduction.combine(states[k], reduction.widen(reduction.moved(folded, first))))
    return tuple(results)


@cute.jit
def _write_column(
    outs: Any, outer: cute.Integer, part: cute.Integer, column: cute.Integer, state: Any, divisor: Any,
    plan: cutlass.Constexpr,
) -> None:  # fmt: skip
    """The result of a column, in one tensor (outer, inner), or the states of its parts, in (outer, parts, inner)."""
    if cutlass.const_expr(cute.rank(outs[0]) == 2):
        outs[0][outer, column] = plan.reduction.finish(state, divisor, outs[0].element_type)
    else:
        for out, number in zip(outs, state, strict=True):
            out[outer, part, column] = number


@cute.jit
def launch_rows(
    x: cute.Tensor, out: cute.Tensor, states: Any, divisor: Any, plan: cutlass.Constexpr, second: cutlass.Constexpr
) -> None:
    """out (rows...) = the reduction of x (rows..., n) over n; a mean divides by `divisor`.

    Where `states` are given, tensors (rows, parts), a first pass leaves there what its parts give, and a pass by the
    plan `second` reduces that.
    """
    lines, results = _grouped(x, 1), _grouped(out, 0)
    rows, _ = lines.shape
    if cutlass.const_expr(states is None):
        _launch_rows(lines, None, (results,), cute.size(rows), 1, divisor, plan)
    else:
        parts = states[0].shape[1]
        _launch_rows(lines, None, states, cute.size(rows), parts, divisor, plan)
        known = states[1] if cutlass.const_expr(plan.reduction.indexed) else None
        _launch_rows(states[0], known, (results,), cute.size(rows), 1, divisor, second)


@cute.jit
def _launch_rows(x: Any, known: Any, outs: Any, rows: Any, parts: Any, divisor: Any, plan: cutlass.Constexpr) -> None:
    kernel = rows_kernel(x, known, outs, parts, divisor, plan)
    kernel.set_name_prefix(plan.reduction.op)
    kernel.launch(
        grid=(cute.ceil_div(rows, plan.rows) * parts, 1, 1),
        block=(plan.threads * plan.rows, 1, 1),
    )


@cute.jit
def launch_columns(
    x: cute.Tensor, out: cute.Tensor, states: Any, divisor: Any, plan: cutlass.Constexpr, second: cutlass.Constexpr
) -> None:
    """out (outer..., inner) = the reduction of x (outer..., n, inner) over n; a mean divides by `divisor`.

    Where `states` are given, tensors (outer, parts, inner), there are two passes, as in `launch_rows`.
    """
    vectors, results = _as_vectors(_grouped(x, 2), plan.vector), _grouped(out, 1)
    if cutlass.const_expr(states is None):
        _launch_columns(vectors, None, (results,), 1, divisor, plan)
    else:
        _launch_columns(vectors, None, states, states[0].shape[1], divisor, plan)
        known = states[1] if cutlass.const_expr(plan.reduction.indexed) else None
        _launch_columns(_as_vectors(states[0], 1), known, (results,), 1, divisor, second)


@cute.jit
def _launch_columns(x: Any, known: Any, outs: Any, parts: Any, divisor: Any, plan: cutlass.Constexpr) -> None:
    _, outer, _, vectors = x.shape
    blocks = cute.size(outer) * parts * cute.ceil_div(vectors, plan.across)
    kernel = columns_kernel(x, known, outs, parts, divisor, plan)
    kernel.set_name_prefix(plan.reduction.op)
    kernel.launch(
        grid=(blocks, 1, 1),
        block=(plan.across * plan.along, 1, 1),
    )


def _grouped(tensor: cute.Tensor, last: int) -> cute.Tensor:
    """All modes but the `last` as one."""
    return cute.group_modes(tensor, 0, cute.rank(tensor) - last)


def _as_vectors(x: cute.Tensor, width: int) -> cute.Tensor:
    """(outer, n, inner) as (width, outer, n, inner / width)."""
    (outer, n, inner), (outer_step, n_step, step) = x.layout.shape, x.layout.stride
    places = cute.make_layout((width, outer, n, inner // width), stride=(1, outer_step, n_step, width * step))
    return cute.make_tensor(x.iterator, places)
