from __future__ import annotations

from tests.tenstorrent.programs import before, fused_module, gemm_module, kernels, softmax_module
from tilewright.tenstorrent import ComputeInit, For, calls, walk

INITS = ("tt.mm.init", "tt.fpu.init", "tt.reduce.init", "tt.copy.init", "tt.bcast.init", "tt.sfpu.init")


def compute(module):
    return kernels(ComputeInit(before("compute-init", module)))["compute"]


def test_the_engines_start_once_and_first(applied):
    given, made = applied("compute-init")
    func = kernels(made)["compute"]
    found = [item.op.name for item in calls(func.body) if item.op.name.startswith("tt.")]
    engine = [name for name in found if name not in ("tt.alloc_cb", "tt.runtime_arg")]
    assert engine[0] == "tt.engine.startup" and engine.count("tt.engine.startup") == 1
    assert kernels(given)["reader"] is kernels(made)["reader"]


def test_one_configuration_stands_outside_of_the_loops():
    func = compute(gemm_module())
    assert len(calls(func.body, *INITS)) == 1
    loops = [item for item in walk(func.body) if isinstance(item, For)]
    assert not [item for loop in loops for item in calls(loop, *INITS)]
    (startup,) = calls(func.body, "tt.engine.startup")
    assert startup.attrs["order"] == "reverse"


def test_several_configurations_stand_before_their_operations():
    func = compute(softmax_module())
    found = [item.op.name for item in calls(func.body, *INITS, "tt.reduce", "tt.fpu.sub", "tt.fpu.mul", "tt.copy",
                                            "tt.reduce.uninit", "tt.sfpu.unary")]  # fmt: skip
    assert found == [
        "tt.reduce.init", "tt.reduce", "tt.reduce.uninit", "tt.fpu.init", "tt.sfpu.init", "tt.fpu.sub", "tt.sfpu.unary",
        "tt.reduce.init", "tt.reduce", "tt.reduce.uninit", "tt.copy.init", "tt.copy", "tt.sfpu.init", "tt.sfpu.unary",
        "tt.fpu.init", "tt.fpu.mul",
    ]  # fmt: skip


def test_formats_and_the_packers_relu():
    func = compute(fused_module())
    assert len(calls(func.body, "tt.reconfig")) == 2
    assert {str(item.args[0]) for item in calls(func.body, "tt.pack.reconfig")} == {"cb_mid", "cb_c"}
    assert [item.attrs["on"] for item in calls(func.body, "tt.pack.relu")] == [True, False]
