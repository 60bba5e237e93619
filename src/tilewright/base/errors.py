"""Every error that Tilewright raises.

An error names what disagrees, where in the user's source, and what to do about it. `TilewrightError`
renders these parts in one fixed form; the subclasses say which part of the system refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tilewright.base.location import SourceLocation


class TilewrightError(Exception):
    """Base of all errors of Tilewright.

    Args:
        message: one sentence that says what is wrong.
        location: the user's line at fault.
        values: the things that disagree, by name, printed one a line.
        hint: what the user can do.
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        values: Mapping[str, object] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.values = {name: _lasting(value) for name, value in (values or {}).items()}
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.message]
        if self.location is not None:
            lines += [f"  {line}" for line in self.location.excerpt()]
        width = max((len(name) for name in self.values), default=0)
        lines += [f"  {name:<{width}}  {_text(value)}" for name, value in self.values.items()]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def _lasting(value: object) -> object:
    """`value`, or its text unless it is plain: a runtime value may be gone when the error is printed, and all of its
    MLIR context with it."""
    if isinstance(value, tuple) and type(value) is tuple:
        return value if all(_lasting(item) is item for item in value) else _text(value)
    plain = isinstance(value, str | int | float | BaseException | type | None)
    return value if plain or type(value).__module__.startswith("tilewright.base.") else _text(value)


def _text(value: object) -> str:
    """What it prints as; its class where it has no text, such as an int of too many digits."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001
        return f"a {type(value).__name__} that cannot be printed"


def shown(value: object, most: int = 200) -> str:
    """The `repr` of any object for an error: cut where it is long, its class where it has none."""
    try:
        written = repr(value)
    except Exception:  # noqa: BLE001  (too many digits, too deep, or a `__repr__` of the user's that fails)
        return f"a {type(value).__name__} that cannot be printed"
    return written if len(written) <= most else f"{written[:most]}..."


class LayoutError(TilewrightError, ValueError):
    """A layout function has no right answer for its arguments."""


class CompileError(TilewrightError):
    """A program cannot be compiled.

    `nvvm_error` is the text of the tool that refused, `ir_context` the IR around the fault; both are
    empty when the front end refused the program itself.
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        values: Mapping[str, object] | None = None,
        hint: str | None = None,
        nvvm_error: str = "",
        ir_context: str = "",
    ) -> None:
        super().__init__(message, location=location, values=values, hint=hint)
        self.nvvm_error = nvvm_error
        self.ir_context = ir_context


class PassError(CompileError, ValueError):
    """A pass list is wrong, or a pass failed."""


class EpilogueError(CompileError, RuntimeError):
    """An epilogue, or a graph of one, is wrong; a RuntimeError, as EVT has it."""


class EpilogueSyntaxError(EpilogueError, SyntaxError):
    """An epilogue's source breaks a rule; also a SyntaxError, as EVT has it."""

    def __init__(self, message: str, **parts: Any) -> None:
        super().__init__(message, **parts)
        self.msg = str(self)  # what Python prints of a SyntaxError


class NoImplementationError(EpilogueError, NotImplementedError):
    """No kernel implements a node; a NotImplementedError, as EVT has it."""


class ArgumentError(TilewrightError, TypeError, ValueError):
    """An argument of a call does not fit what the function was compiled for."""


class DimensionError(ArgumentError, IndexError):
    """A dimension that a tensor does not have; an IndexError, as PyTorch has it."""


class MissingPackageError(TilewrightError, ModuleNotFoundError):
    """A Python package is not installed."""


class LeadingDimensionError(ArgumentError, RuntimeError):
    """The mode of stride 1 cannot be deduced; a RuntimeError, as CuTe DSL has it."""


FaultKind = Literal[
    "bounds", "misaligned", "readonly", "uninitialised", "race", "wgmma", "barrier", "mbarrier", "cluster", "deadlock",
    "diverged", "operand", "branch", "call", "tensormap", "free", "trap", "assert", "limit", "program", "internal",
    "custom",
]  # fmt: skip
"""The classes of findings of the emulator; docs/emulator.md says what each means."""


class EmulationError(TilewrightError, RuntimeError):
    """An emulated kernel did something undefined, or cannot be emulated; a RuntimeError, as a driver's error would be.

    `kind` is the class of the finding. It is "program" where the PTX itself is wrong or not emulated.
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        values: Mapping[str, object] | None = None,
        hint: str | None = None,
        kind: FaultKind = "program",
    ) -> None:
        super().__init__(message, location=location, values=values, hint=hint)
        self.kind: FaultKind = kind


class LaunchError(TilewrightError, RuntimeError):
    """The driver or the emulator refused or aborted a launch. `error_code` is the driver's number, where it has one."""

    error_code: Any = None


class CudaDriverDependencyError(TilewrightError, RuntimeError):
    """The target is `cuda` but no driver or device is there."""
