"""`tcgen05`: shapes of its matrix multiplication, tensor memory, and how loads and stores deal it to threads.

Source: PTX ISA 9.0, "TensorCore 5th Generation Family Instructions": "Tensor Memory", "Matrix Shape" (the table of
kinds and shapes), "Data Movement Shape". Tensor memory has 128 lanes and 512 columns of 32 bits. A warp loads 16 or 32
lanes; a shape is repeated along the columns. With group = thread / 4, member = thread % 4 and registers r of 32 bits:

    32x32b    lane thread                            column r
    16x64b    lane group + 8 (thread % 2)            column 2 r + thread / 2 % 2
    16x128b   lane group + 8 (r % 2)                 column 4 (r / 2) + member
    16x256b   lane group + 8 (r / 2 % 2)             column 8 (r / 4) + 2 member + r % 2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import LayoutError
from tilewright.layout import Layout

LANES: Final = 128
COLUMNS: Final = 512
ALLOCATION_COLUMNS: Final = (32, 64, 128, 256, 512)
"""Columns that `tcgen05.alloc` gives."""


@dataclass(frozen=True)
class Kind:
    """A `.kind` of dense `tcgen05.mma`: its K, and N with steps for one CTA and for a pair of CTAs."""

    k: int
    types: tuple[str, ...]
    n_one: tuple[int, ...]
    n_two: tuple[int, ...]

    def m(self, ctas: int) -> tuple[int, ...]:
        """Rows of D for 1 or 2 CTAs."""
        return (64, 128) if ctas == 1 else (128, 256)

    def n(self, ctas: int) -> tuple[int, ...]:
        """Columns of D for 1 or 2 CTAs."""
        return self.n_one if ctas == 1 else self.n_two


_EIGHTS: Final = tuple(range(8, 257, 8))
_SIXTEENS: Final = tuple(range(16, 257, 16))
_SMALL: Final = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")

KINDS: Final[dict[str, Kind]] = {
    "f16": Kind(16, ("f16", "bf16"), _EIGHTS, _SIXTEENS),
    "tf32": Kind(8, ("tf32",), _EIGHTS, _SIXTEENS),
    "f8f6f4": Kind(32, _SMALL, _EIGHTS, _SIXTEENS),
    "i8": Kind(32, ("s8", "u8"), (8, 16, 24, *range(32, 257, 16)), tuple(range(32, 257, 32))),
}
"""Kinds without scale factors."""


def check_shape(kind: str, m: int, n: int, ctas: int) -> int:
    """K of the form with these rows and columns.

    Raises:
        LayoutError: there is no such form; the hint lists what there is.
    """
    if kind not in KINDS or ctas not in (1, 2):
        raise LayoutError("no such kind of tcgen05.mma", values={"kind": kind, "ctas": ctas})
    row = KINDS[kind]
    if m not in row.m(ctas) or n not in row.n(ctas):
        raise LayoutError(
            f"tcgen05.mma kind::{kind} has no shape {m}x{n} for {ctas} CTA",
            hint=f"M is one of {row.m(ctas)}, N one of {row.n(ctas)}",
        )
    return row.k


REPEATS: Final[dict[str, tuple[int, ...]]] = {
    "32x32b": (1, 2, 4, 8, 16, 32, 64, 128),
    "16x64b": (1, 2, 4, 8, 16, 32, 64, 128),
    "16x128b": (1, 2, 4, 8, 16, 32, 64),
    "16x256b": (1, 2, 4, 8, 16, 32),
}
"""`.num` of `tcgen05.ld` and `tcgen05.st` by shape."""


def registers(shape: str, repeat: int) -> Layout:
    """(thread, register) -> index lane + lanes * column in the tile of tensor memory that a warp moves.

    Raises:
        LayoutError: there is no such form.
    """
    if repeat not in REPEATS.get(shape, ()):
        raise LayoutError(f"no tcgen05.ld.{shape}.x{repeat}", hint=f"shapes and repeats: {REPEATS}")
    if shape == "32x32b":
        return Layout((32, repeat), (1, 32))
    if shape == "16x64b":
        return Layout(((2, 2, 8), repeat), ((8, 16, 1), 32))
    if shape == "16x128b":
        return Layout(((4, 8), (2, repeat)), ((16, 1), (8, 64)))
    return Layout(((4, 8), (2, 2, repeat)), ((32, 1), (16, 8, 128)))
