"""The space of an epilogue, by brute force: it visits the same elements of all tensors together, each once."""

import itertools
import math
import random

import numpy as np
import pytest

from tilewright.base.errors import EpilogueError
from tilewright.cute import Float16, Float32, Uint8
from tilewright.lib.epilogue.lowering.space import Operand, space_of


def plain(name, strides, shape, dtype=Float32, **facts):
    return Operand(name, dtype, tuple(((e, s),) for e, s in zip(shape, strides, strict=True)), **facts)


def offsets(factors):
    """The offset of each element of a mode, given as factors, slowest first."""
    places = itertools.product(*(range(extent) for extent, _ in factors))
    return [sum(k * step for k, (_, step) in zip(place, factors, strict=True)) for place in places]


def visited(operands, shape):
    """The offsets in all tensors of each element of (L, M, N)."""
    found = []
    for place in itertools.product(*map(range, shape)):
        found.append(tuple(sum(offsets(mode)[k] for mode, k in zip(op.modes, place, strict=True)) for op in operands))
    return sorted(found)


def visited_by(space, operands):
    axes = [[(axis.extent, axis.strides[op.name]) for axis in space.axes] for op in operands]
    places = itertools.product(*(range(axis.extent) for axis in space.axes))
    return sorted(tuple(sum(k * step for k, (_, step) in zip(p, of, strict=True)) for of in axes) for p in places)


def random_mode(pick, extent, moves):
    """Factors of a mode: a few divisors, each with any stride."""
    if not moves:
        return ((extent, 0),)
    cut = pick.choice([d for d in range(1, extent + 1) if extent % d == 0])
    steps = [pick.choice([1, 2, 3, 8, 24]) for _ in range(2)]
    return ((extent, steps[0]),) if cut in (1, extent) else ((extent // cut, steps[0]), (cut, steps[1]))


@pytest.mark.parametrize("seed", range(60))
def test_it_visits_what_the_graph_s_modes_do(seed):
    pick = random.Random(seed)
    shape = tuple(pick.choice([1, 2, 3, 4, 6, 8]) for _ in range(3))
    operands = [
        Operand(f"t{k}", Float32, tuple(random_mode(pick, extent, pick.random() < 0.8) for extent in shape))
        for k in range(pick.randrange(1, 4))
    ]
    try:
        space = space_of(operands, shape)
    except EpilogueError as error:
        assert "cut a mode of" in str(error) and "in ways that do not fit together" in str(error)
        cuts = [
            {math.prod(e for e, _ in mode[k:]) for op in operands for mode in [op.modes[m]] for k in range(2)}
            for m in range(3)
        ]
        assert any(a % b and b % a for of_mode in cuts for a, b in itertools.combinations(of_mode, 2))
        return
    assert visited_by(space, operands) == visited(operands, shape)
    assert math.prod(space.extents) == math.prod(shape)


def test_dense_tensors_are_one_line():
    shape = (3, 4, 8)
    space = space_of([plain("a", (32, 8, 1), shape), plain("b", (32, 8, 1), shape)], shape)
    assert space.extents == (1, 96, 1) and space.strides("a") == (0, 1)


def test_a_row_keeps_rows_apart_and_the_batch_joins_them():
    shape = (3, 4, 8)
    space = space_of([plain("a", (32, 8, 1), shape), plain("row", (0, 0, 1), shape)], shape)
    assert space.extents == (12, 8, 1)
    assert space.strides("a") == (8, 1) and space.strides("row") == (0, 1)


def test_most_bytes_decide_which_mode_is_the_fastest():
    shape = (1, 4, 8)
    upright, lying = plain("a", (0, 1, 4), shape), plain("b", (0, 8, 1), shape, Float16)
    assert space_of([upright, lying], shape).strides("a") == (4, 1)
    assert space_of([upright, lying, plain("c", (0, 8, 1), shape)], shape).strides("b") == (8, 1)


def test_a_reduced_mode_is_that_of_rows():
    shape = (5, 4, 8)
    total = plain("sum", (0, 8, 1), shape, reduced=True)
    space = space_of([plain("a", (32, 8, 1), shape), total], shape)
    assert space.extents == (5, 32, 1) and space.strides("sum") == (0, 1)


def test_whole_rows_stay_one_mode():
    shape = (3, 4, 8)
    space = space_of([plain("a", (32, 8, 1), shape)], shape, rows_whole=True)
    assert space.extents == (12, 8, 1)
    assert space_of([plain("a", (4, 1, 1), (3, 4, 1))], (3, 4, 1), rows_whole=True).extents == (12, 1, 1)
    cut = Operand("b", Float32, (((3, 32),), ((4, 8),), ((2, 1), (4, 2))))
    with pytest.raises(EpilogueError) as caught:
        space_of([cut], shape, rows_whole=True)
    assert "A function of whole rows needs rows with one stride." in str(caught.value)


def test_reshapes_that_do_not_fit_together_are_named():
    a = Operand("a", Float32, (((1, 0),), ((1, 0),), ((2, 30), (3, 1))))
    b = Operand("b", Float32, (((1, 0),), ((1, 0),), ((3, 50), (2, 1))))
    with pytest.raises(EpilogueError) as caught:
        space_of([a, b], (1, 1, 6))
    for part in ("The reshapes of a, b cut a mode of 6 elements", "((2, 30), (3, 1))", "before the call"):
        assert part in str(caught.value)


def test_masks_are_taken_as_bytes():
    shape = (2, 4, 20)
    mask = plain("mask", (96, 24, 1), shape, Uint8, bits=True)
    space = space_of([plain("a", (80, 20, 1), shape), mask], shape)
    assert space.shape("mask") == (8, 3) and space.strides("mask") == (3, 1)
    assert space.shape("a") == (8, 20)


def test_alignment_is_that_of_address_and_strides():
    shape = (1, 4, 8)
    space = space_of(
        [plain("a", (0, 12, 1), shape, start=8), plain("b", (0, 8, 1), shape), plain("row", (0, 0, 1), shape)], shape
    )
    assert [space.aligned(name, 4) for name in ("a", "b", "row")] == [2, 4, 4]
    assert np.prod(space.extents) == 32
