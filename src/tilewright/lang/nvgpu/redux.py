"""`warp_redux_sync`: one value of all lanes of a warp, in one instruction where the chip has it (PTX `redux.sync`)."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.hw.features import supports
from tilewright.lang import trace
from tilewright.lang.arch import FULL_MASK, warp_reduction
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Float32, Int32, Numeric, Uint32, as_numeric
from tilewright.lang.nvgpu.extremes import fmax, fmin
from tilewright.lang.nvgpu.instructions import instruction

KINDS = ("add", "and", "or", "xor", "min", "max", "umin", "umax", "fmin", "fmax")


def warp_redux_sync(
    value: Any,
    kind: str,
    mask_and_clamp: Any = FULL_MASK,
    *,
    abs: bool | None = None,
    nan: bool | None = None,
    loc: object = None,
    ip: object = None,
) -> Numeric:
    """`value` of all lanes of the mask folded by `kind`; every one of them gets the result.

    Int32 and Uint32 take add, and, or, xor, min, max (as the type compares) and umin, umax; Float32 fmin and fmax, also
    written min and max, of magnitudes with `abs`, with NaN where one is with `nan`. Chips without the instruction for
    floats (before sm_100) shuffle, which takes the whole warp.

    Raises:
        CompileError: kind and type do not go together, or a part of a warp folds floats on such a chip.
    """
    trace.device("warp_redux_sync")
    number = as_numeric(value)
    cls = type(number)
    name = str(kind)
    if name not in KINDS:
        raise CompileError(f"warp_redux_sync has no kind {kind!r}", location=user_location(), hint=", ".join(KINDS))
    if cls is Float32 and name.removeprefix("f") in ("min", "max"):
        return _floats(number, name.removeprefix("f"), mask_and_clamp, bool(abs), bool(nan))
    if cls not in (Int32, Uint32) or name.startswith("f") or abs or nan:
        raise CompileError(
            f"warp_redux_sync {name} of a {cls}" + (" with abs or nan" if abs or nan else ""),
            location=user_location(),
            hint="Int32 and Uint32 take add, and, or, xor, min, max, umin, umax; Float32 fmin and fmax, abs= and nan=",
        )
    unsigned = name.startswith("u") or cls is Uint32
    fold = name.removeprefix("u")
    suffix = "b32" if fold in ("and", "or", "xor") else "u32" if unsigned else "s32"
    operands = (Uint32(number), Uint32(as_numeric(mask_and_clamp)))
    text = f"redux.sync.{fold}.{suffix} $0, $1, $2;"
    return cls(instruction(text, operands, result=Uint32, feature="redux.sync"))


def _floats(number: Numeric, fold: str, mask: Any, abs: bool, nan: bool) -> Numeric:
    if supports("redux.sync.f32", trace.device("warp_redux_sync").arch or "sm_90"):
        text = f"redux.sync.{fold}{'.abs' if abs else ''}{'.NaN' if nan else ''}.f32 $0, $1, $2;"
        return instruction(text, (number, Uint32(as_numeric(mask))), result=Float32, feature="redux.sync.f32")
    if not (isinstance(mask, int) and mask & FULL_MASK == FULL_MASK):
        raise CompileError(
            "warp_redux_sync of floats over a part of a warp needs the instruction of sm_100a",
            location=user_location(3),
            hint="give the other lanes a number that changes nothing, such as -inf for fmax, and reduce the whole warp",
        )
    whole = Float32(number).bitcast(Uint32) & 0x7FFFFFFF if abs else None
    start = number if whole is None else whole.bitcast(Float32)
    best = fmin if fold == "min" else fmax
    return Float32(warp_reduction(start, lambda a, b: best(a, b, nan=nan)))
