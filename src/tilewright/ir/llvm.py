"""LLVM from Python: IR text to PTX, and IR text to a host object, through LLVM's C API.

Every call owns one LLVM context, so threads compile side by side: ctypes releases the GIL while LLVM works.
What LLVM reports becomes `LlvmError`. What LLVM *aborts* on cannot be caught in a process; text that the
user wrote therefore goes through `emit_ptx_in_child`.
"""

from __future__ import annotations

import ctypes
import functools
import json
import pickle
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir.mlir import libllvm

NVPTX_TRIPLE = "nvptx64-nvidia-cuda"

# Enumerations of llvm-c/TargetMachine.h, Analysis.h and Core.h.
_ASSEMBLY, _OBJECT = 0, 1
_RELOC_PIC, _CODE_MODEL_SMALL = 2, 3
_RETURN_STATUS = 2
_SEVERITY_ERROR = 0

_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_OUT = POINTER(c_void_p)

_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
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
    "LLVMVerifyModule": (c_int, (c_void_p, c_int, _OUT)),
    "LLVMLinkModules2": (c_int, (c_void_p, c_void_p)),
    "LLVMSetTarget": (None, (c_void_p, c_char_p)),
    "LLVMSetModuleDataLayout": (None, (c_void_p, c_void_p)),
    "LLVMGetFirstFunction": (c_void_p, (c_void_p,)),
    "LLVMGetNextFunction": (c_void_p, (c_void_p,)),
    "LLVMGetNamedFunction": (c_void_p, (c_void_p, c_char_p)),
    "LLVMGetValueName2": (c_void_p, (c_void_p, POINTER(c_size_t))),
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
    llvm = libllvm()
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(llvm, name)
        function.restype, function.argtypes = result, arguments
    for backend in ("NVPTX", _HOST_BACKEND[platform.machine()]):
        for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
            getattr(llvm, f"LLVMInitialize{backend}{part}")()
    getattr(llvm, f"LLVMInitialize{_HOST_BACKEND[platform.machine()]}AsmParser")()
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

    def __enter__(self) -> Context:
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
    """A target machine: chip, features and optimisation level of one compilation, in a `with` block."""

    def __init__(self, triple: str, cpu: str, features: str, opt_level: int) -> None:
        self.llvm = api()
        self.triple = triple.encode()
        target, message = c_void_p(), c_void_p()
        if self.llvm.LLVMGetTargetFromTriple(self.triple, byref(target), byref(message)):
            text = take_text(message.value, self.llvm.LLVMDisposeMessage)
            raise CompileError(f"LLVM has no target {triple}", nvvm_error=text)
        self.handle = self.llvm.LLVMCreateTargetMachine(
            target, self.triple, cpu.encode(), features.encode(), opt_level, _RELOC_PIC, _CODE_MODEL_SMALL
        )
        self.passes = f"default<O{opt_level}>".encode()

    def __enter__(self) -> Machine:
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
        options = self.llvm.LLVMCreatePassBuilderOptions()
        error = self.llvm.LLVMRunPasses(module, self.passes, self.handle, options)
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


def link_bitcode(context: Context, module: int, links: Sequence[bytes | str]) -> None:
    """Link LLVM bitcode or IR text into `module`; a symbol defined twice is an error that names it."""
    for position, link in enumerate(links):
        context.link(module, context.parse(link, f"<link {position}>"))


def emit_ptx(
    ir_text: str | bytes, *, chip: str, ptx_version: str, opt_level: int = 3, links: Sequence[bytes | str] = ()
) -> str:
    """PTX text of an LLVM module.

    Args:
        ir_text: LLVM IR text (or bitcode).
        chip: `sm_90a` and the like; the caller has checked that it exists, LLVM takes any.
        ptx_version: `8.7` and the like; it must be one that `chip` has, else LLVM ends the process.
        opt_level: 0 to 3.
        links: further modules (bitcode or text) to link in first.

    Raises:
        LlvmError: the text is malformed (with its line), an inline-assembly constraint does not exist, modules do
            not link, or LLVM knows no such PTX version.
    """
    features = "+ptx" + ptx_version.replace(".", "")
    source = ir_text if isinstance(ir_text, str) else ""
    with Context(source) as context, Machine(NVPTX_TRIPLE, chip, features, opt_level) as machine:
        module = context.parse(ir_text)
        machine.aim(module)
        link_bitcode(context, module, links)
        machine.optimise(context, module)
        ptx = machine.emit(context, module, _ASSEMBLY).decode()
    _check_target(ptx, chip, ptx_version)
    return ptx


def _check_target(ptx: str, chip: str, ptx_version: str) -> None:
    # LLVM takes an unknown PTX version in silence and writes some default instead.
    for directive, wanted in ((".version", ptx_version), (".target", chip)):
        found = re.search(rf"^\{directive} ([\w.]+)", ptx, re.MULTILINE)
        if not found or found[1] != wanted:
            got = found[1] if found else "nothing"
            raise LlvmError(f"LLVM does not know {directive} {wanted}", values={"asked for": wanted, "written": got})


@functools.cache
def _host() -> tuple[str, str, str]:
    llvm = api()
    queries = (llvm.LLVMGetDefaultTargetTriple, llvm.LLVMGetHostCPUName, llvm.LLVMGetHostCPUFeatures)
    triple, cpu, features = (take_text(query(), llvm.LLVMDisposeMessage) for query in queries)
    return triple, cpu, features


def emit_object(ir_text: str | bytes, *, opt_level: int = 2, cpu: str | None = None) -> bytes:
    """A relocatable ELF object for this machine, position independent: a loader may place it anywhere.

    `cpu` names the processor to generate for (`x86-64` runs on every one); by default the one at hand.
    """
    triple, native, features = _host()
    source = ir_text if isinstance(ir_text, str) else ""
    chosen = (native, features) if cpu is None else (cpu, "")
    with Context(source) as context, Machine(triple, *chosen, opt_level) as machine:
        module = context.parse(ir_text)
        machine.aim(module)
        machine.optimise(context, module)
        return machine.emit(context, module, _OBJECT)


_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tilewright.ir import llvm_child; llvm_child.main()"
)


def emit_ptx_in_child(ir_text: str | bytes, *, time_limit: float = 120.0, **arguments: Any) -> str:
    """`emit_ptx` in a process of its own, for text that the user wrote: an abort of LLVM is then an `LlvmError`.

    `time_limit` is in seconds; the other arguments are those of `emit_ptx`.
    """
    command = [sys.executable, "-I", "-c", _CHILD, json.dumps(sys.path)]
    request = pickle.dumps((ir_text, arguments))
    try:
        child = subprocess.run(command, input=request, capture_output=True, timeout=time_limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise LlvmError(f"LLVM took more than {time_limit:g} s for the given text") from error
    except OSError as error:
        raise LlvmError(f"cannot start {sys.executable!r} to compile the given text: {error}") from error
    if child.returncode:
        raise _abort_error(child.returncode, child.stderr.decode(errors="replace"))
    ptx, refusal = pickle.loads(child.stdout)
    if refusal is not None:
        message, details = refusal
        raise LlvmError(message, **details)
    return str(ptx)


def _abort_error(status: int, stderr: str) -> LlvmError:
    reasons = [line for line in stderr.splitlines() if "error" in line.lower()] or stderr.splitlines() or [""]
    hint = "the text asks for something that the chip or LLVM does not have; the whole output is in .nvvm_error"
    values = {"exit status": status}
    return LlvmError(f"LLVM ended its process: {reasons[0].strip()}", values=values, hint=hint, nvvm_error=stderr)
