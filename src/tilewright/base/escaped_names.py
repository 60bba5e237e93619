r"""Names of files as LLVM writes them in texts: bytes beyond ASCII as `\303` in PTX, as `\C3` in LLVM IR and MLIR."""

from __future__ import annotations

import re
from typing import Final

_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")
_HEX: Final = re.compile(rb"\\([0-9A-F]{2})")
_SPLIT: Final = re.compile(r"(\\[0-3][0-7]{2})/([0-3][0-7]{2})(?!.*\\[0-3][0-7]{2})")


def from_octal(name: str) -> str:
    """A name in PTX as the file is called."""
    return _decoded(name, _OCTAL, 8)


def from_hex(name: str) -> str:
    """A name in LLVM IR or MLIR as the file is called."""
    return _decoded(name, _HEX, 16)


def from_cubin(name: str) -> str:
    """A name in a cubin's line table: ptxas takes the last backslash of what PTX has for the end of a folder."""
    return from_octal(_SPLIT.sub(r"\1\\\2", name))


def _decoded(name: str, escapes: re.Pattern[bytes], base: int) -> str:
    if "\\" not in name:
        return name
    return escapes.sub(lambda found: bytes((int(found[1], base),)), name.encode()).decode(errors="replace")
