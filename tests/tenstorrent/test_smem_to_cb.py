from __future__ import annotations

from tests.tenstorrent.programs import before, fused_module, gemm_module
from tilewright.tenstorrent import SmemToCb, calls, find_intrinsic_calls


def test_circular_buffers_stand_at_the_top_and_no_protocol_is_written(applied):
    given, made = applied("smem-to-cb")
    (func,), (earlier,) = made.prim_funcs, given.prim_funcs
    loads, stores = (len(calls(earlier.body, f"cute.tile_{kind}")) for kind in ("load", "store"))
    assert len(calls(func.body, "tt.read_to_cb")) == loads and len(calls(func.body, "tt.write_from_cb")) == stores
    assert not calls(func.body, "cute.tile_load", "cute.tile_store")
    names = [item.value.op.name for item in func.body.seq[: loads + stores]]
    assert names == ["tt.alloc_cb"] * (loads + stores)
    assert not [item for item in calls(func.body) if item.op.name.startswith(("tt.cb.", "tt.noc.", "tt.dst."))]


def test_coordinates_count_tiles_of_32():
    (func,) = SmemToCb(before("smem-to-cb", gemm_module(128))).prim_funcs
    a, b = (item.value for item in find_intrinsic_calls(func, "tt.read_to_cb"))
    assert (a.attrs["rows"], a.attrs["cols"]) == (2, 1) and (b.attrs["rows"], b.attrs["cols"]) == (1, 2)
    assert str(a.args[2]).endswith(", 2)") and str(a.args[3]) == "i3"


def test_a_row_is_a_tile_of_its_own():
    (func,) = SmemToCb(before("smem-to-cb", fused_module())).prim_funcs
    allocations = {item.attrs["name"]: item.attrs for item in calls(func.body, "tt.alloc_cb")}
    assert allocations["bias"]["tiles"] == 2 and allocations["bias"]["kind"] == "input"
    assert allocations["c"]["kind"] == "output" and allocations["c"]["format"] == "bf16"
