"""The number types: the one list of them, with what every part asks of a type.

Classes for users, types of MLIR and of LLVM are found from here by the short name. What is particular to one part, such
as the bits of narrow floats (`hw.narrow_floats`) or DLPack's codes (`targets.host.abi`), stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["b", "i", "u", "f"]


@dataclass(frozen=True)
class DType:
    """A number type. `name` is the short name (`f32`), `kind` one of b (Boolean), i, u, f; `width` in bits.

    `mlir` is the type of an element in MLIR, whose integers carry no sign; `llvm` that of a parameter in LLVM IR.
    """

    name: str
    kind: Kind
    width: int
    mlir: str
    llvm: str

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory; sub-byte types are packed, see `width`."""
        return max(self.width // 8, 1)

    @property
    def arithmetic_kind(self) -> str:
        """`i`, `u` or `f`, as `lang.numbers.arithmetic` names it."""
        return "u" if self.kind == "b" else self.kind

    @property
    def min(self) -> int:
        """The least number of an integer type."""
        return -(1 << (self.width - 1)) if self.kind == "i" else 0

    @property
    def max(self) -> int:
        """The greatest number of an integer type."""
        return (1 << (self.width - (self.kind == "i"))) - 1


def _integer(kind: Kind, width: int) -> DType:
    return DType(f"{kind}{width}", kind, width, f"i{width}", f"i{width}")


def _narrow(name: str, width: int) -> DType:
    return DType(name, "f", width, f"f{name[1:].upper()}", "i8")


_WIDTHS = (4, 8, 16, 32, 64, 128)

TABLE: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("bool", "b", 8, "i1", "i1"),
        *(_integer("i", width) for width in _WIDTHS),
        *(_integer("u", width) for width in _WIDTHS),
        DType("f16", "f", 16, "f16", "half"),
        DType("bf16", "f", 16, "bf16", "bfloat"),
        DType("tf32", "f", 32, "f32", "float"),  # MLIR's tf32 has 19 bits; here it is a float32 whose low bits are 0
        DType("f32", "f", 32, "f32", "float"),
        DType("f64", "f", 64, "f64", "double"),
        *(_narrow(name, 8) for name in ("f8e4m3", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e8m0fnu")),
        _narrow("f6e3m2fn", 6),
        _narrow("f6e2m3fn", 6),
        _narrow("f4e2m1fn", 4),
    )
}
"""By short name."""
