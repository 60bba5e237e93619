"""Implementations, by names and strides."""

import numpy as np
import pytest

from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import PassGetImpl, max, topk_softmax


def test_loads():
    def function(accum, C, aux, flat, turned, row, rows, column, columns, scalar, scalars, number):
        D = accum + C + aux + flat + turned + row + rows + column + columns + scalar + scalars + number + 2
        return D

    examples = {
        "C": whole(), "aux": whole(), "flat": whole(16, 8), "turned": whole(2, 8, 16).swapaxes(1, 2), "row": whole(8),
        "rows": whole(2, 1, 8), "column": whole(16, 1), "columns": whole(2, 16, 1), "scalar": whole(1, 1),
        "scalars": whole(2, 1, 1), "number": 1.5,
    }  # fmt: skip
    dag = graph(function, examples, PassGetImpl)
    assert {meta.name: meta.underlying_impl for meta in dag.loads()} == {
        "accum": "accumulator", "C": "load_src", "aux": "aux_load", "flat": "aux_load", "turned": "aux_load",
        "row": "row_broadcast", "rows": "row_broadcast", "column": "column_broadcast", "columns": "column_broadcast",
        "scalar": "scalar_broadcast", "scalars": "scalar_broadcast", "number": "scalar_broadcast",
        "imm_2_k0": "immediate",
    }  # fmt: skip


@pytest.mark.parametrize(
    "dim, shape, name",
    [
        (1, (2, 1, 8), "row_reduction"),
        ((0, 1), (1, 8), "row_reduction"),
        (2, (2, 16, 1), "column_reduction"),
        ((0, 2), (16, 1), "column_reduction"),
        ((1, 2), (2, 1, 1), "scalar_reduction"),
        (None, (1, 1), "scalar_reduction"),
        (0, (16, 8), "batch_reduction"),
    ],
)
def test_stores(dim, shape, name):
    def function(accum):
        most = max(accum, dim=dim)
        E = accum + 1
        D = E + 1
        return D, E, most

    dag = graph(function, {"E": zeros(), "most": zeros(*shape)}, PassGetImpl)
    assert {meta.name: meta.underlying_impl for meta in dag.outputs()} == {
        "D": "store_d", "E": "aux_store", "most": name,
    }  # fmt: skip


@pytest.mark.parametrize("m, n", [(1, 8), (16, 1), (1, 1)])
@pytest.mark.parametrize("dim", [1, 2, (1, 2)])
def test_reductions_over_modes_of_one_element(m, n, dim):
    def function(accum):
        most = max(accum, dim=dim)
        D = accum
        return D, most

    accum = whole(2, m, n)
    wanted = accum.max(dim, keepdims=True)
    dag = graph(function, {"accum": accum, "D": zeros(2, m, n), "most": zeros(*wanted.shape)}, PassGetImpl)
    assert dag.get_node_meta("most").underlying_impl.endswith("_reduction")
    np.testing.assert_array_equal(dag.evaluate(accum=accum)["most"], wanted)


def test_computes():
    def function(accum):
        D = topk_softmax(accum + 1, 2)
        return D

    dag = graph(function, {}, PassGetImpl)
    assert [meta.underlying_impl for meta in dag.nodes_meta if meta.op == "compute"] == ["compute", "topk_softmax"]


def test_what_remains_is_cleaned_up():
    dag = graph("def f(accum):\n    F = accum + 1\n    dead = F * 2\n    D = F\n    return D", {}, PassGetImpl)
    assert [meta.name for meta in dag.nodes_meta if meta.op == "store"] == ["D"]
    assert "PassNoOpElimination" in dag.passes_run
