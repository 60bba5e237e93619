"""PTX that assemblers before CUDA 13.3 get wrong, written in another way.

`neg.s16` and `abs.s16` of -32768 must give -32768. ptxas and nvJitLink 13.0 to 13.2 compute them in 32 bits and take
the result for sign-extended: a use that widens or compares it sees 32768 (their SASS lacks the second `PRMT`). The
forms here cost what the right code costs. LLVM makes both from subtractions and selects, so nothing earlier helps.
"""

from __future__ import annotations

import re

_NEG = re.compile(r"\bneg\.s16([ \t]+)(%\w+), (%\w+);")
_ABS = re.compile(r"\babs\.s16([ \t]+)(%\w+), (%\w+);")


def mend(ptx: str) -> str:
    """The same program, line by line, without the forms that are assembled wrongly."""
    if ".s16" not in ptx:
        return ptx
    ptx = _NEG.sub(r"mul.lo.s16\1\2, \3, -1;", ptx)
    return _ABS.sub(r"{ .reg .b16 %negated; mul.lo.s16\1%negated, \3, -1; max.s16\1\2, \3, %negated; }", ptx)
