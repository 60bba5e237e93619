"""Forms of PTX that assemblers get wrong: which versions, and the mend that avoids each (docs/ptxas.md).

The stage `ptx` has none of the forms that have a mend; a text that the user gave in its place may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from tilewright.base.location import SourceLocation
from tilewright.base.notices import say_once
from tilewright.targets.nvidia.mends.mend_compares import mend_compares
from tilewright.targets.nvidia.mends.mend_conversions import mend_flushed, mend_round_trips, mend_signed_vectors
from tilewright.targets.nvidia.mends.mend_guards import spread_guards
from tilewright.targets.nvidia.mends.mend_halves import mend_constants, mend_sums, mend_widened
from tilewright.targets.nvidia.mends.mend_minima import mend_minima
from tilewright.targets.nvidia.mends.mend_pairs import mend_pairs
from tilewright.targets.nvidia.mends.mend_ptx import mend_absolutes, mend_booleans, mend_narrow

Version = tuple[int, int]


class AssemblerFaultWarning(UserWarning):
    """The assembler is known to get a form wrong that the PTX has."""


@dataclass(frozen=True)
class Fault:
    """A form of PTX that toolkits of versions `first` to `last` get wrong, and what comes out.

    `mend` writes a text without the form; without a mend, `form` finds it in texts that have `word`.
    """

    name: str
    what: str
    first: Version
    last: Version
    mend: Callable[[str], str] | None = None
    form: re.Pattern[str] | None = None
    word: str = ""

    def concerns(self, version: Version) -> bool:
        """Whether a toolkit of that version has the fault."""
        return self.first <= version <= self.last

    def meets(self, ptx: str) -> bool:
        """Whether a text has the form."""
        if self.mend:
            return self.mend(ptx) != ptx
        return self.word in ptx and bool(self.form and self.form.search(ptx))


NEWEST: Final = (13, 5)
"""The newest toolkit that was tried."""
_GUARD: Final = r"@!?%\w+[ \t]+"

FAULTS: Final = (
    Fault("narrow", "neg.s16 and abs.s16 of -32768 give 32768", (12, 0), (13, 2), mend_narrow),
    Fault("absolutes", "abs.s32 and abs.s64 of the least number pass for a number from 0", (12, 0), NEWEST,
          mend_absolutes),
    Fault("booleans", "neg of a converted Boolean gives 0.0 for -0.0", (13, 0), (13, 3), mend_booleans),
    Fault("compares", "setp of an f32 number with known bounds is true for NaN", (12, 0), NEWEST, mend_compares),
    Fault("minima", "min.s32 or max.s32 of three loses the sign of a negated number", (12, 6), (13, 3), mend_minima),
    Fault("pairs", "half of a register into which a pair of fp8 was just packed is another register's", (12, 9),
          NEWEST, mend_pairs),
    Fault("sums", "add.s16x2 with a constant adds 0 where one half is used", (12, 0), (13, 0), mend_sums),
    Fault("widened", "mov takes the halves of a widened 16-bit number in the wrong order", (13, 0), NEWEST,
          mend_widened),
    Fault("constants", "mov takes the upper half of a constant twice where it is unpacked from fp8", (13, 0), (13, 3),
          mend_constants),
    Fault("round trip", "a u32 number that was an f32 one, and is one again, is converted from the first with the last "
          "rounding", (12, 0), NEWEST, mend_round_trips),
    Fault("rounding", "a conversion to zero of abs.ftz.f16 or neg.ftz.f16 to an integer rounds to nearest", (12, 0),
          NEWEST, mend_flushed),
    Fault("signed vectors", "a signed byte of a vector load is converted as signed where it is read as unsigned",
          (12, 0), NEWEST, mend_signed_vectors),
    Fault("guarded test", "a predicated testp is done whatever its predicate", (12, 0), NEWEST,
          form=re.compile(_GUARD + r"testp\."), word="testp."),
    Fault("guarded set", "a predicated set on 16-bit integers changes its result whatever its predicate", (12, 0),
          NEWEST, form=re.compile(_GUARD + r"set\.[\w.]*\.[us]16[ \t]"), word="set."),
    Fault("guarded saturation",
          "a predicated cvt.sat.u8 leaves the upper half of its register where its predicate is false", (13, 1), NEWEST,
          form=re.compile(_GUARD + r"cvt\.sat\.u8\.[us]16[ \t]"), word="cvt.sat.u8"),
    Fault("fields", "bfe.s32 from a constant position of 32 or more gives something else than the sign", (12, 0),
          (13, 4), form=re.compile(r"bfe\.s32[ \t]+%\w+, %\w+, (?:3[2-9]|[4-9]\d|\d{3}),"), word="bfe.s32"),
    Fault("insertion", "bfi.b32 of a constant length of 33 or more inserts fewer bits", (12, 0), (13, 3),
          form=re.compile(r"bfi\.b32[ \t]+%\w+, %\w+, %\w+, [^,;]+, (?:3[3-9]|[4-9]\d|\d{3});"), word="bfi.b32"),
    Fault("selection", "slct by the greatest constant takes the operand for numbers below 0", (12, 0), (13, 3),
          form=re.compile(r"slct\.[\w.]*s32[ \t][^;]*, 2147483647;"), word="slct."),
    Fault("video", "vadd, vsub and vabsdiff to u32 with .sat wrap instead", (12, 9), NEWEST,
          form=re.compile(r"\bv(?:add|sub|absdiff)\.u32\.[us]32\.[us]32\.sat"), word=".sat"),
    Fault("guarded unpack", "the assembler crashes on a predicated mov of a register into parts, one of them _",
          (12, 0), (12, 4), form=re.compile(_GUARD + r"mov\.b(?:32|64)[ \t]+\{[^{}]*\b_\b[^{}]*\}"), word="mov."),
)  # fmt: skip


def _mended(mend: Callable[[str], str], ptx: str) -> str:
    return spread_guards(mend(ptx))


MENDS: Final = tuple((fault.name, partial(_mended, fault.mend)) for fault in FAULTS if fault.mend is not None)
"""The mends by the names of their faults, each for itself."""


def faults_of(version: Version) -> list[Fault]:
    """The known faults of a toolkit."""
    return [fault for fault in FAULTS if fault.concerns(version)]


def faults_met(ptx: str, version: Version) -> Iterator[Fault]:
    """The faults of a toolkit that a text meets."""
    return (fault for fault in faults_of(version) if fault.meets(ptx))


def warn_of_faults(ptx: str, tool: str, place: SourceLocation | None, *, mended: bool) -> None:
    """Warn of the faults that a text meets, once for each; of a mended one, only of those without a mend.

    Args:
        ptx: what was assembled.
        tool: which assembler it was, as in `ptxas 13.0`.
        place: the line to warn at.
        mended: whether the text is as the stage `ptx` writes it.
    """
    found = re.search(r"(\d+)\.(\d+)", tool)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    for fault in faults_of(version):
        if not (mended and fault.mend) and fault.meets(ptx):
            say_once(f"{tool} assembles a form of this PTX wrongly: {fault.what}. {_remedy(fault)}", place,
                     AssemblerFaultWarning)  # fmt: skip


def _remedy(fault: Fault) -> str:
    newer = f"take a CUDA toolkit newer than {fault.last[0]}.{fault.last[1]}"
    otherwise = "Hint: write it otherwise, as docs/ptxas.md has it"
    if fault.mend:
        otherwise = "Hint: the compiler's own PTX avoids it; write it otherwise, as docs/ptxas.md has it"
    return otherwise if fault.last == NEWEST else f"{otherwise}, or {newer}"
