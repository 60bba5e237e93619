"""Compute capabilities: which architecture's implementations a device uses."""

from __future__ import annotations

from tilewright.base.errors import EpilogueError

ARCHITECTURES: dict[int, int] = {
    80: 80,
    86: 80,
    89: 80,
    90: 90,
    100: 100,
    101: 100,
    103: 100,
    110: 100,
    120: 100,
    121: 100,
}
"""The architecture of each compute capability for which epilogues have implementations of their own."""


def architecture_of(cc: int) -> int:
    """80, 90 or 100: the architecture whose implementations a device of capability `cc` uses.

    Raises:
        EpilogueError: the capability is not known.
    """
    if cc not in ARCHITECTURES:
        raise EpilogueError(
            f"Compute capability {cc} is not known to epilogues.",
            hint=f"known are {', '.join(map(str, ARCHITECTURES))}",
        )
    return ARCHITECTURES[cc]
