"""The source of functions that came from no file: `exec(text)`, `python -c text`, standard input, prompts.

No one keeps such a text for us, so it is looked for where it must have been, and taken only if compiling it gives the
very code of the function.
"""

from __future__ import annotations
import __future__

import os
import stat
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from types import CodeType, FrameType

from tilewright.lang.rewrite import code_equality

_STDIN = "<stdin>"
_MOST_LINES = 2000  # of history that are looked through
_MOST_CALLERS = 4
_LONGEST_NAME = 1000
_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def lines_of(code: CodeType) -> list[str]:
    """The lines of the text that `code` was compiled from; call it while that text runs. Empty where none is found."""
    for text in _texts(code):
        if code.co_name in text and gives(text, code):
            return text.splitlines(keepends=True)
    return []


def _texts(code: CodeType) -> Iterator[str]:
    if code.co_filename == _STDIN:
        yield from _standard_input()
        yield from _history()
        return
    if "-c" in sys.orig_argv[1:-1]:
        yield sys.orig_argv[sys.orig_argv.index("-c", 1) + 1]
    frame = _caller_of_exec(code.co_filename)
    for _ in range(_MOST_CALLERS):  # `exec` may stand in a helper of who has the text
        if frame is not None:
            yield from _texts_of(frame)
            frame = frame.f_back


def _texts_of(frame: FrameType) -> Iterator[str]:
    """The texts that a frame holds, and those of the files whose names it holds."""
    for values in (frame.f_locals.values(), frame.f_code.co_consts, frame.f_globals.values()):
        for value in list(values):
            if isinstance(value, str):
                yield from (value, textwrap.dedent(value))
            if isinstance(value, str | os.PathLike):
                yield from _file(value)


def _file(name: str | os.PathLike[str]) -> Iterator[str]:
    text = os.fspath(name)
    if not isinstance(text, str) or len(text) > _LONGEST_NAME or "\n" in text or not os.path.isfile(text):
        return
    try:
        with tokenize.open(text) as file:
            yield file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return


def _standard_input() -> Iterator[str]:
    """What was redirected into Python from a file; from a pipe it can't be read twice."""
    try:
        if stat.S_ISREG(os.fstat(0).st_mode):
            yield os.pread(0, os.fstat(0).st_size, 0).decode()
    except (OSError, UnicodeDecodeError):
        return


def _caller_of_exec(file: str) -> FrameType | None:
    """The frame that runs the module of that file name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_code.co_filename == file):
        frame = frame.f_back
    return frame.f_back if frame is not None else None


def _history() -> Iterator[str]:
    """What was typed from each line on at which a definition may begin, the last first."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    count = readline.get_current_history_length()
    lines = [readline.get_history_item(i) or "" for i in range(max(1, count - _MOST_LINES), count + 1)]
    for start in reversed(range(len(lines))):
        if lines[start].startswith(("@", "def ")):
            yield "\n".join(lines[start:]) + "\n"


def gives(text: str, code: CodeType) -> bool:
    """True when the text compiles to `code` among others."""
    try:
        made = compile(text, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return any(inner == code or _alike(inner, code) for inner in code_equality.inside(made))


def _alike(inner: CodeType, code: CodeType) -> bool:
    """The same definition at the same place, if the statements of the text were compiled apart."""
    place = (inner.co_name, inner.co_firstlineno) == (code.co_name, code.co_firstlineno)
    return place and code_equality.same(inner, code)
