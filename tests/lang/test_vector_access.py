"""Vectors at pointers: counts, masks, volatile and swizzled memory, indexing."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError
from tilewright.layout import Swizzle

BOOL = cutlass.Boolean


def test_vectors_and_elements_at_a_pointer():
    def body(x: cute.Tensor, y: cute.Tensor):
        source, target = x.iterator.raw_ptr(), y.iterator.raw_ptr()
        target.store(source.load(count=4, alignment=16) + 1.0, alignment=16)
        (target + 4).store((source + 4).load(count=3))
        target[7] = source[7] * 2
        (target + 8).store((source + 8).load(is_volatile=True), is_volatile=True)
        (target + 9).store((source + 9).load(count=2, is_volatile=True), is_volatile=True)
        (target + 11).store((source + 11).load(is_invariant=True))

    x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    on_device(body, x, y, block=1)
    assert y.tolist() == [1, 2, 3, 4, 4, 5, 6, 14, 8, 9, 10, 11]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_masks_guard_every_access(dtype):
    """Memory of 5 elements: what the mask leaves out lies outside it, and the emulator would refuse it."""

    def body(x: cute.Tensor, y: cute.Tensor):
        mask = cutlass.Vector.from_elements((True, False, True, True, True, False, False, False), BOOL)
        read = x.iterator.masked_load(mask, default=7)
        y.iterator.masked_store(read * 2, mask)

    x, y = np.arange(1, 6).astype(dtype), np.full(5, 9, dtype)
    on_device(body, x, y, block=1)
    assert y.tolist() == [2, 9, 6, 8, 10]


def test_a_mask_of_run_time_and_its_default():
    def body(x: cute.Tensor, y: cute.Tensor, count: cute.Tensor):
        truths = cute.make_rmem_tensor(8, BOOL)
        for i in cutlass.range_constexpr(8):
            truths[i] = count[0] > i
        y.iterator.store(x.iterator.masked_load(truths, default=-1))

    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    on_device(body, x, y, np.array([5], np.int32), block=1)
    assert y.tolist() == [0, 1, 2, 3, 4, -1, -1, -1]


@pytest.mark.parametrize("bits", [0, 1, 2, 3])
def test_swizzled_places(bits):
    """`S<bits,4,3>` of bytes, of Int16: element i lies at `i ^ ((i >> 6) % 2^bits << 3)`."""
    swizzle = Swizzle(bits, 4, 3)

    def body(x: cute.Tensor, y: cute.Tensor):
        memory = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int16, cute.make_layout(512), 1024)
        place = memory.iterator
        for at in cutlass.range_constexpr(0, 512, 16):
            (place + at).store_swizzled((x.iterator + at).load(count=16), swizzle)
        for at in cutlass.range_constexpr(0, 256, 16):
            (y.iterator + at).store((place + at).load(count=16))
        for at in cutlass.range_constexpr(256, 512, 32):
            (y.iterator + at).store((place + at).load_swizzled(swizzle, count=32, alignment=16))
        y[0] = (place + 300).load_swizzled(swizzle)

    x, y = np.arange(1, 513, dtype=np.int16), np.zeros(512, np.int16)
    on_device(body, x, y, block=1)
    lies = [i ^ (((i >> 6) & ((1 << bits) - 1)) << 3) for i in range(512)]
    stored = np.zeros(512, np.int16)
    stored[lies] = x
    assert (y[1:256] == stored[1:256]).all()
    assert (y[256:] == x[256:]).all()
    assert y[0] == x[300]


def test_addresses_and_spaces():
    def body(x: cute.Tensor, out: cute.Tensor):
        same = x.iterator.tospace(cutlass.AddressSpace.generic)
        out[0] = cutlass.Int32(same.toint() == x.iterator.toint(cutlass.Int64))
        out[1] = cutlass.Int32(cutlass.AddressSpace.smem.value)

    out = np.zeros(2, np.int32)
    on_device(body, np.zeros(1, np.float32), out, block=1)
    assert out.tolist() == [1, 3]


def test_what_vectors_refuse():
    mask = "cutlass.Vector.from_elements"
    cases = [
        (lambda x: x.iterator.load(count=0), "is known while compiling, and at least 1"),
        (lambda x: x.iterator.masked_load((True, False)), f"a mask is a vector of Booleans[\\s\\S]*{mask}"),
        (
            lambda x: x.iterator.masked_store(
                cute.full((2,), 1.0, cutlass.Float32), cute.full((4,), True, cutlass.Boolean)
            ),
            "masked_store takes one truth value for each element",
        ),
        (lambda x: x.iterator.tospace(cutlass.AddressSpace.smem), "a pointer into gmem is none into smem"),
    ]
    for body, text in cases:
        with pytest.raises(CompileError, match=text):
            on_device(body, np.zeros(8, np.float32), block=1)
