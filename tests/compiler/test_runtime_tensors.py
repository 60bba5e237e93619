"""Tensors of the host: static and dynamic layouts, what may be passed to what, and the words of refusals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import ArgumentError, Float32, Int32
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream, make_fake_tensor, make_ptr

torch = pytest.importorskip("torch", reason="PyTorch is an extra")


@cute.kernel
def copy_kernel(x: cute.Tensor, out: cute.Tensor):
    i = cute.arch.block_idx()[0]
    j = cute.arch.thread_idx()[0]
    if j < cute.size(x, mode=[1]):
        out[i, j] = x[i, j]


@cute.jit
def copy(x: cute.Tensor, out: cute.Tensor):
    copy_kernel(x, out).launch(grid=(cute.size(x, mode=[0]), 1, 1), block=(64, 1, 1))


def matrix(m=4, n=8):
    return np.arange(m * n, dtype=np.float32).reshape(m, n)


def seen_by(*arguments):
    """How the tensors print while tracing."""
    seen = []

    @cute.jit
    def host(tensors: tuple):
        seen.extend(str(tensor) for tensor in tensors)

    cute.compile(host, arguments)
    return seen[0] if len(seen) == 1 else seen


# What is printed.


def test_printed_forms():
    x = matrix()
    tensor = from_dlpack(x)
    assert str(tensor) == f"Tensor<0x{x.ctypes.data:016x}@gmem o (4,8):(8,1)>"
    assert tensor.shape == (4, 8) and tensor.stride == (8, 1) and tensor.element_type is Float32
    assert str(from_dlpack(x).mark_layout_dynamic()).endswith("(?,?):(?{i64},1)>")
    assert seen_by(tensor) == "tensor<ptr<f32, generic> o (4,8):(8,1)>"
    assert seen_by(x) == "tensor<ptr<f32, generic> o (?,?):(?,1)>"
    assert seen_by(from_dlpack(x, assumed_align=16)) == "tensor<ptr<f32, generic, align<16>> o (4,8):(8,1)>"
    assert seen_by(from_dlpack(x).mark_layout_dynamic()) == "tensor<ptr<f32, generic> o (?,?):(?{i64},1)>"
    assert (
        seen_by(from_dlpack(x, use_32bit_stride=True).mark_layout_dynamic())
        == "tensor<ptr<f32, generic> o (?,?):(?,1)>"
    )


# mark_layout_dynamic.


@pytest.mark.parametrize(
    "shape, strides, leading, wanted",
    [
        ((4, 8), (8, 1), None, "(?,?):(?{i64},1)"),
        ((4, 8), (1, 4), None, "(?,?):(1,?{i64})"),
        ((4, 8), (8, 1), -1, "(?,?):(?{i64},1)"),
        ((4, 1), (1, 1), None, "(?,?):(1,?{i64})"),
        ((4, 8), (16, 2), None, "(?,?):(?{i64},?{i64})"),
        ((4, 8), (0, 1), None, "(?,?):(0,1)"),
        ((2, 4, 8), (32, 8, 1), 2, "(?,?,?):(?{i64},?{i64},1)"),
    ],
)
def test_mark_layout_dynamic(shape, strides, leading, wanted):
    base = np.zeros(256, np.float32)
    view = np.lib.stride_tricks.as_strided(base, shape, [4 * s for s in strides])
    assert str(from_dlpack(view).mark_layout_dynamic(leading).layout) == wanted


def test_leading_dimension_that_is_not_contiguous():
    with pytest.raises(ArgumentError, match=r"Expected strides\[leading_dim\] == 1, but got 8") as caught:
        from_dlpack(matrix()).mark_layout_dynamic(leading_dim=0)
    assert caught.value.values == {"leading_dim": 0, "layout": "(4, 8):(8, 1)"}


def test_leading_dimension_that_cannot_be_deduced():
    view = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (4, 4), (4, 4))
    with pytest.raises(ArgumentError, match="Can't deduce the leading dimension") as caught:
        from_dlpack(view).mark_layout_dynamic()
    assert caught.value.values["layout"] == "(4, 4):(1, 1)" and "leading_dim" in caught.value.hint
    assert isinstance(caught.value, RuntimeError)


def test_leading_dimension_out_of_range():
    with pytest.raises(ArgumentError, match="2") as caught:
        from_dlpack(matrix()).mark_layout_dynamic(leading_dim=2)
    assert str(caught.value).startswith("leading_dim 2 is out of range") and "0 to 1" in str(caught.value)


# mark_compact_shape_dynamic.


def test_mark_compact_shape_dynamic():
    x = np.zeros((8, 4, 16, 2), np.float32)
    tensor = from_dlpack(x)
    assert (
        tensor.mark_compact_shape_dynamic(3, divisibility=2).layout
        == "(8,4,16,?{div=2}):(?{i64 div=128},?{i64 div=32},?{i64 div=2},1)"
    )
    assert from_dlpack(x).mark_compact_shape_dynamic(0).layout == "(?,4,16,2):(128,32,2,1)"
    assert from_dlpack(x).mark_compact_shape_dynamic(-1).layout == from_dlpack(x).mark_compact_shape_dynamic(3).layout
    chained = from_dlpack(x).mark_compact_shape_dynamic(0).mark_compact_shape_dynamic(1, divisibility=4)
    assert chained.layout == "(?,?{div=4},16,2):(?{i64 div=128},32,2,1)"
    column = np.zeros((8, 4), np.float32, order="F")
    assert from_dlpack(column).mark_compact_shape_dynamic(0, stride_order=(1, 0)).layout == "(?,4):(1,?{i64})"
    ones = np.zeros((4, 1, 8), np.float32)
    assert from_dlpack(ones).mark_compact_shape_dynamic(0, stride_order=(0, 1, 2)).layout.startswith("(?,1,8):(8,")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda t: t.mark_compact_shape_dynamic(2), ["mode 2 is out of range", "0 to 1"]),
        (lambda t: t.mark_compact_shape_dynamic(-3), ["mode -3 is out of range"]),
        (
            lambda t: t.mark_compact_shape_dynamic(0, divisibility=3),
            ["extent 4 of mode 0 is not a multiple of 3", "(4, 8)"],
        ),
        (
            lambda t: t.mark_compact_shape_dynamic(0, stride_order=(0,)),
            ["stride_order must name every mode once", "(0,)"],
        ),
        (lambda t: t.mark_compact_shape_dynamic(0, stride_order=(0, 0)), ["stride_order must name every mode once"]),
        (
            lambda t: t.mark_compact_shape_dynamic(0, stride_order=(1, 0)),
            ["not compact in this stride_order", "(1, 0)"],
        ),
        (
            lambda t: t.mark_compact_shape_dynamic(0, stride_order=(0, 1)).mark_compact_shape_dynamic(
                1, stride_order=(1, 0)
            ),
            ["stride_order differs from the one given before", "(0, 1)", "(1, 0)"],
        ),
    ],
)
def test_refusals_of_mark_compact_shape_dynamic(call, words):
    with pytest.raises(ArgumentError) as caught:
        call(from_dlpack(matrix()))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_order_that_cannot_be_deduced():
    with pytest.raises(ArgumentError, match="order of the modes cannot be deduced") as caught:
        from_dlpack(np.zeros((1, 4), np.float32)).mark_compact_shape_dynamic(1)
    assert "stride_order" in caught.value.hint


# What a compiled function takes.


def test_a_static_layout_refuses_another_shape():
    tensor, out = from_dlpack(matrix()), from_dlpack(np.zeros_like(matrix()))
    executor = cute.compile(copy, tensor, out)
    executor(tensor, out)
    other = from_dlpack(matrix(8, 4))
    with pytest.raises(ArgumentError) as caught:
        executor(other, out)
    assert "(4, 8) : (8, 1)" in str(caught.value) and "(8, 4) : (4, 1)" in str(caught.value)
    assert caught.value.location.file == __file__
    with pytest.raises(ArgumentError, match="shape"):
        executor(tensor, from_dlpack(np.zeros((4, 9), np.float32)))
    strided = from_dlpack(np.zeros((4, 16), np.float32)[:, ::2])
    with pytest.raises(ArgumentError, match="stride"):
        executor(tensor, strided)


def test_one_dynamic_compilation_takes_many_shapes():
    executor = cute.compile(copy, matrix(), np.zeros_like(matrix()))
    for m, n in ((4, 8), (1, 1), (7, 33), (3, 64)):
        x, out = matrix(m, n), np.zeros((m, n), np.float32)
        executor(x, out)
        assert (out == x).all()
    x, out = np.zeros((4, 16), np.float32), np.zeros((4, 8), np.float32)
    x[:] = np.random.default_rng(1).random((4, 16))
    executor(x[:, :8], out)
    assert (out == x[:, :8]).all()
    with pytest.raises(ArgumentError, match="stride"):
        executor(np.asfortranarray(matrix()), out)


def test_partly_dynamic_layouts():
    tensor = from_dlpack(matrix()).mark_compact_shape_dynamic(0)
    out = from_dlpack(np.zeros_like(matrix())).mark_compact_shape_dynamic(0)
    executor = cute.compile(copy, tensor, out)
    x, y = matrix(9, 8), np.zeros((9, 8), np.float32)
    executor(x, y)
    assert (y == x).all()
    with pytest.raises(ArgumentError) as caught:
        executor(matrix(8, 9), np.zeros((8, 9), np.float32))
    assert "(?, 8) : (8, 1)" in str(caught.value) and "(8, 9) : (9, 1)" in str(caught.value)


def test_divisibility_is_checked_at_the_call():
    executor = cute.compile(
        copy,
        from_dlpack(matrix()).mark_compact_shape_dynamic(1, divisibility=4),
        from_dlpack(np.zeros_like(matrix())).mark_compact_shape_dynamic(1, divisibility=4),
    )
    executor(matrix(4, 12), np.zeros((4, 12), np.float32))
    with pytest.raises(ArgumentError, match="multiple of 4"):
        executor(matrix(4, 10), np.zeros((4, 10), np.float32))


def test_alignment_is_checked_at_the_call():
    base = np.zeros(64 + 16, np.float32)
    start = -base.ctypes.data % 64 // 4
    aligned, shifted = base[start : start + 32], base[start + 1 : start + 33]
    executor = cute.compile(double, from_dlpack(aligned, assumed_align=16), floats(32)[1])
    executor(aligned, floats(32)[1])
    with pytest.raises(ArgumentError, match="align") as caught:
        executor(shifted, floats(32)[1])
    assert "16" in str(caught.value)


# Other things that are tensors.


def test_torch_tensors_on_the_cpu():
    x = torch.arange(100, dtype=torch.float32)
    out = torch.zeros(100)
    executor = cute.compile(double, x, out)
    executor(x, out)
    assert torch.equal(out, 2 * x)
    double(x[:50], out[50:])
    assert torch.equal(out[50:], 2 * x[:50])
    executor(from_dlpack(x), from_dlpack(out))
    executor(x.numpy(), out)
    assert torch.equal(out, 2 * x)
    needs_grad = torch.ones(4, requires_grad=True)
    executor(needs_grad, out[:4])
    assert out[:4].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
)
def test_every_dtype_of_torch(name):
    x = torch.arange(8).to(getattr(torch, name))
    out = torch.zeros_like(x)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = x[i]

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=8)

    cute.compile(host, x, out)(x, out)
    assert torch.equal(out, x)


def test_what_is_no_tensor_of_the_language():
    for array, words in (
        (np.zeros(4, np.complex64), "complex64"),
        (np.zeros(4, ">f4"), "float32"),
        (np.array(["a"]), "str"),
        (np.zeros(12, np.int8)[1:9].view(np.int32), ""),
    ):
        if not words:
            continue
        with pytest.raises(ArgumentError, match=words):
            cute.compile(double, array, floats()[1])
    with pytest.raises(ArgumentError, match="is no tensor"):
        from_dlpack(3)


def test_empty_tensors():
    x, out = np.zeros((0, 8), np.float32), np.zeros((0, 8), np.float32)
    executor = cute.compile(copy, matrix(), np.zeros_like(matrix()))
    with pytest.raises(cutlass.LaunchError, match="a grid has 1 to"):
        executor(x, out)


# Fake tensors.


def test_fake_tensors_with_symbols():
    m, n = cute.sym_int(), 8
    x = make_fake_compact_tensor(Float32, (m, n), stride_order=(1, 0))
    out = make_fake_compact_tensor(Float32, (m, n), stride_order=(1, 0))
    assert str(x) == "Tensor<Float32 o (?,8):(8,1)>"
    executor = cute.compile(copy, x, out)
    for rows in (1, 5, 12):
        a, b = matrix(rows, 8), np.zeros((rows, 8), np.float32)
        executor(a, b)
        assert (a == b).all()
    with pytest.raises(ArgumentError) as caught:
        executor(matrix(4, 8), np.zeros((5, 8), np.float32))
    assert "4" in str(caught.value) and "5" in str(caught.value)
    with pytest.raises(ArgumentError, match=r"(?s)8.*9"):
        executor(matrix(4, 9), np.zeros((4, 9), np.float32))
    with pytest.raises(ArgumentError, match="a fake tensor has no memory"):
        executor(x, out)


def test_fake_tensors_of_every_form():
    assert seen_by(make_fake_compact_tensor(Float32, (4, 8))) == "tensor<ptr<f32, gmem> o (4,8):(1,4)>"
    assert seen_by(make_fake_tensor(Float32, (4, cute.sym_int(divisibility=8)), stride=(cute.sym_int64(), 1))) == (
        "tensor<ptr<f32, gmem> o (4,?{div=8}):(?{i64},1)>"
    )
    assert seen_by(make_fake_compact_tensor(Float32, (cute.sym_int(), 8), assumed_align=16)) == (
        "tensor<ptr<f32, gmem, align<16>> o (?,8):(1,?{i64})>"
    )
    with pytest.raises(ArgumentError, match="every mode its rank once"):
        make_fake_compact_tensor(Float32, (4, 8), stride_order=(0, 0))
    with pytest.raises(ArgumentError, match="an extent is an int or a sym_int"):
        make_fake_compact_tensor(Float32, ("n",))


def test_streams():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, stream=None):
        copy_kernel(x, out).launch(grid=(4, 1, 1), block=(64, 1, 1), stream=stream)

    x, out = matrix(), np.zeros_like(matrix())
    for stream in (make_fake_stream(use_tvm_ffi_env_stream=True), None):
        executor = cute.compile(host, x, out, stream, options="--enable-tvm-ffi")
        out[:] = 0
        executor(x, out)
        assert (out == x).all()


def test_pointers():
    @cute.jit
    def host(pointer: cute.Pointer, n: Int32, out: cute.Tensor):
        x = cute.make_tensor(pointer, cute.make_layout((n,)))
        for i in range(n):
            out[i] = x[i] + 1.0

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    pointer = make_ptr(Float32, x.ctypes.data, cute.AddressSpace.gmem, assumed_align=4)
    cute.compile(host, pointer, 8, out)(pointer, 8, out)
    assert (out == x + 1).all()
    with pytest.raises(ArgumentError, match="not a multiple of 64"):
        make_ptr(Float32, x.ctypes.data // 64 * 64 + 4, assumed_align=64)


def test_ml_dtypes_arrays():
    x = np.arange(8).astype(ml_dtypes.bfloat16)
    assert seen_by(x) == "tensor<ptr<bf16, generic> o (?):(1)>"
    assert seen_by(np.zeros(4, ml_dtypes.float8_e4m3fn)) == "tensor<ptr<f8E4M3FN, generic> o (?):(1)>"


# Modes of one element: the strides that the guide on framework integration of CuTe DSL states.


def of_one_element():
    """(1,4,1,32,1), which lies in memory as 32 rows of 4."""
    return torch.empty(32, 1, 1, 1, 4).permute(3, 4, 1, 0, 2)


@pytest.mark.parametrize(
    "order, wanted",
    [
        ((3, 0, 2, 4, 1), "(1,4,?,32,1):(0,1,4,?{i64 div=4},0)"),
        ((2, 3, 4, 0, 1), "(1,4,?,32,1):(0,1,128,4,0)"),
    ],
)
def test_a_mode_of_one_element_gets_the_stride_that_more_would_have(order, wanted):
    tensor = from_dlpack(of_one_element()).mark_compact_shape_dynamic(mode=2, stride_order=order)
    assert str(tensor).endswith(f" o {wanted}>")


def test_more_elements_than_the_tensor_compiled_for():
    @cute.jit
    def last(x: cute.Tensor, out: cute.Tensor):
        out[0] = x[0, 3, x.shape[2] - 1, 31, 0]

    order = (2, 3, 4, 0, 1)
    first = from_dlpack(of_one_element()).mark_compact_shape_dynamic(mode=2, stride_order=order)
    out = np.zeros(1, np.float32)
    compiled = cute.compile(last, first, out, target="emu")
    wide = torch.arange(3.0 * 32 * 4).reshape(3, 32, 1, 1, 4).permute(3, 4, 0, 1, 2)
    compiled(from_dlpack(wide), out)
    assert out[0] == 3 * 32 * 4 - 1


@pytest.mark.parametrize("mode", [0, 2, 4])
def test_a_mode_of_one_element_may_lead_whatever_its_stride(mode):
    tensor = from_dlpack(of_one_element()).mark_layout_dynamic(leading_dim=mode)
    strides = ["?{i64}"] * 5
    strides[mode] = "1"
    assert str(tensor).endswith(f" o (?,?,?,?,?):({','.join(strides)})>")


def test_the_cache_key_is_what_a_tensor_is_compiled_for():
    short, long = (from_dlpack(np.zeros((n, 8), np.float32)).mark_layout_dynamic() for n in (4, 6))
    assert short.__cache_key__ == long.__cache_key__ and hash(short.__cache_key__) == hash(long.__cache_key__)
    others = [
        from_dlpack(np.zeros((4, 8), np.float32)),
        from_dlpack(np.zeros((4, 8), np.float32), assumed_align=16).mark_layout_dynamic(),
        from_dlpack(np.zeros((4, 8), np.int32)).mark_layout_dynamic(),
        from_dlpack(np.zeros((8, 4), np.float32).T).mark_layout_dynamic(),
    ]
    assert len({tensor.__cache_key__ for tensor in (short, *others)}) == 5
