"""What `tilewright layout` prints and draws."""

import xml.etree.ElementTree as xml

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.commands.layout import command


def printed(capsys, *arguments, **options):
    command(*arguments, **options)
    return capsys.readouterr().out.splitlines()


def cells(lines):
    """The numbers of a printed table without its first row and column."""
    return [[int(cell) for cell in line.split()[1:]] for line in lines[-4:]]


def test_layout_with_its_sizes_and_table(capsys):
    lines = printed(capsys, "(4,8):(8,1)")
    assert lines[:3] == ["(4,8):(8,1)", "rank 2   depth 1   size 32", "cosize 32   values all different"]
    assert cells(lines) == [[8 * row + column for column in range(8)] for row in range(4)]


def test_swizzle(capsys):
    lines = printed(capsys, "(4,4):(4,1)", swizzle="2,0,2")
    assert lines[0] == "S<2,0,2> o 0 o (4,4):(4,1)"
    assert cells(lines) == [[row * 4 + (column ^ row) for column in range(4)] for row in range(4)]


def test_threads_and_values_of_a_tile(capsys):
    lines = printed(capsys, "(8,2):(2,1)", tiler="2,8")
    assert lines[-2].split()[1:] == [f"T{thread}V0" for thread in range(8)]
    assert lines[-1].split()[1:] == [f"T{thread}V1" for thread in range(8)]


def test_repeated_values_and_gaps(capsys):
    assert "cosize 4   values 2 different" in printed(capsys, "(2,3):(3,0)")


@pytest.mark.parametrize(
    ("expression", "lines"),
    [
        ("size((4,8):(8,1))", ["32"]),
        ("S<3,4,3>", ["S<3,4,3>"]),
        ("make_layout_tv(32:1, 1:1)", ["((32),(32,1):(1,0))"]),
        ("(?,4):(4,1)", ["(?,4):(4,1)", "rank 2   depth 1   size ?{div=4}"]),
        ("(99,2):(1,99)", ["(99,2):(1,99)", "rank 2   depth 1   size 198", "cosize 198   values all different",
                           "(198 values are too many to print; --svg draws them)"]),
    ],
)  # fmt: skip
def test_other_values(capsys, expression, lines):
    assert printed(capsys, expression) == lines


@pytest.mark.parametrize(
    ("expression", "options", "shown"),
    [
        ("(8,8):(8,1)", {}, "63"),
        ("(8,8):(8,1)", {"swizzle": "3,3,3"}, "bank"),
        ("S<3,3,3>", {}, "bank"),
        ("(8,2):(2,1)", {"tiler": "2,8"}, "T7"),
        ("(200,2):(1,200)", {}, "399"),
    ],
)
def test_pictures(tmp_path, capsys, expression, options, shown):
    path = tmp_path / "picture.svg"
    assert printed(capsys, expression, svg=path, **options)[-1] == f"wrote {path}"
    picture = xml.parse(path)
    assert picture.getroot().tag.endswith("svg")
    assert shown in " ".join(picture.getroot().itertext())


def test_errors(tmp_path):
    with pytest.raises(ArgumentError, match="'3,4' is not B,M,S"):
        command("8:1", swizzle="3,4")
    with pytest.raises(ArgumentError, match="'a' is not a list of integers"):
        command("8:1", swizzle="a")
    with pytest.raises(ArgumentError, match="--swizzle needs a layout"):
        command("8", swizzle="3,4,3")
    with pytest.raises(ArgumentError, match="--svg needs a layout"):
        command("8", svg=tmp_path / "x.svg")
    assert list(tmp_path.iterdir()) == []
