"""The graph as a tree of nodes and fused graphs."""

import numpy as np
import pytest

from tests.lib.epilogue.rows import ROWS
from tilewright.epilogue import EVTPassManager, PassDAG2Tree, trace


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_node_has_two_users_and_the_values_stay(row):
    size = row.size or (2, 16, 24)
    arrays = row.arrays(*size)
    dag = trace(row.epilogue, row.examples(*size))
    before = dag.evaluate(**arrays)
    EVTPassManager(dag, [PassDAG2Tree])()
    assert all(dag.out_degree(name) <= 1 for name in dag.nodes)
    after = dag.evaluate(**arrays)
    assert list(after) == list(before)
    for name, wanted in before.items():
        np.testing.assert_array_equal(after[name], wanted)


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
