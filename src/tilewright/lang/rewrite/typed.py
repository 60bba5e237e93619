"""The source of functions that came from no file: `exec(text)`, `python -c text`, lines typed into Python's prompt.

No one keeps such a text for us, so it is looked for where it must have been, and taken only if compiling it gives the
very code of the function.
"""

from __future__ import annotations
import __future__

import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FrameType

_PROMPT = "<stdin>"
_MOST_LINES = 2000  # of history that are looked through
_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def lines_of(code: CodeType) -> list[str]:
    """The lines of the text that `code` was compiled from; call it while that text runs. Empty where none is found."""
    for text in _texts(code):
        if code.co_name in text and _gives(text, code):
            return text.splitlines(keepends=True)
    return []


def _texts(code: CodeType) -> Iterator[str]:
    if code.co_filename == _PROMPT:
        yield from _history()
        return
    if "-c" in sys.orig_argv[1:-1]:
        yield sys.orig_argv[sys.orig_argv.index("-c", 1) + 1]
    caller = _caller_of_exec(code.co_filename)
    if caller is not None:
        for values in (caller.f_locals.values(), caller.f_code.co_consts, caller.f_globals.values()):
            for value in [value for value in values if isinstance(value, str)]:
                yield from (value, textwrap.dedent(value))


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


def _gives(text: str, code: CodeType) -> bool:
    """True when the text compiles to `code` among others."""
    try:
        made = compile(text, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    waiting = [made]
    while waiting:
        inner = [const for const in waiting.pop().co_consts if isinstance(const, CodeType)]
        if code in inner:
            return True
        waiting += inner
    return False
