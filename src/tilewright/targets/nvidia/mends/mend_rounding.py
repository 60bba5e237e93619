"""`.rn` for the sums and products that LLVM leaves bare.

LLVM prints a sum or product that it was allowed to contract, and did not, without a rounding: `add.f32`. ptxas may then
contract it with another, and compute what the emulator does not. PTX ISA, `add`: "an add instruction with an explicit
rounding modifier is treated conservatively by the code optimizer". Inline PTX of the user stays as it is written.
"""

from __future__ import annotations

import re

_BARE = re.compile(r"(add|sub|mul)\.((?:ftz\.)?(?:sat\.)?(?:f32x2|f32|f64|f16x2|f16|bf16x2|bf16)\s)")
_BEGIN, _END = "// begin inline asm", "// end inline asm"


def mend_rounding(ptx: str) -> str:
    """The same program, in which no sum or product of floats leaves its rounding open."""
    if not _BARE.search(ptx):
        return ptx
    ours, *blocks = ptx.split(_BEGIN)
    mended = [_rounded(ours)]
    for block in blocks:
        theirs, end, rest = block.partition(_END)
        mended.append(theirs + end + _rounded(rest))
    return _BEGIN.join(mended)


def _rounded(ptx: str) -> str:
    return _BARE.sub(r"\1.rn.\2", ptx)
