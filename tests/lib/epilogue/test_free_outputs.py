"""Outputs that do not depend on the accumulator, and such that see an operand in two arrangements: by the elementwise
kernel and behind a product, against NumPy on small whole numbers."""

import numpy as np
import pytest

from tests.lib.epilogue.test_elementwise import refused
from tests.op_cases import on_emulator
from tilewright import epilogue, ops
from tilewright.epilogue import EpilogueError, NoImplementationError, max, permute, reshape, sum
from tilewright.epilogue import min as least

L, M, N = 2, 40, 24


def whole(*shape):
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float32)


def twice(x):
    return x * 2


def turned(x):
    return permute(x * 2, indices=(0, 2, 1))


def flat(x):
    return reshape(x + 1, new_shape=(L * M, N))


def turned_and_flat(x):
    return reshape(permute(x, indices=(0, 2, 1)), new_shape=(L, M * N))


def largest(x):
    return max(x * 2)


def of_one_element(x):
    """A sum over a mode of one element, which the accumulator has many of."""
    return sum(x * 2, dim=1)


CASES = [  # what is computed of the operand, the operand's shape
    (twice, (N,)),
    (twice, (1, 1, N)),
    (twice, (L, 1, N)),
    (twice, (M, 1)),
    (twice, (L, M, 1)),
    (twice, (L, 1, 1)),
    (twice, (1,)),
    (twice, (M, N)),
    (twice, (N, L * M)),
    (turned, (L, M, N)),
    (turned, (1, M, N)),
    (turned, (L, M, 1)),
    (turned, (1, 1, N)),
    (flat, (L, M, N)),
    (turned_and_flat, (L, M, N)),
    (largest, (1, N)),
    (largest, (L, M, 1)),
    (lambda x: least(x, dim=(0, 2)), (L, 1, N)),
    (of_one_element, (L, 1, N)),
    (lambda x: sum(x, dim=(0, 1)), (L, M, N)),
]


def product():
    a, b = whole(L, M, 16).astype(np.float16), whole(L, 16, N).astype(np.float16)
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_outputs_that_do_not_depend_on_the_accumulator(case):
    function, shape = CASES[case]
    other = (np.float32, np.float16)[case % 2]

    def fn(accum, x):
        return {"D": accum + 1, "free": function(x)}

    a, b, accum = product()
    x = whole(*shape)
    wanted = function(x)
    for reduction in ("deterministic", "atomic")[: 1 + (other is np.float32)]:
        arrays = {"D": np.zeros((L, M, N), np.float32), "free": np.full(wanted.shape, 77, other)}
        epilogue.compile(fn, {"accum": accum, "x": x, **arrays}, reduction=reduction)(accum=accum, x=x, **arrays)
        np.testing.assert_array_equal(arrays["free"], wanted)
        np.testing.assert_array_equal(arrays["D"], accum + 1)
    arrays = {"D": np.zeros((L, M, N), np.float32), "free": np.full(wanted.shape, 77, other)}
    with on_emulator():
        ops.gemm(a, b, fn, x=x, **arrays)
    np.testing.assert_array_equal(arrays["free"], wanted)
    np.testing.assert_array_equal(arrays["D"], accum + 1)


def test_numbers_as_outputs():
    def fn(accum, alpha):
        return {"D": accum * alpha, "doubled": alpha * 2, "total": sum(alpha + 1)}

    a, b, accum = product()
    arrays = {"D": np.zeros((L, M, N), np.float32), "doubled": np.zeros(1, np.float32), "total": np.zeros((1, 1))}
    found = epilogue.compile(fn, {"accum": accum, "alpha": 3.0, **arrays})(accum=accum, alpha=5.0)
    assert (found["doubled"].item(), found["total"].item()) == (10, 6)
    with on_emulator():
        ops.gemm(a, b, fn, alpha=4.0, **arrays)
    assert (arrays["doubled"].item(), arrays["total"].item()) == (8, 5)


def test_an_operand_in_two_arrangements():
    def fn(accum, table, alpha):
        D = accum * table + permute(table * alpha, indices=(0, 2, 1))
        return D

    a, table = whole(L, 24, 24), whole(L, 24, 24)[..., ::-1]
    wanted = a * table + 3 * table.swapaxes(1, 2)
    arrays = {"accum": a, "table": table, "alpha": 3.0}
    found = epilogue.compile(fn, {**arrays, "D": np.zeros_like(a)})(**arrays)["D"]
    np.testing.assert_array_equal(found, wanted)
    identity = np.eye(24, dtype=np.float32)[None]
    with on_emulator():
        np.testing.assert_array_equal(ops.gemm(a, identity, fn, table=table, alpha=3.0), wanted)


def test_tensors_with_several_strides_in_a_mode():
    """Rows of C follow each other in blocks: the elementwise kernel cuts M and N, a product refuses to."""

    def fn(accum, C):
        D = accum + reshape(permute(C, indices=(1, 0, 2, 3)), new_shape=(1, 8, 12))
        return D

    accum, C = whole(1, 8, 12), whole(4, 2, 3, 4)
    wanted = accum + C.transpose(1, 0, 2, 3).reshape(1, 8, 12)
    found = epilogue.compile(fn, {"accum": accum, "C": C, "D": np.zeros_like(accum)})(accum=accum, C=C)["D"]
    np.testing.assert_array_equal(found, wanted)
    message = "Tensor C goes through M of the product with several strides."
    with on_emulator(), refused(EpilogueError, message, "def fn(accum, C)", "reshape the array itself"):
        ops.gemm(accum, np.eye(12, dtype=np.float32)[None], fn, C=C)


@pytest.mark.parametrize("shape", [(N,), (M, N), (L, 1, N), (L, 1, 1)])
@pytest.mark.parametrize("dim", [None, -1])
def test_sums_of_smaller_values_are_refused(shape, dim):
    def fn(accum, x):
        scaled = x * 2
        total = sum(scaled, dim=dim)
        D = accum + scaled
        return D, total

    a, b, accum = product()
    x = whole(*shape)
    total = np.zeros(sum(x, dim=dim).shape, np.float32)
    if total.size == x.size:
        arrays = {"accum": accum, "x": x, "D": np.zeros_like(accum), "total": total}
        np.testing.assert_array_equal(epilogue.compile(fn, arrays)(**arrays)["total"], 2 * x)
        return
    message = "The sum total is of a value that does not depend on accum and is smaller."
    parts = message, "total = sum(scaled, dim=dim)", str(shape), "(2, 40, 24)", "sum the operand before the call"
    with refused(EpilogueError, *parts):
        epilogue.compile(fn, {"accum": accum, "x": x, "D": np.zeros_like(accum), "total": total})
    with on_emulator(), refused(EpilogueError, *parts):
        ops.gemm(a, b, fn, x=x)


def test_outputs_whose_elements_lie_at_one_place_are_refused():
    def fn(accum, bias):
        D = accum + bias
        return {"D": D}

    accum, overlapping = whole(1, 8, 12), np.broadcast_to(np.zeros(12, np.float32), (8, 12))
    parts = "No matching op for node D with stride (0, 0, 1).", "D = accum + bias", "no two elements at one place"
    with refused(NoImplementationError, *parts):
        epilogue.trace(fn, {"accum": accum, "bias": whole(12), "D": overlapping})


def test_masks_of_bits_are_stored_in_full():
    def fn(accum, bias):
        return {"D": accum + bias, "mask": bias > 0}

    mask = epilogue.Bits(np.zeros(2, np.uint8), 12)
    parts = "No matching op for node mask with stride (0, 0, 1).", "mask of bits the accumulator's shape"
    with refused(NoImplementationError, *parts):
        epilogue.trace(fn, {"accum": whole(1, 8, 12), "bias": whole(12), "D": whole(1, 8, 12), "mask": mask})


def test_no_kernel_computes_an_output_where_the_accumulator_is_empty():
    def fn(accum, x):
        return {"D": accum + 1, "doubled": x * 2}

    outputs = {"D": np.zeros((8, 12), np.float32), "doubled": np.zeros(12, np.float32)}
    kernel = epilogue.compile(fn, {"accum": whole(8, 12), "x": whole(12), **outputs})
    parts = "Output doubled has elements, but accum has none, so no kernel computes it.", '"doubled": x * 2'
    with refused(EpilogueError, *parts):
        kernel(accum=whole(0, 12), x=whole(12))
    with on_emulator(), refused(EpilogueError, *parts):
        ops.gemm(whole(0, 16), whole(16, 12), fn, x=whole(12))
