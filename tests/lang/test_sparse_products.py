"""Sparse products of a warpgroup: A holds half its elements along K, words say which."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import (
    ArgumentError,
    BFloat16,
    CompileError,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Int32,
    TFloat32,
    Uint8,
    Uint32,
)
from tilewright.cute.nvgpu import warpgroup
from tilewright.targets.nvidia.toolkit.assemble import assemble
from tilewright.utils import LayoutEnum, sm90
from tilewright.utils.sparse import compress

arch = cute.arch
ROWS, REGISTERS = LayoutEnum.ROW_MAJOR, warpgroup.OperandSource.RMEM
NUMPY = {
    Float16: np.float16, BFloat16: ml_dtypes.bfloat16, Float32: np.float32, TFloat32: np.float32, Int8: np.int8,
    Uint8: np.uint8, Int32: np.int32, Float8E4M3FN: ml_dtypes.float8_e4m3fn, Float8E5M2: ml_dtypes.float8_e5m2,
}  # fmt: skip


class Sparse:
    """C (M, N) = A (M, K) · B (N, K) by one warpgroup, from numbers (M, K / 2) and words of A."""

    def __init__(self, op, tile, wrong=""):
        self.op, self.tile, self.wrong = op, tile, wrong

    @cute.jit
    def __call__(self, a: cute.Tensor, metadata: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        self.kernel(a, metadata, b, c, cute.make_tiled_mma(self.op)).launch(grid=1, block=128)

    @cute.jit
    def shared(self, source: cute.Tensor, dtype: cutlass.Constexpr, extents: cutlass.Constexpr):
        """A tile of shared memory with what all threads copy there."""
        layout = sm90.make_smem_layout(dtype, ROWS, extents)
        tile = cutlass.utils.SmemAllocator().allocate_tensor(dtype, layout.outer, 1024, layout.inner)
        for place in cutlass.range(arch.thread_idx()[0], extents[0] * extents[1], 128):
            tile[place // extents[1], place % extents[1]] = source[place // extents[1], place % extents[1]]
        return tile

    @cute.kernel
    def kernel(self, a: cute.Tensor, metadata: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
        m, n, k = self.tile
        thread = arch.thread_idx()[0]
        part = mma.get_slice(thread)
        right = mma.make_fragment_B(part.partition_B(self.shared(b, self.op.b_dtype, (n, k))))
        if cutlass.const_expr(self.op.a_src is REGISTERS):
            left = mma.make_fragment_A(part.partition_A(a))
            cute.autovec_copy(part.partition_A(a), left)
        else:
            left = mma.make_fragment_A(part.partition_A(self.shared(a, self.op.a_dtype, (m, k // 2))))
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        steps = cute.size(right, mode=[2])
        words = cute.make_rmem_tensor((m // 64, steps), Uint32)
        for row in cutlass.range_constexpr(m // 64):
            for step in cutlass.range_constexpr(steps):
                words[row, step] = metadata[row, step * metadata.shape[1] // steps, thread]
        sums = cute.make_rmem_tensor(mma.partition_shape_C((m, n)), self.op.acc_dtype)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        warpgroup.fence()
        for step in cutlass.range_constexpr(steps):
            taken = left[None, None, step]
            given = {
                "": (taken, words[None, step]), "alone": taken, "all": (taken, words), "float": (taken, taken),
            }[self.wrong]  # fmt: skip
            cute.gemm(mma, sums, given, right[None, None, step], sums)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(sums, part.partition_C(c))


def _dense(rows, columns, dtype, rng):
    """Small integers, of which half may be other than zero."""
    size = 2 if np.dtype(dtype).itemsize == 4 else 4
    kept = np.argsort(rng.random((rows, columns // size, size)), axis=2) < size // 2
    return np.where(kept.reshape(rows, columns), rng.integers(-3, 4, (rows, columns)), 0).astype(dtype)


def _compiled(op, tile, wrong=""):
    rng = np.random.default_rng(0)
    m, n, k = tile
    dense = _dense(m, k, NUMPY[op.a_dtype], rng)
    b = rng.integers(0 if op.b_dtype is Uint8 else -3, 4, (n, k)).astype(NUMPY[op.b_dtype])
    numbers, words = compress(dense)
    c = np.zeros((m, n), NUMPY[op.acc_dtype])
    given = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (numbers, words, b, c)]
    for tensor, dtype in ((given[0], op.a_dtype), (given[2], op.b_dtype)):
        if dtype is TFloat32:
            tensor.element_type = TFloat32
    executor = cute.compile(Sparse(op, tile, wrong), *given, target="emu")
    executor(*given)
    return executor, c, dense.astype(np.float64) @ b.astype(np.float64).T


F16 = warpgroup.MmaF16BF16Op


@pytest.mark.parametrize(
    ("op", "tile"),
    [
        (F16(Float16, Float32, (64, 32, 32), sparse=True), (64, 32, 64)),
        (F16(Float16, Float32, (64, 24, 32), sparse=True), (128, 48, 128)),
        (F16(BFloat16, Float32, (64, 32, 32), REGISTERS, sparse=True), (64, 32, 64)),
        (F16(Float16, Float16, (64, 32, 32), sparse=True), (64, 32, 32)),
        (warpgroup.MmaTF32Op((64, 32, 16), sparse=True), (64, 32, 32)),
        (
            warpgroup.MmaF8Op(Float8E4M3FN, Float8E5M2, Float32, (64, 32, 64), sparse=True),
            (64, 32, 128),
        ),
        (warpgroup.MmaI8Op(Int8, Uint8, Int32, (64, 32, 64), sparse=True), (64, 64, 64)),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else value.text(),
)  # fmt: skip
def test_sparse_products(op, tile):
    executor, c, wanted = _compiled(op, tile)
    np.testing.assert_array_equal(c.astype(np.float64), wanted)
    assert assemble(executor.stages["ptx"], "sm_90a").log == ""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("alone", "a sparse A comes with its words"),
        ("all", "the words of a sparse A are a register tensor of Uint32, one for each instruction along M and K"),
        ("float", "the words of a sparse A are a register tensor of Uint32"),
    ],
)
def test_words_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(CompileError, match=message) as caught:
        _compiled(F16(Float16, Float32, (64, 32, 32), sparse=True), (64, 32, 64), wrong)
    assert caught.value.location.file == __file__


def test_words_of_a_dense_product_are_refused():
    with pytest.raises(CompileError, match="A of this product is not sparse"):
        _compiled(F16(Float16, Float32, (64, 32, 16), REGISTERS), (64, 32, 32))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F16(Float16, Float32, (64, 32, 16), sparse=True), "its shape is (64, 32, 32)"),
        (lambda: warpgroup.MmaTF32Op((64, 32, 8), sparse=True), "its shape is (64, 32, 16)"),
    ],
)
def test_shapes_that_there_are_not(make, message):
    with pytest.raises(CompileError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_what_is_compressed_is_all_there(dtype):
    """Fewer numbers than there is room for, and rows of zeros, too; in the order of the row."""
    dense = _dense(64, 128, dtype, np.random.default_rng(1))
    dense[3] = 0
    dense[5, 7:] = 0
    numbers, words = compress(dense)
    assert numbers.shape == (64, 64) and numbers.dtype == dense.dtype
    assert words.shape == (1, 128 * dense.itemsize // 64, 128) and words.dtype == np.uint32
    for row in range(64):
        assert [x for x in numbers[row] if x] == [x for x in dense[row] if x]


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        (np.ones((64, 64), np.float16), "more than 2 of 4 elements are not zero"),
        (np.ones((64, 64), np.float32), "more than 1 of 2 elements are not zero"),
        (np.zeros((60, 64), np.float16), "a sparse A is a matrix of M, a multiple of 64"),
        (np.zeros((64, 40), np.float16), "K, a multiple of 64 bytes"),
        (np.zeros((64, 64), np.float64), "a sparse A is a matrix"),
        (np.zeros(64, np.float16), "a sparse A is a matrix"),
    ],
)
def test_matrices_that_are_not_sparse(dense, message):
    with pytest.raises(ArgumentError, match=message):
        compress(dense)
