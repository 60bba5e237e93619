"""Compile options, as objects, as a string of flags, and as defaults from the settings.

These are the options that every back end has. A back end with options of its own has a subclass of `Options`, whose
further fields are flags too: `cache_lines: int = 4` is `--cache-lines 4`.

`cute.compile[OptLevel(2), KeepPTX](fn, ...)` and `cute.compile(fn, ..., options="--opt-level 2 --keep-ptx")` are the
same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, cast

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.targets.host_target import parse_host_target

CONTRACTIONS = ("on", "off")


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
                hint=f"give the class a `field` ({', '.join(entry.name for entry in fields(options))}), or a method "
                "`applied(self, options)`",
            )
        return options.changed({self.field: self.value})

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
        self.value = check_level(value)


class GPUArch(StringCompileOption):
    """The chip, such as `sm_90a`."""

    field = "gpu_arch"


class FpContract(StringCompileOption):
    """Whether a product and a sum of device code may become one `fma`: `on` (the default) or `off`."""

    field = "fp_contract"


class HostTarget(StringCompileOption):
    """The processor that exported host code is for, such as `linux-aarch64`; empty for this machine's."""

    field = "host_target"

    def __init__(self, value: str) -> None:
        super().__init__(value)
        if self.value:
            parse_host_target(self.value)


class EnableAssertions(BooleanCompileOption):
    """Keep device assertions."""

    field = "enable_assertions"


class KeepIR(BooleanBasedFileDumpOption):
    """Write the stages of MLIR and LLVM IR into the dump directory."""

    field = "keep_ir"


class PrintIR(BooleanCompileOption):
    """Print the text of every stage to stderr."""

    field = "print_ir"


class EnableTVMFFI(BooleanCompileOption):
    """The compiled function is a `tvm_ffi.Function` too, which other languages call; calls use tvm-ffi anyway."""

    field = "enable_tvm_ffi"


class DumpDir(StringCompileOption):
    """The folder into which kept stages are written."""

    field = "dump_dir"


Effect = Literal["code", "view", "call"]


def option(default: Any, effect: Effect = "code") -> Any:
    """An entry of `Options`, and what it changes: the `code`, only a `view` of it, or how the function is `call`ed.

    Caches of code hold apart what differs in an entry of the first kind, which is what an entry without `option` is.
    """
    return field(default=default, metadata={"effect": effect})


@dataclass(frozen=True)
class Options:
    """All options of one compilation."""

    opt_level: int = 3
    gpu_arch: str = ""
    fp_contract: str = "on"
    enable_assertions: bool = False
    keep_ir: bool = option(False, "view")
    print_ir: bool = option(False, "view")
    enable_tvm_ffi: bool = option(False, "call")
    dump_dir: str = option("", "view")
    host_target: str = option("", "call")

    def checked(self) -> Self:
        """These options, or an error where they cannot be or do not go together."""
        check_level(self.opt_level)
        if self.fp_contract not in CONTRACTIONS:
            raise CompileError(f"fp-contract is on or off, not {self.fp_contract!r}")
        if self.host_target and self.enable_tvm_ffi:
            raise CompileError(
                "--host-target and --enable-tvm-ffi exclude each other",
                hint="export with the C form: leave --enable-tvm-ffi out",
            )
        return self

    @classmethod
    def from_settings(cls) -> Self:
        """The defaults, as the environment and `settings.scope` give them."""
        return cls(
            opt_level=settings.get("opt_level"),
            gpu_arch=settings.get("arch"),
            fp_contract=settings.get("fp_contract"),
            enable_assertions=settings.get("assertions"),
            keep_ir=settings.get("keep_ir") or bool(settings.get("keep") & {"ir", "ir-debug", "all"}),
            print_ir=settings.get("print_ir"),
            enable_tvm_ffi=settings.get("tvm_ffi"),
            dump_dir=settings.get("dump_dir"),
        )

    def kept_stages(self) -> tuple[str, ...]:
        """The stages that these options ask to write to files."""
        return ("cute",) if self.keep_ir else ()

    def code_key(self) -> tuple[tuple[str, Any], ...]:
        """The entries that change the code, with their values: these options' part of the key of a cache of code."""
        return tuple((entry.name, getattr(self, entry.name)) for entry in fields(self) if effect_of(entry) == "code")

    def changed(self, values: Mapping[str, Any]) -> Self:
        """These options with other values, by the names of the fields.

        Raises:
            CompileError: there is no such option, or its value is wrong.
        """
        known = [field.name for field in fields(self)]
        if unknown := [name for name in values if name not in known]:
            raise CompileError(f"unknown compile option {unknown[0]!r}", hint=f"known: {flag_names(type(self))}")
        return replace(self, **values).checked()

    def merged(self, given: object) -> Self:
        """These options changed by a flag string, an option object or class, a mapping by name, or several of them."""
        if given is None or given == "":
            return self
        if isinstance(given, Options):
            return given if isinstance(given, type(self)) else self.changed(given.differing())
        if isinstance(given, Mapping):
            return self.changed({name: to_python(value) for name, value in given.items()})
        if isinstance(given, GivenOptions):
            return self.merged(given.given)
        if isinstance(given, str):
            return self.changed(parse_flags(given, type(self)))
        if isinstance(given, CompileOption) or (isinstance(given, type) and issubclass(given, CompileOption)):
            option = given if isinstance(given, CompileOption) else _of_class(given)
            return cast(Self, option.applied(self)).checked()
        if isinstance(given, Iterable):
            result = self
            for item in given:
                result = result.merged(item)
            return result
        raise CompileError(f"{given!r} is no compile option", hint=f"options: {flag_names(type(self))}")

    def to_str(self) -> str:
        """The options that differ from the defaults, as flags."""
        parts = []
        for name, value in self.differing().items():
            flag = "--" + name.replace("_", "-")
            parts.append(flag if value is True else f"{flag} {shlex.quote(str(value))}")
        return " ".join(parts)

    def differing(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}


def effect_of(entry: Field[Any]) -> Effect:
    """What an entry of `Options` changes."""
    effect: Effect = entry.metadata.get("effect", "code")
    return effect


@dataclass(frozen=True)
class Asked:
    """What a user's pass list asks of a compilation: chip and toolkit (or ""), and fields of the options."""

    chip: str = ""
    toolkit: str = ""
    fields: dict[str, Any] = field(default_factory=dict)


class GivenOptions:
    """Options written down before it is known for which back end."""

    given: Any = ""


def _of_class(option: type[CompileOption]) -> CompileOption:
    """The option that a class without a value stands for."""
    try:
        return option()
    except TypeError as error:
        raise CompileError(
            f"{option.__name__} needs a value", hint=f"write {option.__name__}(...); only switches stand for themselves"
        ) from error


_ALIASES = {"enable_device_assertions": "enable_assertions", "enable_ir_printing": "print_ir", "gpu_name": "gpu_arch"}


def parse_flags(text: str, options: type[Options]) -> dict[str, Any]:
    """`--opt-level 2 --keep-ir` as `{"opt_level": 2, "keep_ir": True}`; a flag that `options` lacks is an error."""
    known = {field.name: field for field in fields(options)}
    words, position = shlex.split(text), 0
    result: dict[str, Any] = {}
    while position < len(words):
        flag, equals, value = words[position].partition("=")
        position += 1
        name = flag.removeprefix("--").replace("-", "_")
        name = _ALIASES.get(name, name)
        if not flag.startswith("--") or name not in known:
            raise CompileError(
                f"unknown compile option {flag!r}", values={"options": text}, hint=f"known: {flag_names(options)}"
            )
        if isinstance(known[name].default, bool):
            result[name] = _switch(flag, value) if equals else True
            continue
        if not equals:
            if position == len(words):
                raise CompileError(f"option {flag} needs a value", values={"options": text})
            value, position = words[position], position + 1
        result[name] = _typed(flag, value, known[name].default)
    if result.get("host_target"):
        parse_host_target(result["host_target"])
    return result


_SWITCHES = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}


def _switch(flag: str, value: str) -> bool:
    if value.lower() not in _SWITCHES:
        raise CompileError(f"{flag}={value} is neither on nor off", hint=f"one of {', '.join(_SWITCHES)}")
    return _SWITCHES[value.lower()]


def _typed(flag: str, text: str, default: object) -> object:
    """The value of a flag in the type of its default."""
    if flag == "--opt-level":
        return check_level(text)
    if not isinstance(default, int | float):
        return text
    try:
        return type(default)(text)
    except ValueError as error:
        raise CompileError(f"{flag} takes a number, not {text!r}", values={"default": default}) from error


def check_level(value: object) -> int:
    """The optimisation level, 0 to 3.

    Raises:
        CompileError: it is none.
    """
    if str(value) not in ("0", "1", "2", "3"):
        raise CompileError(f"opt-level is 0, 1, 2 or 3, not {value}")
    return int(str(value))


def flag_names(options: type[Options]) -> str:
    """All flags, for messages."""
    return ", ".join("--" + field.name.replace("_", "-") for field in fields(options))
