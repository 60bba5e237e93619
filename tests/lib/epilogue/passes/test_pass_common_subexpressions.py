"""What is computed twice is computed once."""

import numpy as np
import pytest

from tests.lib.epilogue.passes.cases import fns, graph, whole
from tilewright.epilogue import PassCommonSubexpressions


@pytest.mark.parametrize(
    "first, second, merged",
    [
        ("accum * C", "accum * C", True),
        ("accum * C", "C * accum", True),
        ("accum - C", "C - accum", False),
        ("maximum(accum, C)", "maximum(C, accum)", True),
        ("accum * 2", "accum * 2", True),
        ("accum * 2", "accum * 3", False),
        ("topk_softmax(accum, 2)", "topk_softmax(accum, 2)", True),
        ("topk_softmax(accum, 2)", "topk_softmax(accum, 3)", False),
        ("relu(accum)", "tanh(accum)", False),
    ],
)
def test_pairs(first, second, merged):
    text = f"def f(accum, C):\n    x = {first}\n    y = {second}\n    D = x + y\n    return D"
    dag = graph(text, {"C": whole()}, PassCommonSubexpressions)
    one = 1 + ("identity" in fns(dag))
    assert len(fns(dag)) == (1 + one if merged else 3)


def test_chains_merge_through_variables():
    lines = ("x = accum * C", "y = x + 1", "z = C * accum", "w = z + 1", "D = y - w", "return D")
    dag = graph(
        "def f(accum, C):\n" + "".join(f"    {line}\n" for line in lines), {"C": whole()}, PassCommonSubexpressions
    )
    assert sorted(fns(dag)) == ["minus", "multiplies", "plus"]
    found = dag.evaluate(accum=whole(), C=whole())["D"]
    np.testing.assert_array_equal(found, np.zeros_like(found))


def test_stores_are_not_merged():
    text = "def f(accum):\n    D = accum + 1\n    E = accum + 1\n    return D, E"
    dag = graph(text, {"E": np.zeros((2, 16, 8), np.float32)}, PassCommonSubexpressions)
    assert fns(dag) == ["plus"] and len(dag.outputs()) == 2
