"""Passes over the texts of stages `llvm` and `ptx`."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import CompileError, EmulationError, PassError, PassManager, passes
from tilewright.emulate import edit_ptx, parse_ptx
from tilewright.passes.pipeline import REGISTRY


class Replace(passes.Pass):
    """Replaces one word of a text by another."""

    name = "replace"
    options = {"old": "", "new": ""}  # noqa: RUF012

    def run_text(self, text, kernel):
        self.kernels = [*getattr(self, "kernels", []), kernel]
        assert self["old"] in text
        return text.replace(self["old"], self["new"])


class InLlvm(Replace):
    name = "in-llvm"
    stage = "llvm"


class InPtx(Replace):
    name = "in-ptx"
    stage = "ptx"


def compiled(*items, function=double, arguments=None, **given):
    return cute.compile(function, *(arguments or floats()), passes=list(items), **given)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([InLlvm(old="fadd", new="fmul")], lambda x: x * x),
        ([InPtx(old="add.rn.f32", new="sub.rn.f32")], lambda x: x - x),
        ([InPtx(old="mul.rn.f32", new="sub.rn.f32"), InLlvm(old="fadd", new="fmul")], lambda x: x - x),
        ([InLlvm(old="fadd", new="fsub"), InLlvm(old="fsub", new="fmul")], lambda x: x * x),
    ],
)
def test_texts_are_changed(items, expected):
    executor = compiled(*items)
    x, out = floats()
    executor(x, out)
    assert np.array_equal(out, expected(x))


def test_where_they_stand_and_what_is_seen():
    seen = []

    def note(item, program):
        seen.append((item.name, isinstance(program, str)))

    executor = compiled(InPtx(old="ret;", new="ret;"), InLlvm(old="fadd", new="fmul"), after_pass=note)
    assert executor.pipeline.endswith(",in-llvm{old=fadd new=fmul},in-ptx{old=ret; new=ret;})")
    assert seen[-2:] == [("in-llvm", True), ("in-ptx", True)] and not any(text for _, text in seen[:-2])
    timed = [name.partition("{")[0] for name, _ in executor.pass_timings]
    assert timed[-2:] == ["in-llvm", "in-ptx"]
    assert "fmul" in executor.stages["llvm"] and "mul" in executor.stages["ptx"]


def test_as_text_and_read_back():
    passes.register_pass(InPtx)
    try:
        text = "builtin.module(in-ptx{old=add.rn.f32 new=mul.rn.f32},cute-to-nvvm)"
        first = cute.compile(double, *floats(), pipeline=text)
        again = cute.compile(double, *floats(), pipeline=first.pipeline)
        for executor in (first, again):
            x, out = floats()
            executor(x, out)
            assert np.array_equal(out, x * x)
    finally:
        del REGISTRY["in-ptx"]


def test_each_kernel_on_its_own():
    @cute.kernel
    def one(out: cute.Tensor):
        out[0] = out[2] + 1.0

    @cute.kernel
    def two(out: cute.Tensor):
        out[1] = out[2] + 2.0

    @cute.jit
    def both(out: cute.Tensor):
        one(out).launch(grid=1, block=1)
        two(out).launch(grid=1, block=1)

    class OnlyTwo(InPtx):
        name = "only-two"

        def run_text(self, text, kernel):
            return super().run_text(text, kernel) if kernel == "two" else text

    out = np.array([0, 0, 5], np.float32)
    item = OnlyTwo(old="add.rn.f32", new="mul.rn.f32")
    compiled(item, function=both, arguments=(out,))(out)
    assert list(out) == [6, 10, 5] and item.kernels == ["two"]


def test_a_pass_list_of_a_function_of_its_own_is_another_program():
    """Direct calls are cached by their pass lists too."""
    one = PassManager([InPtx(old="add.rn.f32", new="mul.rn.f32")])
    two = PassManager([InPtx(old="add.rn.f32", new="sub.rn.f32")])
    assert one.key() != two.key() and one.key() == PassManager([InPtx(old="add.rn.f32", new="mul.rn.f32")]).key()

    class Other(InPtx):
        pass

    assert PassManager([Other(old="add.rn.f32", new="mul.rn.f32")]).key != one.key, "the same name, another class"


class Fails(passes.Pass):
    """Raises."""

    name = "fails"
    stage = "ptx"

    def run_text(self, text, kernel):
        raise ValueError("mine")


class GivesNothing(passes.Pass):
    """Forgets the return."""

    name = "gives-nothing"
    stage = "llvm"

    def run_text(self, text, kernel):
        text.replace("a", "b")


class WrongStage(passes.Pass):
    """There is no text of stage `sass` to change."""

    name = "wrong-stage"
    stage = "sass"

    def run_text(self, text, kernel):
        return text


class NoMethod(passes.Pass):
    """Writes `run` instead."""

    name = "no-method"
    stage = "ptx"

    def run(self, module):
        pass


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Fails, "pass fails failed"),
        (GivesNothing, "pass gives-nothing gives NoneType, not text"),
        (WrongStage, "pass wrong-stage: there are no passes at stage 'sass'"),
        (NoMethod, r"pass no-method has no run_text\(text, kernel\)"),
    ],
)
def test_wrong_passes(item, words):
    with pytest.raises(PassError, match=words) as caught:
        compiled(item)
    if item is Fails:
        assert caught.value.values["reason"] == "ValueError: mine" and caught.value.values["kernel"] == "double_kernel"
        assert caught.value.values["raised at"] == f"{__file__}:{Fails.run_text.__code__.co_firstlineno + 1}"


def test_a_wrong_stage_is_refused_when_registered():
    with pytest.raises(PassError, match="no passes at stage 'sass'"):
        cutlass.register_pass(WrongStage)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (InLlvm(old="fadd contract float", new="fadd contract double"), "Check the text that pass in-llvm left"),
        (
            InLlvm(old="@double_kernel(", new="@other("),
            "the text that pass in-llvm left for stage llvm has no kernel 'double_kernel'",
        ),
        (
            InPtx(old=".entry double_kernel", new=".entry other"),
            "the text that pass in-ptx left for stage ptx has no kernel",
        ),
    ],
)
def test_texts_that_cannot_be_compiled(item, words):
    with pytest.raises(CompileError, match=words):
        compiled(item)


def test_ptx_that_is_wrong_is_found_when_compiled():
    with pytest.raises((CompileError, EmulationError), match=r"addd|line"):
        compiled(InPtx(old="add.rn.f32", new="addd.rn.f32"))


def test_a_wrong_stage_in_a_list():
    with pytest.raises(PassError, match="no passes at stage 'sass'"):
        cute.compile(double, *floats(), pipeline=PassManager([WrongStage()]))


@pytest.mark.parametrize("stage", ["cute", "nvvm"])
def test_passes_over_the_module_of_a_stage(stage):
    class Look(passes.Pass):
        name = "look"

        def run(self, module):
            self.names = {op.name for op in passes.operations(module)}

    Look.stage = stage
    item = Look()
    text = compiled(item).pipeline
    assert ("cute.load" in item.names) == (stage == "cute") and ("llvm.load" in item.names) == (stage == "nvvm")
    assert text.endswith(",look)") == (stage == "nvvm")


# PTX that is parsed.


def test_edit_ptx():
    ptx = compiled().stages["ptx"]
    module = parse_ptx(ptx)
    (function,) = module.functions.values()
    adds = [item for item in function.body if item.opcode == "add.rn.f32"]
    assert function.name == "double_kernel" and len(adds) == 1

    assert edit_ptx(ptx, lambda item: None) == ptx
    changed = edit_ptx(ptx, lambda item: "// gone" if item.line == adds[0].line else None)
    lines, before = changed.splitlines(), ptx.splitlines()
    assert lines[adds[0].line - 1].strip() == "// gone"
    assert [one == two for one, two in zip(lines, before, strict=True)].count(False) == 1


def test_edit_ptx_of_instructions_that_share_a_line():
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<3>;\n"
    ptx = head + " mov.u32 %r1, 1; mov.u32 %r2, 2;\nret;\n}\n"
    assert edit_ptx(ptx, lambda item: "ret; // done" if item.op == "ret" else None).count("done") == 1
    with pytest.raises(EmulationError, match="PTX line 6: the instruction does not fill the line") as caught:
        edit_ptx(ptx, lambda item: "" if item.op == "mov" else None)
    assert "one instruction a line" in caught.value.hint
