"""Elements of 4 bits: two in a byte, one by one and in runs, on host and device."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack

RAW = np.random.default_rng(0).integers(0, 256, 32).astype(np.uint8)
CODES = np.stack([RAW & 15, RAW >> 4], 1).reshape(-1).astype(np.uint8)
VALUES = {
    cutlass.Float4E2M1FN: CODES.view(ml_dtypes.float4_e2m1fn).astype(np.float32),
    cutlass.Int4: ((CODES.astype(np.int8) ^ 8) - 8).astype(np.float32),
    cutlass.Uint4: CODES.astype(np.float32),
}
TYPES = pytest.mark.parametrize("dtype", VALUES, ids=str)


def run(function, dtype, align):
    numbers, packed = np.zeros(64, np.float32), np.zeros(32, np.uint8)
    source = RAW if RAW.ctypes.data % 16 == 0 else np.frombuffer(bytearray(RAW), np.uint8)
    arguments = from_dlpack(source, assumed_align=align), from_dlpack(numbers), from_dlpack(packed)
    cute.compile(function, *arguments, dtype, target="emu")(*arguments)
    return numbers, np.stack([packed & 15, packed >> 4], 1).reshape(-1)


@cute.kernel
def singles(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    source, target = cute.recast_tensor(x, dtype), cute.recast_tensor(z, dtype)
    i = cute.arch.thread_idx()[0]
    y[i], y[i + 32] = source[i].to(cutlass.Float32), source[i + 32].to(cutlass.Float32)
    if i == 0:
        for j in cutlass.range(64):
            target[j] = source[63 - j]


@cute.jit
def singles_host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    singles(x, y, z, dtype).launch(grid=1, block=32)


@cute.kernel
def runs(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    values = cute.local_tile(cute.recast_tensor(x, dtype), (8,), (i,)).load()
    cute.local_tile(y, (8,), (i,)).store(values.to(cutlass.Float32))
    cute.local_tile(cute.recast_tensor(z, dtype), (8,), (i,)).store(values.to(cutlass.Float32).to(dtype))


@cute.jit
def runs_host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    runs(x, y, z, dtype).launch(grid=1, block=8)


@cute.jit
def on_host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, dtype: cutlass.Constexpr):
    values = cute.recast_tensor(x, dtype).load()
    y.store(values.to(cutlass.Float32))
    cute.recast_tensor(z, dtype).store(values)


@TYPES
def test_one_by_one(dtype):
    numbers, codes = run(singles_host, dtype, 1)
    assert np.array_equal(numbers, VALUES[dtype]) and np.array_equal(codes, CODES[::-1])


@TYPES
@pytest.mark.parametrize("function", [runs_host, on_host], ids=["device", "host"])
def test_in_runs(function, dtype):
    numbers, codes = run(function, dtype, 1)
    assert np.array_equal(numbers, VALUES[dtype]) and np.array_equal(codes, CODES)


def test_an_address_inside_a_byte_is_refused():
    @cute.jit
    def f(x: cute.Tensor):
        odd = cute.domain_offset((1,), cute.recast_tensor(x, cutlass.Int4))
        cute.make_tensor(odd.iterator, cute.make_layout(2)).fill(0)

    with pytest.raises(cutlass.CompileError, match="inside a byte"):
        cute.compile(f, from_dlpack(np.zeros(4, np.uint8)), target="emu")


def test_unpacked_arrays_are_refused():
    with pytest.raises(cutlass.ArgumentError, match="a byte of its own"):
        from_dlpack(np.zeros(4, ml_dtypes.int4))
