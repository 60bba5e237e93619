"""Sums and products of two Float32 at once: `cute.arch.add_packed_f32x2` and its like.

Each of the two numbers is rounded by itself, so every chip computes the same: sm_100 and later by one packed
instruction, earlier ones by two.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.hw.features import supports
from tilewright.lang import trace
from tilewright.lang.approx import exp2
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Float32, as_numeric
from tilewright.lang.nvgpu.instructions import instruction, instruction_values

Pair = tuple[Float32, Float32]
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_LOG2_E = 1.4426950408889634


def add_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: object = None, ip: object = None
) -> Pair:
    """The two sums, rounded to nearest, to zero, down or up (`rn`, `rz`, `rm`, `rp`); `ftz` takes denormals as 0."""
    return _each("add", (src_a, src_b), rnd, ftz)


def sub_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: object = None, ip: object = None
) -> Pair:
    """The two differences; options are those of `add_packed_f32x2`."""
    return _each("sub", (src_a, src_b), rnd, ftz)


def mul_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: object = None, ip: object = None
) -> Pair:
    """The two products; options are those of `add_packed_f32x2`."""
    return _each("mul", (src_a, src_b), rnd, ftz)


def fma_packed_f32x2(
    src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = "rn", ftz: bool = False, loc: object = None, ip: object = None
) -> Pair:
    """`a * b + c` of each, rounded once; options are those of `add_packed_f32x2`."""
    return _each("fma", (src_a, src_b, src_c), rnd, ftz)


def exp_packed_f32x2(src_a: Any, *, loc: object = None, ip: object = None) -> Pair:
    """e to the power of each, as 2 to the power of x / ln 2 (`cute.arch.exp`)."""
    scaled = mul_packed_f32x2(src_a, (_LOG2_E, _LOG2_E))
    return exp2(scaled[0]), exp2(scaled[1])


def _each(name: str, operands: tuple[Any, ...], rnd: Any, ftz: bool) -> Pair:
    rounding = _rounding(rnd, name)
    pairs = [_pair(item, name) for item in operands]
    stem = f"{name}.{rounding}{'.ftz' if ftz else ''}"
    if supports("f32x2", trace.device(name).arch or "sm_90"):
        return _packed(stem, pairs)
    places = ", ".join(f"${place + 1}" for place in range(len(pairs)))
    text = f"{stem}.f32 $0, {places};"
    low, high = (instruction(text, items, result=Float32, pure=True) for items in zip(*pairs, strict=True))
    return low, high


def _packed(stem: str, pairs: list[Pair]) -> Pair:
    names = [f"pair{place}" for place in range(len(pairs))]
    moves = " ".join(f"mov.b64 {item}, {{${2 * at + 2}, ${2 * at + 3}}};" for at, item in enumerate(names))
    text = (
        f"{{ .reg .b64 both, {', '.join(names)}; {moves} {stem}.f32x2 both, {', '.join(names)}; "
        "mov.b64 {$0, $1}, both; }"
    )
    values = [number.ir_value() for pair in pairs for number in pair]
    low, high = instruction_values(text, values, (Float32, Float32), pure=True)
    return low, high


def _rounding(rnd: Any, name: str) -> str:
    """The suffix of a rounding, given by its name or as a member of an enumeration of them."""
    text = str(getattr(rnd, "value", rnd)).lower()
    if text not in _ROUNDINGS:
        raise CompileError(
            f"{name}_packed_f32x2 has no rounding {rnd!r}",
            location=user_location(4),
            hint=f"one of {', '.join(_ROUNDINGS)}",
        )
    return text


def _pair(value: Any, name: str) -> Pair:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise CompileError(
            f"{name}_packed_f32x2 takes pairs of numbers", location=user_location(4), values={"got": value}
        ) from None
    return Float32(as_numeric(low)), Float32(as_numeric(high))
