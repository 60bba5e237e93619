from __future__ import annotations

import itertools

import pytest

import tilewright.cute as cute
import tilewright.tile as tile
from tests.tenstorrent.programs import before, gemm_module, launched, zeros
from tilewright import PassError
from tilewright.targets.tenstorrent.simulator.program import expression
from tilewright.tenstorrent import For, GridToCore, PrimFunc, SeqStmt, T, analyze_loops, calls, ir_module, trace


def test_a_loop_over_the_blocks_of_a_core(applied):
    _, made = applied("grid-to-core")
    (func,) = made.prim_funcs
    first, *_ = analyze_loops(func)
    assert (first["extent"], first["depth"], first["kind"]) == ("count", 0, "work")
    assert not calls(func.body, "cute.index")
    assert [item.attrs["name"] for item in calls(func.body, "tt.runtime_arg")] == ["start_id", "count"]


@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 1, 1), (1, 4, 1), (3, 2, 1), (2, 3, 4), (1, 1, 6)])
def test_coordinates_of_all_blocks(grid):
    @ir_module
    class Module:
        @T.prim_func
        def main():
            for axis in "xyz":
                T.evaluate(T.call("keep", T.let(T.call("cute.index", name=f"block_idx.{axis}", dtype="i32"))))

    func = Module["main"].with_attr("tt.work_partition", {"grid": grid, "cores": []})
    made = GridToCore(func, None, None)
    (loop,) = [item for item in made.body.seq if isinstance(item, For)]
    own, *uses = loop.body.seq
    texts = [expression(use.value.args[0]) for use in uses]
    found = [
        tuple(eval(text, {own.var.name: eval(expression(own.value), {"start_id": 0, "work": block})}) for text in texts)
        for block in range(grid[0] * grid[1] * grid[2])
    ]
    assert found == [(x, y, z) for z, y, x in itertools.product(*(range(extent) for extent in reversed(grid)))]


def test_threads_are_refused():
    def body(a):
        thread, _, _ = cute.arch.thread_idx()
        tile.store(a, (thread, 0), tile.zeros((32, 32), a.element_type))

    a = zeros(32, 32)
    with pytest.raises(PassError, match=r"does not take thread_idx.x: a core has no threads") as caught:
        GridToCore(before("grid-to-core", trace(launched(body, a), a)))
    assert caught.value.location.file == __file__


def test_it_needs_the_partition():
    with pytest.raises(PassError, match=r"f has no tt.work_partition"):
        GridToCore(PrimFunc("f", body=SeqStmt()), None, None)
    assert GridToCore(before("grid-to-core", gemm_module()))
