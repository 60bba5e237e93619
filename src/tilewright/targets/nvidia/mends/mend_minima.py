"""Minima and maxima of negated numbers.

ptxas 13.0 to 13.3 makes one instruction of `min.s32(min.s32(a, -b), c)` (`VIMNMX3`) and loses the sign of `b`;
likewise of maxima. It sees through `sub`, `mul` and `mad` by -1, through moves and shifts by 0, but `~b + 1` it takes
for what it is, at the same cost.
"""

from __future__ import annotations

import re

from tilewright.targets.nvidia.mends.ptx_flow import definitions, operands_of, sources

_NEGATIVE = re.compile(r"(?:neg\.s32([ \t]+)(%\w+), (%\w+)|sub\.s32([ \t]+)(%\w+), 0, (%\w+));")
_EXTREME = re.compile(r"(?:min|max)\.s32")
_COPIES = re.compile(r"mov\.|selp\.")


def mend_minima(ptx: str) -> str:
    """The same program, line by line, where no minimum or maximum sees a negation."""
    if not ("min.s32" in ptx or "max.s32" in ptx) or not _NEGATIVE.search(ptx):
        return ptx
    rows = definitions(ptx)
    compared = sources(operands_of(_EXTREME, rows), _COPIES, rows)
    return _NEGATIVE.sub(lambda found: _inverted(found, compared), ptx)


def _inverted(found: re.Match[str], compared: set[str]) -> str:
    gap, target, source = (group for group in found.groups() if group is not None)
    if target not in compared:
        return found[0]
    return f"{{ .reg .b32 %inverse; not.b32{gap}%inverse, {source}; add.s32{gap}{target}, %inverse, 1; }}"
