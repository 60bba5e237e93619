"""libdevice: only what a module calls is linked, and it vanishes into the caller."""

import re

import pytest

from tilewright.base.errors import CompileError
from tilewright.ir import libdevice, llvm
from tilewright.ir.llvm_api import Context


def kernel(*names, type_="float"):
    declarations = "\n".join(f"declare {type_} @{name}({type_})" for name in names)
    calls, value = [], "%x"
    for index, name in enumerate(names):
        calls.append(f"  %v{index} = call {type_} @{name}({type_} {value})")
        value = f"%v{index}"
    body = "\n".join(calls)
    return (
        f"{declarations}\ndefine ptx_kernel void @k(ptr addrspace(1) %a, {type_} %x) {{\n{body}\n"
        f"  store {type_} {value}, ptr addrspace(1) %a\n  ret void\n}}\n"
    )


def ptx_of(text, **arguments):
    return llvm.emit_ptx(text, chip="sm_90a", ptx_version="8.7", **arguments)


def test_function_is_inlined():
    ptx = ptx_of(kernel("__nv_tanhf"))
    assert "__nv_" not in ptx
    assert "ex2.approx.ftz.f32" in ptx
    assert "__nvvm_reflect" not in ptx


def test_subnormals_are_kept():
    assert "sqrt.rn.f32" in ptx_of(kernel("__nv_fsqrt_rn"))
    assert ".ftz" not in ptx_of(kernel("__nv_fmaf_rn").replace("(float)", "(float, float, float)").replace(
        "(float %x)\n  store", "(float %x, float %x, float %x)\n  store"))  # fmt: skip


def test_square_roots_are_rounded():
    ptx = ptx_of(kernel("__nv_sqrtf"))
    assert "sqrt.rn.f32" in ptx and "sqrt.approx" not in ptx
    assert "\tsqrt.approx" not in ptx_of(kernel("__nv_hypotf").replace("(float)", "(float, float)").replace(
        "(float %x)\n  store", "(float %x, float 3.0)\n  store"))  # fmt: skip


def test_functions_share_their_tables():
    ptx = ptx_of(kernel("__nv_sin", "__nv_cos", type_="double"))
    assert len(re.findall(r"\.global .* __cudart_sin_cos_coeffs\b", ptx)) == 1


def test_function_that_calls_another():
    ptx = ptx_of(kernel("__nv_pow", type_="double").replace("(double)", "(double, double)").replace(
        "(double %x)\n", "(double %x, double 3.0)\n"))  # fmt: skip
    assert "__nv_" not in ptx
    assert ptx.count(".visible") == 1


def test_own_definition_wins():
    own = "define float @__nv_sinf(float %x) alwaysinline {\n  ret float 42.0\n}\n"
    text = kernel("__nv_sinf").replace("declare float @__nv_sinf(float)", own)
    assert "1109917696" in ptx_of(text)  # the bits of 42.0


def test_linking_can_be_left_out():
    assert ".extern .func  (.param .b32 func_retval0) __nv_sinf" in ptx_of(kernel("__nv_sinf"), libdevice=False)


def test_unknown_function_is_named():
    with pytest.raises(llvm.LlvmError, match="libdevice has no function __nv_sinq"):
        ptx_of(kernel("__nv_sinq"))


def test_modules_without_calls_are_left_alone():
    with Context() as context:
        module = context.parse("define i32 @f() {\n ret i32 0\n}")
        before = context.take_buffer(context.llvm.LLVMWriteBitcodeToMemoryBuffer(module))
        libdevice.link_libdevice(context, module)
        assert context.take_buffer(context.llvm.LLVMWriteBitcodeToMemoryBuffer(module)) == before


def test_missing_library(monkeypatch):
    monkeypatch.setattr(libdevice, "_FILE", libdevice.Path("no", "such.bc"))
    with pytest.raises(CompileError, match="libdevice is not installed") as caught:
        libdevice.find_libdevice()
    assert "pip install" in caught.value.hint


def test_toolkit_setting_is_searched(monkeypatch, tmp_path):
    monkeypatch.setattr(libdevice, "_FILE", libdevice.Path("nvvm", "other.bc"))
    (tmp_path / "nvvm").mkdir()
    (tmp_path / "nvvm" / "other.bc").touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert libdevice.find_libdevice() == tmp_path / "nvvm" / "other.bc"


def test_the_extract_is_kept():
    libdevice._extract.cache_clear()
    ptx_of(kernel("__nv_expf"))
    ptx_of(kernel("__nv_expf"))
    assert libdevice._extract.cache_info()[:2] == (1, 1)


@pytest.mark.parametrize(("name", "others"), [("__nv_expf", set()), ("__nv_pow", {"__internal_accurate_pow"})])
def test_nothing_is_read_but_what_is_called(name, others):
    """The rest of the library, 99 parts of 100, is never made from its bitcode: that is what makes linking fast."""
    extract = libdevice._extract(frozenset({name}))
    with Context() as context:
        module = context.parse(extract)
        functions = {symbol for symbol, _ in context.symbols(module) if symbol.startswith(("__nv_", "__internal_"))}
    assert functions == {name} | others
    assert len(extract) < len(libdevice._bitcode()) / 50
