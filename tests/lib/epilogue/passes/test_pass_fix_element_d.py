"""D's producer computes in D's type, from Sm90 on."""

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import PassFixElementD, relu

EXAMPLES = {"D": zeros(dtype=np.float16)}


def function(accum):
    D = relu(accum)
    return D


@pytest.mark.parametrize(
    "cc, element", [(80, cute.Float32), (89, cute.Float32), (90, cute.Float16), (100, cute.Float16)]
)
def test_by_architecture(cc, element):
    dag = graph(function, EXAMPLES, PassFixElementD, cc=cc)
    assert dag.get_node_meta("compute_0").element_output is element
    assert dag.get_node_meta("D").element is cute.Float16


def test_a_value_that_others_use_is_not_rounded():
    def shared(accum):
        x = accum / 3
        most = x * 1024
        D = x
        return D, most

    dag = graph(shared, {**EXAMPLES, "most": zeros()}, PassFixElementD)
    accum = whole()
    np.testing.assert_array_equal(dag.evaluate(accum=accum)["most"], (accum / np.float32(3)) * 1024)


def test_the_store_rounds_once():
    dag = graph(function, EXAMPLES, PassFixElementD)
    accum = np.full((2, 16, 8), 1 / 3, np.float32)
    np.testing.assert_array_equal(dag.evaluate(accum=accum)["D"], accum.astype(np.float16))
