"""How the fused elementwise kernel of an epilogue is laid out over arrays: the space, threads, tiles, workspaces."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base.errors import EpilogueError
from tilewright.cute import Float32, Float64, Int32, Int64, Numeric, Uint8
from tilewright.kernels import views
from tilewright.kernels.epilogue_elementwise import ElementwisePlan, launch_epilogue_elementwise
from tilewright.kernels.plans import power_of_two
from tilewright.lib.epilogue.bits import Bits
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.from_dag import Reduced, epilogue_of
from tilewright.lib.epilogue.lowering.op import View
from tilewright.lib.epilogue.lowering.reductions import ATOMIC, DIRECT, PARTIALS, ReductionStore
from tilewright.lib.epilogue.lowering.space import Operand, Space, space_of
from tilewright.lib.epilogue.lowering.tile import ThreadGrid
from tilewright.lib.epilogue.nodes import LoadNode, NodeBase, StoreNode, TopKSoftmaxNode

THREADS, REDUCING_THREADS = 128, 256
BYTES = 64  # that a thread loads before it computes
MOST_ELEMENTS = 32  # of a tensor in a thread's registers
ROW_ELEMENTS = 64  # where whole rows must fit a block
ENOUGH_BLOCKS = 1024  # about eight for each multiprocessor of an H100
ACCESS_BITS, MOST_BITS = 128, 256  # of an access, and of a thread's neighbours in the widest tensor
SQUARE = 64  # columns of a tile where a tensor lies the other way round
BIG = 1 << 30  # extents for which places are counted in 64 bits


@dataclass(frozen=True)
class Prepared:
    """A kernel and what it takes, for arrays of given types, shapes, strides and alignments.

    Attributes:
        executor: the compiled kernel.
        names: of the arrays, in the order in which the kernel takes them, with their views.
        numbers: the names of the numbers.
        workspaces: their shapes and types, in the order in which the kernel takes them.
        extents: (M, N, L).
        tiles: over which a block walks.
        fills: what outputs begin with, by name.
    """

    executor: Callable[..., None]
    names: tuple[tuple[str, views.Strided] | None, ...]
    numbers: tuple[str, ...]
    workspaces: tuple[tuple[tuple[int, ...], type[Numeric]], ...]
    extents: tuple[int, int, int]
    tiles: int
    fills: tuple[tuple[str, Any], ...] = ()

    def run(self, given: Mapping[str, Any], like: Any) -> None:
        """Run on arrays and numbers by name; workspaces lie where `like` does."""
        for name, number in self.fills:
            given[name][...] = number
        spaces = iter(self.workspaces)
        tensors = [
            make_workspace(like, *next(spaces)) if item is None else as_seen(given[item[0]], item[1])
            for item in self.names
        ]
        self.executor((*tensors, *(given[name] for name in self.numbers)), self.extents, self.tiles)


def as_seen(array: Any, view: views.Strided) -> Any:
    """The memory of an array as a kernel takes it."""
    array = memory_of(array)
    return array if view.unless_of(array.shape, views.strides_of(array)) is None else view.of(array)


def memory_of(item: Any) -> Any:
    """The array that a kernel takes for an argument: that of bits; without its gradient."""
    if isinstance(item, Bits):
        return item.array
    return item.detach() if getattr(item, "requires_grad", False) else item


def is_array(item: Any) -> bool:
    """Whether an argument is an array or a tensor, not a number."""
    return hasattr(item, "shape") and not isinstance(item, np.generic)


def make_workspace(like: Any, shape: tuple[int, ...], dtype: type[Numeric]) -> Any:
    """A new tensor of this shape, whose first mode is the fastest."""
    made = views.empty(like, shape[::-1], dtype)
    return made.transpose(2, 1, 0) if not hasattr(made, "permute") else made.permute(2, 1, 0)


def prepare(dag: DAGIR, starts: Mapping[str, int], target: str, way: str = PARTIALS) -> Prepared:
    """The kernel of a graph, after its passes, for arrays at addresses `starts` (modulo 16).

    Args:
        dag: the graph.
        starts: by name of load or output.
        target: "cuda" or "emu".
        way: `PARTIALS` or `ATOMIC`, of reductions whose results several blocks share.

    Raises:
        EpilogueError: no kernel computes the graph.
    """
    tensors = tensors_of(dag)
    shape = np.broadcast_shapes(*(meta.shape for meta in tensors))
    operands = [operand_of(meta, starts[argument_of(meta)], shape) for meta in tensors]
    folds = {meta.name: meta for meta, op in zip(tensors, operands, strict=True) if op.reduced}
    whole = any(isinstance(meta, TopKSoftmaxNode) for meta in dag.nodes_meta)
    space = space_of(operands, shape, whole)
    grid, tiles = _threads(space, [meta.name for meta in tensors if meta.op == "load"], bool(folds), whole)
    shapes = {name: reduced_of(space, meta, grid, tiles, way) for name, meta in folds.items()}
    epilogue = epilogue_of(
        dag, {op.name: view_of(space, op, grid.vector, grid.rows if grid.rows_follow else 1) for op in operands}, shapes
    )
    fills = tuple(
        (op.name, op.fold.neutral.value)
        for op in epilogue.reductions
        if op.way == ATOMIC and check_atomic(op, folds[op.name])
    )
    m, n, batch = space.extents
    parts = -(-m // (tiles * grid.tile_m)), -(-n // grid.tile_n)
    plan = ElementwisePlan(epilogue, grid, tiles > 1)
    kind = Int64 if max(m * tiles * grid.tile_m, m, n, batch) > BIG and max(m, n, batch) > BIG // 4 else Int32
    return Prepared(
        _executor(plan, kind, target),
        tuple(names_of(dag, epilogue, space)),
        numbers_of(dag),
        tuple((op.workspace(space.extents, *parts), op.fold.dtype) for op in epilogue.reductions if op.way == PARTIALS),
        space.extents,
        tiles,
        fills,
    )


def tensors_of(dag: DAGIR) -> list[Any]:
    """The loads of tensors and the outputs."""
    return [
        meta
        for meta in dag.nodes_meta
        if (isinstance(meta, LoadNode) and not meta.example.is_scalar)
        or (isinstance(meta, StoreNode) and meta.is_output and not meta.disabled)
    ]


def operand_of(meta: NodeBase, start: int, shape: Sequence[int]) -> Operand:
    """The tensor of a load or an output at address `start`, broadcast to `shape`, the (L, M, N) of the graph.

    Raises:
        EpilogueError: the node has no tensor yet.
    """
    tensor = meta.tensor
    if tensor is None:
        raise EpilogueError(
            f"The shape of node {meta.name} is unknown.",
            location=meta.location,
            hint="run PassShapeTypePropagation first",
        )
    modes = tensor.broadcast(tuple(shape)).modes
    still = any(all(step == 0 for _, step in mode) and math.prod(e for e, _ in mode) > 1 for mode in modes)
    element = Uint8 if tensor.bits else tensor.element
    return Operand(meta.name, element, modes, start, isinstance(meta, StoreNode) and still, tensor.bits)


def check_reached(dag: DAGIR, shapes: Mapping[str, Sequence[int]]) -> None:
    """Refuse outputs of these shapes that have elements where the accumulator has none, so that no block has them.

    Raises:
        EpilogueError: it names the output. Reductions of nothing have a value.
    """
    for meta in dag.outputs():
        if not meta.is_reduction and 0 not in shapes[meta.name]:
            raise EpilogueError(
                f"Output {meta.name} has elements, but accum has none, so no kernel computes it.",
                location=meta.location,
                hint="compute it outside the epilogue where accum may be empty",
            )


def view_of(space: Space, operand: Operand, vector: int, rows: int = 1) -> View:
    """What is compiled in of an operand for threads that hold `vector` elements along N, and `rows` along M."""
    step_m, step_n, *steps_l = space.strides(operand.name)
    most = min(vector, ACCESS_BITS // max(operand.dtype.width, 8))
    of_rows = min(rows, ACCESS_BITS // max(operand.dtype.width, 8))
    if rows > 1 and step_m == 1 and step_n != 1 and space.aligned(operand.name, of_rows, space.m) == of_rows:
        steps = tuple(0 if step == 0 else None for step in (step_n, *steps_l))
        return View(operand.dtype, 1, steps[0], steps[1:], of_rows, across=True)
    return View(
        operand.dtype,
        0 if step_m == 0 else None,
        step_n if step_n in (0, 1) else None,
        tuple(0 if step == 0 else None for step in steps_l),
        1 if operand.bits else space.aligned(operand.name, most),
    )


def reduced_of(space: Space, meta: StoreNode, grid: ThreadGrid, tiles: int, way: str) -> Reduced:
    """How tiles lie to a reduction, or to a value that is stored once though many places of the space have it."""
    over_m, over_n, *over_l = (axis.strides[meta.name] == 0 and axis.extent > 1 for axis in space.axes)
    shared = (
        over_m and space.m.extent > tiles * grid.tile_m,
        over_n and space.n.extent > grid.tile_n,
        any(over_l),
    )
    if not meta.is_reduction:  # atomic reductions have fewer types than stores
        way = PARTIALS
    return Reduced(over_m, over_n, tuple(over_l), way if any(shared) else DIRECT)


def _threads(space: Space, loads: Sequence[str], reduces: bool, whole: bool) -> tuple[ThreadGrid, int]:
    """How threads lie over the tiles, and over how many tiles a block walks."""
    m, n, batch = space.extents
    vector = widest_vector(space)
    threads = REDUCING_THREADS if whole or reduces else THREADS
    follow = 1 if whole else _rows_across(space)
    vector = min(vector, max(MOST_ELEMENTS // follow, 1))
    threads_n = min(power_of_two(-(-n // vector)), threads)
    if not whole and any(_lies_across(space, name) for name in space.operands):
        threads_n = min(threads_n, max(SQUARE // vector, 1))
    if follow > 1:
        threads_m = max(min(threads // threads_n, power_of_two(m // follow)), -(-32 // threads_n))
        grid = ThreadGrid(threads_m, threads_n, vector, follow, 1, rows_follow=True)
        return grid, _tiles(space, grid) if reduces else 1
    threads_m = max(min(threads // threads_n, power_of_two(m)), -(-32 // threads_n))
    columns = -(-n // (vector * threads_n))
    if whole:
        _check_row(space, vector * columns)
        return ThreadGrid(threads_m, threads_n, vector, 1, columns), 1
    read = sum(vector * space.operands[name].element_bytes for name in loads if space.moves(name))
    unroll = min(power_of_two(max(BYTES // max(read, 1), 1)), 4, max(MOST_ELEMENTS // vector, 1))
    blocks = columns * -(-m // threads_m) * batch
    while unroll > 1 and blocks // unroll < ENOUGH_BLOCKS:
        unroll //= 2
    downwards = m >= threads_m * unroll
    rows, across = (unroll, 1) if downwards else (1, min(unroll, power_of_two(columns)))
    grid = ThreadGrid(threads_m, threads_n, vector, rows, across)
    return grid, _tiles(space, grid) if reduces else 1


def _tiles(space: Space, grid: ThreadGrid) -> int:
    """Over how many tiles a block walks, so that few blocks share what is reduced and all multiprocessors have some."""
    m, n, batch = space.extents
    if not any(op.reduced and space.m.strides[op.name] == 0 for op in space.operands.values()):
        return 1
    tiles, others = -(-m // grid.tile_m), -(-n // grid.tile_n) * batch
    chunks = min(tiles, max(ENOUGH_BLOCKS // max(others, 1), 1))
    return -(-tiles // chunks)


def widest_vector(space: Space) -> int:
    """Elements that follow each other in a thread: 16 bytes of the narrowest tensor, 32 of the widest at most."""
    dense = [op for op in space.operands.values() if space.n.strides[op.name] == 1 and not op.bits]
    if not dense:
        return 1
    widths = [max(op.dtype.width, 8) for op in dense if space.moves(op.name)] or [
        max(op.dtype.width, 8) for op in dense
    ]
    vector = min(ACCESS_BITS // min(widths), MOST_BITS // max(widths))

    def fits(op: Operand) -> bool:
        most = min(vector, ACCESS_BITS // max(op.dtype.width, 8))
        return space.aligned(op.name, most) == most

    while vector > 1 and (space.n.extent % vector or not all(map(fits, dense))):
        vector //= 2
    return vector


def _lies_across(space: Space, name: str) -> bool:
    """Whether a tensor's elements lie behind each other along M."""
    return space.m.strides[name] == 1 and space.n.strides[name] not in (0, 1)


def _rows_across(space: Space) -> int:
    """How many rows of a thread follow each other, where tensors lie across: 16 bytes of the widest; 1 is none."""
    across = [op for op in space.operands.values() if _lies_across(space, op.name)]
    rows = min((ACCESS_BITS // max(op.dtype.width, 8) for op in across), default=1)
    rows = min(rows, MOST_ELEMENTS // 2)
    while rows > 1 and (space.m.extent % rows or any(space.aligned(op.name, rows, space.m) < rows for op in across)):
        rows //= 2
    return rows


def _check_row(space: Space, elements: int) -> None:
    if elements > ROW_ELEMENTS:
        raise EpilogueError(
            "A row of top-k with softmax does not fit a block.",
            values={"columns": space.n.extent, "at most": ROW_ELEMENTS * REDUCING_THREADS},
            hint="compute it in two kernels, or on shorter rows",
        )


def check_atomic(op: ReductionStore, meta: StoreNode) -> bool:
    """True where a reduction can be atomic.

    Raises:
        EpilogueError: memory has no atomic operation for its type.
    """
    types = (Float32, Float64, Int32, Int64) if op.fold.name == "sum" else (Float32, Int32, Int64)
    if op.view.dtype is not op.fold.dtype or op.fold.dtype not in types:
        raise EpilogueError(
            f"Reduction {meta.name} cannot be atomic.",
            location=meta.location,
            values={"its type": op.view.dtype, "atomic reductions have": ", ".join(map(str, types))},
            hint=f"store {meta.name} in one of these types, or leave reductions deterministic",
        )
    return True


def argument_of(meta: NodeBase) -> str:
    """The name under which a call gives a load or an output: several loads of one operand have the same."""
    return meta.argument if isinstance(meta, LoadNode) else meta.name


def numbers_of(dag: DAGIR) -> tuple[str, ...]:
    """The arguments that are numbers, in the order in which a kernel takes them."""
    return tuple(meta.argument for meta in dag.loads() if meta.example.is_scalar and not meta.is_immediate)


def names_of(dag: DAGIR, epilogue: Epilogue, space: Space) -> list[tuple[str, views.Strided] | None]:
    """For each tensor of the kernel the array and the view, or None for a workspace."""
    return [
        (argument_of(dag.get_node_meta(op.name)), views.Strided(space.shape(op.name), space.strides(op.name)))
        if place == 0
        else None
        for op in epilogue.ops
        for place, _ in enumerate(op.views)
    ]


@functools.cache
def _executor(plan: ElementwisePlan, kind: type[Numeric], target: str) -> Any:
    """The compiled kernel of a plan."""
    arguments, three = plan.epilogue.fake_arguments(), (kind(1), kind(1), kind(1))
    found = cute.compile(launch_epilogue_elementwise, arguments, three, kind(1), plan, target=target)
    return views.quick(found)
