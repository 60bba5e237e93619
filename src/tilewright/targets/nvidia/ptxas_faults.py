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
from tilewright.targets.nvidia.mend_compares import mend_compares
from tilewright.targets.nvidia.mend_guards import spread_guards
from tilewright.targets.nvidia.mend_halves import mend_constants, mend_sums, mend_widened
from tilewright.targets.nvidia.mend_minima import mend_minima
from tilewright.targets.nvidia.mend_pairs import mend_pairs
from tilewright.targets.nvidia.mend_ptx import mend_absolutes, mend_booleans, mend_narrow

Version = tuple[int, int]


class AssemblerFaultWarning(UserWarning):
    """The assembler is known to get a form wrong that the PTX has."""


@dataclass(frozen=True)
class Fault:
    """A form of PTX that toolkits of versions `first` to `last` get wrong, and what comes out.

    `mend` writes a text without the form; without a mend, `form` finds it.
    """

    name: str
    what: str
    first: Version
    last: Version
    mend: Callable[[str], str] | None = None
    form: re.Pattern[str] | None = None

    def concerns(self, version: Version) -> bool:
        """Whether a toolkit of that version has the fault."""
        return self.first <= version <= self.last

    def meets(self, ptx: str) -> bool:
        """Whether a text has the form."""
        return self.mend(ptx) != ptx if self.mend else bool(self.form and self.form.search(ptx))


_GUARDED_UNPACK: Final = re.compile(r"@!?%\w+[ \t]+mov\.b(?:32|64)[ \t]+\{[^{}]*\b_\b[^{}]*\}")

FAULTS: Final = (
    Fault("narrow", "neg.s16 and abs.s16 of -32768 give 32768", (13, 0), (13, 2), mend_narrow),
    Fault("absolutes", "abs.s32 and abs.s64 of the least number pass for a number from 0", (13, 0), (13, 3),
          mend_absolutes),
    Fault("booleans", "neg of a converted Boolean gives 0.0 for -0.0", (13, 0), (13, 3), mend_booleans),
    Fault("compares", "setp of an f32 number with known bounds is true for NaN", (13, 0), (13, 3), mend_compares),
    Fault("minima", "min.s32 or max.s32 of three loses the sign of a negated number", (13, 0), (13, 3), mend_minima),
    Fault("pairs", "half of a register into which a pair of fp8 was just packed is another register's", (13, 0),
          (13, 3), mend_pairs),
    Fault("sums", "add.s16x2 with a constant adds 0 where one half is used", (13, 0), (13, 0), mend_sums),
    Fault("widened", "mov takes the halves of a widened 16-bit number in the wrong order", (13, 0), (13, 5),
          mend_widened),
    Fault("constants", "mov takes the upper half of a constant twice where it is unpacked from fp8", (13, 0), (13, 3),
          mend_constants),
    Fault("guarded unpack", "the assembler crashes on a predicated mov of a register into parts, one of them _",
          (12, 0), (12, 4), form=_GUARDED_UNPACK),
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
    if fault.mend is None:
        return f"Hint: {newer} (docs/ptxas.md)"
    return f"Hint: the compiler's own PTX avoids it; write it otherwise, as docs/ptxas.md has it, or {newer}"
