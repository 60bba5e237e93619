"""NVIDIA's libdevice: the device math functions (`__nv_sinf`, ...) that a module calls, and only those.

The library is loaded lazily with its functions marked link-once, so that LLVM's linker reads the bodies of the
called functions alone: 2 ms for the first use of a set of functions against 22 ms for the library whole. The
extract is kept for the process and links in a fraction of that.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from ctypes import byref, c_void_p
from pathlib import Path

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.ir.llvm_api import INTERNAL, LINK_ONCE_ODR, Context, LlvmError
from tilewright.ir.reflect import answer_reflect

_PREFIX = "__nv_"
_FILE = Path("nvvm", "libdevice", "libdevice.10.bc")


def find_libdevice() -> Path:
    """The file libdevice.10.bc, of the installed packages or else of the toolkit that the settings name."""
    spec = importlib.util.find_spec("nvidia")
    packages = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    folders = [folder / name for folder in packages for name in ("cu13", "cu12", "cuda_nvcc")]
    toolkit = settings.get("toolkit")
    folders += [Path(toolkit)] if toolkit else []
    for folder in folders:
        if (path := folder / _FILE).exists():
            return path
    raise CompileError(
        "libdevice is not installed", values={"file": _FILE}, hint="pip install nvidia-nvvm nvidia-cuda-nvcc"
    )


def link_libdevice(context: Context, module: int) -> None:
    """Give every `__nv_` function that `module` declares its body, private to the module.

    Subnormals are kept: `__nvvm_reflect("__CUDA_FTZ")` is 0 unless the module sets its flag `nvvm-reflect-ftz`.
    Square roots are rounded to nearest, as nvcc has them by default: `__nvvm_reflect("__CUDA_PREC_SQRT")` is 1.

    Raises:
        LlvmError: libdevice has no such function.
    """
    names = frozenset(name for name, function in context.symbols(module) if _is_declared(context, name, function))
    if not names:
        return
    context.link(module, context.parse(_extract(names), "libdevice"))
    for name in names:
        function = context.llvm.LLVMGetNamedFunction(module, name.encode())
        context.llvm.LLVMSetLinkage(function, INTERNAL)


def _is_declared(context: Context, name: str, function: int) -> bool:
    return name.startswith(_PREFIX) and bool(context.llvm.LLVMIsDeclaration(function))


@functools.lru_cache(maxsize=256)
def _extract(names: frozenset[str]) -> bytes:
    """Bitcode of the functions `names` and what they call."""
    # Only the names count: the linker takes the type from the definition.
    wanted = "\n".join(f"declare void @{name}()" for name in sorted(names))
    with Context() as context:
        module = context.parse(wanted)
        context.link(module, _load_lazily(context))
        missing = [name for name, function in context.symbols(module) if _is_declared(context, name, function)]
        if missing:
            raise LlvmError(f"libdevice has no function {', '.join(sorted(missing))}")
        answer_reflect(module, {"__CUDA_PREC_SQRT": 1})
        return context.take_buffer(context.llvm.LLVMWriteBitcodeToMemoryBuffer(module))


def _load_lazily(context: Context) -> int:
    llvm, module = context.llvm, c_void_p()
    data = _bitcode()
    buffer = llvm.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), b"libdevice")
    if llvm.LLVMGetBitcodeModuleInContext2(context.handle, buffer, byref(module)) or not module.value:
        llvm.LLVMDisposeMemoryBuffer(buffer)
        raise context.error(f"{find_libdevice()} is not LLVM bitcode")
    _mark_link_once(llvm, context.adopt(module.value))
    return module.value


def _mark_link_once(llvm: ctypes.CDLL, module: int) -> None:
    following, declared, set_linkage = llvm.LLVMGetNextFunction, llvm.LLVMIsDeclaration, llvm.LLVMSetLinkage
    function = llvm.LLVMGetFirstFunction(module)
    while function:
        if not declared(function):
            set_linkage(function, LINK_ONCE_ODR)
        function = following(function)


@functools.cache
def _bitcode() -> bytes:
    return find_libdevice().read_bytes()
