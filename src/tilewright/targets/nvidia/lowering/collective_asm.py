"""Inline assembly that all threads of a warp run together, told to LLVM as `convergent`.

LLVM may give a statement a copy in each arm of a branch, where threads of a warp part. An instruction such as
`wgmma.fence.sync.aligned` then waits for threads that never come. MLIR's operation has no such attribute, so it is
written into the text of stage `llvm`.
"""

from __future__ import annotations

import re

_ASSEMBLY = " asm sideeffect "
_COLLECTIVE = re.compile(r"\.sync\b|\bbarrier\.|\bbar\.|setmaxnreg|activemask|griddepcontrol")
_DEBUG = ", !dbg "


def mark_collective(text: str) -> str:
    """LLVM IR whose calls of such assembly are `convergent`."""
    if _ASSEMBLY not in text:
        return text
    return "\n".join(_marked(line) if _ASSEMBLY in line else line for line in text.split("\n"))


def _marked(line: str) -> str:
    if _COLLECTIVE.search(line) is None:
        return line
    call, comma, place = line.partition(_DEBUG)
    return f"{call} convergent{comma}{place}"
