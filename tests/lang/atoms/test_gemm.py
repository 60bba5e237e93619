"""Products of tiles on the emulator, exact on integers: every mma.sync form, fed by ldmatrix or by plain copies."""

import math
import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.base.errors import CompileError
from tilewright.cute.nvgpu import cpasync, warp
from tilewright.cute.runtime import from_dlpack
from tilewright.hw.atoms import mma_sync

F16, BF16, F32, F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@dataclass(frozen=True)
class Plan:
    """How the kernel below works: the operation, its tiling, the block's tile and how registers are filled."""

    op: Any
    atoms: tuple[int, int, int] = (2, 2, 1)
    permutation: Any = None
    tile: tuple[int, int, int] = (64, 64, 32)
    load_a: Any = None
    load_b: Any = None
    a_major: str = "k"
    b_major: str = "k"
    store: Any = None
    swizzled_pointer: bool = False


def shared_layout(rows, columns, major, width):
    """A tile whose rows along the contiguous mode are swizzled in pieces of 16 bytes."""
    piece = 128 // width
    extent = columns if major == "k" else rows
    bits = min(3, int(math.log2(extent // piece)))
    layout = cute.make_layout((rows, columns), stride=(columns, 1) if major == "k" else (1, rows))
    return cute.make_composed_layout(cute.make_swizzle(bits, int(math.log2(piece)), 3), 0, layout)


def global_copy(rows, columns, major, dtype, threads):
    """A tiled copy of 16 bytes at a time along the contiguous mode."""
    piece = 128 // dtype.width
    along = (columns if major == "k" else rows) // piece
    along = min(along, threads)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), dtype, num_bits_per_copy=128)
    if major == "k":
        return cute.make_tiled_copy_tv(
            atom, cute.make_layout((threads // along, along), stride=(along, 1)), cute.make_layout((1, piece))
        )
    return cute.make_tiled_copy_tv(atom, cute.make_layout((along, threads // along)), cute.make_layout((piece, 1)))


@cute.kernel
def multiply(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    tiled: cute.TiledMma,
    copy_a: cute.TiledCopy,
    copy_b: cute.TiledCopy,
    layout_a: cutlass.Constexpr,
    layout_b: cutlass.Constexpr,
    plan: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    x, y, _ = cute.arch.block_idx()
    m, n, k = plan.tile
    smem = cutlass.utils.SmemAllocator()
    if cutlass.const_expr(plan.swizzled_pointer):
        in_bytes = [cute.recast_layout(8, a.element_type.width, layout.inner) for layout in (layout_a, layout_b)]
        shared_a = smem.allocate_tensor(a.element_type, layout_a.outer, 128, in_bytes[0])
        shared_b = smem.allocate_tensor(b.element_type, layout_b.outer, 128, in_bytes[1])
    else:
        shared_a = smem.allocate_tensor(a.element_type, layout_a, 128)
        shared_b = smem.allocate_tensor(b.element_type, layout_b, 128)
    to_a, to_b = copy_a.get_slice(thread), copy_b.get_slice(thread)
    from_a = to_a.partition_S(cute.local_tile(a, (m, k), (x, None)))
    from_b = to_b.partition_S(cute.local_tile(b, (n, k), (y, None)))
    mine = tiled.get_slice(thread)
    parts_c = mine.partition_C(cute.local_tile(c, (m, n), (x, y)))
    left = tiled.make_fragment_A(mine.partition_A(shared_a))
    right = tiled.make_fragment_B(mine.partition_B(shared_b))
    sums = tiled.make_fragment_C(parts_c)
    sums.fill(0)
    load_a, load_b = cute.make_tiled_copy_A(plan.load_a, tiled), cute.make_tiled_copy_B(plan.load_b, tiled)
    slice_a, slice_b = load_a.get_slice(thread), load_b.get_slice(thread)
    read_a, read_b = slice_a.partition_S(shared_a), slice_b.partition_S(shared_b)
    into_a, into_b = slice_a.retile(left), slice_b.retile(right)
    for step in range(cute.size(from_a, mode=[3])):
        cute.copy(copy_a, from_a[None, None, None, step], to_a.partition_D(shared_a))
        cute.copy(copy_b, from_b[None, None, None, step], to_b.partition_D(shared_b))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        for block in cutlass.range_constexpr(cute.size(left, mode=[2])):
            cute.copy(load_a, read_a[None, None, block], into_a[None, None, block])
            cute.copy(load_b, read_b[None, None, block], into_b[None, None, block])
            cute.gemm(tiled, sums, left[None, None, block], right[None, None, block], sums)
        cute.arch.sync_threads()
    if cutlass.const_expr(plan.store is None):
        cute.autovec_copy(sums, parts_c)
    else:
        major = "m" if plan.store.op.transpose else "k"
        shared_c = smem.allocate_tensor(c.element_type, shared_layout(m, n, major, c.element_type.width), 128)
        results = cute.make_fragment_like(sums, c.element_type)
        results.store(sums.load().to(c.element_type))
        write = cute.make_tiled_copy_C(plan.store, tiled)
        cute.copy(write, write.get_slice(thread).retile(results), write.get_slice(thread).partition_D(shared_c))
        cute.arch.sync_threads()
        cute.autovec_copy(mine.partition_C(shared_c), parts_c)


@cute.jit
def run(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, plan: cutlass.Constexpr):
    tiled = cute.make_tiled_mma(plan.op, plan.atoms, permutation_mnk=plan.permutation)
    m, n, k = plan.tile
    copy_a = global_copy(m, k, plan.a_major, a.element_type, tiled.size)
    copy_b = global_copy(n, k, plan.b_major, b.element_type, tiled.size)
    layout_a = shared_layout(m, k, plan.a_major, a.element_type.width)
    layout_b = shared_layout(n, k, plan.b_major, b.element_type.width)
    grid = (c.shape[0] // m, c.shape[1] // n, 1)
    multiply(a, b, c, tiled, copy_a, copy_b, layout_a, layout_b, plan).launch(grid=grid, block=tiled.size)


def tensor(array, dtype=None):
    made = from_dlpack(array.view(np.uint8) if array.dtype in (E4M3, E5M2) else array, assumed_align=16)
    if dtype is not None:
        made.element_type = dtype
    return made


def matrix(generator, rows, columns, dtype, major):
    values = generator.integers(0 if dtype == np.uint8 else -4, 5, (rows, columns)).astype(dtype)
    return values if major == "k" else np.asfortranarray(values)


def check(plan, a_type, b_type, c_type, *, chip="sm_80", blocks=(2, 1, 2), element=None, scale=1):
    """Run the plan on random integers; the PTX."""
    generator = np.random.default_rng(0)
    m, n, k = (count * extent for count, extent in zip(blocks, plan.tile, strict=True))
    a, b = matrix(generator, m, k, a_type, plan.a_major), matrix(generator, n, k, b_type, plan.b_major)
    c = np.zeros((m, n), c_type)
    elements = element if isinstance(element, tuple) else (element, element)
    arguments = [tensor(a, elements[0]), tensor(b, elements[1]), tensor(c)]
    executor = cute.compile(run, *arguments, plan, target="emu", options=f"--gpu-arch {chip}")
    executor(*arguments)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(c.astype(np.float64), exact)
    text = executor.stages["ptx"]
    return text if isinstance(text, str) else "\n".join(text.values())


def names(ptx, start):
    return set(re.findall(rf"^\s*({re.escape(start)}[\w.:]*)", ptx, re.M))


def ldmatrix(dtype=cutlass.Float16, count=4, transpose=False):
    return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose, count), dtype)


def plain(dtype, bits=0):
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)


TYPES = {F16: cutlass.Float16, BF16: cutlass.BFloat16}


@pytest.mark.parametrize("k", [8, 16])
@pytest.mark.parametrize(("dtype", "acc"), [(F16, F32), (F16, F16), (BF16, F32)])
def test_16_bit_products_fed_by_ldmatrix(dtype, acc, k):
    op = warp.MmaF16BF16Op(TYPES[dtype], cutlass.Float32 if acc is F32 else cutlass.Float16, (16, 8, k))
    load = ldmatrix(TYPES[dtype])
    permutation = (32, 32, 16) if k == 16 else (64, 64, 8)
    ptx = check(Plan(op, permutation=permutation, load_a=load, load_b=load), dtype, dtype, acc)
    short = {F16: "f16", BF16: "bf16"}[dtype]
    sums = "f32" if acc is F32 else "f16"
    assert names(ptx, "mma.sync") == {f"mma.sync.aligned.m16n8k{k}.row.col.{sums}.{short}.{short}.{sums}"}
    assert names(ptx, "ldmatrix") == {"ldmatrix.sync.aligned.m8n8.x4.shared.b16"}
    assert "ld.shared" not in ptx and ".local" not in ptx


@pytest.mark.parametrize(("a_major", "b_major"), [("m", "n"), ("m", "k"), ("k", "n")])
def test_operands_of_either_major_through_transposing_ldmatrix(a_major, b_major):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    loads = [ldmatrix(transpose=major != "k") for major in (a_major, b_major)]
    plan = Plan(op, permutation=(32, 32, 16), load_a=loads[0], load_b=loads[1], a_major=a_major, b_major=b_major)
    ptx = check(plan, F16, F16, F32)
    kinds = {("" if major == "k" else ".trans") for major in (a_major, b_major)}
    assert names(ptx, "ldmatrix") == {f"ldmatrix.sync.aligned.m8n8.x4{kind}.shared.b16" for kind in kinds}


@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_of_fewer_matrices(count):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    plan = Plan(op, load_a=ldmatrix(count=count), load_b=ldmatrix(count=count))
    assert names(check(plan, F16, F16, F32), "ldmatrix") == {f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16"}


@pytest.mark.parametrize(
    ("atoms", "permutation", "tile"),
    [
        ((1, 1, 1), None, (16, 16, 16)),
        ((4, 1, 1), (64, 16, 16), (64, 64, 32)),
        ((1, 4, 1), (16, 64, 16), (32, 64, 64)),
        ((2, 2, 1), (32, cute.make_layout((8, 2, 2), stride=(1, 16, 8)), 16), (64, 64, 32)),
    ],
)
def test_tilings_over_warps_and_orders_of_the_tile(atoms, permutation, tile):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    load = plain(cutlass.Float16)
    check(Plan(op, atoms, permutation, tile, load, load), F16, F16, F32)


@pytest.mark.parametrize("k", [4, 8])
def test_tf32(k):
    load = plain(cutlass.TFloat32)
    ptx = check(Plan(warp.MmaTF32Op((16, 8, k)), tile=(32, 32, 32), load_a=load, load_b=load), F32, F32, F32)
    assert names(ptx, "mma.sync") == {f"mma.sync.aligned.m16n8k{k}.row.col.f32.tf32.tf32.f32"}


def test_tf32_fed_by_ldmatrix():
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.TFloat32)
    plan = Plan(warp.MmaTF32Op((16, 8, 8)), permutation=(32, 32, 8), load_a=load, load_b=load)
    assert names(check(plan, F32, F32, F32), "ldmatrix") == {"ldmatrix.sync.aligned.m8n8.x4.shared.b16"}


@pytest.mark.parametrize(
    ("transpose", "dtype"), [(True, cutlass.Float32), (True, cutlass.Int8), (False, cutlass.Float64)]
)
def test_elements_that_ldmatrix_cannot_move_are_refused(transpose, dtype):
    with pytest.raises(CompileError, match=f"LdMatrix8x8x16bOp moves elements of 16 bits, not {dtype}") as caught:
        cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose, 4), dtype)
    assert "without transpose, elements of up to 32 bits" in str(caught.value)


def test_f64():
    load = plain(cutlass.Float64)
    ptx = check(Plan(warp.MmaF64Op(), tile=(32, 32, 16), load_a=load, load_b=load), F64, F64, F64)
    assert names(ptx, "mma.sync") == {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"}


@pytest.mark.parametrize(("dtype", "k"), [(np.int8, 16), (np.int8, 32), (np.uint8, 32)])
def test_8_bit_integers(dtype, k):
    element = cutlass.Int8 if dtype is np.int8 else cutlass.Uint8
    load = plain(element, 32)
    plan = Plan(warp.MmaI8Op(element, (16, 8, k)), tile=(32, 32, 64), load_a=load, load_b=load)
    short = "s8" if dtype is np.int8 else "u8"
    assert names(check(plan, dtype, dtype, np.int32), "mma.sync") == {
        f"mma.sync.aligned.m16n8k{k}.row.col.s32.{short}.{short}.s32"
    }


@pytest.mark.parametrize("chip", ["sm_89", "sm_90"])
@pytest.mark.parametrize(("dtype", "element"), [(E4M3, cutlass.Float8E4M3FN), (E5M2, cutlass.Float8E5M2)])
def test_8_bit_floats(dtype, element, chip):
    load = cute.make_copy_atom(warp.LdMatrix8x16x8bOp(False, 4), element)
    op = warp.MmaFP8Op(element, cutlass.Float32, (16, 8, 32))
    plan = Plan(op, permutation=(32, 32, 32), tile=(64, 64, 64), load_a=load, load_b=load)
    ptx = check(plan, dtype, dtype, F32, chip=chip, element=element)
    short = "e4m3" if dtype is E4M3 else "e5m2"
    assert names(ptx, "mma.sync") == {f"mma.sync.aligned.m16n8k32.row.col.f32.{short}.{short}.f32"}
    assert names(ptx, "ldmatrix") == {"ldmatrix.sync.aligned.m8n8.x4.shared.b16"}


@pytest.mark.parametrize(("a", "b"), [(cutlass.Int8, cutlass.Uint8), (cutlass.Uint8, cutlass.Int8)])
def test_operands_of_two_types(a, b):
    op = warp.MmaSyncOp(a, b, cutlass.Int32, (16, 8, 32))
    plan = Plan(op, tile=(64, 64, 32), load_a=plain(a, 32), load_b=plain(b, 32))
    types = {cutlass.Int8: np.int8, cutlass.Uint8: np.uint8}
    check(plan, types[a], types[b], np.int32)


def test_a_swizzle_of_the_pointer_is_as_good_as_one_of_the_layout():
    op = warp.MmaF16BF16Op(cutlass.BFloat16, cutlass.Float32, (16, 8, 16))
    load = ldmatrix(cutlass.BFloat16)
    plan = Plan(op, permutation=(32, 32, 16), load_a=load, load_b=load, swizzled_pointer=True)
    assert names(check(plan, BF16, BF16, F32), "ldmatrix") == {"ldmatrix.sync.aligned.m8n8.x4.shared.b16"}


@pytest.mark.parametrize(("transpose", "count"), [(False, 4), (False, 2), (False, 1), (True, 4), (True, 2)])
def test_results_through_stmatrix(transpose, count):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(transpose, count), cutlass.Float16)
    plan = Plan(op, permutation=(32, 32, 16), load_a=ldmatrix(), load_b=ldmatrix(), store=store)
    ptx = check(plan, F16, F16, F16, chip="sm_90")
    kind = ".trans" if transpose else ""
    assert names(ptx, "stmatrix") == {f"stmatrix.sync.aligned.m8n8.x{count}{kind}.shared.b16"}


@pytest.mark.parametrize(
    ("make", "chip", "message"),
    [
        (
            lambda: Plan(warp.MmaFP8Op(cutlass.Float8E4M3FN, cutlass.Float32, (16, 8, 32)), tile=(64, 64, 64)),
            "sm_80",
            "sm_89",
        ),
        (
            lambda: Plan(
                warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)),
                permutation=(32, 32, 16),
                load_a=ldmatrix(),
                load_b=ldmatrix(),
                store=cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cutlass.Float16),
            ),
            "sm_80",
            "sm_90",
        ),
    ],
)
def test_chips_without_the_instruction_are_refused(make, chip, message):
    plan = make()
    fp8 = plan.store is None
    if fp8:
        load = plain(cutlass.Float8E4M3FN, 32)
        plan = Plan(plan.op, tile=plan.tile, load_a=load, load_b=load)
    with pytest.raises(CompileError) as caught:
        check(plan, E4M3 if fp8 else F16, E4M3 if fp8 else F16, F32 if fp8 else F16, chip=chip,
              element=cutlass.Float8E4M3FN if fp8 else None)  # fmt: skip
    assert message in str(caught.value) and "test_gemm.py" in str(caught.value)


@cute.kernel
def outer_products(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled: cute.TiledMma):
    thread, _, _ = cute.arch.thread_idx()
    mine = tiled.get_slice(thread)
    parts_a, parts_b, parts_c = mine.partition_A(a), mine.partition_B(b), mine.partition_C(c)
    left, right = tiled.make_fragment_A(parts_a), tiled.make_fragment_B(parts_b)
    sums = tiled.make_fragment_C(parts_c)
    cute.autovec_copy(parts_a, left)
    cute.autovec_copy(parts_b, right)
    sums.fill(1.0)
    cute.gemm(tiled, sums, left, right, sums)
    cute.autovec_copy(sums, parts_c)


@cute.jit
def run_outer_products(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = cute.nvgpu.MmaUniversalOp(a.element_type)
    rows = cute.make_layout((4, 2), stride=(2, 1))
    tiled = cute.make_tiled_mma(op, cute.make_layout((4, 8, 1), stride=(8, 1, 0)), permutation_mnk=(rows, None, None))
    outer_products(a, b, c, tiled).launch(grid=1, block=tiled.size)


@pytest.mark.parametrize("dtype", [F32, F64, F16])
def test_products_of_single_threads_add_to_what_is_there(dtype):
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-3, 4, (16, 12)).astype(dtype) for _ in range(2))
    c = np.zeros((16, 16), dtype)
    arguments = [from_dlpack(array) for array in (a, b, c)]
    executor = cute.compile(run_outer_products, *arguments, target="emu", options="--gpu-arch sm_80")
    executor(*arguments)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T + 1)
    text = executor.stages["ptx"]
    text = text if isinstance(text, str) else "\n".join(text.values())
    assert names(text, "fma") == {{F32: "fma.rn.f32", F64: "fma.rn.f64", F16: "fma.rn.f16"}[dtype]}


def refusal(body):
    @cute.kernel
    def kernel(tiled: cute.TiledMma):
        body(tiled)

    @cute.jit
    def host():
        op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
        kernel(cute.make_tiled_mma(op)).launch(grid=1, block=32)

    with pytest.raises(CompileError) as caught:
        cute.compile(host, target="emu")
    assert "test_gemm.py" in str(caught.value)
    return str(caught.value)


def test_fragments_that_do_not_fit_are_refused():
    def fragments(tiled, m=2, n=4, k=2):
        left = tiled.make_fragment_A(((2, 2, 2), m, k))
        return tiled.make_fragment_C(((2, 2), m, n)), left, tiled.make_fragment_B(((2, 2), n, k))

    def product(tiled, **change):
        named = dict(zip("cab", fragments(tiled), strict=True)) | {key: make(tiled) for key, make in change.items()}
        cute.gemm(tiled, named["c"], named["a"], named["b"], named["c"])

    assert "cute.gemm takes an MMA atom" in refusal(lambda t: cute.gemm(1, *fragments(t), fragments(t)[0]))
    assert "fragments of cute.gemm do not fit each other" in refusal(
        lambda t: product(t, a=lambda t: fragments(t, m=3)[1])
    )
    assert "fragments of cute.gemm do not fit each other" in refusal(
        lambda t: product(t, b=lambda t: fragments(t, k=1)[2])
    )
    assert "operand A of the MMA is Float16, and the fragment Float32" in refusal(
        lambda t: product(t, a=lambda t: cute.make_rmem_tensor(((2, 2, 2), 2, 2), cutlass.Float32))
    )
    assert "takes 8 values a thread of operand A, and its first mode has 4" in refusal(
        lambda t: product(t, a=lambda t: cute.make_rmem_tensor(((2, 2), 2, 2), cutlass.Float16))
    )
    assert "operand B of cute.gemm must lie in registers" in refusal(
        lambda t: product(
            t,
            b=lambda t: cutlass.utils.SmemAllocator().allocate_tensor(
                cutlass.Float16, cute.make_layout(((2, 2), 4, 2))
            ),
        )
    )
    assert "a fragment of operand A holds 8 values" in refusal(lambda t: t.make_fragment_A((4, 2, 2)))


def test_the_retiled_fragment_must_fill_the_copys_tile():
    def body(tiled):
        wide = cute.make_tiled_mma(tiled.op, (1, 1, 1), permutation_mnk=(16, 16, 16))
        copy = cute.make_tiled_copy_B(ldmatrix(), wide)
        copy.retile(tiled.make_fragment_B(((2, 2), 1, 2)))

    assert "does not fill the tile of the copy" in refusal(body)


def test_every_form_of_the_table_has_a_name_that_the_compiler_knows():
    """LLVM refuses an unknown intrinsic, so each form goes through it once."""
    ptx_types = {"f16": cutlass.Float16, "bf16": cutlass.BFloat16, "tf32": cutlass.TFloat32, "f32": cutlass.Float32,
                 "f64": cutlass.Float64, "s8": cutlass.Int8, "u8": cutlass.Uint8, "s32": cutlass.Int32,
                 "e4m3": cutlass.Float8E4M3FN, "e5m2": cutlass.Float8E5M2}  # fmt: skip

    @cute.kernel
    def kernel(out: cute.Tensor, form: cutlass.Constexpr):
        op = warp.MmaSyncOp(*(ptx_types[t] for t in (form.a_type, form.b_type, form.c_type)), form.shape)
        tiled = cute.make_tiled_mma(op)
        fragments = [cute.make_rmem_tensor(tiled.values(operand), tiled.dtype(operand)) for operand in "ABC"]
        for fragment in fragments:
            cute.recast_tensor(fragment, cutlass.Uint8).fill(0)
        cute.gemm(tiled, fragments[2], fragments[0], fragments[1], fragments[2])
        out[0] = cutlass.Float32(fragments[2][0])

    @cute.jit
    def host(out: cute.Tensor, form: cutlass.Constexpr):
        kernel(out, form).launch(grid=1, block=32)

    out = from_dlpack(np.zeros(1, np.float32))
    for form in mma_sync.FORMS.values():
        chip = "sm_89" if form.feature == "mma.f8" else "sm_80"
        executor = cute.compile(host, out, form, target="emu", options=f"--gpu-arch {chip}")
        text = executor.stages["ptx"]
        text = text if isinstance(text, str) else "\n".join(text.values())
        assert f"mma.sync.aligned.{form.name}" in text
