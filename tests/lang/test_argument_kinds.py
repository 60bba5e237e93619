"""Arguments: aggregates, objects of protocols, adapters, shapes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import ArgumentError
from tilewright.cute.runtime import from_dlpack, make_ptr


class Point(NamedTuple):
    x: cutlass.Int32
    y: cutlass.Int32


@dataclass(frozen=True)
class Params:
    threads: int
    scale: cutlass.Float32
    out: cute.Tensor


def run(function, *args, **options):
    compiled = cute.compile(function, *args, target="emu", **options)
    compiled(*args)
    return compiled


def test_named_tuples_are_numbers_by_field():
    @cute.jit
    def f(p: Point, out: cute.Tensor):
        moved = Point(x=p.x + 1, y=p.y * 2)
        out[0], out[1] = moved.x, moved.y

    out = np.zeros(2, np.int32)
    compiled = run(f, Point(3, 5), from_dlpack(out))
    assert out.tolist() == [4, 10]
    compiled(Point(10, 20), from_dlpack(out))
    assert out.tolist() == [11, 40]


def test_dataclasses_keep_python_numbers():
    @cute.kernel
    def kernel(p: Params):
        i = cute.arch.thread_idx()[0]
        for k in cutlass.range_constexpr(p.threads):
            if i == k:
                p.out[i] = p.scale * k

    @cute.jit
    def f(p: Params):
        kernel(p).launch(grid=1, block=p.threads)

    out = np.zeros(4, np.float32)
    compiled = run(f, Params(4, 2.0, from_dlpack(out)))
    assert out.tolist() == [0, 2, 4, 6]
    compiled(Params(4, 0.5, from_dlpack(out)))
    assert out.tolist() == [0, 0.5, 1, 1.5]
    with pytest.raises(ArgumentError, match=r"p\.threads is compile-time") as caught:
        compiled(Params(3, 0.5, from_dlpack(out)))
    assert "compiled for  4" in str(caught.value)


def test_tuples_mix_constants_and_numbers():
    @cute.jit
    def f(out: cute.Tensor, coord: tuple):
        row = cute.slice_(out, coord)
        row.fill(1)

    out = np.zeros((2, 3), np.int32)
    compiled = run(f, from_dlpack(out), (1, None))
    assert out.tolist() == [[0, 0, 0], [1, 1, 1]]
    compiled(from_dlpack(out), (0, None))
    assert out.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_shapes_keep_python_ints():
    @cute.jit
    def f(out: cute.Tensor, shape: cute.Shape):
        for i in cutlass.range_constexpr(cute.size(shape)):
            out[i] = i

    out = np.zeros(6, np.int32)
    run(f, from_dlpack(out), (2, 3))
    assert out.tolist() == list(range(6))


def test_static_parts_of_shapes_stay_static_in_kernels():
    seen = []

    @cute.kernel
    def kernel(out: cute.Tensor, shape: cute.Shape):
        seen.append(str(shape))
        out[0] = shape[0]

    @cute.jit
    def f(out: cute.Tensor, n: cutlass.Int32):
        kernel(out, (n, 8)).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    run(f, from_dlpack(out), 5)
    assert out[0] == 5 and seen == ["(Int32(?), 8)"]


class Vector:
    """Two numbers behind one address."""

    def __init__(self, x, y):
        self.cell = (ctypes.c_int32 * 2)(x, y)

    def __c_pointers__(self):
        base = ctypes.addressof(self.cell)
        return [base, base + 4]

    def __get_mlir_types__(self):
        return [cutlass.Int32.mlir_type] * 2

    def __new_from_mlir_values__(self, values):
        return tuple(cutlass.Int32(value) for value in values)


def test_objects_of_the_jit_argument_protocol():
    @cute.jit
    def f(v, out: cute.Tensor):
        out[0] = v[0] * 10 + v[1]

    out = np.zeros(1, np.int32)
    compiled = run(f, Vector(4, 2), from_dlpack(out))
    assert out[0] == 42
    compiled(Vector(-1, 3), from_dlpack(out))
    assert out[0] == -7


def test_adapters_of_foreign_classes():
    class Foreign:
        def __init__(self, text):
            self.text = text

    @cutlass.register_jit_arg_adapter(Foreign)
    class Adapter:
        def __init__(self, value):
            self.numbers = Vector(*map(int, value.text.split(",")))

        def __c_pointers__(self):
            return self.numbers.__c_pointers__()

        def __get_mlir_types__(self):
            return self.numbers.__get_mlir_types__()

        def __new_from_mlir_values__(self, values):
            return self.numbers.__new_from_mlir_values__(values)

    @cute.jit
    def f(v, out: cute.Tensor):
        out[0] = v[0] - v[1]

    out = np.zeros(1, np.int32)
    compiled = run(f, Foreign("9,4"), from_dlpack(out))
    assert out[0] == 5
    compiled(Foreign("1,4"), from_dlpack(out))
    assert out[0] == -3


def test_pointers_inside_objects():
    class Buffer:
        def __init__(self, ptr):
            self.ptr = ptr

        def __c_pointers__(self):
            return self.ptr.__c_pointers__()

        def __get_mlir_types__(self):
            return self.ptr.__get_mlir_types__()

        def __extract_mlir_values__(self):
            return self.ptr.__extract_mlir_values__()

        def __new_from_mlir_values__(self, values):
            return Buffer(self.ptr.__new_from_mlir_values__(values))

    @cute.kernel
    def kernel(buffer: Buffer):
        cute.make_tensor(buffer.ptr, cute.make_layout(32))[cute.arch.thread_idx()[0]] = 3.0

    @cute.jit
    def f(buffer: Buffer):
        kernel(buffer).launch(grid=1, block=32)

    out = np.zeros(32, np.float32)
    run(f, Buffer(make_ptr(cutlass.Float32, out.ctypes.data, cute.AddressSpace.gmem, assumed_align=4)))
    assert out.tolist() == [3.0] * 32


def test_values_in_and_out_of_objects():
    @cute.jit
    def f(x: cutlass.Int32, out: cute.Tensor):
        pair = (x, (x + 1, "name"))
        values = cutlass.extract_mlir_values(pair)
        first, (second, name) = cutlass.new_from_mlir_values(pair, values[::-1])
        out[0], out[1] = first, second
        assert name == "name" and len(values) == 2

    out = np.zeros(2, np.int32)
    run(f, 5, from_dlpack(out))
    assert out.tolist() == [6, 5]


def test_user_ops_of_mlirs_own_operations():
    from tilewright.cutlass_dsl import T, dsl_user_op
    from tilewright.ir import mlir

    @dsl_user_op
    def swap_halves(x: cutlass.Int32, *, loc=None, ip=None) -> cutlass.Int32:
        return cutlass.Int32(
            mlir.llvm.inline_asm(
                T.i32(), [cutlass.Int32(x).ir_value()], "prmt.b32 $0, $1, 0, 0x1032;", "=r,r", loc=loc, ip=ip
            )
        )

    @cute.kernel
    def kernel(out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = swap_halves(i)

    @cute.jit
    def f(out: cute.Tensor):
        kernel(out).launch(grid=1, block=32)

    out = np.zeros(32, np.int32)
    run(f, from_dlpack(out))
    assert out.tolist() == [i << 16 for i in range(32)]


def test_names_of_functions():
    @cute.kernel
    def kernel(out: cute.Tensor):
        out[0] = 1

    @cute.jit
    def f(out: cute.Tensor):
        kernel.set_name_prefix("mine")
        kernel(out).launch(grid=1, block=1)

    f.set_name_prefix("host", keep_mangled_name=False)
    compiled = cute.compile(f, from_dlpack(np.zeros(1, np.int32)), target="emu")
    assert (compiled.name, list(compiled.kernels)) == ("host", ["mine_kernel"])


class Shift:
    """A jit method whose compile-time argument stands between runtime ones."""

    @cute.jit
    def __call__(self, out: cute.Tensor, extra: cute.Tensor | None, by: cute.Float = 0.5):
        out[0] = out[0] + by
        if cutlass.const_expr(extra is not None):
            out[1] = extra[0]


def test_compile_time_arguments_may_be_repeated_by_position():
    out = np.zeros(2, np.float32)
    compiled = cute.compile(Shift(), out, None, target="emu")
    for arguments in ((out, None, 2.0), (out, 2.0), (out,)):
        compiled(*arguments)
    assert out[0] == 4.5
    with pytest.raises(ArgumentError, match="extra is compile-time and differs"):
        compiled(out, out, 2.0)
    with pytest.raises(ArgumentError, match="takes 2 arguments, got 4") as caught:
        compiled(out, None, 2.0, 3.0)
    assert caught.value.values["parameters"] == "out, extra, by"


def test_annotations_of_a_family_of_numbers():
    @cute.kernel
    def kernel(a: cute.Float, b: cute.Integer, out: cute.Tensor):
        out[0] = cutlass.Float64(a) + cutlass.Float64(b)

    @cute.jit
    def run_(a: cute.Float, b: cute.Integer, out: cute.Tensor):
        print(type(a).__name__, type(b).__name__)
        kernel(a, b, out).launch(grid=1, block=1)

    out = np.zeros(1)
    for a, b in ((1.5, 2), (cutlass.Float64(1.5), cutlass.Int64(2)), (cutlass.BFloat16(1.5), cutlass.Uint8(2))):
        run(run_, a, b, from_dlpack(out))
        assert out[0] == 3.5
    with pytest.raises(cutlass.CompileError, match=r"expects argument #2 \(b\) to be"):
        cute.compile(run_, 1.5, 2.5, from_dlpack(out), target="emu")
