"""libNVVM: PTX from LLVM IR for sm_100 and up, and its refusals."""

import pytest

from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary.cubin import read_cubin
from tilewright.targets.nvidia.sass.listing import disassemble, histogram, parse
from tilewright.targets.nvidia.toolkit import libnvvm, toolchain
from tilewright.targets.nvidia.toolkit.assemble import assemble
from tilewright.targets.nvidia.toolkit.libnvvm_child import compile_ir_in_child

# As LLVM 22 writes it, with its own data layout and with metadata of its own.
MODULE = """; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @__nv_expf(float)

define ptx_kernel void @exponential(ptr addrspace(1) %p) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %q = getelementptr inbounds float, ptr addrspace(1) %p, i32 %t
  %x = load float, ptr addrspace(1) %q, align 4
  %y = call float @__nv_expf(float %x)
  store float %y, ptr addrspace(1) %q, align 4
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 2, !"Debug Info Version", i32 3}
"""


@pytest.mark.parametrize("arch", ["sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_101a", "sm_120"])
def test_the_text_of_llvm_becomes_machine_code(arch):
    ptx = libnvvm.compile_ir(MODULE, arch)
    assert f".target {arch.replace('101', '110')}" in ptx
    cubin = assemble(ptx, arch).data
    assert [p.size for p in read_cubin(cubin).kernels["exponential"].parameters] == [8]
    if arch == "sm_100a":
        counts = histogram(parse(disassemble(cubin)))
        assert (counts["LDG"], counts["STG"]) == (1, 1) and counts["MUFU"] >= 1


def test_no_optimisation_keeps_more():
    slow, fast = (len(libnvvm.compile_ir(MODULE, "sm_100a", opt_level=level)) for level in (0, 3))
    assert slow > fast


def test_line_numbers_and_metadata_stay():
    text = libnvvm.for_library(MODULE)
    for number, line in enumerate(MODULE.splitlines()[4:], 5):
        assert text.splitlines()[number - 1] == line
    assert "!nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0, i32 3," in text
    assert libnvvm.for_library(text).count("!nvvmir.version") == 1


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_older_chips_are_refused(arch):
    with pytest.raises(CompileError, match=f"libNVVM cannot compile for {arch}") as error:
        libnvvm.compile_ir(MODULE, arch)
    assert "LLVM's own backend" in error.value.hint


def test_a_refusal_has_the_documented_form():
    with pytest.raises(CompileError) as error:
        libnvvm.compile_ir(MODULE.replace("float %y, ptr", "float %nothing, ptr"), "sm_100a")
    message = str(error.value)
    line = MODULE.splitlines().index("  store float %y, ptr addrspace(1) %q, align 4") + 1
    assert message.startswith("NVVM Compilation Error:\n----------------------\n\nCurrent Settings:\n")
    assert "- Target Architecture: sm_100a" in message
    assert f"({line}, " in message and "use of undefined value '%nothing'" in message
    assert "in: store float %nothing" in message
    assert "Possible Solutions:\n1. " in message
    assert "undefined value" in error.value.nvvm_error
    assert f"> {line:5} |" in error.value.ir_context


def test_a_text_that_is_no_ir():
    with pytest.raises(CompileError, match="NVVM Compilation Error"):
        libnvvm.compile_ir("garbage", "sm_100a")


def test_libraries_are_linked():
    callee = """target triple = "nvptx64-nvidia-cuda"
define i32 @seven() { ret i32 7 }
"""
    caller = """target triple = "nvptx64-nvidia-cuda"
declare i32 @seven()
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %v = call i32 @seven()
  store i32 %v, ptr addrspace(1) %p
  ret void
}
"""
    ptx = libnvvm.compile_ir(caller, "sm_100a", libraries=[callee.encode()])
    assert "call" not in ptx and "7;" in ptx


def test_versions():
    assert libnvvm.version() >= (2, 0)
    assert libnvvm.llvm_version("sm_100a") >= 20
    assert libnvvm.llvm_version("sm_90a") == 7


def test_a_library_that_does_not_load(tmp_path, monkeypatch):
    broken = tmp_path / "libnvvm.so.4"
    broken.write_bytes(b"no library")
    tool = toolchain.Tool("libnvvm", broken, tmp_path, "package")
    monkeypatch.setattr(toolchain, "find", lambda name: tool)
    with pytest.raises(CompileError, match="cannot load libNVVM"):
        libnvvm.compile_ir(MODULE, "sm_100a")


def test_contraction_only_where_asked():
    module = """
define ptx_kernel void @k(ptr addrspace(1) %p, float %a, float %b, float %c) {
  %x = fmul float %a, %b
  %y = fadd float %x, %c
  store float %y, ptr addrspace(1) %p, align 4
  %u = fmul contract float %b, %b
  %v = fadd contract float %u, %c
  %q = getelementptr float, ptr addrspace(1) %p, i32 1
  store float %v, ptr addrspace(1) %q, align 4
  ret void
}
"""
    words = [line.split()[0] for line in libnvvm.compile_ir(module, "sm_100a").splitlines() if ".rn.f32" in line]
    assert words == ["mul.rn.f32", "add.rn.f32", "fma.rn.f32"]


def test_text_of_the_user_in_a_child():
    assert compile_ir_in_child(MODULE, "sm_100a") == libnvvm.compile_ir(MODULE, "sm_100a")
    with pytest.raises(CompileError, match="expected value token") as error:
        compile_ir_in_child(MODULE.replace("float %x)", "float )"), "sm_100a")
    assert "NVVM Compilation Error:" in str(error.value) and error.value.nvvm_error
