"""What the guide tells a newcomer: a pass, a function and a node of one's own, in at most 40 lines each."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import epilogue
from tilewright.epilogue import (
    ComputeNode,
    EpilogueError,
    EpilogueOp,
    EVTPassBase,
    PassShapeTypePropagation,
    create_test_arrays,
    create_test_dag,
    make_node,
    trace,
    validate_dag_transformation,
)

SHAPE = (2, 16, 24)


class PassMyCustom(EVTPassBase):
    """Computes `relu(relu(x))` once, and bounds how many nodes an epilogue may have."""

    dependencies = (PassShapeTypePropagation,)
    options = {"most": 100}  # noqa: RUF012

    def requires(self) -> None:
        if len(self.dag_ir.nodes_meta) > self.values["most"]:
            raise EpilogueError(f"The epilogue has more than {self.values['most']} nodes.", hint="split it")

    def call(self) -> None:
        for node_meta in self.dag_ir.nodes_meta:
            self.process_node(node_meta)

    def process_node(self, node_meta) -> None:
        if getattr(node_meta, "fn", None) != "relu":
            return
        (source,) = self.dag_ir.get_all_inputs_meta(node_meta.name)
        if getattr(source, "fn", None) == "relu":
            self.dag_ir.replace_all_uses_with(node_meta.name, source.name)
            self.dag_ir.remove_node(node_meta.name)

    def ensures(self) -> None:
        assert validate_dag_transformation(self.dag_ir)


@dataclass(frozen=True)
class LeakyReluOp(EpilogueOp):
    """In a kernel: `inputs` are vectors of a step's elements."""

    slope: float

    def visit(self, tile, state, fetched, inputs):
        (x,) = inputs
        return cute.where(x > 0, x, x * self.slope)


class LeakyRelu(ComputeNode):
    """x where it is positive, else slope x."""

    def __init__(self, name: str, slope: float = 0.25):
        super().__init__(name, "leaky_relu", slope=slope)

    def evaluate(self, *inputs):
        return np.where(inputs[0] > 0, inputs[0], inputs[0] * np.float32(self.kwargs["slope"]))

    def operation(self, inputs):
        return LeakyReluOp(self.name, inputs, self.kwargs["slope"])


def leaky_relu(x, slope=0.25):
    """The value, and the mask that a backward pass needs."""
    return make_node(LeakyRelu, x, slope=slope), x > 0


def operands():
    random = np.random.default_rng(0)
    return {
        "accum": random.integers(-4, 5, SHAPE).astype(np.float32),
        "bias": random.integers(-4, 5, 24).astype(np.float32),
    }


def outputs():
    return {"D": np.zeros(SHAPE, np.float32), "mask": np.zeros(SHAPE, np.bool_)}


def with_mask(accum, bias):
    D, mask = leaky_relu(accum + bias, 0.5)
    return D, mask


def check(found, given):
    x = given["accum"] + given["bias"]
    np.testing.assert_array_equal(found["D"], np.where(x > 0, x, x / 2))
    np.testing.assert_array_equal(found["mask"], x > 0)


@pytest.mark.parametrize("parts", [(PassMyCustom,), (LeakyReluOp, LeakyRelu, leaky_relu)])
def test_they_are_short(parts):
    assert sum(len(inspect.getsource(part).splitlines()) for part in parts) <= 40


def test_a_pass_on_the_test_graph():
    dag_ir = create_test_dag()
    before = dag_ir.evaluate(**create_test_arrays())
    pass_instance = PassMyCustom(dag_ir)
    pass_instance()
    assert validate_dag_transformation(dag_ir)
    for name, wanted in before.items():
        np.testing.assert_array_equal(dag_ir.evaluate(**create_test_arrays())[name], wanted)


def test_a_pass_among_the_others():
    def twice(accum):
        return {"D": epilogue.relu(epilogue.relu(accum))}

    examples = {"accum": np.zeros(SHAPE, np.float32), "D": np.zeros(SHAPE, np.float32)}
    dag = trace(twice, examples, additional_passes=[PassMyCustom])
    assert [meta.fn for meta in dag.nodes_meta if meta.op == "compute"] == ["relu"]
    with pytest.raises(EpilogueError, match=r"The epilogue has more than 2 nodes\."):
        trace(twice, examples, additional_passes=[(PassMyCustom, {"most": 2})])


def test_a_node_evaluates_and_keeps_its_options_apart():
    given = operands()
    check(trace(with_mask, {**given, **outputs()}).evaluate(**given), given)

    def two(accum):
        return {"D": leaky_relu(accum, 0.5)[0] + leaky_relu(accum, 0.25)[0] + leaky_relu(accum, 0.5)[0]}

    dag = trace(two, {**given, **outputs()})
    slopes = [meta.kwargs["slope"] for meta in dag.nodes_meta if isinstance(meta, LeakyRelu)]
    assert sorted(slopes) == [0.25, 0.5]  # equal ones are computed once
    x = given["accum"]
    wanted = 2 * np.where(x > 0, x, x / 2) + np.where(x > 0, x, x / 4)
    np.testing.assert_array_equal(dag.evaluate(accum=x)["D"], wanted)


def test_a_node_on_arrays_is_its_reference():
    found, mask = leaky_relu(np.array([-2.0, 4.0], np.float32))
    np.testing.assert_array_equal(found, [-0.5, 4])
    np.testing.assert_array_equal(mask, [False, True])


def test_a_node_in_a_kernel(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")
    given = operands()
    check(epilogue.compile(with_mask, {**given, **outputs()})(**given, **outputs()), given)


def test_a_function_in_a_kernel(monkeypatch):
    """Where a node needs no class: a function by name, for NumPy and for kernels."""
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")
    epilogue.register_function("newcomer_cube", lambda x: x * x * x)
    epilogue.register_device_function("newcomer_cube", lambda x: x * x * x)
    given = {"accum": operands()["accum"]}
    examples = {**given, "D": outputs()["D"]}
    found = epilogue.compile(lambda accum: epilogue.apply("newcomer_cube", accum), examples)(**given)
    np.testing.assert_array_equal(found["D"], given["accum"] ** 3)
