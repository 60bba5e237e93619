"""Recasting: each element lies in the new element that holds its bits; swizzles keep addressing the same bytes."""

import random
from itertools import product

import pytest

from tests.layout import oracle
from tests.layout.test_complement import SMALL
from tilewright.base.errors import LayoutError
from tilewright.layout import ComposedLayout, Layout, Swizzle, downcast, evaluate, parse, recast_layout, sym_int, upcast


def coords(layout):
    extents = oracle.flat(layout.shape)
    return [tuple(reversed(c)) for c in product(*(range(n) for n in reversed(extents)))]


def at(layout, coord):
    return sum(c * d for c, d in zip(coord, oracle.flat(layout.stride), strict=True))


def check_upcast(layout, count):
    """Whether there was an answer; every answer puts each element into the new one that holds it."""
    try:
        r = upcast(layout, count)
    except LayoutError:
        return False
    ratios = [-(-a // b) for a, b in zip(oracle.flat(layout.shape), oracle.flat(r.shape), strict=True)]
    held = {}
    for coord in coords(layout):
        new = tuple(c // k for c, k in zip(coord, ratios, strict=True))
        assert at(r, new) == at(layout, coord) // count, f"{layout} by {count}: {r}"
        held.setdefault(new, set()).add(at(layout, coord))
    assert len(held) == oracle.size(r)
    assert all(len(group) == count for group in held.values()), f"{layout} by {count}: {r} has holes"
    return True


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_upcast_of_every_small_layout(count):
    assert sum(check_upcast(layout, count) for layout in SMALL) > 5


def whole_groups(layout, count):
    """Whether the elements of the layout come in whole aligned groups, each leaf by itself a power of the group."""
    values = {at(layout, c) for c in coords(layout)}
    return all({x // count * count + i for i in range(count)} <= values for x in values)


def test_upcast_is_refused_where_groups_are_torn():
    for layout in SMALL:
        for count in (2, 4):
            if not whole_groups(layout, count):
                with pytest.raises(LayoutError):
                    upcast(layout, count)


def test_upcast_of_layouts_that_hold_whole_groups():
    rng = random.Random(3)
    for _ in range(2_000):
        count = rng.choice([2, 4, 8])
        inside = [d for d in (1, 2, 4, 8) if count % d == 0]
        first = rng.choice(inside)
        modes, below = [(first, 1), (count // first, first)], count
        for _ in range(rng.randint(0, 2)):
            n = rng.randint(1, 4)
            modes.append((n, below))
            below *= n + rng.randint(0, 1)
        rng.shuffle(modes)
        layout = Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))
        assert check_upcast(layout, count), layout


@pytest.mark.parametrize("count", [2, 4])
def test_downcast_of_every_small_layout(count):
    answers = 0
    for layout in SMALL:
        try:
            r = downcast(layout, count)
        except LayoutError:
            continue
        answers += 1
        ratios = [a // b for a, b in zip(oracle.flat(r.shape), oracle.flat(layout.shape), strict=True)]
        assert sorted(ratios) == [1] * (len(ratios) - 1) + [count]
        for coord in coords(r):
            old = tuple(c // k for c, k in zip(coord, ratios, strict=True))
            assert at(r, coord) // count == at(layout, old)
    assert answers > 20


@pytest.mark.parametrize(
    ("new", "old", "layout", "text"),
    [
        (32, 16, "(8,4):(1,8)", "(4,4):(1,4)"),
        (16, 32, "(4,4):(1,4)", "(8,4):(1,8)"),
        (16, 16, "(4,4):(1,4)", "(4,4):(1,4)"),
        (128, 16, "(64,(8,2)):(16,(1,8))", "(64,(1,2)):(2,(1,1))"),
        (24, 16, "(6,4):(1,6)", "(4,4):(1,4)"),
        (8, 16, "(4,4):(4,1)", "(4,8):(8,1)"),
        (32, 8, "(4,8):(0,1)", "(4,2):(0,1)"),
        (16, 32, "(1,8):(1,1)", "(1,16):(2,1)"),
        (16, 32, "(1,4):(0,4)", "(2,4):(1,8)"),
    ],
)
def test_known_answers(new, old, layout, text):
    assert str(recast_layout(new, old, parse(layout))) == text


def test_refusals():
    with pytest.raises(LayoutError, match="extent 6 of mode 6:1 does not fill groups of 4"):
        upcast(Layout(6), 4)
    with pytest.raises(LayoutError, match="stride 3 of mode 4:3 is not a multiple of 2"):
        upcast(parse("(2,4):(1,3)"), 2)
    with pytest.raises(LayoutError, match="does not fill groups of 4"):
        upcast(parse("4:2"), 4)
    with pytest.raises(LayoutError, match="one mode must have stride 1"):
        downcast(parse("4:2"), 2)
    with pytest.raises(LayoutError, match="integer from 1"):
        recast_layout(0, 8, Layout(4))
    with pytest.raises(LayoutError, match="coordinates"):
        upcast(parse("4:1@0"), 2)


@pytest.mark.parametrize("bits", range(4))
@pytest.mark.parametrize("base", range(5))
@pytest.mark.parametrize("shift", [-4, -3, 3, 4])
def test_swizzles_recast_by_bytes(bits, base, shift):
    """A swizzle of bytes, recast to wider elements, moves each element to where its bytes go."""
    swizzle = Swizzle(bits, base, shift)
    for log in range(4):
        width = 1 << log
        if base < log and bits:
            with pytest.raises(LayoutError, match="within groups"):
                upcast(swizzle, width)
            continue
        wide = upcast(swizzle, width)
        for element in range(4096 // width):
            assert wide(element) * width == swizzle(element * width)
        if base >= log:
            assert downcast(wide, width) == swizzle


def test_byte_swizzle_in_units_of_elements():  # S1
    swizzle = Swizzle(3, 4, 3)
    assert [str(upcast(swizzle, n)) for n in (2, 4, 8)] == ["S<3,3,3>", "S<3,2,3>", "S<3,1,3>"]
    wrong = Swizzle(3, 0, 3)
    assert (upcast(swizzle, 2)(8), wrong(8)) == (8, 9)


def test_element_and_byte_units():  # S1
    elements = parse("S<3,4,3> o 0 o (32,8):(1,32)")
    assert [elements(0, j) for j in range(8)] == [0, 32, 64, 96, 144, 176, 208, 240]
    in_bytes = recast_layout(32, 8, parse("S<3,4,3> o 0 o (128,8):(1,128)"))
    assert str(in_bytes) == "S<3,2,3> o 0 o (32,8):(1,32)"
    assert [in_bytes(0, j) for j in range(8)] == [0, 36, 72, 108, 144, 180, 216, 252]


def test_composed_layouts_move_their_offset():
    s = parse("S<3,4,3> o 64 o (8,128):(128,1)")
    r = recast_layout(16, 8, s)
    assert str(r) == "S<3,3,3> o 32 o (8,64):(64,1)"
    assert all(r(i, j) * 2 == s(i, 2 * j) for i in range(8) for j in range(64))
    assert recast_layout(8, 16, r) == s
    with pytest.raises(LayoutError, match="offset"):
        recast_layout(16, 8, ComposedLayout(Swizzle(3, 4, 3), 3, Layout((8, 128), (128, 1))))


def test_run_time_extents():
    n, ld = sym_int(8, name="n"), sym_int(4, name="ld")
    r = upcast(Layout((n, 16), (1, ld)), 4)
    assert str(r) == "(?{div=2},16):(1,?)"
    for k in range(1, 21):
        env = {"n": 8 * k, "ld": 8 * k + 4}
        static = upcast(Layout((8 * k, 16), (1, 8 * k + 4)), 4)
        assert Layout(evaluate(r.shape, env), evaluate(r.stride, env)) == static
    with pytest.raises(LayoutError, match="it is not known that m is a multiple of 4"):
        upcast(Layout((sym_int(name="m"), 16), (1, ld)), 4)


def upcast_exists(layout, count):
    """Whether some layout, each of whose leaves has a divisor of the extent, holds the elements in whole groups."""
    extents = oracle.flat(layout.shape)
    for ratios in product(*([k for k in range(1, n + 1) if n % k == 0] for n in extents)):
        held = {}
        for coord in coords(layout):
            new = tuple(c // k for c, k in zip(coord, ratios, strict=True))
            held.setdefault(new, []).append(at(layout, coord))
        if any(sorted(g) != list(range(g0 := min(g) // count * count, g0 + count)) for g in held.values()):
            continue
        steps = [
            held[tuple(int(i == j) for j in range(len(extents)))][0] // count if n // k > 1 else 0
            for i, (n, k) in enumerate(zip(extents, ratios, strict=True))
        ]
        if all(sum(c * d for c, d in zip(new, steps, strict=True)) == group[0] // count for new, group in held.items()):
            return True
    return False


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_upcast_is_refused_only_where_none_exists(count):
    for layout in SMALL:
        try:
            upcast(layout, count)
        except LayoutError:
            assert not upcast_exists(layout, count), f"{layout} by {count} was refused"
