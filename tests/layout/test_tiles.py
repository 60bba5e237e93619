"""One tile, one thread's share, thread-value layouts."""

from itertools import product as grid

import pytest

from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    composition,
    domain_offset,
    inner_partition,
    local_partition,
    local_partition_and_offset,
    local_tile,
    local_tile_and_offset,
    make_layout_tv,
    outer_partition,
    parse,
    size,
    tile_to_mma_shape,
    zipped_divide,
)


def test_local_tile():
    a = parse("(64,96):(96,1)")
    for i, j in grid(range(4), range(3)):
        tile, offset = local_tile_and_offset(a, (16, 32), (i, j))
        assert tile == local_tile(a, (16, 32), (i, j)) == parse("(16,32):(96,1)")
        assert offset == a(16 * i, 32 * j)
    assert str(local_tile(a, (16, 32), (None, 2))) == "(16,32,4):(96,1,1536)"
    assert str(local_tile(a, (16, 32), (None, None))) == "(16,32,4,3):(96,1,1536,32)"
    assert str(local_tile(a, (16,), (1,))) == "(16,96):(96,1)"
    assert str(local_tile(a, (16, 32), 5)) == "(16,32):(96,1)"
    with pytest.raises(LayoutError, match="too many modes"):
        local_tile(a, (16, 32), (1, 2, 3))


def test_projections_pick_modes_of_tiler_and_coordinate():
    tiler, coord = (128, 64, 32), (3, 1, None)
    a, b, c = parse("(256,128):(128,1)"), parse("(256,128):(128,1)"), parse("(512,256):(256,1)")
    assert str(local_tile(a, tiler, coord, (1, None, 1))) == "(128,32,4):(128,1,32)"
    assert local_tile_and_offset(b, tiler, coord, (None, 1, 1)) == (parse("(64,32,4):(128,1,32)"), 64 * 128)
    assert local_tile_and_offset(c, tiler, coord, (1, 1, None)) == (parse("(128,64):(256,1)"), 3 * 128 * 256 + 64)


@pytest.mark.parametrize("threads", ["(8,4):(4,1)", "(8,4):(1,8)", "((2,4),4):((1,8),2)"])
def test_threads_share_a_tile(threads):
    tile, grid_ = parse("(32,16):(16,1)"), parse(threads)
    owned = []
    for t in range(32):
        part, offset = local_partition_and_offset(tile, grid_, t)
        assert part == local_partition(tile, grid_, t) and size(part) == 16
        mine = [offset + part(k) for k in range(16)]
        m, n = next((m, n) for m, n in grid(range(8), range(4)) if grid_(m, n) == t)
        assert sorted(mine) == sorted(tile(m + 8 * i, n + 4 * j) for i in range(4) for j in range(4))
        owned += mine
    assert sorted(owned) == list(range(512))


def test_inner_and_outer_partition():
    a = parse("(8,6):(6,1)")
    assert str(inner_partition(a, (4, 2), (1, 2))) == "(4,2):(6,1)"
    assert str(outer_partition(a, (4, 2), (1, 1))) == "(2,3):(24,2)"
    assert str(outer_partition(a, (4, 2), (1,))) == "(2,2,3):(1,24,2)"


def test_swizzled_tiles_stay_swizzled():
    s = parse("S<2,1,3> o 0 o (16,16):(16,1)")
    for i, j in grid(range(4), range(2)):
        tile = local_tile(s, (4, 8), (i, j))
        assert all(tile(m, n) == s(4 * i + m, 8 * j + n) for m, n in grid(range(4), range(8)))
    assert domain_offset((4, 8), s)[0](1, 2) == s(5, 10)
    assert domain_offset((4, 8), parse("(16,16):(16,1)")) == (parse("(16,16):(16,1)"), 72)


@pytest.mark.parametrize(
    ("threads", "values", "tiler", "text"),
    [
        ("(32):(1)", "(1):(1)", (32,), "(32,1):(1,0)"),
        ("(4,32):(32,1)", "(4,4):(4,1)", (16, 128), None),
        ("(8,16):(16,1)", "(1,4):(4,1)", (8, 64), None),
        ("(32,4):(1,32)", "(4,1):(1,1)", (128, 4), None),
        ("((2,2),8):((1,32),4)", "(2,4):(1,2)", None, None),
    ],
)
def test_thread_value_layouts(threads, values, tiler, text):
    thr, val = parse(threads), parse(values)
    try:
        got_tiler, tv = make_layout_tv(thr, val)
    except LayoutError:
        assert tiler is None
        return
    if text is not None:
        assert str(tv) == text
    if tiler is None:
        return
    assert got_tiler == tiler
    tile = Layout(tiler)
    seen = set()
    for coord in grid(*(range(n) for n in thr.shape)):
        for v in grid(*(range(n) for n in val.shape)):
            place = tuple(c * n + w for c, n, w in zip(coord, val.shape, v, strict=True))
            assert tv(thr(coord), val(v)) == tile(place)
            seen.add(tile(place))
    assert seen == set(range(size(tile)))


def test_thread_value_layout_of_a_tile_reaches_each_element_once():
    tiler, tv = make_layout_tv(parse("(4,8):(8,1)"), parse("(2,4):(4,1)"))
    a = zipped_divide(parse("(32,96):(96,1)"), tiler)
    tile = composition(a[0], tv)
    assert sorted(tile(t, v) for t in range(32) for v in range(8)) == sorted(a[0](k) for k in range(256))


def test_tile_to_mma_shape():
    atom = parse("S<3,4,3> o 0 o (8,64):(64,1)")
    r = tile_to_mma_shape(atom, ((128, 16), 1, 4, 3), (0, 1, 2))
    assert str(r) == "S<3,4,3> o 0 o ((128,16),1,4,(1,3)):((64,1),0,16,(0,8192))"
    with pytest.raises(LayoutError, match="MMA tile shape"):
        tile_to_mma_shape(atom, (128, 16))
