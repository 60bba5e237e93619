"""The pictures of docs/layouts.md, by file name. `python -m tests.layout.pictures` writes them again."""

from pathlib import Path

from tilewright.layout import layout_svg, make_layout_tv, parse, swizzle_svg, tv_layout_svg

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"


def pictures():
    tiler, tv = make_layout_tv(parse("(4,8):(8,1)"), parse("(2,2):(2,1)"))
    return {
        "layout_rows.svg": layout_svg(parse("(4,8):(8,1)")),
        "layout_blocked.svg": layout_svg(parse("(4,(4,2)):(4,(1,16))")),
        "layout_tv.svg": tv_layout_svg(tv, tiler),
        "layout_swizzle.svg": swizzle_svg(parse("S<3,0,3> o 0 o (8,8):(8,1)"), 128),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")
