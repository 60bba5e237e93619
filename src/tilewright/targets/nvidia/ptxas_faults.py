"""Forms of PTX that assemblers get wrong: which versions, and the mend that avoids each (docs/ptxas.md).

The stage `ptx` has none of the forms that have a mend; a text that the user gave in the place of it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.targets.nvidia.mend_compares import mend_compares
from tilewright.targets.nvidia.mend_halves import mend_halves
from tilewright.targets.nvidia.mend_minima import mend_minima
from tilewright.targets.nvidia.mend_pairs import mend_pairs
from tilewright.targets.nvidia.mend_ptx import mend_absolutes, mend_booleans, mend_narrow

Version = tuple[int, int]


@dataclass(frozen=True)
class Fault:
    """A form that toolkits `first` to `last` assemble wrongly, and how it is written instead: `mend` of a text."""

    name: str
    what: str
    first: Version
    last: Version
    mend: Callable[[str], str]

    def concerns(self, version: Version) -> bool:
        """Whether a toolkit of that version has the fault."""
        return self.first <= version <= self.last

    def meets(self, ptx: str) -> bool:
        """Whether a text has the form."""
        return self.mend(ptx) != ptx


FAULTS: Final = (
    Fault("narrow", "neg.s16 and abs.s16 of -32768 give 32768", (13, 0), (13, 2), mend_narrow),
    Fault("absolutes", "abs.s32 and abs.s64 of the least number are taken for a number from 0", (13, 0), (13, 3),
          mend_absolutes),
    Fault("booleans", "neg of a converted Boolean gives 0.0 for -0.0", (13, 0), (13, 3), mend_booleans),
    Fault("compares", "setp of a float with known bounds is true for NaN", (13, 0), (13, 3), mend_compares),
    Fault("minima", "min or max of three loses the sign of a negated operand", (13, 0), (13, 3), mend_minima),
    Fault("pairs", "a register of two halves, one of them just converted to fp8, loses a half", (13, 0), (13, 3),
          mend_pairs),
    Fault("halves", "the halves of a widened 16-bit number or of a constant are swapped or repeated", (13, 0), (13, 5),
          mend_halves),
)  # fmt: skip
MENDS: Final = tuple((fault.name, fault.mend) for fault in FAULTS)


def faults_met(ptx: str, version: Version) -> Iterator[Fault]:
    """The faults of a toolkit that a text meets."""
    return (fault for fault in FAULTS if fault.concerns(version) and fault.meets(ptx))
