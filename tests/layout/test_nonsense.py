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
    sym_int,
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
    None, True, False, 0, -1, -(1 << 40), 1 << 40, 1 << 20000, (), [], (()), (0,), (-1, 4), (4, (8, None)), (1, 2, 3, 4, 5), ((4, 8),),
    (None, None), deep(3000), deep(100), (1,) * 70, np.int64(4), np.float32(1), np.arange(3), Swizzle(1, 0, 1), S, A, Layout(()), Layout(0, 1),
    Layout((4, 8), (E(0), E(1))), E(0), E(3, 2), ScaledBasis(-2, 1), sym_int(name="n"), Layout((sym_int(name="n"), 4)), Layout(1 << 40),
    ComposedLayout(Swizzle(3, 3, 3), 1, Layout(1 << 40)), Layout((1 << 30, 1 << 30), (1 << 30, -1)), "é", "", "(", print, enum.IntEnum("One", "x")(1),
]  # fmt: skip
TAKES_ANYTHING = {
    ("append", 0), ("append_ones", 0), ("prepend", 0), ("prepend_ones", 0), ("append", 1), ("prepend", 1), ("replace", 2),
    ("bank_conflicts", 1), ("coalescing", 1), ("vector_width", 2), ("swizzle_svg", 1), ("evaluate", 0), ("basis_get", 1),
    ("coalesce", 1), ("filter", 1), ("filter_", 1), ("filter_zeros", 1), ("congruent", 0), ("congruent", 1), ("is_congruent", 0), ("is_congruent", 1),
    ("weakly_congruent", 0), ("weakly_congruent", 1), ("is_weakly_congruent", 0), ("is_weakly_congruent", 1),
    ("depth", 0), ("rank", 0), ("dice", 0), ("dice", 1), ("equal", 0), ("equal", 1), ("flatten", 0), ("flatten_to_tuple", 0), ("get", 0), ("group_modes", 0),
    ("has_underscore", 0), ("is_static", 0), ("make_basis_like", 0), ("product_like", 1), ("repeat", 0), ("repeat_as_tuple", 0), ("repeat_like", 0), ("repeat_like", 1),
    ("replace", 0), ("select", 0), ("slice_", 0), ("slice_", 1), ("transform_leaf", 0), ("transform_leaf", 1), ("transform_leaf", 2),
    ("tuple_cat", 0), ("tuple_cat", 1), ("unflatten", 0), ("unflatten", 1), ("unwrap", 0), ("wrap", 0), ("zip_modes", 0),
    ("sym_int", 2), ("sym_int32", 1), ("sym_int64", 1),
    ("local_partition", 3), ("local_partition_and_offset", 3), ("local_tile", 3), ("local_tile_and_offset", 3),
    ("make_composed_layout", 0), ("ComposedLayout", 0), ("ScaledBasis", 0), ("runtime_checks", 0), ("parse", 0),
}  # fmt: skip
"""Tuples of anything, names of element types, functions, texts: judged where they are used."""


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
            except (TypeError, ValueError) if (name, place) == ("transform_leaf", 0) else ArgumentError:
                assert name in ("ScaledBasis", "Ratio", "E", "transform_leaf")
            else:
                assert not never or (name, place) in TAKES_ANYTHING, f"{name} takes {shown(value)} at place {place}"
            assert time.monotonic() - begin < 5, f"{name} takes long for place {place}"
