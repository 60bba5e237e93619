"""Structs of shared memory, and structs that travel as values."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host


@cute.struct
class Pair:
    real: cutlass.Float32
    imag: cutlass.Float64


@cute.struct
class Storage:
    a: cute.struct.MemRange[cutlass.Float32, 3]
    b: cutlass.Int64
    c: Pair
    d: cute.struct.Align[cute.struct.MemRange[cutlass.Int8, 5], 64]
    e: cute.struct.Align[cutlass.Int32, 8]


def test_fields_lie_as_in_c():
    assert {name: field.offset for name, field in Storage.__tw_struct__.items()} == {
        "a": 0, "b": 16, "c": 24, "d": 64, "e": 72
    }  # fmt: skip
    assert (Storage.size_in_bytes(), Storage.alignment()) == (128, 64)
    assert (Pair.size_in_bytes(), Pair.alignment()) == (16, 8)


def test_fields_hold_what_is_written():
    def body(out: cute.Tensor):
        s = cutlass.utils.SmemAllocator().allocate(Storage, 64)
        s.a[1] = 2.5
        s.b = 40
        s.c.imag = 4.0
        s.e = 7
        s.a.get_tensor(cute.make_layout(1)).fill(1.0)
        out[0], out[1], out[2] = s.a[0], s.a[1], s.b.ptr.load().to(cutlass.Float32)
        out[3], out[4] = s.c.imag.load().to(cutlass.Float32), s.e.load().to(cutlass.Float32)

    out = on_device(body, np.zeros(5, np.float32), block=1)
    assert out.tolist() == [1, 2.5, 40, 4, 7]


def test_field_types_may_use_local_names():
    def body(out: cute.Tensor):
        stages = 3

        @cute.struct
        class Local:
            ring: cute.struct.MemRange[cutlass.Int32, stages]

        s = cutlass.utils.SmemAllocator().allocate(Local)
        for i in cutlass.range_constexpr(stages):
            s.ring[i] = i * i
        t = s.ring.get_tensor((stages,))
        for i in cutlass.range_constexpr(stages):
            out[i] = t[i]

    assert on_device(body, np.zeros(3, np.int32), block=1).tolist() == [0, 1, 4]


def test_a_tensor_past_the_range_is_refused():
    def body(out: cute.Tensor):
        cutlass.utils.SmemAllocator().allocate(Storage).a.get_tensor(cute.make_layout(4))

    with pytest.raises(cutlass.CompileError, match="past the end of its memory range") as caught:
        on_device(body, np.zeros(1, np.float32))
    assert "3 elements of Float32" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cute.struct.MemRange[cutlass.Int32, -1], "MemRange takes an element type"),
        (lambda: cute.struct.Align[cutlass.Int32, 24], "power of two"),
        (lambda: cute.struct(type("Bad", (), {"__annotations__": {"x": str}})), "field 'x' of a struct"),
    ],
)
def test_wrong_fields(make, message):
    with pytest.raises(cutlass.CompileError, match=message):
        make()


@cute.native_struct
class Sums:
    total: cutlass.Int32
    count: cutlass.Int32
    name: cutlass.Constexpr


def test_native_struct_in_a_runtime_loop():
    def body(values: cute.Tensor, out: cute.Tensor):
        sums = Sums(name="sums")
        for i in cutlass.range(values.shape[0]):
            if values[i] > 1:
                sums.total = sums.total + values[i]
                sums.count = sums.count + 1
        out[0], out[1] = sums.total, sums.count

    _, out = on_host(body, np.array([3, 0, 1, 5], np.int32), np.zeros(2, np.int32))
    assert out.tolist() == [8, 2]


def test_native_struct_has_only_its_fields():
    with pytest.raises(cutlass.CompileError, match="no field 'x'"):
        Sums().x = 1
