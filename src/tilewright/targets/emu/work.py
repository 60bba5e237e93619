"""What instructions ask of the units of a multiprocessor, for one thread.

Units: `f32` and `f64` (operations, a multiply-add being two), `special` (results of special functions), and
`tensor f16`, `tensor tf32`, `tensor f8`, `tensor i8`, `tensor f64` (operations; a warp's or warpgroup's are shared
evenly by its threads). A sparse product counts what it computes, half of its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilewright.targets.emu.ptx import Instruction

ARITHMETIC = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}
SPECIAL = frozenset({"rcp", "rsqrt", "sqrt", "sin", "cos", "ex2", "lg2", "tanh", "div"})
SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
TENSOR = {
    "f16": "f16", "bf16": "f16", "tf32": "tf32", "e4m3": "f8", "e5m2": "f8", "s8": "i8", "u8": "i8", "s4": "i8",
    "u4": "i8", "f64": "f64",
}  # fmt: skip


def work_of(instructions: Iterable[Instruction]) -> dict[str, float]:
    """The work of a block of code by unit."""
    total: dict[str, float] = {}
    for instruction in instructions:
        unit, amount = unit_of(instruction)
        if amount:
            total[unit] = total.get(unit, 0.0) + amount
    return total


def unit_of(i: Instruction) -> tuple[str, float]:
    """(unit, amount for one thread) of one instruction; nothing for those that only take an issue slot."""
    if i.op in ("mma", "wmma", "wgmma"):
        return _product(i)
    if i.op in SPECIAL and "approx" in i.mods:
        return "special", 1.0
    if i.op in ARITHMETIC and i.mods[-1:] in (("f32",), ("f64",)):
        return i.mods[-1], float(ARITHMETIC[i.op])
    return "", 0.0


def _product(i: Instruction) -> tuple[str, float]:
    shape = next((found for m in i.mods if (found := SHAPE.fullmatch(m))), None)
    if shape is None or not ("mma" in i.mods or "mma_async" in i.mods or i.op == "mma"):
        return "", 0.0
    m, n, k = map(int, shape.groups())
    types = [word for word in i.mods if re.fullmatch(r"(?:[a-z]*f\d+|e\dm\d|[su]\d+|b1)", word)]
    # wmma of halves names only the types of D and C.
    operand = types[1] if len(types) > 2 else "f16"
    if operand not in TENSOR:
        return "", 0.0
    threads = 128 if i.op == "wgmma" else 32
    sparse = any(word.split("::")[0] == "sp" for word in i.mods)
    return f"tensor {TENSOR[operand]}", 2.0 * m * n * k / threads / (1 + sparse)
