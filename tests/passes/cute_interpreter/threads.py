"""One thread: the operations of a kernel, or of the host function. Generators yield where other threads are needed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from tests.passes.cute_interpreter import numbers
from tests.passes.cute_interpreter.memory import NUMPY, UNWRITTEN, Fault, Pointer, Region, Tensor, Undefined
from tests.passes.cute_interpreter.program import Block, Op, pointer_type, tensor_type, vector_type
from tilewright.ir import atom_text, layout_text
from tilewright.layout import ComposedLayout, Layout, crd2idx, runtime_checks, size, views
from tilewright.layout.dynamic import Multiple
from tilewright.layout.inttuple import flat

MOST_STEPS = 20_000


@dataclass
class Wait:
    """What a thread waits for: all threads at a barrier, or all lanes at `op`, which get `value`s of one another."""

    op: Op
    value: object = None


@dataclass
class Thread:
    """The state of a thread."""

    indices: dict[str, int]
    who: tuple[int, int]
    shared: dict
    launch: object = None
    values: dict = field(default_factory=dict)
    steps: int = 0
    copies: list = field(default_factory=lambda: [[]])

    def block(self, block: Block, arguments=()):
        """Run a block; gives the operands of its terminator, with its name."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Undefined("too many steps")
            if op.name in ("scf.yield", "scf.condition", "gpu.return", "func.return"):
                return self.read(op.operands)
            yield from self.step(op)
        return []

    def read(self, operands):
        return [self.values[operand] for operand in operands]

    def write(self, op: Op, results) -> None:
        self.values.update(zip(op.results, results, strict=True))

    def step(self, op: Op):
        dialect, _, name = op.name.partition(".")
        if dialect in ("arith", "math"):
            self.write(op, [numbers.evaluate(op, self.read(op.operands))])
        elif op.name in ("llvm.mlir.undef", "llvm.mlir.poison"):
            count, _ = vector_type(op.types[0])
            self.write(op, [[UNWRITTEN] * count if count else UNWRITTEN])
        elif op.name == "vector.to_elements":
            self.write(op, self.values[op.operands[0]])
        elif dialect == "vector":
            self.write(op, [self.vector(name, op, self.read(op.operands))])
        elif dialect == "scf":
            yield from getattr(self, f"scf_{name}")(op)
        elif name in ("sync_threads",):
            yield Wait(op)
        elif name in ("shuffle", "vote", "warp_reduce", "sync_warp"):
            found = yield Wait(op, self.read(op.operands))
            if op.results:
                self.write(op, [found])
        elif op.name == "gpu.launch_func":
            self.launch(op, self)
        else:
            found = getattr(self, name)(op)
            if op.results:
                self.write(op, [found])

    # Control flow.

    def scf_for(self, op: Op):
        low, high, step, *carried = self.read(op.operands)
        if step <= 0:
            raise Undefined("a loop without a step")
        element = op.operand_types[0]
        if "unsignedCmp" in op.attributes:
            low, high = numbers.unsigned(low, element), numbers.unsigned(high, element)
        for index in range(low, high, step):
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Undefined("too many steps")
            carried = yield from self.block(op.regions[0], [index, *carried])
        self.write(op, carried)

    def scf_if(self, op: Op):
        (condition,) = self.read(op.operands)
        if condition is UNWRITTEN:
            raise Undefined("a branch on what nobody wrote")
        region = op.regions[0 if condition else 1]
        self.write(op, (yield from self.block(region)) if region is not None else [])

    def scf_while(self, op: Op):
        carried = self.read(op.operands)
        while True:
            holds, *carried = yield from self.block(op.regions[0], carried)
            if holds is UNWRITTEN:
                raise Undefined("a loop on what nobody wrote")
            if not holds:
                break
            carried = yield from self.block(op.regions[1], carried)
        self.write(op, carried)

    # Vectors.

    def vector(self, name: str, op: Op, values):
        if name == "broadcast":
            count, _ = vector_type(op.types[0])
            return [values[0]] * count if not isinstance(values[0], list) else values[0]
        if name == "from_elements":
            return list(values)
        if name == "bitcast":
            return _bitcast(values[0], op.operand_types[0], op.types[0])
        if name == "extract":
            (position,) = op.attributes["static_position"]
            return values[0][values[1] if position < 0 else position]
        if name == "insert":
            (position,) = op.attributes["static_position"]
            made = list(values[1])
            made[values[2] if position < 0 else position] = values[0]
            return made
        if name == "shuffle":
            return [(values[0] + values[1])[n] for n in op.attributes["mask"]]
        raise NotImplementedError(f"vector.{name}")

    # Addresses and views.

    def layout(self, text: str, leaves32, leaves64):
        return layout_text.decode_layout(text, self.leaves(leaves32, leaves64))

    def leaves(self, leaves32, leaves64):
        queues = {32: iter(self.read(leaves32)), 64: iter(self.read(leaves64))}

        def leaf(width: int, divisibility: int) -> int:
            number = next(queues[width])
            if number is UNWRITTEN:
                raise Undefined("an address of what nobody wrote")
            if number % divisibility:
                raise Undefined("a leaf is not the multiple that its type says")
            return number

        return leaf

    def placed(self, pointer: Pointer, layout, type_: str) -> Tensor:
        element, space, _, align = tensor_type(type_)
        if pointer.offset % align:
            raise Undefined("an alignment does not hold")
        return Tensor(pointer, layout, element, space)

    def make_tensor(self, op: Op) -> Tensor:
        (pointer,), leaves32, leaves64 = op.groups
        return self.placed(
            self.values[pointer], self.layout(tensor_type(op.types[0])[2], leaves32, leaves64), op.types[0]
        )

    def view(self, op: Op) -> Tensor:
        (source,), arguments32, arguments64, leaves32, leaves64 = op.groups
        tensor = self.values[source]
        arguments = layout_text.decode_arguments(op.attributes["arguments"], self.leaves(arguments32, arguments64))
        with runtime_checks(lambda fact: None):
            cut = views.cut(tensor.layout, op.attributes["algebra"], arguments)
            start = cut.start
            _refuse_ones(cut.coord, getattr(cut.layout, "outer", cut.layout).shape)
        element, _, text, _ = tensor_type(op.types[0])
        pointer = tensor.pointer
        swizzle, _, outer = text.rpartition(" o ")
        layout = self.layout(outer, leaves32, leaves64)
        if swizzle:
            before = cut.layout if isinstance(cut.layout, ComposedLayout) else tensor.layout
            offset = before.offset + (start if op.attributes["moves"] == "swizzle" else 0)
            layout = ComposedLayout(before.inner, offset, layout)
        if op.attributes["moves"] == "pointer":
            pointer = pointer.moved(start * np.dtype(NUMPY[element]).itemsize)
        return self.placed(pointer, layout, op.types[0])

    def iterator(self, op: Op) -> Pointer:
        return self.values[op.operands[0]].pointer

    def leaf(self, op: Op) -> int:
        tensor, text = self.values[op.operands[0]], tensor_type(op.operand_types[0])[2]
        numbers_, pattern = [], layout_text.decode_layout(text, lambda width, _: Multiple(1, width))
        _collect(pattern, tensor.layout, numbers_)
        return numbers_[op.attributes["index"]]

    def ptr_offset(self, op: Op) -> Pointer:
        pointer, offset = self.read(op.operands)
        element, _, align = pointer_type(op.types[0])
        moved = pointer.moved(offset * np.dtype(NUMPY[element]).itemsize)
        if moved.offset % align:
            raise Undefined("an alignment does not hold")
        return moved

    def field(self, op: Op) -> Pointer:
        return self.values[op.operands[0]].moved(op.attributes["offset"])

    def ptr_cast(self, op: Op) -> Pointer:
        return self.values[op.operands[0]]

    def alloc(self, op: Op) -> Pointer:
        _, space, _ = pointer_type(op.types[0])
        bytes_ = op.attributes["bytes"]
        if space == "rmem":
            return Pointer(Region(np.zeros(bytes_, np.uint8), space), 0)
        key = op.results[0]
        if key not in self.shared:
            self.shared[key] = Pointer(Region(np.zeros(bytes_, np.uint8), space), 0)
        return self.shared[key]

    # Memory.

    def coord(self, op: Op, leaves32, leaves64):
        return layout_text.decode_coord(op.attributes["coord"], self.leaves(leaves32, leaves64))

    def load(self, op: Op):
        (tensor,), leaves32, leaves64 = op.groups
        return self.values[tensor].read(self.coord(op, leaves32, leaves64), self.who)

    def store(self, op: Op) -> None:
        (value,), (tensor,), leaves32, leaves64 = op.groups
        self.values[tensor].write(self.coord(op, leaves32, leaves64), self.values[value], self.who)

    def load_tensor(self, op: Op) -> list:
        tensor = self.values[op.operands[0]]
        return [tensor.read(n, self.who) for n in range(size(tensor.layout))]

    def store_tensor(self, op: Op) -> None:
        values, tensor = self.read(op.operands)
        for number, value in enumerate(values):
            tensor.write(number, value, self.who)

    def fill(self, op: Op) -> None:
        value, tensor = self.read(op.operands)
        for number in range(size(tensor.layout)):
            tensor.write(number, value, self.who)

    def copy(self, op: Op) -> None:
        (source,), (target,), masks = op.groups
        self._copy(op, _in_registers(self.values[source], op.operand_types[0]), self.values[target], masks)

    def copy_value(self, op: Op) -> list:
        (source,), masks, old = op.groups
        count, _ = vector_type(op.types[0])
        target = _in_registers(self.values[old[0]] if old else [0] * count, op.types[0])
        self._copy(op, self.values[source], target, masks)
        return [target.read(n, self.who) for n in range(count)]

    def _copy(self, op: Op, src: Tensor, dst: Tensor, masks) -> None:
        atom = atom_text.read(op.attributes["atom"])
        if atom.name not in ("universal", "cp.async"):
            raise NotImplementedError(atom.name)
        count = size(src.layout)
        flags = self._flags(masks[0]) if masks else [1]
        entries = len(flags)
        for entry, holds in enumerate(flags):
            numbers_ = range(entry * count // entries, (entry + 1) * count // entries)
            if holds or atom.name == "cp.async":
                self._move(src, dst, numbers_, holds, atom.name == "cp.async")

    def _flags(self, mask: int) -> list:
        held = self.values[mask]
        return held if isinstance(held, list) else [held.read(n, self.who) for n in range(size(held.layout))]

    def _move(self, src: Tensor, dst: Tensor, numbers_, holds, asynchronous: bool) -> None:
        element = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}[np.dtype(NUMPY[dst.element]).itemsize]
        _refuse_overlap(src, dst, numbers_)
        raw = [Tensor(side.pointer, side.layout, element, side.space) for side in (src, dst)]
        for number in numbers_:
            value = raw[0].read(number, self.who) if holds else 0
            raw[1].write(number, value, self.who)
            if asynchronous:
                span = slice(raw[1].place(number), raw[1].place(number) + np.dtype(NUMPY[element]).itemsize)
                dst.pointer.region.pending[span] = True
                self.copies[-1].append((dst.pointer.region, span))

    def async_commit(self, op: Op) -> None:
        self.copies.append([])

    def async_wait(self, op: Op) -> None:
        done = max(len(self.copies) - 1 - op.attributes["groups"], 0)
        for group in self.copies[:done]:
            for region, span in group:
                region.pending[span] = False
        self.copies = self.copies[done:]

    def gemm(self, op: Op) -> None:
        d, a, b, c = self.read(op.operands)
        if op.attributes["atom"] != "universal":
            raise NotImplementedError("mma")

        def extent(tensor: Tensor, mode: int) -> int:
            shape = tensor.layout.shape
            return size(shape[mode]) if isinstance(shape, tuple) and len(shape) > mode else 1

        m, n, k = extent(a, 1), extent(b, 1), extent(a, 2)
        sums = {(i, j): c.read(i + m * j, self.who) for i in range(m) for j in range(n)}
        for step, i, j in itertools.product(range(k), range(m), range(n)):
            left, right = a.read(i + m * step, self.who), b.read(j + n * step, self.who)
            sums[i, j] = numbers.fused(left, right, sums[i, j], d.element)
        for (i, j), value in sums.items():
            d.write(i + m * j, value, self.who)

    def gemm_value(self, op: Op) -> list:
        a, b, c = self.read(op.operands)
        if op.attributes["atom"] != "universal":
            raise NotImplementedError("mma")
        (m, n, k), element = op.attributes["extents"], vector_type(op.types[0])[1]
        sums = list(c)
        for step, i, j in itertools.product(range(k), range(m), range(n)):
            sums[i + m * j] = numbers.fused(a[i + m * step], b[j + n * step], sums[i + m * j], element)
        return sums

    def join(self, op: Op) -> list:
        return [item for part in self.read(op.operands) for item in (part if isinstance(part, list) else [part])]

    def atomic(self, op: Op):
        (value,), compared, (tensor,), leaves32, leaves64 = op.groups
        target, number = self.values[tensor], self.values[value]
        region, place = target.pointer.region, target.place(self.coord(op, leaves32, leaves64))
        old = region.read(place, target.element, self.who) if region.space == "rmem" else _peek(region, place, target)
        kind = op.attributes["kind"]
        if compared or kind[:-1] in ("exch", "inc", "dec"):
            raise NotImplementedError(kind)
        region.write(place, target.element, numbers.fold(kind, old, number, target.element), self.who, atomic=kind)
        return old

    # Values.

    def reduce(self, op: Op):
        values, init = self.read(op.operands)
        shape, folds = op.attributes["shape"], op.attributes["profile"]
        element = vector_type(op.operand_types[0])[1]
        kept = [range(1 if fold else extent) for extent, fold in zip(shape, folds, strict=True)]
        gone = [range(extent if fold else 1) for extent, fold in zip(shape, folds, strict=True)]
        found = []
        for outer in _colexicographic(kept):
            part = [values[crd2idx(tuple(map(sum, zip(outer, inner, strict=True))), tuple(shape))]
                    for inner in _colexicographic(gone)]  # fmt: skip
            found.append(
                numbers.fold(op.attributes["kind"], _tree(part, op.attributes["kind"], element), init, element)
            )
        return found if vector_type(op.types[0])[0] else found[0]

    def index(self, op: Op) -> int:
        return self.indices[op.attributes["name"]]


def _refuse_ones(coord, shape) -> None:
    """Beyond an extent of 1 a layout goes on as it likes: whether it was known to be 1 makes a difference."""
    if isinstance(coord, tuple):
        for item, mode in zip(coord, shape if isinstance(shape, tuple) else (shape,), strict=True):
            _refuse_ones(item, mode)
    elif coord is not None and not 0 <= coord < size(shape) and 1 in flat(shape):
        raise Undefined("a coordinate beyond an extent of 1")


def _in_registers(value, type_: str) -> Tensor:
    """A tensor; a vector becomes one of registers that hold it."""
    if isinstance(value, Tensor):
        return value
    count, element = vector_type(type_)
    width = np.dtype(NUMPY[element]).itemsize
    tensor = Tensor(Pointer(Region(np.zeros(count * width, np.uint8), "rmem"), 0), Layout(count), element, "rmem")
    for number, item in enumerate(value):
        tensor.write(number, item, (-1, -1))
    return tensor


def _bitcast(values: list, source: str, target: str) -> list:
    data = np.array(values).astype(NUMPY[vector_type(source)[1]]).view(NUMPY[vector_type(target)[1]])
    return [int(item) if data.dtype.kind == "i" else item for item in data]


def _colexicographic(ranges):
    return [tuple(reversed(item)) for item in itertools.product(*reversed(ranges))]


def _tree(parts: list, kind: str, element: str):
    """Neighbours pairwise, as `cute.reduce` says."""
    while len(parts) > 1:
        pairs = [numbers.fold(kind, parts[n], parts[n + 1], element) for n in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def _collect(pattern, layout, found: list) -> None:
    """The numbers of `layout` where that of `pattern` is not known, in order of appearance."""
    if isinstance(pattern, ComposedLayout):
        _collect(pattern.offset, layout.offset, found)
        _collect(pattern.outer, layout.outer, found)
    elif hasattr(pattern, "shape"):
        _collect(pattern.shape, layout.shape, found)
        _collect(pattern.stride, layout.stride, found)
    elif isinstance(pattern, tuple):
        for part, other in zip(pattern, layout, strict=True):
            _collect(part, other, found)
    elif isinstance(pattern, Multiple):
        found.append(layout)


def _peek(region: Region, place: int, target: Tensor):
    """A number that atomic operations race for."""
    dtype = np.dtype(NUMPY[target.element])
    if place < 0 or place + dtype.itemsize > len(region.data):
        raise Fault("bounds")
    if not region.written[place : place + dtype.itemsize].all():
        raise Undefined("uninitialised")
    found = region.data[place : place + dtype.itemsize].view(dtype)[0]
    return int(found) if target.element.startswith("i") else found


def _refuse_overlap(src: Tensor, dst: Tensor, numbers_) -> None:
    """What a copy onto part of its own source leaves hangs on how wide its instructions are."""
    if src.pointer.region is dst.pointer.region:
        read = {src.place(n) for n in numbers_}
        written = {dst.place(n) for n in numbers_}
        if read & written and [src.place(n) for n in numbers_] != [dst.place(n) for n in numbers_]:
            raise Undefined("a copy onto part of its source")
