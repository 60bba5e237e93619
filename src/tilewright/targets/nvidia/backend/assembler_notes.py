"""What the assembler says of a kernel that it took: products of warpgroups that wait for each other, register counts
without effect.

ptxas keeps products of a warpgroup under way only while no other instruction touches their registers. Where it cannot
prove that, it makes each product wait for the one before (C7509 to C7519), or waits on its own (C7517); it drops
`setmaxnreg` in code that is to be linked, or where its register counts do not fit (C7504 to C7508). It says so in its
log, and the kernel is slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tilewright.passes.remarks import Remark
from tilewright.targets.nvidia.backend.ptx_lines import python_line

_NOTE: Final = re.compile(r"\((?P<code>C75\d\d)\) *(?:Potential Performance Loss: *)?(?P<text>.*)")
_FUNCTION: Final = re.compile(r" *(?:in|crossing) (?:the )?function '(?P<name>[^']*)'")
_LINE: Final = re.compile(r" *in (?:around )?line (?P<line>\d+)")
_HINTS: Final = (
    ("across compilation units", "no --link-libraries, and ptxas: nvJitLink, and code that is linked, drop setmaxnreg"),
    ("register count at entry", "launch(..., min_blocks_per_mp=1) says how many registers there are at entry"),
    ("setmaxnreg", "ask for more registers in setmaxregister_decrease: the code of that warpgroup needs them"),
    ("calls", "move calls (cute.printf, assertions, functions that are not inlined) out of the kernel"),
    ("register resources", "fewer sums or values at once: smaller tiles, more warpgroups, setmaxregister_increase"),
    ("wait_group is injected", "put warpgroup.wait_group before the line that uses the sums"),
)
"""What helps, by words of the note; the first that fits."""
_GENERAL: Final = (
    "between warpgroup.fence() and wait_group leave the sums and the registers of A alone, in all branches and loops"
)


def assembler_notes(log: str, kernel: str, ptx: str) -> Iterator[Remark]:
    """The notes of a log on one kernel, each once, at the Python line that the PTX line came from."""
    seen = set()
    for found in _NOTE.finditer(log):
        note, code = found["text"].strip(), found["code"]
        function, line = _FUNCTION.search(note), _LINE.search(note)
        if note in seen or (function and function["name"] != kernel):
            continue
        seen.add(note)
        text = _FUNCTION.sub("", _LINE.sub("", note)).rstrip(" .")
        hint = next((hint for words, hint in _HINTS if words in text), _GENERAL)
        remark = f"the assembler says ({code}): {text}: {hint}"
        place = python_line(ptx, int(line["line"])) if line else None
        yield Remark(remark, place.file, place.line) if place else Remark(remark)
