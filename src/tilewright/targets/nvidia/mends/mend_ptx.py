"""PTX that assemblers get wrong, written in another way.

`neg.s16` and `abs.s16` of -32768 must give -32768. ptxas and nvJitLink 13.0 to 13.2 compute them in 32 bits and take
the result for sign-extended: a use that widens or compares it sees 32768 (their SASS lacks the second `PRMT`). The
forms here cost what the right code costs. LLVM makes both from subtractions and selects, so nothing earlier helps.

`abs.s32` and `abs.s64` of the least number are that number. ptxas 13.0 to 13.3 takes them for numbers from 0:
`cvt.rn.f32.u32` of 2**31 becomes a conversion with a sign, and with 13.0 `abs(x) < 0` is false for all. It makes no
such guess of `max(x, -x)`.

`neg` of a converted Boolean makes `select(p, -1.0, 0.0)` of `-(p ? 1.0 : 0.0)`, which loses the sign of the zero; the
sign bit of a converted integer is flipped here instead.

The others: `mend_halves` (which sees the numbers that `mend_pairs` widens), `mend_minima` (which sees the maxima that
are written here), `mend_compares`; `mend_rounding`, whose sums and products the others see; `mend_conversions`.
"""

from __future__ import annotations

import re

from tilewright.targets.nvidia.mends.mend_compares import mend_compares
from tilewright.targets.nvidia.mends.mend_conversions import mend_flushed, mend_round_trips, mend_signed_vectors
from tilewright.targets.nvidia.mends.mend_guards import spread_guards
from tilewright.targets.nvidia.mends.mend_halves import mend_halves
from tilewright.targets.nvidia.mends.mend_minima import mend_minima
from tilewright.targets.nvidia.mends.mend_pairs import mend_pairs
from tilewright.targets.nvidia.mends.mend_rounding import mend_rounding

# They begin with a letter and no `\b`: Python then looks for that text alone, fifty times as fast.
_NEG = re.compile(r"neg\.s16([ \t]+)(%\w+), (%\w+);")
_ABS = re.compile(r"abs\.s16([ \t]+)(%\w+), (%\w+);")
_WIDE_ABS = re.compile(r"abs\.s(32|64)([ \t]+)(%\w+), (%\w+);")
_NEG_FLOAT = re.compile(r"neg\.(f64|f32|f16|bf16)([ \t]+)(%\w+), (%\w+);")
_FROM_INTEGER = re.compile(r"cvt\.r[nzmp]\.(?:f64|f32|f16|bf16)\.[us](?:8|16|32|64)[ \t]+(%\w+),")
_SIGN = {"f64": "xor.b64{}{}, {}, -9223372036854775808;", "f32": "xor.b32{}{}, {}, -2147483648;",
         "f16": "xor.b16{}{}, {}, -32768;", "bf16": "xor.b16{}{}, {}, -32768;"}  # fmt: skip


def mend(ptx: str) -> str:
    """The same program, line by line, without the forms that are assembled wrongly."""
    ptx = mend_flushed(mend_signed_vectors(mend_round_trips(ptx)))
    ptx = mend_absolutes(mend_narrow(mend_rounding(ptx)))
    return spread_guards(mend_halves(mend_pairs(mend_minima(mend_compares(mend_booleans(ptx))))))


def mend_narrow(ptx: str) -> str:
    """`neg.s16` and `abs.s16`."""
    if ".s16" not in ptx:
        return ptx
    ptx = _NEG.sub(r"mul.lo.s16\1\2, \3, -1;", ptx)
    return _ABS.sub(r"{ .reg .b16 %negated; mul.lo.s16\1%negated, \3, -1; max.s16\1\2, \3, %negated; }", ptx)


def mend_absolutes(ptx: str) -> str:
    """`abs.s32` and `abs.s64`."""
    if "abs.s" not in ptx:
        return ptx
    return _WIDE_ABS.sub(r"{ .reg .b\1 %negated; neg.s\1\2%negated, \4; max.s\1\2\3, \4, %negated; }", ptx)


def mend_booleans(ptx: str) -> str:
    """`neg` of a converted integer, which may be a Boolean."""
    if "neg." not in ptx:
        return ptx
    negated = {found[4] for found in _NEG_FLOAT.finditer(ptx)}
    converted = negated and negated.intersection(_FROM_INTEGER.findall(ptx))
    if not converted:
        return ptx
    return _NEG_FLOAT.sub(
        lambda found: _SIGN[found[1]].format(*found.groups()[1:]) if found[4] in converted else found[0], ptx
    )
