"""Block-level programs on the emulator against NumPy: masks, arithmetic, folds, products, loops."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
import tilewright.tile as tile
from tests.tile.kernels import alone, mapped
from tilewright import Boolean, CompileError, Constexpr, Float16, Float32, Int32
from tilewright.emulate import observe

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tile"


def example(name):
    spec = importlib.util.spec_from_file_location(f"tile_example_{name}", EXAMPLES / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def integers(shape, dtype=np.float32, low=-9, high=10, seed=0):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def aligned(array):
    """The array at an address that is a multiple of 16, with that fact and its layout known while compiling."""
    raw = np.zeros(array.nbytes + 16, np.uint8)
    start = -raw.ctypes.data % 16
    made = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made, cute.runtime.from_dlpack(made, assumed_align=16)


def run(function, *arguments):
    cute.compile(function, *arguments, target="emu")(*[a for a in arguments if isinstance(a, np.ndarray | int | float)])


def compiled(function, *arguments, **options):
    return cute.compile(function, *arguments, target="emu", **options)


# Loads, stores, masks.


@pytest.mark.parametrize("shape", [(16, 32), (32, 64), (1, 1), (5, 7), (17, 33), (40, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_what_is_stored_is_what_was_loaded(shape, dtype):
    x = integers(shape, dtype)
    y = np.full((shape[0] + 3, shape[1] + 3), 77, dtype)
    inner = y[: shape[0], : shape[1]]
    compiled(mapped, x, inner, lambda t: t)(x, inner)
    assert np.array_equal(inner, x)
    assert (y[shape[0] :] == 77).all() and (y[:, shape[1] :] == 77).all()


@pytest.mark.parametrize("shape", [(16, 32), (48, 96), (17, 36), (16, 100)])
@pytest.mark.parametrize("columns_first", [False, True])
def test_vectors_where_layout_and_alignment_allow(shape, columns_first):
    x, seen = aligned(integers(shape[::-1] if columns_first else shape))
    y, target = aligned(np.zeros_like(x))
    if columns_first:
        x, y = x.T, y.T
        seen, target = cute.runtime.from_dlpack(x, assumed_align=16), cute.runtime.from_dlpack(y, assumed_align=16)
    made = compiled(mapped, seen, target, lambda t: t + 1.0)
    made(seen, target)
    assert np.array_equal(y, x + 1)
    ptx = made.stages["ptx"]
    contiguous = x.shape[0] if columns_first else x.shape[1]
    if contiguous % 4 == 0:
        assert "ld.global.v4.b32" in ptx and "st.global.v4.b32" in ptx and "ld.global.b32" not in ptx


@pytest.mark.parametrize(("shift", "columns", "wide"), [(0, 64, True), (4, 64, False), (0, 66, False), (0, 96, True)])
def test_vectors_where_address_and_strides_turn_out_to_allow_them(shift, columns, wide):
    """Nothing is known while compiling; the kernel looks."""
    raw = np.zeros(4 * 32 * columns + 64, np.uint8)
    start = -raw.ctypes.data % 16 + shift
    x = raw[start : start + 4 * 32 * columns].view(np.float32).reshape(32, columns)
    x[...] = integers(x.shape)
    y = np.zeros((32, columns), np.float32)
    made = compiled(mapped, x, y, lambda t: t + 1.0)
    assert "ld.global.v4.b32" in made.stages["ptx"] and "ld.global.b32" in made.stages["ptx"]
    with observe(counters=True) as reports:
        made(x, y)
    assert np.array_equal(y, x + 1)
    loads = [line for line in reports[0].traffic if line.instruction.startswith("ld.global.v4")]
    assert bool(loads) == wide


def test_padding():
    x = integers((3, 5))
    for pad, dtype in ((0, np.float32), (-float("inf"), np.float32), (7, np.int32)):
        x, y = integers((3, 5), dtype), np.zeros((4, 8), dtype)

        @cute.kernel
        def kernel(x: cute.Tensor, y: cute.Tensor, pad: Constexpr):
            tile.store(y, (0, 0), tile.load(x, (0, 0), (4, 8), pad=pad))

        @cute.jit
        def padded(x: cute.Tensor, y: cute.Tensor, pad: Constexpr):
            kernel(x, y, pad).launch(grid=1, block=32)

        compiled(padded, x, y, pad)(x, y)
        wanted = np.full((4, 8), pad, dtype)
        wanted[:3, :5] = x
        assert np.array_equal(y, wanted)


def test_tiles_wholly_outside_the_tensor():
    x, y = integers((8, 8)), np.zeros((8, 8), np.float32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, at: Int32):
        tile.store(y, (0, 0), tile.load(x, (at, 0), (8, 8), pad=3))
        tile.store(y, (at, 0), tile.full((8, 8), 9, Float32))

    @cute.jit
    def beyond(x: cute.Tensor, y: cute.Tensor, at: Int32):
        kernel(x, y, at).launch(grid=1, block=32)

    compiled(beyond, x, y, 1)(x, y, 5)
    assert (y == 3).all()


# Arithmetic.


@pytest.mark.parametrize("threads", [32, 128, 256])
def test_arithmetic_and_choices(threads):
    x = np.random.default_rng(1).standard_normal((33, 50)).astype(np.float32)
    y = np.zeros_like(x)
    compiled(mapped, x, y, lambda t: tile.where(t > 0.5, t * 2 - 1, tile.maximum(-t, 0.25)), (16, 32), threads)(x, y)
    assert np.array_equal(y, np.where(x > 0.5, x * 2 - 1, np.maximum(-x, np.float32(0.25))))


def test_approximate_functions_on_request():
    x = np.random.default_rng(1).standard_normal((16, 32)).astype(np.float32)
    y = np.zeros_like(x)
    for fast in (False, True):
        made = compiled(mapped, x, y, lambda t: tile.exp(t, fastmath=fast))  # noqa: B023
        made(x, y)
        exact = np.exp(x.astype(np.float64))
        assert (np.abs(y - exact) <= (3e-7 if fast else 1.2e-7) * exact).all()
    assert "fma" not in made.stages["ptx"] and "ex2.approx" in made.stages["ptx"]


def test_conversions():
    x = integers((16, 32), np.int32, -300, 300)
    y = np.zeros(x.shape, np.float16)
    compiled(mapped, x, y, lambda t: t.to(Float16) + 1)(x, y)
    assert np.array_equal(y, (x + 1).astype(np.float16))
    narrow = np.zeros(x.shape, np.int8)
    compiled(mapped, x, narrow, lambda t: t.to(cutlass.Int8))(x, narrow)
    assert np.array_equal(narrow, x.astype(np.int8))


def test_numbers_of_run_time_and_numbers_that_several_tiles_share():
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, factor: Float32):
        zero = tile.zeros((16, 64), Float32)
        factors = tile.full((16, 64), factor, Float32)
        values = tile.load(x, (0, 0), (16, 64))
        tile.store(y, (0, 0), (values + zero) * factors)
        tile.store(z, (0, 0), tile.sum(zero + factors, 1))

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, factor: Float32):
        kernel(x, y, z, factor).launch(grid=1, block=128)

    x, y, z = integers((16, 64)), np.zeros((16, 64), np.float32), np.zeros((16, 1), np.float32)
    compiled(host, x, y, z, 1.0)(x, y, z, 3.0)
    assert np.array_equal(y, 3 * x) and (z == 192).all()


# Folds and broadcasts.

SHAPES = [(16, 32), (1, 1024), (128, 8), (2, 256), (64, 64), (32, 1)]


@pytest.mark.parametrize(("shape", "threads"), [(shape, 128) for shape in SHAPES] + [((16, 32), 32), ((8, 64), 64)])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_and_greatest(shape, threads, axis):
    x = integers(shape)
    y = np.zeros([1 if mode == axis else extent for mode, extent in enumerate(shape)], np.float32)
    compiled(alone, x, y, lambda t: tile.sum(t, axis), shape, threads)(x, y)
    assert np.array_equal(y, x.sum(axis, keepdims=True))
    compiled(alone, x, y, lambda t: tile.max(t, axis), shape, threads)(x, y)
    assert np.array_equal(y, x.max(axis, keepdims=True))


def test_sums_of_integers_and_of_truth():
    x = integers((16, 64), np.int32, -(1 << 20), 1 << 20)
    y = np.zeros((16, 1), np.int32)
    compiled(alone, x, y, lambda t: tile.sum(t, 1), (16, 64))(x, y)
    assert np.array_equal(y, x.sum(1, keepdims=True))
    compiled(alone, x, y, lambda t: tile.sum(t > 0, 1), (16, 64))(x, y)
    assert np.array_equal(y, (x > 0).sum(1, keepdims=True))


def test_both_axes_of_one_tile_meet_again():
    """A row and a column of results are repeated to one tile, and to another shape."""
    x = integers((32, 64))
    y = np.zeros_like(x)
    compiled(alone, x, y, lambda t: t - tile.sum(t, 1) + tile.max(t, 0), (32, 64))(x, y)
    assert np.array_equal(y, x - x.sum(1, keepdims=True) + x.max(0, keepdims=True))
    z = np.zeros((1, 1), np.float32)
    compiled(alone, x, z, lambda t: tile.sum(tile.sum(t, 1), 0), (32, 64))(x, z)
    assert z[0, 0] == x.sum()


def test_a_result_in_another_distribution():
    """Columns of a tall tile are added to a wide one: they come through shared memory."""

    @cute.kernel
    def kernel(x: cute.Tensor, wide: cute.Tensor, y: cute.Tensor):
        sums = tile.sum(tile.load(x, (0, 0), (64, 8)), 1)
        tile.store(y, (0, 0), tile.load(wide, (0, 0), (64, 128)) + sums)

    @cute.jit
    def host(x: cute.Tensor, wide: cute.Tensor, y: cute.Tensor):
        kernel(x, wide, y).launch(grid=1, block=128)

    x, wide, y = integers((64, 8)), integers((64, 128), seed=1), np.zeros((64, 128), np.float32)
    compiled(host, x, wide, y)(x, wide, y)
    assert np.array_equal(y, wide + x.sum(1, keepdims=True))


def test_tiles_of_rank_one_and_three():
    @cute.kernel
    def kernel(v: cute.Tensor, box: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        tile.store(y, 0, tile.load(v, 0, 64) * 2.0)
        tile.store(z, (0, 0, 0), tile.sum(tile.load(box, (0, 0, 0), (4, 8, 16)), 1))

    @cute.jit
    def host(v: cute.Tensor, box: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        kernel(v, box, y, z).launch(grid=1, block=64)

    v, box = integers(50), integers((3, 8, 16))
    y, z = np.zeros(50, np.float32), np.zeros((3, 1, 16), np.float32)
    compiled(host, v, box, y, z)(v, box, y, z)
    assert np.array_equal(y, 2 * v) and np.array_equal(z, box.sum(1, keepdims=True))


# Control flow.


def test_tiles_go_through_loops_and_branches():
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, count: Int32):
        total = tile.zeros((16, 32), Float32)
        most = tile.full((16, 1), -1000.0, Float32)
        for step in range(count):
            values = tile.load(x, (0, step), (16, 32))
            if step % 2 == 0:
                total = total + values
            else:
                total = total - values
            most = tile.maximum(most, tile.max(values, 1))
        left = count
        while left > 1:
            total = total * 2.0
            left = left - 1
        tile.store(y, (0, 0), total + most)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, count: Int32):
        kernel(x, y, count).launch(grid=1, block=128)

    x, y = integers((16, 160)), np.zeros((16, 32), np.float32)
    made = compiled(host, x, y, 1)
    for count in (1, 3, 5):
        made(x, y, count)
        parts = [x[:, 32 * n : 32 * n + 32] for n in range(count)]
        total = sum(part * (-1) ** n for n, part in enumerate(parts)) * 2.0 ** (count - 1)
        assert np.array_equal(y, total + np.max(np.concatenate(parts, 1), 1, keepdims=True))


def test_a_persistent_block():
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        for work in tile.persistent(cute.ceil_div(x.shape[0], 8)):
            tile.store(y, (work, 0), tile.sum(tile.load(x, (work, 0), (8, 64)), 1))

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=3, block=64)

    x, y = integers((75, 60)), np.zeros((75, 1), np.float32)
    compiled(host, x, y)(x, y)
    assert np.array_equal(y, x.sum(1, keepdims=True))


# Products.


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, t: Constexpr, k: Constexpr, sums: Constexpr):
    row, column, _ = cute.arch.block_idx()
    acc = tile.zeros((t, t), sums)
    for step in range(cute.ceil_div(a.shape[1], k)):
        acc = tile.dot(tile.load(a, (row, step), (t, k)), tile.load(b, (step, column), (k, t)), acc)
    tile.store(c, (row, column), acc)


@cute.jit
def product(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, t: Constexpr, k: Constexpr, sums: Constexpr, threads: Constexpr
):
    grid = (cute.ceil_div(c.shape[0], t), cute.ceil_div(c.shape[1], t), 1)
    product_kernel(a, b, c, t, k, sums).launch(grid=grid, block=(threads, 1, 1))


FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32]


@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.float8_e4m3fn, np.int8, np.int32])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_products_of_every_type_and_order(dtype, transposed):
    a, b = integers((40, 50), dtype, -3, 4), integers((50, 33), dtype, -3, 4, seed=1)
    if "a" in transposed:
        a = np.ascontiguousarray(a.T).T
    if "b" in transposed:
        b = np.ascontiguousarray(b.T).T
    sums = Int32 if np.issubdtype(dtype, np.integer) else Float32
    c = np.zeros((40, 33), np.int32 if sums is Int32 else np.float32)
    compiled(product, a, b, c, 32, 32, sums, 128)(a, b, c)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(("t", "k", "threads"), [(16, 16, 32), (16, 16, 256), (32, 32, 64), (64, 16, 128)])
def test_products_of_every_size(t, k, threads):
    a, b, c = integers((70, 40), np.float16), integers((40, 64), np.float16, seed=1), np.zeros((70, 64), np.float32)
    compiled(product, a, b, c, t, k, Float32, threads)(a, b, c)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (70, 90, 160), (33, 8, 24), (64, 64, 2), (40, 50, 333)])
@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_operands_are_copied_ahead(m, n, k, dtype):
    """Stages of cp.async, or loads where the sizes turn out not to fit; the emulator checks that none is read early."""
    a, b = integers((m, k), dtype, -3, 4), np.ascontiguousarray(integers((k, n), dtype, -3, 4, seed=1).T).T
    sums = Int32 if dtype is np.int8 else Float32
    c = np.zeros((m, n), np.int32 if dtype is np.int8 else np.float32)
    made = compiled(product, a, b, c, 32, 32, sums, 128)
    assert "cp.async.wait_group" in made.stages["ptx"]
    for seed in (0, 5):
        c[...] = -1
        with observe(seed=seed):
            made(a, b, c)
        assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


def test_stages_are_filled_without_questions_where_everything_is_known():
    (a, left), (b, right) = aligned(integers((64, 96), np.float16)), aligned(integers((96, 64), np.float16, seed=1))
    c = np.zeros((64, 64), np.float32)
    made = compiled(product, left, right, c, 32, 32, Float32, 128)
    made(left, right, c)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert "ld.global" not in made.stages["ptx"] and "cp.async.cg.shared.global" in made.stages["ptx"]


def test_stages_of_a_persistent_block():
    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        for work in tile.persistent(cute.ceil_div(a.shape[0], 32)):
            acc = tile.zeros((32, 32), Float32)
            for step in range(cute.ceil_div(a.shape[1], 32)):
                acc = tile.dot(tile.load(a, (work, step), (32, 32)), tile.load(b, (step, 0), (32, 32)), acc)
            tile.store(c, (work, 0), acc)

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        kernel(a, b, c).launch(grid=2, block=128)

    a, b, c = integers((150, 64), np.float16), integers((64, 32), np.float16, seed=1), np.zeros((150, 32), np.float32)
    made = compiled(host, a, b, c)
    made(a, b, c)
    assert np.array_equal(c, a.astype(np.float64) @ b) and "cp.async" in made.stages["ptx"]


def test_loops_that_write_memory_or_compute_an_operand_copy_nothing_ahead():
    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, writes: Constexpr):
        acc = tile.zeros((32, 32), Float32)
        for step in range(cute.ceil_div(a.shape[1], 32)):
            left = tile.load(a, (0, step), (32, 32))
            if cutlass.const_expr(writes):
                tile.store(c, (step, 0), acc)
            else:
                left = left + left
            acc = tile.dot(left, tile.load(b, (step, 0), (32, 32)), acc)
        tile.store(c, (cute.ceil_div(a.shape[1], 32), 0), acc)

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, writes: Constexpr):
        kernel(a, b, c, writes).launch(grid=1, block=128)

    a, b = integers((32, 64), np.float16), integers((64, 32), np.float16, seed=1)
    for writes in (True, False):
        c = np.zeros((96, 32), np.float32)
        made = compiled(host, a, b, c, writes)
        made(a, b, c)
        assert np.array_equal(c[64:], (1 if writes else 2) * (a.astype(np.float64) @ b))
        assert "cp.async" not in made.stages["ptx"]


def test_a_product_of_a_computed_tile_and_what_follows_it():
    """Attention's pattern: a product, its softmax by rows, another product."""

    @cute.kernel
    def kernel(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor):
        scores = tile.dot(tile.load(q, (0, 0), (32, 32)), tile.load(k, (0, 0), (32, 64)))
        powers = tile.exp(scores - tile.max(scores, 1))
        weights = (powers / tile.sum(powers, 1)).to(Float16)
        tile.store(out, (0, 0), tile.dot(weights, tile.load(v, (0, 0), (64, 32))))

    @cute.jit
    def host(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor):
        kernel(q, k, v, out).launch(grid=1, block=128)

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 32), (32, 64), (64, 32)))
    out = np.zeros((32, 32), np.float32)
    compiled(host, q, k, v, out)(q, k, v, out)
    scores = q.astype(np.float64) @ k
    powers = np.exp(scores - scores.max(1, keepdims=True))
    assert np.abs(out - (powers / powers.sum(1, keepdims=True)) @ v).max() < 4e-3  # weights are rounded to Float16


# The examples, and files of them.


@pytest.mark.parametrize("shape", [(33, 41)])
def test_examples(shape):
    assert example("elementwise").check(shape) < 2e-6
    assert example("row_sum").check(shape)
    assert example("softmax").check(shape) < 1e-6
    assert example("layer_norm").check(shape) < 1e-5
    assert example("gemm").check(*shape, 50)


@pytest.mark.parametrize(("rows", "threads"), [(1, 128), (4, 128), (2, 32), (2, 256)])
def test_rows_and_threads_are_free(rows, threads):
    assert example("softmax").check((13, 200), rows=rows, columns=256, threads=threads) < 1e-6
    assert example("layer_norm").check((13, 200), rows=rows, columns=256, threads=threads) < 1e-5


# The pass.


def test_the_pass_stands_first_and_leaves_other_kernels_alone():
    x, y = integers((16, 32)), np.zeros((16, 32), np.float32)
    made = compiled(mapped, x, y, lambda t: t)
    assert made.pipeline.startswith("builtin.module(expand-tiles,vectorize-loops,promote-register-tensors,")
    assert "tensor<" not in made.stages["cute"].replace("cute.tensor<", "") and "tile_load" not in made.stages["cute"]
    seen = []

    class Look(cutlass.Pass):
        name = "look"

        def run(self, module):
            seen.append(str(module))

    compiled(mapped, x, y, lambda t: t, passes=[cutlass.before("expand-tiles", Look())])
    assert "cute.tile_load" in seen[0] and "tensor<16x32xf32>" in seen[0]


def test_the_text_does_not_vary():
    x, y = integers((50, 77)), np.zeros((50, 77), np.float32)
    texts = {compiled(example("softmax").main, x, y).stages["cute"] for _ in range(2)}
    assert len(texts) == 1


# What cannot be is refused, at the user's line.


def test_extents_are_powers_of_two():
    x, y = integers((16, 32)), np.zeros((16, 32), np.float32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        tile.store(y, (0, 0), tile.load(x, (0, 0), (16, 24)))  # here

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=128)

    error = refused_here(kernel, lambda: compiled(host, x, y), "a tile of shape (16, 24)")
    assert "powers of two" in error.hint


def refused_here(kernel, action, words):
    """The error, which names the line of the kernel that is marked."""
    with pytest.raises(CompileError) as caught:
        action()
    code = kernel.function.__code__
    lines = Path(code.co_filename).read_text().splitlines()
    marked = next(n for n in range(code.co_firstlineno, len(lines) + 1) if "# here" in lines[n - 1])
    assert words in str(caught.value)
    assert caught.value.location is not None and caught.value.location.line == marked
    return caught.value


@pytest.mark.parametrize("threads", [96, 16])
def test_threads_of_a_block(threads):
    x, y = integers((16, 32)), np.zeros((16, 32), np.float32)
    error = refused_by(lambda: compiled(mapped, x, y, lambda t: t, (16, 32), threads))
    assert f"blocks of {threads} threads" in str(error) and "power of two from 32 to 1024" in error.hint


def refused_by(action):
    with pytest.raises(CompileError) as caught:
        action()
    return caught.value


def test_a_block_of_run_time():
    @cute.kernel
    def kernel(x: cute.Tensor):
        tile.store(x, (0, 0), tile.load(x, (0, 0), (16, 32)))

    @cute.jit
    def host(x: cute.Tensor, threads: Int32):
        kernel(x).launch(grid=1, block=(threads, 1, 1))

    error = refused_by(lambda: compiled(host, integers((16, 32)), 64))
    assert "a block of run time" in str(error) and "known while compiling" in error.hint


def test_products_that_fill_no_instruction():
    a, b, c = integers((8, 16), np.float16), integers((16, 8), np.float16), np.zeros((8, 8), np.float32)

    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        left, right = tile.load(a, (0, 0), (8, 16)), tile.load(b, (0, 0), (16, 8))
        tile.store(c, (0, 0), tile.dot(left, right))  # here

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        kernel(a, b, c).launch(grid=1, block=128)

    error = refused_here(kernel, lambda: compiled(host, a, b, c), "does not fill the instructions")
    assert error.values["multiples of"] == "M 16, N 8, K 16"


def test_products_of_double_precision():
    a, b, c = integers((16, 16), np.float64), integers((16, 16), np.float64), np.zeros((16, 16), np.float32)
    error = refused_by(lambda: compiled(product, a, b, c, 16, 16, Float32, 128))
    assert "tile.dot of Float64 has no instruction here" in str(error)


def test_products_of_unsigned_elements():
    a, b, c = integers((32, 32), np.uint8, 0), integers((32, 32), np.uint8, 0), np.zeros((32, 32), np.int32)
    error = refused_by(lambda: compiled(product, a, b, c, 32, 32, Int32, 128))
    assert "tile.dot takes signed elements" in str(error) and "Int32" in error.hint


def test_tiles_that_are_too_large_for_the_threads():
    x, y = integers((16, 32)), np.zeros((16, 32), np.float32)
    error = refused_by(lambda: compiled(mapped, x, y, lambda t: t, (256, 128), 32))
    assert "gives each thread 1024 elements" in str(error) and "more threads" in error.hint


def test_booleans_are_stored_as_they_are():
    x, y = integers((16, 32)), np.zeros((16, 32), np.bool_)
    compiled(mapped, x, y, lambda t: t > 0)(x, y)
    assert np.array_equal(y, x > 0) and Boolean is not None
