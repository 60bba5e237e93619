"""Which options change code, what is said of options without effect, and libraries that are linked."""

from __future__ import annotations

import contextvars
import warnings
from dataclasses import fields

import numpy as np
import pytest

import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import CompileError, Pass
from tilewright.base import notices, settings
from tilewright.base.notices import IgnoredOptionWarning
from tilewright.ir.llvm_api import Context
from tilewright.targets.nvidia.backend.back_end import BACK_END
from tilewright.targets.nvidia.backend.options import NvidiaOptions
from tilewright.targets.options import effect_of


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    """Every test hears what is said once."""
    monkeypatch.setattr(notices, "_said", set())


# Options that show or write something, and those that only change how a function is called.
VIEWS = {"keep_ir", "keep_ptx", "keep_cubin", "keep_sass", "print_ir", "dump_dir", "nvdisasm_options"}
CALLS = {"enable_tvm_ffi", "host_target"}


def test_each_option_says_whether_it_changes_code():
    effects = {entry.name: effect_of(entry) for entry in fields(NvidiaOptions)}
    assert {name for name, effect in effects.items() if effect == "view"} == VIEWS
    assert {name for name, effect in effects.items() if effect == "call"} == CALLS
    assert {name for name, _ in NvidiaOptions().code_key()} == effects.keys() - VIEWS - CALLS


OTHER = {
    "opt_level": 1, "gpu_arch": "sm_80", "fp_contract": "off", "enable_assertions": True, "keep_ir": True,
    "print_ir": True, "enable_tvm_ffi": True, "dump_dir": "kept", "host_target": "linux-aarch64",
    "ptxas_options": "--maxrregcount=32", "nvdisasm_options": "-c", "link_libraries": "libcudadevrt.a",
    "generate_line_info": True, "keep_ptx": True, "keep_cubin": True, "keep_sass": True, "ptx_backend": "nvidia-nvvm",
    "profile": False, "profile_warps": 8, "profile_events": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", [entry.name for entry in fields(NvidiaOptions)])
def test_the_key_tells_apart_what_differs_in_code(name):
    changed = NvidiaOptions().changed({name: OTHER[name]})
    assert (changed.code_key() != NvidiaOptions().code_key()) == (name not in VIEWS | CALLS)


VIEWING = [cute.KeepIR, cute.KeepPTX, cute.KeepCUBIN, cute.KeepSASS, cute.NvdisasmOptions("-c"), cute.PrintIR]


def test_what_does_not_change_code_changes_none(tmp_path, capfd):
    plain = cute.compile[cute.GPUArch("sm_90a")](double, *floats(), target="emu")
    chosen = cute.compile[(cute.GPUArch("sm_90a"), cute.DumpDir(str(tmp_path)), *VIEWING)]
    other = chosen(double, *floats(), target="emu")
    assert "// ---- ptx of double_kernel, sm_90a ----" in capfd.readouterr().err
    assert other.stages["ptx"] == plain.stages["ptx"] and other.stages["cubin"] == plain.stages["cubin"]
    names = ("double.sm_90a." + end for end in ("cute.mlir", "nvvm.mlir", "ll", "ptx", "cubin", "sass"))
    assert {path.name for path in tmp_path.iterdir()} == set(names)


SPELLINGS = ("TILEWRIGHT_", "CUTE_DSL_", "CUTLASS_")


@pytest.mark.parametrize("prefix", SPELLINGS)
@pytest.mark.parametrize(
    ("variable", "text", "option", "value"),
    [
        ("ARCH", "sm_86", "gpu_arch", "sm_86"), ("OPT_LEVEL", "1", "opt_level", 1), ("PRINT_IR", "1", "print_ir", True),
        ("DUMP_DIR", "out", "dump_dir", "out"), ("KEEP", "ptx,sass", "keep_sass", True),
        ("KEEP_IR", "1", "keep_ir", True),
        ("KEEP_PTX", "1", "keep_ptx", True), ("KEEP_CUBIN", "1", "keep_cubin", True),
        ("KEEP_SASS", "1", "keep_sass", True), ("LINEINFO", "1", "generate_line_info", True),
        ("ENABLE_ASSERTIONS", "1", "enable_assertions", True), ("ENABLE_TVM_FFI", "1", "enable_tvm_ffi", True),
    ],
)  # fmt: skip
def test_variables_in_three_spellings(monkeypatch, prefix, variable, text, option, value):
    assert getattr(from_environment(), option) != value
    monkeypatch.setenv(prefix + variable, text)
    assert getattr(from_environment(), option) == value


def from_environment():
    """The defaults without the settings of these tests."""
    return contextvars.Context().run(NvidiaOptions.from_settings)


def test_our_spelling_comes_first(monkeypatch):
    for number, prefix in enumerate(reversed(SPELLINGS)):
        monkeypatch.setenv(prefix + "OPT_LEVEL", str(number))
        assert settings.get("opt_level") == number
    monkeypatch.setenv("TILEWRIGHT_OPT_LEVEL", "4")
    with pytest.raises(CompileError, match="TILEWRIGHT_OPT_LEVEL='4' is not valid"):
        settings.get("opt_level")


# Pass lists.


def compiled(pipeline, **given):
    return cute.compile(double, *floats(), target="emu", pipeline=f"builtin.module({pipeline})", **given)


SEED = "cute-to-nvvm{cubin-format=bin cubin-chip=sm_90a enable-cuda-dialect=true cuda-dialect-external-module=true}"


def test_pass_options_without_effect_say_so_once_at_the_line():
    def twice():
        for _ in range(2):
            compiled(SEED)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        twice()
    said = [item for item in caught if item.category is IgnoredOptionWarning]
    assert [str(item.message).partition(":")[0] for item in said] == [
        "enable-cuda-dialect has no effect here", "cuda-dialect-external-module has no effect here",
    ]  # fmt: skip
    assert {item.filename for item in said} == {__file__}


def test_off_is_not_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled("cute-to-nvvm{enable-cuda-dialect=false}")


@pytest.mark.parametrize("form", ["fatbin", "isa", "elf"])
def test_a_format_that_is_none(form):
    with pytest.raises(CompileError, match=f"cubin-format is bin, not {form}") as caught:
        compiled(f"cute-to-nvvm{{cubin-format={form}}}")
    assert "stages['ptx']" in caught.value.hint and caught.value.location.file == __file__


FAKE_PTXAS = """#!/bin/sh
for word in "$@"; do
  case "$word" in --version) echo "Cuda compilation tools, release 13.0, V13.0.1"; exit 0;; esac
done
echo "ptxas of the toolkit" >&2
exit 7
"""


def test_the_toolkit_of_a_pass_list_is_used(tmp_path):
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.write_text(FAKE_PTXAS)
    tool.chmod(0o755)
    with pytest.raises(CompileError, match="ptxas of the toolkit") as caught:
        compiled(f"cute-to-nvvm{{toolkitPath={tmp_path}}}").stages["cubin"]
    assert f"CUDA Toolkit Path: {tmp_path}" in str(caught.value)


def test_a_toolkit_that_is_no_folder(tmp_path, monkeypatch):
    with pytest.raises(CompileError, match=r"toolkitPath=.*nowhere is no folder"):
        compiled(f"cute-to-nvvm{{toolkitPath={tmp_path}/nowhere}}")
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", f"{tmp_path}/nowhere")
    with pytest.warns(IgnoredOptionWarning, match="nowhere is no folder, so tools come from the installed packages"):
        assert compiled("cute-to-nvvm").stages["cubin"].startswith(b"\x7fELF")


# Libraries.


class CallsAdd(Pass):
    """Adds what `add_seven` of a library gives to what `double` computes."""

    name = "calls-add"
    stage = "llvm"

    def run_text(self, text, kernel):
        line = next(line for line in text.splitlines() if "fmul" in line or "fadd" in line)
        value = line.split("=")[0].strip()
        lines = text.replace(line, f"{line}\n  %seven = call float @add_seven(float {value})")
        head, tail = lines.split("%seven = ", 1)
        called, rest = tail.split("\n", 1)
        return f"{head}%seven = {called}\n{rest.replace(value, '%seven', 1)}\ndeclare float @add_seven(float)\n"


LIBRARY = """
target triple = "nvptx64-nvidia-cuda"
define float @add_seven(float %x) {
  %y = fadd float %x, 7.0
  ret float %y
}
define float @unused(float %x) {
  ret float %x
}
"""


@pytest.mark.parametrize("form", ["text", "bitcode"])
def test_bitcode_is_linked(tmp_path, form):
    library = tmp_path / ("add.ll" if form == "text" else "add.bc")
    library.write_bytes(LIBRARY.encode() if form == "text" else bitcode(LIBRARY))
    x, out = floats()
    executor = cute.compile[cute.LinkLibraries(str(library))](double, x, out, target="emu", passes=CallsAdd())
    executor(x, out)
    assert np.array_equal(out, 2 * x + 7)
    assert "unused" not in executor.stages["ptx"]
    assert BACK_END.files_read(executor.job.options) == (library,)


def bitcode(text):
    with Context(text) as context:
        return context.take_buffer(context.llvm.LLVMWriteBitcodeToMemoryBuffer(context.parse(text)))


def test_bitcode_that_cannot_be_linked(tmp_path):
    (tmp_path / "bad.bc").write_bytes(b"BC\xc0\xde no bitcode")
    with pytest.raises(CompileError, match="NVVM Compilation Error") as caught:
        cute.compile(double, *floats(), target="emu", options=f"--link-libraries {tmp_path}/bad.bc")
    assert "Check the bitcode of LinkLibraries" in str(caught.value)
    with pytest.raises(CompileError, match=r"cannot read '.*none\.bc'"):
        cute.compile(double, *floats(), target="emu", options=f"--link-libraries {tmp_path}/none.bc")
