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
from pathlib import Path
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


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(text: str) -> int:
    """A number of bytes, written with K, M, G or T where it is large."""
    number = text.strip().upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in _UNITS else ""
    size = int(float(number.removesuffix(unit)) * _UNITS[unit])
    if size < 0:
        raise ValueError(text)
    return size


@dataclass(frozen=True)
class Setting:
    """One row: `variables` in order of precedence, `parse` from text, `affects_code` for the cache key."""

    variables: tuple[str, ...]
    default: Any
    parse: Callable[[str], Any]
    affects_code: bool
    help: str


def _level(text: str) -> int:
    """A level of logging: 0 for nothing, 1 for everything, else Python's numbers (10 to 50) or names."""
    names = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
    level = names.get(text.strip().lower())
    return int(text) if level is None else level


def _opt_level(text: str) -> int:
    if text.strip() not in ("0", "1", "2", "3"):
        raise ValueError(text)
    return int(text)


def _spelled(name: str) -> tuple[str, str, str]:
    """A variable as this project, CuTe DSL and CUTLASS's pipeline documents write it."""
    return f"TILEWRIGHT_{name}", f"CUTE_DSL_{name}", f"CUTLASS_{name}"


TABLE: dict[str, Setting] = {
    "no_color": Setting(("NO_COLOR",), False, lambda text: text != "", False, "no colours in terminals"),
    "terminal": Setting(("TERM",), "", str, False, "the kind of terminal; dumb: neither colours nor bars"),
    "target": Setting(("TILEWRIGHT_TARGET",), "", str, False, "cuda or emu; default: cuda where a device is found"),
    "arch": Setting(_spelled("ARCH"), "", str, True, "chip to compile for"),
    "opt_level": Setting(_spelled("OPT_LEVEL"), 3, _opt_level, True, "optimisation level, 0 to 3"),
    "debug": Setting(_spelled("DEBUG"), False, _flag, False, "full tracebacks and IR in errors"),
    "verify": Setting(("TILEWRIGHT_VERIFY",), False, _flag, False,
                      "check stage cute against the dialect's rules after tracing and each pass"),
    "print_ir": Setting((*_spelled("PRINT_IR"), "MLIR_ENABLE_DUMP"), False, _flag, False,
                        "print every stage to stderr"),
    "dump_dir": Setting(_spelled("DUMP_DIR"), "", str, False,
                        "where kept artifacts go; default: the working directory"),
    "keep": Setting(_spelled("KEEP"), frozenset(), _kept, False,
                    "artifacts to keep: ir, ptx, cubin, sass, all"),
    "keep_ir": Setting(_spelled("KEEP_IR"), False, _flag, False, "keep stages cute, nvvm and llvm"),
    "keep_ptx": Setting(_spelled("KEEP_PTX"), False, _flag, False, "keep PTX"),
    "keep_cubin": Setting(_spelled("KEEP_CUBIN"), False, _flag, False, "keep cubins"),
    "keep_sass": Setting(_spelled("KEEP_SASS"), False, _flag, False, "keep SASS"),
    "lineinfo": Setting(_spelled("LINEINFO"), False, _flag, True, "line tables in the cubin"),
    "assertions": Setting(_spelled("ENABLE_ASSERTIONS"), False, _flag, True,
                          "device assertions, and checks of the bounds of accesses"),
    "fp_contract": Setting(("TILEWRIGHT_FP_CONTRACT",), "on", str, True,
                           "on: a product and a sum of device code may become one fma; off: each is rounded"),
    "tvm_ffi": Setting(_spelled("ENABLE_TVM_FFI"), False, _flag, False,
                       "compiled functions are functions of tvm-ffi too"),
    "toolkit": Setting(("CUDA_TOOLKIT_PATH", "CUDA_HOME", "CUDA_PATH"), "", str, True,
                       "a CUDA toolkit to take ptxas and nvdisasm from, before the installed packages"),
    "log_level": Setting(_spelled("LOG_LEVEL"), None, _level, False,
                         "what the logger tilewright writes: 0 nothing, 1 everything, or 10 to 50, as Python counts"),
    "log_to_console": Setting(_spelled("LOG_TO_CONSOLE"), False, _flag, False,
                              "the logger tilewright writes to stderr"),
    "log_to_file": Setting(_spelled("LOG_TO_FILE"), "", str, False, "the logger tilewright writes to this file"),
    "nvtx": Setting(("TILEWRIGHT_NVTX", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"), False, _flag, False,
                    "NVTX ranges around compilation and launches; profilers set the other variables themselves"),
    "no_cache": Setting(_spelled("NO_CACHE"), False, _flag, False,
                        "compile each time: nothing is read from the cache or written to it"),
    "no_file_cache": Setting(_spelled("DISABLE_FILE_CACHING"), False, _flag, False, "cache in memory only"),
    "cache_dir": Setting(_spelled("CACHE_DIR"), "", str, False,
                         "where compiled functions are kept; default: tilewright in XDG_CACHE_HOME or ~/.cache"),
    "cache_size": Setting(_spelled("CACHE_SIZE"), 1 << 30, _bytes, False,
                          "the most bytes kept there, such as 500M or 2G; default 1G"),
    "xdg_cache_home": Setting(("XDG_CACHE_HOME",), "", str, False, "the user's folder of caches; default ~/.cache"),
    "pin_variables": Setting(("TILEWRIGHT_PIN_VARIABLES",), False, _flag, True,
                             "a debug build: comments of the PTX name the registers of the source's variables"),
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


def cache_folder() -> Path:
    """The folder for what is kept from process to process."""
    if get("cache_dir"):
        return Path(get("cache_dir")).expanduser()
    base = get("xdg_cache_home")
    return (Path(base) if base else Path.home() / ".cache") / "tilewright"


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process to start: this one's, changed."""
    return {**os.environ, **changes}


def code_key() -> tuple[tuple[str, Any], ...]:
    """The settings that change generated code, for cache keys."""
    return tuple((name, get(name)) for name, setting in TABLE.items() if setting.affects_code)
