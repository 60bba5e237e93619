"""Elements of 4 and 6 bits in global, shared and register memory: every way of moving them, on host and device."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import (
    ArgumentError,
    CompileError,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float32,
    Int4,
    Int32,
    Uint4,
)
from tilewright.cute.runtime import from_dlpack

TYPES = {
    Int4: lambda codes: ((codes.astype(np.int8) ^ 8) - 8).astype(np.float32),
    Uint4: lambda codes: codes.astype(np.float32),
    Float4E2M1FN: lambda codes: codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32),
    Float6E3M2FN: lambda codes: codes.view(ml_dtypes.float6_e3m2fn).astype(np.float32),
    Float6E2M3FN: lambda codes: codes.view(ml_dtypes.float6_e2m3fn).astype(np.float32),
}
FAST_AND_SLOW = [
    dtype if dtype in (Float4E2M1FN, Float6E3M2FN) else pytest.param(dtype, marks=pytest.mark.slow) for dtype in TYPES
]
BYTES = 48
RAW = np.random.default_rng(0).integers(0, 256, BYTES).astype(np.uint8)


def codes_of(raw: np.ndarray, dtype) -> np.ndarray:
    """The elements in memory: the lowest bits of a byte come first."""
    bits = np.unpackbits(raw, bitorder="little").reshape(-1, dtype.width)
    return (bits << np.arange(dtype.width)).sum(1).astype(np.uint8)


def aligned(values: np.ndarray) -> np.ndarray:
    room = np.zeros(values.nbytes + 16, np.uint8)
    start = -room.ctypes.data % 16
    array = room[start : start + values.nbytes].view(values.dtype)
    array[:] = values
    return array


@cute.jit
def one_by_one(x, z):
    for i in cutlass.range(cute.size(x)):
        z[i] = x[i]


@cute.jit
def whole(x, z):
    z.store(x.load())


@cute.jit
def by_vectors(x, z):
    held = cute.make_rmem_tensor(cute.size(x), x.element_type)
    cute.autovec_copy(x, held)
    cute.autovec_copy(held, z)


@cute.jit
def by_elements(x, z):
    held = cute.make_rmem_tensor(cute.size(x), x.element_type)
    cute.basic_copy(x, held)
    cute.basic_copy(held, z)


@cute.jit
def through_shared_memory(x, z):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, cute.make_layout(cute.size(x)), 16)
    cute.autovec_copy(x, shared)
    cute.arch.sync_threads()
    for i in cutlass.range(cute.size(x)):
        z[i] = shared[i]


@cute.jit
def crosswise(x, z):
    n = cute.size(x) // 2
    layout = cute.make_layout((n, 2), stride=(2, 1))
    held = cute.make_rmem_tensor(cute.make_layout((n, 2)), x.element_type)
    held.store(cute.make_tensor(x.iterator, layout).load())
    cute.autovec_copy(held, cute.make_tensor(z.iterator, layout))


@cute.jit
def by_tiles(x, z):
    for i in cutlass.range(cute.size(x) // 8):
        cute.local_tile(z, (8,), (i,)).store(cute.local_tile(x, (8,), (i,)).load())


@cute.jit
def by_pointers(x, z):
    for i in cutlass.range_constexpr(cute.size(x) // 4):
        source, target = (cute.make_tensor(t.iterator + 4 * i, cute.make_layout(4)) for t in (x, z))
        for j in cutlass.range_constexpr(4):
            target[j] = source[j]


@cute.jit
def as_float32(x, z):
    z.store(x.load().to(Float32).to(z.element_type))


@cute.jit
def where_a_predicate_holds(x, z):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type)
    n = cute.size(x)
    for parity in cutlass.range_constexpr(2):
        pred = cute.make_rmem_tensor(n, cutlass.Boolean)
        for i in cutlass.range(n):
            pred[i] = i % 2 == parity
        cute.copy(atom, x, z, pred=pred)


WAYS = [one_by_one, whole, by_vectors, by_elements, through_shared_memory, crosswise, by_tiles, by_pointers, as_float32,
        where_a_predicate_holds]  # fmt: skip


@pytest.mark.parametrize("on_the_device", [True, False], ids=["device", "host"])
@pytest.mark.parametrize("way", WAYS, ids=lambda item: item.function.__name__)
@pytest.mark.parametrize("dtype", FAST_AND_SLOW, ids=str)
def test_every_way_moves_every_element(dtype, way, on_the_device):
    if way is through_shared_memory and not on_the_device:
        pytest.skip("host code has no shared memory")

    @cute.jit
    def host(x: cute.Tensor, z: cute.Tensor):
        way(cute.recast_tensor(x, dtype), cute.recast_tensor(z, dtype))

    @cute.kernel
    def kernel(x: cute.Tensor, z: cute.Tensor):
        host(x, z)

    @cute.jit
    def device(x: cute.Tensor, z: cute.Tensor):
        kernel(x, z).launch(grid=1, block=1)

    source, target = aligned(RAW), aligned(np.zeros(BYTES, np.uint8))
    arguments = from_dlpack(source, assumed_align=16), from_dlpack(target, assumed_align=16)
    cute.compile(device if on_the_device else host, *arguments)(*arguments)
    wanted = codes_of(source, dtype)
    if way is as_float32:  # both zeros of Float32 become codes of their own
        assert np.array_equal(TYPES[dtype](codes_of(target, dtype)), TYPES[dtype](wanted))
    else:
        assert np.array_equal(codes_of(target, dtype), wanted)


@pytest.mark.parametrize("on_the_device", [True, False], ids=["device", "host"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_numbers_are_written_between_others(dtype, on_the_device):
    """Every third element is written; the bits around it stay."""
    count = BYTES * 8 // dtype.width

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        elements = cute.recast_tensor(x, dtype)
        for i in range(0, count, 3):
            elements[i] = y[i].to(dtype)
            y[i] = elements[i].to(Float32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        host(x, y)

    @cute.jit
    def device(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=1)

    memory, before = aligned(RAW), codes_of(RAW, dtype)
    numbers = np.roll(TYPES[dtype](before), 1).astype(np.float32)
    given = numbers.copy()
    arguments = from_dlpack(memory, assumed_align=16), from_dlpack(numbers)
    cute.compile(device if on_the_device else host, *arguments)(*arguments)
    after = codes_of(memory, dtype)
    kept = np.arange(count) % 3 != 0
    assert np.array_equal(after[kept], before[kept])
    assert np.array_equal(TYPES[dtype](after)[~kept], given[~kept]) and np.array_equal(numbers, given)


def test_contiguous_elements_of_4_bits_move_in_words_of_128():
    @cute.kernel
    def kernel(x: cute.Tensor, z: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        source, target = (cute.local_tile(cute.recast_tensor(t, Int4), (32,), (i,)) for t in (x, z))
        target.store(source.load())

    @cute.jit
    def host(x: cute.Tensor, z: cute.Tensor):
        kernel(x, z).launch(grid=1, block=BYTES // 16)

    source, target = aligned(RAW), aligned(np.zeros(BYTES, np.uint8))
    arguments = from_dlpack(source, assumed_align=16), from_dlpack(target, assumed_align=16)
    executor = cute.compile(host, *arguments)
    executor(*arguments)
    assert np.array_equal(source, target)
    assert executor.__ptx__.count("ld.global.v4.b32") == 1 and executor.__ptx__.count("ld.global") == 1


def test_cp_async_counts_bits():
    @cute.kernel
    def kernel(x: cute.Tensor, z: cute.Tensor):
        source, target = cute.recast_tensor(x, Int4), cute.recast_tensor(z, Int4)
        shared = cutlass.utils.SmemAllocator().allocate_tensor(Int4, cute.make_layout(cute.size(source)), 16)
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), Int4, num_bits_per_copy=128)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(BYTES // 16), cute.make_layout(32))
        part = tiled.get_slice(cute.arch.thread_idx()[0])
        cute.copy(atom, part.partition_S(source), part.partition_D(shared))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        for i in cutlass.range(32):
            place = cute.arch.thread_idx()[0] * 32 + i
            target[place] = shared[place]

    @cute.jit
    def host(x: cute.Tensor, z: cute.Tensor):
        kernel(x, z).launch(grid=1, block=BYTES // 16)

    source, target = aligned(RAW), aligned(np.zeros(BYTES, np.uint8))
    arguments = from_dlpack(source, assumed_align=16), from_dlpack(target, assumed_align=16)
    executor = cute.compile(host, *arguments)
    executor(*arguments)
    assert np.array_equal(source, target) and executor.__ptx__.count("cp.async.ca.shared") == 1


@pytest.mark.parametrize(("dtype", "group"), [(Int4, 2), (Float6E3M2FN, 4)], ids=str)
def test_an_address_inside_a_byte_is_refused(dtype, group):
    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        elements = cute.recast_tensor(x, dtype)
        cute.make_tensor(elements.iterator + n, cute.make_layout(2)).fill(0)

    with pytest.raises(CompileError, match="inside a byte") as caught:
        cute.compile(host, from_dlpack(np.zeros(BYTES, np.uint8)), 2)
    assert __file__ in str(caught.value) and f"divby={group}" in str(caught.value)


def test_a_known_divisor_makes_it_whole():
    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        elements = cute.recast_tensor(x, Float6E3M2FN)
        cute.make_tensor(elements.iterator + cute.assume(n, divby=4), cute.make_layout(4)).fill(1.5)

    memory = np.zeros(BYTES, np.uint8)
    cute.compile(host, from_dlpack(memory), 4)(from_dlpack(memory), 8)
    found = TYPES[Float6E3M2FN](codes_of(memory, Float6E3M2FN))
    assert np.flatnonzero(found).tolist() == [8, 9, 10, 11] and (found[8:12] == 1.5).all()


@pytest.mark.parametrize("dtype", [ml_dtypes.float6_e3m2fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float4_e2m1fn])
def test_numpy_arrays_of_a_byte_each_are_refused(dtype):
    with pytest.raises(ArgumentError, match=r"NumPy arrays of float[46].* cannot be passed"):
        from_dlpack(np.zeros(4, dtype))


@pytest.mark.parametrize("dtype", [Int4, Uint4, Float4E2M1FN])
@pytest.mark.parametrize("stride", [1, 3])
def test_elements_written_one_by_one_are_written(dtype, stride):
    """Each shares its byte with one that is not written yet, or never; that is no fault."""

    @cute.kernel
    def kernel(first: Int32, out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        elements = cute.make_rmem_tensor(cute.make_layout((4,), stride=(stride,)), dtype)
        for i in range(first, first + 4):
            elements[i % 4] = Float32(i % 4 + thread % 2).to(dtype)
        for i in range(first, first + 4):
            out[thread, i % 4] = elements[i % 4].to(Float32)

    @cute.jit
    def host(first: Int32, out: cute.Tensor):
        kernel(first, out).launch(grid=(1, 1, 1), block=(8, 1, 1))

    out = np.zeros((8, 4), np.float32)
    cute.compile(host, 0, out, target="emu")(0, out)
    np.testing.assert_array_equal(out, np.arange(4) + np.arange(8)[:, None] % 2)
