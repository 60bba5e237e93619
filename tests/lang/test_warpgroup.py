"""Products of a warpgroup (wgmma), on the emulator with all checks, against exact integers."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import (
    BFloat16,
    CompileError,
    EmulationError,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Int32,
    TFloat32,
    Uint8,
)
from tilewright.cute.nvgpu import warpgroup
from tilewright.utils import sm90

arch = cute.arch
ALL = pytest.mark.parametrize
K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
RMEM, SMEM = warpgroup.OperandSource.RMEM, warpgroup.OperandSource.SMEM
ACCUMULATE = warpgroup.Field.ACCUMULATE
ROWS, COLUMNS = cutlass.utils.LayoutEnum.ROW_MAJOR, cutlass.utils.LayoutEnum.COL_MAJOR


@cute.jit
def _fill(tile: cute.Tensor, tensor: cute.Tensor):
    """All threads write what `tensor` has into shared memory, for the tensor cores to read."""
    thread, count = arch.thread_idx()[0], arch.block_dim()[0]
    for place in cutlass.range(thread, cute.size(tile), count):
        tile[place] = tensor[place]
    arch.fence_proxy("async.shared", space="cta")


def _shared(allocator, tensor, layout):
    tile = allocator.allocate_tensor(tensor.element_type, layout.outer, 1024, layout.inner)
    _fill(tile, tensor)
    return tile


class Product:
    """D = A * B of one tile (M, N, K), added to `start` where that is given; with `loop` stored one by one."""

    def __init__(self, op, tile, atoms=(1, 1, 1), majors=(K, K), start=None, loop=False):
        self.op, self.tile, self.atoms, self.majors, self.start, self.loop = op, tile, atoms, majors, start, loop

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, d: cute.Tensor):
        m, n, k = self.tile
        orders = [ROWS if major is K else COLUMNS for major in self.majors]
        la = sm90.make_smem_layout(a.element_type, orders[0], (m, k))
        lb = sm90.make_smem_layout(b.element_type, orders[1], (n, k))
        mma = cute.make_tiled_mma(self.op, self.atoms)
        self.kernel(a, b, d, mma, la, lb).launch(grid=1, block=mma.size)

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, mma: cute.TiledMma, la: cutlass.Constexpr,
               lb: cutlass.Constexpr):  # fmt: skip
        allocator = cutlass.utils.SmemAllocator()
        tiles = _shared(allocator, a, la), _shared(allocator, b, lb)
        arch.sync_threads()
        part = mma.get_slice(arch.thread_idx()[0])
        target = part.partition_C(d)
        sums = cute.make_rmem_tensor(target.shape, mma.op.acc_dtype)
        left, right = part.partition_A(tiles[0]), mma.make_fragment_B(part.partition_B(tiles[1]))
        if cutlass.const_expr(self.op.a_src is RMEM):
            held = mma.make_fragment_A(left)
            cute.autovec_copy(left, held)
        else:
            held = mma.make_fragment_A(left)
        if cutlass.const_expr(self.start is not None):
            sums.fill(self.start)
        mma.set(ACCUMULATE, self.start is not None)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(held, mode=[2])):
            cute.gemm(mma, sums, held[None, None, k], right[None, None, k], sums)
            mma.set(ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        if cutlass.const_expr(self.loop):
            for place in range(cute.size(sums)):
                row, column = cute.idx2crd(place, (2, cute.size(sums) // 2))
                target[row + 2 * column] = (sums[row + 2 * column] * 2 - sums[place]).to(d.element_type)
        else:
            target.store(sums.load().to(d.element_type))


def _multiply(op, tile, types, *, atoms=(1, 1, 1), majors=(K, K), start=None, out=np.float32, loop=False):
    """The product of small integers on the emulator, and the exact one."""
    rng = np.random.default_rng(3)
    m, n, k = tile
    low = 0 if types[0] is np.uint8 else -3
    a, b = (rng.integers(low, 4, (extent, k)).astype(type_) for extent, type_ in zip((m, n), types, strict=True))
    given = [x if major is K else np.asfortranarray(x) for x, major in zip((a, b), majors, strict=True)]
    d = np.zeros((m, n), out)
    arguments = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (*given, d)]
    for tensor, dtype in zip(arguments, (op.a_dtype, op.b_dtype), strict=False):
        if dtype is TFloat32:
            tensor.element_type = TFloat32
    cute.compile(Product(op, tile, atoms, majors, start, loop), *arguments)(*arguments)
    exact = a.astype(np.float64) @ b.astype(np.float64).T + (start or 0)
    return d, exact


F16 = warpgroup.MmaF16BF16Op
BF16 = ml_dtypes.bfloat16
E4, E5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@ALL(
    ("op", "tile", "types"),
    (
        (F16(Float16, Float32, (64, 64, 16)), (64, 64, 64), (np.float16,) * 2),
        (F16(Float16, Float32, (64, 256, 16)), (64, 256, 32), (np.float16,) * 2),
        (F16(BFloat16, Float32, (64, 8, 16)), (64, 8, 16), (BF16,) * 2),
        (F16(Float16, Float16, (64, 40, 16)), (64, 40, 32), (np.float16,) * 2),
        (warpgroup.MmaTF32Op((64, 32, 8)), (64, 32, 32), (np.float32,) * 2),
        (warpgroup.MmaF8Op(Float8E4M3FN, Float8E5M2, Float32, (64, 64, 32)), (64, 64, 128), (E4, E5)),
        (warpgroup.MmaF8Op(Float8E5M2, Float8E4M3FN, Float16, (64, 24, 32)), (64, 24, 64), (E5, E4)),
        (F16(Float16, Float32, (64, 32, 16), RMEM, K, K), (64, 32, 64), (np.float16,) * 2),
        (F16(BFloat16, Float32, (64, 32, 16), RMEM, K, MN), (64, 32, 32), (BF16,) * 2),
        (warpgroup.MmaF8Op(Float8E4M3FN, Float8E4M3FN, Float32, (64, 32, 32), RMEM), (64, 32, 64), (E4, E4)),
        (warpgroup.MmaTF32Op((64, 16, 8), RMEM), (64, 16, 16), (np.float32,) * 2),
    ),
)  # fmt: skip
def test_products_of_floats(op, tile, types):
    majors = (K, op.b_major_mode)
    got, exact = _multiply(op, tile, types, majors=majors, out=np.float16 if op.acc_dtype is Float16 else np.float32)
    np.testing.assert_array_equal(got, exact)


@ALL("types", ((Int8, Int8), (Uint8, Uint8), (Int8, Uint8), (Uint8, Int8)))
@ALL("source", (SMEM, RMEM))
def test_products_of_integers(types, source):
    op = warpgroup.MmaI8Op(*types, Int32, (64, 32, 32), source)
    arrays = [np.int8 if dtype is Int8 else np.uint8 for dtype in types]
    got, exact = _multiply(op, (64, 32, 64), arrays, out=np.int32)
    np.testing.assert_array_equal(got, exact)


@ALL("majors", ((K, K), (K, MN), (MN, K), (MN, MN)))
@ALL("extent", (8, 16, 32, 64, 128))
def test_majors_and_swizzles(majors, extent):
    """The contiguous mode has 16 to 256 bytes: no swizzle, those of 32, 64 and 128 bytes, and rows of two blocks."""
    m, k = (64, extent if extent >= 16 else 16) if majors[0] is K else (64, 32)
    n = extent if majors[1] is MN else 64
    op = F16(Float16, Float32, (64, n, 16), SMEM, *majors)
    got, exact = _multiply(op, (m, n, max(k, 16)), (np.float16,) * 2, majors=majors)
    np.testing.assert_array_equal(got, exact)


@ALL(("tile", "atoms"), (((128, 64, 32), (2, 1, 1)), ((64, 128, 32), (1, 2, 1)), ((128, 128, 16), (1, 1, 1))))
def test_warpgroups_and_instructions_side_by_side(tile, atoms):
    op = F16(Float16, Float32, (64, 64, 16))
    got, exact = _multiply(op, tile, (np.float16,) * 2, atoms=atoms)
    np.testing.assert_array_equal(got, exact)


@ALL(("dtype", "start"), ((Float32, 5.0), (Float16, -2.0)))
def test_products_add_to_what_the_accumulator_holds(dtype, start):
    op = F16(Float16, dtype, (64, 32, 16))
    got, exact = _multiply(op, (64, 32, 32), (np.float16,) * 2, start=start)
    np.testing.assert_array_equal(got, exact)


def test_accumulators_are_registers_of_the_program():
    """No copy of an accumulator is made, and stage `cute` says what each operation touches."""
    op = F16(Float16, Float32, (64, 64, 16))
    a = np.zeros((64, 64), np.float16)
    arguments = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, a, np.zeros((64, 64), np.float32))]
    stages = cute.compile(Product(op, (64, 64, 64)), *arguments).stages
    assert stages["cute"].count('"cute.wgmma_named"') == 4
    assert '"cute.accumulator"() {accumulator = 0 : i32, count = 32 : i32, element = "f32"}' in stages["cute"]
    assert ".reg .b32 %acc0_<32>;" in stages["ptx"]
    assert stages["ptx"].count("mov.b32") - stages["ptx"].count("mov.b32 \t%r") == 32  # each read once, after the wait


@cute.kernel
def parts(a: cute.Tensor, d: cute.Tensor, mma: cute.TiledMma, layout: cutlass.Constexpr, count: Int32):
    """Accumulators in runtime branches and loops, read and written element by element and as a whole."""
    tile = _shared(cutlass.utils.SmemAllocator(), a, layout)
    arch.sync_threads()
    part = mma.get_slice(arch.thread_idx()[0])
    left, right = mma.make_fragment_A(part.partition_A(tile)), mma.make_fragment_B(part.partition_B(tile))
    first, second = (cute.make_rmem_tensor(mma.partition_shape_C((64, 64)), Float32) for _ in range(2))
    first.fill(0.0)
    second.fill(1.0)
    for step in range(count):
        warpgroup.fence()
        if step % 2 == 0:
            cute.gemm(mma, first, left, right, first)
        else:
            cute.gemm(mma, second, left, right, second)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        for n in cutlass.range(cute.size(first), unroll_full=True):
            first[n] = first[n] * 2
    first.store(first.load() + second.load())
    target = part.partition_C(d)
    cute.autovec_copy(first, target)


@ALL("count", (0, 1, 4))
def test_accumulators_in_branches_and_loops(count):
    @cute.jit
    def host(a: cute.Tensor, d: cute.Tensor, count: Int32):
        mma = cute.make_tiled_mma(F16(Float16, Float32, (64, 64, 16)))
        layout = sm90.make_smem_layout(Float16, ROWS, (64, 16))
        parts(a, d, mma, layout, count).launch(grid=1, block=128)

    a = np.random.default_rng(0).integers(-2, 3, (64, 16)).astype(np.float16)
    d = np.zeros((64, 64), np.float32)
    static = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, d)]
    cute.compile(host, *static, count)(*static, count)
    product = a.astype(np.float64) @ a.astype(np.float64).T
    first, second = np.zeros((64, 64)), np.ones((64, 64))
    for step in range(count):
        first = (first + product if step % 2 == 0 else first) * 2
        second = second + product if step % 2 else second
    np.testing.assert_array_equal(d, first + second)


# What cannot be.


def _refused(body, *, op=None, layout=None):
    """The error of a kernel whose body is given A and B in shared memory and an accumulator."""
    op = op or F16(Float16, Float32, (64, 64, 16))

    @cute.kernel
    def kernel(a: cute.Tensor, mma: cute.TiledMma):
        made = layout or sm90.make_smem_layout(Float16, ROWS, (64, 16))
        allocator = cutlass.utils.SmemAllocator()
        tile = allocator.allocate_tensor(Float16, made.outer, 1024, made.inner)
        part = mma.get_slice(arch.thread_idx()[0])
        left, right = mma.make_fragment_A(part.partition_A(tile)), mma.make_fragment_B(part.partition_B(tile))
        sums = cute.make_rmem_tensor(mma.partition_shape_C((64, 64)), Float32)
        body(mma, sums, left, right, a)

    @cute.jit
    def host(a: cute.Tensor):
        kernel(a, cute.make_tiled_mma(op)).launch(grid=1, block=128)

    with pytest.raises(CompileError) as caught:
        cute.compile(host, np.zeros(128, np.float32), target="emu").stages["ptx"]
    assert caught.value.location is None or caught.value.location.file == __file__, caught.value
    return str(caught.value)


def _begin(mma, sums, left, right):
    warpgroup.fence()
    cute.gemm(mma, sums, left, right, sums)


def _reads_at_once(mma, sums, left, right, a):
    _begin(mma, sums, left, right)
    a[0] = sums[0]


def _waits_without_commit(mma, sums, left, right, a):
    _begin(mma, sums, left, right)
    warpgroup.wait_group(0)
    a[0] = sums[0]


def _waits_for_too_few(mma, sums, left, right, a):
    _begin(mma, sums, left, right)
    warpgroup.commit_group()
    warpgroup.wait_group(1)
    sums.fill(0.0)


def _waits_in_one_branch(mma, sums, left, right, a):
    _begin(mma, sums, left, right)
    warpgroup.commit_group()
    if a[0] > 0:
        warpgroup.wait_group(0)
    a[0] = sums[0]


def _reads_in_the_next_iteration(mma, sums, left, right, a):
    sums.fill(0.0)
    for _ in range(Int32(a[0])):
        a[0] = sums[0]
        _begin(mma, sums, left, right)
        warpgroup.commit_group()


@ALL(
    ("body", "words"),
    (
        (_reads_at_once, "close the group with warpgroup.commit_group()"),
        (_waits_without_commit, "close the group with warpgroup.commit_group()"),
        (_waits_for_too_few, "wait for its group first"),
        (_waits_in_one_branch, "wait for its group first"),
        (_reads_in_the_next_iteration, "wait for its group first"),
    ),
)
def test_an_accumulator_is_not_touched_before_its_wait(body, words):
    text = _refused(cute.jit(body))
    assert "an accumulator is used while its product may be under way" in text and words in text
    assert "product" in text and "test_warpgroup.py" in text


def _indexes_at_run_time(mma, sums, left, right, a):
    _begin(mma, sums, left, right)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    a[0] = sums[arch.thread_idx()[0] % 32]


def _multiplies_other_registers(mma, sums, left, right, a):
    other = cute.make_rmem_tensor(sums.shape, Float32)
    cute.gemm(mma, sums, left, right, other)


def _forgets_a_mode(mma, sums, left, right, a):
    cute.gemm(mma, sums, left[None, 0, 0], right[None, 0, 0], sums[None, 0, 0])
    cute.gemm(mma, sums, left, right[None, None, 0, None], sums)


@ALL(
    ("body", "message"),
    (
        (_indexes_at_run_time, "the elements of an accumulator are not known while compiling"),
        (_multiplies_other_registers, "a product of a warpgroup adds to the accumulator in place"),
        (lambda mma, sums, left, right, a: cute.gemm(mma, a, left, right, a), "operand D of this product lies in rmem"),
        (
            lambda mma, sums, left, right, a: cute.gemm(mma, sums, sums, right, sums),
            "operand A of this product lies in",
        ),
        (
            lambda mma, sums, left, right, a: mma.make_fragment_A(sums),
            "operand A of this product lies in shared memory",
        ),
        (lambda mma, sums, left, right, a: mma.set("scale", 2), "has no field scale"),
        (lambda mma, sums, left, right, a: warpgroup.wait_group(arch.lane_idx()), "wait_group takes a number known"),
        (lambda mma, sums, left, right, a: arch.setmaxregister_decrease(30), "a multiple of 8 from 24 to 256"),
    ),
)
def test_wrong_uses_are_refused(body, message):
    assert message in _refused(cute.jit(body))


def test_layouts_that_the_instruction_does_not_read_are_refused():
    layout = cute.make_composed_layout(cute.make_swizzle(0, 4, 3), 0, cute.make_layout((64, 16), stride=(24, 1)))

    def begins(mma, sums, left, right, a):
        _begin(mma, sums, left, right)

    assert "the layout in shared memory is none that wgmma reads" in _refused(begins, layout=layout)


@ALL(
    ("make", "message"),
    (
        (lambda: F16(Float16, Int32, (64, 64, 16)), "D is f16 or f32"),
        (lambda: F16(BFloat16, Float16, (64, 64, 16)), "D is f32"),
        (lambda: F16(Float16, Float32, (64, 60, 16)), "wgmma has no N = 60 for f16"),
        (lambda: F16(Float16, Float32, (128, 64, 16)), "its shape is (64, 64, 16)"),
        (lambda: F16(Float32, Float32, (64, 64, 8)), "wgmma has no type 'f32'"),
        (lambda: warpgroup.MmaF8Op(Float8E4M3FN, Int8, Float32, (64, 64, 32)), "A and B have one type"),
        (lambda: warpgroup.MmaF8Op(Float8E4M3FN, Float8E4M3FN, Float32, (64, 64, 32), SMEM, MN, K), "A is K-major"),
        (lambda: F16(Float16, Float32, (64, 64, 16), RMEM, MN, K), "A in registers is K-major"),
        (lambda: warpgroup.MmaI8Op(Int8, Int8, Int32, (64, 40, 32)), "wgmma has no N = 40 for s8"),
        (lambda: sm90.make_trivial_tiled_mma(Float16, Int8, K, K, Float32, (1, 1, 1), (64, 64)), "no wgmma of"),
        (lambda: sm90.get_smem_layout_atom(ROWS, Float16, 12), "12 elements of Float16 are no multiple of 16 bytes"),
    ),
)
def test_what_there_is_no_instruction_for_is_refused(make, message):
    with pytest.raises(CompileError) as caught:
        make()
    assert message in str(caught.value)


def test_a_fence_that_is_missing_is_found_by_the_emulator():
    @cute.kernel
    def kernel(d: cute.Tensor, mma: cute.TiledMma):
        layout = sm90.make_smem_layout(Float16, ROWS, (64, 16))
        tile = cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, layout.inner)
        part = mma.get_slice(arch.thread_idx()[0])
        tile[arch.thread_idx()[0]] = Float16(1)
        arch.sync_threads()
        sums = cute.make_rmem_tensor(mma.partition_shape_C((64, 64)), Float32)
        mma.set(ACCUMULATE, False)
        cute.gemm(mma, sums, part.partition_A(tile), part.partition_B(tile), sums)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(sums, part.partition_C(d))

    @cute.jit
    def host(d: cute.Tensor):
        kernel(d, cute.make_tiled_mma(F16(Float16, Float32, (64, 64, 16)))).launch(grid=1, block=128)

    d = np.zeros((64, 64), np.float32)
    with pytest.raises(EmulationError, match=r"wgmma.*fence|proxy") as caught:
        cute.compile(host, cute.runtime.from_dlpack(d))(cute.runtime.from_dlpack(d))
    assert "test_warpgroup.py" in str(caught.value)


def test_a_long_loop_over_the_elements_of_an_accumulator():
    got, exact = _multiply(F16(Float16, Float32, (64, 256, 16)), (64, 256, 32), (np.float16,) * 2, loop=True)
    np.testing.assert_array_equal(got, exact)
