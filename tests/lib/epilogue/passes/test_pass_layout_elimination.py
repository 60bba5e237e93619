"""Layout nodes dissolve into strides."""

import numpy as np

from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import PassLayoutManipulateElimination, permute, reshape


def strides(dag, *names):
    return [dag.get_node_meta(name).tensor.stride for name in names]


def check(dag, function, examples):
    given = {name: array for name, array in examples.items() if name[0].islower()}
    wanted = function(**given)
    np.testing.assert_array_equal(dag.evaluate(**given)["D"], wanted if isinstance(wanted, np.ndarray) else wanted[0])
    assert not any(meta.op == "layout" for meta in dag.nodes_meta)


def test_a_permuted_accumulator_is_stored_permuted():
    def function(accum, c):
        D = permute(accum, indices=(0, 2, 1)) + c
        return D

    examples = {"accum": whole(), "c": whole(2, 8, 16), "D": zeros(2, 8, 16)}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    assert strides(dag, "accum", "c", "D") == [(128, 8, 1), (128, 1, 16), (128, 1, 16)]
    check(dag, function, examples)


def test_what_is_permuted_and_permuted_back_is_not_moved():
    def function(accum, c):
        D = permute(permute(accum, indices=(2, 0, 1)) + permute(c, indices=(2, 0, 1)), indices=(1, 2, 0))
        return D

    examples = {"accum": whole(), "c": whole()}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    assert strides(dag, "accum", "c", "D") == [(128, 8, 1)] * 3
    check(dag, function, examples)


def test_a_reshape_splits_strides():
    def function(accum, e):
        D = reshape(accum, new_shape=(2, 4, 4, 8)) + e
        return D

    examples = {"accum": whole(), "e": whole(2, 1, 4, 8), "D": zeros(2, 4, 4, 8)}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    assert dag.get_node_meta("e").tensor.modes == (((2, 32),), ((4, 0), (4, 8)), ((8, 1),))
    assert dag.get_node_meta("D").tensor.stride == (128, 8, 1)
    check(dag, function, examples)


def test_modes_of_one_element_do_not_matter():
    def function(accum):
        D = permute(reshape(accum, new_shape=(1, 2, 16, 8)), indices=(1, 0, 2, 3))
        return D

    examples = {"accum": whole(), "D": zeros(2, 1, 16, 8)}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    assert dag.get_node_meta("D").tensor.stride == (128, 8, 1)
    check(dag, function, examples)


def test_an_operand_of_two_arrangements_is_loaded_twice():
    def function(accum, table):
        D = accum * table + permute(table, indices=(0, 2, 1))
        return D

    examples = {"accum": whole(2, 8, 8), "table": whole(2, 8, 8), "D": zeros(2, 8, 8)}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    loads = [meta for meta in dag.nodes_meta if meta.op == "load" and meta.argument == "table"]
    assert sorted(meta.tensor.stride for meta in loads) == [(64, 1, 8), (64, 8, 1)]
    check(dag, function, examples)


def test_what_does_not_depend_on_the_accumulator_is_computed_in_each_arrangement():
    def function(accum, table):
        scaled = table * 2 + 1
        D = accum * scaled + permute(scaled, indices=(0, 2, 1))
        return D

    examples = {"accum": whole(2, 8, 8), "table": whole(1, 8, 8), "D": zeros(2, 8, 8)}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    assert sum(meta.op == "compute" for meta in dag.nodes_meta) == 2 * 2 + 2
    check(dag, function, examples)


def test_an_output_without_the_accumulator():
    def function(accum, c):
        D = accum + 1
        e = permute(c, indices=(2, 1, 0)) * 2
        return D, e

    examples = {"accum": whole(), "c": whole(), "e": zeros(8, 16, 2)}
    dag = graph(function, examples, PassLayoutManipulateElimination)
    found = dag.evaluate(accum=examples["accum"], c=examples["c"])
    np.testing.assert_array_equal(found["e"], examples["c"].transpose(2, 1, 0) * 2)
    assert all(meta.shape == (2, 16, 8) for meta in dag.nodes_meta)


def test_it_may_run_again():
    def function(accum, c):
        D = permute(accum, indices=(0, 2, 1)) + c
        return D

    examples = {"accum": whole(), "c": whole(2, 8, 16), "D": zeros(2, 8, 16)}
    once = graph(function, examples, PassLayoutManipulateElimination)
    twice = graph(function, examples, PassLayoutManipulateElimination, PassLayoutManipulateElimination)
    assert once.text() == twice.text()
    check(twice, function, examples)
