"""`mma.sp` against dense products of matrices built entry by entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from tests.emu.numerics import test_ptx_matrix as dense
from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import matrix, sparse

CASES = [
    (a, b, acc, k)
    for a, (depths, sums) in sparse.SHAPES.items()
    for b in next((sorted(f) for f in sparse.FAMILIES if a in f), [a])
    for acc in sums
    for k in depths
]
NIBBLES = [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def lane_and_bit(type: str, k: int, selector: int, row: int, bit: int) -> tuple[int, int]:
    """Where bit `bit` of a row's metadata lies, said once more as the figures of PTX ISA 9.7.14.6.2 show it."""
    group, low = row % 8, row < 8
    bits = {"tf32": 2 * k, "s4": k // 2, "u4": k // 2}.get(type, k)
    if bits == 16:
        return 4 * group + selector, bit if low else 16 + bit
    if type in ("s8", "u8", "s4", "u4", "e4m3", "e5m2"):
        return 4 * group + 2 * selector + (0 if low else 1) + (2 if bit >= 32 else 0), bit % 32
    return 4 * group + 2 * selector + (1 if bit >= 16 else 0), bit % 16 + (0 if low else 16)


def kept_columns(type: str, nibble: int, chunk: int) -> list[int]:
    if type == "tf32":
        return [2 * chunk + (nibble == 0b1110)]
    places = [nibble & 3, nibble >> 2]
    if type in ("s4", "u4"):
        return [8 * chunk + 2 * p + i for p in places for i in (0, 1)]
    return [4 * chunk + p for p in places]


@pytest.mark.parametrize(("a_type", "b_type", "acc", "k"), CASES)
def test_sparse_products(a_type: str, b_type: str, acc: str, k: int) -> None:
    rng = np.random.default_rng(k)
    size = {"tf32": 2, "s4": 8, "u4": 8}.get(a_type, 4)
    chunks = k // size
    packed = dense.small_values(a_type, (16, k // 2), rng)
    b, c = dense.small_values(b_type, (k, 8), rng), dense.small_values(acc, (16, 8), rng)
    c = c // 4 if acc == "s32" else c
    for selector in range({4: 4, 8: 2, 16: 1}[chunks]):
        metadata = rng.integers(0, 2**32, 32, dtype=np.uint32)  # other lanes hold anything
        full = np.zeros((16, k))
        for row, chunk in itertools.product(range(16), range(chunks)):
            nibble = int(rng.choice([0b0100, 0b1110] if a_type == "tf32" else NIBBLES))
            for i in range(4):
                lane, bit = lane_and_bit(a_type, k, selector, row, 4 * chunk + i)
                metadata[lane] = (int(metadata[lane]) & ~(1 << bit)) | (nibble >> i & 1) << bit
            columns = kept_columns(a_type, nibble, chunk)
            full[row, columns] = packed[row, len(columns) * chunk : len(columns) * (chunk + 1)]
        half, whole = (16, 8, k // 2), (16, 8, k)
        place_a, place_b = dense.places_of(half, a_type, acc)[0], dense.places_of(whole, b_type, acc)[1]
        na, nb, nc = (
            dense.counts(half, a_type, acc)[0],
            dense.counts(whole, b_type, acc)[1],
            dense.counts(half, a_type, acc)[2],
        )
        d = sparse.mma_sp(
            whole,
            a_type,
            b_type,
            acc,
            dense.pack(packed, a_type, na, place_a),
            dense.pack(b, b_type, nb, place_b),
            dense.pack(c, acc, nc, dense.c_place),
            metadata,
            selector,
        )
        got = dense.unpack(d, acc, np.zeros((16, 8)), dense.c_place)
        np.testing.assert_array_equal(got, full @ b + c)


def test_errors_name_what_is_wrong() -> None:
    word = np.zeros(32, np.uint32)
    with pytest.raises(EmulationError, match="no two different columns in order"):
        sparse.mma_sp("m16n8k16", "f16", "f16", "f32", [word] * 2, [word] * 2, [word] * 4, word, 0)
    good = np.full(32, 0x44444444, np.uint32)
    with pytest.raises(EmulationError, match="selector is out of range"):
        sparse.mma_sp("m16n8k32", "f16", "f16", "f32", [word] * 4, [word] * 4, [word] * 4, good, 2)
    with pytest.raises(EmulationError, match=r"mma\.sp has no such combination"):
        sparse.mma_sp("m16n8k16", "s8", "s8", "s32", [word] * 2, [word] * 2, [word] * 4, good, 0)


@pytest.mark.parametrize("instruction", ["mma.sp", "wgmma"])
def test_columns_that_are_left_out_have_no_products(instruction: str) -> None:
    """An infinity, a NaN or a great number of B there changes nothing: not even how the others are aligned."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((16, 8)).astype(np.float16), rng.standard_normal((8, 8)).astype(np.float16)
    columns = np.tile([1, 3, 4, 6], (16, 1))
    full, taken = sparse.widened(np.take_along_axis(a.astype(np.float64), columns, 1), columns, 8)
    types, c = ("f16", "f16", "f32", "f32"), np.zeros((16, 8))
    kept = b.astype(np.float64)[[1, 3, 4, 6]]
    wanted = matrix.multiply(full[:, [1, 3, 4, 6]], kept, c, types, instruction=instruction)
    for value in (np.inf, -np.inf, np.nan, 65504.0):
        other = b.astype(np.float64)
        other[[0, 2, 5, 7]] = value
        got = matrix.multiply(full, other, c, types, instruction=instruction, taken=taken)
        np.testing.assert_array_equal(got, wanted)
    assert np.isnan(matrix.multiply(full, np.where(np.arange(8)[:, None] == 3, np.nan, b), c, types, taken=taken)).all()
