from __future__ import annotations

from tests.tenstorrent.programs import before, gemm_module, kernels
from tilewright.tenstorrent import FinalizeArgs, calls


def test_one_table_numbers_the_arguments(applied):
    _, made = applied("finalize-args")
    for func in made.prim_funcs:
        table = [entry["name"] for entry in func.attrs["tt.runtime_args"]]
        found = {item.attrs["name"]: item.attrs["index"] for item in calls(func.body, "tt.runtime_arg")}
        assert found == {name: number for number, name in enumerate(table)}
        accessors = [str(item.args[0]) for item in calls(func.body, "tt.make_accessor")]
        assert accessors == list(func.attrs["tt.compile_time_args"])
        assert not [arg for item in calls(func.body, "tt.noc.read_tile", "tt.noc.write_tile") for arg in item.args[:1]
                    if not str(arg).startswith("acc_")]  # fmt: skip


def test_the_arguments_of_a_product():
    made = kernels(FinalizeArgs(before("finalize-args", gemm_module())))
    names = {role: [entry["name"] for entry in func.attrs["tt.runtime_args"]] for role, func in made.items()}
    assert names == {
        "reader": ["a", "b", "start_id", "count"], "compute": ["count"], "writer": ["c", "start_id", "count"],
    }  # fmt: skip
