"""Matrix products of tensor cores: unpacking of operands, the product itself, `mma.sync` (PTX ISA 9.7.14.5).

Products of f16, bf16, tf32 and fp8 elements are exact; they are summed with C as the tensor cores of an H100 do it
(`accumulate`). f64 products are a chain of `fma` in the order of K, NaN payloads included. Integers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import accumulate, floats
from tilewright.targets.emu.numerics.formats import FORMATS, Array, decode, unknown_mode
from tilewright.targets.emu.numerics.fragments import (
    Fragment,
    check_shape,
    fragment_a,
    fragment_b,
    fragment_c,
    is_quad,
    parse_shape,
)

Registers = Sequence[Array]


def mma(
    shape: str | tuple[int, int, int],
    a_type: str,
    b_type: str,
    acc_type: str,
    a: Registers,
    b: Registers,
    c: Registers,
    *,
    a_layout: str = "row",
    b_layout: str = "col",
    d_type: str | None = None,
    satfinite: bool = False,
    op: str | None = None,
    rnd: str = "rn",
) -> list[Array]:
    """D = A * B + C of one or many warps.

    Args:
        shape: `m16n8k16` or (16, 8, 16).
        a_type: element type of A.
        b_type: element type of B.
        acc_type: element type of C, and of D unless `d_type` says otherwise.
        a: registers of A: arrays of shape (..., 32) with lanes last, uint32 (float64 or uint64 for f64).
        b: registers of B.
        c: registers of C.
        a_layout: row or col (only m8n8k4 of f16 has a choice, here and in B).
        b_layout: col or row.
        d_type: element type of D.
        satfinite: clamp integer sums instead of wrapping.
        op: xor or and, for b1.
        rnd: rounding of f64.

    Returns the registers of D, uint32 or uint64. Raises `EmulationError` for a combination the PTX ISA does not have.
    """
    size = parse_shape(shape)
    check_shape(size, a_type, b_type, acc_type)
    layout_a, layout_b = fragment_a(size, a_type, a_layout), fragment_b(size, b_type, b_layout)
    layout_c = fragment_c(size, a_type, acc_type)
    layout_d = fragment_c(size, a_type, d_type or acc_type)
    product = multiply(
        gather(a, a_type, layout_a),
        gather(b, b_type, layout_b),
        gather(c, acc_type, layout_c),
        (a_type, b_type, acc_type, d_type or acc_type),
        satfinite=satfinite,
        op=op if a_type == "b1" else None,
        rnd=rnd,
        instruction="m8n8k4" if is_quad(size, a_type) else "mma",
    )
    return scatter(product, layout_d)


def multiply(
    a: Array,
    b: Array,
    c: Array,
    types: tuple[str, str, str, str],
    *,
    satfinite: bool = False,
    op: str | None = None,
    rnd: str = "rn",
    instruction: str = "mma",
    taken: Array | None = None,
) -> Array:
    """a @ b + c of float64 matrices, rounded to the type of D as the module says.

    `types` are those of A, B, C and D. `op` (xor, and) makes it the count of ones of a binary product, for matrices of
    zeros and ones. `instruction` (mma, m8n8k4 or wgmma) decides how floats are summed.
    `taken` says which elements of a sparse `a` there are (see `accumulate.fused`).
    """
    a_type, b_type, c_type, d_type = types
    if d_type == "f64":
        return _chain(a, b, c, rnd)
    if d_type == "s32":
        return _integer_sum(a, b, c, satfinite, op)
    if instruction == "m8n8k4":
        return accumulate.by_chain(a, b, c, d_type)
    if a_type not in accumulate.FP8:
        return accumulate.fused(a, b, c, (a_type, b_type, c_type), d_type, taken=taken)
    if instruction == "mma":
        return accumulate.by_halves(a, b, c, d_type)
    return accumulate.fused(a, b, c, (a_type, b_type, c_type), d_type, accumulate.FRACTION_FP8, taken)


def _chain(a: Array, b: Array, c: Array, rnd: str) -> Array:
    total = c
    for k in range(a.shape[-1]):
        total = floats.fma(a[..., :, k, None], b[..., None, k, :], total, type="f64", rnd=rnd)
    return total


def _integer_sum(a: Array, b: Array, c: Array, satfinite: bool, op: str | None) -> Array:
    total = np.matmul(a, b)  # exact: every sum lies far below 2**53
    if op == "xor":
        total = a.sum(axis=-1)[..., :, None] + b.sum(axis=-2)[..., None, :] - 2 * total
    elif op not in (None, "and"):
        raise unknown_mode("binary operation", op, "xor and")
    wide = total.astype(np.int64) + c.astype(np.int64)
    if satfinite:
        wide = np.clip(wide, -(2**31), 2**31 - 1)
    return np.asarray(wide.astype(np.int32))


# ---- registers and matrices -----------------------------------------------------------------------------------


def gather(registers: Registers, type: str, fragment: Fragment) -> Array:
    """The float64 matrix (..., rows, columns) that the lanes' registers hold."""
    if len(registers) != fragment.registers:
        raise EmulationError(
            "a matrix fragment has the wrong number of registers",
            values={"given": len(registers), "needed": fragment.registers, "element type": type},
        )
    elements = unpack(np.stack(registers, axis=-2), type)
    return np.asarray(elements[..., fragment.register, fragment.lane, fragment.place])


def scatter(matrix: Array, fragment: Fragment) -> list[Array]:
    """The registers (one (..., 32) array each) of a matrix of float16, float32, float64 or int32."""
    where = (fragment.row, fragment.column) if fragment.part is None else (fragment.part, fragment.row, fragment.column)
    lanes = np.ascontiguousarray(matrix[(..., *where)])  # (..., registers, 32, places)
    word = np.uint64 if matrix.dtype.itemsize == 8 else np.uint32
    words = lanes.view(word)[..., 0]
    return [words[..., r, :] for r in range(fragment.registers)]


def unpack(words: Array, type: str) -> Array:
    """Elements of packed words as float64, lowest bits first, on a new last axis."""
    if type == "f64":
        return np.asarray(words.view(np.float64))[..., None]
    words = np.ascontiguousarray(words)
    words = (words if words.dtype.itemsize == 4 else words.astype(np.uint32)).view(np.uint32)[..., None]
    if type == "b1":
        return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(np.float64)
    if type in ("s4", "u4"):
        return _nibbles(words.view(np.uint8), type)
    if type in ("s8", "u8", "s32"):
        return words.view({"s8": np.int8, "u8": np.uint8, "s32": np.int32}[type]).astype(np.float64)
    fmt = FORMATS[type]
    if type == "f16":
        return words.view(np.float16).astype(np.float64)
    return decode(words.view(fmt.storage_dtype), fmt)


def _nibbles(octets: Array, type: str) -> Array:
    pairs = np.stack((octets & 15, octets >> 4), axis=-1).reshape(*octets.shape[:-1], -1).astype(np.int8)
    return np.asarray(((pairs ^ 8) - 8 if type == "s4" else pairs).astype(np.float64))
