"""Shapes and types of every node."""

import ml_dtypes
import numpy as np

import tilewright.cute as cute
from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import PassShapeTypePropagation, max, permute


def test_operands_are_broadcast_to_their_users_by_strides_of_zero():
    def function(accum, row, column, batch, number, half):
        scaled = row * half
        D = accum + scaled + column + batch + number
        return D

    examples = {
        "row": whole(8), "column": whole(16, 1), "batch": whole(2, 1, 1), "number": 2.0, "half": whole(1),
    }  # fmt: skip
    dag = graph(function, examples, PassShapeTypePropagation)
    strides = {name: dag.get_node_meta(name).tensor.stride for name in (*examples, "accum", "D")}
    assert strides == {
        "row": (0, 0, 1), "column": (0, 1, 0), "batch": (1, 0, 0), "number": (0, 0, 0), "half": (0, 0, 0),
        "accum": (128, 8, 1), "D": (128, 8, 1),
    }  # fmt: skip
    assert all(meta.tensor.shape == (2, 16, 8) for meta in dag.nodes_meta)
    assert all(meta.output_tensor is meta.tensor for meta in dag.nodes_meta)


def test_types():
    def function(accum, C):
        F = accum + C
        D = F
        return D, F

    examples = {"C": whole(dtype=np.int8), "F": zeros(dtype=ml_dtypes.bfloat16), "D": zeros(dtype=np.float16)}
    dag = graph(function, examples, PassShapeTypePropagation)
    types = {meta.name: (meta.element, meta.element_output) for meta in dag.nodes_meta}
    assert types["C"] == (cute.Int8, cute.Int8)
    assert types["compute_0"] == (cute.Float32, cute.Float32)
    assert types["F"] == (cute.BFloat16, cute.Float32) and types["D"] == (cute.Float16, cute.Float32)
    assert dag.get_node_meta("D").tensor.element is cute.Float16


def test_an_output_that_reduces_does_not_move_along_what_it_reduces():
    def function(accum):
        most = max(accum, dim=(0, 2))
        D = accum
        return D, most

    dag = graph(function, {"most": zeros(16, 1)}, PassShapeTypePropagation)
    assert dag.get_node_meta("most").tensor.stride == (0, 1, 0)
    assert dag.get_node_meta("most").store_tensor.shape == (16, 1)


def test_layout_nodes_change_shapes():
    def function(accum, C):
        flipped = permute(accum, indices=(2, 0, 1))
        D = flipped + C
        return D

    dag = graph(function, {"C": whole(8, 2, 1), "D": zeros(8, 2, 16)}, PassShapeTypePropagation)
    shapes = {name: dag.get_node_meta(name).shape for name in ("accum", "layout_0", "flipped", "C", "D")}
    assert shapes == {"accum": (2, 16, 8), **dict.fromkeys(("layout_0", "flipped", "C", "D"), (8, 2, 16))}


def test_users_in_two_shapes_leave_an_operand_as_it_is():
    def function(accum, bias):
        small = bias * 2
        D = accum + bias
        return D, small

    dag = graph(function, {"bias": whole(8), "small": zeros(8)}, PassShapeTypePropagation)
    assert dag.get_node_meta("bias").shape == (8,)
    accum, bias = whole(), whole(8)
    found = dag.evaluate(accum=accum, bias=bias)
    np.testing.assert_array_equal(found["small"], bias * 2)
    np.testing.assert_array_equal(found["D"], accum + bias)
