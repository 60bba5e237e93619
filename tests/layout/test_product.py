"""Products: disjoint copies of a block in the order of the tiler."""

import random
from itertools import product

import pytest

from tests.layout import oracle
from tests.layout.test_complement import SMALL, image
from tests.layout.test_divide import instance
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    blocked_product,
    flat_product,
    logical_product,
    parse,
    raked_product,
    rank,
    sym_int,
    tile_to_shape,
    tiled_product,
    zipped_product,
)

COPIES = [parse(t) for t in ("1:0", "2:1", "3:1", "4:2", "(2,2):(2,1)", "(2,3):(1,2)", "(2,2):(0,1)", "(2,2):(1,4)")]


def test_every_small_block():
    answers = 0
    for block in SMALL:
        values = image(block)
        for copies in COPIES:
            try:
                r = logical_product(block, copies)
            except LayoutError:
                continue
            answers += 1
            assert rank(r) == 2
            assert (r.shape[0], r.stride[0]) == (block.shape, block.stride)
            assert oracle.refines(copies.shape, r.shape[1])
            places, order = oracle.values(Layout(r.shape[1], r.stride[1])), oracle.values(copies)
            sums = [v + p for v in values for p in sorted(set(places))]
            assert len(set(sums)) == len(sums), f"{block} x {copies}: copies overlap in {r}"
            assert all(
                (a < b) == (c < d)
                for a, c in zip(places, order, strict=True)
                for b, d in zip(places, order, strict=True)
            ), f"{block} x {copies}: order lost in {r}"
    assert answers > 5_000


def test_refused_only_where_blocks_overlap_or_copies_cross_a_gap():
    refused = set()
    for block in SMALL:
        try:
            logical_product(block, Layout(4))
        except LayoutError:
            refused.add(block)
    assert refused
    for block in refused:
        modes = [
            (d, n) for n, d in zip(oracle.flat(block.shape), oracle.flat(block.stride), strict=True) if d and n > 1
        ]
        reach, gaps = 1, []
        for d, n in sorted(modes):
            gaps.append((d // reach, reach))
            reach = d * n
        overlaps = any(extent == 0 for extent, _ in gaps)
        places = Layout(tuple(e for e, _ in gaps) + (4,), tuple(s for _, s in gaps) + (reach,))
        assert overlaps or not oracle.composition_exists(places, Layout(4)), block


@pytest.mark.parametrize(
    ("function", "block", "tiler", "text"),
    [
        (logical_product, "(2,2):(4,1)", "6:1", "((2,2),(2,3)):((4,1),(2,8))"),
        (logical_product, "(2,2):(4,1)", "(4,2):(2,1)", "((2,2),(4,2)):((4,1),(8,2))"),
        (blocked_product, "(2,5):(5,1)", "(3,4):(1,3)", "((2,3),(5,4)):((5,10),(1,30))"),
        (raked_product, "(2,5):(5,1)", "(3,4):(1,3)", "((3,2),(4,5)):((10,5),(30,1))"),
        (blocked_product, "(4,8):(8,1)", "2:1", "((4,2),(8,1)):((8,32),(1,0))"),
        (zipped_product, "(2,2):(4,1)", "6:1", "((2,2),(2,3)):((4,1),(2,8))"),
        (tiled_product, "(2,2):(4,1)", "(4,2):(2,1)", "((2,2),4,2):((4,1),8,2)"),
        (flat_product, "(2,2):(4,1)", "(4,2):(2,1)", "(2,2,4,2):(4,1,8,2)"),
    ],
)
def test_known_answers(function, block, tiler, text):
    block, tiler = parse(block), parse(tiler)
    assert str(function(block, tiler)) == text


def test_blocked_and_raked_place_blocks_side_by_side_and_interleaved():
    block, tiler = parse("(2,3):(3,1)"), parse("(4,2):(1,4)")
    b, r = blocked_product(block, tiler), raked_product(block, tiler)
    for i, j, k, m in product(range(2), range(3), range(4), range(2)):
        place = tiler(k, m) * 6 + block(i, j)
        assert b(i + 2 * k, j + 3 * m) == place
        assert r(k + 4 * i, m + 2 * j) == place


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_tile_to_shape(order):
    atom = parse("(8,16):(16,1)")
    r = tile_to_shape(atom, (32, 64), order)
    for i in range(32):
        for j in range(64):
            places = (i // 8, j // 16)
            tile = places[0] + 4 * places[1] if order == (0, 1) else places[0] * 4 + places[1]
            assert r(i, j) == tile * 128 + atom(i % 8, j % 16)
    with pytest.raises(LayoutError, match="extent 16 of the block does not divide 40"):
        tile_to_shape(atom, (32, 40))


def test_tile_to_shape_of_a_swizzled_atom_prints_as_in_cute():
    atom = parse("S<3,4,3> o 0 o (8,64):(64,1)")
    r = tile_to_shape(atom, (128, 64, 3), order=(0, 1, 2))
    assert str(r) == "S<3,4,3> o 0 o ((8,16),(64,1),(1,3)):((64,512),(1,0),(0,8192))"


def test_run_time_repetitions():
    n, even = sym_int(name="n"), sym_int(2, name="even")
    assert str(logical_product(Layout(4), Layout((n,)))) == "(4,(?)):(1,(4))"
    r = logical_product(parse("(2,2):(4,1)"), Layout((even,)))
    for value in range(2, 60, 2):
        assert instance(r, {"even": value}) == logical_product(parse("(2,2):(4,1)"), Layout((value,))) or value == 2
        assert oracle.values(instance(r, {"even": value})) == oracle.values(
            logical_product(parse("(2,2):(4,1)"), Layout((value,)))
        )
    with pytest.raises(LayoutError, match="it is not known that n is a multiple of 2"):
        logical_product(parse("(2,2):(4,1)"), Layout((n,)))


@pytest.mark.parametrize(
    ("block", "tiler", "blocked", "raked"),
    [
        ("2:2", "6:1", "((2,(2,3))):((2,(1,4)))", "(((2,3),2)):(((1,4),2))"),
        ("(2):(2)", "6:1", "((2,(2,3))):((2,(1,4)))", "(((2,3),2)):(((1,4),2))"),
        ("2:2", "(6):(1)", "((2,(2,3))):((2,(1,4)))", "(((2,3),2)):(((1,4),2))"),
        ("3:4", "8:1", "((3,(4,2))):((4,(1,12)))", "(((4,2),3)):(((1,12),4))"),
    ],
)
def test_products_of_a_gapped_block_of_rank_1(block, tiler, blocked, raked):
    assert str(blocked_product(parse(block), parse(tiler))) == blocked
    assert str(raked_product(parse(block), parse(tiler))) == raked


def random_block(rng):
    extents = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 3))]
    strides, reach = [0] * len(extents), 1
    for place in rng.sample(range(len(extents)), len(extents)):
        strides[place] = reach * rng.choice([1, 1, 2, 3])
        reach = strides[place] * extents[place]
    if len(extents) == 1 and rng.random() < 0.8:
        nested = rng.choice([0, 0, 1, 2])
        shape, stride = extents[0], strides[0]
        for _ in range(nested):
            shape, stride = (shape,), (stride,)
        return Layout(shape, stride)
    if len(extents) == 3 and rng.random() < 0.5:
        return Layout((extents[0], tuple(extents[1:])), (strides[0], tuple(strides[1:])))
    return Layout(tuple(extents), tuple(strides))


def digits(x, extents):
    out = []
    for n in extents:
        out.append(x % n)
        x //= n
    return out


@pytest.mark.parametrize("function", [blocked_product, raked_product], ids=lambda f: f.__name__)
def test_ranked_products_by_definition(function):
    """Mode i is mode i of the block with mode i of the tiler: values are those of the logical product."""
    compared = 0
    for number in range(300):
        rng = random.Random(number)
        block, tiler = random_block(rng), random_block(rng)
        try:
            logical = logical_product(block, tiler)
        except LayoutError:
            with pytest.raises(LayoutError):
                function(block, tiler)
            continue
        made = function(block, tiler)
        modes = max(len(block), len(tiler))
        assert len(made) == modes
        inner, outer = ([oracle.size(part[i]) if i < len(part) else 1 for i in range(modes)] for part in (block, tiler))
        values, whole = oracle.values(made), oracle.values(logical)
        for index, value in enumerate(whole):
            place, weight = 0, 1
            for a, b, n, m in zip(
                digits(index % oracle.size(block), inner), digits(index // oracle.size(block), outer), inner, outer,
                strict=True,
            ):  # fmt: skip
                place += weight * (a + n * b if function is blocked_product else b + m * a)
                weight *= n * m
            assert values[place] == value, (block, tiler, made)
        compared += 1
    assert compared > 180
