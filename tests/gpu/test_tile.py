"""Block-level kernels on a GPU: the examples, and the same results as on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
from tests.tile.test_expand_tiles import Float32, Int32, aligned, example, integers, product
from tests.tile.test_same_source import BOUNDS


@pytest.mark.parametrize("source", BOUNDS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_sources_of_tenstorrent(source):
    assert source.check("cuda") < BOUNDS[source]


@pytest.mark.parametrize("shape", [(333, 77)])
def test_examples(shape):
    assert example("elementwise").check(shape) < 2e-6
    assert example("row_sum").check(shape)
    assert example("softmax").check(shape) < 1e-6
    assert example("layer_norm").check(shape) < 1e-5
    assert example("gemm").check(*shape, 90)


@pytest.mark.parametrize(("rows", "columns", "threads"), [(1, 8192, 512), (4, 512, 128)])
def test_rows_of_many_lengths(rows, columns, threads):
    for length in (columns, columns - 3):
        options = {"rows": rows, "columns": columns, "threads": threads}
        assert example("softmax").check((130, length), **options) < 1e-6
        assert example("layer_norm").check((130, length), **options) < 2e-5


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.float32])
@pytest.mark.parametrize(("m", "n", "k"), [(256, 192, 320), (250, 70, 99)])
def test_products(dtype, m, n, k):
    (a, left), (b, right) = aligned(integers((m, k), dtype, -3, 4)), aligned(integers((k, n), dtype, -3, 4, seed=1))
    sums = Int32 if dtype is np.int8 else Float32
    c = np.zeros((m, n), np.int32 if dtype is np.int8 else np.float32)
    cute.compile(product, left, right, c, 64, 32, sums, 128, target="cuda")(left, right, c)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
