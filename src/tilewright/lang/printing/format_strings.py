"""The format strings of `printf`: C's conversions and Python's `{}` places, parsed and checked.

Sources: ISO C, "The fprintf function"; Python's "Format Specification Mini-Language"; what the device's `vprintf`
knows: CUDA C++ Programming Guide, "Formatted Output".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location

INTEGER, FLOAT, TEXT = "diuoxX", "fFeEgGaA", "s"
_MARKS = re.compile(
    r"%%|\{\{|\}\}"
    r"|\{(?::(?P<spec>[^{}]*))?\}"
    r"|%(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?(?:hh|h|ll|l|z|j|t|L)?(?P<kind>[a-zA-Z]?)"
)
_SPEC = re.compile(
    r"(?P<align>[<>]?)(?P<sign>[-+ ]?)(?P<other>\#?)(?P<zero>0?)(?P<width>\d*)"
    r"(?:\.(?P<precision>\d+))?(?P<kind>[a-zA-Z]?)"
)
_ESCAPES = {"%%": "%%", "{{": "{", "}}": "}"}


@dataclass(frozen=True)
class Place:
    """Where a value goes: `mark` as it was written, and its parts in C's terms; `kind` is empty for `{}`."""

    mark: str
    flags: str = ""
    width: str = ""
    precision: str | None = None
    kind: str = ""

    @property
    def free(self) -> bool:
        """True where the value chooses how it is printed."""
        return self.kind in ("", TEXT)

    def conversion(self, kind: str, *, long: bool = False, precise: bool = True) -> str:
        """C's conversion of this place for a number; `long` for 64 bits."""
        precision = f".{self.precision}" if self.precision is not None and precise else ""
        return f"%{self.flags}{self.width}{precision}{'ll' if long else ''}{kind}"

    def text(self, value: str) -> str:
        """A text known at compile time, as it stands in the format; in `{:5}` texts stand left, as in Python."""
        left = "-" if self.mark.startswith("{") and ">" not in self.mark else ""
        return (f"%{left}{self.conversion(TEXT)[1:]}" % value).replace("%", "%%")


PLAIN = Place("{}")


def fill(text: str, convert: Callable[[Place], str]) -> str:
    """The format as C has it: `convert(place)` gives the conversion for each place, in order.

    Raises:
        CompileError: a conversion that there is not.
    """

    def replace(match: re.Match[str]) -> str:
        mark = match.group()
        if mark in _ESCAPES:
            return _ESCAPES[mark]
        return convert(_python_place(mark, match["spec"]) if mark.startswith("{") else _c_place(mark, match))

    return _MARKS.sub(replace, text)


def _c_place(mark: str, match: re.Match[str]) -> Place:
    kind = match["kind"]
    if not kind or kind not in INTEGER + FLOAT + TEXT + "cp":
        raise CompileError(
            f"printf has no conversion `{mark}`",
            location=user_location(),
            hint="it has % with one of d i u o x X f e g a c s p, and {}; a percent sign is written %%",
        )
    return Place(mark, match["flags"], match["width"], match["precision"], kind)


def _python_place(mark: str, spec: str | None) -> Place:
    match = _SPEC.fullmatch(spec or "")
    if match is None or match["kind"] not in "" + INTEGER + FLOAT + TEXT + "c":
        raise CompileError(
            f"printf has no place `{mark}`",
            location=user_location(),
            hint="of Python's format specifications it knows < and >, a sign, #, 0, width, precision and a type",
        )
    flags = ("-" if match["align"] == "<" else "") + match["sign"].strip("-") + match["other"] + match["zero"]
    return Place(mark, flags, match["width"], match["precision"], match["kind"])


def misfit(place: Place, what: str) -> CompileError:
    """The error of a value that a place does not take."""
    wanted = "an integer" if place.kind in INTEGER + "c" else "a pointer" if place.kind == "p" else "a number"
    return CompileError(
        f"printf `{place.mark}` takes {wanted}, not {what}",
        location=user_location(),
        hint="`{}` prints any value" + ("; `%f` prints a float" if what.startswith("a Float") else ""),
    )
