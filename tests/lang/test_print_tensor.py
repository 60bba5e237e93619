"""`print_tensor` writes what CuTe's notebooks state, on host and device, of tensors in any memory."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright.cute.runtime import from_dlpack

CUBE = """\
tensor(raw_ptr(0x: f32, generic, align<4>) o (4,3,2):(6,2,1), data=
       [[[ 0.000000,  2.000000,  4.000000, ],
         [ 6.000000,  8.000000,  10.000000, ],
         [ 12.000000,  14.000000,  16.000000, ],
         [ 18.000000,  20.000000,  22.000000, ]],

        [[ 1.000000,  3.000000,  5.000000, ],
         [ 7.000000,  9.000000,  11.000000, ],
         [ 13.000000,  15.000000,  17.000000, ],
         [ 19.000000,  21.000000,  23.000000, ]]])
"""
VERBOSE = """\
tensor(raw_ptr(0x: f32, generic, align<4>) o (2,2):(2,1), data= (
\t(0,0)= 0.000000
\t(0,1)= 1.000000
\t(1,0)= 2.000000
\t(1,1)= 3.000000
)
"""


def printed(capfd):
    """What was printed, without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", capfd.readouterr().out)


def show(x: cute.Tensor):
    cute.print_tensor(x)


def show_verbose(x: cute.Tensor):
    cute.print_tensor(x, verbose=True)


def test_rank_3_on_the_host(capfd):
    on_host(show, np.arange(24, dtype=np.float32).reshape(4, 3, 2))
    assert printed(capfd) == CUBE


def test_verbose(capfd):
    on_host(show_verbose, np.arange(4, dtype=np.float32).reshape(2, 2))
    assert printed(capfd) == VERBOSE


def test_a_column_in_registers(capfd):
    def body(x: cute.Tensor):
        part = cute.slice_(x, (None, 0))
        copy = cute.make_rmem_tensor(part.layout, part.element_type)
        copy.store(part.load())
        cute.print_tensor(copy)

    on_host(body, np.arange(4, dtype=np.float32).reshape(2, 2))
    assert printed(capfd) == (
        "tensor(raw_ptr(0x: f32, rmem, align<32>) o (2):(2), data=\n       [ 0.000000, ],\n       [ 2.000000, ])\n"
    )


def test_device_memory_and_negative_numbers(capfd):
    on_device(show, -np.arange(4, dtype=np.float32).reshape(2, 2), block=1)
    assert printed(capfd) == (
        "tensor(raw_ptr(0x: f32, gmem, align<4>) o (2,2):(2,1), data=\n"
        "       [[-0.000000, -1.000000, ],\n        [-2.000000, -3.000000, ]])\n"
    )


def test_shared_memory(capfd):
    def body(x: cute.Tensor):
        s = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout((1, 2)), 16)
        s.fill(7)
        cute.print_tensor(s)

    on_device(body, np.zeros(1, np.float32), block=1)
    assert printed(capfd) == "tensor(raw_ptr(0x: i32, smem, align<16>) o (1,2):(0,1), data=\n       [[ 7,  7, ]])\n"


def test_runtime_extents_print_by_loops(capfd):
    @cute.kernel
    def kernel(x: cute.Tensor):
        cute.print_tensor(x)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = from_dlpack(np.arange(4, dtype=np.int32).reshape(2, 2)).mark_layout_dynamic()
    cute.compile(host, x, target="emu")(x)
    assert printed(capfd) == (
        "tensor(raw_ptr(0x: i32, gmem, align<4>) o (2,2):(2,1), data=\n       [[ 0,  1, ],\n        [ 2,  3, ]])\n"
    )


def test_narrow_types_print_as_numbers(capfd):
    on_host(show, np.array([1.5, -2], dtype=ml_dtypes.bfloat16))
    on_host(show, np.array([200, 255], dtype=np.uint8))
    assert printed(capfd) == (
        "tensor(raw_ptr(0x: bf16, generic, align<2>) o (2):(1), data=\n       [ 1.500000, ],\n       [-2.000000, ])\n"
        "tensor(raw_ptr(0x: i8, generic, align<1>) o (2):(1), data=\n       [ 200, ],\n       [ 255, ])\n"
    )


def test_coordinates_and_register_values(capfd):
    def body(x: cute.Tensor):
        cute.print_tensor(cute.make_identity_tensor((2, 2)))
        cute.print_tensor(x.load() + 1)

    on_host(body, np.zeros((1, 2), np.float32))
    assert printed(capfd) == (
        "tensor((0,0) o (2,2):(1@0,1@1), data=\n       [[(0,0), (0,1), ],\n        [(1,0), (1,1), ]])\n"
        "tensor(raw_ptr(0x: f32, rmem, align<32>) o (1,2):(0,1), data=\n       [[ 1.000000,  1.000000, ]])\n"
    )


def test_what_python_prints_while_tracing(capsys):
    def body(x: cute.Tensor):
        print(x, type(cutlass.Int32(1)), x.load())

    on_host(body, np.zeros((3, 4), np.float32))
    assert capsys.readouterr().out == "tensor<ptr<f32, generic> o (3,4):(4,1)> Int32 vector<12xf32> o (3, 4)\n"
