"""Compile options, as objects, as a string of flags, and as defaults from the settings.

`cute.compile[OptLevel(2), KeepPTX](fn, ...)` and `cute.compile(fn, ..., options="--opt-level 2 --keep-ptx")` are the
same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.compiler.host_target import parse_host_target
from tilewright.lang.numbers.numpy_scalars import to_python


class CompileOption:
    """Base of the option objects. `field` names the entry of `Options` that the object sets.

    An option of your own is a subclass with a `field`, or with a method `applied` that changes several entries.
    """

    field: ClassVar[str] = ""
    value: Any = None

    def applied(self, options: Options) -> Options:
        """`options` with this one in them."""
        if not self.field:
            raise CompileError(
                f"{type(self).__name__} says not what it sets",
                hint=f"give the class a `field` ({', '.join(entry.name for entry in fields(Options))}), or a method "
                "`applied(self, options)`",
            )
        return replace(options, **{self.field: self.value})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class BooleanCompileOption(CompileOption):
    """A switch; the class itself stands for `True`."""

    def __init__(self, value: bool = True) -> None:
        self.value = bool(value)


class BooleanBasedFileDumpOption(BooleanCompileOption):
    """A switch that writes a file into the dump directory."""


class StringCompileOption(CompileOption):
    """An option with a text."""

    def __init__(self, value: str) -> None:
        self.value = str(value)


class OptLevel(CompileOption):
    """Optimisation level, 0 to 3 (the default)."""

    field = "opt_level"

    def __init__(self, value: int) -> None:
        self.value = _level(value)


class GPUArch(StringCompileOption):
    """The chip, such as `sm_90a`."""

    field = "gpu_arch"


class PtxasOptions(StringCompileOption):
    """Flags for ptxas, such as `-v --maxrregcount=128`."""

    field = "ptxas_options"


class NvdisasmOptions(StringCompileOption):
    """Flags for nvdisasm."""

    field = "nvdisasm_options"


class HostTarget(StringCompileOption):
    """The processor that exported host code is for, such as `linux-aarch64`; empty for this machine's."""

    field = "host_target"

    def __init__(self, value: str) -> None:
        super().__init__(value)
        if self.value:
            parse_host_target(self.value)


class PTXBackend(StringCompileOption):
    """What makes the PTX: `llvm` (the default), or `nvidia-nvvm`, which is libNVVM, for sm_100 and up."""

    field = "ptx_backend"


class LinkLibraries(StringCompileOption):
    """Device libraries to link, separated by commas."""

    field = "link_libraries"


class EnableAssertions(BooleanCompileOption):
    """Keep device assertions."""

    field = "enable_assertions"


class GenerateLineInfo(BooleanCompileOption):
    """Line tables in the cubin, for profilers."""

    field = "generate_line_info"


class KeepPTX(BooleanBasedFileDumpOption):
    """Write `<function>.<arch>.ptx` into the dump directory."""

    field = "keep_ptx"


class KeepCUBIN(BooleanBasedFileDumpOption):
    """Write `<function>.<arch>.cubin` into the dump directory."""

    field = "keep_cubin"


class KeepSASS(BooleanBasedFileDumpOption):
    """Write `<function>.<arch>.sass` into the dump directory."""

    field = "keep_sass"


class EnableTVMFFI(BooleanCompileOption):
    """Accepted for compatibility: calls always go through tvm-ffi."""

    field = "enable_tvm_ffi"


class DumpDir(StringCompileOption):
    """The dump directory."""

    field = "dump_dir"


PTX_BACKENDS = ("llvm", "nvidia-nvvm")

OPTION_CLASSES: tuple[type[CompileOption], ...] = (
    OptLevel, GPUArch, PtxasOptions, NvdisasmOptions, LinkLibraries, EnableAssertions, GenerateLineInfo, KeepPTX,
    KeepCUBIN, KeepSASS, EnableTVMFFI, DumpDir, HostTarget, PTXBackend,
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """All options of one compilation."""

    opt_level: int = 3
    gpu_arch: str = ""
    ptxas_options: str = ""
    nvdisasm_options: str = ""
    link_libraries: str = ""
    enable_assertions: bool = False
    generate_line_info: bool = False
    keep_ptx: bool = False
    keep_cubin: bool = False
    keep_sass: bool = False
    keep_ir: bool = False
    print_ir: bool = False
    enable_tvm_ffi: bool = False
    dump_dir: str = ""
    host_target: str = ""
    ptx_backend: str = "llvm"

    def checked(self) -> Self:
        """These options, or an error where they cannot be or do not go together."""
        _level(self.opt_level)
        if self.ptx_backend not in PTX_BACKENDS:
            raise CompileError(f"unknown PTX backend {self.ptx_backend!r}", hint=f"one of {', '.join(PTX_BACKENDS)}")
        if self.host_target and self.enable_tvm_ffi:
            raise CompileError(
                "--host-target and --enable-tvm-ffi exclude each other",
                hint="export with the C form: leave --enable-tvm-ffi out",
            )
        return self

    @classmethod
    def from_settings(cls) -> Self:
        """The defaults, as the environment and `settings.scope` give them."""
        keep = settings.get("keep")
        return cls(
            gpu_arch=settings.get("arch"),
            enable_assertions=settings.get("assertions"),
            generate_line_info=settings.get("lineinfo"),
            keep_ptx=settings.get("keep_ptx") or bool(keep & {"ptx", "all"}),
            keep_cubin=settings.get("keep_cubin") or bool(keep & {"cubin", "all"}),
            keep_sass=bool(keep & {"sass", "all"}),
            keep_ir=bool(keep & {"ir", "ir-debug", "all"}),
            print_ir=settings.get("print_ir"),
            enable_tvm_ffi=settings.get("tvm_ffi"),
            dump_dir=settings.get("dump_dir"),
        )

    def merged(self, given: object) -> Options:
        """These options changed by a flag string, an option object or class, a mapping by name, or several of them."""
        if given is None or given == "":
            return self
        if isinstance(given, Options):
            return given
        if isinstance(given, Mapping):
            return self._named(given)
        if isinstance(given, CompileOptions):
            return self.merged(given.given)
        if isinstance(given, str):
            return replace(self, **parse_flags(given)).checked()
        if isinstance(given, CompileOption) or (isinstance(given, type) and issubclass(given, CompileOption)):
            return (given if isinstance(given, CompileOption) else _of_class(given)).applied(self).checked()
        if isinstance(given, Iterable):
            result = self
            for item in given:
                result = result.merged(item)
            return result
        raise CompileError(f"{given!r} is no compile option", hint=f"options: {_flag_names()}")

    def _named(self, given: Mapping[str, Any]) -> Options:
        """These options changed by others, `{"opt_level": 2}`."""
        unknown = [name for name in given if name not in {field.name for field in fields(self)}]
        if unknown:
            raise CompileError(f"unknown compile option {unknown[0]!r}", hint=f"known: {_flag_names()}")
        return replace(self, **{name: to_python(value) for name, value in given.items()}).checked()

    def to_str(self) -> str:
        """The options that differ from the defaults, as flags."""
        parts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                flag = "--" + field.name.replace("_", "-")
                parts.append(flag if value is True else f"{flag} {shlex.quote(str(value))}")
        return " ".join(parts)


class CompileOptions:
    """Options for `cute.compile(options=)`: a flag string such as `"--opt-level 2"`, an option object, or several."""

    def __init__(self, given: Any = "") -> None:
        self._flags = Options().merged(given).to_str()  # refuses what is no option
        self.given = given

    def to_str(self) -> str:
        """The options as flags: those that were given, or those of the objects that differ from the defaults."""
        return self.given if isinstance(self.given, str) else self._flags

    def __repr__(self) -> str:
        return f"CompileOptions({self.to_str()!r})"


def _of_class(option: type[CompileOption]) -> CompileOption:
    """The option that a class without a value stands for."""
    try:
        return option()
    except TypeError as error:
        raise CompileError(
            f"{option.__name__} needs a value", hint=f"write {option.__name__}(...); only switches stand for themselves"
        ) from error


_ALIASES = {"enable_device_assertions": "enable_assertions", "enable_ir_printing": "print_ir", "gpu_name": "gpu_arch"}


def parse_flags(text: str) -> dict[str, Any]:
    """`--opt-level 2 --keep-ptx` as `{"opt_level": 2, "keep_ptx": True}`; an unknown flag is an error."""
    known = {field.name: field for field in fields(Options)}
    words, position = shlex.split(text), 0
    result: dict[str, Any] = {}
    while position < len(words):
        flag, equals, value = words[position].partition("=")
        position += 1
        name = flag.removeprefix("--").replace("-", "_")
        name = _ALIASES.get(name, name)
        if not flag.startswith("--") or name not in known:
            raise CompileError(
                f"unknown compile option {flag!r}", values={"options": text}, hint=f"known: {_flag_names()}"
            )
        if isinstance(known[name].default, bool):
            result[name] = _switch(flag, value) if equals else True
            continue
        if not equals:
            if position == len(words):
                raise CompileError(f"option {flag} needs a value", values={"options": text})
            value, position = words[position], position + 1
        result[name] = _level(value) if name == "opt_level" else value
    if result.get("host_target"):
        parse_host_target(result["host_target"])
    return result


_SWITCHES = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}


def _switch(flag: str, value: str) -> bool:
    if value.lower() not in _SWITCHES:
        raise CompileError(f"{flag}={value} is neither on nor off", hint=f"one of {', '.join(_SWITCHES)}")
    return _SWITCHES[value.lower()]


def _level(value: object) -> int:
    if str(value) not in ("0", "1", "2", "3"):
        raise CompileError(f"opt-level is 0, 1, 2 or 3, not {value}")
    return int(str(value))


def _flag_names() -> str:
    return ", ".join("--" + field.name.replace("_", "-") for field in fields(Options))
