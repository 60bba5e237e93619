from __future__ import annotations

import linecache

import pytest

import tilewright.cute as cute
import tilewright.tile as tile
from tests.tenstorrent.programs import before, gemm_module, kernels, zeros
from tilewright import PassError
from tilewright.tenstorrent import IRModule, PrimFunc, Split, analyze_loops, calls

ROLES = {"reader", "compute", "writer"}


def test_three_kernels_whose_buffers_have_one_producer_and_one_consumer(applied):
    given, made = applied("split")
    assert set(kernels(made)) == ROLES
    (func,) = given.prim_funcs
    assert sorted(made.functions) == sorted([*(name for name in given.functions if name != func.name),
                                             *(f"{func.name}_{role}" for role in ROLES)])  # fmt: skip
    reads, computes, writes = (kernels(made)[role].body for role in ("reader", "compute", "writer"))
    assert not calls(reads, "tt.pack", "tt.write_from_cb", "tt.consume")
    assert not calls(computes, "tt.read_to_cb", "tt.write_from_cb", "tt.fill", "tt.fill_scaler")
    assert {item.op.name for item in calls(writes) if item.op.name.startswith("tt.")} == {
        "tt.alloc_cb", "tt.runtime_arg", "tt.write_from_cb",
    }  # fmt: skip


def test_each_has_the_loops_that_it_needs():
    made = kernels(Split(before("split", gemm_module())))
    loops = {
        role: [item["kind"] for item in analyze_loops(func) if item["kind"] != "tiles"] for role, func in made.items()
    }
    assert loops == {"reader": ["work", "serial"], "compute": ["work", "serial"], "writer": ["work"]}


def test_host_functions_go_through():
    made = Split(before("split", gemm_module()))
    assert [name for name, item in made.functions.items() if not isinstance(item, PrimFunc)] == ["main"]


def test_roles_do_not_come_from_names():
    """Tensors called after other roles give the same kernels, but for the names."""

    def program(names):
        source = {"cute": cute, "tile": tile}
        text = (
            "@cute.kernel\ndef kernel({0}, {1}, {2}):\n"
            "    tile.store({2}, (0, 0), tile.dot(tile.load({0}, (0, 0), (32, 32)),"
            " tile.load({1}, (0, 0), (32, 32))).to({2}.element_type))\n\n"
            "@cute.jit\ndef main({0}, {1}, {2}):\n"
            "    kernel({0}, {1}, {2}).launch(grid=(1, 1, 1), block=(32, 1, 1))\n"
        ).format(*names)
        file = f"<renamed {'-'.join(names)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), source)
        arrays = [zeros(32, 32) for _ in range(3)]
        compiled = cute.compile(source["main"], *arrays, target="tenstorrent")
        return compiled.stages["cpp"]

    plain, renamed = program(("a", "b", "c")), program(("zeta", "output", "apple"))
    for role, text in renamed.items():
        for new, old in (("zeta", "a"), ("output", "b"), ("apple", "c")):
            text = text.replace(f"_{new}", f"_{old}").replace(f"{new}_addr", f"{old}_addr")
        assert text == plain[role]


def test_it_needs_the_assignment():
    with pytest.raises(PassError, match=r"main has no tt.cb_assignment"):
        Split(IRModule({"main": PrimFunc("main")}))
