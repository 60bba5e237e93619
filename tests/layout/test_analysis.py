"""Costs by hand: bank conflicts and sectors of known access patterns; vector widths and bijections by trying."""

import random

import pytest

from tests.layout import oracle
from tests.layout.test_composition import SMALL
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    ComposedLayout,
    E,
    Layout,
    Swizzle,
    bank_conflicts,
    coalescing,
    common_sub_layout,
    is_bijective,
    make_identity_layout,
    parse,
    sym_int,
    vector_width,
)


@pytest.mark.parametrize(
    ("tv", "dtype", "wavefronts", "degree", "vector"),
    [
        ("32:1", "f32", 1, 1, 1),  # consecutive words
        ("32:0", "f32", 1, 1, 1),  # one word for all
        ("32:2", "f32", 2, 2, 1),  # every other bank
        ("32:32", "f32", 32, 32, 1),  # one bank
        ("32:33", "f32", 1, 1, 1),  # padded column
        ("32:8", "f16", 4, 4, 1),  # words 4 apart
        ("32:1", "f16", 1, 1, 1),  # two threads share a word
        ("(32,4):(4,1)", "f32", 4, 1, 4),  # 16 bytes a thread: four quarters
        ("(32,2):(2,1)", "f32", 2, 1, 2),  # 8 bytes a thread: two halves
        ("(32,4):(1,32)", "f32", 4, 1, 1),  # four separate accesses
        ("(32,8):(64,1)", "f16", 32, 8, 8),  # rows of 128 bytes: eight threads meet in four banks
        ("64:1", "f32", 2, 1, 1),  # two warps
        ("(8,8):(64,1)", "f16", 8, 8, 8),  # eight rows of ldmatrix
    ],
)
def test_bank_conflicts(tv, dtype, wavefronts, degree, vector):
    r = bank_conflicts(parse(tv), dtype)
    assert (r.wavefronts, r.degree, r.vector) == (wavefronts, degree, vector)
    assert r.conflicts == wavefronts - r.phases and (r.conflicts == 0) == (degree == 1)


def test_a_swizzle_removes_conflicts():
    rows = ComposedLayout(Swizzle(3, 3, 3), 0, parse("(8,8):(64,1)"))
    assert bank_conflicts(rows, "f16").conflicts == 0
    assert "no bank conflicts" in str(bank_conflicts(rows, 16))
    assert str(bank_conflicts(rows.outer, 16)) == "8-way bank conflicts: 8 wavefronts for 1"


def test_bank_conflicts_against_a_count_of_words_by_bank():
    rng = random.Random(5)
    for _ in range(300):
        stride, bits = rng.randint(0, 70), rng.choice([8, 16, 32, 64])
        r = bank_conflicts(Layout(32, stride), bits)
        wavefronts = 0
        for half in range(2) if bits == 64 else range(1):
            lanes = range(16 * half, 16 * half + 16) if bits == 64 else range(32)
            words = {t * stride * bits // 32 + i for t in lanes for i in range(max(bits // 32, 1))}
            banks = [w % 32 for w in words]
            wavefronts += max(banks.count(b) for b in range(32))
        assert r.wavefronts == wavefronts


@pytest.mark.parametrize(
    ("tv", "dtype", "sectors", "ideal"),
    [
        ("32:1", "f32", 4, 4),
        ("32:2", "f32", 8, 4),
        ("32:1024", "f32", 32, 4),
        ("32:0", "f32", 1, 1),
        ("(32,4):(4,1)", "f32", 16, 16),
        ("(32,4):(1,32)", "f32", 16, 16),
        ("(32,8):(8,1)", "bf16", 16, 16),
        ("((4,8),2):((1,64),4)", "f32", 16, 8),
    ],
)
def test_coalescing(tv, dtype, sectors, ideal):
    r = coalescing(parse(tv), dtype)
    assert (r.sectors, r.ideal, r.efficiency) == (sectors, ideal, ideal / sectors)
    assert str(r).startswith(f"{sectors} sectors for {ideal}")


def test_vectors_may_be_asked_for():
    assert coalescing(parse("(32,4):(4,1)"), "f32", vector=1).requests == 4
    with pytest.raises(LayoutError, match="aligned vectors of 8"):
        bank_conflicts(parse("(32,4):(4,1)"), "f32", vector=8)


def test_what_cannot_be_analysed():
    with pytest.raises(LayoutError, match="static"):
        bank_conflicts(Layout(sym_int()), "f32")
    with pytest.raises(LayoutError, match="offsets"):
        coalescing(make_identity_layout((8, 8)), "f32")
    with pytest.raises(LayoutError, match="element type"):
        coalescing(Layout(32), "float")


def test_element_types():
    class Width:
        width = 16

    assert [coalescing(Layout(32), t).sectors for t in ("f64", "i8", "bool", "f8e4m3fn", "tf32", Width, 4)] == [
        8, 1, 1, 1, 4, 2, 1]  # fmt: skip


def is_vector(layout, where, width, total):
    """Whether the elements at indices where[k*width ...] are contiguous and aligned for every k."""
    for first in range(0, total, width):
        start = layout(where[first])
        if start % width or any(layout(where[first + i]) != start + i for i in range(width)):
            return False
    return True


def test_vector_widths_hold_at_every_step():
    rng = random.Random(3)
    widest = set()
    for _ in range(500):
        shape = tuple(rng.choice([1, 2, 4, 8]) for _ in range(3))
        pair = []
        for _ in range(2):
            order, below, stride = rng.sample(range(3), 3), 1, [0] * 3
            for i in order:
                stride[i] = below
                below *= shape[i] + rng.choice([0, 0, 0, 1, 4])
            pair.append(Layout(shape, tuple(stride)))
        width = vector_width(*pair)
        widest.add(width)
        total = oracle.size(pair[0])
        where = sorted(range(total), key=pair[0])
        assert is_vector(pair[0], where, width, total) and is_vector(pair[1], where, width, total), pair
    assert {1, 2, 4, 8} <= widest


@pytest.mark.parametrize(
    ("src", "dst", "dtype", "width"),
    [
        ("(8,8):(8,1)", "(8,8):(8,1)", None, 64),
        ("(8,8):(8,1)", "(8,8):(8,1)", "f32", 4),
        ("(8,8):(8,1)", "(8,8):(8,1)", "f16", 8),
        ("(8,8):(9,1)", "(8,8):(8,1)", "f32", 1),  # rows start at odd places
        ("(8,8):(12,1)", "(8,8):(8,1)", "f32", 4),
        ("(8,8):(1,8)", "(8,8):(8,1)", "f32", 1),
        ("(8,6):(6,1)", "(8,6):(6,1)", "f32", 4),
        ("(8,64):(64,1)", "S<3,3,3> o 0 o (8,64):(64,1)", "f16", 8),
        ("(8,64):(64,1)", "S<3,1,3> o 0 o (8,64):(64,1)", "f16", 2),
        ("(8,64):(64,1)", "S<3,3,3> o 4 o (8,64):(64,1)", "f16", 4),
    ],
)
def test_known_vector_widths(src, dst, dtype, width):
    assert vector_width(parse(src), parse(dst), dtype) == width


def test_run_time_strides_count_by_divisibility():
    dst = parse("(8,64):(64,1)")
    assert vector_width(Layout((8, 64), (sym_int(8), 1)), dst, "f16") == 8
    assert vector_width(Layout((8, 64), (sym_int(2), 1)), dst, "f16") == 2
    assert vector_width(Layout((8, 64), (sym_int(), 1)), dst, "f16") == 1


def test_bijections():
    for layout in SMALL:
        values = oracle.values(layout)
        assert is_bijective(layout) == (sorted(values) == list(range(len(values)))), layout
    assert is_bijective(parse("S<2,0,3> o 0 o (8,8):(8,1)"))
    assert not is_bijective(parse("S<2,0,3> o 1 o (8,8):(8,1)"))
    assert is_bijective(parse("S<1,0,1> o 0 o (8):(1)")) and not is_bijective(parse("S<1,4,1> o 0 o 48:1"))
    n = sym_int(name="n")
    assert is_bijective(Layout((n, 8), (8, 1))) and is_bijective(Layout((n, 8), (1, n)))
    with pytest.raises(LayoutError, match="not known which mode"):
        is_bijective(Layout((n, 8), (sym_int(name="s"), 1)))


def test_common_sub_layouts():
    for a in SMALL[::3]:
        for b in SMALL[::7]:
            r = common_sub_layout(a, b)
            assert all(a(x) == b(x) for x in oracle.values(r)), (a, b, r)
    assert str(common_sub_layout(parse("(4,8):(1,4)"), parse("(4,8):(1,8)"))) == "4:1"
    assert str(common_sub_layout(parse("(4,2,8):(1,100,8)"), parse("(4,16):(1,4)"))) == "(4,8):(1,8)"
    assert str(common_sub_layout(parse("(4,8):(1@0,1@1)"), make_identity_layout((4, 8)))) == "32:1"
    assert common_sub_layout(Layout(4, 1), Layout(4, 2)) == Layout(1, 0) and E(0)
