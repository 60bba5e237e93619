"""One block-level source on every target: against NumPy in float64."""

from __future__ import annotations

import pytest

from examples.tenstorrent import elementwise, fused_matmul, gemm, row_sum, softmax
from tilewright.passes.pipeline import REGISTRY
from tilewright.targets.target import back_end_of

BOUNDS = {elementwise: 5e-3, gemm: 2.5e-3, row_sum: 3e-3, softmax: 5e-3, fused_matmul: 3e-3}


def expands():
    """Whether block-level code is made into threads."""
    back_end_of("emu")
    return "expand-tiles" in REGISTRY


@pytest.mark.parametrize("target", ["tenstorrent", "emu"])
@pytest.mark.parametrize("example", BOUNDS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples(example, target):
    if target == "emu" and not expands():
        pytest.skip("block-level code is not expanded for NVIDIA")
    assert example.check(target) < BOUNDS[example]
