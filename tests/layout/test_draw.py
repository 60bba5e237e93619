"""Drawings: every cell says the right thing, texts fit their cells, colours are explained."""

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    Swizzle,
    layout_svg,
    layout_text,
    make_identity_layout,
    make_layout_tv,
    parse,
    print_latex,
    print_latex_tv,
    print_layout,
    print_layout_tv,
    render_layout_svg,
    render_swizzle_svg,
    render_tv_layout_svg,
    swizzle_svg,
    sym_int,
    tv_layout_svg,
)

SVG = "{http://www.w3.org/2000/svg}"


def elements(picture):
    """(x, y, text, font size) of every text, and (x, y, width, height, fill) of every cell."""
    root = ET.fromstring(picture)
    texts, boxes = [], []
    for panel in root.findall(f"{SVG}g"):
        left = float(re.search(r"translate\(([\d.]+)", panel.get("transform"))[1])
        for group in panel.findall(f"{SVG}g"):
            for text in group.findall(f"{SVG}text"):
                texts.append((left + float(text.get("x")), float(text.get("y")), text.text, group.get("font-size")))
            for box in group.findall(f"{SVG}rect"):
                place = [float(box.get(key)) for key in ("x", "y", "width", "height")]
                boxes.append((left + place[0], *place[1:], box.get("fill")))
    return root, texts, boxes


def inside(texts, box):
    x, y, width, height, _ = box
    return [t for tx, ty, t, _ in texts if x <= tx <= x + width and y <= ty <= y + height]


@pytest.mark.parametrize("layout", ["(4,8):(8,1)", "(32,32):(32,1)", "((2,2),(4,2)):((1,16),(2,8))", "8:2",
                                    "S<2,0,3> o 0 o (8,8):(8,1)", "(2,3,4):(12,4,1)"])  # fmt: skip
def test_each_cell_shows_its_value(layout):
    value = parse(layout)
    _, texts, boxes = elements(layout_svg(value))
    shown = [int(inside(texts, box)[0]) for box in boxes]
    rows = len({box[1] for box in boxes})
    columns = len(boxes) // rows
    assert shown == [value(row + column * rows) for row in range(rows) for column in range(columns)]


@pytest.mark.parametrize("picture", [
    layout_svg(parse("(32,32):(32,1)")),
    tv_layout_svg(make_layout_tv(parse("(16,8):(8,1)"), parse("(2,4):(4,1)"))[1], (32, 32)),
    swizzle_svg(parse("S<3,3,3> o 0 o (32,32):(32,1)"), 16),
])  # fmt: skip
def test_texts_fit_their_cells_at_32_by_32(picture):
    root, texts, boxes = elements(picture)
    assert len(boxes) in (1024, 2048)
    width, height = float(root.get("width")), float(root.get("height"))
    assert max(x + w for x, _, w, _, _ in boxes) < width and max(y + h for _, y, _, h, _ in boxes) < height
    cell = boxes[0][2]
    for _, _, text, size in texts:
        if size in ("11", "9") and not text.isspace():
            assert len(text) * float(size) * 0.61 <= cell  # advance of a monospaced letter
    fills = {box[4] for box in boxes}
    for fill in fills:  # dark text on it has a contrast of at least 4.5 (WCAG 2.1, 1.4.3)
        channel = [int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channel]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert (luminance + 0.05) / (0.0056 + 0.05) > 4.5


def test_pictures_say_what_colours_mean():
    assert "colour: from the first value (light) to the last (dark)" in layout_svg(Layout((8, 16)))
    assert "colour: one" in tv_layout_svg(parse("(8,8):(8,1)"), (8, 8))
    assert "bank of shared memory" in " ".join(swizzle_svg(Swizzle(3, 3, 3)).split("</text>"))


def test_thread_and_value_at_each_place(tmp_path):
    tiler, tv = make_layout_tv(parse("(4,8):(8,1)"), parse("(2,2):(2,1)"))
    render_tv_layout_svg(tv, tiler, tmp_path / "tv.svg")
    _, texts, boxes = elements((tmp_path / "tv.svg").read_text())
    where = {index: tuple(inside(texts, box)) for index, box in enumerate(boxes)}
    for t in range(32):
        for v in range(4):
            place = tv(t, v)
            row, column = place % tiler[0], place // tiler[0]
            assert where[row * tiler[1] + column] == (f"T{t}", f"V{v}")
    assert Counter(box[4] for box in boxes).most_common(1)[0][1] == 1
    assert len({box[4] for box, owner in zip(boxes, where.values(), strict=True) if owner[1] == "V0"}) == 32


def test_tiles_of_one_row_shared_places_and_coordinates():
    _, texts, boxes = elements(tv_layout_svg(parse("(32,1):(1,0)"), (1, 32)))
    assert [inside(texts, box)[0] for box in boxes] == [f"T{t}" for t in range(32)]
    _, texts, boxes = elements(tv_layout_svg(parse("(4,2):(0,1)"), (2,)))
    assert inside(texts, boxes[1]) == ["T0", "V1+3"]
    identity = make_identity_layout((2, 4))
    _, texts, boxes = elements(tv_layout_svg(identity, (2, 4)))
    assert inside(texts, boxes[1]) == ["T0", "V1"]


def test_swizzle_with_its_conflicts(tmp_path):
    render_swizzle_svg(parse("S<3,0,3> o 0 o (8,8):(8,1)"), tmp_path / "s.svg", 128)
    _, texts, boxes = elements((tmp_path / "s.svg").read_text())
    assert len(boxes) == 128
    assert [t for _, _, t, size in texts if size == "10" and t.startswith("×")] == ["×8"] * 8 + ["×1"] * 8
    right = boxes[64:]
    swizzle = parse("S<3,0,3> o 0 o (8,8):(8,1)")
    for index, box in enumerate(right):
        offset = swizzle(index // 8, index % 8)
        assert inside(texts, box)[:2] == [str(offset), f"b{offset * 4 % 32}"]


def test_tables_in_the_terminal(capsys):
    print_layout(parse("(2,4):(4,1)"))
    assert capsys.readouterr().out.splitlines() == ["(2,4):(4,1)", "   0  1  2  3", "0  0  1  2  3", "1  4  5  6  7"]
    print_layout_tv(parse("(4,2):(2,1)"), (2, 4))
    out = capsys.readouterr().out
    assert out.splitlines()[2].split() == ["0", "T0V0", "T1V0", "T2V0", "T3V0"]
    print_layout(parse("(2,4):(4,1)"), colour=True)
    out = capsys.readouterr().out
    assert out.count("\x1b[0m") == 8 and "light" in out
    assert layout_text(make_identity_layout((2, 2))).splitlines()[2].split() == ["0", "(0,0)", "(0,1)"]


def test_latex(capsys):
    print_latex(parse("(2,2):(2,1)"))
    out = capsys.readouterr().out
    assert out.startswith("% (2,2):(2,1)") and out.count(r"\node[draw") == 4 and r"at (1,0) {2};" in out
    print_latex_tv(parse("(2,2):(2,1)"), (2, 2))
    assert r"{T0\\V1}" in capsys.readouterr().out


def test_notebooks(tmp_path):
    assert parse("(4,8):(8,1)")._repr_html_().startswith("<div><svg")
    assert parse("S<1,0,2> o 0 o (4,8):(8,1)")._repr_html_().startswith("<div><svg")
    assert Layout((sym_int(), 4))._repr_html_() == "<code>(?,4):(1,?)</code>"
    assert "<code>" in Layout((1024, 1024))._repr_html_()
    render_layout_svg(Layout((4, 8)), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == layout_svg(Layout((4, 8)))


def test_what_cannot_be_drawn():
    with pytest.raises(LayoutError, match="only static"):
        layout_svg(Layout((sym_int(), 4)))
    with pytest.raises(LayoutError, match="too large"):
        layout_svg(Layout((1024, 1024)))
    with pytest.raises(LayoutError, match="no elements"):
        layout_svg(Layout((0, 4)))
    with pytest.raises(LayoutError, match="outside the tile") as refused:
        tv_layout_svg(parse("(4,2):(2,1)"), (2, 2))
    assert "thread" in str(refused.value)
    with pytest.raises(LayoutError, match="no banks"):
        swizzle_svg(make_identity_layout((4, 4)))


def test_borders_stand_where_modes_end():
    lines = re.findall(r"<path d='([^']*)'/>", layout_svg(parse("((2,2),(3,2)):((1,12),(2,6))")))
    assert len([line for line in lines if "H" in line]) == 1  # four rows in two modes
    assert len([line for line in lines if "V" in line]) == 1
    assert "<path" not in layout_svg(parse("(4,6):(6,1)"))


def test_wide_panels_are_stacked():
    def width(picture):
        return int(re.search(r"width='(\d+)'", picture)[1])

    narrow = parse("S<1,0,2> o 0 o (4,8):(8,1)")
    wide = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    assert width(swizzle_svg(narrow)) == 2 * width(swizzle_svg(narrow.outer))
    assert width(swizzle_svg(wide)) == width(swizzle_svg(wide.outer))


def test_a_swizzle_without_effect_is_said_so():
    idle, busy = parse("S<2,3,3> o 0 o (2,16):(16,1)"), parse("S<2,3,3> o 0 o (8,16):(16,1)")
    assert all(idle(i) == idle.outer(i) for i in range(32)) and any(busy(i) != busy.outer(i) for i in range(128))
    for draw in (layout_svg, swizzle_svg):
        assert "the swizzle changes nothing here" in " ".join(re.findall(r">([^<]*)</text>", draw(idle)))
        assert "nothing" not in draw(busy)


def test_what_is_too_large_comes_with_a_hint():
    with pytest.raises(LayoutError, match="the layout is too large to draw") as refused:
        layout_svg(Layout((128, 65)))
    assert "draw a part of it" in refused.value.hint
    assert len(layout_svg(Layout((64, 128)))) < 2_000_000


def test_pictures_are_objects():
    picture = layout_svg(Layout((2, 2)))
    assert picture.startswith("<svg") and picture._repr_svg_() == picture
    assert re.fullmatch(r"<SVG picture, [\d,]+ characters>", repr(picture))


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_only_where_they_are_wanted(monkeypatch, capsys, variables, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_layout(Layout((2, 2)))
    assert ("\x1b[" in capsys.readouterr().out) is coloured
