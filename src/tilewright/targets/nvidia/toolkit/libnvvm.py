"""libNVVM as a second way from LLVM IR to PTX, for sm_100 and newer.

Below sm_100 the library reads the IR of LLVM 7 only. Signatures: `nvvm.h` of CUDA 13; the metadata that it asks for:
NVVM IR Specification, "NVVM IR version".
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Final

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.hw.chips import chip
from tilewright.targets.nvidia.toolkit import toolchain
from tilewright.targets.nvidia.toolkit.diagnose import compilation_error, excerpt

FIRST_CHIP: Final = 100
"""The number of the first architecture whose IR is that of a current LLVM."""

DATA_LAYOUT: Final = (
    "e-p:64:64:64-p6:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "f128:128:128-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64-a:8:8"
)
"""NVVM IR Specification, "Data Layout", for 64 bits."""

TRIPLE: Final = "nvptx64-nvidia-cuda"

_BITCODE: Final = b"BC\xc0\xde"

_ADVICE: Final = (
    "Check the text given by override=, or left by a pass, for stage llvm",
    "Use LLVM's own backend, which is the default",
    "Check that nvidia-nvvm is at least as new as the LLVM that wrote the text",
)


def _library() -> Any:
    return _load(str(toolchain.find("libnvvm").path))


@functools.cache
def _load(path: str) -> Any:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise CompileError(f"cannot load libNVVM: {error}", hint=toolchain.remedy("libnvvm")) from error
    program = c_void_p
    signatures: dict[str, tuple[Any, ...]] = {
        "nvvmVersion": (POINTER(c_int), POINTER(c_int)),
        "nvvmIRVersion": (POINTER(c_int),) * 4,
        "nvvmLLVMVersion": (c_char_p, POINTER(c_int)),
        "nvvmCreateProgram": (POINTER(program),),
        "nvvmDestroyProgram": (POINTER(program),),
        "nvvmAddModuleToProgram": (program, c_char_p, c_size_t, c_char_p),
        "nvvmLazyAddModuleToProgram": (program, c_char_p, c_size_t, c_char_p),
        "nvvmCompileProgram": (program, c_int, POINTER(c_char_p)),
        "nvvmGetCompiledResultSize": (program, POINTER(c_size_t)),
        "nvvmGetCompiledResult": (program, c_void_p),
        "nvvmGetProgramLogSize": (program, POINTER(c_size_t)),
        "nvvmGetProgramLog": (program, c_void_p),
    }
    for name, arguments in signatures.items():
        function = getattr(library, name, None)
        if function is None and name == "nvvmLLVMVersion":  # toolkits before 13.1
            continue
        assert function is not None
        function.argtypes = arguments
        function.restype = c_int
    library.nvvmGetErrorString.argtypes = (c_int,)
    library.nvvmGetErrorString.restype = c_char_p
    return library


def version() -> tuple[int, int]:
    """The version of the library: (2, 0)."""
    major, minor = c_int(), c_int()
    _library().nvvmVersion(byref(major), byref(minor))
    return major.value, minor.value


def llvm_version(arch: str) -> int:
    """The major version of LLVM whose IR the library reads for an architecture; 0 where it knows none."""
    query = getattr(_library(), "nvvmLLVMVersion", None)
    if query is None:
        return 0
    major = c_int()
    status = query(_virtual(arch).encode(), byref(major))
    return major.value if status == 0 else 0


def _virtual(arch: str) -> str:
    return chip(arch).arch.replace("sm_", "compute_")


def for_library(ir_text: str) -> str:
    """The text as the library wants it, with the same line numbers: its own data layout, triple and IR version named.

    LLVM and the library spell the same layout in two ways, and each refuses the other's.
    """
    ir_text = re.sub(r"^target (datalayout|triple)\b.*$", "", ir_text, flags=re.MULTILINE)
    ir_text = f'target datalayout = "{DATA_LAYOUT}" target triple = "{TRIPLE}" {ir_text}'
    if re.search(r"^!nvvmir\.version\s*=", ir_text, re.MULTILINE):
        return ir_text
    numbers = (c_int * 4)()
    places = [ctypes.cast(byref(numbers, 4 * i), POINTER(c_int)) for i in range(4)]
    _library().nvvmIRVersion(*places)
    used = [int(number) for number in re.findall(r"^!(\d+)\s*=", ir_text, re.MULTILINE)]
    node = max(used, default=-1) + 1
    fields = ", ".join(f"i32 {number}" for number in numbers)
    return f"{ir_text.rstrip()}\n\n!nvvmir.version = !{{!{node}}}\n!{node} = !{{{fields}}}\n"


def compile_ir(ir_text: str, arch: str, *, opt_level: int = 3, libraries: Sequence[bytes] = ()) -> str:
    """PTX of an LLVM module, in the newest PTX version that the library writes.

    Args:
        ir_text: LLVM IR text, kernels with the calling convention `ptx_kernel`.
        arch: the target, sm_100 or newer.
        opt_level: 0 to 3.
        libraries: bitcode to link what is needed from, or text, which is linked whole; libdevice is always at hand.

    Raises:
        CompileError: an older target, a missing library, or a refusal with settings, reason and solutions; then
            `nvvm_error` is the library's log.
    """
    target = chip(arch)
    if target.number < FIRST_CHIP:
        raise CompileError(
            f"libNVVM cannot compile for {target.arch}",
            values={"architecture": target.arch, "first": f"sm_{FIRST_CHIP}"},
            hint="use LLVM's own backend, which is the default",
        )
    library = _library()
    program = c_void_p()
    library.nvvmCreateProgram(byref(program))
    try:
        return _compile(library, program, for_library(ir_text), target.arch, opt_level, libraries)
    finally:
        library.nvvmDestroyProgram(byref(program))


def _compile(library: Any, program: c_void_p, text: str, arch: str, opt_level: int, libraries: Sequence[bytes]) -> str:
    modules = [*libraries, *([_libdevice()] if "@__nv_" in text else [])]
    # The library has no levels between none and all. It would contract every product and sum; ours say where.
    options = [f"-arch={_virtual(arch)}", f"-opt={0 if opt_level == 0 else 3}", "-fma=0"]
    data = text.encode()
    status = library.nvvmAddModuleToProgram(program, data, len(data), b"kernel.ll")
    for module in modules:
        status = status or _add_library(library, program, module)
    if status == 0:
        texts = (c_char_p * len(options))(*(option.encode() for option in options))
        status = library.nvvmCompileProgram(program, len(options), texts)
    if status != 0:
        log = _take(library, program, "ProgramLog") or library.nvvmGetErrorString(status).decode()
        raise _refusal(text, arch, options, log)
    return _take(library, program, "CompiledResult")


def _add_library(library: Any, program: c_void_p, module: bytes) -> int:
    if module.startswith(_BITCODE):
        return int(library.nvvmLazyAddModuleToProgram(program, module, len(module), b"library"))
    text = for_library(module.decode(errors="replace")).encode()
    return int(library.nvvmAddModuleToProgram(program, text, len(text), b"library.ll"))


def _libdevice() -> bytes:
    return toolchain.find("libdevice").path.read_bytes()


def _take(library: Any, program: c_void_p, name: str) -> str:
    size = c_size_t()
    if getattr(library, f"nvvmGet{name}Size")(program, byref(size)) or not size.value:
        return ""
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvvmGet{name}")(program, buffer)
    return buffer.value.decode(errors="replace")


def _refusal(text: str, arch: str, options: Sequence[str], log: str) -> CompileError:
    found = re.search(r"\((\d+), \d+\)", log)
    context = excerpt(text, int(found[1])) if found else ""
    shown = {
        "CUDA Toolkit Path": settings.get("toolkit") or "(installed packages)",
        "Tool": "libNVVM {}.{}".format(*version()),
        "Target Architecture": arch,
        "Options": " ".join(options),
    }
    line = text.splitlines()[int(found[1]) - 1].strip() if found and int(found[1]) <= text.count("\n") else ""
    reason = log.strip()
    return compilation_error(
        "libnvvm", shown, f"{reason}\n  in: {line}" if line else reason, context, _ADVICE, tool_text=log
    )
