"""Halves of registers that are taken or added wrongly, taken by shifts and added one by one.

ptxas 13.0 to 13.3, and nvJitLink 13.5 in the first case,

* swap the halves of a 16-bit number that was widened with zeros (`cvt.u32.u16`, also through `mov`, `or`, `and`,
  64 bits or a `mul.wide.u16` by 1), and the four parts of 64 bits likewise: `high` is the number, `low` is not;
* take the upper half of a constant twice where it is unpacked from fp8 (`F2FP.UNPACK_B` of the constant's `.H1`);
* add 0 for a constant in `add.s16x2` where only one half of the sum is used (`VIADD.16x2`; only 13.0).

What a register may hold is followed through moves and integer instructions; others keep the form that costs nothing.
"""

from __future__ import annotations

import re

from tilewright.targets.nvidia.mends.ptx_flow import Definition, definitions, reached, results_of

_WIDENED = (".u32.u16", ".u64.u16", "mul.wide.u16")
_UNPACK = re.compile(r"mov\.b(32|64)[ \t]+\{([^{}]*)\}, (%\w+);")
_PARTS = {"32": 2, "64": 4}
_PACKED_SUM = re.compile(r"add\.[su]16x2([ \t]+)(%\w+), (%\w+), (%\w+);")
_WIDENING = re.compile(r"cvt\.u(?:32|64)\.u16|mul\.wide\.u16")
_CONSTANT = re.compile(r"mov\.[bu](?:16|32|64)[ \t]+(%\w+), -?\d")
_FROM_FP8 = re.compile(r"cvt\.rn\.f16x2\.e[45]m[23]x2")
_COPIES = r"mov\.|or\.b|and\.b|xor\.b|selp\.b|prmt\.|lop3\."
_KEEPS_CONSTANT = re.compile(_COPIES)
_KEEPS_WIDENED = re.compile(_COPIES + r"|add\.s|sub\.s|sh[lr]\.|shf\.|bf[ei]\.|(?:min|max)\.|mul\.|mad\.|cvt\.[us]")


def mend_halves(ptx: str) -> str:
    """The same program, line by line, with such halves taken by shifts."""
    return mend_constants(mend_widened(mend_sums(ptx)))


def mend_sums(ptx: str) -> str:
    """Sums of two halves with a constant."""
    if not (".s16x2" in ptx or ".u16x2" in ptx) or not _PACKED_SUM.search(ptx):
        return ptx
    constant = _constants(ptx, definitions(ptx))
    return _PACKED_SUM.sub(lambda found: _by_halves(found) if constant.intersection(found.groups()) else found[0], ptx)


def mend_widened(ptx: str) -> str:
    """Halves of widened numbers."""
    if not any(name in ptx for name in _WIDENED):
        return ptx
    rows = definitions(ptx)
    return _taken_by_shifts(ptx, reached(results_of(_WIDENING, rows), _KEEPS_WIDENED, rows))


def mend_constants(ptx: str) -> str:
    """Halves of constants in a program that unpacks fp8."""
    if not ("m3x2" in ptx or "m2x2" in ptx) or not _FROM_FP8.search(ptx):
        return ptx
    return _taken_by_shifts(ptx, _constants(ptx, definitions(ptx)))


def _constants(ptx: str, rows: list[Definition]) -> set[str]:
    return reached(set(_CONSTANT.findall(ptx)), _KEEPS_CONSTANT, rows)


def _taken_by_shifts(ptx: str, suspects: set[str]) -> str:
    return _UNPACK.sub(lambda found: _by_shifts(found) if found[3] in suspects else found[0], ptx)


def _by_halves(found: re.Match[str]) -> str:
    gap, target, left, right = found.groups()
    lines = [
        f"shr.u32{gap}%left, {left}, 16; shr.u32{gap}%right, {right}, 16; add.s32{gap}%left, %left, %right;",
        f"add.s32{gap}%right, {left}, {right}; prmt.b32{gap}{target}, %right, %left, 0x5410;",
    ]
    return f"{{ .reg .b32 %left, %right; {' '.join(lines)} }}"


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
