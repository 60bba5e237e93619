"""Swizzled shared memory: room for what the swizzle moves (S1), partitions with several steps by every way (S3)."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int4, Int16, Int32
from tilewright.base.errors import CompileError

L, S = cute.make_layout, cute.make_swizzle


def moved(bits, base, shift, index):
    """`S<bits,base,shift>` of an index, `shift` at least 0."""
    return index ^ (((index >> (base + shift)) & ((1 << bits) - 1)) << base)


@cute.struct
class Storage:
    small: cute.struct.MemRange[Int32, 72]
    large: cute.struct.MemRange[Int32, 80]
    other: cute.struct.MemRange[Int32, 64]


NINE = L((9, 8), stride=(8, 1))
"""72 elements, of which the swizzles below move the last 8 to 72 and beyond."""


def composed():
    smem = cutlass.utils.SmemAllocator()
    tensor = smem.allocate_tensor(Int32, cute.make_composed_layout(S(3, 3, 3), 0, NINE), 16)
    return tensor, smem.allocate_tensor(Int32, L(64), 4)


def by_bytes():
    smem = cutlass.utils.SmemAllocator()
    tensor = smem.allocate_tensor(Int32, NINE, 16, swizzle=S(3, 5, 3))
    return tensor, smem.allocate_tensor(Int32, L(64), 4)


def registers():
    layout = cute.make_composed_layout(S(3, 0, 3), 8, L((9, 8), stride=(16, 1)))
    return cute.make_rmem_tensor(layout, Int32), cute.make_rmem_tensor(64, Int32)


def in_a_struct():
    storage = cutlass.utils.SmemAllocator().allocate(Storage)
    return storage.large.get_tensor(NINE, swizzle=S(3, 5, 3)), storage.other.get_tensor(L(64))


@pytest.mark.parametrize("allocate", [composed, by_bytes, registers, in_a_struct])
def test_what_a_swizzle_moves_past_the_end_has_room(allocate):
    assert max(moved(3, 3, 3, index) for index in range(72)) == 79

    @cute.kernel
    def fill_kernel(out: cute.Tensor):
        tensor, other = allocate()
        for i in range(64):
            other[i] = -7
        for i in range(72):
            tensor[i] = i
        for i in range(64):
            out[i] = other[i]
        for i in range(72):
            out[64 + i] = tensor[i]

    @cute.jit
    def fill(out: cute.Tensor):
        fill_kernel(out).launch(grid=1, block=1)

    out = np.zeros(136, np.int32)
    fill(out)
    assert (out[:64] == -7).all()
    assert (out[64:] == np.arange(72)).all()


@pytest.mark.parametrize("swizzle", [None, S(3, 5, 3)])
def test_a_range_too_small_for_the_swizzle_is_refused(swizzle):
    layout = NINE if swizzle else cute.make_composed_layout(S(3, 3, 3), 0, NINE)

    @cute.kernel
    def look_kernel():
        cutlass.utils.SmemAllocator().allocate(Storage).small.get_tensor(layout, swizzle=swizzle)

    @cute.jit
    def look():
        look_kernel().launch(grid=1, block=1)

    with pytest.raises(CompileError, match="reaches past the end") as refused:
        look()
    assert "80 elements of Int32" in str(refused.value)


def tiled(threads, values):
    def copy(tensor, thread):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), tensor.element_type)
        return cute.make_tiled_copy_tv(atom, threads, values).get_slice(thread)

    return copy


ROWS = L((8, 8), stride=(8, 1))
PARTS = {
    "local_partition": lambda t, i: cute.local_partition(t, ROWS, i),
    "columns of threads": lambda t, i: cute.local_partition(t, L((8, 8)), i),
    "nested threads": lambda t, i: cute.local_partition(t, L((8, (2, 4)), stride=(8, (4, 1))), i),
    "zipped_divide, over steps": lambda t, i: cute.zipped_divide(t, (1, 8))[(0, i % 8), (i // 8, None)],
    "zipped_divide, one step": lambda t, i: cute.zipped_divide(t, (1, 8))[(0, None), (i // 8, i % 8)],
    "strided tile": lambda t, i: cute.local_tile(t, (L(1), L(8, stride=8)), (i // 8, i % 8)),
    "tile of a tile": lambda t, i: cute.local_tile(
        cute.local_tile(t, (8, 16), (0, i // 16))[i % 8, None], (8,), ((i // 8) % 2,)
    ),
    "flat_divide": lambda t, i: cute.flat_divide(t, (4, 8))[i % 4, None, (i // 4) % 2, i // 8],
    "composition": lambda t, i: cute.composition(t, L(((8, 8), 8), stride=((1, 64), 8)))[i, None],
    "partition_S": lambda t, i: tiled(ROWS, L((1, 1)))(t, i).partition_S(t),
    "partition_D": lambda t, i: tiled(ROWS, L((1, 4)))(t, i).partition_D(t),
    "partition of 2x2": lambda t, i: tiled(L((4, 16), stride=(16, 1)), L((2, 2), stride=(2, 1)))(t, i).partition_S(t),
}
LAYOUTS = {
    "rows": L((8, 64), stride=(64, 1)),
    "columns": L((8, 64)),
    "blocks": L((8, (16, 4)), stride=(16, (1, 128))),
    "padded": L((8, 64), stride=(72, 1)),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("arranged", LAYOUTS)
def test_partitions_go_there_and_back(arranged, part):  # S3
    layout, share = LAYOUTS[arranged], PARTS[part]

    @cute.kernel
    def there_and_back_kernel(x: cute.Tensor, y: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        smem = cutlass.utils.SmemAllocator()
        by_elements = smem.allocate_tensor(Int16, cute.make_composed_layout(S(3, 3, 3), 0, layout), 128)
        in_bytes = smem.allocate_tensor(Int16, layout, 128, swizzle=S(3, 4, 3))
        source, one, two = share(x, thread), share(by_elements, thread), share(in_bytes, thread)
        for i in cutlass.range_constexpr(cute.size(source)):
            one[i] = source[i]
        cute.arch.sync_threads()
        for i in range(8 * thread, 8 * thread + 8):  # by index, not by share
            in_bytes[i] = by_elements[i]
        cute.arch.sync_threads()
        target = share(y, thread)
        for i in range(cute.size(target)):
            target[i] = two[i]

    @cute.jit
    def there_and_back(x: cute.Tensor, y: cute.Tensor):
        there_and_back_kernel(x, y).launch(grid=1, block=64)

    x = np.arange(512, dtype=np.int16).reshape(8, 64)
    y = np.zeros_like(x)
    there_and_back(cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(y))
    assert (x == y).all()


@pytest.mark.parametrize("way", ["elements", "bytes", "recast"])
def test_elements_of_four_bits_under_a_swizzle(way):
    """`S<2,3,2>` of bytes is `S<2,4,2>` of elements of 4 bits."""

    @cute.kernel
    def scatter_kernel(out: cute.Tensor):
        raw = cutlass.utils.SmemAllocator().allocate_tensor(Int4, L(256), 128)
        for i in range(256):
            raw[i] = Int4(0)
        rows = L((4, 64), stride=(64, 1))
        if cutlass.const_expr(way == "elements"):
            view = cute.make_tensor(raw.iterator, cute.make_composed_layout(S(2, 4, 2), 0, rows))
        elif cutlass.const_expr(way == "bytes"):
            view = cute.make_tensor(cute.recast_ptr(raw.iterator, S(2, 3, 2)), rows)
        else:
            in_bytes = cute.make_composed_layout(S(2, 3, 2), 0, L((4, 32), stride=(32, 1)))
            view = cute.make_tensor(raw.iterator, cute.recast_layout(4, 8, in_bytes))
        for i in range(4):
            for j in range(64):
                view[i, j] = Int4((i * 64 + j) % 7)
        for i in range(256):
            out[i] = Int32(raw[i])

    @cute.jit
    def scatter(out: cute.Tensor):
        scatter_kernel(out).launch(grid=1, block=1)

    out, expect = np.zeros(256, np.int32), np.zeros(256, np.int32)
    for index in range(256):
        expect[moved(2, 4, 2, index)] = index % 7
    scatter(out)
    assert (out == expect).all()


def test_a_part_of_swizzled_memory_from_the_address_of_its_first_element():
    """Kernels compute where a thread's part begins, and put the part's layout there."""

    @cute.kernel
    def write_kernel(out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        smem = cutlass.utils.SmemAllocator()
        shared = smem.allocate_tensor(Int16, L((32, 64), stride=(64, 1)), 1024, swizzle=S(3, 4, 3))
        kind = shared.iterator.type.swizzle_type
        address = cute.local_tile(shared, (1, 8), (thread // 8, thread % 8)).iterator.toint()
        address = address ^ ((address & (((1 << kind.num_bits) - 1) << 7)) >> kind.num_shift)
        first = cute.make_ptr(Int16, address, shared.memspace, assumed_align=16)
        in_layout = cute.make_tensor(
            cute.recast_ptr(shared.iterator, dtype=Int16), cute.make_composed_layout(S(3, 3, 3), 0, shared.layout)
        )
        part = cute.local_tile(in_layout, (1, 8), (thread // 8, thread % 8))
        own = cute.make_tensor(first, part.layout)
        for i in cutlass.range_constexpr(8):
            own[0, i] = Int16(64 * (thread // 8) + 8 * (thread % 8) + i)
        cute.arch.sync_threads()
        for i in cutlass.range_constexpr(8):
            out[thread // 8, 8 * (thread % 8) + i] = shared[thread // 8, 8 * (thread % 8) + i]

    @cute.jit
    def write(out: cute.Tensor):
        write_kernel(out).launch(grid=1, block=256)

    out = np.zeros((32, 64), np.int16)
    write(out)
    assert (out == np.arange(32 * 64).reshape(32, 64)).all()


def test_recast_without_a_swizzle_takes_it_away():
    @cute.kernel
    def plain_kernel(out: cute.Tensor):
        smem = cutlass.utils.SmemAllocator()
        shared = smem.allocate_tensor(Int16, L((8, 64), stride=(64, 1)), 1024, swizzle=S(3, 4, 3))
        plain = cute.make_tensor(cute.recast_ptr(shared.iterator), L((8, 64), stride=(64, 1)))
        assert plain.iterator.type.swizzle_type.num_bits == 0
        for i in cutlass.range_constexpr(8):
            for j in cutlass.range_constexpr(64):
                shared[i, j] = Int16(64 * i + j)
        for i in cutlass.range_constexpr(8):
            for j in cutlass.range_constexpr(64):
                out[i, j] = plain[i, j]

    @cute.jit
    def read(out: cute.Tensor):
        plain_kernel(out).launch(grid=1, block=1)

    out, expect = np.zeros((8, 64), np.int16), np.zeros(512, np.int16)
    read(out)
    for index in range(512):
        expect[moved(3, 3, 3, index)] = index
    assert (out.reshape(-1) == expect).all()
