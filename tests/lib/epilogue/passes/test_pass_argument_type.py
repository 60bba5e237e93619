"""What a call passes."""

import numpy as np

from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import PassGetArgumentType, permute


def test_operands_then_outputs_without_immediates():
    def function(accum, C, alpha, table, unused):
        F = alpha * accum + 2
        D = F + C + table + permute(table, indices=(0, 2, 1))
        return D, F

    examples = {
        "accum": whole(2, 8, 8), "C": whole(8), "alpha": 0.5, "table": whole(1, 8, 8), "unused": whole(8),
        "D": zeros(2, 8, 8, dtype=np.float16), "F": zeros(2, 8, 8),
    }  # fmt: skip
    dag = graph(function, examples, PassGetArgumentType)
    assert [(one.name, str(one.element), one.tensor.shape, one.is_output) for one in dag.arguments] == [
        ("C", "Float32", (8,), False),
        ("accum", "Float32", (2, 8, 8), False),
        ("alpha", "Float32", (), False),
        ("table", "Float32", (1, 8, 8), False),
        ("D", "Float16", (2, 8, 8), True),
        ("F", "Float32", (2, 8, 8), True),
    ]
