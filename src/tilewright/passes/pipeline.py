"""Pass lists: as text, as objects, and running them.

A list is written `builtin.module(my-pass{n=1},cute-to-nvvm{cubin-chip=sm_90a opt-level=3})`. A name is looked up
among the passes registered here, then among MLIR's own.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.base import settings
from tilewright.base.errors import PassError, TilewrightError
from tilewright.base.interrupts import raised_by_signal
from tilewright.base.location import SourceLocation
from tilewright.ir import mlir
from tilewright.ir.context import current, names_of
from tilewright.ir.erasing import checked_erasing
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.ir.walk import unknown_operation as find_unknown
from tilewright.passes.pass_errors import raised_at, reason_of
from tilewright.passes.verify import verify

if TYPE_CHECKING:
    from mlir import ir


class Pass:
    """Base of all passes. A subclass names itself and writes `run`; its `options` are the defaults.

    `in_cute` says that what it leaves is stage `cute`, which has rules of its own. `requires` are names of passes that
    must have run before, in this pipeline or an earlier stage. `check` and `ensures` may look at the module before and
    after and raise.

    `stage` says where the pass belongs in a list that does not place it: `cute` (the default) or `nvvm`, at the end of
    that stage. A pass over text says `llvm` or `ptx`, and writes `run_text` instead of `run`: it gets the text of each
    kernel when that stage is made.
    """

    name: ClassVar[str] = ""
    stage: ClassVar[str] = ""
    options: ClassVar[Mapping[str, object]] = {}
    requires: ClassVar[tuple[str, ...]] = ()
    in_cute: ClassVar[bool] = True

    def __init__(self, **options: object) -> None:
        known = {key.replace("-", "_"): key for key in type(self).options}
        for key in options:
            if key.replace("-", "_") not in known:
                raise PassError(
                    f"pass {self.name} has no option {key!r}",
                    hint=f"its options: {', '.join(type(self).options) or 'none'}",
                )
        given = {key.replace("-", "_"): value for key, value in options.items()}
        self.values = {key: given.get(key.replace("-", "_"), default) for key, default in type(self).options.items()}
        self.given = {key: self.values[key] for key in type(self).options if key.replace("-", "_") in given}

    def __getitem__(self, option: str) -> Any:
        return self.values[option]

    def run(self, module: ir.Operation) -> None:
        """Change `module`, or only look at it."""
        raise PassError(f"pass {self.name} has no run(module)", hint="write the method in your subclass")

    def run_text(self, text: str, kernel: str) -> str:
        """The text of the pass's stage for `kernel`, changed or as it was."""
        raise PassError(
            f"pass {self.name} has no run_text(text, kernel)", hint=f"it runs at stage {self.stage}, over text"
        )

    def check(self, module: ir.Operation) -> None:
        """Raise when `module` is not what the pass can take."""

    def ensures(self, module: ir.Operation) -> None:
        """Raise when `module` is not what the pass promises."""

    def __str__(self) -> str:
        return self.name + _options_text(self.given)


_CONVERTS = {
    "convert-scf-to-cf": "scf",
    "convert-vector-to-llvm": "vector",
    "convert-math-to-llvm": "math",
    "convert-math-to-libm": "math",
}
"""Conversions of MLIR that do nothing where a module has no operation of the dialect."""


class UpstreamPass(Pass):
    """One of MLIR's own passes, or a nest such as `gpu.module(convert-gpu-to-nvvm)`, by its text.

    The module is verified before the first of them and after the last, not between: these passes are MLIR's own.
    """

    name = "upstream"

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def run(self, module: ir.Operation) -> None:
        text = self._needed(module)
        if not text:
            return
        manager = current().cached(("pass manager", text), lambda: self._parse(text))
        try:
            manager.run(module)
        except mlir.ir.MLIRError as error:
            raise PassError(f"pass {self.text} failed", nvvm_error=_diagnostics(error)) from error

    def _needed(self, module: ir.Operation) -> str:
        """The text without the conversions from dialects of which `module` has no operation: MLIR builds the patterns
        of a conversion before it looks for what they match."""
        if not any(name in self.text for name in _CONVERTS):
            return self.text
        nest, opened, listed = self.text.partition("(")
        if (opened and not listed.endswith(")")) or re.search(r"\{[^}]*[,({]", self.text):
            return self.text
        names = (listed[:-1] if opened else self.text).split(",")
        present = {name.partition(".")[0] for name in names_of(module)}
        kept = [name for name in names if _CONVERTS.get(name.partition("{")[0]) in (None, *present)]
        return f"{nest}({','.join(kept)})" if opened and kept else ",".join(kept)

    def _parse(self, text: str) -> Any:
        try:
            manager = mlir.passmanager.PassManager.parse(f"builtin.module({text})")
        except ValueError as error:
            name = self.text.partition("{")[0]
            raise PassError(
                f"unknown pass {name!r}",
                hint=f"registered passes: {', '.join(sorted(REGISTRY))}",
                nvvm_error=str(error),
            ) from error
        manager.enable_verifier(False)
        return manager

    def __str__(self) -> str:
        return self.text


PassLike = Pass | type[Pass] | str

REGISTRY: dict[str, type[Pass]] = {}


def register(cls: type[Pass]) -> type[Pass]:
    """Class decorator: make a pass known by its name."""
    if not cls.name:
        raise PassError(f"{cls.__name__} has no name", hint='set `name = "my-pass"` in the class')
    check_stage(cls)
    REGISTRY[cls.name] = cls
    return cls


TEXT_STAGES = ("llvm", "ptx")
OTHER_STAGES: set[str] = set()
"""Stages of further back ends whose modules have passes; they begin where those of stage `cute` end."""


def add_stage(name: str) -> None:
    """Let passes say `stage = name`: a back end runs them on modules of its own."""
    OTHER_STAGES.add(name)


def check_stage(item: Pass | type[Pass]) -> None:
    """Refuse a pass at a stage that has no passes."""
    if item.stage not in ("", "cute", "nvvm", *TEXT_STAGES, *OTHER_STAGES):
        raise PassError(
            f"pass {item.name}: there are no passes at stage {item.stage!r}",
            hint="`stage` is cute or nvvm for passes over the module, llvm or ptx for passes over text",
        )


@dataclass
class PassRun:
    """What a pass took: seconds, and the number of operations before and after."""

    name: str
    seconds: float


@dataclass
class PassManager:
    """An ordered list of passes over a module.

    With `verify` the module is verified, by MLIR and by the rules of stage `cute`, after passes that are not the
    project's own; after all with the setting of that name. `after_each(pass, module)` is called after every pass, for
    dumping and exploring.
    """

    passes: list[Pass] = field(default_factory=list)
    verify: bool = True
    runs: list[PassRun] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> PassManager:
        """The list written `builtin.module(a{x=1},b)`."""
        return cls([make(name, options) for name, options in _split(text)])

    def __str__(self) -> str:
        return f"builtin.module({','.join(str(item) for item in self.passes)})"

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def resolved(self) -> PassManager:
        """The list with the passes that were not known yet by their names when it was written."""
        late = [isinstance(item, UpstreamPass) and item.text.partition("{")[0] in REGISTRY for item in self.passes]
        passes = [as_pass(str(item)) if known else item for item, known in zip(self.passes, late, strict=True)]
        return replace(self, passes=passes, runs=[]) if any(late) else self

    def key(self) -> Hashable:
        """What tells this list from every other: for a pass of the user its code and its state too."""
        return (self.verify, *[_key(item) for item in self.passes])

    def enable_verifier(self, enable: bool) -> None:
        """Set `verify`, by the name that MLIR's pass manager has."""
        self.verify = bool(enable)

    def add_pass(self, name: str, options: Mapping[str, object] | None = None) -> PassManager:
        """Append the pass registered as `name`."""
        self.passes.append(make(name, dict(options or {})))
        return self

    def build_pipeline(self, base: str | None = None) -> str:
        """The text of these passes, followed by those of `base`."""
        rest = PassManager.parse(base).passes if base else []
        return str(PassManager(self.passes + rest))

    def insert(self, item: Pass, *, before: str | None = None, after: str | None = None) -> PassManager:
        """Put a pass before or after the one of the given name."""
        wanted = before or after
        names = [entry.name if not isinstance(entry, UpstreamPass) else entry.text for entry in self.passes]
        if wanted not in names:
            raise PassError(f"no pass {wanted!r} to insert {item.name} at", hint=f"the list has: {', '.join(names)}")
        position = names.index(wanted) + (0 if before else 1)
        self.passes.insert(position, item)
        return self

    def run(
        self,
        module: ir.Operation,
        *,
        done: Sequence[str] = (),
        after_each: Callable[[Pass, ir.Operation], None] | None = None,
    ) -> None:
        """Run all passes; `done` names those which ran in earlier stages."""
        self.check_order(done)
        for item in self.passes:
            if item.stage in TEXT_STAGES:
                continue
            self._run_one(item, module)
            if after_each is not None:
                after_each(item, module)

    def over_text(self, stage: str) -> list[Pass]:
        """The passes over the text of a stage, in order."""
        return [item for item in self.passes if item.stage == stage]

    def run_text(
        self, stage: str, text: str, kernel: str, after_each: Callable[[Pass, Any], None] | None = None
    ) -> tuple[str, str]:
        """Run the passes over the text of `stage`: the text, and the name of the last that changed it ("" for none)."""
        changed = ""
        for item in self.over_text(stage):
            start = time.perf_counter()
            made = _run_text(item, text, kernel)
            self.runs.append(PassRun(str(item), time.perf_counter() - start))
            changed = item.name if made != text else changed
            text = made
            if after_each is not None:
                after_each(item, text)
        return text, changed

    def check_order(self, done: Sequence[str] = ()) -> None:
        """Refuse a list in which a pass comes before one that it requires; `done` names those which have run."""
        finished = set(done)
        for item in self.passes:
            for needed in item.requires:
                if needed not in finished:
                    raise PassError(
                        f"Error: Pass {item.name} requires {needed} but {needed} was not run",
                        values={"passes": self},
                        hint=f"put {needed} before {item.name}",
                    )
            finished.add(item.name)

    def _run_one(self, item: Pass, module: ir.Operation) -> None:
        start = time.perf_counter()
        item.check(module)
        try:
            with nullcontext() if _is_ours(item) else checked_erasing():
                item.run(module)
        except mlir.ir.MLIRError as error:
            text = _diagnostics(error)
            raise PassError(f"pass {item.name} failed", values={"reason": text}, nvvm_error=text) from error
        except TilewrightError:
            raise
        except Exception as error:
            if raised_by_signal(error):
                raise
            values = {"reason": reason_of(error)} | raised_at(error)
            raise PassError(f"pass {item.name} failed", values=values) from error
        if not _is_ours(item) or isinstance(item, UpstreamPass):
            current().named = False
        item.ensures(module)
        self.runs.append(PassRun(str(item), time.perf_counter() - start))
        if self.verify and _is_checked(item) and not isinstance(item, UpstreamPass):
            self._verify(item, module)

    def _verify(self, item: Pass, module: ir.Operation) -> None:
        if not _is_ours(item):  # ours make no operation of no dialect
            check_known(operations(module), f"pass {item.name}")
        if not _is_ours(item) or item.in_cute:
            verify(module, f"pass {item.name}")  # before MLIR, which names neither operation nor operand
        try:
            module.verify()
        except mlir.ir.MLIRError as error:
            raise PassError(
                f"pass {item.name} left a module that is not valid",
                location=_diagnosed_at(error),
                nvvm_error=_diagnostics(error),
                values={"reason": _diagnostics(error)},
            ) from error


def _run_text(item: Pass, text: str, kernel: str) -> str:
    try:
        made = item.run_text(text, kernel)
    except TilewrightError:
        raise
    except Exception as error:
        if raised_by_signal(error):
            raise
        values = {"kernel": kernel, "reason": reason_of(error)} | raised_at(error)
        raise PassError(f"pass {item.name} failed", values=values) from error
    if not isinstance(made, str):
        raise PassError(
            f"pass {item.name} gives {type(made).__name__}, not text",
            hint="run_text returns the text, also where it changes nothing",
        )
    return made


def _is_checked(item: Pass) -> bool:
    return not _is_ours(item) or bool(settings.get("verify"))


def _is_ours(item: Pass) -> bool:
    return type(item).__module__.startswith("tilewright.")


def _key(item: Pass) -> Hashable:
    if _is_ours(item):
        return str(item)
    # A class may be defined anew under its name, as by a notebook's cell, and its methods may be replaced.
    state = [(name, _hashable(value)) for name, value in sorted(vars(item).items())]
    methods = [getattr(type(item), name) for name in ("run", "run_text", "check", "ensures")]
    return (str(item), type(item), *methods, *state)


def _hashable(value: object) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


class Placed:
    """A pass and where it goes in the list."""

    def __init__(self, item: PassLike, *, before: str | None = None, after: str | None = None) -> None:
        self.item, self.before, self.after = as_pass(item), before, after


def as_pass(item: PassLike) -> Pass:
    """A pass given as an object, as its class, or as text: `limit-loads{most=5}`.

    Raises:
        PassError: it is none of these.
    """
    if isinstance(item, Pass):
        return item
    if isinstance(item, type) and issubclass(item, Pass):
        return item()
    if isinstance(item, str):
        return make(*_split_options(item.strip()))
    raise PassError(
        f"a pass is expected, not {type(item).__name__}",
        values={"got": item},
        hint="write a class with `name` and `run(self, module)` over tilewright.Pass",
    )


def before(name: str, item: PassLike) -> Placed:
    """Run `item` before the pass called `name`."""
    return Placed(item, before=name)


def after(name: str, item: PassLike) -> Placed:
    """Run `item` after the pass called `name`."""
    return Placed(item, after=name)


def make(name: str, options: Mapping[str, object]) -> Pass:
    """The pass registered as `name` with options, else MLIR's pass of that name."""
    cls = REGISTRY.get(name)
    if cls is None:
        return UpstreamPass(name + _options_text(options))
    return cls(**_typed(cls, options))


_NO_DIALECT = re.compile(
    r"unregistered (?:operation|dialect)[^'\"]*['\"]([\w.]+)|custom op '([\w.]+)'|unregistered operation '([\w.]+)'"
)


def unknown_name(text: str) -> str:
    """The operation of no dialect that MLIR's message `text` is about, empty when it is about something else."""
    found = _NO_DIALECT.search(text)
    return next((name for name in found.groups() if name), "") if found else ""


def unknown_operation(
    name: str, values: Mapping[str, object] | None = None, location: SourceLocation | None = None
) -> PassError:
    """The error for an operation of no dialect."""
    return PassError(
        f"Error: unknown operation {name!r}",
        location=location,
        values=values,
        hint="operations belong to a dialect: cute, gpu, nvvm, llvm, arith, scf, math, vector; to add your own, "
        "build it from these in a @dsl_user_op, or tell the IR of it with tilewright.register_op",
    )


def check_known(found: Sequence[ir.Operation], maker: str = "") -> None:
    """Refuse operations that no dialect has among those of a module; `maker` is who left the module so."""
    op = find_unknown(found)
    if op is not None:
        raise unknown_operation(op.name, {"made by": maker} if maker else None, source_location(op.location))


def _diagnostics(error: Exception) -> str:
    lines = [str(item.message) for item in getattr(error, "error_diagnostics", [])]
    return "; ".join(lines) or str(error)


def _diagnosed_at(error: Exception) -> SourceLocation | None:
    places = (source_location(item.location) for item in getattr(error, "error_diagnostics", []))
    return next((place for place in places if place is not None), None)


def _typed(cls: type[Pass], options: Mapping[str, object]) -> dict[str, object]:
    """Options from text in the type of their defaults."""
    known = {key.replace("-", "_"): key for key in cls.options}
    result: dict[str, object] = {}
    for key, value in options.items():
        name = key.replace("-", "_")
        default = cls.options.get(known.get(name, ""), None)
        result[name] = _converted(f"option {key} of {cls.name}", value, default) if isinstance(value, str) else value
    return result


_BOOLEANS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}


def _converted(what: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in _BOOLEANS:
            raise PassError(f"{what}: {text!r} is neither true nor false")
        return _BOOLEANS[text.lower()]
    if isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError as error:
            kind = "an integer" if isinstance(default, int) else "a number"
            raise PassError(f"{what}: {text!r} is not {kind}", values={"default": default}) from error
    return text


def _options_text(options: Mapping[str, object]) -> str:
    def value_text(value: object) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    def quoted(text: str) -> str:
        return f'"{text}"' if " " in text else text

    pairs = " ".join(f"{key}={quoted(value_text(value))}" for key, value in options.items())
    return f"{{{pairs}}}" if pairs else ""


def _split(text: str) -> list[tuple[str, dict[str, object]]]:
    """`builtin.module(a{x=1},gpu.module(b))` as [("a", {"x": "1"}), ("gpu.module(b)", {})]."""
    text = text.strip()
    prefix = "builtin.module("
    if not (text.startswith(prefix) and text.endswith(")")):
        raise PassError(f"not a pipeline: {text!r}", hint="write builtin.module(pass-a,pass-b{option=1})")
    items, depth, start = [], 0, len(prefix)
    for position in range(start, len(text)):
        char = text[position]
        depth += (char in "({") - (char in ")}")
        if depth < 0 or (depth == 0 and char == ","):
            items.append(text[start:position].strip())
            start = position + 1
    if depth != -1:
        raise PassError(f"brackets do not match in {text!r}")
    return [_split_options(item) for item in items if item]


def _split_options(item: str) -> tuple[str, dict[str, object]]:
    name, brace, rest = item.partition("{")
    if not brace or "(" in name:
        return item, {}
    options: dict[str, object] = {}
    text = rest.rstrip("}")
    words = shlex.split(text) if '"' in text or "'" in text else text.split()
    flags = bool(words) and words[0].startswith("--")  # `--opt-level 2 --keep-ptx`, as `CompileOptions` spells them
    for word in words:
        key, equals, value = word.partition("=")
        if flags and not word.startswith("--"):
            options[next(reversed(options))] = word
        else:
            options[key.removeprefix("--")] = value if equals else True
    return name.strip(), options
