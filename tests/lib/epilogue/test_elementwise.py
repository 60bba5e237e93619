"""The fused elementwise kernel of epilogues: outputs, sizes, types, reductions, masks, top-k, and what it refuses."""

import contextlib
import math

import ml_dtypes
import numpy as np
import pytest

import tilewright.cute as cute
from tests.lib.epilogue.random_dags import case_of
from tilewright import epilogue
from tilewright.base.errors import ArgumentError, EpilogueError, NoImplementationError
from tilewright.kernels import epilogue_plans
from tilewright.lib.epilogue.lowering import functions as device_functions

SEEDS, ALL_SEEDS, EACH = 60, 300, 5
SLOW = pytest.mark.slow
rng = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def on_the_emulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")


def whole(*shape, dtype=np.float32):
    return rng.integers(-4, 5, shape).astype(dtype)


def scaled(accum, C, bias, alpha):
    D = alpha * accum + C + bias
    return D


def scaled_arrays(batch, m, n):
    return {"accum": whole(batch, m, n), "C": whole(batch, m, n), "bias": whole(n), "alpha": 2.0}


def compiled_kernels():
    return epilogue_plans._executor.cache_info().misses


@contextlib.contextmanager
def refused(error, *parts):
    """The block raises this error, whose text has these parts."""
    with pytest.raises(error) as caught:
        yield
    for part in parts:
        assert part in str(caught.value), (part, str(caught.value))


# Random graphs


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_random_epilogues(first):
    for seed in range(first, first + EACH):
        case = case_of(seed, 3000)
        arrays = {**case.operands, **case.outputs}
        kernel = epilogue.compile(case.text, arrays, element_compute=getattr(cute, case.compute))
        case.check(kernel(**arrays))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, ALL_SEEDS, EACH))
def test_more_random_epilogues(first):
    test_random_epilogues(first)


def test_the_reference_of_the_graph_agrees_on_random_epilogues():
    for seed in range(20):
        case = case_of(seed, 3000)
        arrays = {**case.operands, **case.outputs}
        dag = epilogue.trace(case.text, arrays, element_compute=getattr(cute, case.compute))
        case.check(dag.evaluate(**case.operands))


# What a call takes and gives


def test_outputs_that_are_not_given_are_allocated():
    arrays = scaled_arrays(2, 12, 24)
    kernel = epilogue.compile(scaled, {**arrays, "D": np.zeros((2, 12, 24), np.float16)})
    found = kernel(**arrays)
    assert list(found) == ["D"] and found["D"].dtype == np.float16
    np.testing.assert_array_equal(found["D"], 2 * arrays["accum"] + arrays["C"] + arrays["bias"])


def test_one_kernel_takes_all_sizes_of_a_kind():
    kernel = epilogue.compile(scaled, {**scaled_arrays(2, 12, 24), "D": np.zeros((2, 12, 24), np.float32)})
    kernel(**scaled_arrays(3, 40, 64))
    before = compiled_kernels()
    for shape in ((3, 41, 64), (4, 33, 60), (2, 64, 36)):
        arrays = scaled_arrays(*shape)
        found = kernel(**arrays)["D"]
        np.testing.assert_array_equal(found, 2 * arrays["accum"] + arrays["C"] + arrays["bias"])
    assert compiled_kernels() == before


def test_shapes_of_reductions_follow_the_operands():
    def sums(accum):
        rows = epilogue.sum(accum, dim=(0, 1))
        columns = epilogue.max(accum, dim=(2,))
        D = accum * 2.0
        return D, rows, columns

    examples = {
        "accum": whole(2, 4, 8),
        "D": np.zeros((2, 4, 8), np.float32),
        "rows": np.zeros((1, 8), np.float32),
        "columns": np.zeros((2, 4, 1), np.float32),
    }
    accum = whole(3, 21, 40)
    found = epilogue.compile(sums, examples)(accum=accum)
    np.testing.assert_array_equal(found["rows"], accum.sum((0, 1))[None])
    np.testing.assert_array_equal(found["columns"], accum.max(2, keepdims=True))


def test_an_accum_of_two_modes():
    accum = whole(9, 16)
    found = epilogue.compile(lambda accum: accum + 1.0, {"accum": accum, "D": np.zeros((9, 16), np.float32)})(
        accum=accum
    )
    np.testing.assert_array_equal(found["D"], accum + 1)


def test_numbers_are_those_of_the_call_or_of_the_examples():
    arrays = scaled_arrays(1, 4, 8)
    kernel = epilogue.compile(scaled, {**arrays, "D": np.zeros((1, 4, 8), np.float32)})
    rest = arrays["C"] + arrays["bias"]
    np.testing.assert_array_equal(kernel(**{**arrays, "alpha": 3.0})["D"], 3 * arrays["accum"] + rest)
    del arrays["alpha"]
    np.testing.assert_array_equal(kernel(**arrays)["D"], 2 * arrays["accum"] + rest)


def test_an_operand_that_does_not_matter_may_be_left_out():
    kernel = epilogue.compile(
        lambda accum, C: accum + 1.0, {"accum": whole(1, 4, 8), "C": whole(1, 4, 8), "D": whole(1, 4, 8)}
    )
    accum = whole(1, 4, 8)
    np.testing.assert_array_equal(kernel(accum=accum)["D"], accum + 1)
    np.testing.assert_array_equal(kernel(accum=accum, C=whole(1, 4, 8))["D"], accum + 1)


def test_empty_arrays_give_empty_outputs_and_neutral_sums():
    def total(accum):
        sums = epilogue.sum(accum, dim=(1,))
        D = accum + 1.0
        return D, sums

    examples = {"accum": whole(1, 4, 8), "D": whole(1, 4, 8), "sums": whole(1, 1, 8)}
    found = epilogue.compile(total, examples)(accum=whole(1, 0, 8))
    assert found["D"].shape == (1, 0, 8)
    np.testing.assert_array_equal(found["sums"], np.zeros((1, 1, 8)))


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    accum = torch.randint(-4, 5, (2, 6, 10), dtype=torch.bfloat16, requires_grad=False)
    weight = torch.randn(10, requires_grad=True)
    found = epilogue.compile(lambda accum, w: accum * w, {"accum": accum, "w": weight, "D": torch.empty(2, 6, 10)})(
        accum=accum, w=weight
    )
    assert torch.equal(found["D"], accum.float() * weight.detach())


# Types


def test_quantised_outputs_with_a_scale_and_their_greatest_value():
    def quantised(accum, scale):
        greatest = epilogue.amax(accum, dim=(0, 1, 2))
        D = epilogue.quantize(accum, scale, np.int8)
        F = epilogue.quantize(accum, scale, ml_dtypes.float8_e4m3fn)
        E = epilogue.quantize(accum, scale, ml_dtypes.float8_e5m2)
        return D, F, E, greatest

    accum = rng.normal(0, 300, (2, 20, 48)).astype(np.float32)
    accum[0, 0, :4] = [2.5, 3.5, -2.5, 1e30]
    shape = accum.shape
    arrays = {
        "accum": accum,
        "scale": 0.5,
        "D": np.zeros(shape, np.int8),
        "F": np.zeros(shape, ml_dtypes.float8_e4m3fn),
        "E": np.zeros(shape, ml_dtypes.float8_e5m2),
        "greatest": np.zeros((1, 1, 1), np.float32),
    }
    found = epilogue.compile(quantised, arrays)(**arrays)
    half = accum * np.float32(0.5)
    np.testing.assert_array_equal(found["D"], np.clip(np.rint(half), -128, 127))
    np.testing.assert_array_equal(
        found["F"].astype(np.float32), np.clip(half, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    )
    np.testing.assert_array_equal(
        found["E"].astype(np.float32), np.clip(half, -57344, 57344).astype(ml_dtypes.float8_e5m2).astype(np.float32)
    )
    assert found["greatest"].item() == np.abs(accum).max()


def test_floats_are_rounded_to_the_nearest_integer_and_saturate():
    accum = np.array([[[0.5, 1.5, -2.5, 2.4999, 300.0, -300.0, np.nan, -0.5]]], np.float32)
    found = epilogue.compile(lambda accum: accum * 1.0, {"accum": accum, "D": np.zeros((1, 1, 8), np.int8)})(
        accum=accum
    )
    assert found["D"].tolist() == [[[0, 2, -2, 2, 127, -128, 0, 0]]]


def test_fp8_operands():
    accum = rng.normal(0, 2, (1, 8, 32)).astype(ml_dtypes.float8_e4m3fn)
    C = rng.normal(0, 2, (1, 8, 32)).astype(ml_dtypes.float8_e5m2)
    arrays = {"accum": accum, "C": C, "D": np.zeros((1, 8, 32), np.float32)}
    found = epilogue.compile(lambda accum, C: accum + C, arrays)(**arrays)
    np.testing.assert_array_equal(found["D"], accum.astype(np.float32) + C.astype(np.float32))


def test_maxima_of_nan_are_nan():
    def extremes(accum):
        high = epilogue.max(accum, dim=(2,))
        low = epilogue.min(accum, dim=(1, 2))
        D = epilogue.relu(accum)
        return D, high, low

    accum = whole(1, 5, 40)
    accum[0, 3, 17] = np.nan
    arrays = {"accum": accum, "D": whole(1, 5, 40), "high": whole(1, 5, 1), "low": whole(1, 1, 1)}
    found = epilogue.compile(extremes, arrays)(**arrays)
    assert np.isnan(found["high"]).ravel().tolist() == [False, False, False, True, False]
    assert np.isnan(found["low"]).all() and np.isnan(found["D"]).sum() == 1


# Reductions


def reducing(accum):
    rows = epilogue.sum(accum, dim=(1,))
    columns = epilogue.max(accum, dim=(0, 2))
    total = epilogue.min(accum, dim=(0, 1, 2))
    batch = epilogue.sum(accum, dim=(0,))
    D = accum + 1.0
    return D, rows, columns, total, batch


def reducing_arrays(shape, dtype=np.float32):
    batch, m, n = shape
    return {
        "accum": whole(*shape),
        "D": np.zeros(shape, np.float32),
        "rows": np.full((batch, 1, n), 77, dtype),
        "columns": np.full((m, 1), 77, dtype),
        "total": np.full((1, 1), 77, dtype),
        "batch": np.full((m, n), 77, dtype),
    }


@pytest.mark.parametrize("reduction", ["deterministic", "atomic"])
@pytest.mark.parametrize("shape", [(1, 1, 3000), (3, 700, 9), (2, 65, 514), (1, 2100, 4)])
def test_reductions_over_many_blocks(shape, reduction):
    arrays = reducing_arrays(shape)
    accum, found = arrays["accum"], epilogue.compile(reducing, arrays, reduction=reduction)(**arrays)
    np.testing.assert_array_equal(found["D"], accum + 1)
    np.testing.assert_array_equal(found["rows"], accum.sum(1, keepdims=True))
    np.testing.assert_array_equal(found["columns"], accum.max((0, 2))[:, None])
    np.testing.assert_array_equal(found["total"], [[accum.min()]])
    np.testing.assert_array_equal(found["batch"], accum.sum(0))


def test_atomic_reductions_need_a_type_that_has_them():
    arrays = reducing_arrays((2, 65, 3000), np.float16)
    parts = "cannot be atomic", "Float16", "Float32, Float64, Int32, Int64", "leave reductions deterministic"
    with refused(EpilogueError, *parts):
        epilogue.compile(reducing, arrays, reduction="atomic")(**arrays)


def test_other_ways_of_reductions_are_refused():
    with refused(ArgumentError, "There are no 'fast' reductions.", "deterministic, atomic", "is the default"):
        epilogue.compile(reducing, reducing_arrays((1, 4, 8)), reduction="fast")


# Tensors that lie across


def across(accum, C, column):
    F = accum + epilogue.permute(C, (0, 2, 1)) + column
    rows = epilogue.sum(F, dim=(1,))
    columns = epilogue.max(F, dim=(2,))
    E = epilogue.permute(F, (0, 2, 1))
    D = F + 0.0
    return D, E, rows, columns


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.int8, *(pytest.param(dtype, marks=SLOW) for dtype in (np.float16, ml_dtypes.bfloat16, np.float64))],
)
@pytest.mark.parametrize(
    ("shape", "start", "vectors"),
    [
        ((2, 48, 40), 0, True),
        pytest.param((1, 200, 72), 0, True, marks=SLOW),
        ((2, 33, 40), 0, False),
        ((1, 48, 40), 1, False),
    ],
)
def test_tensors_that_lie_across_are_read_and_written_in_vectors(shape, start, vectors, dtype, monkeypatch):
    plans, executor = [], epilogue_plans._executor
    monkeypatch.setattr(epilogue_plans, "_executor", lambda plan, *rest: plans.append(plan) or executor(plan, *rest))
    batch, m, n = shape
    lying = np.zeros(batch * n * m + start, dtype)[start:].reshape(batch, n, m)
    lying[...] = whole(batch, n, m)
    arrays = {
        "accum": whole(*shape, dtype=dtype),
        "C": lying,
        "column": whole(m, 1, dtype=dtype),
        "D": np.zeros(shape, np.float32),
        "E": np.zeros((batch, n, m), dtype),
        "rows": np.zeros((batch, 1, n), np.float32),
        "columns": np.zeros((batch, m, 1), np.float32),
    }
    kernel = epilogue.compile(across, arrays)
    found = kernel(**arrays)
    F = (
        arrays["accum"].astype(np.float64)
        + lying.swapaxes(1, 2).astype(np.float64)
        + arrays["column"].astype(np.float64)
    )
    np.testing.assert_array_equal(found["D"], F)
    np.testing.assert_array_equal(found["E"].astype(np.float64), F.swapaxes(1, 2))
    np.testing.assert_array_equal(found["rows"], F.sum(1, keepdims=True))
    np.testing.assert_array_equal(found["columns"], F.max(2, keepdims=True))
    assert any(view.across for view in plans[0].epilogue.views) or not vectors


# Masks, top-k, functions of users


@pytest.mark.parametrize(
    ("shape", "dtype"), [((2, 9, 8), np.float32), ((3, 4, 130), np.float16), ((1, 33, 257), np.float64)]
)
def test_relu_stores_its_mask_as_bits_which_its_gradient_reads(shape, dtype):
    def forward(accum, bias):
        D, mask = epilogue.relu(accum + bias, with_mask=True)
        return D, mask

    batch, m, n = shape
    accum, bias = whole(*shape, dtype=dtype), whole(n)
    bits = epilogue.Bits(np.full((batch, m, -(-n // 8)), 255, np.uint8), n)
    arrays = {"accum": accum, "bias": bias, "D": np.zeros(shape, dtype), "mask": bits}
    kernel = epilogue.compile(forward, arrays)
    for found in (kernel(**arrays), kernel(accum=accum, bias=bias)):
        np.testing.assert_array_equal(found["mask"].array, np.packbits(accum + bias > 0, axis=-1, bitorder="little"))
    gradient = whole(*shape, dtype=dtype)
    backward = {"accum": gradient, "mask": bits, "D": np.zeros(shape, dtype)}
    found = epilogue.compile(lambda accum, mask: epilogue.select(mask, accum, 0.0), backward)(**backward)
    np.testing.assert_array_equal(found["D"], np.where(accum + bias > 0, gradient, 0))
    np.testing.assert_array_equal(np.asarray(bits), accum + bias > 0)


def test_bits_need_their_bytes():
    with refused(EpilogueError, "A mask of 9 bits in a row needs 2 bytes there", "(4, 1)", "-(-columns // 8)"):
        epilogue.Bits(np.zeros((4, 1), np.uint8), 9)
    with pytest.raises(EpilogueError, match="lie behind each other"):
        epilogue.Bits(np.zeros((2, 4), np.uint8).T, 8)


def test_bits_that_go_across_rows_are_refused():
    mask = epilogue.Bits(np.zeros((8, 1), np.uint8), 8)

    def crossed(accum, mask, other):
        D = epilogue.select(epilogue.permute(mask, (1, 0)), accum, 0.0) * other
        return D

    arrays = {"accum": whole(1, 8, 8), "mask": mask, "other": mask, "D": whole(1, 8, 8)}
    with pytest.raises(EpilogueError, match="do not lie behind each other along rows of the kernel"):
        epilogue.compile(crossed, arrays)(**arrays)


@pytest.mark.parametrize(
    ("shape", "k"), [((2, 5, 8), 2), ((1, 3, 24), 4), ((1, 2, 1000), 3), ((1, 7, 5), 9), ((2, 3, 1), 1)]
)
def test_top_k_with_softmax(shape, k):
    accum = rng.normal(0, 1, shape).astype(np.float32)
    accum[0, 0, :2] = 4.0  # equal ones: the first counts as greater
    arrays = {"accum": accum, "D": np.zeros(shape, np.float32)}
    found = epilogue.compile(lambda accum: epilogue.topk_softmax(accum, k), arrays)(**arrays)["D"]
    expected = np.zeros(shape)
    for place in np.ndindex(shape[:2]):
        line = accum[place].astype(np.float64)
        chosen = sorted(range(len(line)), key=lambda n: (-line[n], n))[:k]
        powers = np.exp(line[chosen] - line[chosen].max())
        expected[(*place, chosen)] = powers / powers.sum()
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    np.testing.assert_array_equal(found > 0, expected > 0)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16])
def test_top_k_softmax_is_stored_by_the_rules_of_stores(dtype):
    accum = np.array([[0, 3, 1, 2], [4, 0, 0, 4]], np.float32)
    found = epilogue.compile(
        lambda accum: epilogue.topk_softmax(accum, 2), {"accum": accum, "D": np.zeros((2, 4), dtype)}
    )(accum=accum)["D"]
    large = math.e / (math.e + 1)
    expected = np.array([[0, large, 0, 1 - large], [0.5, 0, 0, 0.5]])
    expected = np.rint(expected) if np.dtype(dtype).kind == "i" else expected  # 0.73 is 1, and 0.5 is 0
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_rows_of_top_k_must_fit_a_block():
    arrays = {"accum": np.zeros((1, 1, 20_000), np.float32), "D": np.zeros((1, 1, 20_000), np.float32)}
    with refused(EpilogueError, "A row of top-k with softmax does not fit a block", "20000", "16384", "shorter rows"):
        epilogue.compile(lambda accum: epilogue.topk_softmax(accum, 2), arrays)(**arrays)


@pytest.fixture
def leaky(monkeypatch):
    monkeypatch.setitem(epilogue.FUNCTIONS, "leaky", None)
    del epilogue.FUNCTIONS["leaky"]
    monkeypatch.setitem(device_functions.FUNCTIONS, "leaky", None)
    del device_functions.FUNCTIONS["leaky"]
    epilogue.register_function("leaky", lambda x: np.where(x > 0, x, 0.125 * x))
    yield lambda accum: epilogue.apply("leaky", accum)


def test_a_function_of_the_user(leaky):
    epilogue.register_device_function("leaky", lambda x: cute.where(x > 0, x, x * 0.125))
    arrays = {"accum": whole(1, 4, 8), "D": whole(1, 4, 8)}
    accum = arrays["accum"]
    np.testing.assert_array_equal(epilogue.compile(leaky, arrays)(**arrays)["D"], np.where(accum > 0, accum, accum / 8))


def test_a_function_without_a_kernel(leaky):
    arrays = {"accum": whole(1, 4, 8), "D": whole(1, 4, 8)}
    with refused(NoImplementationError, "No kernel computes node compute_0", "leaky", "register_device_function"):
        epilogue.compile(leaky, arrays)(**arrays)


# Mistakes of calls


def test_mistakes_of_calls_are_named():
    arrays = scaled_arrays(1, 4, 8)
    kernel = epilogue.compile(scaled, {**arrays, "D": np.zeros((1, 4, 8), np.float32)})
    with refused(ArgumentError, "Operand C of the epilogue is missing.", "pass C="):
        kernel(accum=arrays["accum"], bias=arrays["bias"])
    with refused(ArgumentError, "The epilogue has no operand or output gamma.", "C, accum, alpha, bias", "outputs   D"):
        kernel(**arrays, gamma=1.0)
    with pytest.raises(EpilogueError, match="Dimension mismatch between"):
        kernel(**{**arrays, "bias": whole(9)})


def test_arrays_of_several_places_are_refused():
    torch = pytest.importorskip("torch")
    arrays = scaled_arrays(1, 4, 8)
    kernel = epilogue.compile(scaled, {**arrays, "D": np.zeros((1, 4, 8), np.float32)})
    with refused(ArgumentError, "accum lies on another device than the other arrays.", "NumPy", "cpu", "one place"):
        kernel(**{**arrays, "C": torch.zeros(1, 4, 8)})
