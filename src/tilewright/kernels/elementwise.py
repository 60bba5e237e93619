"""The kernel of `elementwise`: a function of up to three tensors, element by element, with NumPy's broadcasting.

Dimensions through which all tensors step alike become one. A thread takes vectors of the innermost one, all loads of
which it issues before it computes. A tensor that does not change along it gives one number for a vector.

Where one dimension is left, threads go along it. Otherwise a block is an array of threads, `lanes` along the innermost
dimension by as many lines as it has room for, so that a place is worked out for a line, not for each of its vectors:

    vectors of a line →      lanes 0..L-1 | lanes 0..L-1 | ...   (`across` times)
    lines ↓                  rows of threads, `down` times
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import views
from tilewright.kernels.launching import address_of, on_gpu

THREADS = 128
UNROLL = 2  # copies and sums are slower with 4; of those measured only gelu in bfloat16 gains by it, 3 %
DENSE, CONSTANT, STRIDED = "dense", "constant", "strided"


@dataclass(frozen=True)
class ElementwisePlan:
    """What is computed, and how it is read.

    Attributes:
        function: of as many `TensorSSA` as there are inputs.
        types: element types of the inputs.
        computed: the type to which they are converted for `function`.
        steps: how each input steps along the innermost dimension: with stride 1, 0 or another.
        vector: elements of an access to dense tensors.
        flat: whether all tensors are lines, which come in whatever shape they have.
        lanes: threads along a line, where there are several lines.
        across: vectors of a line that a thread takes.
        down: lines of which a thread takes them.
        op: the op that the kernel's symbol names besides.
    """

    function: Callable[..., Any]
    types: tuple[type[cute.Numeric], ...]
    computed: type[cute.Numeric]
    steps: tuple[str, ...]
    vector: int
    flat: bool
    lanes: int = THREADS
    across: int = 1
    down: int = 1
    op: str = ""


def _as(extent: Any, number: Any) -> Any:
    """The number in the type of an extent, which is wide enough for what it counts."""
    return number if isinstance(extent, int) else type(extent)(number)


@cute.jit
def _read(inputs: Any, held: Any, u: cutlass.Constexpr, at: Any, plan: cutlass.Constexpr) -> None:
    """Place u of `held` = vector `at` of each input (vector, vectors, lines); of a constant one, its first element."""
    for tensor, place, step in zip(inputs, held, plan.steps, strict=True):
        if cutlass.const_expr(step == DENSE):
            cute.autovec_copy(tensor[(None, *at)], place[None, u])
        else:
            for k in cutlass.range_constexpr(1 if step == CONSTANT else plan.vector):
                place[k, u] = tensor[(k, *at)]


@cute.jit
def _write(out: cute.Tensor, held: Any, u: cutlass.Constexpr, at: Any, plan: cutlass.Constexpr) -> None:
    """Vector `at` of out = the function of what place u of `held` has."""
    values = []
    for place, step in zip(held, plan.steps, strict=True):
        if cutlass.const_expr(step == CONSTANT):
            values.append(cute.full((plan.vector,), plan.computed(place[0, u]), plan.computed))
        else:
            values.append(place[None, u].load().to(plan.computed))
    result = plan.function(*values)
    written = cute.make_rmem_tensor((plan.vector,), out.element_type)
    written.store(result if result.dtype is out.element_type else result.to(out.element_type))
    cute.autovec_copy(written, out[(None, *at)])


@cute.jit
def _finish(line: cute.Tensor, lines: Any, at: cute.Integer, plan: cutlass.Constexpr) -> None:
    """Element `at` of a line."""
    values = [cute.full((1,), plan.computed(tensor[at]), plan.computed) for tensor in lines]
    line[at] = plan.function(*values)[0].to(line.element_type)


@cute.kernel
def elementwise_kernel(out: cute.Tensor, inputs: Any, line: Any, lines: Any, plan: cutlass.Constexpr) -> None:
    """Each thread computes `UNROLL` vectors of the one line of out.

    `line` and `lines` have all its elements, and the last, fewer than a vector, are computed one by one.
    """
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    count = cute.size(out, mode=[1])
    first = _as(count, block) * (THREADS * UNROLL)
    held = tuple(cute.make_rmem_tensor((plan.vector, UNROLL), dtype) for dtype in plan.types)
    if first + THREADS * UNROLL <= count:
        for u in cutlass.range_constexpr(UNROLL):
            _read(inputs, held, u, (first + u * THREADS + thread, 0), plan)
        for u in cutlass.range_constexpr(UNROLL):
            _write(out, held, u, (first + u * THREADS + thread, 0), plan)
    else:
        for u in cutlass.range_constexpr(UNROLL):
            at = first + u * THREADS + thread
            if at < count:
                _read(inputs, held, u, (at, 0), plan)
                _write(out, held, u, (at, 0), plan)
    if cutlass.const_expr(plan.vector > 1):
        at = count * plan.vector + thread
        if block == 0 and at < cute.size(line):
            _finish(line, lines, at, plan)


@cute.kernel
def broadcast_kernel(out: cute.Tensor, inputs: Any, plan: cutlass.Constexpr) -> None:
    """Each thread computes `across` vectors of each of `down` lines of out (vector, vectors, lines)."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    vectors, lines = cute.size(out, mode=[1]), cute.size(out, mode=[2])
    rows = THREADS // plan.lanes
    parts = cute.ceil_div(vectors, plan.lanes * plan.across)  # of a line
    column = _as(vectors, block % parts) * (plan.lanes * plan.across) + thread % plan.lanes
    line = _as(lines, block // parts) * (rows * plan.down) + thread // plan.lanes
    count = plan.across * plan.down
    held = tuple(cute.make_rmem_tensor((plan.vector, count), dtype) for dtype in plan.types)
    last = column + plan.lanes * (plan.across - 1), line + rows * (plan.down - 1)
    if last[0] < vectors and last[1] < lines:
        for u in cutlass.range_constexpr(count):
            at = column + u % plan.across * plan.lanes, line + u // plan.across * rows
            _read(inputs, held, u, at, plan)
        for u in cutlass.range_constexpr(count):
            at = column + u % plan.across * plan.lanes, line + u // plan.across * rows
            _write(out, held, u, at, plan)
    else:
        for u in cutlass.range_constexpr(count):
            at = column + u % plan.across * plan.lanes, line + u // plan.across * rows
            if at[0] < vectors and at[1] < lines:
                _read(inputs, held, u, at, plan)
                _write(out, held, u, at, plan)


@cute.jit
def launch_elementwise(out: cute.Tensor, inputs: Any, plan: cutlass.Constexpr) -> None:
    """out (innermost, others...) = the function of inputs of the same shape, or of any where all are lines."""
    if cutlass.const_expr(plan.flat):
        _launch_lines(out, inputs, plan)
    else:
        shape = out.layout.shape  # of all, so that a vector's place is worked out once
        target = _as_vectors(out, shape, plan.vector)
        sources = tuple(_as_vectors(tensor, shape, plan.vector) for tensor in inputs)
        parts = cute.ceil_div(cute.size(target, mode=[1]), plan.lanes * plan.across)
        groups = cute.ceil_div(cute.size(target, mode=[2]), THREADS // plan.lanes * plan.down)
        kernel = broadcast_kernel(target, sources, plan)
        if cutlass.const_expr(plan.op != ""):
            kernel.set_name_prefix(plan.op)
        kernel.launch(grid=(parts * groups, 1, 1), block=(THREADS, 1, 1))


@cute.jit
def _launch_lines(out: cute.Tensor, inputs: Any, plan: cutlass.Constexpr) -> None:
    count = cute.size(out)
    line = cute.make_tensor(out.iterator, cute.make_layout((count,)))
    lines = tuple(
        cute.make_tensor(tensor.iterator, cute.make_layout((count,), stride=(0 if step == CONSTANT else 1,)))
        for tensor, step in zip(inputs, plan.steps, strict=True)
    )
    target = _as_vectors(line, (count,), plan.vector)
    sources = tuple(_as_vectors(tensor, (count,), plan.vector) for tensor in lines)
    blocks = cute.ceil_div(cute.size(target, mode=[1]), THREADS * UNROLL)
    kernel = elementwise_kernel(target, sources, line, lines, plan)
    if cutlass.const_expr(plan.op != ""):
        kernel.set_name_prefix(plan.op)
    kernel.launch(grid=(max(blocks, 1), 1, 1), block=(THREADS, 1, 1))


@cute.jit
def _launch_one(out: cute.Tensor, x: cute.Tensor, plan: cutlass.Constexpr) -> None:
    launch_elementwise(out, (x,), plan)


@cute.jit
def _launch_two(out: cute.Tensor, x: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr) -> None:
    launch_elementwise(out, (x, y), plan)


@cute.jit
def _launch_three(out: cute.Tensor, x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, plan: cutlass.Constexpr) -> None:
    launch_elementwise(out, (x, y, z), plan)


_LAUNCH: dict[int, Any] = {
    1: _launch_one,
    2: _launch_two,
    3: _launch_three,
}  # a call passes tensors faster than a tuple of them


def _as_vectors(tensor: cute.Tensor, shape: Any, width: int) -> cute.Tensor:
    """A tensor of `shape`, (n, others...), as (width, n / width, lines), where a line is a place in the others."""
    (n, *others), (step, *steps) = shape, tensor.layout.stride
    lines = cute.make_layout(tuple(others), stride=tuple(steps)) if others else cute.make_layout(1, stride=0)
    layout = cute.make_layout((width, n // width, lines.shape), stride=(step, width * step, lines.stride))
    return cute.make_tensor(tensor.iterator, layout)


Prepared = tuple[Callable[..., None], Sequence[views.Strided | None] | None]
"""A compiled kernel, and for the result and each input the shape in which it takes them; None: as it is, or all are."""
_prepared: dict[Any, Prepared] = {}


def elementwise(out: Any, inputs: Sequence[Any], function: Callable[..., Any], computed: type[cute.Numeric]) -> None:
    """out = function(*inputs), to whose shape the inputs broadcast; computed in the type `computed`.

    The last dimension of `out` with more than one element has stride 1, or accesses are single.
    """
    tensors = (out, *inputs)
    key = (function, computed, *map(views.facts, tensors))
    found = _prepared.get(key)
    if found is None:
        if 0 in out.shape:
            return
        found = views.keep(_prepared, key, prepare(out, inputs, function, computed))
    run(found, out, inputs)


def run(prepared: Prepared, out: Any, inputs: Sequence[Any]) -> None:
    """Run a prepared kernel."""
    executor, shapes = prepared
    if shapes is None:
        executor(out, *inputs)
        return
    target, *sources = [
        item if like is None else like.of(item) for like, item in zip(shapes, (out, *inputs), strict=True)
    ]
    executor(target, *sources)


def prepare(
    out: Any, inputs: Sequence[Any], function: Callable[..., Any], computed: type[cute.Numeric], op: str = ""
) -> Prepared:
    """The kernel of `elementwise` for tensors like these: of their types, shapes, strides and alignment.

    Its symbol names `op` too.
    """
    tensors = (out, *inputs)
    types = tuple(views.dtype_of(item) for item in tensors)
    extents, strides = together(tensors[0].shape, [_broadcast_strides(item, tensors[0].shape) for item in tensors])
    steps = tuple({1: DENSE, 0: CONSTANT}.get(of_one[0], STRIDED) for of_one in strides)
    widest = max(max(dtype.width, 8) for dtype, step in zip(types, steps, strict=True) if step != CONSTANT)
    vector = views.ACCESS_BITS // widest if steps[0] == DENSE else 1
    flat = tensors[0].ndim > 0 and len(extents) == 1 and STRIDED not in steps
    shape = (0,) if flat else extents  # a line may end within a vector
    while vector > 1 and not all(
        _fits(tensor, shape, of_one, vector, dtype)
        for tensor, of_one, step, dtype in zip(tensors, strides, steps, types, strict=True) if step == DENSE
    ):  # fmt: skip
        vector //= 2
    lanes, across, down = (THREADS, 1, 1) if flat else _array(extents[0] // vector)
    plan = ElementwisePlan(function, types[1:], computed, steps[1:], vector, flat, lanes, across, down, op)
    ranks = tuple(item.ndim if flat else len(extents) for item in tensors)
    executor = _executor(plan, types[0], steps[0], ranks, "cuda" if on_gpu(tensors[0]) else "emu")
    if flat:
        return executor, None
    return executor, [
        views.Strided(extents, of_one).unless_of(tensor.shape, views.strides_of(tensor))
        for of_one, tensor in zip(strides, tensors, strict=True)
    ]


def _array(vectors: int) -> tuple[int, int, int]:
    """How the threads of a block go through lines of so many vectors: `lanes`, `across` and `down` of the plan."""
    lanes = min(1 << max(vectors - 1, 0).bit_length(), THREADS)
    across = min(-(-vectors // lanes), UNROLL)
    return lanes, across, UNROLL // across


def _fits(tensor: Any, extents: Sequence[int], strides: Sequence[int], vector: int, dtype: Any) -> bool:
    """Whether all accesses of `vector` elements are aligned, to 16 bytes at most."""
    step = max(min(vector, views.ACCESS_BITS // max(dtype.width, 8)), 1)
    start = address_of(tensor) % (step * max(dtype.width, 8) // 8)
    return not start and extents[0] % vector == 0 and not any(item % step for item in strides[1:])


def _broadcast_strides(tensor: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of the tensor as broadcast to `shape`."""
    missing = (0,) * (len(shape) - tensor.ndim)
    pairs = zip(tensor.shape, views.strides_of(tensor), strict=True)
    return missing + tuple(0 if extent == 1 else step for extent, step in pairs)


def together(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The dimensions, innermost first, neighbours through which all tensors step alike taken together."""
    extents: list[int] = []
    columns: list[list[int]] = []
    for place in reversed(range(len(shape))):
        column = [of_one[place] for of_one in strides]
        if shape[place] == 1:
            continue
        if extents and all(outer == inner * extents[-1] for outer, inner in zip(column, columns[-1], strict=True)):
            extents[-1] *= shape[place]
        else:
            extents.append(shape[place])
            columns.append(column)
    if not extents:
        extents, columns = [1], [[1] * len(strides)]
    return tuple(extents), [tuple(steps) for steps in zip(*columns, strict=True)]


@functools.cache
def _executor(plan: ElementwisePlan, out_type: Any, out_step: str, ranks: tuple[int, ...], target: str) -> Any:
    """The compiled function of tensors of so many modes."""
    extents = [cute.sym_int(divisibility=plan.vector), *views.symbols(ranks[0] - 1)]
    made = [
        _fake_line(dtype, rank, plan.vector, step) if plan.flat else _fake(dtype, extents, plan.vector, step)
        for dtype, rank, step in zip((out_type, *plan.types), ranks, (out_step, *plan.steps), strict=True)
    ]
    return views.quick(cute.compile(_LAUNCH[len(made) - 1], *made, plan, target=target))


def _alignment(dtype: Any, vector: int, step: str) -> int:
    """To how many elements accesses of `vector` are aligned."""
    return max(min(vector, views.ACCESS_BITS // max(dtype.width, 8)), 1) if step == DENSE else 1


def _fake_line(dtype: Any, rank: int, vector: int, step: str) -> Any:
    """A tensor of any shape and strides of which only the address is used, and of `out` the size."""
    return cute.runtime.make_fake_tensor(
        dtype, views.symbols(rank), stride=[cute.sym_int64() for _ in range(rank)],
        assumed_align=_alignment(dtype, vector, step) * max(dtype.width, 8) // 8,
    )  # fmt: skip


def _fake(dtype: Any, extents: Sequence[Any], vector: int, step: str) -> Any:
    aligned = _alignment(dtype, vector, step)
    first = {DENSE: 1, CONSTANT: 0}.get(step, cute.sym_int64())
    strides = [first, *(cute.sym_int64(divisibility=aligned) for _ in extents[1:])]
    return cute.runtime.make_fake_tensor(
        dtype, extents, stride=strides, assumed_align=aligned * max(dtype.width, 8) // 8
    )


def broadcast_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """The shape to which all broadcast; None where there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for column in zip(*padded, strict=True):
        wide = {extent for extent in column if extent != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def same(x: Any) -> Any:
    """The function that copies."""
    return x


def copy(out: Any, x: Any) -> None:
    """out = x, broadcast to its shape."""
    elementwise(out, (x,), same, views.dtype_of(x))


def prepare_copy(out: Any, x: Any, op: str) -> Prepared:
    """The kernel of out = x for tensors like these; its symbol names `op` too."""
    return prepare(out, (x,), same, views.dtype_of(x), op)
