"""Nonsense in every argument of every public function: a `LayoutError`, or a result that the function documents."""

import enum
import time

import numpy as np
import pytest

from tilewright import layout as algebra
from tilewright.base.errors import ArgumentError, LayoutError, shown
from tilewright.layout import (
    ComposedLayout,
    E,
    Layout,
    ScaledBasis,
    Swizzle,
    composition,
    downcast,
    evaluate,
    idx2crd,
    make_layout,
    make_layout_image_mask,
    make_swizzle,
    parse,
    product,
    repeat,
    size,
    sym_int,
    upcast,
    zipped_divide,
)

A = Layout((4, 8), (8, 1))
B = Layout((2, 4), (4, 1))
S = ComposedLayout(Swizzle(2, 3, 3), 0, A)

EXAMPLES = {
    "E": (1, 0),
    "add_coordinates": ((1, 2), (3, 4)),
    "append": (A, Layout(2), 4),
    "append_ones": (A, 4),
    "bank_conflicts": (Layout((32, 4), (4, 1)), 16, 1),
    "basis_get": (E(1), (1, 2)),
    "basis_value": (E(1),),
    "blocked_product": (A, B),
    "ceil_div": ((7, 9), (2, 4)),
    "coalesce": (A, (1, 1)),
    "coalescing": (Layout((32, 4), (4, 1)), 16, 1),
    "common_sub_layout": (A, B),
    "compact_col_major": ((4, 8), 2),
    "compact_order": ((4, 8), (1, 0)),
    "compatible": (32, (4, 8)),
    "complement": (Layout(4, 2), 32),
    "composition": (A, B),
    "congruent": ((4, 8), (1, 2)),
    "cosize": (A, 0),
    "crd2crd": ((1, 2), (4, 8), (2, 16)),
    "crd2idx": ((1, 2), (4, 8), (8, 1)),
    "depth": (A, 0),
    "dice": ((4, 8), (None, 1)),
    "divisibility": (8,),
    "domain_offset": ((1, 2), A),
    "downcast": (A, 2),
    "elem_less": ((1, 2), (4, 8)),
    "equal": ((1, 2), (1, 2)),
    "evaluate": ((sym_int(name="n"), 2), {"n": 3}),
    "filter": (A, (1, 1)),
    "filter_": (A, (1, 1)),
    "filter_zeros": (A, (1, 1)),
    "flat_divide": (A, (2, 4)),
    "flat_product": (A, (2, 4)),
    "flatten": (A,),
    "flatten_to_tuple": ((1, (2, 3)),),
    "get": (A, 1),
    "group_modes": (A, 0, 2),
    "has_underscore": ((1, None),),
    "idx2crd": (9, (4, 8)),
    "increment_coord": ((1, 2), (4, 8)),
    "inner_partition": (A, (2, 4), (1, 1)),
    "is_bijective": (A,),
    "is_compatible": (32, (4, 8)),
    "is_congruent": ((4, 8), (1, 2)),
    "is_major": (1, A),
    "is_static": (A,),
    "is_weakly_compatible": (16, (4, 8)),
    "is_weakly_congruent": ((4, 8), (1, 2)),
    "leading_dim": ((4, 8), (8, 1)),
    "left_inverse": (A,),
    "local_partition": (A, B, 3, (1, 1)),
    "local_partition_and_offset": (A, B, 3, (1, 1)),
    "local_tile": (A, (2, 4), (1, 1), (1, 1)),
    "local_tile_and_offset": (A, (2, 4), (1, 1), (1, 1)),
    "logical_divide": (A, (2, 4)),
    "logical_product": (A, (2, 4)),
    "make_basis_like": ((4, 8), (1,)),
    "make_composed_layout": (Swizzle(2, 3, 3), 0, A),
    "make_identity_layout": ((4, 8),),
    "make_layout": ((4, 8), (8, 1)),
    "make_layout_image_mask": (A, (1, 2), 1),
    "make_layout_like": (A,),
    "make_layout_tv": (B, Layout((2, 2))),
    "make_ordered_layout": ((4, 8), (1, 0)),
    "make_swizzle": (2, 3, 3),
    "max_common_layout": (A, B),
    "max_common_vector": (A, B),
    "nullspace": (A,),
    "outer_partition": (A, (2, 4), (1, 1)),
    "parse": ("(4,8):(8,1)",),
    "prefix_product": ((4, 8), 2),
    "prepend": (A, Layout(2), 4),
    "prepend_ones": (A, 4),
    "product": ((4, 8),),
    "product_each": ((4, 8),),
    "product_like": ((4, (2, 4)), (1, 1)),
    "raked_product": (A, B),
    "rank": (A, 0),
    "recast_layout": (8, 16, A),
    "repeat": (1, 3),
    "repeat_as_tuple": (1, 3),
    "repeat_like": (1, (4, 8)),
    "replace": (A, 1, Layout(2)),
    "right_inverse": (A,),
    "round_up": ((7, 9), (2, 4)),
    "runtime_checks": (print,),
    "select": (A, [1, 0]),
    "shape": (A, 1),
    "shape_div": ((4, 8), (2, 2)),
    "size": (A, 1),
    "size_in_bytes": (16, A),
    "slice_": (A, (None, 1)),
    "slice_and_offset": ((None, 1), A),
    "stride": (A, 1),
    "sym_int": (8, 32, "n"),
    "sym_int32": (8, "n"),
    "sym_int64": (8, "n"),
    "tile_to_mma_shape": (A, ((4, 8), 2, 2), (0, 1)),
    "tile_to_shape": (A, (8, 16), (0, 1)),
    "tiled_divide": (A, (2, 4)),
    "tiled_product": (A, (2, 4)),
    "transform_leaf": (lambda x, y: x, (4, 8), (1, 2)),
    "tuple_cat": ((1, 2), (3,)),
    "unflatten": ((1, 2, 3), (0, (0, 0))),
    "unwrap": (((1,),),),
    "upcast": (Layout((4, 8), (1, 4)), 2),
    "vector_width": (A, A, 16, 128),
    "weakly_compatible": (16, (4, 8)),
    "weakly_congruent": ((4, 8), (1, 2)),
    "wrap": (1,),
    "zip_modes": (((1, 2), (3, 4)),),
    "zipped_divide": (A, (2, 4)),
    "zipped_product": (A, (2, 4)),
    "layout_svg": (A,),
    "layout_text": (A, False),
    "print_latex": (A,),
    "print_latex_tv": (Layout((4, 8), (1, 4)), (4, 8)),
    "print_layout": (A, False),
    "print_layout_tv": (Layout((4, 8), (1, 4)), (4, 8), False),
    "swizzle_svg": (S, 16),
    "tv_layout_svg": (Layout((4, 8), (1, 4)), (4, 8)),
    "Layout": ((4, 8), (8, 1)),
    "Swizzle": (2, 3, 3),
    "ComposedLayout": (Swizzle(2, 3, 3), 0, A),
    "ScaledBasis": (1, (0,)),
    "Ratio": (1, 2),
    "SymInt": (32,),
}
NOT_CALLED = {"DynamicInt", "IntTuple", "BankConflicts", "Coalescing", "Fact"}  # a base class, a type, plain records
WRITES = {"render_layout_svg", "render_swizzle_svg", "render_tv_layout_svg"}  # their paths are the system's to judge


class NoText:
    def __repr__(self):
        raise RuntimeError("no text")


def deep(levels):
    value = 1
    for _ in range(levels):
        value = (value,)
    return value


NEVER = [1.5, float("nan"), "x", b"x", object(), NoText(), {1, 2}, {"a": 1}, 1j, Ellipsis, int, [1.5], ("x",)]
"""No integer, no tuple of integers, no layout, no coordinate."""
ODD = [
    None, True, False, 0, -1, -(1 << 40), 1 << 40, 1 << 20000,
    np.int64(4), np.float32(1), np.arange(3),
    enum.IntEnum("One", "x")(1),
    (), [], (()), (0,), (-1, 4), (4, (8, None)), (1, 2, 3, 4, 5), ((4, 8),),
    (None, None), deep(3000), deep(100), (1,) * 70,
    A, S, Layout(()), Layout(0, 1), Layout(1 << 40), Layout((1 << 30, 1 << 30), (1 << 30, -1)),
    Layout((4, 8), (E(0), E(1))),
    ComposedLayout(Swizzle(3, 3, 3), 1, Layout(1 << 40)), Swizzle(1, 0, 1), E(0), E(3, 2), ScaledBasis(-2, 1),
    sym_int(name="n"), Layout((sym_int(name="n"), 4)), "é", "", "(", print,
]  # fmt: skip
TAKES_ANYTHING = {
    (0,): """
        ComposedLayout ScaledBasis append_ones depth evaluate flatten flatten_to_tuple get group_modes
        has_underscore is_static make_basis_like make_composed_layout parse prepend_ones rank repeat
        repeat_as_tuple runtime_checks select unwrap wrap zip_modes
    """,
    (0, 1): """
        append congruent dice equal is_congruent is_weakly_congruent prepend repeat_like slice_ tuple_cat
        unflatten weakly_congruent
    """,
    (0, 1, 2): """
        transform_leaf
    """,
    (0, 2): """
        replace
    """,
    (1,): """
        bank_conflicts basis_get coalesce coalescing filter filter_ filter_zeros product_like swizzle_svg
        sym_int32 sym_int64
    """,
    (2,): """
        sym_int vector_width
    """,
    (3,): """
        local_partition local_partition_and_offset local_tile local_tile_and_offset
    """,
}
"""Tuples of anything, names of element types, functions, texts: judged where they are used."""


def takes_anything(name, place):
    return any(place in places and name in names.split() for places, names in TAKES_ANYTHING.items())


def test_every_public_name_is_tried():
    assert set(EXAMPLES) | NOT_CALLED | WRITES == set(algebra.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
def test_nonsense_is_refused(name, capsys):
    function, example = getattr(algebra, name), EXAMPLES[name]
    function(*example)
    for place in range(len(example)):
        for value in NEVER + ODD:
            never = any(value is item for item in NEVER)
            arguments = [*example[:place], value, *example[place + 1 :]]
            begin = time.monotonic()
            try:
                function(*arguments)
            except LayoutError as error:
                assert len(str(error)) < 20_000
            except ArgumentError:
                assert name in ("ScaledBasis", "Ratio")  # as the class says
            except (TypeError, ValueError):
                assert (name, place) == ("transform_leaf", 0)  # what the function given raises
            else:
                assert not never or takes_anything(name, place), f"{name} takes {shown(value)} at place {place}"
            assert time.monotonic() - begin < 5, f"{name} takes long for place {place}"


def test_the_message_names_function_and_argument():
    for call, message in (
        (lambda: downcast(A, -2), "downcast: `count` must be an integer from 1"),
        (lambda: upcast(A, 0), "upcast: `count` must be an integer from 1"),
        (lambda: upcast(A, 2.0), "upcast: `count` must be an integer"),
        (lambda: idx2crd("5", (4, 8)), "idx2crd: `idx` must be made of integers and None"),
        (lambda: size(1.5), "size: `a` must be made of integers"),
        (lambda: size((4, -8)), "an extent is negative"),
        (lambda: zipped_divide((4, 8), 2), "zipped_divide: `target` must be a layout"),
        (lambda: composition(A, Swizzle(1, 0, 1)), "a swizzle has no shape to compose with"),
        (lambda: repeat(1, 1 << 40), "repeat: `n` must be at most 65536"),
        (lambda: product(deep(65)), "product: `a` must be nested at most 64 deep"),
        (lambda: product(1 << 5000), "of at most 4096 bits"),
        (lambda: Swizzle(1.5, 2, 3), "a swizzle is made of integers, not float"),
        (lambda: make_swizzle(1, 0, 1 << 40), "numbers of at most 1024 bits"),
        (lambda: Layout(deep(65)), "nests at most 64 deep"),
        (lambda: A(deep(65)), "nests at most 64 deep"),
        (lambda: E(1 << 40), "mode numbers of a ScaledBasis are 0 to 63"),
        (lambda: evaluate(sym_int(name="n"), {}), "n has no value"),
        (lambda: evaluate(sym_int(name="n"), {"n": 1.5}), "the value of n must be an integer"),
    ):
        with pytest.raises(LayoutError) as caught:
            call()
        assert message in str(caught.value).splitlines()[0], str(caught.value)


def test_kinds_that_are_documented():
    assert downcast(Layout(8), np.int64(2)) == downcast(Layout(8), True * 2) == Layout(16)
    assert idx2crd(True, (4, 8)) == (1, 0)
    assert size([4, [np.int32(2), 3]]) == 24
    assert product(deep(64)) == 1
    assert make_layout([4, 8], stride=[8, 1]) == A


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9" * 5000, "a number of more than 1000 digits"),
        ("(4,8):(1," + "7" * 1001 + ")", "a number of more than 1000 digits"),
        ("(" * 3000, "nesting deeper than 64"),
        ("(" * 3000 + "1" + ")" * 3000, "nesting deeper than 64"),
        ("(" * 65 + "1" + ")" * 65 + ":1", "nesting deeper than 64"),
        ("S<" + "9" * 5000 + ",1,1>", "a number of more than 1000 digits"),
        ("4:1@" + "1" * 5000, "a number of more than 1000 digits"),
        ("?{div=" + "8" * 5000 + "}", "a number of more than 1000 digits"),
    ],
)
def test_long_texts_are_refused_at_a_place(text, problem):
    with pytest.raises(LayoutError, match=f"not a layout: {problem} at column [0-9]+") as caught:
        parse(text)
    assert len(str(caught.value)) < 600
    assert parse("(" * 64 + "1" + ")" * 64) == deep(64)
    assert parse("9" * 1000) == 10**1000 - 1


def test_numbers_too_long_to_print_are_printed_in_hexadecimal():
    long = Layout((1 << 4000,) * 5)
    assert str(long).endswith(f"{hex(1 << 16000)})")
    assert size(long) == 1 << 20000


def test_masks_of_long_modes_come_at_once():
    assert make_layout_image_mask(Layout((1 << 40, 2), (0, 1)), (0, 1), 0) == 2
    assert make_layout_image_mask(Layout(((1 << 40, 2), 2), ((0, 3), 1)), (0, 1), 0) == 0b10010
    with pytest.raises(LayoutError, match="bits 0 to 63, not 64"):
        make_layout_image_mask(Layout((1 << 40, 2), (1, 0)), (0, 1), 0)
    with pytest.raises(LayoutError, match="too large to try"):
        make_layout_image_mask(ComposedLayout(lambda x: x & 1, 0, Layout((1 << 20, 2))), (0, 1), 0)
