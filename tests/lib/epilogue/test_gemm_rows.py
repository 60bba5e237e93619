"""The epilogues of EVT's tests behind a matrix product, on the emulator with all checks."""

import numpy as np
import pytest

from tests.lib.epilogue.more_rows import ALL, F16, check
from tests.lib.epilogue.random_dags import case_of
from tests.op_cases import on_emulator
from tilewright import epilogue, ops
from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.authoring import from_text

SHAPES = ((1, 8, 8), (2, 72, 40), (3, 33, 19))
K = 24
FAST = ("arith", "func_call2", "row_broadcast", "row_reduce", "permute_2", "mixed_dag")
"""Rows that are tested in every run."""


def factors(shape, seed):
    """A (L, M, K) and B (L, K, N) whose product has small whole numbers: at most two of a row are not 0."""
    generator = np.random.default_rng(seed)
    batch, m, n = shape
    a = np.zeros((batch, m, K), F16)
    places = generator.integers(0, K, (batch, m, 2))
    np.put_along_axis(a, places, generator.integers(-2, 3, places.shape).astype(F16), -1)
    return a, generator.integers(-1, 2, (batch, K, n)).astype(F16)


def run(row, size):
    a, b = factors(size, 1)
    arrays, examples = row.arrays(*size), row.examples(*size)
    arrays["accum"] = a.astype(np.float32) @ b.astype(np.float32)
    given = {name: value for name, value in {**examples, **arrays}.items() if name != "accum"}
    with on_emulator():
        found = ops.gemm(a, b, row.epilogue, **given)
    check(row, found if isinstance(found, dict) else {"D": found}, arrays, examples)


@pytest.mark.parametrize("row", [row for row in ALL if row.name in FAST], ids=lambda row: row.name)
def test_row(row):
    run(row, SHAPES[1])


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("row", [row for row in ALL if not row.size], ids=lambda row: row.name)
def test_every_row(row, shape):
    run(row, shape)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ALL if row.size], ids=lambda row: row.name)
def test_every_row_of_a_certain_size(row):
    run(row, row.size)


def product_with_one(seed):
    """Whether a random epilogue is one of whole numbers in float32: then it is checked behind accum · 1."""
    case = case_of(seed)
    if not case.whole or case.compute != "Float32":
        return False
    accum = case.operands["accum"].astype(F16)
    others = {key: value for key, value in case.operands.items() if key != "accum"}
    with on_emulator():
        found = ops.gemm(accum, np.eye(accum.shape[-1], dtype=F16), from_text(case.text), **others, **case.outputs)
    case.check(found if isinstance(found, dict) else {next(iter(case.outputs)): found})
    return True


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 60), marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_epilogues(seeds):
    assert sum(product_with_one(seed) for seed in seeds) > 0


def top_two(accum):
    D = epilogue.topk_softmax(accum, 2)
    return D


@pytest.mark.parametrize("columns", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_top_k_with_softmax_behind_a_product(columns):
    a, b = factors((1, 24, columns), 3)
    accum = a.astype(np.float64) @ b.astype(np.float64)
    with on_emulator():
        found = ops.gemm(a, b, top_two, D=np.zeros(accum.shape, np.float32))
    ranks = np.argsort(np.argsort(-accum, axis=-1, kind="stable"), axis=-1)
    powers = np.where(ranks < 2, np.exp(accum - accum.max(-1, keepdims=True)), 0)
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), rtol=2e-6)


def test_top_k_needs_whole_rows_in_a_tile():
    a, b = factors((1, 8, 300), 3)
    with on_emulator(), pytest.raises(EpilogueError) as caught:
        ops.gemm(a, b, top_two, D=np.zeros((1, 8, 300), np.float32))
    for part in ("A function of whole rows does not fit the tiles of a product.", "columns    300", "longer rows"):
        assert part in str(caught.value)


@pytest.mark.parametrize("columns", [64, 40, 13])
def test_a_mask_of_bits_behind_a_product(columns):
    def with_mask(accum):
        D, mask = epilogue.relu(accum, with_mask=True)
        return D, mask

    a, b = factors((2, 33, columns), 4)
    accum = a.astype(np.float32) @ b.astype(np.float32)
    mask = epilogue.Bits(np.full((2, 33, -(-columns // 8)), 255, np.uint8), columns)
    with on_emulator():
        found = ops.gemm(a, b, with_mask, D=np.zeros(accum.shape, np.float32), mask=mask)
    np.testing.assert_array_equal(found["D"], np.maximum(accum, 0))
    np.testing.assert_array_equal(mask.array, np.packbits(accum > 0, axis=-1, bitorder="little"))
