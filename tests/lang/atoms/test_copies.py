"""Copies run on the emulator: thread-value layouts, widths, predicates, swizzled tiles; and the instructions chosen."""

import re

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.base.errors import CompileError
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack

DTYPES = {np.float32: cutlass.Float32, np.float16: cutlass.Float16, np.int8: cutlass.Int8, np.float64: cutlass.Float64}
CHIP = "--gpu-arch sm_80"


def ptx_of(executor):
    text = executor.stages["ptx"]
    return text if isinstance(text, str) else "\n".join(text.values())


def instructions(executor, start):
    """The opcodes of the PTX that begin with `start`."""
    return re.findall(rf"^\s*(?:@%?\w+ )?({re.escape(start)}[\w.:]*)", ptx_of(executor), re.M)


def compiled(function, *arguments):
    return cute.compile(function, *arguments, target="emu", options=CHIP)


@cute.kernel
def through_registers(src: cute.Tensor, dst: cute.Tensor, tiled: cute.TiledCopy):
    thread, _, _ = cute.arch.thread_idx()
    part = tiled.get_slice(thread)
    source, target = part.partition_S(src), part.partition_D(dst)
    registers = cute.make_fragment_like(source)
    cute.copy(tiled, source, registers)
    cute.copy(tiled, registers, target)


@cute.jit
def copy_tile(
    src: cute.Tensor,
    dst: cute.Tensor,
    threads: cutlass.Constexpr,
    values: cutlass.Constexpr,
    bits: cutlass.Constexpr,
):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), src.element_type, num_bits_per_copy=bits)
    tiled = cute.make_tiled_copy_tv(atom, threads, values)
    through_registers(src, dst, tiled).launch(grid=1, block=tiled.size)


ROWS = cute.make_layout((4, 8), stride=(8, 1))
COLUMNS = cute.make_layout((8, 4))


@pytest.mark.parametrize(
    ("dtype", "threads", "values", "shape", "order", "bits", "load"),
    [
        (np.float32, ROWS, cute.make_layout((1, 4)), (8, 64), "C", 128, "ld.global.v4.b32"),
        (np.float32, ROWS, cute.make_layout((2, 4), stride=(4, 1)), (16, 64), "C", 128, "ld.global.v4.b32"),
        (np.float32, ROWS, cute.make_layout((1, 4)), (8, 64), "C", 64, "ld.global.v2.b32"),
        (np.float32, ROWS, cute.make_layout((1, 4)), (8, 64), "C", 32, "ld.global.b32"),
        (np.float32, ROWS, cute.make_layout((1, 4)), (8, 64), "C", 0, "ld.global.v4.b32"),
        (np.float32, COLUMNS, cute.make_layout((4, 1)), (64, 8), "F", 128, "ld.global.v4.b32"),
        (np.float32, COLUMNS, cute.make_layout((4, 1)), (64, 8), "C", 0, "ld.global.b32"),
        (np.float16, ROWS, cute.make_layout((1, 8)), (4, 128), "C", 128, "ld.global.v4.b32"),
        (np.float16, ROWS, cute.make_layout((2, 2), stride=(2, 1)), (16, 32), "C", 32, "ld.global.b32"),
        (np.int8, ROWS, cute.make_layout((1, 16)), (4, 256), "C", 128, "ld.global.v4.b32"),
        (np.float64, ROWS, cute.make_layout((1, 2)), (8, 32), "C", 128, "ld.global.v2.b64"),
    ],
)
def test_a_tiled_copy_moves_every_element_by_instructions_of_the_width_asked_for(
    dtype, threads, values, shape, order, bits, load
):
    source = np.arange(np.prod(shape)).reshape(shape).astype(dtype, order=order)
    target = np.zeros_like(source)
    arguments = [from_dlpack(array, assumed_align=16) for array in (source, target)]
    executor = compiled(copy_tile, *arguments, threads, values, bits)
    executor(*arguments)
    np.testing.assert_array_equal(target, source)
    assert set(instructions(executor, "ld.global")) == {load}
    assert set(instructions(executor, "st.global")) == {load.replace("ld", "st")}


@pytest.mark.parametrize(
    ("prepare", "facts"),
    [
        (lambda array: from_dlpack(array), "alignment known  4 bytes"),
        (lambda array: from_dlpack(array.T.copy().T, assumed_align=16), "((4,1),2,2)"),
    ],
)
def test_a_width_that_alignment_or_layout_does_not_allow_is_refused(prepare, facts):
    source = prepare(np.zeros((8, 64), np.float32))
    target = from_dlpack(np.zeros((8, 64), np.float32), assumed_align=16)
    with pytest.raises(CompileError) as caught:
        compiled(copy_tile, source, target, ROWS, cute.make_layout((1, 4)), 128)
    text = str(caught.value)
    assert "a copy of 128 bits needs 4 contiguous elements, aligned to 16 bytes" in text
    assert facts in text and "test_copies.py" in text and "assumed_align" in text


@cute.kernel
def by_rows(src: cute.Tensor, dst: cute.Tensor, tiled: cute.TiledCopy, tile: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    part = tiled.get_slice(thread)
    source = part.partition_S(cute.local_tile(src, tile, (block, 0)))
    target = part.partition_D(cute.local_tile(dst, tile, (block, 0)))
    cute.copy(tiled, source, target)


@cute.jit
def run_by_rows(src: cute.Tensor, dst: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), src.element_type, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, ROWS, cute.make_layout((1, 4)))
    by_rows(src, dst, tiled, (4, 64)).launch(grid=2, block=32)


def test_known_divisibility_of_a_dynamic_layout_allows_wide_copies():
    source = np.arange(512, dtype=np.float32).reshape(8, 64)
    target = np.zeros_like(source)
    arguments = [from_dlpack(array, assumed_align=16).mark_layout_dynamic() for array in (source, target)]
    with pytest.raises(CompileError, match="a copy of 128 bits needs 4 contiguous elements"):
        compiled(run_by_rows, *arguments)  # rows may begin anywhere
    arguments = [argument.mark_compact_shape_dynamic(mode=1, divisibility=4) for argument in arguments]
    executor = compiled(run_by_rows, *arguments)
    executor(*arguments)
    np.testing.assert_array_equal(target, source)
    assert set(instructions(executor, "ld.global")) == {"ld.global.v4.b32"}


@cute.kernel
def guarded(
    src: cute.Tensor, dst: cute.Tensor, tiled: cute.TiledCopy, tile: cutlass.Constexpr, each: cutlass.Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    x, y, _ = cute.arch.block_idx()
    part = tiled.get_slice(thread)
    places = part.partition_S(cute.local_tile(cute.make_identity_tensor(src.shape), tile, (x, y)))
    source = part.partition_S(cute.local_tile(src, tile, (x, y)))
    target = part.partition_D(cute.local_tile(dst, tile, (x, y)))
    registers = cute.make_fragment_like(source)
    registers.fill(-1)
    if cutlass.const_expr(each == "value"):
        inside = cute.make_rmem_tensor(places.shape, cutlass.Boolean)
        for n in cutlass.range_constexpr(cute.size(inside)):
            inside[n] = cute.elem_less(places[n], src.shape)
    else:
        held = places.shape[0][1] if cutlass.const_expr(each == "instruction") else 1
        shape = (held, places.shape[1], places.shape[2])
        inside = cute.make_rmem_tensor(shape, cutlass.Boolean)
        for v in cutlass.range_constexpr(shape[0]):
            for m in cutlass.range_constexpr(shape[1]):
                for n in cutlass.range_constexpr(shape[2]):
                    inside[v, m, n] = cute.elem_less(places[(0, v), m, n], src.shape)
    cute.copy(tiled, source, registers, pred=inside)
    cute.copy(tiled, registers, target, pred=inside)


@cute.jit
def copy_edges(
    src: cute.Tensor, dst: cute.Tensor, values: cutlass.Constexpr, bits: cutlass.Constexpr, each: cutlass.Constexpr
):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), src.element_type, num_bits_per_copy=bits)
    tiled = cute.make_tiled_copy_tv(atom, ROWS, values)
    rows, columns = map(cute.size, tiled.tiler_mn)
    tile = (2 * rows, columns)
    grid = cute.ceil_div(src.shape, tile)
    guarded(src, dst, tiled, tile, each).launch(grid=(grid[0], grid[1], 1), block=32)


@pytest.mark.parametrize(
    ("shape", "values", "bits", "each"),
    [
        ((13, 52), cute.make_layout((1, 4)), 128, "instruction"),
        ((5, 8), cute.make_layout((2, 4), stride=(4, 1)), 128, "instruction"),
        ((9, 33), cute.make_layout((1, 4)), 0, "value"),
        ((16, 64), cute.make_layout((2, 2), stride=(2, 1)), 64, "instruction"),
        ((1, 1), cute.make_layout((2, 2), stride=(2, 1)), 32, "value"),
        ((13, 52), cute.make_layout((1, 4)), 32, "vector"),
        ((13, 52), cute.make_layout((1, 4)), 0, "vector"),
        ((6, 10), cute.make_layout((2, 2), stride=(2, 1)), 64, "vector"),
    ],
)
def test_predicates_guard_the_edges(shape, values, bits, each):
    """The emulator refuses every access outside the arrays, so what is not copied was not touched."""
    source = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    target = np.zeros_like(source)
    arguments = [from_dlpack(array, assumed_align=16) for array in (source, target)]
    executor = compiled(copy_edges, *arguments, values, bits, each)
    executor(*arguments)
    np.testing.assert_array_equal(target, source)


@cute.kernel
def keep(src: cute.Tensor, dst: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    taken = cute.make_rmem_tensor(4, cutlass.Boolean)
    for n in cutlass.range_constexpr(4):
        taken[n] = thread % 2 == n % 2
    registers = cute.make_rmem_tensor(4, cutlass.Float32)
    cute.basic_copy(src[thread, None], registers)
    cute.basic_copy_if(taken, registers, dst[thread, None])


@cute.jit
def run_keep(src: cute.Tensor, dst: cute.Tensor):
    keep(src, dst).launch(grid=1, block=8)


def test_a_false_predicate_leaves_the_destination_alone():
    source = np.arange(32, dtype=np.float32).reshape(8, 4)
    target = np.full_like(source, -7)
    arguments = [from_dlpack(array) for array in (source, target)]
    compiled(run_keep, *arguments)(*arguments)
    taken = np.arange(8)[:, None] % 2 == np.arange(4)[None] % 2
    np.testing.assert_array_equal(target, np.where(taken, source, -7))


@cute.kernel
def staged(src: cute.Tensor, dst: cute.Tensor, tiled: cute.TiledCopy, stages: cutlass.Constexpr, bound: cutlass.Int32):
    """Tiles of `src` (tile, tiles) pass through a ring of stages of shared memory; columns from `bound` on are cut."""
    thread, _, _ = cute.arch.thread_idx()
    part = tiled.get_slice(thread)
    tile = tuple(map(cute.size, tiled.tiler_mn))
    ring = cutlass.utils.SmemAllocator().allocate_tensor(
        src.element_type, cute.make_layout((*tile, stages), stride=(tile[1], 1, tile[0] * tile[1])), 16
    )
    source = part.partition_S(cute.local_tile(src, tile, (0, None)))
    target = part.partition_D(cute.local_tile(dst, tile, (0, None)))
    places = part.partition_S(cute.local_tile(cute.make_identity_tensor(src.shape), tile, (0, None)))
    into, out = part.partition_D(ring), part.partition_S(ring)
    count = cute.size(source, mode=[3])
    inside = cute.make_rmem_tensor((source.shape[0][1], source.shape[1], source.shape[2]), cutlass.Boolean)
    for n in cutlass.range_constexpr(stages - 1):
        for v in cutlass.range_constexpr(cute.size(inside)):
            inside[v] = places[(0, v), 0, 0, n][1] < bound
        cute.copy(tiled, source[None, None, None, n], into[None, None, None, n], pred=inside)
        cute.arch.cp_async_commit_group()
    for n in range(count):
        cute.arch.cp_async_wait_group(stages - 2)
        cute.arch.sync_threads()
        following = n + stages - 1
        if following < count:
            for v in cutlass.range_constexpr(cute.size(inside)):
                inside[v] = places[(0, v), 0, 0, following][1] < bound
            cute.copy(
                tiled,
                source[None, None, None, following],
                into[None, None, None, following % stages],
                pred=inside,
            )
        cute.arch.cp_async_commit_group()
        registers = cute.make_fragment_like(out[None, None, None, 0])
        cute.autovec_copy(out[None, None, None, n % stages], registers)
        cute.autovec_copy(registers, target[None, None, None, n])


@cute.jit
def run_staged(
    src: cute.Tensor, dst: cute.Tensor, stages: cutlass.Constexpr, bound: cutlass.Int32, mode: cutlass.Constexpr
):
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache_mode=mode), src.element_type, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, ROWS, cute.make_layout((1, 128 // src.element_type.width)))
    staged(src, dst, tiled, stages, bound).launch(grid=1, block=32)


@pytest.mark.parametrize(
    "mode", [cpasync.LoadCacheMode.GLOBAL, cpasync.LoadCacheMode.ALWAYS, cpasync.LoadCacheMode.NONE]
)
@pytest.mark.parametrize(("dtype", "stages", "bound"), [(np.float32, 3, 320), (np.float16, 4, 320), (np.int8, 2, 1008)])
def test_asynchronous_copies_through_a_ring_and_zeros_where_the_predicate_is_false(dtype, stages, bound, mode):
    width = 8 * 16 // np.dtype(dtype).itemsize * 10
    source = np.arange(1, 4 * width + 1).reshape(4, width).astype(dtype)
    target = np.full_like(source, 99)
    arguments = [from_dlpack(array, assumed_align=16) for array in (source, target)]
    bound = min(bound, width - 128 // (8 * np.dtype(dtype).itemsize) * 3)
    executor = compiled(run_staged, *arguments, stages, bound, mode)
    executor(*arguments, bound)
    np.testing.assert_array_equal(target, np.where(np.arange(width) < bound, source, dtype(0)))
    cache = "cg" if mode is cpasync.LoadCacheMode.GLOBAL else "ca"
    assert set(re.findall(r"cp\.async\.(c[ag])\.shared\.global \[.*?\], \[.*?\], (\d+)", ptx_of(executor))) == {
        (cache, "16")
    }
    assert f"cp.async.wait_group {stages - 2}" in re.sub(r"\s+", " ", ptx_of(executor))


@cute.kernel
def swizzled(
    src: cute.Tensor, dst: cute.Tensor, layout: cutlass.Constexpr, swizzle: cutlass.Constexpr, step: cutlass.Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    shared = cutlass.utils.SmemAllocator().allocate_tensor(src.element_type, layout, 1024, swizzle)
    threads = cute.make_layout((8, 8))
    mine = cute.local_partition(shared, threads, thread)
    cute.autovec_copy(cute.local_partition(src, threads, thread), mine)
    cute.arch.sync_threads()
    plain = cute.make_tensor(
        cute.recast_ptr(shared.iterator, cute.make_swizzle(0, 4, 3)), cute.make_layout(cute.size(shared))
    )
    if cutlass.const_expr(step):
        for n in range(8):
            dst[thread, n] = plain[thread * 8 + n]
    else:
        cute.autovec_copy(mine, cute.local_partition(dst, threads, thread))


@cute.jit
def run_swizzled(
    src: cute.Tensor, dst: cute.Tensor, layout: cutlass.Constexpr, swizzle: cutlass.Constexpr, step: cutlass.Constexpr
):
    swizzled(src, dst, layout, swizzle, step).launch(grid=1, block=64)


ROW_MAJOR = cute.make_layout((8, 64), stride=(64, 1))


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(
    ("layout", "swizzle"),
    [
        (cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, ROW_MAJOR), None),
        (ROW_MAJOR, cute.make_swizzle(3, 4, 3)),
        (cute.make_composed_layout(cute.make_swizzle(2, 1, 3), 0, ROW_MAJOR), None),
    ],
)
def test_threads_with_several_columns_of_a_swizzled_tile(layout, swizzle, raw):
    """Thread (m, t) owns columns t, t + 8, ...; the swizzled place of (m, k) is that of the layout's function."""
    source = np.arange(512, dtype=np.float16).reshape(8, 64)
    target = np.zeros((64, 8) if raw else (8, 64), np.float16)
    arguments = [from_dlpack(array) for array in (source, target)]
    compiled(run_swizzled, *arguments, layout, swizzle, raw)(*arguments)
    if not raw:
        np.testing.assert_array_equal(target, source)
        return
    places = layout if swizzle is None else cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, ROW_MAJOR)
    for row in range(8):
        for column in range(64):
            assert target.reshape(-1)[places((row, column))] == source[row, column]
    if swizzle is not None or places.inner.bits == 3:
        assert [places((3, 5 + 8 * k)) for k in range(8)] == [221, 213, 205, 197, 253, 245, 237, 229]


@cute.kernel
def first_row(dst: cute.Tensor, bytes_: cutlass.Constexpr):
    smem = cutlass.utils.SmemAllocator()
    swizzle, layout = cute.make_swizzle(3, 4, 3), cute.make_layout((32, 8), stride=(1, 32))
    if cutlass.const_expr(bytes_):
        shared = smem.allocate_tensor(cutlass.Float32, layout, 1024, swizzle)
    else:
        shared = smem.allocate_tensor(cutlass.Float32, cute.make_composed_layout(swizzle, 0, layout), 1024)
    plain = cute.make_tensor(cute.recast_ptr(shared.iterator, cute.make_swizzle(0, 4, 3)), cute.make_layout(256))
    for n in range(256):
        plain[n] = cutlass.Float32(0)
    for n in cutlass.range_constexpr(8):
        shared[0, n] = cutlass.Float32(n + 1)
    for n in range(256):
        dst[n] = plain[n]


@cute.jit
def run_first_row(dst: cute.Tensor, bytes_: cutlass.Constexpr):
    first_row(dst, bytes_).launch(grid=1, block=1)


@pytest.mark.parametrize(
    ("bytes_", "places"),
    [(False, [0, 32, 64, 96, 144, 176, 208, 240]), (True, [0, 36, 72, 108, 144, 180, 216, 252])],
)
def test_a_pointers_swizzle_counts_bytes_and_a_layouts_counts_elements(bytes_, places):
    target = from_dlpack(memory := np.zeros(256, np.float32))
    compiled(run_first_row, target, bytes_)(target)
    assert [int(np.flatnonzero(memory == n + 1)[0]) for n in range(8)] == places


def refusal(body):
    """The message of a kernel over a (8, 64) float32 tensor whose body is refused."""

    @cute.kernel
    def kernel(tensor: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        body(tensor, thread)

    @cute.jit
    def run(tensor: cute.Tensor):
        kernel(tensor).launch(grid=1, block=32)

    with pytest.raises(CompileError) as caught:
        compiled(run, from_dlpack(np.zeros((8, 64), np.float32), assumed_align=16))
    assert "test_copies.py" in str(caught.value)
    return str(caught.value)


def wide_copy():
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    return cute.make_tiled_copy_tv(atom, ROWS, cute.make_layout((1, 4)))


def test_copies_that_make_no_sense_are_refused():
    def rmem(shape, dtype=cutlass.Float32):
        return cute.make_rmem_tensor(shape, dtype)

    def part(tensor, thread):
        return wide_copy().get_slice(thread).partition_S(tensor)

    assert "cute.copy takes a copy atom" in refusal(lambda t, i: cute.copy(3, t, t))
    assert "copy has no option 'mask'" in refusal(lambda t, i: cute.copy(wide_copy(), part(t, i), part(t, i), mask=1))
    assert "takes 4 values a thread of the destination" in refusal(
        lambda t, i: cute.copy(wide_copy(), part(t, i), rmem((2, 4, 2)))
    )
    assert "disagree on the number of instructions" in refusal(
        lambda t, i: cute.copy(wide_copy(), part(t, i), rmem(((4, 1), 2, 3)))
    )
    assert "disagree on the number of elements" in refusal(lambda t, i: cute.autovec_copy(t[0, None], rmem(63)))
    assert "copy from Float32 to Int8" in refusal(lambda t, i: cute.autovec_copy(t[0, None], rmem(64, cutlass.Int8)))
    assert "predicate is a tensor of Booleans" in refusal(
        lambda t, i: cute.copy(wide_copy(), part(t, i), rmem(((4, 1), 2, 2)), pred=rmem((1, 2, 2)))
    )
    assert "predicate does not fit" in refusal(
        lambda t, i: cute.copy(wide_copy(), part(t, i), rmem(((4, 1), 2, 2)), pred=rmem((4, 2, 2), cutlass.Boolean))
    )
    assert "predicate does not fit" in refusal(
        lambda t, i: cute.copy(wide_copy(), part(t, i), rmem(((4, 1), 2, 2)), pred=rmem((1, 2), cutlass.Boolean))
    )
    assert "tensor of coordinates, which has no memory" in refusal(
        lambda t, i: cute.copy(wide_copy(), part(cute.make_identity_tensor((8, 64)), i), rmem(((4, 1), 2, 2)))
    )
    asynchronous = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    assert "cp.async has its destination in smem, not in rmem" in refusal(
        lambda t, i: cute.copy(asynchronous, part(t, i), rmem(((4, 1), 2, 2)))
    )
    assert "known while compiling" in refusal(lambda t, i: cute.arch.cp_async_wait_group(i))
    assert "swizzled by its pointer and by its layout" in refusal(
        lambda t, i: (
            cutlass.utils.SmemAllocator()
            .allocate_tensor(
                cutlass.Float32,
                cute.make_composed_layout(cute.make_swizzle(1, 2, 3), 0, ROW_MAJOR),
                16,
                cute.make_swizzle(1, 4, 3),
            )
            .fill(0)
        )
    )
    assert "tears elements of Float32 apart" in refusal(
        lambda t, i: (
            cutlass.utils.SmemAllocator()
            .allocate_tensor(cutlass.Float32, ROW_MAJOR, 16, cute.make_swizzle(1, 1, 3))
            .fill(0)
        )
    )


@cute.kernel
def columns_of_matrices(out: cute.Tensor, transpose: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    columns = cute.make_layout((16, 16), stride=(1, 16))
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float16, columns, byte_alignment=128)
    shared[thread % 16, 0] = cute.Float16(1.0)
    cute.arch.sync_threads()
    tiled = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    held = tiled.make_fragment_A(tiled.get_slice(thread).partition_A(shared))
    atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(transpose, 4), cute.Float16)
    read = cute.make_tiled_copy_A(atom, tiled).get_slice(thread)
    cute.copy(read, read.partition_S(shared), read.retile(held))
    out[thread] = held[0].to(cute.Float32)


@cute.jit
def read_columns(out: cute.Tensor, transpose: cutlass.Constexpr):
    columns_of_matrices(out, transpose).launch(grid=1, block=32)


def test_ldmatrix_of_columns_says_that_it_can_transpose():
    out = np.zeros(32, np.float32)
    with pytest.raises(CompileError, match="a copy of 128 bits needs 8 contiguous elements") as caught:
        cute.compile(read_columns, out, False)
    assert caught.value.hint == (
        "a row of a matrix is 16 bytes that lie together: allocate the tensor at a multiple of 16 bytes, and where the "
        "elements of a column lie together instead, give the operation transpose=True"
    )
    assert "ldmatrix.sync.aligned.m8n8.x4.trans" in cute.compile(read_columns, out, True).stages["ptx"]
