"""Functions of numbers that the epilogue states."""

import numpy as np
import pytest

from tests.lib.epilogue.passes.cases import fns, graph, whole
from tilewright.epilogue import (
    ComputeNode,
    EVTPassManager,
    LoadNode,
    PassConstantFolding,
    PassLayoutManipulateElimination,
    Tensor,
)
from tilewright.lang.numbers.numeric import Float32


@pytest.mark.parametrize(
    "text, left",
    [
        ("accum * 1", []),
        ("1 * accum", []),
        ("accum / 1.0", []),
        ("accum - 0", []),
        ("accum + 0", ["plus"]),
        ("0 - accum", ["minus"]),
        ("1 / accum", ["divides"]),
        ("accum * 2", ["multiplies"]),
    ],
)
def test_what_hands_on_one_operand(text, left):
    dag = graph(f"def f(accum):\n    D = {text}\n    return D", {}, PassConstantFolding)
    assert fns(dag) == left


def test_a_zero_keeps_its_sign():
    dag = graph("def f(accum):\n    D = accum + 0\n    return D", {}, PassConstantFolding)
    found = dag.evaluate(accum=np.full((2, 16, 8), -0.0, np.float32))["D"]
    assert not np.signbit(found).any()


def test_a_function_of_numbers_is_a_number():
    dag = graph("def f(accum):\n    k = 0.75\n    D = accum * k\n    return D", {}, PassLayoutManipulateElimination)
    scalar = Tensor(Float32, (), value=3.0)
    three = LoadNode("imm_3", scalar)
    three.tensor = scalar.broadcast((2, 16, 8))
    product = ComputeNode("product", "multiplies")
    product.tensor = three.tensor
    dag.add_node(three)
    dag.add_node(product)
    dag.replace_all_uses_with("imm_0_75_k0", "product")
    dag.add_edge("imm_0_75_k0", "product", 0)
    dag.add_edge("imm_3", "product", 1)
    EVTPassManager(dag, [PassConstantFolding])()
    (folded,) = (meta for meta in dag.get_all_inputs_meta("compute_0") if meta.op == "load" and meta.name != "accum")
    assert folded.is_immediate and folded.example.value == 2.25 and folded.tensor.shape == (2, 16, 8)
    accum = whole()
    np.testing.assert_array_equal(dag.evaluate(accum=accum)["D"], accum * 2.25)


def test_numbers_that_a_call_gives_are_not_folded():
    dag = graph("def f(accum, alpha):\n    D = accum * alpha\n    return D", {"alpha": 1.0}, PassConstantFolding)
    assert fns(dag) == ["multiplies"]
