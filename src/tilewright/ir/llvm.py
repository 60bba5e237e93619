"""LLVM IR text to PTX, and to objects for this machine.

Every call owns one LLVM context, so threads compile side by side. What LLVM reports becomes `LlvmError`. What
LLVM *aborts* on cannot be caught in a process; text that the user wrote therefore goes through
`emit_ptx_in_child`.
"""

from __future__ import annotations

import functools
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.base.interrupts import raised_by_signal
from tilewright.ir.libdevice import link_libdevice
from tilewright.ir.llvm_api import ASSEMBLY, OBJECT, Context, LlvmError, Machine, api, take_text
from tilewright.ir.long_blocks import divide_long_blocks, may_have_long_blocks, without_ends
from tilewright.ir.signed_zeros import keep_signed_zeros
from tilewright.ir.unwritten import drop_unwritten, keep_unwritten

__all__ = ["LlvmError", "emit_object", "emit_ptx", "emit_ptx_in_child", "host_target", "link_bitcode"]

NVPTX_TRIPLE = "nvptx64-nvidia-cuda"
# Chips from here on have packed f32 (PTX ISA, `add.f32x2`). On earlier ones the search found nothing in 726 kernels.
_FIRST_PACKED = 100


def link_bitcode(context: Context, module: int, links: Sequence[bytes | str]) -> None:
    """Link LLVM bitcode or IR text into `module`; a symbol defined twice is an error that names it."""
    for position, link in enumerate(links):
        context.link(module, context.parse(link, f"<link {position}>"))


def emit_ptx(
    ir_text: str | bytes,
    *,
    chip: str,
    ptx_version: str,
    opt_level: int = 3,
    links: Sequence[bytes | str] = (),
    libdevice: bool = True,
) -> str:
    """PTX text of an LLVM module.

    Args:
        ir_text: LLVM IR text (or bitcode).
        chip: `sm_90a` and the like; the caller has checked that it exists, LLVM takes any.
        ptx_version: `8.7` and the like; it must be one that `chip` has, else LLVM ends the process.
        opt_level: 0 to 3.
        links: further modules (bitcode or text) to link in first; what they define is private to the module.
        libdevice: link the libdevice functions that the module calls.

    Raises:
        LlvmError: the text is malformed (with its line), an inline-assembly constraint does not exist, modules do
            not link, or LLVM knows no such PTX version.
    """
    features = "+ptx" + ptx_version.replace(".", "")
    source = ir_text if isinstance(ir_text, str) else ""
    with Context(source) as context, Machine(NVPTX_TRIPLE, chip, features, opt_level, opt_level) as machine:
        machine.packs = int(re.sub(r"\D", "", chip)) >= _FIRST_PACKED
        module = context.parse(ir_text)
        machine.aim(module)
        given = module
        undefined = " undef" in source
        if undefined or (opt_level and (not source or "alloca" in source)):
            module = keep_unwritten(context, machine, module, undefined=undefined, optimise=opt_level > 0)
        own = {name for name, value in context.symbols(module) if not context.llvm.LLVMIsDeclaration(value)}
        link_bitcode(context, module, links)
        if links:
            context.make_private(module, own)
        if libdevice:
            link_libdevice(context, module)
        machine.optimise(context, module)
        if module != given:
            drop_unwritten(module)
        if not source or "fcmp" in source or links:
            keep_signed_zeros(module)
        if opt_level and may_have_long_blocks("" if links else source):
            divide_long_blocks(module)
        ptx = without_ends(machine.emit(context, module, ASSEMBLY).decode())
    _check_target(ptx, chip, ptx_version)
    return ptx


def _check_target(ptx: str, chip: str, ptx_version: str) -> None:
    # LLVM takes an unknown PTX version in silence and writes some default instead.
    for directive, wanted in ((".version", ptx_version), (".target", chip)):
        found = re.search(rf"^\{directive} ([\w.]+)", ptx, re.MULTILINE)
        if not found or found[1] != wanted:
            got = found[1] if found else "nothing"
            raise LlvmError(f"LLVM does not know {directive} {wanted}", values={"asked for": wanted, "written": got})


# vcvtneps2bf16 takes float32 numbers below 2**-126 for zero (Intel SDM, volume 2); without it LLVM rounds by integers.
_EXACT_X86 = "-avx512bf16,-avxneconvert"


@functools.cache
def host_target() -> tuple[str, str, str]:
    """What `emit_object` compiles for by default, for cache keys: triple, processor, features."""
    llvm = api()
    queries = (llvm.LLVMGetDefaultTargetTriple, llvm.LLVMGetHostCPUName, llvm.LLVMGetHostCPUFeatures)
    triple, cpu, features = (take_text(query(), llvm.LLVMDisposeMessage) for query in queries)
    return triple, cpu, features


def emit_object(
    ir_text: str | bytes,
    *,
    opt_level: int = 2,
    codegen_level: int | None = None,
    cpu: str | None = None,
    triple: str | None = None,
    features: str = "",
    links: Sequence[bytes | str] = (),
    frame: Sequence[bytes | str] = (),
    keep: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
) -> bytes:
    """A relocatable ELF object, position independent: a loader may place it anywhere.

    Args:
        ir_text: LLVM IR text (or bitcode).
        opt_level: 0 to 3.
        codegen_level: the level of instruction selection and register allocation where it differs: 0 is five times
            faster to compile.
        cpu: the processor to generate for (`x86-64` runs on every one); by default the one at hand.
        triple: the family and system to generate for, by default those of this machine; give `cpu` with it.
        features: those of `cpu` to turn on or off, such as `+lse`.
        links: further modules (bitcode or text) to link in first.
        frame: modules to link in after optimisation, which leaves them as they are.
        keep: the symbols to export; all others become private, and go where nothing uses them. Empty: all stay.
        defines: functions that the text must define, with their types (`i32 (ptr, float)`); the linker checks neither.

    Raises:
        LlvmError: as for `emit_ptx`, or a function of `defines` is missing or of another type.
    """
    here, native, native_features = host_target()
    source = ir_text if isinstance(ir_text, str) else ""
    chosen = (native, native_features) if cpu is None else (cpu, features)
    if (triple or here).startswith("x86_64"):
        chosen = chosen[0], ",".join(filter(None, (chosen[1], _EXACT_X86)))
    levels = opt_level, opt_level if codegen_level is None else codegen_level
    with Context(source) as context, Machine(triple or here, *chosen, *levels) as machine:
        module = context.parse(ir_text)
        machine.aim(module)
        for name, type_ in (defines or {}).items():
            context.check_function(module, name, type_)
        link_bitcode(context, module, links)
        if keep:
            context.make_private(module, {*keep, *(defines or ())})
        machine.optimise(context, module)
        if frame:
            link_bitcode(context, module, frame)
            context.make_private(module, set(keep))
        return machine.emit(context, module, OBJECT)


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
        if raised_by_signal(error):
            raise
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
