"""complement: ordered, disjoint from the layout, covering the target; refused where no layout is all that."""

from itertools import product

import pytest

from tests.layout import oracle
from tilewright.base.errors import LayoutError
from tilewright.layout import Layout, complement, cosize, parse, sym_int

LEAVES = [(n, d) for n in range(1, 5) for d in range(9)]
SMALL = [Layout(n, d) for n, d in LEAVES] + [Layout((n, m), (d, e)) for (n, d), (m, e) in product(LEAVES, repeat=2)]


def image(layout):
    """The values without the repetition that strides of 0 bring."""
    kept = [(n, d) for n, d in zip(oracle.flat(layout.shape), oracle.flat(layout.stride), strict=True) if d]
    out = [0]
    for n, d in kept:
        out = [base + i * d for i in range(n) for base in out]
    return out


def complement_exists(values, target):
    """Found by trying: each new value of R must be the least index not yet reached."""
    if len(set(values)) < len(values):
        return False
    reached, wanted = set(), []
    for x in range(target):
        if x not in reached:
            new = {x + v for v in values}
            if new & reached:
                return False
            reached |= new
            wanted.append(x)
    for count in range(max(len(wanted), 1), 2 * len(wanted) + 1):
        for shape in oracle.factorings(count):
            below, stride = 1, []
            for n in shape:
                stride.append(wanted[below] if below < len(wanted) else None)
                below *= n
            if None in stride:
                continue
            r = oracle.values(Layout(shape or 1, tuple(stride) if shape else 0))
            sums = [v + w for v in values for w in r]
            if r[: len(wanted)] == wanted and len(set(sums)) == len(sums):
                return True
    return False


@pytest.mark.parametrize("target", [1, 2, 5, 8, 12, 24])
def test_every_small_layout(target):
    answers = 0
    for layout in SMALL:
        values = image(layout)
        try:
            r = complement(layout, target)
        except LayoutError:
            assert not complement_exists(values, target), f"{layout} in {target} was refused"
            continue
        answers += 1
        found = oracle.values(r)
        assert found == sorted(set(found)), f"{layout} in {target}: {r} is not ordered"
        sums = {v + w for v in values for w in found}
        assert len(sums) == len(values) * len(found), f"{layout} in {target}: {r} overlaps"
        assert set(range(target)) <= sums, f"{layout} in {target}: {r} leaves gaps"
    assert answers > 100


@pytest.mark.parametrize(
    ("layout", "target", "text"),
    [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("4:1", 10, "3:4"),
        ("(2,2):(0,1)", 8, "4:2"),
        ("1:0", 8, "8:1"),
    ],
)
def test_known_answers(layout, target, text):
    assert str(complement(parse(layout), target)) == text


def test_without_a_target_it_fills_the_layout_up():
    assert str(complement(parse("(2,4):(1,6)"))) == "3:2"
    assert cosize(parse("(2,4):(1,6)")) == 20


def test_refusals_say_what_clashes():
    with pytest.raises(LayoutError, match="stride 3 of mode 2:3 is not a multiple of 2") as refused:
        complement(parse("(2,2):(1,3)"), 24)
    assert "2 to 2" in str(refused.value)
    with pytest.raises(LayoutError, match="stride 2 of mode 2:2 clashes: smaller modes already reach 4"):
        complement(parse("(4,2):(1,2)"), 8)
    with pytest.raises(LayoutError, match="complement takes a plain layout"):
        complement(parse("S<1,0,1> o 0 o 4:1"), 8)
    with pytest.raises(LayoutError, match="basis"):
        complement(parse("4:1@0"), 8)


def test_run_time_extents():
    n = sym_int(name="n")
    r = complement(Layout(32), n)
    assert str(r) == "?:32"
    for value in range(1, 200, 7):
        assert r.shape.evaluate({"n": value}) == -(-value // 32)
    m = sym_int(8, name="m")
    assert str(complement(Layout((4, m), (1, 4)), m * 16)) == "4:?{div=32}"
    with pytest.raises(LayoutError, match="s is a multiple of 4"):
        complement(Layout((4, 2), (1, sym_int(name="s"))), 64)
