"""Edges: empty and negative tiles, negative strides, lists for tuples, modes of rank 1, nested modes left whole."""

import pytest

from tests.layout import oracle
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    ComposedLayout,
    Layout,
    bank_conflicts,
    blocked_product,
    ceil_div,
    coalesce,
    coalescing,
    complement,
    composition,
    cosize,
    crd2idx,
    dice,
    elem_less,
    evaluate,
    filter,
    flat_divide,
    idx2crd,
    left_inverse,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    make_layout_image_mask,
    max_common_layout,
    max_common_vector,
    parse,
    product,
    product_each,
    raked_product,
    round_up,
    shape_div,
    size,
    slice_,
    slice_and_offset,
    sym_int,
    tiled_divide,
    zipped_divide,
    zipped_product,
)


@pytest.mark.parametrize(
    ("empty", "rest"),
    [
        ("(0,8):(8,1)", (0, 2)),
        ("(8,0):(1,8)", (2, 0)),
        ("((2,0),8):((1,2),0)", (0, 2)),
        ("(0,0):(1,1)", (0, 0)),
        ("(0,1):(1,1)", (0, 1)),
    ],
)
def test_an_empty_mode_has_no_tiles(empty, rest):
    z = zipped_divide(parse(empty), (4, 4))
    assert z.shape == ((4, 4), rest)
    assert size(z) == 0


def test_an_empty_domain_has_no_tiles():
    for text in ("0:1", "(0,8):(8,1)", "(8,0,2):(1,3,5)", "(3,(0,2)):(7,(1,9))"):
        r = logical_divide(parse(text), 4)
        assert size(r[0]) == 4
        assert size(r[1]) == 0
    assert complement(Layout(4), 0) == Layout(0, 4)
    n = sym_int(name="n")
    assert evaluate(zipped_divide(Layout((n, 8), (8, 1)), (4, 4)).shape, {"n": 0}) == ((4, 4), (0, 2))


def test_copies_of_nothing():
    for text in ("0:1", "(4,0):(1,4)", "(0,3):(3,1)"):
        assert size(logical_product(parse(text), Layout(4))) == 0
        with pytest.raises(LayoutError, match="the layout is empty"):
            complement(parse(text), 8)
    with pytest.raises(LayoutError, match="the layout is empty"):
        logical_divide(Layout(8), 0)
    with pytest.raises(LayoutError, match="the layout is empty"):
        zipped_divide(parse("(8,8):(8,1)"), (0, 4))


def test_division_by_nothing():
    for function in (ceil_div, shape_div):
        with pytest.raises(LayoutError, match="division by 0"):
            function(8, 0)
        with pytest.raises(LayoutError, match="division by 0"):
            function((8, 8), (4, 0))
    with pytest.raises(LayoutError, match="multiples of 0"):
        round_up(8, 0)
    assert ceil_div((0, 4), 8) == (0, 1)


def test_a_negative_extent_is_refused_everywhere():
    for function in (composition, logical_divide, zipped_divide, logical_product):
        with pytest.raises(LayoutError, match="extent is negative"):
            function(parse("(8,8):(8,1)"), -2)
        with pytest.raises(LayoutError, match="extent is negative"):
            function(parse("(8,8):(8,1)"), (4, -2))


@pytest.mark.parametrize("target", [1, 2, 4, 7, 8, 64, (7, 1), (4, 8)])
@pytest.mark.parametrize("tile", ["4:-1", "(8,8):(8,-1)", "(4,3):(12,-4)", "(2,(3,2)):(1,(-12,72))", "(2,2):(-9,36)"])
def test_no_complement_of_negative_strides(tile, target):
    with pytest.raises(LayoutError, match="negative"):
        complement(parse(tile), target)
    with pytest.raises(LayoutError, match="negative"):
        logical_divide(Layout(target), parse(tile))


def test_negative_strides_of_what_is_divided():
    a = parse("(8,6):(-1,16)")
    z = zipped_divide(a, (4, 3))
    for i in range(8):
        for j in range(6):
            assert z((i % 4, j % 3), (i // 4, j // 3)) == -i + 16 * j
    part, offset = slice_and_offset((5, None), a)
    assert [offset + part(j) for j in range(6)] == [-5 + 16 * j for j in range(6)]
    r = logical_product(Layout(4), Layout(3, -1))
    assert oracle.values(r) == [i - 4 * j for j in range(3) for i in range(4)]
    with pytest.raises(LayoutError, match="begins below 0"):
        left_inverse(Layout(4, -1))


def test_lists_stand_for_tuples():
    a = parse("((4,2),8):((1,32),4)")
    for function in (composition, logical_divide, zipped_divide, tiled_divide, flat_divide, logical_product):
        assert function(a, [4, 2]) == function(a, (4, 2))
        assert function(a, [[2, 1], 4]) == function(a, ((2, 1), 4))
    assert zipped_divide(a, [None, 4]) == zipped_divide(a, (None, 4))
    assert zipped_product(a, [None, 4]) == zipped_product(a, (None, 4))
    assert slice_(a, [[1, None], 3]) == slice_(a, ((1, None), 3)) == Layout((2,), (32,))
    assert a([[1, 1], 3]) == a(((1, 1), 3)) == 45
    assert local_tile(a, [4, 2], [1, None]) == local_tile(a, (4, 2), (1, None))
    assert local_tile(a, [4, 2, 9], [1, None, 0], [1, 1, None]) == local_tile(a, (4, 2), (1, None))
    assert local_partition(a, Layout((4, 2)), 5, [1, 1]) == local_partition(a, Layout((4, 2)), 5)
    assert coalesce(a, [1, 1]) == coalesce(a, (1, 1))
    assert filter(a, [1, 1]) == filter(a, (1, 1))
    assert dice([8, 4, 2], [1, None, 1]) == (8, 2)
    assert (product([2, [3, 4]]), product_each([2, [3, 4]]), size([2, 3])) == (24, (2, 12), 6)
    assert (crd2idx([1, 2], [4, 8]), idx2crd(9, [4, [2, 4]]), idx2crd([1, 3], [4, [2, 4]])) == (
        9,
        (1, (0, 1)),
        (1, (1, 1)),
    )
    assert (ceil_div([7, 8], [2, 3]), round_up([7, 8], [2, 3]), elem_less([1, 2], [2, 3])) == ((4, 3), (8, 9), True)


def test_products_of_a_leaf_and_a_mode_of_one():
    for block, tiler in (
        ("2:1", "(3):(1)"),
        ("(2):(1)", "3:1"),
        ("((2,1)):((1,7))", "3:1"),
        ("2:1", "((3,1)):((1,3))"),
    ):
        blocked, raked = blocked_product(parse(block), parse(tiler)), raked_product(parse(block), parse(tiler))
        assert oracle.values(blocked) == list(range(6))
        assert oracle.values(raked) == [0, 2, 4, 1, 3, 5]
        assert len(blocked) == len(raked) == 1


@pytest.mark.parametrize("inner", ["(4,2):(1,4)", "(4,2):(1,9)", "(2,(2,2)):(1,(2,4))", "(4,1):(1,0)"])
def test_a_mode_named_none_goes_to_the_rest_as_it_is(inner):
    mode = parse(inner)
    a = Layout((mode.shape, 8), (mode.stride, 100))
    z = zipped_divide(a, (None, 4))
    assert z.shape == ((1, 4), (mode.shape, 2))
    assert z.stride == ((0, 100), (mode.stride, 400))
    assert z((0, 3), (idx2crd(3, mode.shape), 1)) == a((3, 7))


def test_a_mode_named_none_needs_no_facts():
    n, m, ld = sym_int(name="n"), sym_int(name="m"), sym_int(name="ld")
    a = Layout(((n, m), 8), ((1, ld), 100))
    z = zipped_divide(a, (None, 4))
    assert str(z) == "((1,4),((?,?),2)):((0,100),((1,?),400))"
    p = zipped_product(Layout((4, 2), (1, 4)), (None, Layout(3)))
    assert str(p) == "((4,2),(1,3)):((1,4),(0,1))"


@pytest.mark.parametrize("extent", [1 << 34, (1 << 31) - 1, 3 << 40, 1 << 60])
def test_long_layouts_have_all_in_common(extent):
    a = Layout(extent)
    assert max_common_vector(a, a) == extent
    assert max_common_layout(a, a) == a
    assert max_common_vector(a, Layout((extent, 3), (1, extent * 2))) == extent


@pytest.mark.parametrize(
    ("a", "b", "most"),
    [
        ("48:1", "(4,12):(1,4)", 48),
        ("(6,8):(1,7)", "48:1", 6),
        ("(36,2):(1,50)", "72:1", 36),
        ("(9,9):(1,10)", "81:1", 9),
    ],
)
def test_common_runs_are_divisors(a, b, most):
    assert max_common_vector(parse(a), parse(b)) == most


def test_long_swizzled_layouts():
    s = parse("S<3,4,3> o 0 o (1048576,4096):(4096,1)")
    assert max_common_vector(s, s) == 1 << 32
    r = max_common_layout(s, s)
    assert all(s(r(i)) == i for i in (0, 1, 4095, 4096, 123456789, (1 << 32) - 1))
    assert max_common_vector(s.outer, s) == 128  # the swizzle reads bits 7 and up
    for count in (bank_conflicts, coalescing):
        with pytest.raises(LayoutError, match="too large to count"):
            count(s, "f16")
    with pytest.raises(LayoutError, match="too large to try"):
        cosize(ComposedLayout(Layout(8), 0, Layout(1 << 40)))


def test_masks_have_64_bits():
    assert make_layout_image_mask(Layout((2, 4), (32, 1)), (1, 3), 0) == (1 << 3) | (1 << 35)
    for layout in (Layout((2, 4), (64, 1)), Layout((1 << 20, 2)), Layout((2, 2), (-1, 2))):
        with pytest.raises(LayoutError, match="bits 0 to 63"):
            make_layout_image_mask(layout, (0, 0), 0)
    with pytest.raises(LayoutError, match="only at run time"):
        make_layout_image_mask(Layout((sym_int(name="n"), 2)), (0, 0), 0)
