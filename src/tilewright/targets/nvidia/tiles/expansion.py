"""The operations of a kernel of tiles, one by one: what the pass expand-tiles does where there are any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.context import located
from tilewright.ir.locations import source_location
from tilewright.ir.walk import address
from tilewright.lang import trace
from tilewright.lang.numbers.numeric import from_mlir_type
from tilewright.passes.pass_errors import locate_error
from tilewright.targets.nvidia.tiles.access import load, store, window
from tilewright.targets.nvidia.tiles.assignment import FREE, Assignment, is_free, is_tile, shape_of
from tilewright.targets.nvidia.tiles.block import Block
from tilewright.targets.nvidia.tiles.distribution import Coordinate, Distribution, folded
from tilewright.targets.nvidia.tiles.exchange import converted
from tilewright.targets.nvidia.tiles.folding import fold
from tilewright.targets.nvidia.tiles.main_loops import MainLoop, Pipeline, find_main_loops
from tilewright.targets.nvidia.tiles.products import Product, multiply

if TYPE_CHECKING:
    from mlir import ir

LEAST_THREADS, MOST_THREADS = 32, 1024
MOST_VALUES = 512


def expand(module: ir.Module, kernel: ir.Operation, ops: Sequence[ir.Operation]) -> None:
    """Expand the tiles of a kernel, whose operations are `ops`."""
    program = trace.Trace(module, side="device")
    with trace.program(program):  # the language's own functions build the code
        _Expansion(kernel, ops).run()


class _Expansion:
    """A kernel on its way from tiles to threads."""

    def __init__(self, kernel: ir.Operation, ops: Sequence[ir.Operation]) -> None:
        self._kernel = kernel
        self._ops = ops
        threads = _threads(kernel)
        _check_shapes(ops)
        self._threads = threads
        self._products: dict[Any, Product] = {}
        self._main_loops = {address(item.loop): item for item in find_main_loops(ops)}
        self._pipelines: dict[ir.Value, Pipeline] = {}
        self._copied_ahead: list[ir.Value] = []
        self._shapes = {value: shape_of(value) for value in _tiles(ops)}
        self._classes = Assignment(ops, threads, lambda op: _at(op, lambda: self._product(op).held))
        self._block = Block(kernel, threads)
        self._free = {value for value in self._shapes if is_free(value)}
        self._held = {value: self._classes.of(value) for value in self._shapes if value in self._classes}

    def run(self) -> None:
        self._retype()
        for op in self._ops:
            _at(op, lambda op=op: self._expand(op))  # type: ignore[misc]
        for value in (*self._copied_ahead, *self._free):
            value.owner.erase()
        self._block.finish()

    def _retype(self) -> None:
        """Tiles become vectors of a thread's elements; numbers that are repeated are made where they are used."""
        for value, held in self._held.items():
            _check_size(value, held)
            dtype = from_mlir_type(mlir.ir.RankedTensorType(value.type).element_type)
            value.set_type(types.vector(len(held.values), dtype.facts.name))

    def _expand(self, op: ir.Operation) -> None:
        if op.name in FREE:
            return  # made where they are used
        if address(op) in self._main_loops:
            self._begin_pipeline(self._main_loops[address(op)])
        if op.name == "cute.tile_load" and op.results[0] in self._copied_ahead:
            return
        step = _STEPS.get(op.name)
        if step is not None:
            made = step(self, op)
            if made is not None:
                old = op.results[0]
                self._held[made], self._shapes[made] = self._held[old], self._shapes[old]
                old.replace_all_uses_with(made)
            op.erase()
            return
        self._fit_operands(op)

    def _begin_pipeline(self, found: MainLoop) -> None:
        """In front of a main loop: its operands are copied ahead, where shared memory can hold them in stages."""
        loads = [op.results[0] for op in found.loads]
        product = self._product(found.dot)
        made = Pipeline(self._block, found, product, [self._held[value] for value in loads])
        if product.tiled is not None and made.stages():
            made.before()
            self._pipelines[found.dot.results[0]] = made
            self._copied_ahead += loads

    def _fit_operands(self, op: ir.Operation) -> None:
        """Arithmetic, loops and branches stay; numbers that are repeated get the size that is needed."""
        for number, operand in enumerate(op.operands):
            if operand in self._free:
                op.operands[number] = self._splat(operand, self._wanted(op, number))

    def _wanted(self, op: ir.Operation, number: int) -> Distribution:
        """The distribution in which an operation takes an operand."""
        if op.name == "scf.for":
            return self._held[op.results[number - 3]]
        if op.name == "scf.while":
            return self._held[op.regions[0].blocks[0].arguments[number]]
        if op.name == "scf.condition":
            return self._held[op.parent.operation.results[number - 1]]
        if op.name == "scf.yield":
            parent = op.parent.operation
            over = parent.regions[0].blocks[0].arguments if parent.name == "scf.while" else parent.results
            return self._held[over[number]]
        return self._held[op.results[0]]

    def _splat(self, value: ir.Value, held: Distribution) -> ir.Value:
        """A number repeated for each of a thread's elements."""
        owner, element = value.owner, mlir.ir.RankedTensorType(value.type).element_type
        type_ = types.vector(len(held.values), from_mlir_type(element).facts.name)
        if owner.name == "cute.tile_full":
            return build.value("vector.broadcast", type_, (owner.operands[0],))
        number = mlir.ir.DenseElementsAttr(owner.attributes["value"]).get_splat_value()
        attribute = mlir.ir.DenseElementsAttr.get_splat(mlir.ir.VectorType(type_), number)
        return build.value("arith.constant", type_, (), {"value": attribute})

    def _operand(self, value: ir.Value) -> tuple[ir.Value, Distribution]:
        """An operand as it is held; a repeated number as a tile about which nothing else is known."""
        if value not in self._free:
            return value, self._held[value]
        element = mlir.ir.RankedTensorType(value.type).element_type
        held = self._classes.standard(self._shapes[value], from_mlir_type(element).width)
        return self._splat(value, held), held

    def _operand_as(self, op: ir.Operation, value: ir.Value, held: Distribution) -> ir.Value:
        """An operand as `held` has it."""
        if value in self._free:
            return self._splat(value, held)
        return converted(self._block, op, value, self._held[value], held)

    # The operations.

    def load(self, op: ir.Operation) -> ir.Value:
        (tensor,), origin = build.groups(op)
        pad = mlir.ir.FloatAttr(op.attributes["pad"]).value
        return load(window(self._block, tensor, origin, self._held[op.results[0]]), pad)

    def store(self, op: ir.Operation) -> None:
        (value,), (tensor,), origin = build.groups(op)
        vector, held = self._operand(value)
        store(window(self._block, tensor, origin, held), vector)

    def broadcast(self, op: ir.Operation) -> ir.Value:
        (value,), target = op.operands, self._held[op.results[0]]
        if value in self._free:
            return self._splat(value, target)
        small, large = self._shapes[value], target.shape
        modes = [mode for mode, (a, b) in enumerate(zip(small, large, strict=True)) if a != b]
        part = folded(target, modes)
        vector = self._operand_as(op, value, part)
        picked = [part.values.index(_without(item, modes)) for item in target.values]
        return vectors.shuffle(vector, picked)

    def reduce(self, op: ir.Operation) -> ir.Value:
        vector, source = self._operand(op.operands[0])
        made, held = fold(self._block, op, vector, source)
        return converted(self._block, op, made, held, self._held[op.results[0]])

    def dot(self, op: ir.Operation) -> ir.Value:
        (a,), (b,), (c,) = build.groups(op)
        product, held = self._product(op), self._held[op.results[0]]
        sums = self._operand_as(op, c, product.held)
        pipeline = self._pipelines.get(op.results[0])
        if pipeline is not None:
            found = pipeline.multiply(sums)
        else:
            found = multiply(self._block, op, product, self._operand(a), self._operand(b), sums)
        return converted(self._block, op, found, product.held, held)

    def _product(self, op: ir.Operation) -> Product:
        a, b = op.operands[0], op.operands[1]
        key = (self._shapes[a], self._shapes[b], a.type.element_type)
        if key not in self._products:
            self._products[key] = Product.of(*key, self._threads)
        return self._products[key]


_STEPS: dict[str, Callable[[_Expansion, ir.Operation], ir.Value | None]] = {
    "cute.tile_load": _Expansion.load,
    "cute.tile_store": _Expansion.store,
    "cute.tile_broadcast": _Expansion.broadcast,
    "cute.tile_reduce": _Expansion.reduce,
    "cute.tile_dot": _Expansion.dot,
}


def _without(item: Coordinate, modes: Sequence[int]) -> Coordinate:
    return tuple(0 if mode in modes else at for mode, at in enumerate(item))


def _at(op: ir.Operation, work: Callable[[], object]) -> Any:
    """Build before an operation, with its line; an error that names no line gets it."""
    location = op.location
    try:
        with mlir.ir.InsertionPoint(op), located(lambda: location):
            return work()
    except Exception as error:
        locate_error(error, op, location)
        raise


def _tiles(ops: Sequence[ir.Operation]) -> list[ir.Value]:
    blocks = [block for op in ops for region in op.regions for block in region]
    values = [value for op in ops for value in op.results] + [value for block in blocks for value in block.arguments]
    return [value for value in values if is_tile(value)]


def _threads(kernel: ir.Operation) -> int:
    """The threads of a block.

    Raises:
        CompileError: they are known only at run time, or are no power of two of at least a warp.
    """
    if "known_block_size" not in kernel.attributes:
        raise CompileError(
            "a kernel with tiles is launched with a block of run time",
            location=source_location(kernel.location),
            hint="give block=(128, 1, 1), or another size that is known while compiling",
        )
    block = tuple(mlir.ir.DenseI32ArrayAttr(kernel.attributes["known_block_size"]))
    count = math.prod(block)
    if count & (count - 1) or not LEAST_THREADS <= count <= MOST_THREADS:
        raise CompileError(
            f"a kernel with tiles is launched with blocks of {count} threads",
            location=source_location(kernel.location),
            values={"block": block},
            hint=f"take a power of two from {LEAST_THREADS} to {MOST_THREADS}",
        )
    return count


def _check_shapes(ops: Sequence[ir.Operation]) -> None:
    """Refuse tiles that threads cannot share evenly."""
    for op in ops:
        for value in op.results:
            if is_tile(value) and any(extent & (extent - 1) for extent in shape_of(value)):
                raise CompileError(
                    f"a tile of shape {shape_of(value)}",
                    location=source_location(op.location),
                    hint="on this target the extents of tiles are powers of two; tile.load pads what lies outside the "
                    "tensor, and tile.store drops it",
                )


def _check_size(value: ir.Value, held: Distribution) -> None:
    """Refuse tiles of which a thread would hold too much."""
    if len(held.values) <= MOST_VALUES:
        return
    owner = value.owner if hasattr(value.owner, "location") else value.owner.owner
    raise CompileError(
        f"a tile of shape {held.shape} gives each thread {len(held.values)} elements",
        location=source_location(owner.location),
        values={"at most": MOST_VALUES},
        hint="take smaller tiles, or more threads",
    )
