"""The pass and the operation of docs/extending.md, used on other kernels than the page's own."""

from pathlib import Path

import numpy as np
import pytest

import tilewright.cute as cute
from tests.docs.blocks import Document, find_blocks
from tilewright.passes import pipeline
from tilewright.tools import demo_kernels

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def page():
    """The names that the page defines."""
    registered = dict(pipeline.REGISTRY)
    document = Document(PAGE)
    assert list(document.run(lambda: "")) is not None
    yield document.module
    pipeline.REGISTRY.clear()
    pipeline.REGISTRY.update(registered)


def test_the_pass_has_at_most_20_lines():
    (block,) = [block for block in find_blocks(PAGE.read_text()) if "class CountLoads(cutlass.Pass):" in block.lines]
    assert len(block.lines) <= 20


@pytest.mark.parametrize(
    ("function", "arguments", "loads"),
    [
        (demo_kernels.add, [np.zeros(256, np.float32)] * 3, 2),
        (demo_kernels.row_sum, [np.zeros((4, 256), np.float32), np.zeros(4, np.float32)], 2),
        # The halving starts from a constant, so its 8 steps of 2 loads are unrolled.
        (demo_kernels.block_sum, [np.zeros(512, np.int32), np.zeros(2, np.int32)], 1 + 8 * 2 + 1),
    ],
)
def test_the_pass_counts_the_loads_of_other_kernels(page, function, arguments, loads):
    counter = page.CountLoads()
    cute.compile(function, *arguments, passes=counter, target="emu")
    assert counter.loads == loads


def test_the_operation_adds_over_a_warp(page):
    x = np.random.default_rng(0).integers(-100, 100, 96).astype(np.float32)
    sums = np.zeros_like(x)
    cute.compile(page.warp_sums, x, sums, target="emu")(x, sums)
    assert np.array_equal(sums, np.repeat(x.reshape(3, 32).sum(axis=1), 32))
