"""`wgmma.mma_async`: its shapes, which element each thread of a warpgroup holds, and the swizzled tiles it reads.

Source: PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation using wgmma.mma_async
instruction": the table of shapes, "Register Fragments for wgmma.mma_async" and "Shared Memory Matrix Layout".
M is 64 and K is 256 bits. With warp = thread / 32, group = (thread % 32) / 4, member = thread % 4 and e elements of A
in a register:

    A  register r, element i: row 16 warp + group + 8 (r % 2), column 4e (r / 2) + e member + i
    D  value v:               row 16 warp + group + 8 (v / 2 % 2), column 8 (v / 4) + 2 member + v % 2

Layouts map (thread, value) to the column-major index in the (M,K) or (M,N) tile.
"""

from __future__ import annotations

from typing import Final

from tilewright.base.errors import LayoutError
from tilewright.layout import ComposedLayout, Layout, Swizzle

WARPGROUP: Final = 128
M: Final = 64
K_BITS: Final = 256
"""Bits of A and B along K for one instruction, all types alike."""

N_FLOAT: Final = tuple(range(8, 257, 8))
"""N for f16, bf16, tf32 and 8-bit floating-point types."""
N_INTEGER: Final = (8, 16, 24, *range(32, 257, 16))
"""N for s8, u8 and b1."""

TYPES: Final[dict[str, int]] = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1,
}  # fmt: skip
"""Types of A and B, in PTX names, with their bits."""

FROM_REGISTERS: Final = frozenset(TYPES)
"""Types for which A may come from registers: all."""
TRANSPOSED: Final = frozenset({"f16", "bf16"})
"""Types whose A and B in shared memory may be M- or N-major; all others are K-major."""


def shape(a_type: str, n: int) -> tuple[int, int, int]:
    """(M, N, K) of the instruction for `a_type` with `n` columns.

    Raises:
        LayoutError: there is no such form.
    """
    if a_type not in TYPES:
        raise LayoutError(f"wgmma has no type {a_type!r}", hint=f"types: {', '.join(TYPES)}")
    allowed = N_INTEGER if a_type in ("s8", "u8", "b1") else N_FLOAT
    if n not in allowed:
        raise LayoutError(f"wgmma has no N = {n} for {a_type}", hint=f"N is one of {', '.join(map(str, allowed))}")
    return M, n, K_BITS // TYPES[a_type]


_SUMS: Final = {
    "f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"),
    "s8": ("s32",), "u8": ("s32",), "b1": ("s32",),
}  # fmt: skip
"""Types of D by the type of A."""
_MIXED: Final = ({"e4m3", "e5m2"}, {"s8", "u8"})
"""Types of A and B that go together, beside equal ones."""


def check_form(a_type: str, b_type: str, d_type: str, shape_mnk: tuple[int, int, int], sparse: bool = False) -> None:
    """Pass if there is a `wgmma` of these types in this shape; a sparse one takes twice the K.

    Raises:
        LayoutError: with what is wrong.
    """
    m, n, k = shape(a_type, shape_mnk[1])
    wanted = m, n, k * (1 + sparse)
    if sparse and a_type == "b1":
        raise LayoutError("single bits have no sparse products")
    if shape_mnk != wanted:
        raise LayoutError(f"its shape is {wanted}", values={"shape": shape_mnk})
    if a_type != b_type and {a_type, b_type} not in _MIXED:
        raise LayoutError("A and B have one type, or are both of 8 bits and of one kind")
    if d_type not in _SUMS[a_type]:
        raise LayoutError(f"D is {' or '.join(_SUMS[a_type])}", hint="the accumulator is Float32, Int32 for integers")


def metadata_bits(type_: str, row: int, chunk: int) -> tuple[int, int]:
    """The thread whose word, and the lowest bit in it, hold the four bits of a chunk of a row (of 64) of a sparse A.

    A chunk is four elements along K (two of tf32), of which two (one) are there. Selector 0: of each four threads the
    first two, all of them for 8-bit elements (PTX ISA 9.0, "Sparse wgmma.mma_async").
    """
    warp, group, high, bit = row // 16, row % 8, row % 16 // 8, 4 * chunk
    if TYPES[type_] == 8:
        return 32 * warp + 4 * group + high + 2 * (bit // 32), bit % 32
    return 32 * warp + 4 * group + bit // 16, bit % 16 + 16 * high


def check_major(type_: str, k_major: bool, operand: str) -> None:
    """Pass if an operand of this type may be contiguous along K, or along M or N.

    Raises:
        LayoutError: only 16-bit types may be M- or N-major.
    """
    if not k_major and type_ not in TRANSPOSED:
        raise LayoutError(f"{operand} is K-major: only f16 and bf16 may be M- or N-major", hint="OperandMajorMode.K")


def operand_a(bits: int) -> Layout:
    """(thread, value) -> index in the (64,K) tile of A in registers, elements of `bits` bits."""
    e = 32 // bits
    inner = (() if e == 1 else (e,)), (() if e == 1 else (M,))
    return Layout(((4, 8, 4), (*inner[0], 2, 2)), ((e * M, 1, 16), (*inner[1], 8, 4 * e * M)))


def operand_d(n: int) -> Layout:
    """(thread, value) -> index in the (64,N) tile of the accumulator."""
    values = ((2, 2, n // 8), (M, 8, 8 * M)) if n > 8 else ((2, 2), (M, 8))
    return Layout(((4, 8, 4), values[0]), ((2 * M, 1, 16), values[1]))


SWIZZLE_BYTES: Final = (0, 32, 64, 128)
"""Swizzling modes of shared-memory tiles: bytes of the row that a pattern permutes."""


def byte_swizzle(mode: int) -> Swizzle:
    """The swizzle of byte addresses of a mode: chunks of 16 bytes are exchanged within rows of `mode` bytes.

    Raises:
        LayoutError: there is no such mode.
    """
    if mode not in SWIZZLE_BYTES:
        raise LayoutError(f"no swizzling mode of {mode} bytes", hint="modes: 0 (none), 32, 64, 128")
    return Swizzle((mode // 16).bit_length() - 1 if mode else 0, 4, 3)


def smem_atom(bits: int, mode: int, *, k_major: bool) -> ComposedLayout:
    """The least tile of elements of `bits` bits that a swizzling mode repeats, swizzled in units of elements.

    K-major: 8 rows of M (or N), each a row of `mode` bytes along K; otherwise the transpose. Mode 0 has rows of 16
    bytes.

    Raises:
        LayoutError: no such mode, or elements that do not fill bytes evenly.
    """
    if bits not in (4, 8, 16, 32, 64):
        raise LayoutError(f"no swizzled tiles of {bits}-bit elements")
    swizzle = byte_swizzle(mode)
    base = swizzle.base + {4: 1, 8: 0, 16: -1, 32: -2, 64: -3}[bits]
    extent = 8 * (mode or 16) // bits
    outer = Layout((8, extent), (extent, 1)) if k_major else Layout((extent, 8), (1, extent))
    return ComposedLayout(Swizzle(swizzle.bits, base, swizzle.shift), 0, outer)
