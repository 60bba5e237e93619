from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
import tilewright.tile as tile
from tests.tenstorrent.programs import BF16, before, error, gemm_module, launched, random, run, zeros
from tilewright import Float32, Int32, PassError
from tilewright.tenstorrent import Tensorize, calls, trace


def test_no_value_of_a_tile_type_is_left(applied):
    _, made = applied("tensorize")
    (func,) = made.prim_funcs
    assert not [item for item in calls(func.body) if item.dtype.startswith("tensor")]
    assert not [item for item in calls(func.body) if item.op.name.startswith(("cute.tile", "math."))]
    packed = {item.args[1] for item in calls(func.body, "tt.pack")}
    written = {item.args[0] for item in calls(func.body, "tt.write_from_cb")}
    assert written <= packed


def test_a_sum_stays_in_dst():
    (func,) = Tensorize(before("tensorize", gemm_module(128))).prim_funcs
    assert len(calls(func.body, "tt.mm.mma")) == 1 and not calls(func.body, "tt.copy")
    assert [str(item.args[0]) for item in calls(func.body, "tt.pack")] == ["0", "1", "2", "3"]


A, B = random(64, 96), random(64, 96, seed=1)
X, Y = A.astype(np.float64), B.astype(np.float64)
COLUMN, ROW = random(64, 1, seed=2), random(1, 96, seed=3)


def two(function):
    """A program of two matrices."""

    def body(a, b, c):
        x, y = (tile.load(item, (0, 0), (64, 96)).to(Float32) for item in (a, b))
        tile.store(c, (0, 0), function(x, y).to(c.element_type))

    return body


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: x + y, X + Y),
        (lambda x, y: x - y, X - Y),
        (lambda x, y: x * y, X * Y),
        (lambda x, y: x / (y * y + 1.0), X / (Y * Y + 1)),
        (lambda x, y: 2.0 * x - 3.0, 2 * X - 3),
        (lambda x, y: 1.0 - x, 1 - X),
        (lambda x, y: x / 4.0, X / 4),
        (lambda x, y: -abs(x), -abs(X)),
        (lambda x, y: tile.maximum(x, y), np.maximum(X, Y)),
        (lambda x, y: tile.minimum(x, 0.5), np.minimum(X, 0.5)),
        (lambda x, y: tile.maximum(0.25, x), np.maximum(X, 0.25)),
        (lambda x, y: tile.maximum(x, 0.0) + y, np.maximum(X, 0) + Y),
        (lambda x, y: tile.exp(x), np.exp(X)),
        (lambda x, y: tile.exp2(x) + tile.tanh(y), np.exp2(X) + np.tanh(Y)),
        (lambda x, y: tile.sqrt(abs(x)) + tile.log(abs(y) + 1.0), np.sqrt(abs(X)) + np.log(abs(Y) + 1)),
        (lambda x, y: tile.rsqrt(x * x + 1.0), 1 / np.sqrt(X * X + 1)),
        (lambda x, y: tile.sin(x) * tile.cos(y), np.sin(X) * np.cos(Y)),
        (lambda x, y: x - tile.max(x, 1), X - X.max(1, keepdims=True)),
        (lambda x, y: tile.sum(x, 0) - y, X.sum(0, keepdims=True) - Y),
        (lambda x, y: x * tile.sum(tile.sum(y, 1), 0), X * Y.sum()),
        (lambda x, y: x / tile.sum(abs(x), 1), X / abs(X).sum(1, keepdims=True)),
        (lambda x, y: x, X),
        (lambda x, y: tile.zeros((64, 96)) + 7.0 * (x + y) * (x + y), 7 * (X + Y) ** 2),
    ],
)
def test_what_is_computed(function, expected):
    c = zeros(64, 96)
    run(two(function), A, B, c)
    assert error(c, expected) < 8e-3


def test_broadcast_operands():
    def body(a, column, row, c):
        x = tile.load(a, (0, 0), (64, 96)).to(Float32)
        m, n = tile.load(column, (0, 0), (64, 1)).to(Float32), tile.load(row, (0, 0), (1, 96)).to(Float32)
        tile.store(c, (0, 0), ((x - m) * n + (n - x)).to(c.element_type))

    c = zeros(64, 96)
    run(body, A, COLUMN, ROW, c)
    m, n = COLUMN.astype(np.float64), ROW.astype(np.float64)
    assert error(c, (X - m) * n + (n - X)) < 8e-3


def test_products_with_starts():
    @cute.jit
    def body(a, b, c, d):
        x, y = tile.load(a, (0, 0), (64, 96)), tile.load(b, (0, 0), (96, 64))
        start = tile.load(c, (0, 0), (64, 64)).to(Float32)
        acc = start * 2.0
        for _ in range(3):
            acc = tile.dot(tile.load(a, (0, 0), (64, 96)), tile.load(b, (0, 0), (96, 64)), acc)
        tile.store(d, (0, 0), (acc + tile.dot(x, y, start)).to(d.element_type))

    b, c, d = random(96, 64, seed=5), random(64, 64, seed=6), zeros(64, 64)
    run(body, A, b, c, d)
    product, start = X @ b.astype(np.float64), c.astype(np.float64)
    assert error(d, 3 * product + 2 * start + product + start) < 5e-3


def test_a_maximum_carried_by_a_loop():
    @cute.jit
    def body(x, y):
        most = tile.full((32, 1), -float("inf"), Float32)
        least = tile.zeros((32, 1), Float32)
        for step in range(4):
            values = tile.load(x, (0, step), (32, 64)).to(Float32)
            most = tile.maximum(most, tile.max(values, 1))
        tile.store(y, (0, 0), (most + least).to(y.element_type))

    x, y = (-abs(random(32, 256).astype(np.float32)) - 1).astype(BF16), zeros(32, 1)
    run(body, x, y)
    assert (y == x.max(1, keepdims=True)).all()


def test_a_number_that_is_an_argument():
    @cute.kernel
    def kernel(x: cute.Tensor, factor: Float32):
        tile.store(x, (0, 0), tile.load(x, (0, 0), (32, 32)) * tile.full((32, 32), factor, Float32))

    @cute.jit
    def scale(x: cute.Tensor, factor: Float32):
        kernel(x, factor).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = random(32, 32, dtype=np.float32)
    before_ = x.copy()
    compiled = cute.compile(scale, x, 1.0, target="tenstorrent")
    compiled(x, 0.5)
    assert np.allclose(x, before_ * 0.5, rtol=2e-3)
    assert compiled.plan["launches"][0]["kernels"]["reader"]["runtime_args"][-1] == {
        "name": "factor", "kind": "scalar", "dtype": "f32",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y: tile.where(x > y, x, y), "does not take arith.cmpf of tiles"),
        (lambda x, y: x.to(Int32).to(Float32), "does not take cute.convert of tiles"),
    ],
)
def test_operations_that_the_machine_does_not_have(function, message):
    with pytest.raises(PassError, match=message) as caught:
        run(two(function), A, B, zeros(64, 96))
    assert caught.value.location.file == __file__ and "lambda x, y" in caught.value.location.source()


def carried(function):
    @cute.jit
    def body(x, y):
        acc = tile.zeros((32, 32), Float32)
        for step in range(2):
            acc = function(acc, tile.load(x, (0, step), (32, 32)).to(Float32))
        tile.store(y, (0, 0), acc.to(y.element_type))

    return body


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda acc, x: acc * x, "arith.mulf of a tile that a loop carries"),
        (lambda acc, x: acc + x, "arith.addf of a tile that a loop carries"),
        (lambda acc, x: tile.dot(tile.exp(x), x, acc), "tiles that are computed in a loop which carries a sum"),
    ],
)
def test_what_a_loop_may_carry(function, message):
    x, y = zeros(32, 64, dtype=np.float32), zeros(32, 32)
    with pytest.raises(PassError, match=message):
        Tensorize(before("tensorize", trace(launched(carried(function), x, y), x, y)))
