"""Standard output and error of a command: there even when closed, and in ASCII where the terminal has no more."""

from __future__ import annotations

import codecs
import os
import sys
from typing import Final

HANDLER: Final = "tilewright.ascii"
"""The codec error handler: characters that an encoding lacks in ASCII."""
_ASCII: Final = {
    "→": "->", "←": "<-", "✓": "+", "✗": "x", "·": "-", "×": "x", "…": "...", "–": "-", "—": "--", "µ": "u", "²": "^2",
    "³": "^3", "≤": "<=", "≥": ">=", "≠": "!=", "Σ": "sum", "∘": "o", "’": "'", "‘": "'", "“": '"', "”": '"', "•": "*",
    "─": "-", "━": "-", "│": "|", "┃": "|", "█": "#", "▇": "#",
}  # fmt: skip


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    parts = []
    for character in error.object[error.start : error.end]:
        escaped = character.encode("ascii", "backslashreplace").decode("ascii")
        parts.append(_ASCII.get(character, escaped))
    return "".join(parts), error.end


codecs.register_error(HANDLER, _in_ascii)


def steady() -> None:
    """Let the streams take any text: in ASCII what their encoding lacks, to nowhere what goes to a closed one."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (open until the process ends)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)


def flush() -> None:
    """Write what is waiting, so that a full disk or a closed pipe is an error while errors can be reported.

    Raises:
        OSError: it cannot be written.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


def give_up_output() -> None:
    """Drop what waits for an output that cannot be written, so that the exit does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (open until the process ends)
    finally:
        os.close(nowhere)
