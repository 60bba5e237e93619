"""Where in the user's source an operation comes from.

A frame belongs to the user when its file is outside this package and Python's own library. Bodies of rewritten
regions are functions of the user's file whose name starts with `REGION_PREFIX`; they are part of the function around
them, not a call.
"""

from __future__ import annotations

import dis
import functools
import itertools
import re
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError, TilewrightError
from tilewright.base.interrupts import raised_by_signal
from tilewright.base.location import SourceLocation, stable_file
from tilewright.ir import mlir
from tilewright.ir.context import current as session
from tilewright.lang.diagnostics.hints import hint_for

if TYPE_CHECKING:
    from mlir import ir

_LIBRARY = sysconfig.get_path("stdlib") + "/"
_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"
_LIBRARY_CODE = _PACKAGE + "lib/"
_KERNEL_FOLDERS = (_PACKAGE + "kernels/", _LIBRARY_CODE, _PACKAGE + "tools/demo")
_EPILOGUES = _PACKAGE + "lib/epilogue/"  # traces functions of the user's; only what it lowers to is device code
REGION_PREFIX = "__tilewright_"
TRACE_ROOT = "_trace_root"  # the frame that calls the user's function; nothing outside it is part of the program

_is_user_file: dict[str, bool] = {}


def _of_python(file: str) -> bool:
    return file.startswith(_LIBRARY) and "-packages/" not in file


def _of_user(code: CodeType) -> bool:
    known = _is_user_file.get(code.co_filename)
    if known is None:
        known = _is_user_file[code.co_filename] = _is_file_of_user(code.co_filename)
    return known and not _is_generated(code)


def _is_file_of_user(file: str) -> bool:
    device_code = file.startswith(_KERNEL_FOLDERS) and not (
        file.startswith(_EPILOGUES) and not file.startswith(_EPILOGUES + "lowering/")
    )
    ours = file.startswith(_PACKAGE) and not device_code
    return not ours and not file.startswith("<frozen") and not _of_python(file)


def _is_generated(code: CodeType) -> bool:
    """True for methods that `dataclasses` and `namedtuple` write."""
    if code.co_filename != "<string>":
        return False
    return code.co_qualname.startswith("__create_fn__") or code.co_varnames[:1] == ("_cls",)


def is_user_code(code: CodeType) -> bool:
    """True for functions outside this package."""
    return _of_user(code)


_MOST_CALLS = 64  # in the location of one operation
Step = tuple[CodeType, int]  # a function and the instruction it is at


def _user_places(frame: FrameType | None) -> list[Step]:
    """The user's frames, innermost first; see `_of_program`. (`_of_user` is written out: it runs for each.)"""
    places: list[Step] = []
    inside_region = False
    known = _is_user_file
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if known[file] if file in known and file != "<string>" else _of_user(code):
            if not inside_region:
                places.append((code, frame.f_lasti))
            inside_region = code.co_name.startswith(REGION_PREFIX)
        elif code.co_name == TRACE_ROOT:
            break
        frame = frame.f_back
    return places


def _of_program(steps: list[Step]) -> list[Step]:
    """Those steps, innermost first, that are the user's; a region and the function around it count once."""
    places: list[Step] = []
    inside_region = False
    for code, instruction in steps:
        if _of_user(code):
            if not inside_region:
                places.append((code, instruction))
            inside_region = code.co_name.startswith(REGION_PREFIX)
    return places


def _source_location(code: CodeType, instruction: int) -> SourceLocation:
    return _place(code, instruction, code.co_filename, code.co_linetable)


@functools.lru_cache(maxsize=4096)
def _place(code: CodeType, instruction: int, file: str, _: bytes) -> SourceLocation:
    """Python may take code objects of two files or lines for equal: hence the file and the table of lines."""
    positions = code.co_positions()
    line, end_line, column, end_column = next(itertools.islice(positions, instruction // 2, None))
    line = line or code.co_firstlineno
    name = code.co_name
    one_line = end_line == line and column is not None and end_column is not None
    return SourceLocation(stable_file(file), line, column or 0, (end_column or 0) if one_line else 0, name)


def user_location(depth: int = 1) -> SourceLocation | None:
    """The user's line that is running now, with the chain of calls that led there; None outside the user's code."""
    return _chain(_user_places(sys._getframe(depth)))


def calling_location() -> SourceLocation | None:
    """`user_location` outside the code of the library: the line that called what the library offers."""
    place = user_location(2)
    while place is not None and place.file.startswith(_LIBRARY_CODE) and place.caller is not None:
        place = place.caller
    return place


_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")


def assigned_name() -> str:
    """The variable to which the user's line that is running now assigns; "" where it assigns none, or several."""
    places = _user_places(sys._getframe(1))
    if not places:
        return ""
    place = _source_location(*places[0])
    found = _ASSIGNMENT.match(place.source())
    return found.group(1) if found else ""


def place_of(error: BaseException) -> SourceLocation | None:
    """The user's line in which `error` was raised, with the chain of calls that led there."""
    steps: list[Step] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        steps = [] if code.co_name == TRACE_ROOT else [(code, trace.tb_lasti), *steps]
        trace = trace.tb_next
    return _chain(_of_program(steps))


class ErrorsLocated:
    """Inside this context every error is one of ours, with the user's line.

    An error of ours that names no line gets one: where it was raised, else where we are. What Python raises by
    itself (an unknown name, a wrong number of arguments, ...) becomes a `CompileError` that is of Python's class too.
    What the user raises, or asserts, stays as it is.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, TilewrightError):
            if error.location is None:
                error.location = place_of(error) or user_location()
        elif isinstance(error, Exception) and not isinstance(error, Warning) and not _of_others(error):
            raise _as_ours(error).with_traceback(error.__traceback__) from error


def _of_others(error: Exception) -> bool:
    return _raised_by_user(error) or raised_by_signal(error)


def _raised_by_user(error: BaseException) -> bool:
    """True when a `raise` or `assert` outside this package and Python's own library raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not _of_user(trace.tb_frame.f_code):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] in _RAISES


_RAISES = tuple(dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in dis.opmap)


def _as_ours(error: Exception) -> CompileError:
    """The same complaint as an error of ours."""
    kind: Any = type(error)
    facts: Any = {"location": place_of(error) or user_location(), "hint": hint_for(error)}
    message = f"{type(error).__name__}: {error}"
    try:
        made = _class_of_both(kind)(message, **facts)
    except TypeError:  # the class takes more than a message
        made = CompileError(message, **facts)
    made.__dict__.update(vars(error))
    return made


@functools.cache
def _class_of_both(kind: type[Exception]) -> type[CompileError]:
    """An error class that `except CompileError` and `except kind` both catch."""
    try:
        return type(
            "CompileError", (CompileError, kind), {"__module__": CompileError.__module__, "__reduce__": _reduce}
        )
    except TypeError:  # the two have different layouts in C
        return CompileError


def _reduce(error: CompileError) -> tuple[Any, ...]:
    """How an error of two classes is pickled, for pools of processes: `pickle` finds no class by its name."""
    return _made_again, (type(error).__bases__[1], error.args), vars(error)


def _made_again(kind: Any, args: tuple[Any, ...]) -> CompileError:
    cls = _class_of_both(kind)
    return cls.__new__(cls, *args)


def _chain(places: list[Step]) -> SourceLocation | None:
    place: SourceLocation | None = None
    for code, instruction in reversed(places):
        inner = _source_location(code, instruction)
        place = SourceLocation(inner.file, inner.line, inner.column, inner.end_column, inner.function, place)
    return place


def current() -> ir.Location:
    """The MLIR location of the user's line that is running now: a chain of call sites, innermost first."""
    return _located(tuple(_shortened(_user_places(sys._getframe(1)))))


def _shortened(places: list[Step]) -> list[Step]:
    """Of a deep recursion its innermost and its outermost calls."""
    return places if len(places) <= _MOST_CALLS else places[: _MOST_CALLS // 2] + places[-_MOST_CALLS // 2 :]


def current_line() -> ir.Location:
    """`current` without the calls that led there: for modules and functions, where debug information takes no chain."""
    return _located(tuple(_user_places(sys._getframe(1))[:1]))


def _located(places: tuple[Step, ...]) -> ir.Location:
    """Made once for each place. (The hash of a code object is not kept: it is computed from all that the code says.)"""
    key = [
        (code.co_filename, code.co_name, code.co_firstlineno, code.co_linetable, instruction)
        for code, instruction in places
    ]
    return session().cached(("location", *key), lambda: _mlir_location(places))


def _mlir_location(places: tuple[tuple[CodeType, int], ...]) -> ir.Location:
    if not places:
        return session().unknown
    locations = []
    for code, instruction in places:
        place = _source_location(code, instruction)
        locations.append(mlir.ir.Location.file(place.file, place.line, place.column + 1))
    if len(locations) == 1:
        return locations[0]
    return mlir.ir.Location.callsite(locations[0], locations[1:])
