"""Halves of registers that `mov.b32 {low, high}` takes wrongly, taken by shifts.

ptxas 13.0 to 13.3, and nvJitLink 13.5 in the first case,

* swap the halves of a 16-bit number that was widened with zeros (`cvt.u32.u16`, also through `mov`, `or`, `and`,
  64 bits or a `mul.wide.u16` by 1), and the four parts of 64 bits likewise: `high` is the number, `low` is not;
* take the upper half of a constant twice where it is unpacked from fp8 (`F2FP.UNPACK_B` of the constant's `.H1`).

What a register may hold is followed through moves and integer instructions; others keep the form that costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNPACK = re.compile(r"\bmov\.b(32|64)[ \t]+\{([^{}]*)\}, (%\w+);")
_PARTS = {"32": 2, "64": 4}
_DEFINITION = re.compile(r"(?:^|\s)([a-z]\w*(?:\.\w+)*)[ \t]+(\{[^{}]*\}|%\w+), ([^;]*);")
_REGISTER = re.compile(r"%\w+")
_WIDENING = re.compile(r"cvt\.u(?:32|64)\.u16|mul\.wide\.u16")
_CONSTANT = re.compile(r"mov\.[bu](?:16|32|64)[ \t]+(%\w+), -?\d")
_FROM_FP8 = re.compile(r"cvt\.rn\.f16x2\.e[45]m[23]x2")
_COPIES = r"mov\.|or\.b|and\.b|xor\.b|selp\.b|prmt\.|lop3\."
_KEEPS_CONSTANT = re.compile(_COPIES)
_KEEPS_WIDENED = re.compile(_COPIES + r"|add\.s|sub\.s|sh[lr]\.|shf\.|bf[ei]\.|(?:min|max)\.|mul\.|mad\.|cvt\.[us]")


def mend_halves(ptx: str) -> str:
    """The same program, line by line, with such halves taken by shifts."""
    widened, from_fp8 = _WIDENING.search(ptx), _FROM_FP8.search(ptx)
    if not (widened or from_fp8) or not _UNPACK.search(ptx):
        return ptx
    definitions = _DEFINITION.findall(ptx)
    suspects: set[str] = set()
    if widened:
        seeds = {result for operation, result, _ in definitions if _WIDENING.fullmatch(operation)}
        suspects |= _reached(seeds, _KEEPS_WIDENED, definitions)
    if from_fp8:
        suspects |= _reached(set(_CONSTANT.findall(ptx)), _KEEPS_CONSTANT, definitions)
    return _UNPACK.sub(lambda found: _by_shifts(found) if found[3] in suspects else found[0], ptx)


def _reached(seeds: set[str], passed_on: re.Pattern[str], definitions: Iterable[tuple[str, str, str]]) -> set[str]:
    """Registers that the value of a seed may come to; names count for all kernels of the text."""
    users: dict[str, set[str]] = {}
    for operation, results, operands in definitions:
        if passed_on.match(operation):
            for operand in _REGISTER.findall(operands):
                users.setdefault(operand, set()).update(_REGISTER.findall(results))
    reached, waiting = set(seeds), list(seeds)
    while waiting:
        new = users.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _by_shifts(found: re.Match[str]) -> str:
    width, targets, source = found.groups()
    parts = [part.strip() for part in targets.split(",")]
    if len(parts) != _PARTS[width]:  # 64 bits as two registers are taken rightly
        return found[0]
    lines = [
        f"shr.u{width} %part, {source}, {16 * place}; cvt.u16.u{width} {part}, %part;"
        for place, part in enumerate(parts)
        if part != "_"
    ]
    return f"{{ .reg .b{width} %part; {' '.join(lines)} }}"
