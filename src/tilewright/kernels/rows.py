"""What row-wise kernels share: which thread holds which part of a row, loading, storing, folding over a row.

A row of N columns is held by `threads` threads of each of `cluster` blocks, from the one read of it to the one write:

    block 0                                block 1 ...
    | access 0          | access 1         | access 0          | ...
    | t0 | t1 | ... |tT | t0 | t1 |    |tT | t0 | t1 |
      V elements a thread and access: 16 bytes where rows are aligned

A block holds `rows` rows side by side. All loads of a thread are issued before the first is used. Where a plan is
`shifted`, access 0 begins at the row's first multiple of 16 bytes; the few elements before it, and those behind the
last whole vector, belong to the first threads, one to each: access `EDGE`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32, Float64, Int32, Int64, utils
from tilewright.kernels.plans import ACCESS_BYTES, WARP, RowPlan

LOG2_E = 1.4426950408889634
UNROLLED = 4  # accesses of shared memory in a turn of a loop
EDGE = "edge"


class Part:
    """The elements that a thread holds of its row, a vector an access; what is outside the row is repeated.

    They are in registers or, where the plan says so, in the thread's own places of shared memory.
    """

    def __init__(self, dtype: Any, vectors: Sequence[Any] = (), shared: Any = None, edge: Any = None) -> None:
        self.dtype = dtype
        self.vectors = list(vectors)
        self._shared = shared  # (vector, count)
        self.edge = edge

    def vector(self, number: Any) -> Any:
        """The vector of an access, in the type in which kernels compute."""
        if number is EDGE:
            return self.edge.to(computing_type(self.dtype))
        found = self.vectors[number] if self._shared is None else self._shared[None, number].load()
        return found.to(computing_type(self.dtype))


class Ring:
    """Places of each thread in shared memory for the rows of a tensor: `plan.stages` rows wait at once."""

    def __init__(self, plan: RowPlan, dtype: Any) -> None:
        self._plan, self._dtype = plan, dtype
        layout = cute.make_layout((plan.vector, plan.block, plan.count, plan.stages))
        thread = cute.arch.thread_idx()[0]
        places = utils.SmemAllocator().allocate_tensor(dtype, layout, ACCESS_BYTES)
        self._places = places[None, thread, None, None]
        copy_op = cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.cpasync.LoadCacheMode.GLOBAL)
        self._atom = cute.make_copy_atom(copy_op, dtype, num_bits_per_copy=8 * ACCESS_BYTES)

    def fill(self, stage: Any, sources: Sequence[Any]) -> None:
        """Begin to copy the vectors of a row to a stage."""
        for number, source in enumerate(sources):
            cute.copy(self._atom, source, self._places[None, number, stage])

    def part(self, stage: Any, edge: Any = None) -> Part:
        """What a stage holds, when its copies have landed."""
        return Part(self._dtype, shared=self._places[None, None, stage], edge=edge)


class RowTile:
    """A thread's part of its row: device code."""

    def __init__(self, plan: RowPlan, shape: Any, exchanges: int = 1) -> None:
        """Where the thread stands in rows of `shape`.

        Its row's warps exchange numbers once or, with `exchanges` of 2, in each turn of a loop; 0 is never.
        """
        self.plan = plan
        self.rows, columns = Int64(shape[0]), shape[1]
        thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
        several = plan.rows > 1
        self.columns = plan.columns or Int32(columns)
        self._head, self._limit = Int32(0), self.columns  # where whole vectors begin and end
        self.lane = thread % plan.threads if several else thread
        self.place = thread // plan.threads if several else Int32(0)
        self.rank = block % plan.cluster if plan.cluster > 1 else Int32(0)
        self.first = self.rank * plan.tile + self.lane * plan.vector
        self.group = block // plan.cluster  # of the rows that a block, or a cluster, holds at once
        self._seat(self.group)
        self._stages = exchanges
        self._barriers = _make_barriers(exchanges, thread == 0) if plan.cluster > 1 and exchanges else None
        self._has_begun = plan.cluster == 1

    def _seat(self, group: Any) -> None:
        row = Int64(group) * self.plan.rows + self.place
        several = self.plan.rows > 1
        self.inside = row < self.rows if several else True
        self.row = cute.math.min(row, self.rows - 1) if several else row

    def at(self, group: Any) -> RowTile:
        """The tile over another group of rows."""
        other = copy.copy(self)
        other._seat(group)
        return other

    def turn(self, number: Any) -> RowTile:
        """The tile over another part of the row, where it goes by in turns."""
        other = copy.copy(self)
        other.first = self.first + number * (self.plan.tile * self.plan.cluster)
        return other

    def begin(self) -> None:
        """Wait until all blocks of the row run, and have made their barriers: before a loop of exchanges."""
        if not self._has_begun:
            cute.arch.cluster_wait()
            self._has_begun = True

    def load(self, tensor: Any) -> Part:
        """Begin to load the thread's elements of its row of (rows, columns)."""
        edge = self._shift(tensor) if self.plan.shifted else None
        if not self.plan.stages:
            return Part(tensor.element_type, [source.load() for source in self.sources(tensor)], edge=edge)
        ring = Ring(self.plan, tensor.element_type)
        ring.fill(0, self.sources(tensor))
        cute.arch.cp_async_commit_group()
        return ring.part(0, edge)

    def _shift(self, tensor: Any) -> Any:
        """Find where the row's whole vectors begin, for all tensors alike; the thread's element outside them."""
        start, vector = tensor.iterator + self.row * tensor.stride[0], self.plan.vector
        self._head = Int32((-start.toint()) % ACCESS_BYTES) // (tensor.element_type.width // 8)
        self._limit = self._head + (self.columns - self._head) // vector * vector
        column = cute.math.min(self.column(EDGE), self.columns - 1)
        return _at(start + column, 1).load()

    def sources(self, tensor: Any) -> list[Any]:
        """The thread's vectors of its row of (rows, columns)."""
        start = tensor.iterator + self.row * tensor.stride[0]
        return [self._vector(start, number) for number in range(self.plan.count)]

    def landed(self) -> None:
        """Wait for what `load` began."""
        if self.plan.stages:
            cute.arch.cp_async_wait_group(0)

    def of_columns(self, tensor: Any, number: Any, like: Any) -> Any:
        """The vector of access `number` of a tensor (columns) that all rows share, in the type of `like`."""
        return self._vector(tensor.iterator, number).load().to(like.dtype)

    def mapped(self, part: Part, function: Callable[[Any], Any], neutral: float) -> Part:
        """`function(vector)` of each access of a part in registers, with `neutral` for what is outside the row."""

        def of(number: Any) -> Any:
            return self._inside(number, function(part.vector(number)), neutral)

        edge = of(EDGE) if self.plan.shifted else None
        return Part(computing_type(part.dtype), [of(number) for number in range(self.plan.count)], edge=edge)

    def folded(self, parts: Sequence[Part], function: Callable[..., Any], fold: Any, neutral: float) -> Any:
        """`function(vectors of the parts)` of each access, folded over all elements of the thread inside the row."""

        def of(number: Any) -> Any:
            vector = function(*[part.vector(number) for part in parts])
            return self._inside(number, vector, neutral)

        if self.plan.stages:
            start = cute.full(self.plan.vector, neutral, computing_type(parts[0].dtype))
            inner = [*_fold_loop(self.plan.count, of, fold, start)]
        else:
            inner = elements([of(number) for number in range(self.plan.count)])
        return tree([*inner, *of(EDGE)] if self.plan.shifted else inner, fold)

    def store_each(self, tensor: Any, parts: Sequence[Part], function: Callable[..., Any]) -> None:
        """Write `function(number, vectors of the parts)` of each access to the row of a tensor (rows, columns)."""

        def write(numbers: Sequence[Any]) -> None:
            self._write(tensor, parts, function, numbers)

        if self.plan.stages:
            _each(self.plan.count, math.gcd(self.plan.count, UNROLLED), write)
        else:
            write(range(self.plan.count))
        if self.plan.shifted:
            write([EDGE])

    def store_unrolled(self, tensor: Any, parts: Sequence[Part], function: Callable[..., Any]) -> None:
        """The same without a loop, wherever the parts wait."""
        self._write(tensor, parts, function, range(self.plan.count))

    def _write(self, tensor: Any, parts: Sequence[Part], function: Callable[..., Any], numbers: Sequence[Any]) -> None:
        # What is loaded besides is loaded before the first store, behind which no load may move.
        vectors = [function(number, *[part.vector(number) for part in parts]) for number in numbers]
        for number, vector in zip(numbers, vectors, strict=True):
            self._store(tensor, self.row, number, vector, self.inside)

    def filled_row(self, number: Any, vector: Any, value: float) -> Any:
        """The vector of an access with `value` for what is outside the row, and for a row beyond the last."""
        found = self._inside(number, vector, value)
        return _where(self.inside, found, value) if self.plan.rows > 1 else found

    def _inside(self, number: Any, vector: Any, value: float) -> Any:
        return vector if self.plan.columns else _where(self._is_inside(number), vector, value)

    def _is_inside(self, number: Any) -> Any:
        if number is not EDGE:
            return self.column(number) < self._limit
        column = self.column(EDGE)
        outside_vectors = (column < self._head) | ((column >= self._limit) & (column < self.columns))
        return outside_vectors & (self.lane < 2 * self.plan.vector) & (self.rank == 0)

    def store_at(self, tensor: Any, row: Any, vectors: Sequence[Any], condition: Any = True) -> None:
        """Write the thread's vectors to a row of a tensor (rows, columns), where the condition holds."""
        for number, item in enumerate(vectors):
            self._store(tensor, row, number, item, condition)

    def _store(self, tensor: Any, row: Any, number: Any, vector: Any, condition: Any) -> None:
        target = _at(
            tensor.iterator + row * tensor.stride[0] + self.column(number), 1 if number is EDGE else self.plan.vector
        )
        inside = condition if self.plan.columns else condition & self._is_inside(number)
        _store_if(inside, target, vector.to(tensor.element_type))

    def store_number(self, tensor: Any, number: Any) -> None:
        """Write a number of the row at its place of a tensor (rows)."""
        value = number.to(tensor.element_type)
        _store_number_if((self.lane == 0) & (self.rank == 0) & self.inside, tensor, self.row, value)

    def column(self, number: Any) -> Any:
        """The first column of the thread's access `number`."""
        if number is EDGE:  # before the whole vectors for the first threads, behind them for the next
            vector = self.plan.vector
            return _either(self.lane < vector, self.lane, self._limit + self.lane - vector)
        inner = self.first + number * self.plan.threads * self.plan.vector
        return inner + self._head if self.plan.shifted else inner

    def _vector(self, start: Any, number: Any) -> Any:
        column, vector = self.column(number), self.plan.vector
        if not self.plan.columns:
            column = cute.math.min(column, self._limit - vector)
        return _at(start + column, vector)

    def warp_count(self) -> Any:
        """How many elements of the row the thread's warp holds."""
        plan = self.plan
        if plan.columns:
            return plan.lanes * plan.vector * plan.count
        first = self._head + self.rank * plan.tile + (self.lane - self.lane % plan.lanes) * plan.vector
        step, most = plan.threads * plan.vector, plan.lanes * plan.vector
        counts = [
            cute.math.max(cute.math.min(self._limit - first - number * step, most), 0) for number in range(plan.count)
        ]
        if plan.shifted:
            counts.append(_either((self.lane < WARP) & (self.rank == 0), self.columns - (self._limit - self._head), 0))
        return tree(counts, add)

    # Folding over the row

    def gathered(self, numbers: Sequence[Any], turn: Any = 0) -> list[list[Any]]:
        """What the warps of the row have: for each of `numbers` this lane's share of the row's `partials`, one a warp.

        Folding the share, and then over `group` lanes, folds over the row. In a loop `turn` counts its turns: they use
        two places by turns, so that no thread writes what another still reads.
        """
        stage = turn % 2 if self._stages > 1 else 0
        shared = [self._places(type(number))[stage, None, None] for number in numbers]
        if self.plan.partials > 1:
            self._exchange(shared, numbers, stage, turn)
        lane = self.lane % WARP
        places = range(0, self.plan.partials, self.plan.group)
        return [[part[self.place, first + lane % self.plan.group] for first in places] for part in shared]

    def _places(self, dtype: Any) -> Any:
        shape = (max(self._stages, 1), self.plan.rows, self.plan.partials)
        return utils.SmemAllocator().allocate_tensor(dtype, cute.make_ordered_layout(shape, order=(2, 1, 0)))

    def _exchange(self, shared: Sequence[Any], numbers: Sequence[Any], stage: Any, turn: Any) -> None:
        lane, warp = self.lane % WARP, self.lane // WARP
        if self.plan.cluster == 1:
            for part, number in zip(shared, numbers, strict=True):
                _store_number_if(lane == 0, part, (self.place, warp), number)
            cute.arch.sync_threads()
            return
        self.begin()
        barrier = self._barriers + stage
        bytes_ = self.plan.partials * sum(type(number).width // 8 for number in numbers)
        _expect_if(self.lane == 0, barrier, bytes_)
        place = self.rank * self.plan.warps + warp
        for part, number in zip(shared, numbers, strict=True):
            _send_if(lane < self.plan.cluster, part.iterator + place, number, barrier, lane)
        cute.arch.mbarrier_wait(barrier, turn // 2 % 2 if self._stages > 1 else 0)

    def sums(self, numbers: Sequence[Any], turn: Any = 0) -> list[Any]:
        """The sum over the row of each number of the thread, in every thread; `turn` as for `gathered`."""
        sums = [cute.arch.warp_reduction_sum(number, threads_in_group=self.plan.lanes) for number in numbers]
        if self.plan.partials == 1:
            return sums
        return [
            cute.arch.warp_reduction_sum(tree(part, add), threads_in_group=self.plan.group)
            for part in self.gathered(sums, turn)
        ]


def grid_of(plan: RowPlan, tensor: Any, exchanges: int = 1) -> dict[str, Any]:
    """What launches a kernel with this plan over the rows of a tensor; without exchanges its blocks form no cluster."""
    return _grid(plan, cute.ceil_div(tensor.shape[0], plan.rows) * plan.cluster, exchanges)


def persistent_grid(plan: RowPlan, blocks: Any) -> dict[str, Any]:
    """What launches a kernel whose `blocks` blocks go through all rows."""
    return _grid(plan, blocks, 1)


def _grid(plan: RowPlan, blocks: Any, exchanges: int) -> dict[str, Any]:
    options: dict[str, Any] = {"cluster": (plan.cluster, 1, 1)} if plan.cluster > 1 and exchanges else {}
    if plan.resident:
        options["min_blocks_per_mp"] = plan.resident
    return {"grid": (blocks, 1, 1), "block": (plan.block, 1, 1), **options}


def _at(pointer: Any, elements: int) -> Any:
    """A tensor of some elements at a pointer that is aligned for them."""
    alignment = min(elements * pointer.dtype.width // 8, ACCESS_BYTES)
    return cute.make_tensor(pointer.with_alignment(alignment), elements)


@cute.jit
def _either(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


@cute.jit
def _fold_loop(
    count: cutlass.Constexpr[int], of: cutlass.Constexpr[Any], fold: cutlass.Constexpr[Any], start: Any
) -> Any:
    total = start
    for number in cutlass.range(count, unroll=UNROLLED):
        total = cute.TensorSSA.from_elements([fold(a, b) for a, b in zip(total, of(number), strict=True)])
    return total


@cute.jit
def _each(count: cutlass.Constexpr[int], at_once: cutlass.Constexpr[int], write: cutlass.Constexpr[Any]) -> None:
    for first in cutlass.range(0, count, at_once):
        write([first + number for number in range(at_once)])


@cute.jit
def _store_if(condition: Any, target: Any, value: Any) -> None:
    if condition:
        target.store(value)


@cute.jit
def _store_number_if(condition: Any, tensor: Any, place: Any, value: Any) -> None:
    if condition:
        tensor[place] = value


def _make_barriers(count: int, chosen: Any) -> Any:
    """Barriers for transactions, which one thread makes and all blocks of the cluster may use after `cluster_wait`."""
    barriers = utils.SmemAllocator().allocate_array(Int64, count)
    _init_if(chosen, barriers, count)
    cute.arch.cluster_arrive_relaxed()
    return barriers


@cute.jit
def _init_if(condition: Any, barriers: Any, count: cutlass.Constexpr[int]) -> None:
    if condition:
        for number in cutlass.range_constexpr(count):
            cute.arch.mbarrier_init(barriers + number, 1)
        cute.arch.mbarrier_init_fence()


@cute.jit
def _expect_if(condition: Any, barrier: Any, bytes_: Any) -> None:
    if condition:
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, bytes_)


@cute.jit
def _send_if(condition: Any, pointer: Any, value: Any, barrier: Any, block: Any) -> None:
    if condition:
        cute.arch.store_async_dsmem(pointer, value, barrier, block)


def _where(condition: Any, vector: Any, value: float) -> Any:
    return cute.where(cute.full_like(vector, condition, cute.Boolean), vector, cute.full_like(vector, value))


def add(a: Any, b: Any) -> Any:
    """a + b."""
    return a + b


def tree(items: Sequence[Any], fold: Callable[[Any, Any], Any]) -> Any:
    """The items folded pairwise, so that no chain is longer than it must be."""
    items = list(items)
    while len(items) > 1:
        pairs = [fold(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
        items = pairs + items[len(items) // 2 * 2 :]
    return items[0]


def elements(vectors: Sequence[Any]) -> list[Any]:
    """The elements of all vectors."""
    return [element for vector in vectors for element in vector]


def computing_type(dtype: Any) -> Any:
    """The type in which a kernel computes on elements of `dtype`."""
    return Float64 if dtype is Float64 else Float32


def exp(vector: Any) -> Any:
    """e to the x, of numbers up to 0: in Float32 by the instruction for 2 to the x."""
    if vector.dtype is Float64:
        return cute.math.exp(vector)
    scaled = vector * LOG2_E
    return cute.TensorSSA.from_elements([cute.arch.exp2(item) for item in scaled])


def exp_of_number(number: Any) -> Any:
    """The same of one number."""
    return cute.math.exp(number) if type(number) is Float64 else cute.arch.exp2(number * LOG2_E)


def reciprocal(number: Any) -> Any:
    """1 / x."""
    return 1.0 / number if type(number) is Float64 else cute.arch.rcp_approx(number)
