"""Instructions on bits, reductions of a warp, and special registers, against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError

A, B, C = 0xDEADBEEF, 0x12345678, 0x0F0F00FF
WORD = 0xFFFFFFFF


def logic(lut: int) -> int:
    bits = [(lut >> (4 * (A >> i & 1) + 2 * (B >> i & 1) + (C >> i & 1))) & 1 for i in range(32)]
    return sum(bit << i for i, bit in enumerate(bits))


def signed(value: int, width: int = 32) -> int:
    return (value & ((1 << width) - 1)) - ((value >> (width - 1) & 1) << width)


def test_logic_fields_and_products():
    def body(out: cute.Tensor, inputs: cute.Tensor):
        a, b, c = inputs[0], inputs[1], inputs[2]
        arch = cute.arch
        for i, lut in enumerate((0x80, 0xFE, 0x96, 0xCA, 0xF0 & 0xCC | 0xAA)):
            out[i] = arch.lop3(a, b, c, lut)
        for i, kind in enumerate(("l", "r", "clamp_left", "clamp_right")):
            out[5 + i] = arch.shf(a, b, shift=12, kind=kind)
            out[9 + i] = arch.shf(a, b, shift=35, kind=kind)
        out[13] = arch.bfe(a, start=8, length=12)
        out[14] = cutlass.Uint32(arch.bfe(cutlass.Int32(a), 28, 4))
        out[15] = arch.bfi(replacement=cutlass.Uint32(0xF), value=b, start=8, length=4)
        out[16] = arch.bfind(b)
        out[17] = arch.bfind(cutlass.Int32(-1))
        out[18] = arch.mul24(a, b)
        out[19] = arch.mul24(a, b, hi=True)
        out[20] = arch.mad24(a, b, c)
        out[21] = cutlass.Uint32(arch.add_sat_int(2**31 - 1, 5))
        out[22] = cutlass.Uint32(arch.sub_sat_int(-(2**31), 5))

    out = np.zeros(23, np.uint32)
    on_device(body, out, np.array([A, B, C], np.uint32), block=1)
    pair = A << 32 | B
    low24 = (A & 0xFFFFFF) * (B & 0xFFFFFF)
    expected = [*(logic(lut) for lut in (0x80, 0xFE, 0x96, 0xCA, 0xF0 & 0xCC | 0xAA)),
                pair << 12 >> 32, pair >> 12, pair << 12 >> 32, pair >> 12,
                pair << 3 >> 32, pair >> 3, pair << 32 >> 32, pair >> 32,
                A >> 8 & 0xFFF, signed(A >> 28, 4), 0x12345F78, B.bit_length() - 1, WORD,
                low24, low24 >> 16, low24 + C, 2**31 - 1, -(2**31)]  # fmt: skip
    assert [int(x) for x in out] == [x & WORD for x in expected]


def test_fields_of_64_bits():
    def body(out: cute.Tensor, inputs: cute.Tensor):
        out[0] = cute.arch.bfe(inputs[0], 36, 20)
        out[1] = cute.arch.bfi(inputs[1], inputs[0], 40, 16)
        out[2] = cutlass.Uint64(cute.arch.bfind(inputs[0]))

    x, y = 0x0123456789ABCDEF, 0xFFFF
    out = np.zeros(3, np.uint64)
    on_device(body, out, np.array([x, y], np.uint64), block=1)
    assert out.tolist() == [x >> 36 & 0xFFFFF, x & ~(0xFFFF << 40) | 0xFFFF << 40, x.bit_length() - 1]


def test_lanes_and_registers():
    def body(out: cute.Tensor):
        lane = cute.arch.lane_idx()
        masks = (cute.arch.lanemask_lt(), cute.arch.lanemask_le(), cute.arch.lanemask_eq(), cute.arch.lanemask_ge(),
                 cute.arch.lanemask_gt())  # fmt: skip
        for i, mask in enumerate(masks):
            out[lane, i] = mask
        out[lane, 5] = cute.arch.match_sync(mask=0xFFFFFFFF, value=lane // 8, kind="any")
        out[lane, 6] = cute.arch.match_sync(0xFFFFFFFF, lane * 0, kind="all")
        out[lane, 7] = cutlass.Uint32(cute.arch.warpsize())
        out[lane, 8] = cutlass.Uint32(cute.arch.smid() < cute.arch.nsmid())

    out = on_device(body, np.zeros((32, 9), np.uint32))
    for lane, row in enumerate(out.tolist()):
        below, own = (1 << lane) - 1, 1 << lane
        assert row == [
            below,
            below | own,
            own,
            WORD & ~below,
            WORD & ~(below | own),
            0xFF << lane // 8 * 8,
            WORD,
            32,
            1,
        ]


FOLDS = {"add": sum, "min": min, "max": max}


@pytest.mark.parametrize(("dtype", "kind"), [(t, k) for t in (np.int32, np.uint32) for k in FOLDS])
def test_redux_of_integers(dtype, kind):
    values = np.random.default_rng(2).integers(0, 2**32, 32, np.uint64).astype(np.uint32).view(dtype)
    out = np.zeros(32, dtype)

    def body(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.lane_idx()
        out[i] = cute.arch.warp_redux_sync(value=x[i], kind=kind)

    on_device(body, values, out)
    expected = FOLDS[kind](int(x) for x in values) & WORD
    assert {int(x) & WORD for x in out} == {expected}


def test_redux_of_bits_of_half_a_warp_and_unsigned():
    values = np.random.default_rng(3).integers(-(2**31), 2**31, 32).astype(np.int32)

    def body(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.lane_idx()
        for row, kind in enumerate(("and", "or", "xor", "umin", "umax")):
            out[i, row] = cute.arch.warp_redux_sync(x[i], kind)
        half = 0xFFFF if i < 16 else 0xFFFF0000
        out[i, 5] = cute.arch.warp_redux_sync(x[i], "max", half)

    out = on_device(body, values, np.zeros((32, 6), np.int32))[1]
    unsigned = values.view(np.uint32)
    folded = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    rows = [*(int(f.reduce(values)) for f in folded), *(int(f(unsigned).astype(np.int32)) for f in (np.min, np.max))]
    assert (out[:, :5] == np.array(rows, np.int32)).all()
    assert (out[:16, 5] == values[:16].max()).all() and (out[16:, 5] == values[16:].max()).all()


def test_redux_of_floats():
    values = np.random.default_rng(4).normal(size=32).astype(np.float32)
    values[7] = np.nan

    def body(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.lane_idx()
        out[i, 0] = cute.arch.warp_redux_sync(x[i], "fmax")
        out[i, 1] = cute.arch.warp_redux_sync(x[i], "min")
        out[i, 2] = cute.arch.warp_redux_sync(x[i], "fmax", abs=True)
        out[i, 3] = cute.arch.warp_redux_sync(x[i], "fmin", nan=True)

    out = on_device(body, values, np.zeros((32, 4), np.float32))[1]
    expected = [np.nanmax(values), np.nanmin(values), np.nanmax(np.abs(values)), np.nan]
    np.testing.assert_array_equal(out, np.tile(np.array(expected, np.float32), (32, 1)))


def test_extremes_with_options():
    def body(x: cute.Tensor, out: cute.Tensor):
        out[0] = cute.arch.fmax(x[0], x[1], nan=True)
        out[1] = cute.arch.fmin(x[0], x[1])
        out[2] = cute.arch.fmax(x[2], x[1], abs=True)
        out[3] = cute.arch.fmin(x[3], x[1], ftz=True)

    values = np.array([np.nan, 2, -3, 1e-40], np.float32)
    out = on_device(body, values, np.ones(4, np.float32), block=1)[1]
    np.testing.assert_array_equal(out, np.array([np.nan, 2, -3, 0], np.float32))


def refused(body, match):
    with pytest.raises(CompileError, match=match):
        on_device(body, np.zeros(1, np.int32), block=1)


def test_what_is_refused():
    refused(lambda out: cute.arch.lop3(out[0], 1, 2, 256), "lop3 takes its table as an int of 8 bits")
    refused(lambda out: cute.arch.lop3(1.5, 1, 2, 0xF0), "lop3 of a Float32")
    refused(lambda out: cute.arch.shf(1, 2, 3, kind="up"), "shf has no kind 'up'")
    refused(lambda out: cute.arch.match_sync(1, 2, "some"), "match_sync has no kind 'some'")
    refused(lambda out: cute.arch.warp_redux_sync(out[0], "mul"), "warp_redux_sync has no kind 'mul'")
    refused(lambda out: cute.arch.warp_redux_sync(out[0], "fmax"), "warp_redux_sync fmax of a Int32")
    refused(lambda out: cute.arch.warp_redux_sync(out[0], "max", nan=True), "with abs or nan")
    refused(
        lambda out: cute.arch.warp_redux_sync(1.5, "fmax", 0xFF), "a part of a warp needs the instruction of sm_100a"
    )
    refused(lambda out: cute.arch.fmax(cutlass.Float64(1), cutlass.Float64(2), nan=True), "fmax of Float64 with abs")
