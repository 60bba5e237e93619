"""Tokens of PTX text, with the line of each."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from tilewright.base.errors import EmulationError

_PATTERN = re.compile(
    r"""
    (?P<skip>(?:\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)+)
  | (?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
  | (?P<word>[.%$_A-Za-z][\w$.%]*(?:::[\w.]+)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<mark>[{}\[\](),;:@!|+\-=<>~&*/^?])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


class Token(NamedTuple):
    """A word, number, string or mark, and its offset in the text."""

    kind: str
    text: str
    start: int


class Source:
    """PTX text, its tokens, and the line (from 1) of any offset."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        self.tokens = self._scan()

    def line(self, offset: int) -> int:
        return bisect_right(self._newlines, offset - 1) + 1 if offset else 1

    def line_text(self, line: int) -> str:
        start = self._newlines[line - 2] + 1 if line > 1 else 0
        end = self._newlines[line - 1] if line - 1 < len(self._newlines) else len(self.text)
        return self.text[start:end].strip()

    def error(self, message: str, offset: int, hint: str | None = None) -> EmulationError:
        """An error that shows the line of `offset`."""
        line = self.line(min(offset, len(self.text)))
        shown = self.line_text(line)[:120]
        return EmulationError(f"PTX line {line}: {message}", values={"text": shown}, hint=hint)

    def _scan(self) -> list[Token]:
        tokens = []
        position, end = 0, len(self.text)
        match = _PATTERN.match
        while position < end:
            found = match(self.text, position)
            if found is None:
                raise self.error(f"unexpected character {self.text[position]!r}", position)
            kind = found.lastgroup or ""
            if kind != "skip":
                tokens.append(Token(kind, found.group(), position))
            position = found.end()
        tokens.append(Token("end", "", end))
        return tokens


def parse_int(text: str) -> int:
    """A PTX integer literal: decimal, `0x`, `0b`, or octal with a leading zero."""
    text = text.rstrip("U")
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text[:2] in ("0b", "0B"):
        return int(text, 2)
    if len(text) > 1 and text[0] == "0" and all(c in "01234567" for c in text):
        return int(text, 8)
    return int(text)
