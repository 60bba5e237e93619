"""Reductions move into their stores."""

import numpy as np

from tests.lib.epilogue.passes.cases import fns, graph, whole, zeros
from tilewright.epilogue import PassPreprocessRed, max, min, sum


def function(accum, C):
    F = accum + C
    most = max(F, dim=2)
    least = min(F, dim=(0, 1))
    total = sum(accum)
    D = F
    return D, most, least, total


EXAMPLES = {"C": whole(), "most": zeros(2, 16, 1), "least": zeros(1, 8), "total": zeros(1, 1)}


def test_a_store_gets_both_functions_and_the_modes():
    dag = graph(function, EXAMPLES, PassPreprocessRed)
    stores = {name: dag.get_node_meta(name) for name in ("most", "least", "total", "D")}
    assert [(stores[name].reg_reduce_fn, stores[name].gmem_reduce_fn) for name in stores] == [
        ("maximum", "atomic_maximum"), ("minimum", "atomic_minimum"), ("plus", "atomic_add"), (None, None),
    ]  # fmt: skip
    assert [stores[name].reduce_dims for name in ("most", "least", "total")] == [2, (0, 1), None]
    assert sorted(dag.reduction_names) == ["least", "most", "total"]
    assert fns(dag) == ["plus"] and dag.get_all_inputs("most") == ["F"]


def test_other_users_of_the_value_see_it_unreduced():
    dag = graph(function, EXAMPLES, PassPreprocessRed)
    accum = whole()
    np.testing.assert_array_equal(dag.evaluate(accum=accum, C=EXAMPLES["C"])["D"], accum + EXAMPLES["C"])
