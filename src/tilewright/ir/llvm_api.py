"""LLVM's C API by ctypes: contexts, modules, target machines and the errors they report.

A `Context` belongs to one thread; threads work side by side, since ctypes releases the GIL while LLVM runs.
Names and enumerations are those of `llvm-c/*.h`, LLVM 22.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import re
import threading
from collections.abc import Callable, Collection, Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Self

from tilewright.base.errors import CompileError
from tilewright.ir.mlir import libllvm

# Enumerations of llvm-c/TargetMachine.h, Analysis.h and Core.h.
ASSEMBLY, OBJECT = 0, 1
_RELOC_PIC, _CODE_MODEL_SMALL = 2, 3
_RETURN_STATUS = 2
_SEVERITY_ERROR = 0
LINK_ONCE_ODR, INTERNAL = 3, 8

_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_OUT = POINTER(c_void_p)

Prototypes = dict[str, tuple[Any, tuple[Any, ...]]]
"""By name of a C function: its result, and its arguments."""

_PROTOTYPES: Prototypes = {
    "LLVMContextCreate": (c_void_p, ()),
    "LLVMContextDispose": (None, (c_void_p,)),
    "LLVMContextSetDiagnosticHandler": (None, (c_void_p, _HANDLER, c_void_p)),
    "LLVMGetDiagInfoDescription": (c_void_p, (c_void_p,)),
    "LLVMGetDiagInfoSeverity": (c_int, (c_void_p,)),
    "LLVMDisposeMessage": (None, (c_void_p,)),
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (c_void_p, (c_char_p, c_size_t, c_char_p)),
    "LLVMGetBufferStart": (c_void_p, (c_void_p,)),
    "LLVMGetBufferSize": (c_size_t, (c_void_p,)),
    "LLVMDisposeMemoryBuffer": (None, (c_void_p,)),
    "LLVMParseIRInContext": (c_int, (c_void_p, c_void_p, _OUT, _OUT)),
    "LLVMGetBitcodeModuleInContext2": (c_int, (c_void_p, c_void_p, _OUT)),
    "LLVMWriteBitcodeToMemoryBuffer": (c_void_p, (c_void_p,)),
    "LLVMDisposeModule": (None, (c_void_p,)),
    "LLVMPrintModuleToString": (c_void_p, (c_void_p,)),
    "LLVMVerifyModule": (c_int, (c_void_p, c_int, _OUT)),
    "LLVMLinkModules2": (c_int, (c_void_p, c_void_p)),
    "LLVMSetTarget": (None, (c_void_p, c_char_p)),
    "LLVMSetModuleDataLayout": (None, (c_void_p, c_void_p)),
    "LLVMGetFirstFunction": (c_void_p, (c_void_p,)),
    "LLVMGetNextFunction": (c_void_p, (c_void_p,)),
    "LLVMGetFirstGlobal": (c_void_p, (c_void_p,)),
    "LLVMGetNextGlobal": (c_void_p, (c_void_p,)),
    "LLVMGetNamedFunction": (c_void_p, (c_void_p, c_char_p)),
    "LLVMGetValueName2": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "LLVMGlobalGetValueType": (c_void_p, (c_void_p,)),
    "LLVMPrintTypeToString": (c_void_p, (c_void_p,)),
    "LLVMIsDeclaration": (c_int, (c_void_p,)),
    "LLVMGetLinkage": (c_int, (c_void_p,)),
    "LLVMSetLinkage": (None, (c_void_p, c_int)),
    "LLVMGetTargetFromTriple": (c_int, (c_char_p, _OUT, _OUT)),
    "LLVMCreateTargetMachine": (c_void_p, (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int)),
    "LLVMDisposeTargetMachine": (None, (c_void_p,)),
    "LLVMCreateTargetDataLayout": (c_void_p, (c_void_p,)),
    "LLVMDisposeTargetData": (None, (c_void_p,)),
    "LLVMTargetMachineEmitToMemoryBuffer": (c_int, (c_void_p, c_void_p, c_int, _OUT, _OUT)),
    "LLVMCreatePassBuilderOptions": (c_void_p, ()),
    "LLVMDisposePassBuilderOptions": (None, (c_void_p,)),
    "LLVMPassBuilderOptionsSetSLPVectorization": (None, (c_void_p, c_int)),
    "LLVMRunPasses": (c_void_p, (c_void_p, c_char_p, c_void_p, c_void_p)),
    "LLVMGetErrorMessage": (c_void_p, (c_void_p,)),
    "LLVMDisposeErrorMessage": (None, (c_void_p,)),
    "LLVMGetDefaultTargetTriple": (c_void_p, ()),
    "LLVMGetHostCPUName": (c_void_p, ()),
    "LLVMGetHostCPUFeatures": (c_void_p, ()),
}

_HOST_BACKEND = {"x86_64": "X86", "aarch64": "AArch64", "arm64": "AArch64"}

_lock = threading.Lock()


class LlvmError(CompileError):
    """LLVM refused a module. `line` and `column` count from 1, 0 where LLVM names none."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0, **details: Any) -> None:
        super().__init__(message, **details)
        self.line = line
        self.column = column


@functools.cache
def _load() -> ctypes.CDLL:
    host = _HOST_BACKEND.get(platform.machine())
    if host is None:
        raise CompileError(f"no host code for {platform.machine()} processors", hint="x86-64 and AArch64 are known")
    llvm = libllvm()
    _declare(llvm, _PROTOTYPES)
    for backend in ("NVPTX", *dict.fromkeys(_HOST_BACKEND.values())):
        for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
            getattr(llvm, f"LLVMInitialize{backend}{part}")()
    getattr(llvm, f"LLVMInitialize{host}AsmParser")()
    return llvm


def _declare(llvm: ctypes.CDLL, prototypes: Prototypes) -> None:
    for name, (result, arguments) in prototypes.items():
        function = getattr(llvm, name)
        function.restype, function.argtypes = result, arguments


def api_with(prototypes: Prototypes) -> ctypes.CDLL:
    """libLLVM as `api` gives it, with further functions declared."""
    llvm = api()
    _declare(llvm, prototypes)
    return llvm


def api() -> ctypes.CDLL:
    """libLLVM with its prototypes set and its targets ready."""
    with _lock:
        return _load()


def take_text(pointer: int | None, dispose: Callable[[Any], None]) -> str:
    """The text at `pointer`, which LLVM allocated and `dispose` frees."""
    if not pointer:
        return ""
    text = ctypes.string_at(pointer).decode(errors="replace")
    dispose(pointer)
    return text


class Context:
    """An LLVM context, its modules, and the diagnostics raised in it. Used by one thread, in a `with` block.

    Args:
        source: the text that the user knows, to show the line which an error names.
    """

    def __init__(self, source: str = "") -> None:
        self.llvm = api()
        self.source = source
        self.errors: list[str] = []
        self._modules: set[int] = set()
        self._handler = _HANDLER(self._on_diagnostic)

    def __enter__(self) -> Self:
        self.handle = self.llvm.LLVMContextCreate()
        self.llvm.LLVMContextSetDiagnosticHandler(self.handle, self._handler, None)
        return self

    def __exit__(self, *_: object) -> None:
        for module in self._modules:
            self.llvm.LLVMDisposeModule(module)
        self.llvm.LLVMContextDispose(self.handle)

    def _on_diagnostic(self, info: int, _: object) -> None:
        text = take_text(self.llvm.LLVMGetDiagInfoDescription(info), self.llvm.LLVMDisposeMessage)
        if self.llvm.LLVMGetDiagInfoSeverity(info) == _SEVERITY_ERROR:
            self.errors.append(text)

    def parse(self, ir: str | bytes, name: str = "<llvm>") -> int:
        """A verified module from LLVM IR text or bitcode."""
        data = ir.encode() if isinstance(ir, str) else ir
        buffer = self.llvm.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), name.encode())
        module, message = c_void_p(), c_void_p()
        if self.llvm.LLVMParseIRInContext(self.handle, buffer, byref(module), byref(message)):  # takes the buffer
            raise self.error("LLVM IR does not parse", take_text(message.value, self.llvm.LLVMDisposeMessage))
        assert module.value
        self._modules.add(module.value)
        if self.llvm.LLVMVerifyModule(module, _RETURN_STATUS, byref(message)):
            raise self.error("LLVM IR is not valid", take_text(message.value, self.llvm.LLVMDisposeMessage))
        self.llvm.LLVMDisposeMessage(message)
        return module.value

    def check_function(self, module: int, name: str, type_: str) -> None:
        """Require that `module` defines function `name` with the type that LLVM prints as `type_`."""
        function = self.llvm.LLVMGetNamedFunction(module, name.encode())
        if not function or self.llvm.LLVMIsDeclaration(function):
            raise LlvmError(f"LLVM IR does not define the function {name!r}")
        printed = self.llvm.LLVMPrintTypeToString(self.llvm.LLVMGlobalGetValueType(function))
        found = take_text(printed, self.llvm.LLVMDisposeMessage)
        if found != type_:
            raise LlvmError(f"function {name!r} has the wrong type", values={"expected": type_, "found": found})

    def symbols(self, module: int) -> Iterator[tuple[str, int]]:
        """The functions and globals of `module`, by name."""
        length = c_size_t()
        for kind in ("Function", "Global"):
            value = getattr(self.llvm, f"LLVMGetFirst{kind}")(module)
            while value:
                name = self.llvm.LLVMGetValueName2(value, byref(length))
                yield ctypes.string_at(name, length.value).decode(), value
                value = getattr(self.llvm, f"LLVMGetNext{kind}")(value)

    def make_private(self, module: int, keep: Collection[str]) -> None:
        """Make every symbol that `module` defines private to it, but those named."""
        for name, value in self.symbols(module):
            # LLVM's own variables (llvm.used, ...) bear their linkage.
            if name not in keep and not name.startswith("llvm.") and not self.llvm.LLVMIsDeclaration(value):
                self.llvm.LLVMSetLinkage(value, INTERNAL)

    def link(self, module: int, other: int) -> None:
        """Move the contents of module `other`, which ends here, into `module`."""
        self._modules.discard(other)
        if self.llvm.LLVMLinkModules2(module, other):
            raise self.error("LLVM modules do not link")

    def adopt(self, module: int) -> int:
        """Dispose `module`, made in this context by the caller, with the context."""
        self._modules.add(module)
        return module

    def take_buffer(self, buffer: int) -> bytes:
        """The bytes of an LLVM memory buffer, which ends here."""
        data = ctypes.string_at(self.llvm.LLVMGetBufferStart(buffer), self.llvm.LLVMGetBufferSize(buffer))
        self.llvm.LLVMDisposeMemoryBuffer(buffer)
        return data

    def error(self, what: str, message: str = "") -> LlvmError:
        """The error for a step that failed: `message`, or else the diagnostics collected so far."""
        text = (message or "\n".join(self.errors)).strip()
        place = re.match(r"[^\n]*?:(\d+):(\d+): error: ([^\n]*)", text)
        if not place:
            return LlvmError(f"{what}: {text.partition(chr(10))[0]}", nvvm_error=text)
        line, column = int(place[1]), int(place[2])
        values = {f"line {line}": _line_of(self.source, line)}
        message = f"{what}: line {line}, column {column}: {place[3]}"
        return LlvmError(message, line=line, column=column, values=values, nvvm_error=text)


def _line_of(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


class Machine:
    """A target machine: chip, features and optimisation levels of one compilation, in a `with` block."""

    packs = True
    """Whether the default pipeline looks for scalar operations to pack into vectors (a quarter of its time)."""

    def __init__(self, triple: str, cpu: str, features: str, opt_level: int, codegen_level: int) -> None:
        self.llvm = api()
        self.triple = triple.encode()
        target, message = c_void_p(), c_void_p()
        if self.llvm.LLVMGetTargetFromTriple(self.triple, byref(target), byref(message)):
            text = take_text(message.value, self.llvm.LLVMDisposeMessage)
            raise CompileError(f"LLVM has no target {triple}", nvvm_error=text)
        self.handle = self.llvm.LLVMCreateTargetMachine(
            target, self.triple, cpu.encode(), features.encode(), codegen_level, _RELOC_PIC, _CODE_MODEL_SMALL
        )
        self.pipeline = f"default<O{opt_level}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.llvm.LLVMDisposeTargetMachine(self.handle)

    def aim(self, module: int) -> None:
        """Give `module` the triple and data layout of this machine."""
        layout = self.llvm.LLVMCreateTargetDataLayout(self.handle)
        self.llvm.LLVMSetTarget(module, self.triple)
        self.llvm.LLVMSetModuleDataLayout(module, layout)
        self.llvm.LLVMDisposeTargetData(layout)

    def optimise(self, context: Context, module: int) -> None:
        """Run LLVM's default pipeline of this machine's level."""
        self.run_passes(context, module, self.pipeline)

    def run_passes(self, context: Context, module: int, pipeline: str) -> None:
        """Run the passes that `pipeline` names, in the notation of LLVM's `opt -passes=`."""
        options = self.llvm.LLVMCreatePassBuilderOptions()
        self.llvm.LLVMPassBuilderOptionsSetSLPVectorization(options, self.packs)
        error = self.llvm.LLVMRunPasses(module, pipeline.encode(), self.handle, options)
        self.llvm.LLVMDisposePassBuilderOptions(options)
        text = take_text(self.llvm.LLVMGetErrorMessage(error), self.llvm.LLVMDisposeErrorMessage) if error else ""
        if text or context.errors:
            raise context.error("LLVM cannot optimise the module", text)

    def emit(self, context: Context, module: int, kind: int) -> bytes:
        """Assembly or an object of `module`."""
        buffer, message = c_void_p(), c_void_p()
        failed = self.llvm.LLVMTargetMachineEmitToMemoryBuffer(self.handle, module, kind, byref(message), byref(buffer))
        text = take_text(message.value, self.llvm.LLVMDisposeMessage) if failed else ""
        data = context.take_buffer(buffer.value) if buffer.value else b""
        if failed or context.errors:
            raise context.error("LLVM cannot generate code", text)
        return data
