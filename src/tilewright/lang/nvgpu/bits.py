"""Instructions on the bits of integers, and the special registers beside those of `lang.arch` (PTX ISA 9.0)."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, Int64, Numeric, Uint32, as_numeric
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.nvgpu.threads import match_all_sync, match_any_sync


def _integer(value: Any, name: str, widths: tuple[int, ...] = (32, 64)) -> Numeric:
    number = as_numeric(value)
    if not type(number).is_integer or number.width not in widths:
        raise CompileError(
            f"{name} of a {type(number)}",
            location=user_location(3),
            hint=f"it takes integers of {' or '.join(map(str, widths))} bits",
        )
    return number


def _suffix(cls: type[Numeric]) -> str:
    return f"{'s' if cls.signed else 'u'}{cls.width}"


def lop3(a: Any, b: Any, c: Any, lut: int, *, loc: object = None, ip: object = None) -> Numeric:
    """Bit by bit a function of three 32-bit numbers: bit `4 * a + 2 * b + c` of `lut`."""
    if not isinstance(lut, int) or not 0 <= lut <= 255:
        raise CompileError(
            "lop3 takes its table as an int of 8 bits, known while compiling",
            location=user_location(),
            values={"lut": lut},
            hint="the function's value for a = 0xF0, b = 0xCC, c = 0xAA, such as 0xF0 & 0xCC | 0xAA",
        )
    first = _integer(a, "lop3", (32,))
    operands = tuple(Uint32(as_numeric(item)) for item in (first, b, c))
    text = f"lop3.b32 $0, $1, $2, $3, {lut};"
    return type(first)(instruction(text, operands, result=Uint32, pure=True))


_FUNNEL = {"l": "l.wrap", "r": "r.wrap", "clamp_left": "l.clamp", "clamp_right": "r.clamp"}


def shf(a: Any, b: Any, shift: Any, kind: str = "l", *, loc: object = None, ip: object = None) -> Numeric:
    """32 bits of the 64 bits `a` (high) and `b` (low), shifted: `l` keeps the high half, `r` the low one.

    `l` and `r` take the shift modulo 32, `clamp_left` and `clamp_right` at most 32.
    """
    if kind not in _FUNNEL:
        raise CompileError(f"shf has no kind {kind!r}", location=user_location(), hint=", ".join(_FUNNEL))
    high = _integer(a, "shf", (32,))
    operands = tuple(Uint32(as_numeric(item)) for item in (b, high, shift))
    return type(high)(instruction(f"shf.{_FUNNEL[kind]}.b32 $0, $1, $2, $3;", operands, result=Uint32, pure=True))


def bfe(value: Any, start: Any, length: Any, *, loc: object = None, ip: object = None) -> Numeric:
    """`length` bits of `value` from bit `start` on; of signed numbers with their sign."""
    number = _integer(value, "bfe")
    operands = (number, Uint32(as_numeric(start)), Uint32(as_numeric(length)))
    return instruction(f"bfe.{_suffix(type(number))} $0, $1, $2, $3;", operands, result=type(number), pure=True)


def bfi(replacement: Any, value: Any, start: Any, length: Any, *, loc: object = None, ip: object = None) -> Numeric:
    """`value` with its `length` bits from bit `start` on taken from the lowest of `replacement`."""
    number = _integer(value, "bfi")
    cls = type(number)
    operands = (cls(as_numeric(replacement)), number, Uint32(as_numeric(start)), Uint32(as_numeric(length)))
    return instruction(f"bfi.b{cls.width} $0, $1, $2, $3, $4;", operands, result=cls, pure=True)


def bfind(value: Any, *, loc: object = None, ip: object = None) -> Uint32:
    """The highest bit that differs from the sign (of unsigned numbers: that is set); 0xFFFFFFFF where none does."""
    number = _integer(value, "bfind")
    return instruction(f"bfind.{_suffix(type(number))} $0, $1;", (number,), result=Uint32, pure=True)


def mul24(a: Any, b: Any, hi: bool = False, *, loc: object = None, ip: object = None) -> Numeric:
    """Bits 0 to 31 (with `hi`: 16 to 47) of the product of the low 24 bits of two 32-bit numbers."""
    left = _integer(a, "mul24", (32,))
    cls = type(left)
    text = f"mul24.{'hi' if hi else 'lo'}.{_suffix(cls)} $0, $1, $2;"
    return instruction(text, (left, cls(as_numeric(b))), result=cls, pure=True)


def mad24(a: Any, b: Any, c: Any, hi: bool = False, *, loc: object = None, ip: object = None) -> Numeric:
    """`mul24(a, b, hi) + c`."""
    left = _integer(a, "mad24", (32,))
    cls = type(left)
    text = f"mad24.{'hi' if hi else 'lo'}.{_suffix(cls)} $0, $1, $2, $3;"
    return instruction(text, (left, cls(as_numeric(b)), cls(as_numeric(c))), result=cls, pure=True)


def add_sat_int(a: Any, b: Any, *, loc: object = None, ip: object = None) -> Int32:
    """The sum of two Int32, held within Int32."""
    operands = (Int32(as_numeric(a)), Int32(as_numeric(b)))
    return instruction("add.sat.s32 $0, $1, $2;", operands, result=Int32, pure=True)


def sub_sat_int(a: Any, b: Any, *, loc: object = None, ip: object = None) -> Int32:
    """The difference of two Int32, held within Int32."""
    operands = (Int32(as_numeric(a)), Int32(as_numeric(b)))
    return instruction("sub.sat.s32 $0, $1, $2;", operands, result=Int32, pure=True)


def match_sync(mask: Any, value: Any, kind: str = "any", *, loc: object = None, ip: object = None) -> Uint32:
    """The lanes of `mask` with this lane's value (`any`), or `mask` where all lanes have one value, else 0 (`all`)."""
    if kind not in ("any", "all"):
        raise CompileError(f"match_sync has no kind {kind!r}", location=user_location(), hint="any or all")
    return Uint32((match_any_sync if kind == "any" else match_all_sync)(value, mask))


def lanemask_lt(*, loc: object = None, ip: object = None) -> Uint32:
    """The lanes below this one, as bits."""
    return instruction("mov.u32 $0, %lanemask_lt;", result=Uint32, pure=True)


def lanemask_le(*, loc: object = None, ip: object = None) -> Uint32:
    """This lane and those below, as bits."""
    return instruction("mov.u32 $0, %lanemask_le;", result=Uint32, pure=True)


def lanemask_eq(*, loc: object = None, ip: object = None) -> Uint32:
    """This lane, as a bit."""
    return instruction("mov.u32 $0, %lanemask_eq;", result=Uint32, pure=True)


def lanemask_ge(*, loc: object = None, ip: object = None) -> Uint32:
    """This lane and those above, as bits."""
    return instruction("mov.u32 $0, %lanemask_ge;", result=Uint32, pure=True)


def lanemask_gt(*, loc: object = None, ip: object = None) -> Uint32:
    """The lanes above this one, as bits."""
    return instruction("mov.u32 $0, %lanemask_gt;", result=Uint32, pure=True)


def nsmid(*, loc: object = None, ip: object = None) -> Int32:
    """One more than the greatest number that `smid` gives on the device."""
    return instruction("mov.u32 $0, %nsmid;", result=Int32, pure=True)


def nwarpid(*, loc: object = None, ip: object = None) -> Int32:
    """The places for warps of a multiprocessor."""
    return instruction("mov.u32 $0, %nwarpid;", result=Int32, pure=True)


def gridid(*, loc: object = None, ip: object = None) -> Int32:
    """The number of this launch, its low 32 bits."""
    return Int32(instruction("mov.u64 $0, %gridid;", result=Int64, pure=True))


def warpsize(*, loc: object = None, ip: object = None) -> Int32:
    """Lanes of a warp, read when the kernel runs; `WARP_SIZE` is known before."""
    return instruction("mov.u32 $0, WARP_SZ;", result=Int32, pure=True)


def total_smem_size(*, loc: object = None, ip: object = None) -> Int32:
    """Bytes of shared memory of the block, static and dynamic."""
    return instruction("mov.u32 $0, %total_smem_size;", result=Int32, pure=True)


def globaltimer_lo(*, loc: object = None, ip: object = None) -> Int32:
    """Nanoseconds of the device's clock, the low 32 bits."""
    return instruction("mov.u32 $0, %globaltimer_lo;", result=Int32)
