"""Writing epilogues: the three ways, ordinary Python inside them, and what examples may be."""

import functools

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.cute as cute
from tilewright import epilogue
from tilewright.epilogue import (
    amax,
    gelu,
    hardswish,
    identity,
    max,
    maximum,
    minimum,
    permute,
    quantize,
    relu,
    reshape,
    select,
    silu,
    sum,
    topk_softmax,
    trace,
)

SHAPE = (2, 16, 8)
RANDOM = np.random.default_rng(7)


def whole(*shape, dtype=np.float32):
    return RANDOM.integers(-3, 4, shape or SHAPE).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape or SHAPE, dtype)


ARRAYS = {"accum": whole(), "C": whole(), "bias": whole(8)}
WANTED = np.maximum(ARRAYS["accum"] + ARRAYS["C"] + ARRAYS["bias"], 0)
EXAMPLES = {**ARRAYS, "D": zeros(), "E": zeros()}


def d_of(function, examples=None, **options):
    """D of an epilogue, as traced and after all passes."""
    examples = examples or EXAMPLES
    given = {name: array for name, array in examples.items() if name not in ("D", "E")}
    return trace(function, examples, **options).evaluate(**given)["D"]


# Three ways


def evt_style(accum, C, bias):
    F = accum + C
    D = relu(F + bias)
    return D


def dict_style(accum, C, bias):
    return {"D": relu(accum + C + bias)}


@pytest.mark.parametrize(
    "function",
    [
        evt_style,
        dict_style,
        lambda accum, C, bias: relu(accum + C + bias),
        lambda accum, C, bias: {"D": relu(accum + C + bias)},
        "def anything(accum, C, bias):\n    D = relu(accum + C + bias)\n    return D\n",
        "lambda accum, C, bias: relu(accum + C + bias)",
    ],
    ids=["evt", "dict", "lambda", "lambda-dict", "text", "lambda-text"],
)
def test_three_ways_and_their_texts_are_one_graph(function):
    np.testing.assert_array_equal(d_of(function), WANTED)


def test_variables_are_stores_under_their_names():
    dag = epilogue.parse(evt_style, EXAMPLES)
    assert {meta.name for meta in dag.nodes_meta if meta.op == "store"} == {"F", "D"}
    assert [meta.name for meta in dag.nodes_meta if meta.is_output] == ["D"]
    assert dag.get_all_inputs("F") == ["compute_0"] and dag.get_all_inputs("compute_1") == ["F", "bias"]


def test_outputs_of_a_dict_have_any_names_and_order():
    def function(accum, C, bias):
        total = accum + C
        return {"E": total, "D": relu(total + bias), "half": 0.5 * total}

    dag = trace(function, {**EXAMPLES, "half": zeros()})
    found = dag.evaluate(**ARRAYS)
    assert list(found) == ["E", "D", "half"] == list(dag.return_names)
    np.testing.assert_array_equal(found["half"], (ARRAYS["accum"] + ARRAYS["C"]) / 2)


def test_a_dict_needs_no_d():
    assert trace(lambda accum: {"E": accum + 1}, EXAMPLES, cc=90).return_names == ("E",)


def test_functions_need_no_import():
    """Names that the function's module does not have are those of the epilogues."""
    text = "def f(accum):\n    D = maximum(max(3, 2) * accum, tanh(accum) * 0)\n    return D"
    np.testing.assert_array_equal(d_of(text), np.maximum(3 * ARRAYS["accum"], 0))


def test_names_of_the_module_come_first():
    text = "def relu(x):\n    return x + 100\n\ndef f(accum):\n    D = relu(accum)\n    return D"
    np.testing.assert_array_equal(d_of(text), ARRAYS["accum"] + 100)


# Ordinary Python


def leaky(x, slope=0.5):
    return select(x > 0, x, slope * x)


def test_helpers_closures_and_constants():
    factor = 2
    table = {"shift": np.float32(1.5)}

    def function(accum, C):
        D = leaky(factor * accum + table["shift"]) - C
        return D

    x = 2 * ARRAYS["accum"] + 1.5
    np.testing.assert_array_equal(d_of(function), np.where(x > 0, x, x / 2) - ARRAYS["C"])


def test_loops_and_branches_on_python_values():
    weights = [1.0, 0.5, 0.25]

    def function(accum, C, bias=None, activation="relu"):
        x = accum
        for weight in weights:
            x = x * weight + C
        if bias is not None:
            x = x + bias
        D = relu(x) if activation == "relu" else x
        return D

    x = ARRAYS["accum"]
    for weight in weights:
        x = x * weight + ARRAYS["C"]
    np.testing.assert_array_equal(d_of(function), np.maximum(x + ARRAYS["bias"], 0))
    np.testing.assert_array_equal(d_of(function, {**EXAMPLES, "bias": None}), np.maximum(x, 0))


def test_an_output_may_be_made_in_a_loop():
    def function(accum):
        D = accum
        for _ in range(3):
            D = D + accum
        return D

    np.testing.assert_array_equal(d_of(function), 4 * ARRAYS["accum"])


def test_either_branch_may_define_a_variable():
    def function(accum, plus=True):
        if plus:
            D = accum + 1
        else:
            D = accum - 1
        return D

    np.testing.assert_array_equal(d_of(function), ARRAYS["accum"] + 1)


def test_several_at_once_and_annotated_and_in_expressions():
    def both(x):
        return relu(x), x * 2

    def function(accum, C):
        F, G = both(accum)
        H = K = F + C
        twice: object = G
        D = (inner := H + K) + twice + inner
        return D

    a, c = ARRAYS["accum"], ARRAYS["C"]
    np.testing.assert_array_equal(d_of(function), 4 * (np.maximum(a, 0) + c) + 2 * a)
    names = {meta.name for meta in epilogue.parse(function, EXAMPLES).nodes_meta if meta.op == "store"}
    assert names == {"F", "G", "H", "K", "twice", "inner", "D"}


def test_methods_partials_and_wrapped_functions():
    def wrapper(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapped

    @wrapper
    def function(accum, by=1):
        D = accum + by
        return D

    class Adding:
        by = 3

        def epilogue(self, accum, C, factor=1):
            D = factor * accum + self.by * C
            return D

    a, c = ARRAYS["accum"], ARRAYS["C"]
    np.testing.assert_array_equal(d_of(function), a + 1)
    np.testing.assert_array_equal(d_of(functools.partial(function, by=2)), a + 2)
    np.testing.assert_array_equal(d_of(Adding().epilogue), a + 3 * c)
    np.testing.assert_array_equal(d_of(functools.partial(Adding().epilogue, factor=2)), 2 * a + 3 * c)


def test_a_function_without_source_returns_a_dict():
    namespace = {}
    exec(compile("def f(accum):\n    return {'D': accum + 1}", "<nowhere>", "exec"), namespace)
    np.testing.assert_array_equal(d_of(namespace["f"]), ARRAYS["accum"] + 1)
    exec(compile("def f(accum):\n    D = accum + 1\n    return D", "<nowhere>", "exec"), namespace)
    with pytest.raises(SyntaxError, match=r"outputs have no names, since its source is not available\."):
        d_of(namespace["f"])


def test_operators():
    def function(accum, C):
        powers = accum**3 / 4 + (1 - accum) * (accum < C) + 3 / (abs(C) + 1) - (C < 2)
        masks = (accum <= C) * 4 + (C >= 1) * 8 + (C == 2) * 16 + (accum != 0) * 32
        D = -accum + abs(C) - (+C) * 2 + powers + masks
        return D

    a, c = (ARRAYS[name].astype(np.float64) for name in ("accum", "C"))
    wanted = -a + np.abs(c) - c * 2 + a**3 / 4 + (1 - a) * (a < c) + 3 / (np.abs(c) + 1) - (c < 2)
    wanted += (a <= c) * 4 + (c >= 1) * 8 + (c == 2) * 16 + (a != 0) * 32
    np.testing.assert_allclose(d_of(function), wanted, rtol=1e-6, atol=1e-6)


def test_variables_and_nodes_do_not_clash():
    def function(accum):
        compute_0 = accum * 2
        imm_1_k0 = compute_0 + 1
        D = imm_1_k0 + 1
        return D

    np.testing.assert_array_equal(d_of(function), ARRAYS["accum"] * 2 + 2)


def test_a_value_used_twice_by_one_function():
    def function(accum):
        D = accum * accum + accum
        return D

    np.testing.assert_array_equal(d_of(function), ARRAYS["accum"] ** 2 + ARRAYS["accum"])


def test_no_batch():
    def function(accum, bias):
        rows = max(accum, dim=-1)
        D = accum + bias
        return D, rows

    examples = {"accum": whole(16, 8), "bias": whole(8), "D": zeros(16, 8), "rows": zeros(16, 1)}
    found = trace(function, examples).evaluate(accum=examples["accum"], bias=examples["bias"])
    np.testing.assert_array_equal(found["D"], examples["accum"] + examples["bias"])
    np.testing.assert_array_equal(found["rows"], examples["accum"].max(1, keepdims=True))


# Examples


def test_examples_of_pytorch():
    torch = pytest.importorskip("torch", reason="the examples are PyTorch's, an extra")
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn, torch.int8, torch.bool)
    for dtype in dtypes:
        example = torch.zeros(SHAPE).to(dtype)
        dag = trace(evt_style, {"accum": example.float(), "C": example, "bias": example[0, 0], "D": torch.zeros(SHAPE)})
        text = str(dag.get_node_meta("C").element)
        assert text.lower().replace("e4m3fn", "") == str(dtype).removeprefix("torch.").replace(
            "bool", "boolean"
        ).replace("_e4m3fn", "")
    strided = torch.zeros(2, 8, 16).transpose(1, 2)
    dag = trace(evt_style, {"accum": strided, "C": strided, "bias": strided[0, 0], "D": strided})
    assert dag.get_node_meta("C").tensor.stride == (128, 1, 16) == dag.get_node_meta("D").tensor.stride


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.int32, np.bool_])
def test_types_of_operands_are_those_of_their_examples(dtype):
    dag = trace(evt_style, {**EXAMPLES, "C": zeros(dtype=dtype)})
    meta = dag.get_node_meta("C")
    assert meta.tensor.numpy_dtype == np.dtype(dtype) and meta.element_output is meta.element
    assert dag.get_node_meta("compute_0").element_output is cute.Float32


def test_numbers_are_operands_that_a_call_may_change():
    def function(accum, alpha, k):
        D = alpha * accum + k
        return D

    dag = trace(function, {"accum": whole(), "alpha": 2, "k": np.float16(0.5), "D": zeros()})
    np.testing.assert_array_equal(dag.evaluate(accum=ARRAYS["accum"])["D"], 2 * ARRAYS["accum"] + 0.5)
    np.testing.assert_array_equal(dag.evaluate(accum=ARRAYS["accum"], alpha=3, k=1)["D"], 3 * ARRAYS["accum"] + 1)
    assert [dag.get_node_meta(name).element for name in ("alpha", "k")] == [cute.Float32, cute.Float16]
    assert [dag.get_node_meta(name).underlying_impl for name in ("alpha", "k")] == ["scalar_broadcast"] * 2


def test_arrays_of_any_strides():
    big = whole(2, 32, 24)
    examples = {
        "accum": big[:, ::2, 3:11],
        "C": np.asfortranarray(whole()),
        "bias": whole(16)[::2],
        "D": np.zeros((2, 8, 16), np.float32).swapaxes(1, 2),
    }
    wanted = np.maximum(examples["accum"] + examples["C"] + examples["bias"], 0)
    found = d_of(evt_style, examples)
    np.testing.assert_array_equal(found, wanted)
    dag = trace(evt_style, examples)
    assert dag.get_node_meta("accum").tensor.stride == (768, 48, 1)
    assert dag.get_node_meta("bias").tensor.stride == (0, 0, 2)
    assert dag.get_node_meta("D").tensor.stride == (128, 1, 16)


def test_arrays_that_run_backwards():
    examples = {"accum": whole()[:, ::-1], "C": whole()[::-1, :, ::-1], "bias": whole(8)[::-1], "D": zeros()[..., ::-1]}
    wanted = np.maximum(examples["accum"] + examples["C"] + examples["bias"], 0)
    np.testing.assert_array_equal(d_of(evt_style, examples), wanted)
    assert trace(evt_style, examples).get_node_meta("C").tensor.stride == (-128, 8, -1)


@pytest.mark.parametrize("shape", [(0, 16, 8), (2, 0, 8), (2, 16, 0)])
def test_no_elements(shape):
    def function(accum, C):
        total = sum(accum)
        most = max(accum, dim=(1, 2))
        D = accum + C
        return D, total, most

    examples = {"accum": whole(*shape), "C": whole(1, 1, 1), "D": zeros(*shape)}
    examples |= {"total": zeros(1, 1), "most": zeros(shape[0], 1, 1)}
    dag = trace(function, examples)
    found = dag.evaluate(accum=examples["accum"], C=examples["C"])
    assert found["D"].shape == shape and found["total"] == 0 and (found["most"] == -np.inf).all()


def test_integers_are_computed_in_what_is_asked():
    def function(accum, C):
        D = accum * 1000 + C
        return D

    examples = {"accum": np.full(SHAPE, 20_001, np.int32), "C": whole(dtype=np.int32), "D": zeros(dtype=np.int32)}
    found = d_of(function, examples, element_compute=cute.Int32)
    np.testing.assert_array_equal(found, examples["accum"] * 1000 + examples["C"])


# Functions


def test_relu_with_its_mask():
    def function(accum):
        D, mask = relu(accum, with_mask=True)
        return D, mask

    dag = trace(function, {"accum": whole(), "D": zeros(), "mask": zeros(dtype=np.uint8)})
    found = dag.evaluate(accum=ARRAYS["accum"])
    np.testing.assert_array_equal(found["D"], np.maximum(ARRAYS["accum"], 0))
    np.testing.assert_array_equal(found["mask"], ARRAYS["accum"] > 0)
    assert found["mask"].dtype == np.uint8


@pytest.mark.parametrize(
    "dtype, element",
    [(np.int8, cute.Int8), (ml_dtypes.float8_e4m3fn, tilewright.Float8E4M3FN), (ml_dtypes.float8_e5m2, "f8")],
)
def test_quantised_outputs_with_scales(dtype, element):
    element = tilewright.Float8E5M2 if element == "f8" else element
    values = np.linspace(-300, 300, 256).astype(np.float32).reshape(SHAPE)

    def function(accum, scale):
        D = quantize(accum, scale, element)
        D_amax = amax(accum)
        return D, D_amax

    examples = {"accum": values, "scale": 2.5, "D": zeros(dtype=dtype), "D_amax": zeros(1, 1)}
    found = trace(function, examples).evaluate(accum=values)
    info = np.iinfo(dtype) if dtype == np.int8 else ml_dtypes.finfo(dtype)
    limited = np.clip(values.astype(np.float64) * 2.5, float(info.min), float(info.max))
    wanted = (np.rint(limited) if dtype == np.int8 else limited).astype(dtype)
    np.testing.assert_array_equal(found["D"].astype(np.float32), wanted.astype(np.float32))
    assert np.isfinite(found["D"].astype(np.float32)).all()
    assert found["D_amax"] == 300


def test_types_of_numpy_name_quantised_outputs_too():
    dag = trace(
        lambda accum: quantize(accum, 1.0, np.int8),
        {"accum": np.full(SHAPE, 1e6, np.float32), "D": zeros(dtype=np.int8)},
    )
    assert dag.evaluate(accum=np.full(SHAPE, -1e6))["D"][0, 0, 0] == -128


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_topk_with_softmax(k):
    values = RANDOM.normal(size=SHAPE).astype(np.float32)
    values[0, 0] = 1  # all equal: the first k count
    found = d_of(lambda accum: topk_softmax(accum, k), {"accum": values, "D": zeros()})
    for row, got in zip(values.reshape(-1, 8).astype(np.float64), found.reshape(-1, 8), strict=True):
        kept = sorted(range(8), key=lambda i: (-row[i], i))[:k]
        wanted = np.zeros(8)
        wanted[kept] = np.exp(row[kept]) / np.exp(row[kept]).sum()
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_activations_on_numbers_that_are_known():
    x = np.array([-4.0, -3, -1, 0, 1, 3, 4], np.float32)
    np.testing.assert_allclose(hardswish(x), [0, 0, -1 / 3, 0, 2 / 3, 3, 4], rtol=1e-6)
    np.testing.assert_allclose(gelu(x), [-0.000126685, -0.00404969, -0.15865525, 0, 0.84134475, 2.99595031, 3.99987331],
                               rtol=1e-5)  # fmt: skip
    np.testing.assert_allclose(silu(x)[[2, 4]], [-0.26894142, 0.73105858], rtol=1e-6)
    assert np.isnan(relu(np.float32("nan"))) and np.isnan(maximum(np.float32("nan"), 1))
    assert np.isnan(minimum(1, np.float32("nan"))) and identity(3) == 3


def test_functions_of_epilogues_leave_python_s_their_work():
    assert max(2, 5, 3) == 5 and max([1, 4]) == 4 and max([], default=0) == 0
    assert sum([1, 2], 10) == 13 and epilogue.min("b", "a") == "a"
    np.testing.assert_array_equal(sum(np.ones((2, 3)), dim=1), [[3], [3]])
    np.testing.assert_array_equal(max(np.arange(6).reshape(2, 3)), [[5]])


def test_layouts_on_arrays():
    array = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(permute(array, (2, 0, 1)), array.transpose(2, 0, 1))
    np.testing.assert_array_equal(permute(array, indices=(-1, 0, 1)), array.transpose(2, 0, 1))
    np.testing.assert_array_equal(reshape(array, (4, -1)), array.reshape(4, 6))


def test_own_functions():
    epilogue.register_function("test_cube", lambda x: x**3)
    try:
        found = d_of(lambda accum: epilogue.apply("test_cube", accum))
        np.testing.assert_array_equal(found, ARRAYS["accum"] ** 3)
        with pytest.raises(epilogue.EpilogueError, match="A function of epilogues named test_cube is there already"):
            epilogue.register_function("test_cube", lambda x: x)
    finally:
        del epilogue.FUNCTIONS["test_cube"]
    with pytest.raises(epilogue.EpilogueError, match="Epilogues have no function test_cube"):
        d_of(lambda accum: epilogue.apply("test_cube", accum))


def test_equal_epilogues_give_equal_text():
    assert trace(evt_style, EXAMPLES).text() == trace(evt_style, EXAMPLES).text()


def test_additional_passes_run_before_implementations_are_chosen_unless_they_depend_on_it():
    seen = []

    class Early(epilogue.EVTPassBase):
        def call(self):
            seen.append((self.get_name(), self.dag_ir.get_node_meta("accum").underlying_impl))
            assert not any(meta.op == "layout" for meta in self.dag_ir.nodes_meta)

    class Late(epilogue.EVTPassBase):
        dependencies = (epilogue.PassGetImpl,)

        def call(self):
            seen.append((self.get_name(), self.dag_ir.get_node_meta("accum").underlying_impl))

    trace(evt_style, EXAMPLES, additional_passes=[Late, Early])
    assert seen == [("Early", None), ("Late", "accumulator")]
