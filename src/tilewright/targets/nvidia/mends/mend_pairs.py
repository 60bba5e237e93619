"""Registers of two halves, the lower one a pair of fp8 numbers that was just converted.

ptxas 13.0 to 13.3 makes one instruction of the conversion and `mov.b32 r, {low, high}` (`F2FP.PACK_AB_MERGE_C`), and
takes the halves from `r` wherever else they are used, but may name a register that holds something else (`R1`, the
stack pointer). Halves with other uses are joined by `prmt` here.
"""

from __future__ import annotations

import re
from collections import Counter

from tilewright.targets.nvidia.mends.ptx_flow import definitions, reached, results_of

_TO_FP8 = re.compile(r"cvt\.rn\.satfinite(?:\.relu)?\.e[45]m[23]x2\.\w+")
_COPIES = re.compile(r"mov\.b16|selp\.b16")
_JOINED = re.compile(r"mov\.b32([ \t]+)(%\w+), \{(%\w+), (%\w+)\};")


def mend_pairs(ptx: str) -> str:
    """The same program, line by line, with such halves joined by `prmt`."""
    if "m3x2." not in ptx and "m2x2." not in ptx:
        return ptx
    rows = definitions(ptx)
    pairs = reached(results_of(_TO_FP8, rows), _COPIES, rows)
    named, given = Counter(re.findall(r"%\w+", ptx)), Counter(name for row in rows for name in row.results)

    def mended(found: re.Match[str]) -> str:
        elsewhere = any(named[half] - given[half] > 1 for half in found.groups()[2:])
        return _by_prmt(found) if found[3] in pairs and elsewhere else found[0]

    return _JOINED.sub(mended, ptx)


def _by_prmt(found: re.Match[str]) -> str:
    gap, target, low, high = found.groups()
    widen = f"cvt.u32.u16{gap}%low, {low}; cvt.u32.u16{gap}%high, {high};"
    return f"{{ .reg .b32 %low, %high; {widen} prmt.b32{gap}{target}, %low, %high, 0x5410U; }}"
