"""Where each lane's registers lie in the matrices of `mma.sync` (PTX ISA 9.1, 9.7.14.5 "Matrix Fragments").

With group = lane / 4 and member = lane % 4, every shape but m8n8k4 of f16 follows one rule. A register holds e
consecutive elements (32 bits, or one f64) of a row of A or a column of B; one column of registers spans 4e of K:

    A  register r: row group + 8 * (r % p), columns 4e * (r / p) + e * member + 0..e-1, with p = M / 8
    B  register r: rows 4e * r + e * member + 0..e-1, column group
    C  element i:  row group + 8 * (i / 2), column 2 * member + i % 2

m8n8k4 of f16 computes four products, one for each set of lanes {4q..4q+3, 16+4q..16+4q+3} (9.7.14.5.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics.formats import Array

ELEMENT_BITS = {
    **dict.fromkeys(("f64",), 64),
    **dict.fromkeys(("f32", "tf32", "s32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
    "b1": 1,
}
LANES = np.arange(32)
GROUP, MEMBER = LANES // 4, LANES % 4

# shape: the types of A and B that sm_75 to sm_90 multiply with it, and of C and D (9.7.14.5.14)
SHAPES: dict[tuple[int, int, int], tuple[tuple[frozenset[str], frozenset[str]], ...]] = {}


def _allow(shape: tuple[int, int, int], inputs: str, sums: str) -> None:
    row = (frozenset(inputs.split()), frozenset(sums.split()))
    SHAPES[shape] = (*SHAPES.get(shape, ()), row)


_allow((8, 8, 4), "f16", "f16 f32")
_allow((8, 8, 4), "f64", "f64")
_allow((8, 8, 16), "s8 u8", "s32")
_allow((8, 8, 32), "s4 u4", "s32")
_allow((8, 8, 128), "b1", "s32")
_allow((16, 8, 4), "tf32", "f32")
_allow((16, 8, 4), "f64", "f64")
_allow((16, 8, 8), "f16", "f16 f32")
_allow((16, 8, 8), "bf16", "f32")
_allow((16, 8, 8), "tf32", "f32")
_allow((16, 8, 8), "f64", "f64")
_allow((16, 8, 16), "f16", "f16 f32")
_allow((16, 8, 16), "bf16", "f32")
_allow((16, 8, 16), "e4m3 e5m2", "f16 f32")
_allow((16, 8, 16), "s8 u8", "s32")
_allow((16, 8, 16), "f64", "f64")
_allow((16, 8, 32), "e4m3 e5m2", "f16 f32")
_allow((16, 8, 32), "s8 u8", "s32")
_allow((16, 8, 32), "s4 u4", "s32")
_allow((16, 8, 64), "s4 u4", "s32")
_allow((16, 8, 128), "b1", "s32")
_allow((16, 8, 256), "b1", "s32")


@dataclass(frozen=True)
class Fragment:
    """The lane, register and place in the register of every element of a matrix.

    `lane`, `register` and `place` have the matrix's shape (a leading axis of 4 for m8n8k4 of f16); `row` and
    `column` go the other way, with the axes (register, lane, place), and `part` names the product of the four.
    """

    shape: tuple[int, ...]
    lane: Array
    register: Array
    place: Array
    row: Array
    column: Array
    part: Array | None = None

    @property
    def registers(self) -> int:
        """Registers a lane holds."""
        return int(self.row.shape[0])


def inverted(shape: tuple[int, ...], row: Array, column: Array, part: Array | None = None) -> Fragment:
    """Invert `(register, lane, place) -> (row, column)`."""
    register, lane, place = np.indices(row.shape)
    index = (row, column) if part is None else (part, row, column)
    inverse = [np.full(shape, -1) for _ in range(3)]
    for target, source in zip(inverse, (lane, register, place), strict=True):
        target[index] = source
    return Fragment(shape, inverse[0], inverse[1], inverse[2], row, column, part)


def _grid(registers: int, places: int) -> tuple[Array, Array, Array, Array]:
    """Register, group, member and place, broadcast to (registers, 32, places)."""
    shape = (registers, 32, places)
    register = np.broadcast_to(np.arange(registers)[:, None, None], shape)
    group, member = (np.broadcast_to(x[None, :, None], shape) for x in (GROUP, MEMBER))
    return register, group, member, np.broadcast_to(np.arange(places), shape)


@cache
def fragment_a(shape: tuple[int, int, int], type: str, layout: str = "row") -> Fragment:
    """The fragment of A, M x K."""
    m, _, k = shape
    if is_quad(shape, type):
        return _quad_a(layout)
    places, tall = _per_register(type), m // 8
    register, group, member, place = _grid(tall * k // (4 * places), places)
    return inverted((m, k), group + 8 * (register % tall), 4 * places * (register // tall) + places * member + place)


@cache
def fragment_b(shape: tuple[int, int, int], type: str, layout: str = "col") -> Fragment:
    """The fragment of B, K x N."""
    _, n, k = shape
    if is_quad(shape, type):
        return _quad_b(layout)
    places = _per_register(type)
    register, group, member, place = _grid(k // (4 * places), places)
    return inverted((k, n), 4 * places * register + places * member + place, group)


@cache
def fragment_c(shape: tuple[int, int, int], input_type: str, type: str) -> Fragment:
    """The fragment of C and D, M x N, of element type `type`."""
    m, n, _ = shape
    places = _per_register(type)
    if is_quad(shape, input_type):
        return _quad_c(places)
    register, group, member, place = _grid(m // 8 * 2 // places, places)
    element = register * places + place
    return inverted((m, n), group + 8 * (element // 2), 2 * member + element % 2)


def _per_register(type: str) -> int:
    return max(32 // ELEMENT_BITS[type], 1)


def is_quad(shape: tuple[int, int, int], type: str) -> bool:
    """Whether this is the four-product m8n8k4 of f16."""
    return shape == (8, 8, 4) and type == "f16"


def _quad_grid(registers: int, places: int) -> tuple[Array, Array, Array]:
    """Element number, lane and product, broadcast to (registers, 32, places)."""
    shape = (registers, 32, places)
    element = np.arange(registers * places).reshape(registers, 1, places)
    lane = np.broadcast_to(LANES[None, :, None], shape)
    return np.broadcast_to(element, shape), lane, lane // 4 % 4


def _quad_a(layout: str) -> Fragment:
    element, lane, part = _quad_grid(2, 2)
    upper = 4 * (lane >= 16)
    row, column = (lane % 4 + upper, element) if layout == "row" else (element + upper, lane % 4)
    return inverted((4, 8, 4), row, column, part)


def _quad_b(layout: str) -> Fragment:
    element, lane, part = _quad_grid(2, 2)
    right = 4 * (lane >= 16)
    row, column = (lane % 4, element + right) if layout == "row" else (element, lane % 4 + right)
    return inverted((4, 4, 8), row, column, part)


def _quad_c(places: int) -> Fragment:
    element, lane, part = _quad_grid(8 // places, places)
    upper = 4 * (lane >= 16)
    if places == 2:
        return inverted((4, 8, 8), lane % 4 + upper, element, part)
    row = (lane & 1) + (element & 2) + upper
    return inverted((4, 8, 8), row, (element & 4) + (lane & 2) + (element & 1), part)


def parse_shape(shape: str | tuple[int, int, int]) -> tuple[int, int, int]:
    """`m16n8k16` as (16, 8, 16)."""
    if isinstance(shape, tuple):
        return shape
    try:
        m, rest = shape.removeprefix("m").split("n")
        n, k = rest.split("k")
        return int(m), int(n), int(k)
    except ValueError:
        raise EmulationError(f"{shape} is no matrix shape", hint="shapes look like m16n8k16") from None


def check_shape(shape: tuple[int, int, int], a_type: str, b_type: str, acc_type: str) -> None:
    """`EmulationError` unless the PTX ISA has the combination for sm_75 to sm_90."""
    rows = SHAPES.get(shape, ())
    if any({a_type, b_type} <= inputs and acc_type in sums for inputs, sums in rows):
        return
    known = "; ".join(f"{' '.join(sorted(inputs))} into {' '.join(sorted(sums))}" for inputs, sums in rows)
    raise EmulationError(
        "mma.sync has no such combination of shape and types",
        values={
            "shape": "m{}n{}k{}".format(*shape),
            "types": f"{a_type} times {b_type} into {acc_type}",
            "this shape takes": known or "nothing",
        },
    )
