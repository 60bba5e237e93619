"""`wmma`: fragments of whole matrices and their products (PTX ISA 9.7.14.4).

The ISA leaves open where the lanes hold the elements; this is where ptxas 13.0 puts them for sm_90 (kernels
wmma_* of the differential suite, recorded on an H100). A product is made
of those of `mma.sync` (`fragments`): m16n16k16 of two m16n8k16 side by side, m32n8k16 of two one above the other,
m16n16k8 of tf32 of two steps of m16n8k4 on each side, and m8n32k16 is m32n8k16 of the transposed matrices. The eight
registers that the ISA gives A and B of f16 hold the needed ones again and again; the product reads the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import floats
from tilewright.targets.emu.numerics.formats import Array
from tilewright.targets.emu.numerics.fragments import (
    ELEMENT_BITS,
    Fragment,
    fragment_a,
    fragment_b,
    fragment_c,
    inverted,
)
from tilewright.targets.emu.numerics.matrix import Registers, gather, multiply, scatter

Shape = tuple[int, int, int]
TALL = ((16, 16, 16), (8, 32, 16), (32, 8, 16))
# type of A and B: shapes, types of C and D
FORMS: dict[str, tuple[tuple[Shape, ...], tuple[str, ...]]] = {
    "f16": (TALL, ("f16", "f32")),
    "bf16": (TALL, ("f32",)),
    **dict.fromkeys(("s8", "u8"), (TALL, ("s32",))),
    "tf32": (((16, 16, 8),), ("f32",)),
    "f64": (((8, 8, 4),), ("f64",)),
    **dict.fromkeys(("s4", "u4"), (((8, 8, 32),), ("s32",))),
    "b1": (((8, 8, 128),), ("s32",)),
}
REPEATED = 8  # registers of A and B of f16
TF32_STEP = 4  # of K: sm_90 has no greater one


@dataclass(frozen=True)
class Pieces:
    """How a fragment lies in memory: element `major * stride + minor` begins a piece of `size` bytes.

    `major` and `minor` have the axes (register, lane, piece of the register, lowest first).
    """

    major: Array
    minor: Array
    size: int


@cache
def fragment(matrix: str, shape: Shape, type: str) -> Fragment:
    """The fragment of matrix a, b or c (which is D's too) with elements of `type`, without repetitions."""
    m, n, k = shape
    transposed = n == 32
    rows, columns = (n, m) if transposed else (m, n)
    tile = (min(rows, 16), 8, k)
    role = {"a": "b", "b": "a"}.get(matrix, matrix) if transposed else matrix
    tops, lefts = range(0, rows, tile[0]), range(0, columns, tile[1])
    if role == "a":
        tiles = [(fragment_a(tile, type), top, 0) for top in tops]
    elif role == "b":
        tiles = [(fragment_b(tile, type), 0, left) for left in lefts]
    else:
        tiles = [(fragment_c(tile, type, type), top, left) for top in tops for left in lefts]
    row = np.concatenate([part.row + top for part, top, _ in tiles])
    column = np.concatenate([part.column + left for part, _, left in tiles])
    row, column = (column, row) if transposed else (row, column)
    return inverted({"a": (m, k), "b": (k, n), "c": (m, n)}[matrix], row, column)


def registers(matrix: str, shape: Shape, type: str) -> int:
    """How many registers a lane has for a matrix."""
    return REPEATED if matrix != "c" and type == "f16" else fragment(matrix, shape, type).registers


@cache
def pieces(matrix: str, shape: Shape, type: str, layout: str) -> Pieces:
    """Where the fragment of a matrix lies in memory that is `row`- or `col`umn-major.

    A register whose elements follow one another is one piece. `EmulationError` for elements of less than a byte that
    do not.
    """
    own, bits = fragment(matrix, shape, type), ELEMENT_BITS[type]
    major, minor = (own.row, own.column) if layout == "row" else (own.column, own.row)
    places = minor.shape[-1]
    if places > 1 and (np.diff(major).any() or (np.diff(minor) != 1).any()):
        if bits < 8:
            raise EmulationError(
                f"wmma takes {matrix} of {type} in the other layout only",
                values={"layout": layout},
                hint="A is row, B is col",
            )
        return Pieces(major, minor, bits // 8)
    return Pieces(major[..., :1], minor[..., :1], places * bits // 8)


def stride_of(matrix: str, shape: Shape, layout: str) -> int:
    """The distance between rows (or columns) of a matrix that has none beside it, in elements."""
    m, n, k = shape
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[matrix]
    return columns if layout == "row" else rows


def mma(
    shape: Shape,
    type: str,
    d_type: str,
    c_type: str,
    a: Registers,
    b: Registers,
    c: Registers,
    *,
    satfinite: bool = False,
    op: str | None = None,
    rnd: str = "rn",
) -> list[Array]:
    """D = A * B + C of one or many warps; `type` is that of A and B.

    Registers are arrays of shape (..., 32), uint32 (uint64 or float64 for f64), as are those returned. `satfinite`
    clamps integer sums, `op` (xor, and) is for b1, `rnd` for f64. Raises `EmulationError` for a combination that the
    PTX ISA does not have.
    """
    check(shape, type, d_type, c_type)
    left, right, old = (
        gather(_needed(given, matrix, shape, kind), kind, fragment(matrix, shape, kind))
        for given, matrix, kind in ((a, "a", type), (b, "b", type), (c, "c", c_type))
    )
    sums = "f32" if "f32" in (c_type, d_type) else d_type  # C of f16 is widened first, D of f16 narrowed last
    step = TF32_STEP if type == "tf32" else shape[2]
    for start in range(0, shape[2], step):
        part = slice(start, start + step)
        types = (type, type, sums, sums)
        old = multiply(left[..., part], right[..., part, :], old, types, satfinite=satfinite, op=op, rnd=rnd)
    if d_type != sums:
        old = floats.canonical(old.astype(np.float16), "f16")
    return scatter(old, fragment("c", shape, d_type))


def _needed(given: Registers, matrix: str, shape: Shape, type: str) -> Registers:
    wanted = registers(matrix, shape, type)
    if len(given) != wanted:
        raise EmulationError(
            f"the fragment of {matrix} has the wrong number of registers",
            values={"given": len(given), "needed": wanted, "element type": type},
        )
    return given[: fragment(matrix, shape, type).registers]


def check(shape: Shape, type: str, *sums: str) -> None:
    """`EmulationError` unless wmma multiplies matrices of `type` in this shape, with C and D of the types `sums`."""
    shapes, allowed = FORMS.get(type, ((), ()))
    if shape in shapes and all(kind in allowed for kind in sums):
        return
    known = " ".join("m{}n{}k{}".format(*s) for s in shapes)
    raise EmulationError(
        "wmma has no such combination of shape and types",
        values={
            "shape": "m{}n{}k{}".format(*shape),
            "types": f"{type} into {' '.join(sums)}",
            "this type has": f"{known} into {' '.join(allowed)}" if shapes else "nothing",
        },
    )
