"""The examples about MLIR passes of the tutorial that `docs/custom-passes.md` follows, as it has them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, EmulationError, LaunchError, PassError, PassManager
from tilewright.cutlass_dsl import CutlassDSL
from tilewright.ir import mlir
from tilewright.passes.pipeline import REGISTRY


@pytest.fixture
def custom():
    """The pass `my-custom-pass`, which keeps what it was called with."""
    seen = []

    @cutlass.register_pass
    class MyCustomPass(cutlass.Pass):
        name = "my-custom-pass"
        options = {"option1": "", "name": ""}  # noqa: RUF012

        def run(self, module):
            seen.append(self["option1"])

    yield seen
    del REGISTRY["my-custom-pass"]


class CustomDSL(CutlassDSL):
    def _get_pipeline(self, pipeline):
        if pipeline is None:
            return (
                "builtin.module("
                "my-custom-pass{option1=value1},"
                "cute-to-nvvm{cubin-format=bin "
                + self.compile_options.to_str()
                + "})"
            )  # fmt: skip
        return super()._get_pipeline(pipeline)


class DefaultDSL(CutlassDSL):
    def _get_pipeline(self, pipeline):
        if pipeline == None:  # noqa: E711
            return "builtin.module(cute-to-nvvm{cubin-format=bin " + self.compile_options.to_str() + "})"
        return pipeline


def function_of(dsl):
    @dsl.kernel
    def kernel(x: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        if i < cute.size(x):
            x[i] = x[i] + 1.0

    @dsl.jit
    def function(x: cute.Tensor):
        kernel(x).launch(grid=1, block=64)

    return function


@pytest.mark.parametrize("direct", [True, False])
def test_a_subclass_puts_a_pass_before_cute_to_nvvm(custom, direct):
    function = function_of(CustomDSL())
    x = np.zeros(40, np.float32)
    if direct:
        function(x)
    else:
        compiled = cute.compile(function, x)
        compiled(x)
        listed = compiled.pipeline
        assert listed.index("my-custom-pass{option1=value1}") < listed.index("cute-to-nvvm{")
        assert "cubin-format=bin" in listed and "opt-level=3" in listed
    assert custom == ["value1"] and (x == 1).all()


def test_the_default_pipeline_as_text():
    dsl = DefaultDSL(opt_level=1)
    assert dsl.compile_options.to_str() == "opt-level=1"
    x = np.zeros(40, np.float32)
    compiled = cute.compile(function_of(dsl), x)
    standard = cute.compile(function_of(CutlassDSL(opt_level=1)), x)
    assert compiled.stages["ptx"] == standard.stages["ptx"] and "opt-level=1" in compiled.pipeline
    assert dsl._get_pipeline("builtin.module(canonicalize)") == "builtin.module(canonicalize)"
    assert CustomDSL()._get_pipeline("builtin.module(canonicalize)") == "builtin.module(canonicalize)"


def test_a_constructor_option_of_a_subclass(custom):
    class CommunicationOptimizedDSL(CutlassDSL):
        def __init__(self, comm_type="allreduce", **kwargs):
            super().__init__(**kwargs)
            self.comm_type = comm_type

        def _get_pipeline(self, pipeline):
            if pipeline is None:
                return (
                    "builtin.module("
                    f"my-custom-pass{{option1={self.comm_type}}},"
                    "cute-to-nvvm{cubin-format=bin "
                    + self.compile_options.to_str()
                    + "})"
                )  # fmt: skip
            return super()._get_pipeline(pipeline)

    for comm_type in ("allreduce", "broadcast"):
        function_of(CommunicationOptimizedDSL(comm_type=comm_type))(np.zeros(8, np.float32))
    assert custom == ["allreduce", "broadcast"]


def test_a_pass_manager_builds_a_pipeline(custom):
    manager = PassManager()
    manager.add_pass("my-custom-pass", {"option1": "fast", "name": "an option may have this name"})
    text = manager.build_pipeline("builtin.module(cute-to-nvvm{cubin-format=bin})")
    assert text == (
        'builtin.module(my-custom-pass{option1=fast name="an option may have this name"},'
        "cute-to-nvvm{cubin-format=bin})"
    )
    x = np.zeros(40, np.float32)
    cute.compile(function_of(CutlassDSL()), x, pipeline=text)(x)
    assert custom == ["fast"] and (x == 1).all()
    assert PassManager().build_pipeline("builtin.module(canonicalize)") == "builtin.module(canonicalize)"


def test_a_pass_that_nobody_ran(custom):
    class Needs(cutlass.Pass):
        name = "X"
        requires = ("Y",)

    with pytest.raises(PassError, match=r"^Error: Pass X requires Y but Y was not run\n"):
        cute.compile(function_of(CutlassDSL()), np.zeros(8, np.float32), passes=Needs)


def test_an_operation_that_nobody_registered():
    class Makes(cutlass.Pass):
        name = "makes"

        def run(self, module):
            with mlir.ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), mlir.ir.Location.unknown():
                mlir.ir.Operation.create("custom.my_op")

    with pytest.raises(PassError, match=r"^Error: unknown operation 'custom\.my_op'\n") as caught:
        cute.compile(function_of(CutlassDSL()), np.zeros(8, np.float32), passes=Makes)
    assert "tilewright.register_op" in caught.value.hint


@cute.kernel
def reads_early(x: cute.Tensor):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64))
    i = cute.arch.thread_idx()[0]
    shared[i] = x[i]
    x[i] = shared[63 - i]  # without a barrier


@cute.jit
def race(x: cute.Tensor):
    reads_early(x).launch(grid=1, block=64)


def test_a_race():
    with pytest.raises(EmulationError, match=r"^Error: Race condition in shared memory access\n") as caught:
        race(np.zeros(64, np.float32))
    assert caught.value.location.line == reads_early.function.__code__.co_firstlineno + 5


def test_ir_printing(capfd):
    compile_options = cute.CompileOptions("--enable-ir-printing")
    cute.compile(function_of(CutlassDSL()), np.zeros(8, np.float32), options=compile_options)
    printed = capfd.readouterr().err
    for stage in ("python", "cute", "nvvm", "llvm", "ptx"):
        assert f"// ---- {stage} of" in printed


@cute.kernel
def writes_beyond(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = 1.0


@cute.jit
def beyond(x: cute.Tensor):
    writes_beyond(x).launch(grid=1, block=64)


def test_device_assertions():
    """The accesses to tensors are checked too, which the emulator does by itself and a GPU does not."""
    compile_options = cute.CompileOptions("--enable-device-assertions")
    x = np.zeros(40, np.float32)
    checked = cute.compile(beyond, x, options=compile_options)
    assert "__assertfail" in checked.stages["ptx"] and "enable-assertions=true" in checked.pipeline
    assert "__assertfail" not in cute.compile(beyond, x).stages["ptx"]
    with pytest.raises((EmulationError, LaunchError), match=r"assertion failed|Device assertion"):
        checked(x)
    with pytest.raises(CompileError, match="unknown compile option '--enable-everything'"):
        cute.CompileOptions("--enable-everything")
