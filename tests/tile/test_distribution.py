"""Who holds which element: every element is held, by as many threads as said, and runs are what they say."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

import tilewright.cute as cute
from tilewright.ir.context import compile_context
from tilewright.targets.nvidia.tiles.distribution import blocked, folded, of_fragments
from tilewright.targets.nvidia.tiles.products import Product

SHAPES = [
    (1,),
    (256,),
    (4096,),
    (1, 1),
    (1, 1024),
    (32, 128),
    (128, 8),
    (64, 2),
    (2, 64),
    (16, 16),
    (4, 8, 16),
    (1, 2, 1),
]


def holders(distribution, threads):
    """How many threads hold each element."""
    return Counter(
        distribution.coordinate(thread, value) for thread in range(threads) for value in range(len(distribution.values))
    )


@pytest.mark.parametrize("threads", [32, 128, 256])
@pytest.mark.parametrize("shape", SHAPES)
def test_blocked_tiles_are_shared_evenly(shape, threads):
    for fast, vector in itertools.product(range(len(shape)), (1, 4, 16)):
        made = blocked(shape, threads, fast, vector)
        found = holders(made, threads)
        assert set(found) == set(itertools.product(*map(range, shape)))
        assert set(found.values()) == {2 ** bin(made.copies).count("1")}
        width = made.run(fast, vector)
        assert all(made.coordinate(thread, value)[fast] % width == 0
                   for thread in (0, threads - 1) for value in range(0, len(made.values), width))  # fmt: skip


def test_a_warp_reads_whole_lines_and_holds_whole_rows():
    made = blocked((32, 128), 128, 1, 4)
    assert [made.coordinate(thread, 0) for thread in (0, 1, 31, 32, 96)] == [(0, 0), (0, 4), (0, 124), (1, 0), (3, 0)]
    assert made.values[:5] == ((0, 0), (0, 1), (0, 2), (0, 3), (4, 0)) and made.run(1, 8) == 4
    assert made.bits_along(1) == [0, 1, 2, 3, 4]  # a row is folded without leaving the warp
    alone = blocked((1, 1024), 128, 1, 4)
    assert alone.bits_along(1) == list(range(7)) and alone.values[4] == (0, 512)


@pytest.mark.parametrize("shape", [(32, 128), (1, 1024), (128, 8), (4, 8, 16)])
def test_folding_leaves_each_result_with_all_who_held_a_part(shape):
    source = blocked(shape, 128, len(shape) - 1, 4)
    for axis in range(len(shape)):
        left = folded(source, [axis])
        for thread in range(128):
            held = {source.coordinate(thread, value) for value in range(len(source.values))}
            wanted = {tuple(0 if mode == axis else at for mode, at in enumerate(item)) for item in held}
            assert {left.coordinate(thread, value) for value in range(len(left.values))} == wanted
            assert len(left.values) == len(wanted)


@pytest.mark.parametrize("threads", [32, 128, 256])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 8, 16), (32, 32, 32), (64, 128, 32), (128, 16, 64), (16, 256, 16)])
@pytest.mark.parametrize("element", [cute.Float16, cute.Int8])
def test_accumulators_are_shared_evenly(m, n, k, threads, element):
    if element is cute.Int8 and k == 16:
        k = 32
    with compile_context():
        made = Product.of((m, k), (k, n), element.mlir_type, threads).held
    found = holders(made, threads)
    assert set(found) == set(itertools.product(range(m), range(n)))
    assert set(found.values()) == {2 ** bin(made.copies).count("1")}
    # mma.sync: lane 0 holds (0, 0) and (0, 1), lane 1 (0, 2), lane 4 (1, 0); the third value is 8 rows below.
    assert [made.coordinate(*at) for at in ((0, 0), (0, 1), (1, 0), (4, 0), (0, 2))] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (8, 0),
    ]  # fmt: skip


def test_what_is_not_linear_is_refused():
    with pytest.raises(ValueError, match="bit 0 moves along several modes"):
        of_fragments((2, 2), 32, 32, lambda thread: [(thread & 1, thread & 1)])
