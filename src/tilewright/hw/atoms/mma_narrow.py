"""`mma.sync` of narrow types: sub-byte integers, single bits, 4- and 6-bit floats with and without scale factors.

Source: PTX ISA 9.0, "Matrix multiply-accumulate operation using mma instruction": the table of types, "Matrix Fragments
for mma.m8n8k16, m8n8k32, m8n8k128, m16n8k32, m16n8k64, m16n8k128, m16n8k256", and "Block Scaling". The fragments follow
the rule of `mma_sync`; types of `kind::f8f6f4` take 8 bits each in registers, whatever their own width.

With block scaling, one factor of A serves `vector` neighbours along K in one row. Factors come from one pair of the
four members of a group (A) or from one member (B); the layouts give every member the factors of the pair it stands for:
member bit 0 chooses row group or group + 8 of A.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.hw.atoms.mma_sync import operand_a, operand_b, operand_c
from tilewright.layout import Layout

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class NarrowMma:
    """One form: types as PTX names them, `bits` that an element takes in registers, the first chip that has it.

    `vector` is the number of elements along K that share a scale factor, 0 without block scaling.
    """

    shape: Shape
    a_type: str
    b_type: str
    c_type: str
    bits: int
    chip: int
    vector: int = 0

    @property
    def a(self) -> Layout:
        """(lane, value) -> index in the (M,K) tile of A."""
        return operand_a(self.shape, self.bits)

    @property
    def b(self) -> Layout:
        """(lane, value) -> index in the (N,K) tile of B."""
        return operand_b(self.shape, self.bits)

    @property
    def c(self) -> Layout:
        """(lane, value) -> index in the (M,N) tile of C and D."""
        return operand_c(self.shape)

    @property
    def scale_a(self) -> Layout:
        """(lane, k) -> index in the (M,K) tile of the scale factors of A, each repeated along its vector."""
        m, _, k = self.shape
        return Layout(((2, 2, 8), k), ((8, 0, 1), m))

    @property
    def scale_b(self) -> Layout:
        """(lane, k) -> index in the (N,K) tile of the scale factors of B, each repeated along its vector."""
        _, n, k = self.shape
        return Layout(((4, 8), k), ((0, 1), n))


# Shapes, types of A and B (any with any), type of C and D, bits in registers, first chip.
_PLAIN: Final[tuple[tuple[tuple[Shape, ...], str, str, int, int], ...]] = (
    (((8, 8, 16),), "s8 u8", "s32", 8, 75),
    (((8, 8, 32),), "s4 u4", "s32", 4, 75),
    (((16, 8, 32), (16, 8, 64)), "s4 u4", "s32", 4, 80),
    (((8, 8, 128),), "b1", "s32", 1, 75),
    (((16, 8, 128), (16, 8, 256)), "b1", "s32", 1, 80),
    (((16, 8, 32),), "e4m3 e5m2 e3m2 e2m3 e2m1", "f32", 8, 120),
)

# Shape, types of A and B, bits in registers, elements that share a scale factor.
_SCALED: Final[tuple[tuple[Shape, str, int, tuple[int, ...]], ...]] = (
    ((16, 8, 64), "e2m1", 4, (16, 32)),
    ((16, 8, 32), "e4m3 e5m2 e3m2 e2m3 e2m1", 8, (32,)),
)


def _forms() -> Iterator[NarrowMma]:
    for shapes, types, c_type, bits, chip in _PLAIN:
        for shape in shapes:
            for a_type in types.split():
                for b_type in types.split():
                    yield NarrowMma(shape, a_type, b_type, c_type, bits, chip)
    for shape, types, bits, vectors in _SCALED:
        for vector in vectors:
            for a_type in types.split():
                for b_type in types.split():
                    yield NarrowMma(shape, a_type, b_type, "f32", bits, 120, vector)


FORMS: Final[tuple[NarrowMma, ...]] = tuple(_forms())
"""Every form."""
