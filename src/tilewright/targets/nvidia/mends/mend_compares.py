"""Comparisons of an f32 number whose range is known, but which may be NaN.

ptxas 13.0 to 13.3 knows bounds of `abs`, `ex2`, `sin`, `cos`, `tanh` and of what is computed from them, and takes
`abs(x) >= -1.0` for true, where a NaN makes it false. Of the comparison that is true for a NaN as well, negated, it
makes the right instruction, at no cost.
"""

from __future__ import annotations

import re

from tilewright.targets.nvidia.mends.ptx_flow import definitions, reached, results_of

_NAMES = ("abs", "ex2", "sin", "cos", "tanh", "sqrt", "rsqrt", "rcp")
_BOUNDED = re.compile(rf"(?:{'|'.join(_NAMES)})(?:\.\w+)*\.f32|\w+(?:\.\w+)*\.sat(?:\.\w+)*\.f32")
_PASSES_ON = re.compile(r"mov\.|selp\.|\w+(?:\.\w+)*\.f32\b")
_COMPARISON = re.compile(r"setp\.(lt|gt|ge)((?:\.ftz)?\.f32)([ \t]+)(%\w+), ([^,;]+), ([^,;]+);")
_OPPOSITE = {"lt": "geu", "gt": "leu", "ge": "ltu"}


def mend_compares(ptx: str) -> str:
    """The same program, line by line, with such comparisons negated twice."""
    if not any(f"{name}." in ptx for name in (*_NAMES, ".sat")) or not _COMPARISON.search(ptx):
        return ptx
    rows = definitions(ptx)
    bounded = reached(results_of(_BOUNDED, rows), _PASSES_ON, rows)
    return _COMPARISON.sub(lambda found: _twice(found) if bounded.intersection(found.groups()) else found[0], ptx)


def _twice(found: re.Match[str]) -> str:
    operation, type_, gap, target, left, right = found.groups()
    opposite = f"setp.{_OPPOSITE[operation]}{type_}{gap}%opposite, {left}, {right};"
    return f"{{ .reg .pred %opposite; {opposite} not.pred{gap}{target}, %opposite; }}"
