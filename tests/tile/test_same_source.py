"""One block-level source on every target: against NumPy in float64."""

from __future__ import annotations

import pytest

from examples.tenstorrent import elementwise, fused_matmul, gemm, row_sum, softmax

BOUNDS = {elementwise: 5e-3, gemm: 2.5e-3, row_sum: 3e-3, softmax: 5e-3, fused_matmul: 3e-3}


@pytest.mark.parametrize("target", ["tenstorrent", "emu"])
@pytest.mark.parametrize("example", BOUNDS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples(example, target):
    assert example.check(target) < BOUNDS[example]
