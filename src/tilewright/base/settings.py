"""The settings table: the only place that reads the environment.

Each setting lists the variables that set it, first match wins, and whether it changes generated code
(then it is part of every cache key). `scope` changes settings for a block of code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def _seconds(text: str) -> float | None:
    """A positive number; 0 for no limit."""
    seconds = float(text)
    if not seconds >= 0:
        raise ValueError(text)
    return seconds or None


_KEPT = frozenset(("ir", "ir-debug", "ptx", "cubin", "sass", "all"))


def _kept(text: str) -> frozenset[str]:
    names = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if not names <= _KEPT:
        raise ValueError(text)
    return names


@dataclass(frozen=True)
class Setting:
    """One row: `variables` in order of precedence, `parse` from text, `affects_code` for the cache key."""

    variables: tuple[str, ...]
    default: Any
    parse: Callable[[str], Any]
    affects_code: bool
    help: str


TABLE: dict[str, Setting] = {
    "target": Setting(("TILEWRIGHT_TARGET",), "", str, False, "cuda or emu; default: cuda where a device is found"),
    "arch": Setting(("TILEWRIGHT_ARCH", "CUTE_DSL_ARCH", "CUTLASS_ARCH"), "", str, True, "chip to compile for"),
    "debug": Setting(("TILEWRIGHT_DEBUG", "CUTE_DSL_DEBUG"), False, _flag, False, "full tracebacks and IR in errors"),
    "verify": Setting(("TILEWRIGHT_VERIFY",), False, _flag, False,
                      "check stage cute against the dialect's rules after tracing and each pass"),
    "print_ir": Setting(("TILEWRIGHT_PRINT_IR", "CUTE_DSL_PRINT_IR", "MLIR_ENABLE_DUMP"), False, _flag, False,
                        "print every stage to stderr"),
    "dump_dir": Setting(("TILEWRIGHT_DUMP_DIR", "CUTE_DSL_DUMP_DIR", "CUTLASS_DUMP_DIR"), "", str, False,
                        "where kept artifacts go; default: the working directory"),
    "keep": Setting(("TILEWRIGHT_KEEP", "CUTE_DSL_KEEP"), frozenset(), _kept, False,
                    "artifacts to keep: ir, ptx, cubin, sass, all"),
    "keep_ptx": Setting(("CUTE_DSL_KEEP_PTX", "CUTLASS_KEEP_PTX"), False, _flag, False, "keep PTX"),
    "keep_cubin": Setting(("CUTE_DSL_KEEP_CUBIN", "CUTLASS_KEEP_CUBIN"), False, _flag, False, "keep cubins"),
    "lineinfo": Setting(("TILEWRIGHT_LINEINFO", "CUTE_DSL_LINEINFO", "CUTLASS_LINEINFO"), False, _flag, True,
                        "line tables in the cubin"),
    "assertions": Setting(("TILEWRIGHT_ENABLE_ASSERTIONS", "CUTE_DSL_ENABLE_ASSERTIONS", "CUTLASS_ENABLE_ASSERTIONS"),
                          False, _flag, True, "device assertions"),
    "fp_contract": Setting(("TILEWRIGHT_FP_CONTRACT",), "on", str, True,
                           "on: a product and a sum of device code may become one fma; off: each is rounded"),
    "tvm_ffi": Setting(("CUTE_DSL_ENABLE_TVM_FFI", "CUTLASS_ENABLE_TVM_FFI"), False, _flag, False,
                       "accepted for compatibility: calls always go through tvm-ffi"),
    "toolkit": Setting(("CUDA_TOOLKIT_PATH", "CUDA_HOME", "CUDA_PATH"), "", str, True,
                       "a CUDA toolkit to take ptxas and nvdisasm from, before the installed packages"),
    "seed": Setting(("TILEWRIGHT_SEED",), 0, int, False, "order of warps and blocks on the emulator"),
    "progress": Setting(("TILEWRIGHT_PROGRESS",), None, _flag, False,
                        "0: long emulations say nothing on stderr, 1: a bar in every terminal; default: lines in "
                        "pytest and CI, as where there is no terminal"),
    "timeout": Setting(("TILEWRIGHT_TIMEOUT",), None, _seconds, False,
                       "the most seconds that a kernel may run on the emulator; default: no limit"),
    "counters": Setting(("TILEWRIGHT_COUNTERS",), "", str, False,
                        "a file to which each kernel that a compiled function launches on the emulator adds a line of "
                        "JSON: what it counted"),
    "symm_mem_no_multicast": Setting(("TORCH_SYMM_MEM_DISABLE_MULTICAST",), False, _flag, False,
                                     "that of PyTorch: no multicast objects; tilewright.dist wants it set"),
    "ci": Setting(("CI",), False, _flag, False, "continuous integration: no progress bar unless asked for"),
}  # fmt: skip

_overrides: ContextVar[dict[str, Any]] = ContextVar("tilewright_settings", default={})


def get(name: str) -> Any:
    """The value of setting `name` now: an enclosing `scope`, then the environment, then the default."""
    overrides = _overrides.get()
    if name in overrides:
        return overrides[name]
    setting = TABLE[name]
    for variable in setting.variables:
        text = os.environ.get(variable)
        if text is not None and text != "":
            return _parse(setting, variable, text)
    return setting.default


def _parse(setting: Setting, variable: str, text: str) -> Any:
    try:
        return setting.parse(text)
    except ValueError as error:
        raise CompileError(f"{variable}={text!r} is not valid", hint=setting.help) from error


@contextmanager
def scope(**values: Any) -> Iterator[None]:
    """Set settings for the code inside the block, in this thread and its tasks."""
    unknown = values.keys() - TABLE.keys()
    if unknown:
        raise CompileError(f"unknown setting {sorted(unknown)[0]!r}", hint=f"settings: {', '.join(TABLE)}")
    token = _overrides.set({**_overrides.get(), **values})
    try:
        yield
    finally:
        _overrides.reset(token)


class State:
    """The settings at some time: all calls of `state` give the same one until a setting may have changed."""

    def __init__(self, variables: Mapping[Any, Any], overrides: Mapping[str, Any]) -> None:
        self.variables, self.overrides = dict(variables), overrides


_state = State({}, {})


def state() -> State:
    """What the settings depend on, as an object to compare with `is`: the environment, and the `scope` of this thread.

    Two threads in scopes of their own that take turns get a new one each time.
    """
    global _state
    found, overrides = _state, _overrides.get()
    if found.variables != _variables() or found.overrides != overrides:
        found = _state = State(_variables(), overrides)
    return found


def _variables() -> Mapping[Any, Any]:
    """The environment, in the form that compares fastest: what `os.environ` keeps it in."""
    found: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
    return found


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process to start: this one's, changed."""
    return {**os.environ, **changes}


def code_key() -> tuple[tuple[str, Any], ...]:
    """The settings that change generated code, for cache keys."""
    return tuple((name, get(name)) for name, setting in TABLE.items() if setting.affects_code)
