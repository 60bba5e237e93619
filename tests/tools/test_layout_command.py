"""What `tilewright layout` prints."""

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.commands.layout import command


def printed(capsys, *arguments, **options):
    command(*arguments, **options)
    return capsys.readouterr().out.splitlines()


def test_layout_with_its_table(capsys):
    assert printed(capsys, "(2,4):(4,1)") == [
        "(2,4):(4,1)",
        "rank 2   depth 1   size 8",
        "cosize 8   values all different",
        "0 1 2 3",
        "4 5 6 7",
    ]


def test_swizzle(capsys):
    lines = printed(capsys, "(4,4):(4,1)", swizzle="2,0,2")
    assert lines[0] == "S<2,0,2> o 0 o (4,4):(4,1)"
    rows = [[row * 4 + (column ^ row) for column in range(4)] for row in range(4)]
    assert [[int(cell) for cell in line.split()] for line in lines[3:]] == rows


def test_repeated_values_and_gaps(capsys):
    assert "cosize 4   values 2 different" in printed(capsys, "(2,3):(3,0)")


@pytest.mark.parametrize(
    ("expression", "lines"),
    [
        ("size((4,8):(8,1))", ["32"]),
        ("make_layout_tv(32:1, 1:1)", ["((32),(32,1):(1,0))"]),
        ("(?,4):(4,1)", ["(?,4):(4,1)", "rank 2   depth 1   size ?{div=4}"]),
        ("(99,2):(1,99)", ["(99,2):(1,99)", "rank 2   depth 1   size 198", "cosize 198   values all different",
                           "(its 198 values are too many to print)"]),
        ("make_identity_layout((1,2))", ["(1,2):(1@0,1@1)", "rank 2   depth 1   size 2", "(0, 0) (0, 1)"]),
    ],
)  # fmt: skip
def test_other_values(capsys, expression, lines):
    assert printed(capsys, expression) == lines


def test_errors():
    with pytest.raises(ArgumentError, match="'3,4' is not B,M,S"):
        command("8:1", swizzle="3,4")
    with pytest.raises(ArgumentError, match="needs a layout"):
        command("8", swizzle="3,4,3")
