"""Picking and grouping modes, slicing, coordinates, and the arithmetic of bare tuples."""

import math
from itertools import pairwise
from itertools import product as grid

import pytest

from tests.layout import oracle
from tests.layout.test_composition import SMALL
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    append,
    append_ones,
    ceil_div,
    coalesce,
    compatible,
    congruent,
    cosize,
    crd2crd,
    crd2idx,
    depth,
    dice,
    elem_less,
    equal,
    filter,
    filter_zeros,
    flatten,
    flatten_to_tuple,
    get,
    group_modes,
    has_underscore,
    idx2crd,
    increment_coord,
    is_major,
    leading_dim,
    parse,
    prefix_product,
    prepend,
    prepend_ones,
    product,
    product_each,
    product_like,
    rank,
    repeat,
    repeat_as_tuple,
    repeat_like,
    replace,
    round_up,
    select,
    shape,
    shape_div,
    size,
    size_in_bytes,
    slice_,
    slice_and_offset,
    stride,
    tuple_cat,
    unflatten,
    unwrap,
    weakly_compatible,
    weakly_congruent,
    wrap,
    zip_modes,
    zipped_divide,
)

DOCS = parse("((3,2),(2,5,2)):((4,1),(2,13,100))")


def test_sizes_and_ranks():
    a = parse("((2,3),4):((1,8),2)")
    assert (size(a), size(a, mode=[0]), size(a, mode=[0, 1]), size(a, 1)) == (24, 6, 3, 4)
    assert (cosize(a), cosize(a, mode=[1]), cosize(a, mode=[0])) == (1 + 1 + 16 + 6, 7, 18)
    assert (rank(a), rank(a, mode=[0]), rank(a, mode=[1]), rank((1, 2, 3)), rank(7)) == (2, 2, 1, 3, 1)
    assert (depth(a), depth(7), depth((1, (2, (3,)))), depth(())) == (2, 0, 3, 1)
    assert (shape(a, [0]), stride(a, [0, 1]), shape((4, (2, 3)), [1])) == ((2, 3), 8, (2, 3))
    assert (size(()), size((4, 0)), cosize(Layout((4, 0), (1, 4)))) == (1, 0, 0)
    with pytest.raises(LayoutError, match="no mode 2"):
        size(a, mode=[2])


def test_cosize_is_one_more_than_the_largest_value():
    for layout in SMALL:
        assert cosize(layout) == max(oracle.values(layout)) + 1
    assert cosize(parse("(4,8):(1@0,2@1)")) == (4, 15)
    assert cosize(parse("S<2,0,3> o 0 o (8,5):(5,1)")) == 40
    assert cosize(parse("S<3,4,3> o 0 o (8,64):(64,1)")) == 512
    for text in ("S<2,1,3> o 0 o (7,5):(9,1)", "S<1,4,-2> o 3 o (4,9):(9,1)"):
        layout = parse(text)
        assert max(layout(k) for k in range(size(layout))) < cosize(layout)
    assert cosize(parse("8:2 o 1 o 4:1")) == 9
    for text, places in (("4:-1", 4), ("(4,3):(-2,7)", 21), ("(2,0):(-1,3)", 0), ("(3,1):(5,-9)", 11)):
        assert cosize(parse(text)) == places


def test_size_in_bytes():
    assert size_in_bytes(16, parse("(8,64):(72,1)")) == (7 * 72 + 64) * 2
    assert size_in_bytes(4, Layout(3)) == 2


def test_get_select_group_replace():
    a = parse("((2,3),4,(5,6)):((1,2),6,(24,120))")
    assert str(get(a, mode=[2, 1])) == "6:120" and get(a) == a
    assert str(select(a, mode=[2, 0])) == "((5,6),(2,3)):((24,120),(1,2))"
    assert str(group_modes(a, 0, 2)) == "(((2,3),4),(5,6)):(((1,2),6),(24,120))"
    assert str(group_modes(a, 1)) == "((2,3),(4,(5,6))):((1,2),(6,(24,120)))"
    assert group_modes(a, 1, -1) == group_modes(a, 1) and group_modes(a, 1, 1) == a
    assert group_modes((1, 2, 3), 0, 2) == ((1, 2), 3)
    assert str(replace(a, 1, Layout(9))) == "((2,3),9,(5,6)):((1,2),1,(24,120))"
    for bad in (
        lambda: get(a, [3]),
        lambda: select(a, [0, 3]),
        lambda: group_modes(a, 2, 1),
        lambda: group_modes(a, 0, 4),
    ):
        with pytest.raises(LayoutError, match=r"no (such )?mode"):
            bad()
    s = parse("S<1,0,2> o 3 o (4,8):(8,1)")
    assert str(select(s, [1])) == "S<1,0,2> o 3 o (8):(1)"


def test_append_and_prepend():
    assert str(append(Layout(8), parse("4:8"))) == "(8,4):(1,8)"
    assert str(append(parse("(4,8):(1,4)"), Layout(2, 32), up_to_rank=4)) == "(4,8,2,2):(1,4,32,32)"
    assert str(prepend(Layout(8), Layout(2, 8))) == "(2,8):(8,1)"
    assert str(append_ones(Layout(8), up_to_rank=3)) == "(8,1,1):(1,0,0)"
    assert str(prepend_ones(parse("S<1,0,2> o 3 o 8:1"), 2)) == "S<1,0,2> o 3 o (1,8):(0,1)"
    assert append((1, 2), None, up_to_rank=4) == (1, 2, None, None) and append(3, 4) == (3, 4)
    assert append_ones((4, 8), up_to_rank=2) == (4, 8)
    with pytest.raises(LayoutError, match="more modes than the rank"):
        append((1, 2, 3), 1, up_to_rank=2)


def test_zip_modes():
    assert str(zip_modes(parse("((1,2),(3,4)):((5,6),(7,8))"))) == "((1,3),(2,4)):((5,7),(6,8))"
    with pytest.raises(LayoutError, match="different ranks"):
        zip_modes(((1, 2), 3))


@pytest.mark.parametrize(
    ("coord", "text"),
    [
        ((2, None), "((2,5,2)):((2,13,100))"),
        ((None, 5), "((3,2)):((4,1))"),
        (((None, None), 5), "(3,2):(4,1)"),
        (((None, 1), (0, None, 1)), "(3,5):(4,13)"),
        ((2, (None, 3, None)), "(2,2):(2,100)"),
        ((None, None), "((3,2),(2,5,2)):((4,1),(2,13,100))"),
        ((1, 2), "():()"),
    ],
)
def test_slices_of_the_example_in_the_tensor_documentation(coord, text):
    assert str(slice_(DOCS, coord)) == text


def test_slice_and_offset_keep_the_values():
    for i in range(6):
        part, offset = slice_and_offset((i, None), DOCS)
        assert [offset + part(j) for j in range(20)] == [DOCS(i, j) for j in range(20)]
    s = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    for i in range(8):
        assert [slice_(s, (i, None))(j) for j in range(64)] == [s(i, j) for j in range(64)]
    with pytest.raises(LayoutError, match="does not fit"):
        slice_(DOCS, (None, (1, 2)))
    with pytest.raises(LayoutError, match="does not fit"):
        slice_(DOCS, (None, 1, 2))


def test_partition_of_swizzled_memory_with_several_steps():  # S3
    smem = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    seen = []
    for m, t in grid(range(8), range(8)):
        tiled = zipped_divide(smem, (1, 8))  # ((1,8),(8,8)): column in the step, (row, step)
        mine = slice_(tiled, ((0, t), (m, None)))
        offsets = [mine(k) for k in range(8)]
        seen += offsets
        if (m, t) == (3, 5):
            assert offsets == [221, 213, 205, 197, 253, 245, 237, 229]
    assert sorted(seen) == list(range(512))


def test_dice():
    assert dice((64, 128, 32), (1, None, 1)) == (64, 32) and dice(7, 1) == 7 and dice((4, 5), None) == ()
    assert str(dice(DOCS, ((None, 0), None))) == "(2):(1)"


def test_coalesce_keeps_the_function_with_fewest_modes():
    for layout in SMALL:
        r = coalesce(layout)
        assert oracle.values(r) == oracle.values(layout)
        assert depth(r) <= 1
        flat_modes = list(zip(oracle.flat(r.shape), oracle.flat(r.stride), strict=True))
        assert all(d * n != e for (n, d), (_, e) in pairwise(flat_modes))
    assert str(coalesce(parse("(2,(1,6)):(1,(6,2))"))) == "12:1"
    assert str(coalesce(parse("(2,(1,6)):(1,(6,2))"), (1, 1))) == "(2,6):(1,2)"
    assert str(coalesce(parse("((4,3),5):((15,1),3)"), (None,))) == "((4,3),5):((15,1),3)"
    assert str(coalesce(parse("(4,8):(1@0,4@0)"))) == "32:1@0"
    assert str(coalesce(parse("(1,1):(5,7)"))) == "1:0" and str(coalesce(Layout(8, 2))) == "8:2"
    with pytest.raises(LayoutError, match="more items"):
        coalesce(Layout(8), (1, 1))


def test_filter():
    assert str(filter_zeros(parse("(4,(8,2)):(0,(1,0))"))) == "(1,(8,1)):(0,(1,0))"
    assert str(filter_zeros(parse("(4,8):(0,0)"), (1,))) == "(1,8):(0,0)"
    assert str(filter(parse("(4,8,2):(0,1,8)"))) == "16:1" and str(filter(Layout(4, 0))) == "1:0"
    assert str(filter(parse("(4,(8,2)):(0,(1,0))"), (1, 1))) == "(1,8):(0,1)"


def test_flatten_and_unflatten():
    assert str(flatten(DOCS)) == "(3,2,2,5,2):(4,1,2,13,100)" and flatten(Layout(8)) == Layout(8)
    assert flatten_to_tuple(7) == (7,) and flatten(((1, 2), 3)) == (1, 2, 3)
    assert unflatten((1, 2, 3), ((0, 0), 0)) == ((1, 2), 3)
    with pytest.raises(LayoutError, match="number of leaves"):
        unflatten((1, 2), ((0, 0), 0))


def test_coordinates_go_there_and_back():
    extents = ((3, 2), (2, 5, 2))
    for k in range(120):
        coord = idx2crd(k, extents)
        assert congruent(coord, extents) and crd2idx(coord, extents) == k
        assert crd2idx(idx2crd(k, DOCS), DOCS) == DOCS(k)
        assert idx2crd((k % 6, k // 6), extents) == coord
        assert crd2crd(coord, extents, (120,)) == (k,)
        nxt = increment_coord(coord, extents)
        assert crd2idx(nxt, extents) == (k + 1) % 120
    assert crd2idx((1, 2), (4, 8), (8, 1)) == 10 and crd2idx(5, Layout(8, 2)) == 10
    with pytest.raises(LayoutError, match="does not fit"):
        idx2crd((1, 2, 3), (4, 8))
    with pytest.raises(LayoutError, match="does not fit"):
        increment_coord((1, 2), (4, (2, 4)))


def test_coordinates_read_off_values():
    for order in ("(4,8):(8,1)", "(4,8):(1,4)", "((2,2),8):((1,16),2)", "(4,1,8):(8,0,1)", "(4,8):(16,1)"):
        layout = parse(order)
        for k in range(size(layout)):
            x = layout(k)
            assert layout(layout.get_hier_coord(x)) == layout(layout.get_flat_coord(x)) == x
            assert layout.get_1d_coord(x) == k
    for bad in ("(4,8):(1,1)", "(4,8):(1,6)"):
        with pytest.raises(LayoutError, match="left_inverse"):
            parse(bad).get_flat_coord(3)


def test_elem_less():
    assert elem_less((3, 7), (4, 8)) and not elem_less((3, 8), (4, 8)) and elem_less(3, 4)
    assert elem_less((3, (1, 2)), (4, (2, 3))) and elem_less((3,), (4, 0))
    for bad in [((1, 2), 4), (3, (4, 5)), ((1, 2, 3), (4, 5))]:
        with pytest.raises(LayoutError, match="profiles differ"):
            elem_less(*bad)


@pytest.mark.parametrize(
    ("value", "divisor", "result"),
    [
        (7, 2, 4), ((7, 9), (2, 4), (4, 3)), ((7, 9), (2,), (4, 9)), ((4, 6), 8, (1, 3)), ((4, (6, 2)), 8, (1, (3, 2))),
        ((7, (9, 2)), (2, (4, 1)), (4, (3, 2))), ((7, 9), (None, 2), (7, 5)), (1000, (512,), 2), (1000, (32, 4), 8),
        (100, ((8, 2), 4), 2), ((1000, 65), ((32, 4), 8), (8, 9)), (7, (), 7), (129, [(2, 4), [16]], 2),
        (10, (3, None), 4),
    ],
)  # fmt: skip
def test_ceil_div(value, divisor, result):
    assert ceil_div(value, divisor) == result


def test_ceil_div_refuses_more_modes():
    with pytest.raises(LayoutError, match="ceil_div: ranks differ"):
        ceil_div((4, 4), (1, 2, 3))


@pytest.mark.parametrize("divisor", [(3,), (2, 5), ((2, 3), 4), (1, (1, 7), (2, (2,)))])
def test_a_tuple_divides_a_number_by_its_product(divisor):
    whole = math.prod(leaf for leaf in flatten_to_tuple(divisor))
    for value in (*range(1, 200), 2**31 - 1, 2**40 + 1):
        quotient = -(-value // whole)
        assert ceil_div(value, divisor) == quotient and round_up(value, divisor) == quotient * whole
    for function in (ceil_div, round_up):
        with pytest.raises(LayoutError, match=r"division by 0|multiples of 0"):
            function(4, (*divisor, 0))


def test_round_up():
    assert (round_up(7, 4), round_up((7, 9), (4, 5)), round_up((7, 9), (4,))) == (8, (8, 10), (8, 9))
    with pytest.raises(LayoutError, match="ranks differ"):
        round_up((7, 9), 4)


def test_shape_div():
    assert [shape_div(*p) for p in [(12, 4), (4, 12), ((4, 6), 8), (12, (2, 3)), ((12, 6), (3, 12))]] == [
        3,
        1,
        (1, 3),
        2,
        (4, 1),
    ]
    with pytest.raises(LayoutError, match="neither extent divides"):
        shape_div(12, 5)


def test_products_of_tuples():
    t = ((2, 3), 4, (5, (6,)))
    assert (product(t), product_each(t), product_like(t, (1, 1, (1, 1)))) == (720, (6, 4, 30), (6, 4, (5, 6)))
    assert prefix_product(t) == ((1, 2), 6, (24, (120,)))
    with pytest.raises(LayoutError, match="ranks differ"):
        product_like(t, (1, 1))


def test_congruence_and_compatibility():
    assert congruent((1, (2, 3)), (4, (5, 6))) and not congruent((1, 2), (1, (2, 3)))
    assert weakly_congruent((1, 2), (1, (2, 3))) and not weakly_congruent((1, (2, 3)), (1, 2))
    assert compatible(24, (4, 6)) and compatible((4, 6), ((2, 2), 6)) and not compatible((4, 6), 24)
    assert (
        not compatible((4, 6), (6, 4)) and weakly_compatible((2, 3), (4, (3, 2))) and not weakly_compatible(5, (4, 6))
    )
    assert equal((1, (2,)), (1, (2,))) and not equal((1, 2), (1, (2,))) and not equal(1, (1,))


def test_small_helpers():
    assert (repeat(3, 1), repeat(3, 2), repeat_as_tuple(3, 1), repeat_like(0, (1, (2, 3)))) == (
        3,
        (3, 3),
        (3,),
        (0, (0, 0)),
    )
    assert (wrap(3), unwrap(((3,),)), tuple_cat((1,), (2, 3)), has_underscore((1, (None,)))) == (
        (3,),
        3,
        (1, 2, 3),
        True,
    )
    assert leading_dim((4, 8), (8, 1)) == 1 and leading_dim((4, 1, 8), (16, 1, 1)) == 2
    assert leading_dim((4, 8), (16, 2)) is None and is_major(1, (8, 1)) and not is_major(0, Layout((4, 8), (8, 1)))
    with pytest.raises(LayoutError, match="several modes"):
        leading_dim((4, 8), (1, 1))
