"""The flags of ptxas that a user may give, split, checked against the compilation, and made uniform."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.hw.chips import normalize_arch

# ptxas spells each option in two ways; those with a value take it after `=`, a blank, or (-O) nothing.
_ALIASES: Final = {
    "arch": "gpu-name", "v": "verbose", "lineinfo": "generate-line-info", "O": "opt-level", "g": "device-debug",
    "dlcm": "def-load-cache", "dscm": "def-store-cache", "flcm": "force-load-cache", "fscm": "force-store-cache",
    "o": "output-file", "c": "compile-only", "e": "entry", "h": "help", "V": "version", "ias": "input-as-string",
    "optf": "options-file", "w": "disable-warnings", "Werror": "warning-as-error", "m": "machine",
    "warn-spills": "warn-on-spills", "warn-lmem-usage": "warn-on-local-memory-usage",
    "regUsageLevel": "register-usage-level", "Ofc": "Ofast-compile", "suppress-debug-info": "suppress-debug-info",
}  # fmt: skip

_FLAGS: Final = frozenset({
    "verbose", "generate-line-info", "device-debug", "disable-warnings", "warning-as-error", "warn-on-spills",
    "warn-on-local-memory-usage", "warn-on-double-precision-use", "warn-double-usage", "disable-optimizer-constants",
    "dont-merge-basicblocks", "return-at-end", "sp-bounds-check", "suppress-debug-info", "preserve-relocs",
    "suppress-stack-size-warning", "suppress-double-demote-warning", "suppress-async-bulk-multicast-advisory-warning",
    "make-errors-visible-at-exit", "optimize-float-atomics", "override-directive-values", "compiler-annotations",
    "compile-as-tools-patch", "extensible-whole-program",
})  # fmt: skip

_REFUSED: Final = {
    "output-file": "the cubin is in .stages['cubin']; KeepCUBIN writes it to a file",
    "compile-only": "name libraries with LinkLibraries instead",
    "input-as-string": "replace the PTX with override={'ptx': path}",
    "options-file": "write the flags out",
    "help": "run ptxas itself",
    "version": "`tilewright doctor` shows the version",
    "machine": "only 64-bit code is made",
}


@dataclass(frozen=True)
class PtxasOptions:
    """Checked flags: the ones that Tilewright itself sets, apart, and the `rest` as `--name=value` or `--name`."""

    verbose: bool = False
    lineinfo: bool = False
    opt_level: int | None = None
    max_registers: int | None = None
    rest: tuple[str, ...] = ()


def split_options(text: str) -> tuple[str, ...]:
    """The words of an option string, as a shell splits them.

    Raises:
        CompileError: a quotation mark that is never closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise CompileError(f"cannot read the ptxas options {text!r}: {error}") from error


def _pairs(words: Sequence[str]) -> list[tuple[str, str | None]]:
    """Option names (long form, no dashes) with their values, None for flags."""
    pairs: list[tuple[str, str | None]] = []
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-") or word.strip("-") == "":
            raise CompileError(f"{word!r} is not a ptxas option", hint="options begin with a dash")
        name, equals, value = word.lstrip("-").partition("=")
        if name[:1] == "O" and name[1:].isdigit():
            name, equals, value = "O", "=", name[1:]
        name = _ALIASES.get(name, name)
        if name in _REFUSED:
            raise CompileError(f"ptxas option --{name} cannot be used here", hint=_REFUSED[name])
        if equals or name in _FLAGS:
            pairs.append((name, value if equals else None))
        else:
            pairs.append((name, next(waiting, None)))
    return pairs


def _integer(name: str, value: str | None, low: int, high: int) -> int:
    if value is None or not value.isdigit() or not low <= int(value) <= high:
        raise CompileError(f"--{name}={value or ''} is not valid", hint=f"a whole number from {low} to {high}")
    return int(value)


def check_options(words: Sequence[str], arch: str) -> PtxasOptions:
    """Sort the user's flags, and refuse those that fight the compilation.

    Args:
        words: as `split_options` gives them.
        arch: the target that the code was made for.

    Raises:
        CompileError: `--gpu-name` names another target, a value is missing or out of range, or the flag would take
            the output away from the compiler.
    """
    verbose, lineinfo, opt_level, max_registers = False, False, None, None
    rest: list[str] = []
    for name, value in _pairs(words):
        if name == "gpu-name":
            _check_arch(value, arch)
        elif name == "verbose":
            verbose = True
        elif name == "generate-line-info":
            lineinfo = True
        elif name == "opt-level":
            opt_level = _integer(name, value, 0, 3)
        elif name == "maxrregcount" and (value or "").isdigit():
            max_registers = _integer(name, value, 1, 255)
        else:
            rest.append(f"--{name}" if value is None else f"--{name}={value}")
    return PtxasOptions(verbose, lineinfo, opt_level, max_registers, tuple(rest))


def _check_arch(value: str | None, arch: str) -> None:
    if normalize_arch(value or "") != arch:
        raise CompileError(
            f"ptxas option --gpu-name={value} fights the target architecture",
            values={"target": arch, "--gpu-name": value},
            hint="set the architecture with GPUArch or --gpu-arch only",
        )
