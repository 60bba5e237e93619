"""The values: layouts as functions, equality, immutability, printing, parsing; swizzles; basis strides."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.layout import oracle
from tests.layout.test_composition import SMALL
from tilewright.base.errors import LayoutError, TilewrightError
from tilewright.layout import (
    ComposedLayout,
    E,
    Layout,
    ScaledBasis,
    Swizzle,
    add_coordinates,
    basis_get,
    basis_value,
    is_static,
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_image_mask,
    make_layout_like,
    make_ordered_layout,
    make_swizzle,
    parse,
    sym_int,
)


def test_a_layout_is_a_function_of_indices_and_coordinates():
    for layout in SMALL:
        assert [layout(i) for i in range(oracle.size(layout))] == oracle.values(layout)
    nested = parse("((2,3),4):((1,8),2)")
    for k in range(24):
        i, j, m = k % 2, k // 2 % 3, k // 6
        assert nested(k) == nested((i, j), m) == nested(i + 2 * j, m) == nested(((i, j), m)) == i + 8 * j + 2 * m


def test_numbers_like_ints_are_ints():
    layout = Layout(np.array([4, 8]).tolist(), (np.int64(8), np.int32(1)))
    assert str(layout) == "(4,8):(8,1)" and layout(np.int64(9)) == layout(1, np.int32(2)) == 10
    assert layout([1, 2]) == 10 and type(Layout(True).shape) is int


def test_an_index_past_the_end_runs_on_in_the_last_mode():
    assert parse("(4,2):(2,1)")(9) == 1 * 2 + 2 * 1
    assert parse("(4,1):(1,7)")(5) == 1 + 7


def test_coordinates_must_fit():
    with pytest.raises(LayoutError, match="does not fit") as refused:
        parse("(4,8):(8,1)")((1, 2, 3))
    assert "(1,2,3)" in str(refused.value)
    with pytest.raises(LayoutError, match="does not fit"):
        Layout(8)((1, 2))


@pytest.mark.parametrize(
    ("shape", "stride", "message"),
    [
        ((4, 8), (1,), "nest alike"),
        ((4, 8), 1, "nest alike"),
        ((-4,), (1,), "negative"),
        ("ab", None, "integers"),
        ((4, 2.5), None, "integers"),
        ((4, E(0)), None, "integers"),
    ],
)
def test_what_is_no_layout(shape, stride, message):
    with pytest.raises(LayoutError, match=message) as refused:
        Layout(shape, stride)
    assert isinstance(refused.value, TilewrightError)
    assert isinstance(refused.value, ValueError)


def test_compact_by_default_with_stride_zero_for_extent_one():
    assert str(make_layout((8, 1, (2, 3)))) == "(8,1,(2,3)):(1,0,(8,16))"
    assert str(make_layout(8)) == "8:1"
    assert str(make_layout((8,))) == "(8):(1)"
    assert str(make_layout((4, 8), stride=(8, 1))) == str(make_layout((4, 8), (8, 1))) == "(4,8):(8,1)"
    assert str(make_layout(Layout(4), parse("(2,3):(3,1)"))) == "(4,(2,3)):(1,(3,1))"
    with pytest.raises(LayoutError, match="a shape and a stride, or layouts"):
        make_layout(Layout(4), 3)


@pytest.mark.parametrize(
    ("shape", "order", "text"),
    [
        ((4, 8), (0, 1), "(4,8):(1,4)"),
        ((4, 8), (1, 0), "(4,8):(8,1)"),
        ((4, 8, 3), (2, 0, 1), "(4,8,3):(24,1,8)"),
        ((4, (2, 3)), (1, 0), "(4,(2,3)):(6,(1,2))"),
        ((4, (2, 3)), (1, (2, 0)), "(4,(2,3)):(3,(12,1))"),
        ((4, 1, 3), (2, 1, 0), "(4,1,3):(3,0,1)"),
        ((4, 8), (0, 0), "(4,8):(1,4)"),
    ],
)
def test_ordered_layouts(shape, order, text):
    assert str(make_ordered_layout(shape, order)) == text


def test_an_order_names_each_mode():
    with pytest.raises(LayoutError, match="each mode"):
        make_ordered_layout((4, 8), (0, 1, 2))


@pytest.mark.parametrize(
    ("like", "text"),
    [
        ("(4,8):(16,1)", "(4,8):(8,1)"),
        ("(4,8):(0,3)", "(4,8):(0,1)"),
        ("((2,3),4):((100,7),1)", "((2,3),4):((12,4),1)"),
        ("S<2,0,3> o 0 o (4,8):(8,1)", "(4,8):(8,1)"),
    ],
)
def test_layouts_like_others(like, text):
    assert str(make_layout_like(parse(like))) == text


def test_identity_layouts_give_coordinates():
    layout = make_identity_layout((4, (2, 3)))
    assert str(layout) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))"
    for k in range(24):
        assert layout(k) == (k % 4, (k // 4 % 2, k // 8))
    assert str(make_identity_layout(8)) == "8:1"
    assert make_identity_layout((4, 8))(3, 5) == (3, 5)


def test_basis_strides():
    assert [str(e) for e in (E(0), E(1) * 8, E((1, 0)), E(0, 1), 3 * E([2]), E([]))] == [
        "1@0",
        "8@1",
        "1@0@1",
        "1@1@0",
        "3@2",
        "1",
    ]
    assert (basis_value(E(1) * 8), basis_value(5)) == (8, 5)
    assert basis_get(E(1, 0), (7, (8, 9))) == 8
    with pytest.raises(LayoutError, match="no mode"):
        basis_get(E(2), (7, 8))
    swap = parse("(4,8):(1@1,1@0)")
    assert swap(3, 5) == (5, 3)
    assert parse("(4,8,2):(1@1,1@0,0)")(3, 5, 1) == (5, 3)
    assert add_coordinates((1, (2, 3)), (10, (20,))) == (11, (22, 3))
    assert add_coordinates(0, (1, 2)) == (1, 2)
    with pytest.raises(LayoutError, match="profiles"):
        add_coordinates(3, (1, 2))
    with pytest.raises(LayoutError, match="cannot be added"):
        parse("(4,8):(1@1,1)")(3, 5)


def test_values_are_immutable_hashable_and_compare_by_value():
    a, b = parse("(4,8):(8,1)"), Layout([4, 8], [8, 1])
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    assert a != parse("(4,8):(1,4)") and a != "(4,8):(8,1)"
    s = make_composed_layout(make_swizzle(3, 3, 3), 0, a)
    assert s == parse("S<3,3,3> o 0 o (4,8):(8,1)") and hash(s) == hash(copy.deepcopy(s))
    for value in (a, s, s.inner, E(0), sym_int()):
        with pytest.raises(AttributeError):
            value.shape = 3
        assert pickle.loads(pickle.dumps(value)) == value


def test_modes_of_a_layout():
    a = parse("((2,3),4):((1,8),2)")
    assert len(a) == 2 and [str(mode) for mode in a] == ["(2,3):(1,8)", "4:2"]
    assert str(a[0][1]) == "3:8" and a[-1] == a[1]
    with pytest.raises(IndexError):
        a[2]
    s = parse("S<1,0,2> o 5 o (4,8):(8,1)")
    assert str(s[1]) == "S<1,0,2> o 5 o 8:1" and len(s) == 2


leaf = st.integers(0, 99)
shapes = st.recursive(leaf, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=6)


@given(shapes, st.data())
def test_parse_reads_what_is_printed(shape, data):
    def strides(t):
        if isinstance(t, tuple):
            return tuple(strides(item) for item in t)
        basis = st.builds(ScaledBasis, leaf, st.lists(st.integers(0, 3), min_size=1, max_size=3))
        return data.draw(st.one_of(leaf, basis))

    layout = Layout(shape, strides(shape))
    assert parse(str(layout)) == layout == Layout.parse(str(layout))
    composed = ComposedLayout(Swizzle(2, data.draw(st.integers(0, 4)), 3), data.draw(leaf), layout)
    assert parse(str(composed)) == composed


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "S<3,4,3>", "S<2,0,-3>", "(4,(2,3))", "7", "8:1", "(8):(1)", "():()"])
def test_parse_and_print(text):
    assert str(parse(text)).replace(" ", "").replace(",)", ")") == text


def test_parse_allows_blanks_and_trailing_commas():
    assert parse(" ( 4, 8, ) : (8 ,1) ") == parse("(4,8):(8,1)")
    assert parse("(4,):(1,)") == Layout((4,))


def test_parse_reads_run_time_leaves():
    layout = parse("(?,?{div=8},4):(?{i64 div=16},?{i64},1)")
    assert str(layout) == "(?,?{div=8},4):(?{i64 div=16},?{i64},1)"
    assert not layout.is_static and not is_static(layout) and is_static(parse("4:1"))
    assert (layout.stride[0].divisibility, layout.stride[0].width) == (16, 64)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(4,8", "missing `\\)`"),
        ("(4,8):", "a number"),
        ("4:1 o", "a number"),
        ("(4,8):(1,4) 7", "after the end"),
        ("abc", "unexpected"),
        ("S<3,4> o 0 o 8:1", "unexpected"),
        ("S<1,1,1> o 0 8:1", "missing `o`"),
        ("(4,8):(1,4,2)", "nest alike"),
        ("4:1@", "mode number"),
        ("S<4,0,3>", "shift"),
        ("?{dif=3}", "facts"),
        ("S<1,1,1> o 0 o 8", "outer part"),
    ],
)
def test_parse_says_what_is_wrong(text, problem):
    with pytest.raises(LayoutError, match=problem):
        parse(text)


@pytest.mark.parametrize("bits", range(4))
@pytest.mark.parametrize("base", range(4))
@pytest.mark.parametrize("shift", [-4, -3, 3, 4])
def test_swizzles_exchange_bits_and_undo_themselves(bits, base, shift):
    swizzle = Swizzle(bits, base, shift)
    low, high = base + max(-shift, 0), base + max(shift, 0)
    image = [swizzle(x) for x in range(4096)]
    for x, y in enumerate(image):
        read = (x >> high) & ((1 << bits) - 1)
        assert y == x ^ (read << low)
        assert swizzle(y) == x
    for first in range(0, 4096, swizzle.block):
        assert sorted(image[first : first + swizzle.block]) == list(range(first, first + swizzle.block))
    for count in range(1, 600):
        if swizzle.keeps(count):
            assert sorted(image[:count]) == list(range(count))


def test_swizzles_refuse_bad_numbers_and_coordinates():
    for numbers in [(-1, 0, 3), (1, -1, 3), (3, 0, 2), (3, 0, -2)]:
        with pytest.raises(LayoutError, match="bits >= 0"):
            Swizzle(*numbers)
    with pytest.raises(LayoutError, match="not coordinates"):
        parse("S<1,0,2> o 0 o (4,8):(1@0,1@1)")(1, 2)


def test_composed_layouts_add_their_offset_before_the_inner_function():
    s = parse("S<3,3,3> o 21 o (8,64):(64,1)")
    assert [s(k) for k in range(512)] == [(lambda x: x ^ ((x >> 3) & 56))(21 + k % 8 * 64 + k // 8) for k in range(512)]
    inner = make_composed_layout(parse("(64,8):(8,1)"), 3, parse("(4,4):(4,1)"))
    assert str(inner) == "(64,8):(8,1) o 3 o (4,4):(4,1)"
    assert inner(2, 3) == oracle.value((64, 8), (8, 1), 3 + 11)
    with pytest.raises(LayoutError, match="outer part"):
        ComposedLayout(Swizzle(1, 1, 1), 0, 8)
    with pytest.raises(LayoutError, match="function"):
        ComposedLayout(3, 0, Layout(8))


def test_image_masks():
    cluster = parse("(2,4):(1,2)")
    assert make_layout_image_mask(cluster, (1, 2), 1) == 0b10101010
    assert make_layout_image_mask(cluster, (1, 2), 0) == 0b00110000
    with pytest.raises(LayoutError, match="does not fit"):
        make_layout_image_mask(cluster, (1, 2), 2)
