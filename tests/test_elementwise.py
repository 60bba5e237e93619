"""`elementwise` on the emulator: arithmetic is exact on small integers, functions are compared in float64."""

import math

import ml_dtypes
import numpy as np
import pytest

from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.emulate import observe
from tilewright.kernels.functions import FUNCTIONS
from tilewright.ops import copy_transpose, elementwise, reduce, reduce_sum

torch = pytest.importorskip("torch", reason="the ops are tested with torch's tensors too")

ERF = np.vectorize(math.erf, otypes=[np.float64])
EXACT = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: x**-0.5, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + ERF(x / math.sqrt(2))), "div": np.divide,
}  # fmt: skip
SHAPES = (
    ((40, 64), (40, 64)), ((7, 300), ()),
    ((40, 64), (64,)), ((40, 64), (40, 1)), ((40, 1), (1, 33)), ((2, 3, 5), (3, 1)), ((), (7,)),
    ((1001,), (1001,)), ((1, 1), ()), ((3, 3, 3), (3, 3, 3)),
)  # fmt: skip


@pytest.fixture(autouse=True)
def on_emulator():
    with settings.scope(target="emu"):
        yield


def numbers(shape, dtype, start=1):
    return ((np.arange(math.prod(shape)) * 7 + start) % 11).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_elementwise_correctness(shapes):
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int32):
        a, b = (numbers(shape, dtype, start) for start, shape in enumerate(shapes))
        out = elementwise("sub", a, b)
        np.testing.assert_array_equal(out, a - b)
        assert out.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_elementwise_correctness_of_copies(dtype):
    x = numbers((12, 16), dtype)
    for view in (x, x.T, x[:, ::2], x[3:, 1:], np.broadcast_to(x[:1], x.shape)):
        np.testing.assert_array_equal(elementwise("copy", view), view)


@pytest.mark.parametrize("op", EXACT)
def test_functions_are_within_a_few_units_of_the_last_place(op):
    inputs = [np.linspace(0.1, 3, 64, dtype=np.float32), np.linspace(2, 5, 64, dtype=np.float32)][: 1 + (op == "div")]
    exact = EXACT[op](*(item.astype(np.float64) for item in inputs))
    np.testing.assert_allclose(elementwise(op, *inputs), exact, rtol=2.0**-21)
    half = [item.astype(np.float16) for item in inputs]
    exact = EXACT[op](*(item.astype(np.float64) for item in half))
    np.testing.assert_allclose(elementwise(op, *half).astype(np.float64), exact, rtol=2.0**-11 + 2.0**-20)


def test_arithmetic_is_exact():
    a, b, c = (numbers((5, 8), np.float32, start) for start in range(3))
    for op, expected in {
        "add": a + b, "mul": a * b, "maximum": np.maximum(a, b), "minimum": np.minimum(a, b), "neg": -a,
        "abs": np.abs(-a), "relu": np.maximum(a - 5, 0), "fma": a * b + c,
    }.items():  # fmt: skip
        inputs = {"fma": (a, b, c), "neg": (a,), "abs": (-a,), "relu": (a - 5,)}.get(op, (a, b))
        np.testing.assert_array_equal(elementwise(op, *inputs), expected)


def test_nan_goes_through_extremes():
    nan = np.array([np.nan, 1, np.nan, 2], np.float32)
    other = np.array([1, np.nan, np.nan, 1], np.float32)
    np.testing.assert_array_equal(elementwise("maximum", nan, other), [np.nan, np.nan, np.nan, 2])
    np.testing.assert_array_equal(elementwise("minimum", nan, other), [np.nan, np.nan, np.nan, 1])
    np.testing.assert_array_equal(elementwise("relu", nan), nan)


def test_types_are_promoted():
    a, b = numbers((4, 8), np.int32), numbers((4, 8), np.float32)
    assert elementwise("add", torch.tensor(a), torch.tensor(b)).dtype == torch.float32
    assert elementwise("div", torch.tensor(a), torch.tensor(a + 1)).dtype == torch.float32
    assert elementwise("add", torch.ones(3, dtype=torch.float16), torch.ones(3)).dtype == torch.float32
    np.testing.assert_array_equal(elementwise("mul", torch.tensor(a), torch.tensor(b)), a * b)
    np.testing.assert_array_equal(elementwise("exp", np.zeros(3, np.int64)), np.ones(3, np.float32))


def test_each_sector_is_moved_once():
    a, row, column = numbers((64, 128), np.float32), numbers((128,), np.float32), numbers((64, 1), np.float32)
    full = a.nbytes // 32
    for other, most in ((a + 1, full), (row, full), (column, 64)):
        with observe(counters=True) as reports:
            elementwise("add", a, other)
        assert full * 2 < reports[0].sectors <= full * 2 + most


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: elementwise("pow", a, a), r"no function 'pow'[\s\S]*sigmoid"),
        (lambda a: elementwise("add", a), "add takes 2 tensors, and there are 1"),
        (lambda a: elementwise("add", a, a[:, :2]), r"do not broadcast[\s\S]*\(2, 3\)[\s\S]*\(2, 2\)"),
        (lambda a: elementwise("add", a, a.numpy()), r"on the same device[\s\S]*NumPy"),
        (lambda a: elementwise("neg", a.to(torch.complex64)), "dtype complex64"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(torch.zeros(2, 3))


@pytest.mark.parametrize("op", FUNCTIONS)
def test_gradients(op):
    values = [torch.linspace(0.2, 1.3, 6).reshape(2, 3), torch.linspace(1.1, 1.9, 3), torch.tensor([[0.4], [0.7]])]
    inputs = [
        item.double().requires_grad_() for item in values[: {"fma": 3}.get(op, 1 if op in EXACT and op != "div" else 2)]
    ]
    inputs = inputs[:1] if op in ("copy", "neg", "abs", "relu") else inputs
    assert torch.autograd.gradcheck(lambda *inputs: elementwise(op, *inputs), inputs)


def test_gradients_of_gradients_and_vmap():
    a, b = torch.rand(2, 3, dtype=torch.float64, requires_grad=True), torch.rand(3, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda a: elementwise("mul", elementwise("silu", a), b), a)
    a, b = a.detach(), b.requires_grad_(False)
    assert torch.equal(torch.func.vmap(lambda a, b: elementwise("add", a, b), in_dims=(0, None))(a, b), a + b)
    assert torch.equal(torch.func.vmap(lambda a, b: elementwise("add", a, b), in_dims=(1, 0))(a, b), (a + b).T)


def test_elementwise_compile():
    a, b = torch.rand(2, 3, requires_grad=True), torch.rand(3)
    compiled = torch.compile(lambda a, b: elementwise("mul", a, b) + 1, fullgraph=True, backend="aot_eager")
    out = compiled(a, b)
    assert torch.equal(out, a * b + 1)
    out.sum().backward()
    assert torch.equal(a.grad, b.expand(2, 3))
    torch.library.opcheck(torch.ops.tilewright._elementwise.default, (torch.empty(2, 3), "add", a.detach(), b))


def test_the_ops_compile_together_for_extents_of_run_time():
    def together(a, b):
        return reduce_sum(reduce(elementwise("mul", copy_transpose(a), b), "max", -1, True), 0)

    compiled = torch.compile(together, fullgraph=True, dynamic=True, backend="aot_eager")
    for m, n in ((4, 6), (5, 7)):
        a, b = torch.rand(m, n, requires_grad=True), torch.rand(n, m)
        expected = (a.t() * b).amax(-1, keepdim=True).sum(0)
        torch.testing.assert_close(compiled(a, b), expected)
        torch.testing.assert_close(torch.autograd.grad(compiled(a, b), a), torch.autograd.grad(expected, a))


def test_empty_tensors():
    assert elementwise("add", torch.zeros(0, 3), torch.zeros(3)).shape == (0, 3)
    assert elementwise("neg", np.zeros((2, 0))).shape == (2, 0)
