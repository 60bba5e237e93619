"""Drawings of the layouts in tensor types."""

import pytest

from tilewright import layout as algebra
from tilewright.layout import Layout
from tilewright.tools.explorer.drawn import clipped, drawing, drawings, with_stand_ins

SWIZZLED = "S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))"


def test_types_of_a_text_are_drawn_once():
    tensor = '!cute.tensor<f16, "smem", "(8,4):(4,1)", '
    text = f"%0 : {tensor}16 : i32>, %1 : {tensor}8 : i32>"
    found = drawings([text, text])
    assert list(found) == ["f16 smem (8,4):(4,1)"]
    assert found["f16 smem (8,4):(4,1)"].svg == algebra.swizzle_svg(Layout((8, 4), (4, 1)), 16)


def test_a_swizzled_layout_is_drawn_with_its_swizzle_first():
    found = drawing("f16", "smem", SWIZZLED)
    # Row 1 begins at element 64, which S<3,3,3> moves to 72; without it 64 lies in bank 0, as row 0 does.
    assert ">72<" in found.svg and "S&lt;3,3,3&gt;" in found.svg
    assert "S&lt;3,3,3&gt;" not in found.plain
    assert drawing("f16", "smem", "(8,64):(64,1)").plain == ""


def test_global_memory_has_no_banks():
    assert drawing("f32", "gmem", "(8,4):(4,1)").svg == algebra.layout_svg(Layout((8, 4), (4, 1)))


@pytest.mark.parametrize(
    "text", ["(128,1024):(1024,1)", SWIZZLED, "((3,64),(2,(8,16))):((1,128),(4,(8,64)))", "(4096):(2)"]
)
def test_a_large_layout_is_cut_to_its_beginning(text):
    whole = Layout.parse(text)
    part = clipped(whole)
    assert algebra.size(part) <= 32 * 32
    if algebra.rank(whole) == 1:
        assert [part(i) for i in range(algebra.size(part))] == [whole(i) for i in range(algebra.size(part))]
        return
    rows, columns = algebra.size(part, [0]), algebra.size(part) // algebra.size(part, [0])
    assert min(rows, columns) > 1
    for row in range(rows):
        assert [part((row, column)) for column in range(columns)] == [whole((row, column)) for column in range(columns)]


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("(?,?{div=16}):(?{i64 div=16},1)", "(8,16):(16,1)"),
        ("(?):(1)", "(8):(1)"),
        ("(4,2):(?,?)", "(4,2):(1,8)"),
        ("((2,?),8):((1,?),?)", "((2,8),8):((1,2),16)"),
    ],
)
def test_what_is_known_only_at_run_time_gets_small_numbers(text, drawn):
    assert with_stand_ins(text) == (drawn, True)
    assert "known only at run time" in drawing("f32", "gmem", text).facts
    assert drawing("f32", "gmem", text).svg


def test_a_layout_that_cannot_be_drawn_says_why():
    found = drawing("f32", "gmem", "(0):(1)")
    assert found.svg == ""
    assert found.facts == "the layout has no elements to draw"
