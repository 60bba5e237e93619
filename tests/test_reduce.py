"""`reduce`: kernels run on the emulator, and are compared with NumPy in float64 and int64.

Most values are small integers: their sums are exact in float32 in any order, so results are equal to the exact ones,
rounded once to the result's type.
"""

import itertools
import math
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, DimensionError
from tilewright.emulate import observe
from tilewright.kernels import reducing
from tilewright.ops.reduce import FORWARD, reduce

torch = pytest.importorskip("torch", reason="the ops are tested with torch's tensors too")

BFLOAT16 = ml_dtypes.bfloat16
OPS = ("sum", "mean", "prod", "max", "min", "argmax")
FLOATS = (np.float32, BFLOAT16, np.float16, np.float64)
OTHERS = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_)


@pytest.fixture(autouse=True)
def on_emulator():
    with settings.scope(target="emu"):
        yield


def is_float(dtype):
    return dtype in FLOATS


def numbers(shape, dtype, op="sum"):
    """Small integers; for products mostly ones."""
    values = np.random.default_rng(math.prod(shape)).integers(0, 4, shape)
    if op == "prod":
        values = np.where(values == 3, 2, 1) if values.size < 40 else np.ones(shape, int)
    return values.astype(dtype)


def exact(x, op, axes):
    """The result by NumPy, rounded once."""
    if op == "argmax":
        flat = np.moveaxis(x.astype(np.float64), axes, range(-len(axes), 0))
        return flat.reshape(*flat.shape[: x.ndim - len(axes)], -1).argmax(-1)
    wide = x.astype(np.float64 if is_float(x.dtype) else np.int64)
    if op == "mean":  # the sum is exact, the quotient is rounded to the type that accumulates
        count = math.prod(x.shape[axis] for axis in axes)
        accumulator = np.float64 if x.dtype == np.float64 else np.float32
        return (wide.sum(axes).astype(accumulator) / accumulator(count)).astype(x.dtype)
    result = getattr(wide, op)(axis=axes)
    return result.astype(x.dtype if is_float(x.dtype) or op in ("max", "min") else np.int64)


CASES = [(dtype, op) for dtype in (np.float32, BFLOAT16) for op in OPS]
CASES += [(np.int8, op) for op in OPS if op != "mean"]
CASES += [(dtype, op) for dtype in (np.float16, np.float64, *OTHERS[1:]) for op in ("sum", "max")]


@pytest.mark.parametrize(
    ("dtype", "op"), CASES, ids=lambda item: item if isinstance(item, str) else np.dtype(item).name
)
def test_reduce_correctness(dtype, op):
    for shape, dim in (((5, 64), 1), ((3, 133), -1), ((40, 24), 0)):
        x = numbers(shape, dtype, op)
        out = reduce(x, op, dim)
        expected = exact(x, op, (dim % 2,))
        np.testing.assert_array_equal(out, expected)
        assert out.dtype == expected.dtype


@pytest.mark.parametrize("shape", [(6, 5, 8), (2, 1, 3, 4)])
def test_reduce_correctness_over_all_dimensions(shape):
    x = numbers(shape, np.float32)
    for count in range(1, x.ndim + 1):
        for axes in itertools.combinations(range(x.ndim), count):
            for keepdim in (False, True):
                out = reduce(x, "sum", axes, keepdim)
                np.testing.assert_array_equal(out, x.sum(axis=axes, keepdims=keepdim))
                assert out.shape == x.sum(axis=axes, keepdims=keepdim).shape
    assert reduce(x, "argmax") == x.argmax()
    assert reduce(x).shape == ()


@pytest.mark.parametrize("op", ["sum", "argmax"])
def test_reduce_correctness_of_views(op):
    x = numbers((6, 10, 16), np.float32)
    for view in (x.T, x.transpose(1, 2, 0), x[::2, 1:, ::3], x[:, :, 3:], np.broadcast_to(x[:, :1], x.shape), x[::-1]):
        for axis in range(3):
            np.testing.assert_array_equal(reduce(view, op, axis), exact(view, op, (axis,)))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1025, 9000])
def test_reduce_correctness_of_lengths(n):
    for dtype, op in ((np.float32, "sum"), (BFLOAT16, "argmax"), (np.int8, "sum")):
        x = numbers((2, n), dtype)
        np.testing.assert_array_equal(reduce(x, op, 1), exact(x, op, (1,)))


def test_rows_and_columns_over_several_blocks():
    row, column = numbers((1, 33001), np.float32), numbers((5001, 8), BFLOAT16)
    with observe() as reports:
        for op in ("sum", "argmax"):
            np.testing.assert_array_equal(reduce(row, op, 1), exact(row, op, (1,)))
            np.testing.assert_array_equal(reduce(column, op, 0), exact(column, op, (0,)))
    assert len(reports) == 8  # two passes each


@pytest.mark.parametrize("shape", [(8, 512), (5, 1000), (2, 8192)])
def test_sums_of_any_numbers_are_within_the_bound_of_float32(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wide = x.astype(np.float64)
    # Adding n numbers in any order is off by less than n units of 2^-24 of the sum of their magnitudes.
    bound = shape[1] * 2.0**-24 * np.abs(wide).sum(1)
    assert (np.abs(reduce(x, "sum", 1) - wide.sum(1)) <= bound).all()
    assert (np.abs(reduce(x, "mean", 1) - wide.mean(1)) <= bound / shape[1] + 2.0**-24 * np.abs(wide.mean(1))).all()
    half = x.astype(np.float16)
    rounding = 2.0**-11 * np.abs(half.astype(np.float64).sum(1)) + 2.0**-25
    assert (np.abs(reduce(half, "sum", 1) - half.astype(np.float64).sum(1)) <= bound * 1.01 + rounding).all()


def test_the_first_greatest_element_is_found_and_nan_is_greater():
    nan, inf = np.nan, np.inf
    rows = np.array([[1, 5, 5, 2], [nan, 1, nan, 3], [1, inf, nan, inf], [-inf] * 4, [-0.0, 0.0, -1, 0]], np.float32)
    np.testing.assert_array_equal(reduce(rows, "argmax", 1), [1, 0, 2, 0, 0])
    np.testing.assert_array_equal(reduce(rows, "max", 1)[:4], [5, nan, nan, -inf])
    np.testing.assert_array_equal(reduce(rows, "min", 1)[:4], [1, nan, nan, -inf])
    for dtype in (np.float64, BFLOAT16):
        long = np.full((2, 600), -inf, dtype)
        np.testing.assert_array_equal(reduce(long, "argmax", 1), [0, 0])
        long[0, 599], long[1, 300:] = nan, 7
        np.testing.assert_array_equal(reduce(long, "argmax", 1), [599, 300])
        np.testing.assert_array_equal(reduce(long.T.copy(), "argmax", 0), [599, 300])
        np.testing.assert_array_equal(np.isnan(reduce(long, "max", 1)), [True, False])
        np.testing.assert_array_equal(np.isnan(reduce(long, "min", 1)), [True, False])


def test_extremes_of_integers():
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8):
        facts = np.iinfo(dtype)
        x = np.full((2, 50), facts.min, dtype)
        x[1] = facts.max
        np.testing.assert_array_equal(reduce(x, "max", 1), [facts.min, facts.max])
        np.testing.assert_array_equal(reduce(x, "min", 1), [facts.min, facts.max])
        np.testing.assert_array_equal(reduce(x, "argmax", 1), [0, 0])
        np.testing.assert_array_equal(reduce(x, "sum", 1), x.astype(np.int64).sum(1))


def test_each_sector_is_read_once():
    for dim in (0, 1):
        with observe(counters=True) as reports:
            reduce(numbers((64, 2048), np.float32), "sum", dim)
        written = (2048 * 4 // 32, 64)[dim]  # rows are written by threads of their own
        assert reports[0].sectors <= 64 * 2048 * 4 // 32 + written


def test_the_same_call_gives_the_same_bits():
    x = np.random.default_rng(1).standard_normal((3, 5000)).astype(np.float32)
    assert reduce(x, "sum", 1).tobytes() == reduce(x, "sum", 1).tobytes()


def test_the_64_bit_form_compiles():
    for op, source in (("sum", ((1, 3 << 22), (1, 1))), ("argmax", ((7, 4003), (4003, 1)))):
        made = reducing.Reduction(op, reducing.cute.Float32)
        plan, parts = reducing.row_plan(made, reducing.views.Strided(*source))
        second = reducing.second_plan(plan, parts) if parts > 1 else None
        executor = reducing._executor(plan, second, reducing.cute.Int64, 2, True, "emu")
        assert executor.wide_form.get() is not None


def test_empty_tensors():
    for make in (np.zeros, torch.zeros):
        assert reduce(make((0, 3))) == 0
        assert reduce(make((0, 3)), "prod", 0).tolist() == [1, 1, 1]
        assert all(math.isnan(value) for value in reduce(make((2, 0)), "mean", 1).tolist())
        assert tuple(reduce(make((0, 3)), "max", 1).shape) == (0,)
        assert reduce(make(()), "argmax") == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: reduce(x, "sum", 2),
            DimensionError,
            r"out of range \(expected to be in range of \[-2, 1\], but got 2",
        ),
        (lambda x: reduce(x, "sum", (0, -2)), ArgumentError, "appears more than once"),
        (lambda x: reduce(x, "sum", 0.5), ArgumentError, "dim is an int or a tuple of ints, not float"),
        (lambda x: reduce(x, "median"), ArgumentError, r"no reduction 'median'[\s\S]*argmax"),
        (lambda x: reduce(x, "argmax", (0, 1)), ArgumentError, "argmax is over one dimension or all"),
        (lambda x: reduce(x[:0], "max", 0), DimensionError, r"non-zero size[\s\S]*\(0, 3\)"),
        (lambda x: reduce(x > 0, "mean"), ArgumentError, "the mean is of floats, and x has dtype bool"),
        (lambda x: reduce([1.0]), ArgumentError, "not list"),
    ],
)
def test_bad_input(call, error, message):
    x = torch.zeros(2, 3)
    with pytest.raises(error, match=message):
        call(x)
    assert issubclass(DimensionError, IndexError) and issubclass(ArgumentError, ValueError)


@pytest.mark.parametrize("op", OPS[:-1])
def test_gradients(op):
    x = torch.tensor([[1.5, -2.0, 0.7], [0.3, 1.1, -0.4]], dtype=torch.float64, requires_grad=True)
    for dim, keepdim in ((None, False), (0, True), ((0, 1), False)):
        assert torch.autograd.gradcheck(lambda x, dim=dim, keepdim=keepdim: reduce(x, op, dim, keepdim), x)
        assert torch.autograd.gradgradcheck(lambda x, dim=dim: reduce(x, op, dim), x)


def test_gradients_of_ties_and_zeros():
    x = torch.tensor([1.0, 3.0, 3.0, 0.0], requires_grad=True)
    reduce(x, "max").backward()
    assert x.grad.tolist() == [0, 0.5, 0.5, 0]
    x.grad = None
    reduce(x, "prod").backward()
    assert x.grad.tolist() == [0, 0, 0, 9]


def test_vmap():
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(torch.func.vmap(lambda x: reduce(x, "sum", 0), in_dims=1)(x), x.sum(0))
    assert torch.equal(torch.func.vmap(lambda x: reduce(x, "max"))(x), x.amax((1, 2)))
    out = torch.zeros(2, 3)
    torch.func.vmap(lambda out, x: torch.ops.tilewright._reduce(out, x, "sum", [-1]), out_dims=None)(out, x)
    assert torch.equal(out, x.sum(-1))


def test_reduce_compile():
    x = torch.arange(24.0).reshape(4, 6).requires_grad_()
    compiled = torch.compile(lambda x: reduce(x * 2, "mean", -1, True), fullgraph=True, backend="aot_eager")
    out = compiled(x)
    torch.testing.assert_close(out, 2 * x.mean(-1, keepdim=True), rtol=1e-6, atol=0)
    out.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4, 6), 1 / 3), rtol=1e-6, atol=0)


def test_opcheck():
    for op in ("sum", "argmax"):
        out = torch.empty(4, dtype=torch.int64 if op == "argmax" else torch.float32)
        torch.library.opcheck(torch.ops.tilewright._reduce.default, (out, torch.randn(4, 6), op, [-1]))


def test_tensors_of_the_host_go_to_the_reference_unless_the_emulator_is_asked_for(monkeypatch):
    monkeypatch.setattr(FORWARD, "kernel", None)
    x = np.arange(60.0).reshape(3, 4, 5)
    with settings.scope(target=None):
        for op, dim in itertools.product(OPS, (None, 1, (0, 2))):
            if op != "argmax" or not isinstance(dim, tuple):
                axes = (0, 1, 2) if dim is None else dim if isinstance(dim, tuple) else (dim,)
                np.testing.assert_allclose(reduce(torch.tensor(x), op, dim).numpy(), exact(x, op, axes), rtol=1e-15)
                np.testing.assert_allclose(reduce(x, op, dim), exact(x, op, axes), rtol=1e-15)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np
from tilewright.ops import copy_transpose, elementwise, reduce, reduce_sum
x = np.arange(12, dtype=np.float32).reshape(3, 4)
print(reduce(x), reduce(x, "argmax", 1), reduce_sum(x, 0), copy_transpose(x)[1], elementwise("add", x, x[:, :1])[2])
"""


@pytest.mark.parametrize("target", ["emu", None])
def test_numpy_needs_no_pytorch(target):
    environment = {**os.environ, **({"TILEWRIGHT_TARGET": target} if target else {})}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "66.0 [3 3 3] [12. 15. 18. 21.] [1. 5. 9.] [16. 17. 18. 19.]\n"
