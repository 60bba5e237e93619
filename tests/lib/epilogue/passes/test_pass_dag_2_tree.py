"""The graph as a tree of nodes and fused graphs."""

import numpy as np
import pytest

from tests.lib.epilogue.table import TABLE, arrays_of
from tilewright.epilogue import EVTPassManager, PassDAG2Tree, trace


@pytest.mark.parametrize("name", TABLE)
def test_no_node_has_two_users_and_the_values_stay(name):
    made = arrays_of(TABLE[name], (2, 16, 24))
    dag = trace(TABLE[name].fn, {**made.operands, **made.outputs})
    before = dag.evaluate(**made.operands)
    EVTPassManager(dag, [PassDAG2Tree])()
    assert all(dag.out_degree(name) <= 1 for name in dag.nodes)
    after = dag.evaluate(**made.operands)
    assert list(after) == list(before)
    for output, wanted in before.items():
        np.testing.assert_array_equal(after[output], wanted)


def test_the_region_ends_where_all_users_meet():
    def function(accum, C):
        F = accum + C
        D = F * 2 + F * 3 + 1
        return D

    zeros = np.zeros((1, 4, 4), np.float32)
    dag = trace(function, {"accum": zeros, "C": zeros, "D": zeros})
    EVTPassManager(dag, [PassDAG2Tree])()
    (fused,) = (meta for meta in dag.nodes_meta if meta.op == "dag")
    inner = [meta.fn for meta in fused.subgraph.nodes_meta if meta.op == "compute"]
    assert sorted(inner) == ["multiplies", "multiplies", "plus", "plus"]
    assert fused.output_node.fn == "plus" and dag.get_users(fused.name) == ["compute_4"]
    assert dag.expanded().nodes == trace(function, {"accum": zeros, "C": zeros, "D": zeros}).nodes
