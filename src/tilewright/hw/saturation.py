"""Floats to integers as `cvt.rzi` makes them, in Python.

Source: PTX ISA 9.0, `cvt`: towards zero, clamped to the range of the integer; NaN gives 0, or the integer of which
only the highest bit is set where either side has 64 bits (or more: the same rule is kept for 128).
"""

from __future__ import annotations

import math


def nan_has_a_bit(source_width: int, width: int) -> bool:
    """True where NaN becomes the integer whose highest bit alone is set, and not 0."""
    return source_width >= 64 or width >= 64


def saturate(value: float, *, source_width: int, width: int, signed: bool) -> int:
    """The integer of `width` bits that a float of `source_width` bits becomes."""
    least = -(1 << (width - 1)) if signed else 0
    greatest = (1 << (width - signed)) - 1
    if math.isnan(value):
        bit = least if signed else 1 << (width - 1)
        return bit if nan_has_a_bit(source_width, width) else 0
    if math.isinf(value):
        return greatest if value > 0 else least
    return min(max(int(value), least), greatest)
