"""Names of CuTe DSL that need no Hopper: shared memory, prefetching, functions of tuples, whole vectors, inline PTX."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError
from tilewright.cute.runtime import from_dlpack


def test_alloc_smem_gives_places_of_their_own():
    def body(out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        numbers = cute.make_tensor(cute.arch.alloc_smem(cutlass.Int32, 32), cute.make_layout(32))
        others = cute.make_tensor(
            cute.arch.alloc_smem(element_type=cutlass.Float16, size_in_elems=32, alignment=128), cute.make_layout(32)
        )
        numbers[i] = i * i
        others[i] = cutlass.Float16(i)
        cute.arch.sync_threads()
        out[i] = numbers[31 - i] + cutlass.Int32(others[31 - i])
        if i == 0:
            out[32] = others.iterator.toint() % 128

    out = on_device(body, np.ones(33, np.int32))
    assert out.tolist() == [(31 - i) ** 2 + 31 - i for i in range(32)] + [0]


@cute.kernel
def dynamic(out: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.thread_idx()[0]
    words = cute.arch.get_dyn_smem(cutlass.Int32, alignment=16)
    memory = cute.make_tensor(words, cute.make_layout(n))
    memory[n - 1 - i] = i
    cute.arch.sync_threads()
    out[i] = memory[i]
    if i == 0:
        out[n] = cute.arch.get_dyn_smem_size()


@cute.jit
def launch_dynamic(out: cute.Tensor, n: cutlass.Int32):
    dynamic(out, n).launch(grid=1, block=n, smem=4 * n)


@pytest.mark.parametrize("n", [32, 96])
def test_get_dyn_smem_is_what_the_launch_gives(n):
    out = np.zeros(n + 1, np.int32)
    launch_dynamic(out, n)
    assert out.tolist() == [*range(n - 1, -1, -1), 4 * n]


def test_capacity():
    assert cutlass.utils.SmemAllocator.capacity_in_bytes("sm_90a") == 227 * 1024
    assert cutlass.utils.get_smem_capacity_in_bytes(compute_capability="sm_80") == 163 * 1024

    def body(out: cute.Tensor):
        out[0] = cutlass.utils.get_smem_capacity_in_bytes()

    assert on_device(body, np.zeros(1, np.int32), block=1, options="--gpu-arch sm_86")[0] == 99 * 1024


def prefetches(shape, stride, dtype=np.float32) -> list[str]:
    """The prefetch instructions of one thread for a tensor of that layout."""

    @cute.kernel
    def kernel(x: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type)
        cute.prefetch(atom=atom, src=cute.make_tensor(x.iterator, cute.make_layout(shape, stride=stride)))

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    compiled = cute.compile(host, from_dlpack(np.zeros(4096, dtype)), target="emu")
    compiled(from_dlpack(np.zeros(4096, dtype)))
    return [line for line in compiled.__ptx__.splitlines() if "prefetch.global.L2" in line]


def test_prefetch_asks_once_for_each_line():
    assert len(prefetches((64,), (1,))) == 3  # 256 bytes: two lines, and one that the last element may lie in
    assert len(prefetches((4, 4), (1, 64))) == 5  # four rows of 16 bytes, each in a line, and the last element
    assert len(prefetches((8,), (0,))) == 1
    assert len(prefetches((64,), (1,), np.float16)) == 2


def test_prefetch_refuses():
    def shared(out: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Int32)
        cute.prefetch(atom, cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, 4))

    def runtime(out: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Int32)
        cute.prefetch(atom, cute.make_tensor(out.iterator, cute.make_layout(out[0])))

    for body, words in (
        (shared, "cute.prefetch takes a tensor in global memory"),
        (runtime, "a prefetch of a tensor whose size is known only at run time"),
        (lambda out: cute.prefetch(out, out), "cute.prefetch takes a copy atom or tiled copy first, not Tensor"),
    ):
        with pytest.raises(CompileError, match=words):
            on_device(body, np.zeros(4, np.int32), block=1)


def test_whole_vectors():
    def body(x: cute.Tensor, out: cute.Tensor):
        v = x.load()
        out[0] = cutlass.Int32(cute.any_(x=v > 2.0))
        out[1] = cutlass.Int32(cute.all_(x=v > 2.0))
        out[2] = cutlass.Int32(cute.any_(v))
        out[3] = cutlass.Int32(cute.all_(v))
        out[4] = cute.size(cute.empty_like(v, dtype=cutlass.Int32).shape)

    for values in ([1, 2, 3, 4], [0, 0, 0, 0], [3, 3, 3, 3], [0, 9, 0, 0], [np.nan, 3, 3, 3]):
        x = np.array(values, np.float32)
        out = on_device(body, x, np.zeros(5, np.int32), block=1)[1]
        assert out.tolist() == [(x > 2).any(), (x > 2).all(), x.any(), x.all(), 4]


def test_functions_of_tuples():
    assert cute.find((4, (1, 2), 3), 2) == (1, 1) and cute.find((4, 1), 1) == 1 and cute.find((4, (1,)), 9) is None
    assert cute.find((4, (1, 2), 3), 2, hierarchical=False) is None
    assert cute.find_if((5, (6, 7)), pred_fn=lambda x, at: x % 2 == 1 and at != 0) == (1, 1)
    assert cute.front(((3, 4), 5)) == 3 and cute.front(7) == 7
    assert str(cute.front(cute.make_layout(((2, 3), 4)))) == "2:1"
    assert cute.tuple_cat((1, 2), 3, (4,), ()) == (1, 2, 3, 4)
    assert cute.transform_apply((1, 2, 3), f=lambda x: x * 2, g=lambda *args: sum(args)) == 12
    assert cute.transform_apply((1, 2), (3, 4), f=lambda x, y: x + y, g=lambda *args: args) == (4, 6)
    assert cute.filter_tuple((1, 2, 3, 4), f=lambda x: (x,) if x % 2 == 0 else ()) == (2, 4)
    assert cute.transform_leaf(lambda x, y: x * y, ((1, 2), 3), ((4, 5), 6)) == ((4, 10), 18)
    assert cute.unflatten([1, 2, 3, 4], ((0, 0), (0, 0))) == ((1, 2), (3, 4))
    assert cute.wrap(3) == (3,) and cute.unwrap(((1, 2),)) == (1, 2) and cute.unwrap((1,)) == 1
    assert cute.has_underscore((1, (None, 2))) and not cute.has_underscore((1, 2))
    assert cute.pretty_str(((1, 2), 3)) == "((1,2),3)" and cute.get_divisibility(24) == 24
    with pytest.raises(CompileError, match="transform_apply takes tuples of one length"):
        cute.transform_apply((1, 2), (3,), f=max, g=max)


def test_the_parts_of_a_swizzled_layout():
    plain = cute.make_layout((8, 8))
    swizzled = cute.make_composed_layout(cute.make_swizzle(b=2, m=1, s=3), 0, plain)
    assert cute.get_swizzle_portion(layout=swizzled) == cute.make_swizzle(2, 1, 3)
    assert cute.get_swizzle_portion(plain) == cute.make_swizzle(0, 4, 3)
    assert cute.get_nonswizzle_portion(layout=swizzled) == cute.get_nonswizzle_portion(plain) == plain
    swizzle = cute.make_swizzle(3, 4, 5)
    assert (swizzle.num_bits, swizzle.num_base, swizzle.num_shift) == (3, 4, 5)
    with pytest.raises(CompileError, match="get_swizzle_portion takes a layout, not int"):
        cute.get_swizzle_portion(3)


def test_nullspace_and_partitions_of_tensors():
    layout = cute.make_layout((4, 3, 2), stride=(1, 0, 4))
    kernel_of = cute.nullspace(layout)
    assert cute.size(kernel_of) == 3 and {layout(kernel_of(i)) for i in range(3)} == {0}

    def body(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i, 0] = cute.outer_partition(x, (2,), (i,))[0]
        out[i, 1] = cute.inner_partition(x, (2,), (i,))[1]

    out = on_device(body, np.arange(10, 14, dtype=np.int32), np.zeros((2, 2), np.int32), block=2)[1]
    assert out.tolist() == [[10, 11], [11, 13]]


def test_inline_ptx():
    def body(out: cute.Tensor):
        place = out.iterator + 1
        cute.arch.inline_ptx("st.global.u32 [{$r0}], {$r1};", read_only_args=[place, cutlass.Int32(7)])
        cute.arch.inline_ptx(
            "{ .reg .b32 t; add.s32 t, {$r1}, {$r2}; st.global.u32 [{$r0}], t; }",
            read_only_args=[out.iterator.toint(), cutlass.Int32(40), 2],
        )
        cute.arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[cutlass.Int32(1)])

    assert on_device(body, np.zeros(2, np.int32), block=1).tolist() == [42, 7]
    with pytest.raises(CompileError, match=r"the PTX names \{\$r1\}, and there are 1 read_only_args"):
        on_device(lambda out: cute.arch.inline_ptx("mov {$r1};", read_only_args=[1]), np.zeros(1, np.int32))
    with pytest.raises(CompileError, match="write_only_types holds number types, not int"):
        on_device(lambda out: cute.arch.inline_ptx("x", write_only_types=[1]), np.zeros(1, np.int32))
    with pytest.raises(CompileError, match=r"names \{\$w1\}, and there are 0 read_only_args, 1 write_only_types"):
        on_device(lambda out: cute.arch.inline_ptx("mov {$w1}, 1;", write_only_types=[cutlass.Int32]), out_of(1))
    with pytest.raises(CompileError, match="inline_ptx has no option 'read_write_args'"):
        on_device(lambda out: cute.arch.inline_ptx("x", read_write_args=[1]), out_of(1))
    with pytest.raises(CompileError, match="an instruction takes no operand of type i8"):
        on_device(lambda out: cute.arch.inline_ptx("x {$w0};", write_only_types=[cutlass.Int8]), out_of(1))


def out_of(count, dtype=np.int32):
    return np.zeros(count, dtype)


def test_results_of_inline_ptx():
    def body(x: cute.Tensor, out: cute.Tensor):
        thread = cute.arch.lane_idx()
        added = cute.arch.inline_ptx(
            "add.s32 {$w0}, {$r0}, {$r1};", write_only_types=[cutlass.Int32], read_only_args=[x[thread], thread]
        )
        low, high = cute.arch.inline_ptx(
            "mov.b64 {$0, $1}, $2;",
            write_only_types=[cutlass.Uint32, cutlass.Int32],
            read_only_args=[cutlass.Int64(x[thread]) * 3],
        )
        half, wide = cute.arch.inline_ptx(
            "add.f16 {$w0}, {$r0}, {$r0}; cvt.f64.f32 {$w1}, {$r1};",
            write_only_types=[cutlass.Float16, cutlass.Float64],
            read_only_args=[x[thread].to(cutlass.Float16), cutlass.Float32(0.5)],
        )
        out[thread, 0], out[thread, 1], out[thread, 2] = added, cutlass.Int32(low), high
        out[thread, 3] = half.to(cutlass.Int32) + (wide * 2.0).to(cutlass.Int32)

    x = np.arange(-16, 16, dtype=np.int32)
    out = on_device(body, x, np.zeros((32, 4), np.int32), block=32)[1]
    assert out[:, 0].tolist() == (x + np.arange(32)).tolist()
    products = x.astype(np.int64) * 3
    assert out[:, 1].tolist() == products.astype(np.int32).tolist()
    assert out[:, 2].tolist() == (products >> 32).tolist()
    assert out[:, 3].tolist() == (2 * x + 1).tolist()
