"""Texts and bytes that the user gives for a stage, and pass lists."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double_kernel, floats, refused
from tilewright import CompileError, PassError, passes


@cute.kernel
def scale_kernel(x: cute.Tensor, out: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(out):
        out[i] = x[i] * 3.0


@cute.jit
def scale(x: cute.Tensor, out: cute.Tensor):
    scale_kernel(x, out).launch(grid=1, block=128)


@cute.kernel
def checked_kernel(x: cute.Tensor, out: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    cute.testing.assert_(x[i] < 1e6, "too large")
    out[i] = x[i] * 3.0


@cute.jit
def checked(x: cute.Tensor, out: cute.Tensor):
    checked_kernel(x, out).launch(grid=1, block=128)


@pytest.fixture(scope="module")
def plain():
    return cute.compile(scale, *floats())


def result_of(**given):
    x, out = floats()
    executor = cute.compile(scale, x, out, **given)
    executor(x, out)
    return out


# The constant 3.0 in the text of each stage, and what replaces it.
SEVEN = {
    "cute": ("3.000000e+00", "7.000000e+00"),
    "nvvm": ("3.000000e+00", "7.000000e+00"),
    "llvm": ("3.000000e+00", "7.000000e+00"),
    "ptx": ("0f40400000", "0f40E00000"),
}


@pytest.mark.parametrize(
    "stage, form",
    [
        ("cute", "text"),
        ("cute", "path"),
        ("nvvm", "text"),
        ("llvm", "text"),
        ("ptx", "text"),
        ("ptx", "path"),
        ("ptx", "name"),
    ],
)
def test_a_replaced_text_changes_the_result(plain, stage, form, tmp_path):
    old, new = SEVEN[stage]
    text = plain.stages[stage]
    assert text.count(old) == 1
    file = tmp_path / "changed.txt"
    file.write_text(text.replace(old, new))
    given = {"text": file.read_text(), "path": file, "name": str(file)}[form]
    assert (result_of(override={stage: given}) == 7 * floats()[0]).all()


def test_replaced_stages_are_what_stages_shows(plain):
    old, new = SEVEN["ptx"]
    text = plain.stages["ptx"].replace(old, new)
    executor = cute.compile(scale, *floats(), override={"ptx": text})
    assert executor.stages["ptx"] == text
    assert executor.stages["cubin"] != plain.stages["cubin"]
    assert "7" in executor.stages["sass"] and executor.stages["sass"] != plain.stages["sass"]


def test_replaced_cubin(plain, tmp_path):
    old, new = SEVEN["ptx"]
    other = cute.compile(scale, *floats(), override={"ptx": plain.stages["ptx"].replace(old, new)})
    file = tmp_path / "other.cubin"
    file.write_bytes(other.stages["cubin"])
    for given in (other.stages["cubin"], file, str(file)):
        executor = cute.compile(scale, *floats(), override={"cubin": given})
        assert executor.stages["cubin"] == other.stages["cubin"]
    assert executor.stages["sass"] == other.stages["sass"]


def test_several_kernels_take_a_mapping():
    @cute.jit
    def both(x: cute.Tensor, out: cute.Tensor):
        scale_kernel(x, out).launch(grid=1, block=128)
        double_kernel(out, out).launch(grid=2, block=64)

    x, out = floats()
    executor = cute.compile(both, x, out)
    assert list(executor.kernels) == ["scale_kernel", "double_kernel"]
    old, new = SEVEN["ptx"]
    text = executor.stages["ptx"]["scale_kernel"].replace(old, new)
    changed = cute.compile(both, x, out, override={"ptx": {"scale_kernel": text}})
    changed(x, out)
    assert (out == 14 * x).all()
    refused(
        lambda: cute.compile(both, x, out, override={"ptx": text}), CompileError, "2 kernels", hint="by kernel name"
    )


def test_unknown_stage():
    refused(lambda: cute.compile(scale, *floats(), override={"sass": "x\n"}), CompileError, "'sass' cannot be replaced")


@pytest.mark.parametrize("given", ["/nowhere/kernel.ptx", "kernel.ptx"])
def test_missing_file(given):
    refused(lambda: cute.compile(scale, *floats(), override={"ptx": given}), CompileError, f"no file {given!r}")


def test_nvvm_that_does_not_parse(plain):
    text = plain.stages["nvvm"].replace("llvm.return", "llvm.return %nothing")
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "%nothing" in line)
    error = refused(
        lambda: cute.compile(scale, *floats(), override={"nvvm": text}), CompileError, "stage nvvm does not parse"
    )
    assert error.values[f"line {number}"] == "llvm.return %nothing"
    assert error.values["reason"] == "expected ':'" and ".stages['nvvm']" in error.hint


@pytest.mark.parametrize("spelling", ['"custom.my_op"() : () -> ()', "custom.my_op"])
def test_nvvm_with_an_operation_of_no_dialect(plain, spelling):
    text = plain.stages["nvvm"].replace("      llvm.return", f"      {spelling}\n      llvm.return")
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "custom" in line)
    error = refused(
        lambda: cute.compile(scale, *floats(), override={"nvvm": text}),
        PassError,
        "Error: unknown operation 'custom.my_op'",
    )
    assert error.values[f"line {number}"] == spelling and "@dsl_user_op" in error.hint


def test_nvvm_with_an_operation_that_is_not_lowered(plain):
    text = plain.stages["nvvm"].replace("      llvm.return", "      %c = arith.constant 1 : i32\n      llvm.return")
    with pytest.raises(PassError, match=r"'arith\.constant' is left in a kernel at the end of stage nvvm"):
        cute.compile(scale, *floats(), override={"nvvm": text})


def test_nvvm_that_asks_for_what_the_chip_lacks(plain):
    text = plain.stages["nvvm"].replace("      llvm.return", "      %e = nvvm.elect.sync -> i1\n      llvm.return")
    with pytest.raises(CompileError, match=r"nvvm\.elect\.sync is not available on sm_80"):
        cute.compile(scale, *floats(), override={"nvvm": text}, arch="sm_80")


def test_llvm_that_does_not_parse(plain):
    text = plain.stages["llvm"].replace("ret void", "return void")
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "return void" in line)
    with pytest.raises(CompileError) as caught:
        cute.compile(scale, *floats(), override={"llvm": text})
    for word in (
        "NVVM Compilation Error:",
        "Current Settings:",
        "- Target Architecture: sm_90a",
        f"line {number}, column 3",
        "Possible Solutions:",
        "override",
    ):
        assert word in str(caught.value)


def test_llvm_on_which_the_backend_ends_its_process(plain):
    text = plain.stages["llvm"].replace("ret void", "%e = call {i32, i1} @llvm.nvvm.elect.sync(i32 -1)\n  ret void", 1)
    text += "\ndeclare {i32, i1} @llvm.nvvm.elect.sync(i32)\n"
    with pytest.raises(CompileError, match="Cannot select"):
        cute.compile(scale, *floats(), override={"llvm": text}, arch="sm_80")
    assert (result_of() == 3 * floats()[0]).all()


def test_the_ptx_version_follows_the_text(plain):
    text = plain.stages["llvm"].replace(
        "ret void", 'call void asm sideeffect "griddepcontrol.wait;", ""()\n  ret void', 1
    )
    assert ".version 7.8" in cute.compile(scale, *floats(), override={"llvm": text}, arch="sm_90").stages["ptx"]
    newer = text.replace(
        "griddepcontrol.wait;", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [0], 1, [0];"
    )
    assert ".version 8.1" in cute.compile(scale, *floats(), override={"llvm": newer}, arch="sm_90").stages["ptx"]


def test_nvvm_with_inline_ptx(plain):
    text = plain.stages["nvvm"].replace(
        "      llvm.return", '      nvvm.inline_ptx "nanosleep.u32 8;"\n      llvm.return'
    )
    executor = cute.compile(scale, *floats(), override={"nvvm": text})
    assert "nanosleep.u32 8;" in executor.stages["ptx"]


def test_ptx_that_does_not_parse(plain):
    text = plain.stages["ptx"].replace("\tret;", "\treturn 3;")
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "return 3" in line)
    with pytest.raises(CompileError) as caught:
        cute.compile(scale, *floats(), override={"ptx": text})
    for word in (
        "PTX Compilation Error:",
        "Current Settings:",
        "- PTX Version: 8.0",
        f"line {number}",
        "in: return 3;",
        "Possible Solutions:",
        "1. Check the text given by override=",
    ):
        assert word in str(caught.value)
    assert "return" in caught.value.nvvm_error and caught.value.location.file == __file__


@pytest.mark.parametrize("stage", ["cute", "nvvm", "llvm", "ptx"])
def test_text_without_the_kernel(plain, stage):
    text = plain.stages[stage].replace("scale_kernel", "other_kernel")
    error = refused(
        lambda: cute.compile(scale, *floats(), override={stage: text}), CompileError, "has no kernel 'scale_kernel'"
    )
    assert error.values == {"its kernels": "other_kernel"} and "keep the names" in error.hint


# Stage cute.


def test_cute_takes_the_place_of_what_passes_left(plain):
    """Passes of stage cute do not run on it, those that come after do."""

    class Minus(passes.Rewrite):
        name = "minus"

        @passes.rule("arith.mulf")
        def minus(self, op, rewriter):
            return rewriter.build("arith.subf", op.results[0].type, *op.operands)

    old, new = SEVEN["cute"]
    text = plain.stages["cute"].replace(old, new)
    x, out = floats()
    executor = cute.compile(scale, x, out, override={"cute": text}, passes=Minus)
    executor(x, out)
    assert (out == 7 * x).all() and executor.stages["cute"] == text
    executor = cute.compile(scale, x, out, override={"cute": text}, passes=cutlass.after("cute-to-nvvm", Minus))
    executor(x, out)
    assert (out == x - 7).all()


def test_cute_of_the_host_function_and_of_several_kernels():
    @cute.jit
    def both(x: cute.Tensor, out: cute.Tensor):
        scale_kernel(x, out).launch(grid=1, block=128)
        double_kernel(out, out).launch(grid=cute.ceil_div(cute.size(x), 64), block=64)

    x, out = floats()
    text = cute.compile(both, x, out).stages["cute"]
    assert text.count("arith.constant 64 : i32") >= 1 and text.count("arith.mulf") == 1
    halved = text.replace("arith.mulf", "arith.addf").replace("arith.addf %2, %2", "arith.mulf %2, %2")
    cute.compile(both, x, out, override={"cute": halved})(x, out)
    assert (out == 2 * (x + 3)).all()


def test_cute_with_shared_memory_that_is_new():
    """Allocations in the text are placed."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64))
        shared[0] = 5.0
        out[0] = shared[0]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    out = np.zeros(1, np.float32)
    text = cute.compile(host, out).stages["cute"]
    assert "tilewright.smem_bytes = 256" in text
    unplaced = re.sub(r'"cute\.smem_base"\(\) \{[^}]*\}', '"cute.alloc"() {bytes = 512 : i32}', text)
    unplaced = re.sub(r", tilewright\.smem_\w+ = \d+ : i32", "", unplaced)
    assert unplaced != text
    executor = cute.compile(host, out, override={"cute": unplaced})
    executor(out)
    assert out[0] == 5 and executor.smem_bytes() == 512


def cute_line(text, word):
    return next(f"line {n}" for n, line in enumerate(text.splitlines(), 1) if word in line)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("arith.mulf", "arith.mullf", "Error: unknown operation 'arith.mullf'"),
        ("arith.mulf", "arith.muli", "the text given for stage cute does not parse"),
        ('"cute.load"(%arg0', '"cute.load"(%arg7', "the text given for stage cute does not parse"),
        ("arith.constant 3.0", "arith.constant dense<3.0", "the text given for stage cute does not parse"),
        ('coord = "?"', 'coord = "(?,?)"', r"the text given for stage cute left cute\.load against the rules"),
        ('coord = "?"', 'coord = "x"', r"the text given for stage cute left cute\.load against the rules"),
        (
            'name = "thread_idx.x"',
            'name = "thread_idx.w"',
            r"the text given for stage cute left cute\.index against the rules",
        ),
        ('"cute.index"() {name = "thread_idx.x"}', '"cute.index"()', "the text given for stage cute does not parse"),
    ],
)
def test_cute_that_is_wrong_names_the_line_of_the_text(plain, old, new, words):
    text = plain.stages["cute"]
    assert old in text
    changed = text.replace(old, new, 1)
    with pytest.raises(CompileError, match=words) as caught:
        cute.compile(scale, *floats(), override={"cute": changed})
    number = next(n for n, (a, b) in enumerate(zip(text.splitlines(), changed.splitlines(), strict=True), 1) if a != b)
    assert caught.value.values[f"line {number}"] == changed.splitlines()[number - 1].strip()
    assert (result_of() == 3 * floats()[0]).all()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("@scale(%arg0: ", "@scale(%extra: i32, %arg0: ", "the text given for stage cute has another host function"),
        ("func.func @scale(", "func.func @other(", "the text given for stage cute has another host function"),
        ("module attributes", "module @m attributes", None),
    ],
)
def test_cute_with_another_host_function(plain, old, new, words):
    text = plain.stages["cute"].replace(old, new)
    assert text != plain.stages["cute"]
    if words is None:
        assert (result_of(override={"cute": text}) == 3 * floats()[0]).all()
        return
    error = refused(lambda: cute.compile(scale, *floats(), override={"cute": text}), CompileError, words)
    assert "scale" in error.values["expected"] and error.hint


def test_cute_with_a_kernel_too_many(plain):
    text = plain.stages["cute"]
    start = text.index("  gpu.module @scale_kernel")
    more = text[start:].rstrip().removesuffix("}").replace("@scale_kernel", "@another")
    given = text.rstrip().removesuffix("}") + more + "}\n"
    error = refused(
        lambda: cute.compile(scale, *floats(), override={"cute": given}), CompileError, "has another kernel 'another'"
    )
    assert "Python source" in error.hint


# Pass lists.


def test_the_pass_list_reads_what_it_prints(plain):
    again = cute.compile(scale, *floats(), pipeline=plain.pipeline)
    assert again.pipeline == plain.pipeline
    assert "cute-to-nvvm{cubin-chip=sm_90a opt-level=3}" in plain.pipeline
    for stage in ("cute", "nvvm", "llvm", "ptx"):
        assert again.stages[stage] == plain.stages[stage]


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ("--opt-level 1", "opt-level=1"),
        ("--generate-line-info", "preserve-line-info=true"),
        ("--enable-assertions", "enable-assertions=true"),
        ("--gpu-arch sm_80 --opt-level 0 --enable-assertions --generate-line-info",
         "cubin-chip=sm_80 opt-level=0 preserve-line-info=true enable-assertions=true"),
    ],
)  # fmt: skip
def test_the_pass_list_says_with_which_options(options, written):
    first = cute.compile(checked, *floats(), options=options)
    assert written in first.pipeline
    again = cute.compile(checked, *floats(), pipeline=first.pipeline)
    assert again.pipeline == first.pipeline
    assert again.stages["cubin"] == first.stages["cubin"]


def test_options_win_over_the_pass_list():
    text = "builtin.module(cute-to-nvvm{opt-level=3 enable-assertions=true})"
    executor = cute.compile(scale, *floats(), pipeline=text, options="--opt-level 0 --enable-assertions=false")
    assert "opt-level=0" in executor.pipeline and "enable-assertions=false" in executor.pipeline
    assert "check-bounds" not in executor.pipeline
    plain = cute.compile(scale, *floats(), options="--opt-level 0")
    assert executor.stages["ptx"] == plain.stages["ptx"]


def test_a_short_pass_list_is_completed(plain):
    assert (result_of(pipeline="builtin.module(cute-to-nvvm)") == 3 * floats()[0]).all()
    short = cute.compile(scale, *floats(), pipeline="builtin.module(cute-to-nvvm)")
    assert short.stages["ptx"] == plain.stages["ptx"]


def test_the_pass_list_chooses_chip_and_level(plain):
    text = "builtin.module(cute-to-nvvm{cubin-chip=sm_86 opt-level=0})"
    executor = cute.compile(scale, *floats(), pipeline=text)
    assert executor.arch == "sm_86" and ".target sm_86" in executor.stages["ptx"]
    assert len(executor.stages["ptx"].splitlines()) > len(plain.stages["ptx"].splitlines())
    both = {"pipeline": text, "arch": "sm_90a"}
    error = refused(lambda: cute.compile(scale, *floats(), **both), CompileError, "name two chips")
    assert error.values == {"arch": "sm_90a", "cubin-chip": "sm_86"}


def test_the_spellings_of_the_closed_compiler_are_accepted(plain):
    text = "builtin.module(cute-to-nvvm{cubin-format=bin opt-level=3 toolkitPath= enable-cuda-dialect=true})"
    assert cute.compile(scale, *floats(), pipeline=text).stages["ptx"] == plain.stages["ptx"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("cute-to-nvvm", ["not a pipeline"]),
        ("builtin.module(no-such-pass)", ["unknown pass 'no-such-pass'", "cute-to-nvvm"]),
        ("builtin.module(cute-to-nvvm{opt-level=9})", ["opt-level is 0, 1, 2 or 3, not 9"]),
        ("builtin.module(cute-to-nvvm{speed=1})", ["pass cute-to-nvvm has no option 'speed'", "opt-level"]),
        ("builtin.module(cute-to-nvvm{opt-level=fast})", ["option opt-level", "'fast' is not an integer"]),
        ("builtin.module(cute-to-nvvm{cubin-chip=sm_1})", ["unknown architecture 'sm_1'"]),
        ("builtin.module(cute-to-nvvm", ["not a pipeline"]),
        ("builtin.module(cute-to-nvvm))", ["brackets do not match"]),
        (
            "builtin.module(cute-to-nvvm,place-shared-memory)",
            ["Error: Pass cute-to-nvvm requires place-shared-memory but place-shared-memory was not run"],
        ),
    ],
)
def test_wrong_pass_lists(text, words):
    refused(lambda: cute.compile(scale, *floats(), pipeline=text), CompileError, *words)


def test_upstream_passes_can_be_inserted(plain):
    manager = cutlass.PassManager.parse("builtin.module(cute-to-nvvm)")
    manager.passes.insert(0, cutlass.PassManager.parse("builtin.module(gpu.module(canonicalize,cse))").passes[0])
    executor = cute.compile(scale, *floats(), pipeline=manager)
    x, out = floats()
    executor(x, out)
    assert (out == 3 * x).all()
    assert "gpu.module(canonicalize,cse)" in executor.pipeline
