"""Inverses and common parts, point by point."""

import random
from fractions import Fraction
from itertools import permutations, product

import pytest

from tests.layout import oracle
from tests.layout.test_complement import SMALL
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    coalesce,
    left_inverse,
    max_common_layout,
    max_common_vector,
    nullspace,
    parse,
    right_inverse,
    size,
    sym_int,
)


def samples(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        modes = [(rng.randint(1, 6), rng.choice([0, 1, 1, 2, 3, 4, 6, 8, 12, 24])) for _ in range(rng.randint(1, 4))]
        yield Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))


def check_right(layout):
    r = right_inverse(layout)
    for i, x in enumerate(oracle.values(r)):
        assert oracle.value(layout.shape, layout.stride, x) == i, f"{layout}: {r}"
        assert x < oracle.size(layout)
    return r


def check_left(layout):
    """Whether there was an answer; every answer undoes the layout."""
    try:
        r = left_inverse(layout)
    except LayoutError:
        return False
    for k, x in enumerate(oracle.values(layout)):
        assert oracle.value(r.shape, r.stride, x) == k, f"{layout}: {r}"
    return True


@pytest.mark.parametrize("layouts", [SMALL, list(samples(5_000, 3))], ids=["small", "samples"])
def test_right_inverse(layouts):
    assert max(size(check_right(layout)) for layout in layouts) > 4


def test_right_inverse_of_compact_layouts_is_whole():
    for shape in [(2, 3, 4), (5, 2, 2), (8, 1, 3)]:
        for order in permutations(range(3)):
            stride, below = [0] * 3, 1
            for i in order:
                stride[i] = below
                below *= shape[i]
            layout = Layout(shape, tuple(stride))
            assert size(check_right(layout)) == size(layout)
            assert check_left(layout)


def test_left_inverse_of_every_small_layout():
    answers = sum(map(check_left, SMALL))
    injective = sum(len(set(oracle.values(layout))) == oracle.size(layout) for layout in SMALL)
    assert injective / 2 < answers <= injective


def test_left_inverse_of_samples():
    assert sum(map(check_left, samples(2_000, 5))) > 100


def left_inverse_may_exist(layout):
    """Whether the strides of some R, with its digits in any chain of divisors, solve the equations in fractions."""
    values = oracle.values(layout)
    top = max(values) + 1

    def chains(reach):
        yield ()
        for n in range(2, top + 1):
            if reach * n <= top:
                for rest in chains(reach * n):
                    yield (n, *rest)

    def rows(chain):
        for k, x in enumerate(values):
            digits = []
            for n in chain:
                digits.append(x % n)
                x //= n
            yield [Fraction(number) for number in (*digits, x, k)]

    return len(set(values)) == len(values) and any(consistent(list(rows(chain))) for chain in chains(1))


def consistent(rows):
    """Whether the linear system, its right side the last column, has a solution: Gauss elimination."""
    for column in range(len(rows[0]) - 1):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows = [[a - row[column] / pivot[column] * b for a, b in zip(row, pivot, strict=True)] for row in rows]
    return not any(row[-1] for row in rows)


def test_left_inverse_is_refused_only_where_none_exists():
    leaves = [(n, d) for n in (2, 3) for d in (1, 2, 3, 4, 5, 7)]
    refused = 0
    for modes in product(leaves, repeat=2):
        layout = Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))
        if not check_left(layout):
            refused += 1
            assert not left_inverse_may_exist(layout), layout
    assert refused > 20
    assert check_left(parse("(2,2,2):(1,3,7)"))  # 7 is no multiple of 3


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("(128,160):(65536,1)", "(65536,128):(128,1)"),  # L9
        ("(4,8):(8,1)", "(8,4):(4,1)"),
        ("4:1", "4:1"),
        ("4:2", "(2,4):(4,1)"),
        ("1:0", "1:0"),
    ],
)
def test_known_left_inverses(layout, text):
    got = left_inverse(parse(layout))
    assert check_left(parse(layout))
    if layout != "4:2":
        assert str(got) == text


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("(4,8):(8,1)", "(8,4):(4,1)"),
        ("(4,(2,3)):(6,(1,2))", "(6,4):(4,1)"),
        ("4:2", "1:0"),
        ("(4,8):(1,5)", "4:1"),
        ("(2,4,6):(4,1,8)", "(4,2,6):(2,1,8)"),
    ],
)
def test_known_right_inverses(layout, text):
    assert str(right_inverse(parse(layout))) == text


def test_padded_layout_at_full_size():
    layout = parse("(128,160):(65536,1)")
    r = left_inverse(layout)
    for k in range(20480):
        assert r(layout(k)) == k


def test_left_inverse_refuses_what_is_not_injective():
    with pytest.raises(LayoutError, match="mode 4:0 is not injective"):
        left_inverse(parse("(4,2):(0,1)"))
    with pytest.raises(LayoutError, match=r"injective|nest"):
        left_inverse(parse("(4,2):(1,2)"))


def test_swizzled_layouts_have_inverses():
    s = parse("S<2,0,3> o 0 o (8,8):(8,1)")
    for inverse in (right_inverse(s), left_inverse(s)):
        assert [inverse(s(k)) for k in range(64)] == list(range(64))
        assert [s(inverse(i)) for i in range(64)] == list(range(64))
    with pytest.raises(LayoutError, match="blocks of 128"):
        right_inverse(parse("S<3,4,3> o 0 o (8,36):(36,1)"))


def test_run_time_extents():
    n = sym_int(name="n")
    r = right_inverse(Layout((n, 32), (32, 1)))
    assert str(r) == "(32,?):(?,1)"
    for value in range(1, 40):
        static = Layout((value, 32), (32, 1))
        got = Layout((32, r.shape[1].evaluate({"n": value})), (r.stride[0].evaluate({"n": value}), 1))
        assert [static(got(i)) for i in range(32 * value)] == list(range(32 * value))
    assert str(right_inverse(Layout((n, 32), (sym_int(), 1)))) == "32:?"
    with pytest.raises(LayoutError, match="static"):
        left_inverse(Layout((n, 32), (32, 1)))


def common_by_hand(a, b):
    """The most elements from 0 on that lie at the same index in both, and are contiguous: by trying."""
    where_a, where_b = {}, {}
    for k in range(oracle.size(a) - 1, -1, -1):
        where_a.setdefault(oracle.value(a.shape, a.stride, k), []).append(k)
    for k in range(oracle.size(b)):
        where_b.setdefault(oracle.value(b.shape, b.stride, k), []).append(k)
    count = 0
    while set(where_a.get(count, ())) & set(where_b.get(count, ())):
        count += 1
    return count


def test_common_layouts():
    rng = random.Random(9)
    longest = 0
    for _ in range(3_000):
        shape = tuple(rng.choice([1, 2, 3, 4, 6]) for _ in range(3))
        pair = []
        for _ in range(2):
            order, below, stride = rng.sample(range(3), 3), 1, [0] * 3
            for i in order:
                stride[i] = below
                below *= shape[i] + rng.choice([0, 0, 0, 1])
            pair.append(Layout(shape, tuple(stride)))
        a, b = pair
        r = max_common_layout(a, b)
        assert size(r) == max_common_vector(a, b) <= common_by_hand(a, b)
        longest = max(longest, size(r))
        for i in range(size(r)):
            assert a(r(i)) == b(r(i)) == i
    assert longest > 20


@pytest.mark.parametrize(
    ("a", "b", "vector"),
    [
        ("(4,8):(1,4)", "(4,8):(1,4)", 32),
        ("(4,8):(1,4)", "(4,8):(1,8)", 4),
        ("(4,8):(8,1)", "(4,8):(1,4)", 1),
        ("(4,8):(8,1)", "(4,8):(16,1)", 8),
        ("(8,8):(1,8)", "((2,4),8):((1,2),8)", 64),
    ],
)
def test_known_common_vectors(a, b, vector):
    assert max_common_vector(parse(a), parse(b)) == vector


def test_nullspace():
    assert nullspace(parse("(2,3):(1,2)")) == Layout(1, 0)
    layout = parse("(2,3,4):(1,0,2)")
    kernel = nullspace(layout)
    assert str(kernel) == "3:2"
    assert [layout(kernel(i)) for i in range(3)] == [0, 0, 0]
    assert coalesce(nullspace(parse("(2,3,4):(0,0,1)"))) == Layout(6, 1)


def test_what_is_common_lies_inside_both():
    for a, b, most in (
        ("4:1", "8:1", 4),
        ("8:1", "4:1", 4),
        ("6:1", "((5,4),2):((1,20),5)", 5),
        ("(4,4):(1,4)", "(4,2):(1,4)", 8),
    ):
        common = max_common_layout(parse(a), parse(b))
        assert size(common) == max_common_vector(parse(a), parse(b)) == most
        for i in range(most):
            assert common(i) < min(size(parse(a)), size(parse(b)))
            assert parse(a)(common(i)) == parse(b)(common(i)) == i


@pytest.mark.parametrize(
    ("a", "b", "most"),
    [
        ("(8,8):(1,8)", "S<2,1,3> o 64 o (8,8):(1,8)", 1),  # index 0 is not at 0
        ("(8,8):(1,8)", "S<2,1,3> o 3 o (8,8):(1,8)", 1),
        ("(6,5):(1,6)", "S<1,1,2> o 0 o (6,5):(1,6)", 6),  # 8 and more are moved; the 30 do not fill blocks of 16
        ("(4,5):(1,4)", "S<2,1,2> o 0 o (4,5):(1,4)", 5),  # of the 8 that stay, what divides 20
        ("(6,5):(1,7)", "S<1,1,2> o 0 o (6,5):(1,6)", 6),
        ("(6,5):(2,7)", "S<1,1,2> o 0 o (6,5):(1,6)", 1),
    ],
)
def test_what_is_common_with_a_swizzle_that_has_no_inverse(a, b, most):
    left, right = parse(a), parse(b)
    with pytest.raises(LayoutError):
        right_inverse(right)
    common = max_common_layout(left, right)
    assert size(common) == max_common_vector(left, right) == most
    assert most == 1 or all(left(common(i)) == right(common(i)) == i for i in range(most))


@pytest.mark.parametrize(
    ("a", "b", "most"),
    [
        ("S<2,1,3> o 0 o (16,16):(1,16)", "S<2,1,3> o 0 o (16,16):(1,16)", 256),
        ("(16,16):(1,16)", "S<2,1,3> o 0 o (16,16):(1,16)", 16),
        ("(16,16):(16,1)", "S<2,1,3> o 0 o (16,16):(16,1)", 16),
        ("(4,16):(16,1)", "S<1,2,3> o 0 o (4,(4,4)):(16,(1,4))", 32),
        ("(2,(4,4),2):(64,(1,8),32)", "S<1,1,4> o 0 o (2,(4,4),2):(64,(1,8),32)", 4),
        ("S<0,1,1> o 0 o (3,2):(2,1)", "(3,2):(2,1)", 6),
        ("(3,5):(15,1)", "S<0,4,1> o 0 o (3,2):(2,1)", 2),
    ],
)
def test_what_is_common_with_a_swizzle(a, b, most):
    left, right = parse(a), parse(b)
    common = max_common_layout(left, right)
    assert size(common) == max_common_vector(left, right) == most
    for i in range(most if most > 1 else 0):
        assert left(common(i)) == right(common(i)) == i
