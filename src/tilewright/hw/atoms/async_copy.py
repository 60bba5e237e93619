"""Asynchronous copies: sizes of `cp.async`, limits of bulk copies and of tensor maps.

Source: PTX ISA 9.0, "cp.async", "cp.async.bulk", "Tensors" (boxes, interleave, swizzling modes); CUDA Driver API,
"Tensor Map Object Management", cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.base.errors import LayoutError

CP_ASYNC_BYTES: Final[dict[str, tuple[int, ...]]] = {"ca": (4, 8, 16), "cg": (16,)}
"""Bytes that one thread copies, by cache operator; source and destination are aligned to them."""

BULK_ALIGNMENT: Final = 16
"""Bytes that divide size and both addresses of `cp.async.bulk`."""

TENSOR_RANKS: Final = range(1, 6)
BOX_EXTENT: Final = 256
"""Most elements of a box along each mode."""
BOX_INNER_BYTES: Final = 16
"""The inner extent of a box is a multiple of so many bytes."""
ELEMENT_STRIDE: Final = 8
"""Largest traversal stride along a mode."""
GLOBAL_ADDRESS_ALIGNMENT: Final = 16
GLOBAL_STRIDE_BYTES: Final = 16
"""Strides of the tensor in bytes, but the innermost, are multiples of this and below `GLOBAL_STRIDE_LIMIT`."""
GLOBAL_STRIDE_LIMIT: Final = 1 << 40
GLOBAL_EXTENT: Final = 1 << 32
"""Largest extent of the tensor along a mode."""
SHARED_ALIGNMENT: Final = 128
"""Bytes to which the box in shared memory is aligned; `SWIZZLE_ALIGNMENT` with a swizzle."""
SWIZZLE_ALIGNMENT: Final[dict[int, int]] = {0: 128, 32: 256, 64: 512, 128: 1024}
"""Bytes after which the pattern of each swizzling mode repeats; a box so aligned starts at the pattern's origin."""

TENSOR_TYPES: Final[dict[str, tuple[int, int]]] = {
    "u8": (0, 8), "u16": (1, 16), "u32": (2, 32), "s32": (3, 32), "u64": (4, 64), "s64": (5, 64), "f16": (6, 16),
    "f32": (7, 32), "f64": (8, 64), "bf16": (9, 16), "f32ftz": (10, 32), "tf32": (11, 32), "tf32ftz": (12, 32),
}  # fmt: skip
"""Element types of tensor maps: their number in CUtensorMapDataType, and their bits."""
SWIZZLE_MODES: Final[dict[int, int]] = {0: 0, 32: 1, 64: 2, 128: 3}
"""CUtensorMapSwizzle by the bytes of the swizzle."""
L2_PROMOTION: Final = 2
"""CU_TENSOR_MAP_L2_PROMOTION_L2_128B: what is read from memory is at least so much."""
REDUCTIONS: Final = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""What a bulk copy to global memory can do instead of writing."""

_INTEGERS, _BITS = ("u32", "s32", "u64", "s64"), ("u32", "s32", "u64")
TENSOR_REDUCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f32ftz", "tf32", "tf32ftz", "f64"),
    **dict.fromkeys(("min", "max"), (*_INTEGERS, "f16", "bf16")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), _BITS),
}
"""Element types of tensor reductions: recorded on an H100, but for `or` and `xor` of s32. That others are illegal
instructions was tried for most types of add, min, max and inc, and for xor of s64."""


def check_box(box: Sequence[int], bits: int, swizzle: int = 0) -> None:
    """Pass if a tensor map may have a box of these extents (innermost first) of elements of `bits` bits.

    Raises:
        LayoutError: with the rule that is broken.
    """
    if len(box) not in TENSOR_RANKS:
        raise LayoutError("a box has 1 to 5 modes", values={"box": tuple(box)})
    for extent in box:
        if not 1 <= extent <= BOX_EXTENT:
            raise LayoutError(f"each extent of a box is 1 to {BOX_EXTENT}", values={"box": tuple(box)})
    inner = box[0] * bits
    if inner % (8 * BOX_INNER_BYTES):
        raise LayoutError(
            f"the inner extent of a box is a multiple of {BOX_INNER_BYTES} bytes",
            values={"box": tuple(box), "inner bits": inner},
        )
    if swizzle and inner > 8 * swizzle:
        raise LayoutError(
            f"the inner extent of a box is at most {swizzle} bytes with that swizzle",
            values={"box": tuple(box), "inner bytes": inner // 8},
        )


def swizzle_bytes(bits: int, base: int, shift: int, width: int) -> int | None:
    """The bytes of the swizzling mode that S<bits, base, shift> of elements of `width` bits is; None: it is none."""
    if not bits:
        return 0
    unit = width << base
    return 16 << bits if (unit, shift) == (8 * BOX_INNER_BYTES, 3) and 16 << bits in SWIZZLE_MODES else None


def check_strides(strides: Sequence[int], bits: int) -> None:
    """Pass if a tensor may have these strides, in elements of `bits` bits, the innermost (which is 1) left out.

    Raises:
        LayoutError: a stride is not a multiple of 16 bytes, or too large.
    """
    for stride in strides:
        size = stride * bits
        if size % (8 * GLOBAL_STRIDE_BYTES) or not 0 <= size < 8 * GLOBAL_STRIDE_LIMIT:
            raise LayoutError(
                f"strides of a tensor are multiples of {GLOBAL_STRIDE_BYTES} bytes below 2^40",
                values={"stride": stride, "bytes": size / 8},
            )
