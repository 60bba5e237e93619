"""composition: R(c) = A(B(c)) for every c, or refused; and refused only where no layout has that function."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout import oracle
from tilewright.base.errors import LayoutError
from tilewright.layout import E, Layout, ScaledBasis, Swizzle, composition, parse

LEAVES = [(n, d) for n in range(1, 5) for d in range(5)]
SMALL = [Layout(n, d) for n, d in LEAVES] + [Layout((n, m), (d, e)) for (n, d), (m, e) in product(LEAVES, repeat=2)]


def check(a, b):
    """Composes, and compares with the oracle. Returns whether there was an answer."""
    expect = [oracle.value(a.shape, a.stride, x) for x in oracle.values(b)]
    try:
        r = composition(a, b)
    except LayoutError:
        assert not oracle.composition_exists(a, b), f"{a} o {b} was refused but exists: {expect}"
        return False
    assert oracle.values(r) == expect, f"{a} o {b} gave {r}"
    assert oracle.refines(b.shape, r.shape), f"{a} o {b} gave {r}"
    return True


def test_every_pair_of_small_layouts():
    assert len(SMALL) ** 2 == 176_400
    tables = {a: [oracle.value(a.shape, a.stride, x) for x in range(32)] for a in SMALL}
    answers = 0
    for b in SMALL:
        points = oracle.values(b)
        for a in SMALL:
            table = tables[a]
            try:
                r = composition(a, b)
            except LayoutError:
                assert not oracle.composition_exists(a, b), f"{a} o {b} was refused but exists"
                continue
            answers += 1
            assert oracle.values(r) == [table[x] for x in points], f"{a} o {b} gave {r}"
            assert oracle.refines(b.shape, r.shape), f"{a} o {b} gave {r}"
    assert answers > 100_000


def random_layout(rng, extent, stride, rank=3, nest=True):
    modes = [(rng.randint(1, extent), rng.randint(0, stride)) for _ in range(rng.randint(1, rank))]
    shape, step = (tuple(m[i] for m in modes) for i in (0, 1))
    if nest and len(modes) == 3 and rng.random() < 0.5:
        shape, step = (shape[0], shape[1:]), (step[0], step[1:])
    return Layout(shape, step)


def test_sampled_nested_layouts():
    rng = random.Random(7)
    assert sum(check(random_layout(rng, 6, 12), random_layout(rng, 6, 12)) for _ in range(20_000)) > 2_000


@pytest.mark.slow
def test_a_million_nested_layouts():
    rng = random.Random(11)
    assert sum(check(random_layout(rng, 6, 12), random_layout(rng, 6, 12)) for _ in range(1_000_000)) > 100_000


def compact_layouts(max_extent=8):
    extents = st.lists(st.sampled_from([1, 2, 3, 4, 6, max_extent]), min_size=1, max_size=4)

    @st.composite
    def build(draw):
        shape = draw(extents)
        order = draw(st.permutations(range(len(shape))))
        stride, below = [0] * len(shape), 1
        for i in order:
            stride[i] = below
            below *= shape[i] * draw(st.sampled_from([1, 1, 1, 2]))
        return Layout(tuple(shape), tuple(stride))

    return build()


@given(compact_layouts(), compact_layouts(4))
@settings(max_examples=300, deadline=None)
def test_compact_layouts_in_any_order(a, b):
    check(a, b)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-4, 9)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 9)), min_size=1, max_size=3),
)
@settings(max_examples=500, deadline=None)
def test_negative_strides(a, b):
    left, right = (Layout(tuple(n for n, _ in m), tuple(d for _, d in m)) for m in (a, b))
    check(left, right)


def test_long_modes_need_no_enumeration():
    a = parse("(1024,1048576,4096):(7,8000,3)")
    b = Layout(1 << 40, 2)
    r = composition(a, b)
    assert r == parse("(512,1048576,2048):(14,8000,3)")
    for x in (0, 1, 511, 512, 12345678, (1 << 40) - 1):
        assert r(x) == oracle.value(a.shape, a.stride, 2 * x)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ("(2,3):(1,2)", "(2,3):(3,1)", "(2,3):(3,1)"),  # L1
        ("(10,2):(16,4)", "(3,4):(1,5)", "(3,(2,2)):(16,(80,4))"),  # L5
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("(4,2):(1,100)", "6:1", None),  # 6 crosses 4 in the middle of a run
        ("(4,6,8):(2,3,5)", "6:3", None),  # L3
        ("(4,2):(1,100)", "(3,2):(1,3)", None),  # each mode is fine, their sum carries
        ("((2,2),(3,4)):((1,12),(4,2))", "4:1", "(2,2):(1,12)"),
        ("(4,8):(8,1)", "1:0", "1:0"),
        ("8:0", "(2,4):(1,2)", "(2,4):(0,0)"),
    ],
)
def test_known_answers(a, b, text):
    left, right = parse(a), parse(b)
    assert check(left, right) == (text is not None)
    if text is not None:
        assert str(composition(left, right)) == text


def test_refusal_names_the_modes_that_clash():
    with pytest.raises(LayoutError) as refused:
        composition(parse("(4,6,8):(2,3,5)"), parse("6:3"))
    assert "extent 4 (mode 0)" in str(refused.value)
    assert "stride 3" in str(refused.value)
    with pytest.raises(LayoutError) as refused:
        composition(parse("(4,2):(1,100)"), parse("(3,2):(1,3)"))
    assert "modes 3:1 and 2:3" in str(refused.value)
    assert "extent 4 (mode 0)" in str(refused.value)


def test_by_mode_tilers():
    a = parse("(12,(4,8)):(59,(13,1))")
    assert str(composition(a, (Layout(3, 4), Layout(8, 2)))) == "(3,(2,4)):(236,(26,1))"
    assert str(composition(a, (3, 8))) == "(3,(4,2)):(59,(13,1))"
    assert str(composition(a, (3,))) == "(3):(59)"  # modes that the tiler does not have are dropped
    assert str(composition(a, (None, 8))) == "(12,(4,2)):(59,(13,1))"
    assert composition(a, None) == a
    with pytest.raises(LayoutError, match="more items than modes"):
        composition(a, (1, 2, 3))


def test_basis_strides_on_the_right_address_modes():  # L11, static
    a = parse("(4096,8192):(1,4096)")
    b = Layout((32, 1024, 8, 128), (E(0), E(1) * 8, E(1), E(0) * 32))
    r = composition(a, b)
    assert str(r) == "(32,1024,8,128):(1,32768,4096,32)"
    assert r(31, 7, 7, 127) == 262143
    with pytest.raises(LayoutError, match="no mode"):
        composition(a, Layout(4, E(2)))
    with pytest.raises(LayoutError, match="mixed"):
        composition(a, Layout((4, 4), (E(0), 1)))
    with pytest.raises(LayoutError, match="a part of it"):
        composition(parse("((4,4),8):((1,4),16)"), Layout((2, 2), (E(0), E(0, 1))))


def test_basis_strides_on_the_left_give_coordinates():
    a = parse("(4,8):(1@0,1@1)")
    r = composition(a, parse("(2,16):(1,2)"))
    assert str(r) == "(2,(2,8)):(1@0,(2@0,1@1))"
    for i in range(32):
        assert r(i) == (i % 4, i // 4)
    assert str(composition(a, (2, 4))) == "(2,4):(1@0,1@1)"
    with pytest.raises(LayoutError, match="along two modes"):
        composition(a, Layout(4, 5))
    assert composition(a, Layout(2, E(1))) == Layout(2, ScaledBasis(1, 1))


def test_swizzles_and_composed_layouts():
    s = composition(Swizzle(3, 3, 3), parse("(8,64):(64,1)"))
    assert str(s) == "S<3,3,3> o 0 o (8,64):(64,1)"
    part = composition(s, (Layout(8), Layout((8, 8), (8, 1))))
    for m in range(8):
        for t in range(64):
            column = t % 8 * 8 + t // 8
            assert part(m, t) == (m * 64 + column) ^ (((m * 64 + column) >> 3) & 0b111000)
    outer = composition(parse("(64,8):(8,1)"), s)
    assert [outer(i) for i in range(512)] == [s(i) % 64 * 8 + s(i) // 64 for i in range(512)]
    for bad in ((4, 8), 8, "8:1"):
        with pytest.raises(LayoutError, match="must be a layout"):
            composition(bad, Layout(2))
    with pytest.raises(LayoutError, match="no shape"):
        composition(parse("8:1"), Swizzle(1, 1, 1))


def basis_value(layout, x):
    """The coordinate (c0, c1) that a layout with strides on modes 0 and 1 gives to index x."""
    modes = list(zip(oracle.flat(layout.shape), oracle.flat(layout.stride), strict=True))
    total = [0, 0]
    for place, (n, d) in enumerate(modes):
        digit = x % n if place < len(modes) - 1 else x
        x //= n
        if d != 0:
            total[d.mode[0]] += digit * d.value
    return total


def coordinates_exist(a, b):
    """Whether, coordinate by coordinate and all in one shape, some layout has the values a(b(c))."""
    modes = list(zip(oracle.flat(b.shape), oracle.flat(b.stride), strict=True))
    parts = [[basis_value(a, i * d) for i in range(n)] for n, d in modes]
    for part in parts:
        shapes = oracle.factorings(len(part))
        if not any(all(splits([p[k] for p in part], shape) for k in (0, 1)) and pure(part, shape) for shape in shapes):
            return False
    for coord in product(*(range(n) for n, _ in modes)):
        value = basis_value(a, sum(c * d for c, (_, d) in zip(coord, modes, strict=True)))
        sums = [sum(part[c][k] for c, part in zip(coord, parts, strict=True)) for k in (0, 1)]
        if value != sums:
            return False
    return True


def splits(f, shape):
    expect, below = [0], 1
    for n in shape:
        expect = [base + i * f[below] for i in range(n) for base in expect]
        below *= n
    return expect == f


def pure(part, shape):
    """Whether each stride leads along one mode only: what a stride can be."""
    below = 1
    for n in shape:
        if part[below][0] and part[below][1]:
            return False
        below *= n
    return True


def test_coordinates_against_the_oracle():
    rng = random.Random(13)
    answers = 0
    for _ in range(4_000):
        modes = [(rng.randint(1, 4), rng.choice([0, E(0), E(1), E(0) * 2, E(1) * 3, E(0) * 4])) for _ in range(3)]
        a = Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))
        b = random_layout(rng, 4, 8, rank=2)
        if not any(isinstance(d, ScaledBasis) for d in oracle.flat(a.stride)):
            continue
        try:
            r = composition(a, b)
        except LayoutError:
            assert not coordinates_exist(a, b), f"{a} o {b} was refused"
            continue
        answers += 1
        assert oracle.refines(b.shape, r.shape)
        expect = [basis_value(a, x) for x in oracle.values(b)]
        assert [basis_value(r, i) for i in range(len(expect))] == expect, f"{a} o {b} gave {r}"
    assert answers > 500
