"""The walk through basic blocks that goes through loops several times."""

import pytest

from tilewright.targets.nvidia.sass.blocks import Block
from tilewright.targets.nvidia.sass.loops import MOST_INSTRUCTIONS, loops_of, visits


def graph(*successors, length=1):
    """Blocks of so many instructions that lead to others."""
    return [Block(number, [None] * length, list(to)) for number, to in enumerate(successors)]


def shares(blocks, weights, **options):
    """The shares of each block in the order of its visits, and the order of all visits."""
    walked = [(block.number, share) for block, share in visits(blocks, weights, **options)]
    found = {block.number: [share for number, share in walked if number == block.number] for block in blocks}
    return found, [number for number, _ in walked]


def test_code_without_loops_is_walked_once():
    found, order = shares(graph([1, 2], [2], []), {0: 4.0, 1: 1.0, 2: 4.0})
    assert order == [0, 1, 2]
    assert found == {0: [4.0], 1: [1.0], 2: [4.0]}


def test_the_first_pass_stands_for_the_beginnings_and_the_others_for_the_rest():
    # 10 warps go 100 times through blocks 1 and 2.
    found, order = shares(graph([1], [2], [1, 3], []), {0: 10.0, 1: 1000.0, 2: 1000.0, 3: 10.0}, most=4)
    assert order == [0, *[1, 2] * 4, 3]
    assert found[1] == pytest.approx([10, 330, 330, 330]) and found[2] == found[1]


def test_fewer_rounds_than_passes():
    found, order = shares(graph([1], [1, 2], []), {0: 10.0, 1: 25.0, 2: 10.0})
    assert order == [0, 1, 1, 1, 2]
    assert found[1] == pytest.approx([10, 7.5, 7.5])


def test_loops_in_loops():
    blocks = graph([1], [2], [2, 3], [1, 4], [])
    weights = {0: 1.0, 1: 3.0, 2: 12.0, 3: 3.0, 4: 1.0}
    assert [(loop.first, loop.last, loop.trips) for loop in loops_of(blocks, weights)] == [(1, 3, 3.0), (2, 2, 4.0)]
    found, order = shares(blocks, weights)
    assert order == [0, *[1, 2, 2, 2, 2, 3] * 3, 4]
    assert [sum(found[number]) for number in range(5)] == pytest.approx(list(weights.values()))


def test_a_loop_that_nobody_entered():
    found, order = shares(graph([1], [1, 2], []), {0: 0.0, 1: 0.0, 2: 0.0})
    assert order == [0, 1, 2] and found[1] == [0.0]


def test_loops_that_overlap_are_walked_once():
    # 1 to 3 and 2 to 4: neither is in the other.
    blocks = graph([1], [2], [3], [1, 4], [2, 5], [])
    weights = dict.fromkeys(range(6), 1.0) | {1: 5.0, 2: 5.0, 3: 5.0}
    assert len(loops_of(blocks, weights)) == 1
    found, _ = shares(blocks, weights)
    assert [sum(found[number]) for number in range(6)] == pytest.approx(list(weights.values()))


def test_long_walks_are_shortened():
    blocks = graph([1], [2], [2, 1, 3], [], length=3000)
    walked = list(visits(blocks, {0: 1.0, 1: 100.0, 2: 10_000.0, 3: 1.0}))
    assert sum(len(block.instructions) for block, _ in walked) <= 1.5 * MOST_INSTRUCTIONS
    assert sum(share for block, share in walked if block.number == 2) == pytest.approx(10_000)
