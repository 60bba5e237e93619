"""Direct calls and `cute.compile` compile the same: pass lists, options, chip, toolkit, DSL objects."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, CutlassDSL, PassError, PassManager
from tilewright.base import settings
from tilewright.compiler import build, hooks
from tilewright.compiler.memory_cache import MemoryCache
from tilewright.ir import mlir
from tilewright.ir.walk import operations
from tilewright.passes.pipeline import REGISTRY, UpstreamPass


@cutlass.register_pass
class AddToMul(cutlass.Pass):
    """Turns every sum of floats into a product."""

    name = "test-add-to-mul"
    options: ClassVar = {"on": True}

    def run(self, module):
        for op in [op for op in operations(module) if self["on"] and op.name == "arith.addf"]:
            with mlir.ir.InsertionPoint(op), op.location:
                given = {"fastmath": op.attributes["fastmath"]}
                new = mlir.ir.Operation.create(
                    "arith.mulf", results=[op.results[0].type], operands=list(op.operands), attributes=given
                )
            op.results[0].replace_all_uses_with(new.results[0])
            op.erase()


class Listed(CutlassDSL):
    """A DSL object with a pass list of its own, as text or as an object."""

    def __init__(self, listed, **options):
        super().__init__(**options)
        self.listed = listed

    def _get_pipeline(self, pipeline):
        return self.listed if pipeline is None else pipeline


@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = x[0] + x[1]


def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)


def numbers():
    return np.array([3, 4, 0, 0], np.float32)


def run(function):
    x = numbers()
    function(x)
    return x[0]


def both(function):
    """What a direct call compiles, and what `cute.compile` does."""
    made = []
    x = numbers()
    with hooks.after_compile(made.append):
        function(x, no_cache=True)
    return made[0], cute.compile(function, numbers())


AFTER = "builtin.module(cute-to-nvvm,test-add-to-mul)"
BEFORE = "builtin.module(test-add-to-mul,cute-to-nvvm)"
ON_SM_80 = "builtin.module(cute-to-nvvm{cubin-chip=sm_80})"
OFF = "builtin.module(cute-to-nvvm,test-add-to-mul{on=false})"


@pytest.mark.parametrize("order", list(itertools.permutations((None, AFTER, BEFORE, OFF), 2)))
def test_each_function_keeps_its_pass_list_whichever_ran_first(order):
    wanted = {None: 7, AFTER: 12, BEFORE: 12, OFF: 7}
    functions = [cute.jit(host) if text is None else Listed(text).jit(host) for text in order]
    for text, function in (*zip(order, functions, strict=True), (order[0], functions[0])):
        assert run(function) == wanted[text]
        x = numbers()
        cute.compile(function, x)(x)
        assert x[0] == wanted[text]


@pytest.mark.parametrize(
    ("listed", "options"),
    [
        ("builtin.module(cute-to-nvvm{cubin-chip=sm_80 opt-level=1})", {}),
        ("builtin.module(cute-to-nvvm{preserve-line-info=true enable-assertions=true})", {}),
        ("builtin.module(cute-to-nvvm{--opt-level 0 --gpu-arch sm_86})", {}),
        (PassManager.parse("builtin.module(canonicalize,cute-to-nvvm{cubin-chip=sm_80})"), {}),
        (None, {"opt_level": 1, "gpu_arch": "sm_89"}),
        ("builtin.module(cute-to-nvvm{opt-level=2})", {"opt_level": 0, "enable_assertions": True}),
    ],
)
def test_options_of_a_dsl_object(listed, options):
    dsl = CutlassDSL(**options) if listed is None else Listed(listed, **options)
    direct, compiled = both(dsl.jit(host))
    assert (direct.arch, direct.job.options, direct.pipeline) == (
        compiled.arch,
        compiled.job.options,
        compiled.pipeline,
    )
    assert direct.stages["ptx"] == compiled.stages["ptx"]


def test_the_pass_list_goes_before_the_options_that_an_object_was_made_with():
    dsl = Listed("builtin.module(cute-to-nvvm{opt-level=2})", opt_level=0, enable_assertions=True)
    direct, _ = both(dsl.jit(host))
    assert (direct.job.options.opt_level, direct.job.options.enable_assertions) == (2, True)
    compiled = cute.compile[cute.OptLevel(1)](dsl.jit(host), numbers())
    assert compiled.job.options.opt_level == 1


def test_options_that_no_compilation_has_are_named_when_the_object_is_made():
    with pytest.warns(UserWarning, match="CutlassBaseDSL ignores name=.*it takes compile options"):
        CutlassDSL(name="mine")


def test_changed_settings_compile_again(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "_cache", MemoryCache(limit=16))
    made = []
    function = cute.jit(host)
    scopes = [{}, {"arch": "sm_80"}, {"lineinfo": True}, {"assertions": True}, {"toolkit": str(tmp_path)}]
    with hooks.after_compile(made.append):
        for scope in (*scopes, *scopes):
            with settings.scope(**scope):
                assert run(function) == 7
    assert len(made) == len(scopes)
    assert [item.job.toolkit for item in made] == ["", "", "", "", str(tmp_path)]


def test_a_toolkit_holds_for_stages_that_are_asked_for_later(tmp_path):
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'ptxas fatal : the toolkit of the test'; exit 7\n")
    tool.chmod(0o755)
    with settings.scope(toolkit=str(tmp_path)):
        made = cute.compile(cute.jit(host), numbers(), target="emu")
    with pytest.raises(CompileError) as caught:
        made.stages["cubin"]
    assert "the toolkit of the test" in caught.value.nvvm_error
    made = cute.compile(
        cute.jit(host), numbers(), target="emu", pipeline=f"builtin.module(cute-to-nvvm{{toolkitPath={tmp_path}}})"
    )
    with pytest.raises(CompileError) as caught:
        made.stages["cubin"]
    assert "the toolkit of the test" in caught.value.nvvm_error


def test_a_pass_defined_anew_under_its_name(monkeypatch):
    function = Listed(AFTER).jit(host)
    assert run(function) == 12

    class Nothing(cutlass.Pass):
        name = "test-add-to-mul"

        def run(self, module):
            pass

    monkeypatch.setitem(REGISTRY, "test-add-to-mul", Nothing)
    assert run(function) == 7
    monkeypatch.setattr(Nothing, "run", lambda self, module: AddToMul().run(module))
    assert run(function) == 12


def test_a_pass_object_with_another_state():
    class Sometimes(cutlass.Pass):
        name = "test-sometimes"

        def __init__(self):
            super().__init__()
            self.state = ["off"]

        def run(self, module):
            AddToMul(on=self.state == ["on"]).run(module)

    item = Sometimes()
    function = Listed(PassManager([item])).jit(host)
    assert run(function) == 7
    item.state = ["on"]
    assert run(function) == 12
    item.state = ["off"]
    assert run(function) == 7


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"arch": "sm_80", "options": cute.GPUArch("sm_90")}, "arch and the options"),
        (
            {"pipeline": "builtin.module(cute-to-nvvm{cubin-chip=sm_80})", "options": "--gpu-arch sm_90"},
            "the pass list",
        ),
        ({"pipeline": "builtin.module(cute-to-nvvm{cubin-chip=sm_80})", "arch": "sm_90"}, "arch and the pass list"),
    ],
)
def test_two_chips(given, values):
    with pytest.raises(CompileError, match="name two chips") as caught:
        cute.compile(cute.jit(host), numbers(), **given)
    error = caught.value
    assert values in str(error) and "sm_80" in str(error) and "sm_90" in str(error)
    assert "name the chip once" in error.hint


class Spoil(cutlass.Pass):
    """Adds an operation that no verifier takes."""

    name = "test-spoil"

    def run(self, module):
        kernel = next(op for op in operations(module) if op.name == "gpu.func")
        with mlir.ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]), kernel.location:
            value = mlir.ir.FloatAttr.get(mlir.ir.F32Type.get(), 1.0)
            i32 = mlir.ir.IntegerType.get_signless(32)
            mlir.ir.Operation.create("arith.constant", results=[i32], attributes={"value": value, "spoiled": value})


class Mend(cutlass.Pass):
    """Takes it out again."""

    name = "test-mend"

    def run(self, module):
        for op in [op for op in operations(module) if "spoiled" in op.attributes]:
            op.erase()


@pytest.mark.parametrize("between", [[], [UpstreamPass("cse")]])
def test_a_list_that_is_not_verified(between):
    def listed(verify, *passes):
        x = numbers()
        cute.compile(cute.jit(host), x, pipeline=PassManager(list(passes), verify=verify))(x)
        return x[0]

    with pytest.raises(PassError, match="left a module that is not valid"):
        listed(True, Spoil(), *between, Mend())
    assert listed(False, Spoil(), *between, Mend()) == 7


def test_the_options_of_a_list_that_compiled_compile_the_same_again():
    text = cute.CompileOptions("--opt-level 1 --enable-assertions --ptxas-options '-v --maxrregcount=64'").to_str()
    made = cute.compile(cute.jit(host), numbers(), pipeline=f"builtin.module(cute-to-nvvm{{{text}}})", target="emu")
    options = made.job.options
    assert (options.opt_level, options.enable_assertions, options.ptxas_options) == (1, True, "-v --maxrregcount=64")
    again = cute.compile(cute.jit(host), numbers(), pipeline=made.pipeline, target="emu")
    assert (again.pipeline, again.job.options) == (made.pipeline, options)


def test_autotuned_functions_keep_their_dsl_object():
    tuned = cute.testing.autotune_jit({"n": [1]}, iterations=1, warmup_iterations=0)

    @tuned
    @Listed(AFTER).jit
    def f(x: cute.Tensor, n: cutlass.Constexpr = 1):
        kernel(x).launch(grid=1, block=1)

    x = np.array([1, 1, 0, 0], np.float32)  # products of ones stay, sums would grow with each run
    f(x)
    assert x[0] == 1
