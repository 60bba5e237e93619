"""`origin`: the memory that a tensor is a part of, and the coordinates of its elements.

Each kernel here reads one element a thread of a tensor whose elements are their own places. The coordinates that
`origin` gives, for the numbers of each thread, must lead to what the kernel read on the emulator.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float16, Float32, Int32
from tilewright.cute.nvgpu import warp
from tilewright.cute.runtime import from_dlpack
from tilewright.ir import build, mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.walk import operations
from tilewright.layout import ScaledBasis, evaluate, flatten_to_tuple
from tilewright.passes.lowering import read_coord
from tilewright.passes.origin import origin
from tilewright.passes.pipeline import Pass

THREADS, BLOCKS, N = 32, 2, 3

_BINARY = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul, "arith.remui": operator.mod,
    "arith.divui": operator.floordiv, "arith.shrui": operator.rshift, "arith.shrsi": operator.rshift,
    "arith.shli": operator.lshift, "arith.andi": operator.and_, "arith.remsi": operator.mod,
    "arith.divsi": operator.floordiv, "arith.floordivsi": operator.floordiv, "arith.xori": operator.xor,
}  # fmt: skip


class Look(Pass):
    """Keeps what `look(op)` says of each operation of the names given, in order."""

    name = "look"

    def __init__(self, look, *names):
        super().__init__()
        self.look, self.names, self.seen = look, names, []

    def run(self, module):
        self.seen = [self.look(op) for op in operations(module) if op.name in self.names]


def number(value, thread, block, arguments):
    """An integer of the program for one thread; `arguments` are those of the kernel by name."""
    owner = value.owner
    if isinstance(owner, mlir.ir.Block):
        return arguments[value.get_name()]
    op = owner.operation
    if op.name == "arith.constant":
        return int(mlir.ir.IntegerAttr(op.attributes["value"]).value)
    if op.name == "cute.index":
        return {"thread_idx.x": thread, "block_idx.x": block, "block_dim.x": THREADS}.get(text_of(op, "name"), 0)
    if op.name in ("arith.extsi", "arith.extui", "arith.trunci"):
        return number(op.operands[0], thread, block, arguments)
    if op.name == "cute.leaf":
        index = int(mlir.ir.IntegerAttr(op.attributes["index"]).value)
        return arguments[op.operands[0].get_name(), index]
    return _BINARY[op.name](*(number(operand, thread, block, arguments) for operand in op.operands))


def places(op, sizes):
    """For each thread: the place in x, in elements of its layout, of the element that a `cute.load` reads."""
    (tensor,), coord32, coord64 = build.groups(op)
    found = origin(tensor)
    assert found.name == "x" and found.coordinates is not None, found.reason
    read = []
    for block in range(BLOCKS):
        for thread in range(THREADS):
            env = {name: number(value, thread, block, sizes) for name, value in found.operands.items()}
            index = read_coord(text_of(op, "coord"), coord32, coord64)
            index = evaluated(index, lambda item, at=(thread, block): number(item.value, *at, sizes))
            map_ = found.coordinates
            start = evaluate(map_.start, env)
            layout = cute.make_layout(evaluate(map_.layout.shape, env), stride=evaluate(map_.layout.stride, env))
            read.append(add(start, layout(index)))
    return read


def evaluated(item, leaf):
    if isinstance(item, tuple):
        return tuple(evaluated(part, leaf) for part in item)
    return item if isinstance(item, int) else leaf(item)


def add(start, moved):
    moved = moved if isinstance(moved, tuple) else (moved,)
    return tuple(a + b for a, b in zip(flatten_to_tuple(start), [*flatten_to_tuple(moved), 0, 0], strict=False))


def check(body, rows=64, columns=8, wrap=from_dlpack, dtype=np.int32):
    """Compile `body(x, thread, block, n) -> element`, compare what it reads with the coordinates of its last load."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, n: Int32):
        thread, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        out[block * THREADS + thread] = Int32(body(x, thread, block, n))

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: Int32):
        kernel(x, out, n).launch(grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1))

    x = np.arange(rows * columns, dtype=dtype).reshape(rows, columns)
    out = np.zeros(BLOCKS * THREADS, np.int32)
    sizes = {"%arg2": N, ("%arg0", 0): rows, ("%arg0", 1): columns, ("%arg0", 2): columns}
    look = Look(lambda op: places(op, sizes), "cute.load")
    cute.compile(host, wrap(x), wrap(out), N, passes=look, target="emu")(wrap(x), wrap(out), N)
    assert [int(x[place[:2]]) for place in look.seen[-1]] == out.tolist()
    return look.seen[-1]


def test_a_whole_tensor():
    check(lambda x, thread, block, n: x[thread + 32 * block, n])


@pytest.mark.parametrize("wrap", [from_dlpack, lambda array: array], ids=["static", "dynamic"])
def test_a_tile_of_a_tile(wrap):
    def body(x, thread, block, n):
        tile = cute.local_tile(x, (32, 4), (block, 1))
        return cute.local_tile(tile, (8, 2), (thread // 8, None))[thread % 8, 1, 1]

    check(body, wrap=wrap)


@pytest.mark.parametrize("wrap", [from_dlpack, lambda array: array], ids=["static", "dynamic"])
def test_slices_and_division(wrap):
    def body(x, thread, block, n):
        divided = cute.zipped_divide(x, (4, 2))
        return divided[(None, None), (thread % 16, block)][(n, thread // 16)]

    check(body, wrap=wrap)


def test_a_domain_offset():
    check(lambda x, thread, block, n: cute.domain_offset((n, 2 * block), x)[thread, 1])


def test_a_partition_by_threads():
    def body(x, thread, block, n):
        copy = cute.make_tiled_copy_tv(
            cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int32), cute.make_layout((8, 4)), cute.make_layout((2, 1))
        )
        return copy.get_slice(thread).partition_S(x)[(0, 1), n, block]

    check(body)


def test_a_partition_by_a_tiled_mma():
    def body(x, thread, block, n):
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
        part = mma.get_slice(thread).partition_C(x)
        return part[(1, 1), block, 0]

    check(body)


def test_a_local_partition():
    check(lambda x, thread, block, n: cute.local_partition(x, cute.make_layout((16, 2)), thread)[n, block])


def test_a_composition_flattened_and_grouped():
    def body(x, thread, block, n):
        rows = cute.composition(x, (cute.make_layout((4, 8), stride=(8, 1)), None))
        return cute.group_modes(cute.flatten(rows), 0, 2)[(thread % 4, thread // 4), n]

    check(body)


def test_inside_a_loop_and_a_nested_function():
    @cute.jit
    def body(x, thread, block, n):
        found = Int32(0)

        def pick(tile, row):
            return tile[row, None][1]

        for _ in cutlass.range(n):
            found = pick(cute.local_tile(x, (32, 2), (block, 0)), thread)
        return found

    check(body)


def coordinates_of(kernel, *arguments, names=("cute.store",), block=32):
    """The origin of the first tensor operand of each operation, and the expressions of where it starts."""

    @cute.jit
    def host(arguments: tuple):
        kernel(*arguments).launch(grid=1, block=block)

    def look(op):
        tensor = next(operand for operand in op.operands if str(operand.type).startswith("!cute.tensor"))
        found = origin(tensor)
        kept = (found.name, tuple(root.name for root in found.roots), found.reason, found.coordinates is not None)
        derived = tuple(root.name for root in found.derived_from)
        return kept + (derived, str(found.coordinates and found.coordinates.layout), str(found.layout))

    pass_ = Look(look, *names)
    cute.compile(host, arguments, passes=pass_, target="emu")
    return pass_.seen


def test_a_branch_has_several_roots():
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, n: Int32):
        t = x
        if n > 3:
            t = y
        t[0] = 1.0

    ((name, roots, reason, placed, *_),) = coordinates_of(kernel, np.zeros(8, np.float32), np.ones(8, np.float32), 1)
    assert (name, set(roots), placed) == ("", {"x", "y"}, False)
    assert reason == "a branch or loop chooses between tensors"


def test_a_branch_between_parts_of_one_tensor_keeps_the_root():
    @cute.kernel
    def kernel(x: cute.Tensor, n: Int32):
        t = cute.local_tile(x, (4,), (0,))
        if n > 3:
            t = cute.local_tile(x, (4,), (1,))
        t[0] = 1.0

    ((name, roots, reason, placed, *_),) = coordinates_of(kernel, np.zeros(8, np.float32), 1)
    assert (name, roots, placed) == ("x", ("x",), False)
    assert reason == "a branch or loop moves the tensor"


def test_a_loop_that_moves_a_tensor_keeps_the_root():
    @cute.kernel
    def kernel(x: cute.Tensor, n: Int32):
        t = x
        for _ in range(n):
            t = cute.domain_offset((1,), t)
            t[0] = 1.0

    ((name, _, reason, placed, *_),) = coordinates_of(kernel, np.zeros(8, np.float32), 1)
    assert (name, placed, reason) == ("x", False, "a branch or loop moves the tensor")


def test_a_loop_that_hands_a_tensor_on_unchanged_keeps_its_coordinates():
    @cute.kernel
    def kernel(x: cute.Tensor, n: Int32):
        t = cute.local_tile(x, (4,), (1,))
        for i in range(n):
            t[i] = 1.0

    ((name, _, reason, placed, *_),) = coordinates_of(kernel, np.zeros(8, np.float32), 1)
    assert (name, placed, reason) == ("x", True, "")


def test_arithmetic_on_the_iterator_is_not_followed():
    @cute.kernel
    def kernel(x: cute.Tensor, n: Int32):
        cute.make_tensor(x.iterator + n, cute.make_layout(2))[0] = 1.0

    ((name, roots, reason, placed, derived, *_),) = coordinates_of(kernel, np.zeros(8, np.float32), 1)
    assert (name, roots, placed, derived) == ("", (), False, ("x",))
    assert reason == "the tensor is made of a pointer that was moved"


def test_a_tensor_laid_out_anew_keeps_the_root():
    @cute.kernel
    def kernel(x: cute.Tensor):
        cute.make_tensor(x.iterator, cute.make_layout((2, 4)))[1, 1] = 1.0
        cute.make_tensor(x.iterator, x.layout)[1] = 1.0

    again, same = coordinates_of(kernel, np.zeros(8, np.float32))
    assert (again[0], again[3], again[2]) == ("x", False, "the tensor is laid out anew")
    assert (same[0], same[3]) == ("x", True)


def test_a_recast_counts_bits_inside_an_element():
    @cute.kernel
    def kernel(x: cute.Tensor):
        halves = cute.recast_tensor(x, Float16)
        halves[5, 1] = Float16(1.0)
        cute.recast_tensor(halves, Float32)[2, 1] = 1.0

    def look(op):
        found = origin(build.groups(op)[1][0])
        map_ = found.coordinates
        return found.name, map_((5, 1)), map_.bit_offset((5, 1)), map_((2, 1)), map_.bit_offset((2, 1))

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    pass_ = Look(look, "cute.store")
    x = from_dlpack(np.zeros((4, 8), np.float32).T)  # (8,4):(1,8)
    cute.compile(host, x, passes=pass_, target="emu")
    assert pass_.seen[0] == ("x", (2, 1), 16, (1, 1), 0)
    assert pass_.seen[1] == ("x", (5, 1), 0, (2, 1), 0)


def test_a_recast_to_wider_elements():
    @cute.kernel
    def kernel(x: cute.Tensor):
        cute.recast_tensor(x, Float32)[3, 1] = 1.0

    def look(op):
        found = origin(build.groups(op)[1][0])
        return found.coordinates((3, 1)), found.coordinates.bit_offset((3, 1))

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    pass_ = Look(look, "cute.store")
    cute.compile(host, from_dlpack(np.zeros((4, 8), np.float16).T), passes=pass_, target="emu")
    assert pass_.seen == [((6, 1), 0)]


def test_coordinates_under_a_swizzle_are_those_before_it():
    @cute.kernel
    def kernel(n: Int32):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(
            Float16, cute.make_layout((8, 64), stride=(64, 1)), 128, swizzle=cute.make_swizzle(3, 4, 3)
        )
        tile = cute.local_tile(shared, (8, 8), (0, n))
        tile[1, 2] = Float16(1.0)

    @cute.jit
    def host(n: Int32):
        kernel(n).launch(grid=1, block=1)

    def look(op):
        found = origin(build.groups(op)[1][0])
        return found.name, str(found.layout), str(found.coordinates.layout), found.coordinates.start[1].expression()

    pass_ = Look(look, "cute.store")
    cute.compile(host, 1, passes=pass_, target="emu")
    assert pass_.seen == [("shared", "(8,64):(64,1)", "(8,8):(1@0,1@1)", "8*v0")]


def test_allocations_and_members_of_structs_have_names():
    @cute.struct
    class Storage:
        head: cute.struct.MemRange[Float32, 16]
        tail: cute.struct.MemRange[Float32, 32]

    @cute.kernel
    def kernel(n: Int32):
        storage = cutlass.utils.SmemAllocator().allocate(Storage)
        storage.tail.get_tensor(cute.make_layout((8, 4)))[n, 1] = 1.0
        registers = cute.make_rmem_tensor(4, Float32)
        registers[n] = 2.0

    seen = coordinates_of(kernel, 1)
    assert [item[0] for item in seen] == ["tail", "registers"]
    assert all(item[3] for item in seen)


def test_arguments_keep_their_names_in_the_program():
    @cute.kernel
    def kernel(pair: tuple, n: Int32):
        pair[1][0] = pair[0][n]

    @cute.jit
    def host(pair: tuple, n: Int32):
        kernel(pair, n).launch(grid=1, block=1)

    executor = cute.compile(host, (np.zeros(4, np.float32), np.zeros(4, np.float32)), 1, target="emu")
    text = executor.stages["cute"]
    assert [f'{{tilewright.name = "{name}"}}' in text for name in ("pair.0", "pair.1", "n")] == [True] * 3


def test_bases_of_a_coordinate_map_are_modes_of_the_root():
    @cute.kernel
    def kernel(x: cute.Tensor):
        cute.local_tile(x, (2, 4), (1, 0))[0, 0] = 1.0

    def look(op):
        return origin(build.groups(op)[1][0]).coordinates.layout.stride

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    pass_ = Look(look, "cute.store")
    cute.compile(host, np.zeros((4, 8), np.float32), passes=pass_, target="emu")
    assert pass_.seen == [(ScaledBasis(1, 0), ScaledBasis(1, 1))]
