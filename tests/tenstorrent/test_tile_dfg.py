from __future__ import annotations

import pytest

import tilewright.tile as tile
from tests.tenstorrent.programs import before, gemm_module, launched, run, zeros
from tilewright import PassError
from tilewright.tenstorrent import TileDfg, calls, trace, validate_cb_ids


def test_ids_roles_and_sizes(applied):
    _, made = applied("tile-dfg")
    (func,) = made.prim_funcs
    entries = func.attrs["tt.cb_assignment"]
    ids = [entry["id"] for entry in entries]
    assert len(set(ids)) == len(ids) and max(ids) < 32
    assert all((entry["id"] < 16) == (entry["producer"] == "reader") for entry in entries)
    assert all(entry["pages"] * entry["page_size"] > 0 for entry in entries)
    assert {item.attrs["id"] for item in calls(func.body, "tt.alloc_cb")} == set(ids)
    nodes, edges = func.attrs["tt.tile_dfg"]["nodes"], func.attrs["tt.tile_dfg"]["edges"]
    assert {name for edge in edges for name in edge} == set(nodes) and {"reader", "compute", "writer"} <= set(nodes)


def test_the_flow_of_a_product():
    (func,) = TileDfg(before("tile-dfg", gemm_module())).prim_funcs
    edges = {tuple(edge) for edge in func.attrs["tt.tile_dfg"]["edges"]}
    assert edges == {
        ("a", "cb_a"), ("b", "cb_b"), ("reader", "cb_a"), ("reader", "cb_b"), ("cb_a", "compute"), ("cb_b", "compute"),
        ("compute", "cb_c"), ("cb_c", "writer"), ("cb_c", "c"),
    }  # fmt: skip
    assert [entry["pages"] for entry in func.attrs["tt.cb_assignment"]] == [4, 4, 8]


def many(count):
    """A sum of as many loads, each of which has a circular buffer of its own."""

    def body(x, y):
        total = tile.load(x, (0, 0), (32, 32))
        for number in range(1, count):
            total = total + tile.load(x, (number, 0), (32, 32))
        tile.store(y, (0, 0), total)

    return body


def assigned(body, *arrays):
    return TileDfg(before("tile-dfg", trace(launched(body, *arrays), *arrays)))


def test_sixteen_circular_buffers_of_the_reader():
    x, y = zeros(32 * 17, 32), zeros(32, 32)
    (func,) = assigned(many(15), x, y).prim_funcs
    assert validate_cb_ids(func)
    with pytest.raises(PassError, match="CB IDs exceed limit: 17 circular buffers of the reader, there are 16"):
        assigned(many(17), x, y)


def wide(tiles):
    def body(x, y):
        tile.store(y, (0, 0), tile.load(x, (0, 0), (32, 32 * tiles)))

    return body


LIMIT = 1464 * 1024 - 101 * 1024


def test_l1_at_the_limit_and_one_page_above():
    """Two buffers of two blocks: 4 pages of 2048 bytes for each tile of a block."""
    most = LIMIT // (4 * 2048)
    x, y = zeros(32, 32 * most), zeros(32, 32 * most)
    run(wide(most), x, y)
    x, y = zeros(32, 32 * (most + 1)), zeros(32, 32 * (most + 1))
    with pytest.raises(PassError, match=f"take {(most + 1) * 4 * 2048} bytes of L1, there are {LIMIT}") as caught:
        assigned(wide(most + 1), x, y)
    assert caught.value.location.file == __file__ and "use smaller tiles" in str(caught.value)
