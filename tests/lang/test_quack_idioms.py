"""What quack's GEMM classes rely on: enumerations chosen at run time, named tuples, streams between arguments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright import ArgumentError, Float8E4M3FN, Float8E5M2, Float32, Int32
from tilewright.cute.nvgpu import warp


class Order(IntEnum):
    ALONG_M = 0
    ALONG_N = 1


def test_run_time_chooses_between_members_of_an_enumeration():
    def body(x: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        order = Order.ALONG_M if thread % 2 == 0 else Order.ALONG_N
        if thread == 3:
            order = Order.ALONG_M
        x[thread] = 10 * order

    x = np.full(4, -1, np.int32)
    assert on_device(body, x, block=4).tolist() == [0, 10, 0, 0]


class Options(NamedTuple):
    count: Int32
    mode: cutlass.Constexpr[int] = 2
    size: Int32 = Int32(8)


class Fixed(NamedTuple):
    scale: cutlass.Constexpr[float] = 0.5
    tensor: cute.Tensor | None = None


def _with_protocol(cls):
    """As quack's decorator adds it: machine values of the members that are not compile-time."""
    cls.__c_pointers__ = lambda self: [0] * 2
    cls.__get_mlir_types__ = lambda self: [Int32.mlir_type] * 2
    cls.__extract_mlir_values__ = lambda self: [self.count.ir_value(), self.size.ir_value()]
    cls.__new_from_mlir_values__ = lambda self, values: cls(Int32(values[0]), self.mode, Int32(values[1]))
    return cls


def test_a_named_tuple_with_the_protocol_and_a_stream_between():
    options = _with_protocol(Options)

    @cute.kernel
    def kernel(x: cute.Tensor, options: Options, fixed: Fixed):
        x[0] = Float32(options.count * options.mode + options.size) * fixed.scale

    class Program:
        @cute.jit
        def __call__(self, x: cute.Tensor, none: cute.Tensor | None, options: Options, fixed: Fixed, stream,
                     last: cute.Tensor | None = None):  # fmt: skip
            kernel(x, options, fixed).launch(grid=1, block=1, stream=stream)

    x = np.zeros(1, np.float32)
    stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True)
    compiled = cute.compile(Program(), x, None, options(Int32(1)), Fixed(), stream, None, options="--enable-tvm-ffi")
    compiled(x, None, options(Int32(5), None, 6), Fixed(None, None), None)  # Constexpr members are not passed
    assert x[0] == (5 * 2 + 6) * 0.5
    with pytest.raises(ArgumentError, match="fixed is compile-time and differs"):
        compiled(x, None, options(Int32(5), None, 6), Fixed(0.25, None), None)


def test_a_product_of_two_types_of_fp8_derives_from_that_of_one():
    @dataclass(frozen=True)
    class Mixed(warp.MmaFP8Op):
        b_dtype: type = Float8E5M2

        def __post_init__(self) -> None:
            assert self.shape_mnk == (16, 8, 32)

    op = Mixed(Float8E4M3FN, Float32, (16, 8, 32))
    assert (op.ab_dtype, op.a_dtype, op.b_dtype) == (Float8E4M3FN, Float8E4M3FN, Float8E5M2)
    assert "e4m3" in op.text() and "e5m2" in op.text()
    plain = warp.MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 32))
    assert plain == warp.MmaFP8Op(ab_dtype=Float8E4M3FN, acc_dtype=Float32, shape_mnk=(16, 8, 32))
    assert plain.b_dtype is Float8E4M3FN


def test_bytes_of_types():
    assert [kind.bytes for kind in (cutlass.Float16, cutlass.Int64, cutlass.Float4E2M1FN, cutlass.Boolean)] == [
        2,
        8,
        1,
        1,
    ]
