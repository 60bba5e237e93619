from __future__ import annotations

import pytest

from tests.tenstorrent.programs import before, context, gemm_module, kernels
from tilewright import PassError
from tilewright.tenstorrent import For, InsertDst, IntImm, PrimFunc, SeqStmt, Var, calls, evaluate

LIFE = ["tt.dst.acquire", "tt.dst.commit", "tt.dst.wait", "tt.pack", "tt.dst.release"]


def collapsed(found):
    """Names without repetitions."""
    return [name for place, name in enumerate(found) if place == 0 or found[place - 1] != name]


def test_the_order_on_every_path(applied):
    _, made = applied("insert-dst")
    func = kernels(made)["compute"]
    found = collapsed([item.op.name for item in calls(func.body, *LIFE)])
    assert found == LIFE * (len(found) // len(LIFE)) and found
    packs, pushes = calls(func.body, "tt.pack"), calls(func.body, "tt.cb.push_back")
    assert {item.args[1] for item in packs} == {item.args[0] for item in pushes}
    assert func.attrs["tt.dst"] == {"mode": "fp32", "capacity": 4}


def test_before_and_after_of_the_documentation():
    a, b, c = (Var(name, "!tt.cb") for name in ("cb_a", "cb_b", "cb_c"))
    loop = For(Var("k"), IntImm(8), SeqStmt((
        evaluate("tt.cb.wait_front", a, 1), evaluate("tt.mm.mma", a, b, 0, 0, 0), evaluate("tt.cb.pop_front", a, 1),
    )))  # fmt: skip
    func = PrimFunc("f", body=SeqStmt((loop, evaluate("tt.pack", 0, c)))).with_attr("tt.kernel_role", "compute")
    assert InsertDst(func, None, None).body.lines() == [
        "tt.dst.acquire()",
        "for k in range(8):",
        "    tt.cb.wait_front(cb_a, 1)",
        "    tt.mm.mma(cb_a, cb_b, 0, 0, 0)",
        "    tt.cb.pop_front(cb_a, 1)",
        "tt.dst.commit()",
        "tt.cb.reserve_back(cb_c, 1)",
        "tt.dst.wait()",
        "tt.pack(0, cb_c)",
        "tt.dst.release()",
        "tt.cb.push_back(cb_c, 1)",
    ]
    assert func.body.lines()[0].startswith("for k")


def test_a_tile_that_is_never_packed():
    a = Var("cb_a", "!tt.cb")
    func = PrimFunc("f", body=SeqStmt((evaluate("tt.copy", a, 0, 0),))).with_attr("tt.kernel_role", "compute")
    with pytest.raises(PassError, match=r"f computes a tile that no tt.pack takes out of DST"):
        InsertDst(func, None, None)


def test_dst_at_its_capacity_and_above():
    """64 x 64 are 4 tiles, 64 x 128 are 8: as many as bf16 has, twice what fp32 has."""
    for options, size in (({"dst": "fp32"}, (64, 64)), ({"dst": "bf16"}, (64, 128))):
        ctx = context(**options)
        InsertDst.run_module(before("insert-dst", gemm_module(128, m=size[0], n=size[1]), ctx), ctx)
    for options, size in (({"dst": "fp32"}, (64, 96)), ({"dst": "bf16"}, (96, 96))):
        ctx = context(**options)
        with pytest.raises(PassError, match=r"kernel keeps \d+ or more tiles in DST, which holds") as caught:
            InsertDst.run_module(before("insert-dst", gemm_module(192, m=size[0], n=size[1]), ctx), ctx)
        assert "tile.dot" in caught.value.location.source()


def test_other_roles_stay_as_they_are():
    given = before("insert-dst", gemm_module())
    made = InsertDst(given)
    for role in ("reader", "writer"):
        assert kernels(made)[role] is kernels(given)[role]
