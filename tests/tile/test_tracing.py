"""Block-level code as it is traced: the operations of stage `cute`, and what the front end refuses."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tests.backends.kernels  # noqa: F401  registers the back end that keeps stage `cute`
import tilewright.cute as cute
import tilewright.tile as tile
from tests.tile.programs import gemm, softmax
from tilewright import Boolean, CompileError, Constexpr, Float16, Float32, Int32


def text(function, *arguments):
    """Stage `cute` of a function."""
    return cute.compile(function, *arguments, target="toy").stages["cute"]


def traced(body, *arrays):
    """Stage `cute` of a kernel whose body is `body(*tensors)`."""

    @cute.kernel
    def kernel(tensors: list):
        body(*tensors)

    @cute.jit
    def launch(*tensors):
        kernel(list(tensors)).launch(grid=(1, 1, 1), block=(128, 1, 1))

    return text(launch, *arrays)


def refused(body, *arrays):
    """The error that a kernel body raises while it is traced."""
    with pytest.raises(CompileError) as caught:
        traced(body, *arrays)
    assert caught.value.location is not None and caught.value.location.file == __file__
    return str(caught.value)


def matrix(dtype=np.float32, shape=(64, 64)):
    return np.zeros(shape, dtype)


def test_a_product_carries_its_accumulator_through_the_loop():
    made = text(gemm, *(matrix(ml_dtypes.bfloat16) for _ in range(3)))
    assert "iter_args(%arg4 = %cst) -> (tensor<32x32xf32>)" in made
    assert made.count('"cute.tile_load"') == 2 and made.count('"cute.tile_dot"') == 1
    assert "arith.truncf" in made and "tensor<32x32xbf16>, !cute.tensor" in made


def test_a_fold_keeps_its_mode_and_broadcasts_back():
    made = text(softmax, matrix(shape=(64, 100)), matrix(shape=(64, 100)))
    assert 'axis = 1 : i32, kind = "maxf"' in made and "tensor<32x128xf32>) -> tensor<32x1xf32>" in made
    assert made.count('"cute.tile_broadcast"') == 2
    assert "pad = 0xFFF0000000000000 : f64" in made


def test_the_shape_of_a_launch_is_a_parameter_of_compile_time():
    @cute.jit
    def wide(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        gemm(a, b, c, 64, 128, 16)

    made = text(wide, *(matrix(ml_dtypes.bfloat16) for _ in range(3)))
    assert "tensor<64x16xbf16>, tensor<16x128xbf16>, tensor<64x128xf32>" in made


def test_operators_and_functions():
    def body(x, y):
        a, b = (tile.load(item, (0, 0), (8, 16)) for item in (x, y))
        c = 2 - abs(-a) * b / 3.0
        c = tile.where(c > b, tile.maximum(a, 0), tile.minimum(b, 1.5)) + tile.exp(c)
        tile.store(y, (0, 0), c)

    made = traced(body, matrix(), matrix())
    for name in ("negf", "mulf", "divf", "subf", "cmpf ogt", "maxnumf", "minnumf", "select", "addf"):
        assert f"arith.{name}" in made
    assert "math.absf" in made and "math.exp" in made
    assert "dense<3.000000e+00> : tensor<8x16xf32>" in made


def test_numbers_take_the_type_of_the_elements():
    def body(x, n):
        a = tile.load(x, (0, 0), (8, 8))
        assert (a + 1).dtype is Float16 and (a * 0.5).dtype is Float16
        assert (a > 1).dtype is Boolean and a.to(Int32).dtype is Int32
        assert (a.to(Int32) / 2).dtype is Float32
        assert (a + Float32(1)).dtype is Float32 and a.shape == (8, 8) and str(a) == "tile<8x8xFloat16>"
        count = tile.load(n, (0, 0), (8, 8))
        assert tile.sum(count > 0, 1).dtype is Int32 and tile.sum(count > 0, -2).shape == (1, 8)

    traced(body, matrix(np.float16), matrix(np.int32))


def test_a_number_of_run_time_fills_a_tile():
    def body(x):
        tile.store(x, (0, 0), tile.full((8, 8), x[0, 0], Float32))

    assert '"cute.tile_full"' in traced(body, matrix())


@cute.kernel
def zero_rows_kernel(x: cute.Tensor):
    for work in tile.persistent(x.shape[0]):
        tile.store(x, (work, 0), tile.zeros((1, 64)))


@cute.jit
def zero_rows(x: cute.Tensor):
    zero_rows_kernel(x).launch(grid=(4, 1, 1), block=(128, 1, 1))


def test_the_loop_of_a_persistent_block():
    made = text(zero_rows, matrix())
    names = {line.split(" = ")[-1]: line.split()[0] for line in made.splitlines() if "cute.index" in line}
    (own,), (step,) = ([names[key] for key in names if word in key] for word in ("block_idx.x", "grid_dim.x"))
    (product,) = re.findall(rf"(%\d+) = arith.muli %arg1, {step} : i32", made)
    assert f"arith.addi {own}, {product} : i32" in made


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: tile.load(x, (0,), (8, 8)), "tile.load needs a coordinate and a tile of the tensor's rank"),
        (lambda x: tile.load(x, (0, 0), (8,)), "tile.load needs a coordinate and a tile of the tensor's rank"),
        (lambda x: tile.load(x, (0, 0.5), (8, 8)), "a coordinate is of integers, not Float32"),
        (lambda x: tile.load(x, (0, 0), (8, 0)), "needs a shape of positive ints that are known while compiling"),
        (lambda x: tile.load(x, (0, 0), (8, x.shape[0])), "needs a shape of positive ints"),
        (lambda x: tile.load(3, (0, 0), (8, 8)), "tile.load takes a tensor of memory, not int"),
        (lambda x: tile.load(x, (0, 0), (8, 8), pad=x[0]), "pad is a number known while compiling"),
        (lambda x: tile.store(x, (0, 0), 3.0), "tile.store takes a tile, not float"),
        (
            lambda x: tile.store(x, (0, 0), tile.zeros((8, 8), Int32)),
            "a tile of Int32 is stored into a tensor of Float32",
        ),
        (lambda x: tile.zeros((8, 8)) + tile.zeros((8, 4)), "the shapes of tiles do not broadcast"),
        (lambda x: tile.zeros((8, 8)).broadcast_to((8, 16)), "the shapes of tiles do not broadcast"),
        (lambda x: tile.zeros((8, 8)) + tile.zeros((8,)), "tiles have one rank"),
        (lambda x: tile.sum(tile.zeros((8, 8)), 2), "there is no axis 2"),
        (lambda x: tile.max(3, 0), "tile.max takes a tile, not int"),
        (lambda x: tile.exp(x), "tile.exp takes a tile, not"),
        (lambda x: tile.maximum(tile.zeros((8, 8)), "a"), "tile.maximum of a tile and str"),
        (lambda x: tile.zeros((8, 8)) & 1.5, "`and` on tiles of Float32 and Float32"),
        (lambda x: bool(tile.zeros((8, 8))), "a tile has no single truth value"),
        (
            lambda x: tile.dot(tile.zeros((8, 4)), tile.zeros((8, 4))),
            "tile.dot takes \\(M, K\\) and \\(K, N\\) of one type",
        ),
        (
            lambda x: tile.dot(*(tile.zeros((8, 8), Float16),) * 2, tile.zeros((8, 8), Float16)),
            "the accumulator of Float16 is Float32",
        ),
    ],
)
def test_what_it_refuses(body, message):
    assert re.search(message, refused(body, matrix()))


def test_tiles_belong_into_kernels():
    @cute.jit
    def host(x: cute.Tensor, n: Constexpr):
        tile.zeros((n, n))

    with pytest.raises(CompileError, match=r"tile.full is device code, and this function is host code"):
        text(host, matrix(), 8)
