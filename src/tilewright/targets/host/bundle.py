"""Host programs as bytes: the support object and the program's own, made by LLVM, loaded without it.

The support code is the same for every program, so it is compiled once a process and loaded once, whichever
program brings it. Both objects can be linked ahead of time into a shared library.
"""

from __future__ import annotations

import functools
import struct
import threading
import weakref

from tilewright.base.errors import CompileError
from tilewright.base.signature import Signature
from tilewright.ir.llvm import emit_object
from tilewright.targets.host import abi, symbols
from tilewright.targets.host.loader import LoadedObject, load_object
from tilewright.targets.host.runtime import runtime_ir
from tilewright.targets.host.wrapper import entry_type, export_name, wrapper_ir

_MAGIC = b"tilewright host 2\0"
_HEADER = struct.Struct("<18sQ")

_lock = threading.Lock()
_loaded_runtimes: weakref.WeakValueDictionary[bytes, LoadedObject] = weakref.WeakValueDictionary()


def compile_program(
    ir_text: str, signature: Signature, *, entry: str, kernels: int = 0, cpu: str | None = None
) -> bytes:
    """A host program from LLVM IR text.

    Args:
        ir_text: defines `i32 @<entry>(<leaves of the signature>, ptr table)`, which returns 0, or -1 after
            `@__tw_raise`, or an error number of its own.
        signature: what callers pass.
        entry: the symbol of the function.
        kernels: how many kernels it launches.
        cpu: the processor to compile for; by default this one.

    Raises:
        CompileError: the text is wrong, or a parameter cannot be passed.
    """
    keep = (export_name(signature), abi.TABLE)
    defines = {entry: entry_type(signature)}
    wrapper = wrapper_ir(signature, entry, kernels)
    # What only launches kernels is compiled fast; what computes on the host is compiled well.
    program = emit_object(
        ir_text, codegen_level=0 if kernels else 2, cpu=cpu, frame=(wrapper,), keep=keep, defines=defines
    )
    support = _support_object(cpu)
    return _HEADER.pack(_MAGIC, len(support)) + support + program


def objects(program: bytes) -> tuple[bytes, bytes]:
    """The two ELF objects of a program: support code and the program's own."""
    if not program.startswith(_MAGIC) or len(program) < _HEADER.size:
        raise CompileError("these bytes are not a host program")
    _, size = _HEADER.unpack_from(program)
    return program[_HEADER.size : _HEADER.size + size], program[_HEADER.size + size :]


def load_program(program: bytes) -> LoadedObject:
    """Place a program in memory; needs neither MLIR nor LLVM."""
    support_bytes, own_bytes = objects(program)
    support = _load_support(support_bytes)

    def resolve(name: str) -> int:
        return support.address(name) if name in support.symbols else symbols.address_of(name)

    return load_object(own_bytes, resolve=resolve, keep_alive=support)


def support_address(program: LoadedObject, name: str) -> int:
    """The address of a function of the support code that a loaded program uses."""
    support = program.keep_alive
    assert isinstance(support, LoadedObject)
    return support.address(name)


@functools.lru_cache(maxsize=4)
def _support_object(cpu: str | None) -> bytes:
    # Unoptimised: 6 ms instead of 50, for code that runs on errors, and about 20 ns on a launch.
    return emit_object(runtime_ir(), opt_level=0, cpu=cpu)


def _load_support(data: bytes) -> LoadedObject:
    with _lock:
        loaded = _loaded_runtimes.get(data)
        if loaded is None:
            loaded = _loaded_runtimes[data] = load_object(data)
        return loaded
