"""Divides: tiles and rests, point by point; short tilers, None, tiles that do not divide; composed layouts."""

import random
from itertools import product

import pytest

from tests.layout import oracle
from tests.layout.test_composition import SMALL
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    complement,
    composition,
    evaluate,
    flat_divide,
    local_tile,
    logical_divide,
    parse,
    rank,
    size,
    sym_int,
    tiled_divide,
    zipped_divide,
)

TILERS = [Layout(n, d) for n in range(1, 5) for d in range(1, 4)] + [
    Layout((n, m), (d, e)) for n, m in product((1, 2, 3), repeat=2) for d, e in product((1, 2, 3), repeat=2)
]


def without_trailing_units(layout):
    shape, stride = oracle.flat(layout.shape), oracle.flat(layout.stride)
    while len(shape) > 1 and shape[-1] == 1:
        shape, stride = shape[:-1], stride[:-1]
    return Layout(tuple(shape), tuple(stride))


def check(a, tiler):
    """Divides and compares with A(tile(i) + rest(j)). Returns whether there was an answer."""
    try:
        rest = complement(tiler, oracle.size(a))
    except LayoutError:
        with pytest.raises(LayoutError):
            logical_divide(a, tiler)
        return False
    both = Layout((tiler.shape, rest.shape), (tiler.stride, rest.stride))
    base = without_trailing_units(a)
    try:
        r = logical_divide(a, tiler)
    except LayoutError:
        assert not oracle.composition_exists(base, both), f"{a} by {tiler} was refused"
        return False
    assert oracle.values(r) == [oracle.value(base.shape, base.stride, x) for x in oracle.values(both)]
    assert rank(r) == 2
    assert oracle.refines(tiler.shape, r.shape[0])
    assert oracle.size(r) >= oracle.size(a)
    return True


def test_every_small_layout_by_every_tiler():
    rng = random.Random(2)
    assert sum(check(a, tiler) for a in SMALL for tiler in rng.sample(TILERS, 20)) > 2_000


def test_a_divided_layout_has_the_same_elements():
    for a in SMALL:
        for n in range(1, oracle.size(a) + 1):
            if oracle.size(a) % n:
                continue
            try:
                r = logical_divide(a, n)
            except LayoutError:
                assert not oracle.composition_exists(a, Layout((n, oracle.size(a) // n), (1, n)))
                continue
            assert oracle.values(r) == oracle.values(a)


@pytest.mark.parametrize(  # L7
    ("tiler", "logical", "zipped"),
    [
        ((32,), "((32,2),50,80):((16000,512000),160,1)", "((32),(2,50,80)):((16000),(512000,160,1))"),
        (
            (32, None, None),
            "((32,2),50,80):((16000,512000),160,1)",
            "((32,1,1),(2,50,80)):((16000,0,0),(512000,160,1))",
        ),
        (
            (32, None, 40),
            "((32,2),50,(40,2)):((16000,512000),160,(1,40))",
            "((32,1,40),(2,50,2)):((16000,0,1),(512000,160,40))",
        ),
    ],
)
def test_short_tilers_and_none(tiler, logical, zipped):
    a = parse("(64,50,80):(16000,160,1)")
    assert str(logical_divide(a, tiler)) == logical
    assert str(zipped_divide(a, tiler)) == zipped


def test_spot_value_of_a_tiler_with_none():
    a = parse("(64,50,80):(16000,160,1)")
    z = zipped_divide(a, (32, None, 40))
    assert a(33, 2, 41) == 528361 == z((1, 0, 1), (1, 2, 1))


@pytest.mark.parametrize("tiler", [(32, None, 40), (16, 25), (None, 10, 8), (64,), (1, 1, 1)])
def test_the_four_divides_hold_the_same(tiler):
    a = parse("(64,50,80):(16000,160,1)")
    z, t, f = (divide(a, tiler) for divide in (zipped_divide, tiled_divide, flat_divide))
    assert str(t) == str(Layout((z.shape[0], *z.shape[1]), (z.stride[0], *z.stride[1])))
    assert str(f) == str(Layout((*z.shape[0], *z.shape[1]), (*z.stride[0], *z.stride[1])))
    for k in range(0, 64 * 50 * 80, 977):
        point = (k % 64, k // 64 % 50, k // 3200)
        extents = [n or 1 for n in tiler]
        tile = tuple(c % n for c, n in zip(point, extents, strict=False))
        rest = tuple(c // n for c, n in zip(point, extents, strict=False)) + point[len(tiler) :]
        assert z(tile, rest) == a(point)


def test_known_answers():
    a = parse("(9,(4,8)):(59,(13,1))")
    tiler = (Layout(3, 3), Layout((2, 4), (1, 8)))
    assert str(logical_divide(a, tiler)) == "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"
    assert str(zipped_divide(a, tiler)) == "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"
    assert str(tiled_divide(a, tiler)) == "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))"
    assert str(flat_divide(a, tiler)) == "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))"
    assert str(logical_divide(parse("(4,2,3):(2,1,8)"), Layout(4, 2))) == "((2,2),(2,3)):((4,1),(2,8))"


def test_a_tile_that_does_not_divide_reaches_past_the_end():
    assert str(logical_divide(Layout(10), 4)) == "(4,3):(1,4)"
    assert str(zipped_divide(parse("(10,6):(6,1)"), (4, 4))) == "((4,4),(3,2)):((6,1),(24,4))"
    assert str(logical_divide(parse("(10,1):(2,1)"), 4)) == "(4,3):(2,8)"


def test_refusals():
    with pytest.raises(LayoutError, match="extent 4"):
        logical_divide(parse("(4,2):(1,100)"), 6)
    with pytest.raises(LayoutError, match="more items"):
        logical_divide(Layout(8), (2, 2))
    with pytest.raises(LayoutError, match="not a multiple of 2"):
        logical_divide(Layout(24), parse("(2,2):(1,3)"))
    with pytest.raises(LayoutError, match="plain layout"):
        logical_divide(Layout(24), parse("S<1,1,1> o 0 o 8:1"))


def test_composed_layouts_keep_their_swizzle():
    s = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    z = zipped_divide(s, (4, 8))
    assert str(z) == "S<3,3,3> o 0 o ((4,8),(2,8)):((64,1),(256,8))"
    assert all(z((i % 4, j % 8), (i // 4, j // 8)) == s(i, j) for i in range(8) for j in range(64))


def test_run_time_extents_print_as_in_cute():
    m, n, ld = sym_int(name="m"), sym_int(name="n"), sym_int(name="ld")
    z = zipped_divide(Layout((m, n), (ld, 1)), (1, 32))
    assert str(z) == "((1,32),(?,?)):((0,1),(?,32))"
    assert str(local_tile(Layout((m, n), (ld, 1)), (64, 32), (1, None))) == "(64,32,?):(?,1,32)"


@pytest.mark.parametrize("tiler", [(1, 32), (8, 4), (5,), (3, None), (Layout(2, 4), 8)])
def test_run_time_extents_agree_with_static_ones(tiler):
    m, n, ld = sym_int(8, name="m"), sym_int(name="n"), sym_int(64, name="ld")
    symbolic = zipped_divide(Layout((m, n), (ld, 1)), tiler)
    rng = random.Random(4)
    for _ in range(20):
        env = {"m": 8 * rng.randint(1, 9), "n": rng.randint(1, 90), "ld": 64 * rng.randint(1, 5)}
        static = zipped_divide(Layout((env["m"], env["n"]), (env["ld"], 1)), tiler)
        assert instance(symbolic, env) == static or oracle.values(instance(symbolic, env)) == oracle.values(static)


def instance(layout, env):
    return Layout(evaluate(layout.shape, env), evaluate(layout.stride, env))


def test_tiling_is_composition_with_tile_and_complement():
    a = parse("(16,8):(8,1)")
    tile = parse("(4,2):(4,1)")
    rest = complement(tile, size(a))
    whole = Layout((tile.shape, rest.shape), (tile.stride, rest.stride))
    assert logical_divide(a, tile) == composition(a, whole)
