"""`cutlass.base_dsl.compiler.Compiler` and `walk_module_and_get_cubin_data`, as public documents describe them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, PassError
from tilewright.compat.compiler import Compiler
from tilewright.compat.jit_executor import walk_module_and_get_cubin_data
from tilewright.ir import mlir
from tilewright.passes import pipeline

SEED = (
    "builtin.module(cute-to-nvvm{cubin-format=bin opt-level=3 enable-cuda-dialect=true "
    "cuda-dialect-external-module=true})"
)


@cute.kernel
def reverse_kernel(x: cute.Tensor):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(32))
    t = cute.arch.thread_idx()[0]
    shared[t] = x[t]
    cute.arch.sync_threads()
    x[t] = shared[31 - t]


@cute.jit
def reverse(x: cute.Tensor):
    reverse_kernel(x).launch(grid=1, block=32)


@pytest.fixture(scope="module")
def compiled():
    return cute.compile(reverse, np.zeros(32, np.float32), options="--gpu-arch sm_80")


def kernel_of(text):
    return re.search(r"gpu\.module @reverse_kernel.*", text, re.DOTALL)[0]


def test_a_text_goes_through_the_pass_list(compiled):
    made = Compiler().compile(compiled._module, SEED, arch="sm_80")
    assert kernel_of(made) == kernel_of(compiled.stages["nvvm"])
    assert "cute." not in made and "func.func" not in made


def test_a_list_without_the_lowering_is_run_as_it_is(compiled):
    made = Compiler().compile(compiled._module, "builtin.module(place-shared-memory)", enable_verifier=False)
    assert "cute.sync_threads" in made and "gpu.launch_func" in made


def test_a_module_of_the_users_own_context():
    text = (
        "func.func @f(%a: i32) -> i32 {\n%c = arith.constant 1 : i32\n%d = arith.addi %c, %c : i32\nreturn %d : i32\n}"
    )
    with mlir.ir.Context(), mlir.ir.Location.unknown():
        module = mlir.ir.Module.parse(text)
        assert Compiler().compile(module, "builtin.module(canonicalize)") is module
        assert "arith.constant 2" in str(module) and "arith.addi" not in str(module)
        with pytest.raises(PassError, match="no compilation under way") as error:
            Compiler().compile(module, SEED)
        assert "str(module)" in error.value.hint
        with pytest.raises(PassError, match="a pass failed"):
            Compiler().compile(module, "builtin.module(no-such-pass)")


def test_refusals(compiled):
    text = SEED.replace("opt-level=3", "cubin-chip=sm_90")
    with pytest.raises(CompileError, match="name two chips"):
        Compiler().compile(compiled._module, text, arch="sm_80")
    with pytest.raises(CompileError, match="the text given for stage cute does not parse"):
        Compiler().compile("module {", SEED)
    with pytest.raises(PassError, match=r"^Error: unknown operation 'custom\.my_op'"):
        Compiler().compile('module {\n  "custom.my_op"() : () -> ()\n}', SEED)


def test_the_verifier_can_be_left_out(compiled, monkeypatch):
    monkeypatch.setattr(pipeline, "REGISTRY", dict(pipeline.REGISTRY))

    @cutlass.register_pass
    class Breaks(cutlass.Pass):
        """Leave an addition without operands."""

        name = "breaks-for-the-test"

        def run(self, module):
            with mlir.ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), mlir.ir.Location.unknown():
                mlir.ir.Operation.create("arith.addi", results=[mlir.ir.IntegerType.get_signless(32)])

    text = "builtin.module(breaks-for-the-test)"
    with pytest.raises(PassError, match="left a module that is not valid"):
        Compiler().compile(compiled._module, text)
    assert "arith.addi" in Compiler().compile(compiled._module, text, enable_verifier=False)


def test_cubins(compiled):
    (cubin,) = walk_module_and_get_cubin_data(compiled)
    assert cubin == compiled.stages["cubin"] and cubin[:4] == b"\x7fELF"
    with mlir.ir.Context(), mlir.ir.Location.unknown():
        held = 'gpu.binary @k [#gpu.object<#nvvm.target<chip = "sm_90">, bin = "\\7FELF\\00x">]'
        module = mlir.ir.Module.parse(held)
        assert walk_module_and_get_cubin_data(module) == [b"\x7fELF\0x"]
        with pytest.raises(CompileError, match=r"no gpu\.binary"):
            walk_module_and_get_cubin_data(mlir.ir.Module.parse("module {}"))
    with pytest.raises(CompileError, match=r"no gpu\.binary"):
        walk_module_and_get_cubin_data(compiled._module)
