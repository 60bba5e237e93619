"""Conversions that assemblers get wrong, written in another way: what the machine code shows, of toolkits 12.0 to 13.5.

An f32 number that becomes a u32 one, an f32 one, and a u32 one again: ptxas keeps one instruction, the last conversion,
and takes the first number for its operand (`F2I.U32`). So the first rounding is lost (3.5 rounded up, then to zero,
gives 3), and so are the bits that 0xffffffff loses as a float. Numbers from 0 are the greater of themselves and -0.0,
which ptxas does not see. Where nothing is rounded but to zero, and to nearest as a float, one instruction is right.

A byte of a vector load `.s8` that is converted from u32 to fewer bits is held within bounds as a signed number
(`ISETP.LT.AND` instead of `VIMNMX.U32`): its sign becomes the conversion's. A byte `.b8` that is sign-extended by
an instruction of its own is compared without.

`abs.ftz.f16` and `neg.ftz.f16` become modifiers of the conversion that takes them, to which `.FTZ` is given and from
which `.TRUNC` goes. A product with 1 less 0 flushes denormals as they do.
"""

from __future__ import annotations

import re

_TO_INTEGER = re.compile(r"cvt\.r[nmp]i(?:\.ftz)?(?:\.sat)?\.u32\.f32[ \t]")
_TO_FLOAT = re.compile(r"cvt\.r[zmp]\.f32\.u32[ \t]")
_OF_UNSIGNED = re.compile(r"(cvt\.r[nzmp]\.f32\.u32)([ \t]+)(%(?!whole\b)\w+), (%\w+);")
_SIGNED_BYTES = re.compile(r"(ld\.[\w.:]*\.v[24])\.s8([ \t]+)\{([^{}]*)\}, (\[[^\]]*\][^;]*);")
_FLUSHED = re.compile(r"(abs|neg)\.ftz\.f16([ \t]+)(%\w+), (%\w+);")
_TRUNCATED = re.compile(r"cvt\.rzi(?:\.ftz)?(?:\.sat)?\.[us]\d+\.f16[ \t]")
_REGISTERS = re.compile(r"\.reg[ \t]+\.[a-z](\d+)[ \t]+([^;]*);")


def mend_round_trips(ptx: str) -> str:
    """u32 numbers that become f32, where a float may have been rounded before, or is after."""
    if ".f32.u32" not in ptx or not (_TO_INTEGER.search(ptx) or _TO_FLOAT.search(ptx)):
        return ptx
    return _OF_UNSIGNED.sub(r"{ .reg .f32 %whole; \1\2%whole, \4; max.f32\2\3, %whole, 0f80000000; }", ptx)


def mend_signed_vectors(ptx: str) -> str:
    """Vector loads of bytes with sign."""
    if not _SIGNED_BYTES.search(ptx):
        return ptx
    widths = _widths(ptx)

    def loaded(found: re.Match[str]) -> str:
        load, space, names, rest = found.groups()
        registers = [name.strip() for name in names.split(",")]
        known = {name: _width(name, widths) for name in registers if name != "_"}
        if None in known.values():
            return found[0]
        bytes_ = {name: f"%byte{place}" for place, name in enumerate(known)}
        extended = " ".join(f"cvt.s{width}.s8{space}{name}, {bytes_[name]};" for name, width in known.items())
        taken = ", ".join(bytes_.get(name, "_") for name in registers)
        return f"{{ .reg .b16 {', '.join(bytes_.values())}; {load}.b8{space}{{{taken}}}, {rest}; {extended} }}"

    return _SIGNED_BYTES.sub(loaded, ptx)


def mend_flushed(ptx: str) -> str:
    """`abs.ftz.f16` and `neg.ftz.f16`, where f16 numbers are rounded to zero."""
    if ".ftz.f16" not in ptx or not _TRUNCATED.search(ptx):
        return ptx
    text = (
        r"{ .reg .b16 %one, %zero, %plain; mov.b16\2%one, 15360; mov.b16\2%zero, -32768; \1.f16\2%plain, \4; "
        r"fma.rn.ftz.f16\2\3, %plain, %one, %zero; }"
    )
    return _FLUSHED.sub(text, ptx)


def _widths(ptx: str) -> dict[str, int]:
    """The bits of registers by their names, and of families by the names before the number."""
    found = {}
    for bits, names in _REGISTERS.findall(ptx):
        for name in names.split(","):
            found[name.strip().partition("<")[0]] = int(bits)
    return found


def _width(name: str, widths: dict[str, int]) -> int | None:
    width = widths.get(name, widths.get(name.rstrip("0123456789")))
    return width if width in (16, 32, 64) else None
