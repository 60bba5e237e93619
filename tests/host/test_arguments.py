"""Arguments of host functions: leaves that native code sees, and the message of every refused argument."""

import array
import ctypes
import functools
import math
import struct

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.programs import Recorder, dyn, static, tensor
from tilewright.base import spans
from tilewright.base.errors import ArgumentError, CompileError
from tilewright.base.signature import (
    Dim,
    PointerParam,
    ScalarParam,
    Signature,
    StreamParam,
    TensorParam,
    TupleParam,
)
from tilewright.targets.host.wrapper import wrapper_ir

MATRIX = tensor(shape=(dyn(), dyn()), stride=(dyn(width=64), Dim(value=1)))


@pytest.fixture(scope="module")
def matrix():
    return Recorder(MATRIX)


class View:
    """A tensor as our runtime's class passes it: `__tw_dltensor__` gives the address of a DLTensor."""

    def __init__(self, data, shape, strides=None, *, dtype=(2, 32, 1), device=(1, 0), offset=0):
        self.shape, self.strides = array.array("q", shape), array.array("q", strides or ())
        stride_address = self.strides.buffer_info()[0] if strides is not None else 0
        kind = struct.pack("<iBBH", len(shape), *dtype)
        head = struct.pack("<Qii", data, *device) + kind
        tail = struct.pack("<QQQ", self.shape.buffer_info()[0], stride_address, offset)
        self.buffer = ctypes.create_string_buffer(head + tail)

    def __tw_dltensor__(self):
        return ctypes.addressof(self.buffer)


def refusal(recorder, *arguments):
    with pytest.raises(ArgumentError) as caught:
        recorder.function(*arguments)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    return caught.value


# Leaves


def test_numpy_and_torch_leaves(matrix):
    x = np.zeros((3, 5), np.float32)
    assert matrix.leaves(x) == [x.ctypes.data, 3, 5, 5]
    assert matrix.leaves(x[1:, :2]) == [x.ctypes.data + 20, 2, 2, 5]
    y = torch.zeros(4, 6)
    assert matrix.leaves(y) == [y.data_ptr(), 4, 6, 6]
    assert matrix.leaves(y[2:, 1:]) == [y.data_ptr() + 13 * 4, 2, 5, 6]


def test_leaf_order_and_widths():
    param = tensor(shape=(dyn(width=64), dyn(), dyn()), stride=(dyn(), dyn(width=64), Dim(value=1)))
    recorder = Recorder(param)
    assert recorder.types == ["ptr", "i64", "i32", "i32", "i32", "i64"]
    x = np.zeros((2, 3, 4), np.float32)
    assert recorder.leaves(x) == [x.ctypes.data, 2, 3, 4, 12, 4]


def test_negative_strides():
    recorder = Recorder(tensor(stride=(dyn(),)))
    x = np.zeros(8, np.float32)
    assert recorder.leaves(x[::-2]) == [x.ctypes.data + 28, 4, -2]


def test_rank_zero():
    recorder = Recorder(tensor(shape=(), stride=()))
    x = np.zeros((), np.float32)
    assert recorder.leaves(x) == [x.ctypes.data]
    assert recorder.leaves(torch.zeros(())) != [0]


def test_empty_tensors(matrix):
    assert matrix.leaves(np.zeros((0, 7), np.float32))[1:3] == [0, 7]
    assert matrix.leaves(torch.zeros(3, 0))[1:3] == [3, 0]


def test_own_tensors_and_missing_strides():
    recorder = Recorder(tensor(shape=(dyn(), dyn(), dyn()), stride=(dyn(), dyn(), dyn())))
    assert recorder.leaves(View(64, (2, 3, 5))) == [64, 2, 3, 5, 15, 5, 1]
    assert recorder.leaves(View(64, (2, 3, 5), (1, 2, 6))) == [64, 2, 3, 5, 1, 2, 6]
    assert recorder.leaves(View(64, (2, 3, 5), offset=16))[0] == 80


def test_strides_of_single_elements_are_free():
    recorder = Recorder(tensor(shape=(dyn(), dyn()), stride=(dyn(divisibility=4), Dim(value=1))))
    assert recorder.leaves(View(64, (1, 8), (7, 1)))[3] == 0  # cannot be used: 0, which divides
    assert recorder.leaves(View(64, (2, 1), (8, 99)))[3] == 8
    assert "stride 7 of mode 0 is not a multiple of 4" in str(refusal(recorder, View(64, (2, 8), (7, 1))))


@pytest.mark.parametrize(
    ("dtype", "array_"),
    [(name, np.zeros(4, dtype)) for name, dtype in
     {"bool": "?", "i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "i32": "i4", "u32": "u4", "i64": "i8",
      "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8", "tf32": "f4", "bf16": ml_dtypes.bfloat16,
      "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3": ml_dtypes.float8_e4m3,
      "f8e8m0fnu": ml_dtypes.float8_e8m0fnu, "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz}.items()],
)  # fmt: skip
def test_numpy_dtypes(dtype, array_):
    recorder = Recorder(tensor(dtype=dtype, align=1))
    assert recorder.leaves(array_) == [array_.ctypes.data, 4]
    array_.flags.writeable = False
    assert recorder.leaves(array_) == [array_.ctypes.data, 4]
    other = np.zeros(4, "f4" if array_.itemsize == 8 else "f8")
    assert f"argument 1 'a' of f: wrong dtype\n  expected  {dtype} (?) : (1) on cpu" in str(refusal(recorder, other))


@pytest.mark.parametrize(
    ("dtype", "torch_dtype"),
    [("bool", "bool"), ("u8", "uint8"), ("i64", "int64"), ("f16", "float16"), ("bf16", "bfloat16"),
     ("f8e4m3fn", "float8_e4m3fn"), ("f8e5m2", "float8_e5m2")],
)  # fmt: skip
def test_torch_dtypes(dtype, torch_dtype):
    recorder = Recorder(tensor(dtype=dtype, align=1))
    value = torch.zeros(4, dtype=getattr(torch, torch_dtype))
    assert recorder.leaves(value) == [value.data_ptr(), 4]


def test_torch_parameters_and_gradients(matrix):
    value = torch.nn.Parameter(torch.zeros(2, 2))
    assert matrix.leaves(value)[0] == value.data_ptr()
    grad = torch.zeros(2, 2, requires_grad=True)
    assert matrix.leaves(grad)[0] == grad.data_ptr()


def test_any_dlpack_object(matrix):
    class Wrapped:
        def __init__(self, inner):
            self.inner = inner

        def __dlpack__(self, **options):
            return self.inner.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.inner.__dlpack_device__()

    x = np.zeros((2, 3), np.float32)
    assert matrix.leaves(Wrapped(x)) == [x.ctypes.data, 2, 3, 3]


def test_read_only_views(matrix):
    x = np.zeros((6, 5), np.float32)
    x.flags.writeable = False
    assert matrix.leaves(x[::2]) == [x.ctypes.data, 3, 5, 10]


# Numbers

BOUNDS = {f"i{b}": (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (4, 8, 16, 32, 64)}
BOUNDS |= {f"u{b}": (0, 2**b - 1) for b in (4, 8, 16, 32, 64)}


@pytest.mark.parametrize("dtype", BOUNDS)
def test_integers(dtype):
    recorder = Recorder(ScalarParam("n", dtype))
    low, high = BOUNDS[dtype]
    wrap = 1 << int(dtype[1:])
    for value in (low, high, 1, 0):
        assert recorder.leaves(value)[0] % wrap == value % wrap
    assert recorder.leaves(True)[0] % wrap == 1
    assert recorder.leaves(np.int64(5)) == [5]
    for value in (low - 1, high + 1):
        message = str(refusal(recorder, value))
        assert message.startswith("argument 1 'n' of f ")
        assert f"  expected  {dtype}, {low} to {high}\n" in message
        assert "  actual    int" in message
    message = str(refusal(recorder, 1.5))
    assert message.startswith("argument 1 'n' of f has the wrong type\n")
    assert "  actual    float 1.5" in message


def test_booleans():
    recorder = Recorder(ScalarParam("b", "bool"))
    assert [recorder.leaves(value) for value in (True, False, 1, 0, np.True_)] == [[1], [0], [1], [0], [1]]
    assert "argument 1 'b' of f is out of range\n  expected  bool\n  actual    int 2" in str(refusal(recorder, 2))
    assert "wrong type\n  expected  bool\n  actual    None" in str(refusal(recorder, None))


def float_cases():
    yield from (0.0, -0.0, 1.5, -2.75, 1e-50, 3.4e38, 1e300, math.inf, -math.inf, 65504.0, 65519.99, 65520.0, 2**-24)
    yield from (1 + 2**-11, 1 + 2**-11 + 2**-40, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 2**-8 + 2**-40, -(1 + 2**-8 - 2**-50))
    yield from (2**-25, 2**-25 * (1 + 2**-20), -(2**-133), 2**-134 * 1.0001, 5, -7, True)


@pytest.mark.parametrize(
    ("dtype", "reference"),
    [("f64", np.float64), ("f32", np.float32), ("tf32", np.float32), ("f16", np.float16), ("bf16", None)],
)
def test_floats_round_once(dtype, reference):
    recorder = Recorder(ScalarParam("x", dtype))
    with np.errstate(over="ignore"):
        for value in float_cases():
            expected = bfloat16_of(value) if reference is None else float(reference(value))
            (got,) = recorder.leaves(value)
            assert (got, math.copysign(1, got)) == (expected, math.copysign(1, expected)), value
    assert math.isnan(recorder.leaves(math.nan)[0])
    assert recorder.leaves(np.float32(0.5)) == [0.5]
    assert recorder.leaves(ml_dtypes.bfloat16(0.25)) == [0.25]
    assert f"wrong type\n  expected  {dtype}\n  actual    None" in str(refusal(recorder, None))


def bfloat16_of(value):
    """Round to nearest, ties to even, from the exact value (ml_dtypes goes through float32 and rounds twice)."""
    value = float(value)
    if value == 0 or math.isinf(value):
        return value
    exponent = max(math.frexp(value)[1] - 8, -133)
    rounded = math.ldexp(round(math.ldexp(value, -exponent)), exponent)
    return math.copysign(math.inf, value) if abs(rounded) >= 2.0**128 else rounded


# Pointers, streams, tuples


def test_pointers():
    recorder = Recorder(PointerParam("p", "f32", 16))
    assert recorder.leaves(ctypes.c_void_p(64)) == [64]
    assert recorder.leaves(128) == [128]
    assert recorder.leaves(None) == [0]
    expected = "argument 1 'p' of f is not aligned\n  expected  an address that is a multiple of 16\n  actual    int 72"
    assert expected in str(refusal(recorder, 72))
    assert "expected  pointer to f32\n  actual    float 1" in str(refusal(recorder, 1.0))


def test_streams():
    recorder = Recorder(StreamParam("s"), ScalarParam("n", "i32"))
    assert recorder.leaves(None, 1) == [0, 1]
    assert recorder.leaves(0x1234, 1) == [0x1234, 1]
    assert recorder.leaves(ctypes.c_void_p(0x5678), 2) == [0x5678, 2]
    assert "a CUDA stream, its handle, or None\n  actual    str" in str(refusal(recorder, "default", 1))

    class Stream:
        def __cuda_stream__(self):
            return 0, 0x9ABC

    assert recorder.leaves(Stream(), 3) == [0x9ABC, 3]


def test_stream_of_the_environment_is_not_passed():
    recorder = Recorder(tensor(), StreamParam("stream", env=True), ScalarParam("n", "i32"))
    x = np.zeros(3, np.float32)
    assert recorder.leaves(x, 7) == [x.ctypes.data, 3, 0, 7]
    assert "f takes 2 arguments, 1 were given\n  parameters  a, n" in str(refusal(recorder, x))


def test_stream_of_the_environment_on_cuda():
    recorder = Recorder(StreamParam("stream", env=True), device="cuda")
    assert recorder.leaves() == [0]  # no framework has set one


def test_tuples():
    inner = TupleParam("inner", (ScalarParam("n", "i32"), tensor("t")))
    recorder = Recorder(TupleParam("args", (inner, ScalarParam("x", "f32"))), ScalarParam("last", "i8"))
    x = np.zeros(5, np.float32)
    assert recorder.leaves(((3, x), 0.5), 9) == [3, x.ctypes.data, 5, 0.5, 9]
    assert recorder.leaves([[4, torch.zeros(2)], 1], 9)[2:] == [2, 1.0, 9]
    x.flags.writeable = False
    assert recorder.leaves(((3, x), 0.5), 9)[1] == x.ctypes.data
    assert "argument 1 'args' of f has the wrong length\n  expected  a tuple of 2" in str(refusal(recorder, (1,), 9))
    assert "argument 1 'args' of f has the wrong type" in str(refusal(recorder, 1, 9))
    message = str(refusal(recorder, ((3, x.astype("f8")), 0.5), 9))
    assert message.startswith("argument 1 'args' of f, item 0 'inner', item 1 't': wrong dtype\n")


# Refusals


def test_number_of_arguments(matrix):
    assert str(refusal(matrix)) == "f takes 1 argument, 0 were given\n  parameters  a"
    assert "f takes 1 argument, 2 were given" in str(refusal(matrix, 1, 2))


@pytest.mark.parametrize(
    ("value", "actual"),
    [(3, "int 3"), (2.5, "float 2.5"), (True, "bool True"), (None, "None"), ("text", "str"), (b"bytes", "bytes"),
     (object(), "Python object"), ({}, "dict"), ((), "tuple"), (ctypes.c_void_p(64), "pointer"), (len, "function"),
     (2**70, "int beyond 64 bits"), ("a string longer than the small ones", "str")],
)  # fmt: skip
def test_no_tensor(matrix, value, actual):
    expected = f"argument 1 'a' of f is not a tensor\n  expected  f32 (?, ?) : (?{{i64}}, 1)\n  actual    {actual}"
    expected += "\n  calling   f(a: f32 (?, ?))"
    assert str(refusal(matrix, value)) == expected


def test_wrong_rank(matrix):
    assert str(refusal(matrix, np.zeros((2, 3, 4), np.float32))) == (
        "argument 1 'a' of f: wrong rank\n  expected  f32 (?, ?) : (?{i64}, 1) on cpu\n"
        "  actual    f32 (2, 3, 4) : (12, 4, 1) on cpu\n"
        "  calling   f(a: f32 (?, ?))"
    )


def test_wrong_static_shape_names_both_shapes():
    recorder = Recorder(tensor(shape=static(4, 8), stride=static(8, 1)))
    assert len(recorder.leaves(np.zeros((4, 8), np.float32))) == 1
    assert str(refusal(recorder, np.zeros((4, 9), np.float32))) == (
        "argument 1 'a' of f: wrong shape\n  expected  f32 (4, 8) : (8, 1) on cpu\n"
        "  actual    f32 (4, 9) : (9, 1) on cpu\n"
        "  calling   f(a: f32 (4, 8))\n"
        "  hint: the layout was compiled in; compile with a dynamic layout to take other shapes"
    )
    assert "wrong strides" in str(refusal(recorder, np.zeros((8, 4), np.float32).T))


def test_wrong_device(matrix):
    message = str(refusal(matrix, View(64, (2, 2), device=(2, 3))))
    assert message.startswith("argument 1 'a' of f: wrong device\n")
    assert "actual    f32 (2, 2) : compact on cuda:3" in message
    on_cuda = Recorder(MATRIX, device="cuda")
    assert on_cuda.leaves(View(64, (2, 2), device=(2, 1))) == [64, 2, 2, 2]
    message = str(refusal(on_cuda, np.zeros((2, 2), np.float32)))
    assert "expected  f32 (?, ?) : (?{i64}, 1) on cuda\n  actual    f32 (2, 2) : (2, 1) on cpu" in message
    assert "on another device" in str(refusal(matrix, View(64, (2, 2), device=(99, 0))))


def test_tensors_on_two_devices():
    recorder = Recorder(tensor("a"), tensor("b"), device="cuda")
    first, second = View(64, (2,), device=(2, 0)), View(64, (2,), device=(2, 1))
    assert recorder.leaves(second, second) == [64, 2, 64, 2]
    message = str(refusal(recorder, first, second))
    assert "argument 2 'b' of f: not on the device of argument 1 'a' of f, number 0\n" in message
    assert "on cuda:1" in message


def test_packed_elements_count_as_two_along_the_mode_of_stride_1():
    recorder = Recorder(tensor(dtype="f4e2m1fn", align=1))
    assert recorder.leaves(View(64, (8,), dtype=(17, 4, 1))) == [64, 8]
    assert recorder.leaves(View(64, (8,), dtype=(17, 4, 2))) == [64, 16]
    rows = Recorder(tensor(dtype="f4e2m1fn", align=1, shape=(dyn(), dyn()), stride=(dyn(width=64), *static(1))))
    assert rows.leaves(View(64, (3, 8), dtype=(17, 4, 2))) == [64, 3, 16, 16]


def test_packed_elements_without_a_mode_of_stride_1_are_refused():
    recorder = Recorder(tensor(dtype="f4e2m1fn", align=1, stride=(dyn(width=64),)))
    assert "actual    f4e2m1fnx2 (8) : compact on cpu" in str(refusal(recorder, View(64, (8,), dtype=(17, 4, 2))))
    bytes_ = Recorder(tensor(dtype="u8", align=1))
    assert "wrong dtype" in str(refusal(bytes_, View(64, (8,), dtype=(1, 8, 2))))


def test_misaligned_data():
    recorder = Recorder(tensor(align=16))
    assert recorder.leaves(View(0, (0,))) == [0, 0]
    message = str(refusal(recorder, View(0x1000, (4,), offset=4)))
    assert "argument 1 'a' of f: its address 0x1004 is not a multiple of 16\n" in message
    assert message.endswith("hint: copy the tensor, or compile for a smaller alignment")


def test_divisibility():
    recorder = Recorder(tensor(shape=(dyn(divisibility=8),)))
    assert recorder.leaves(np.zeros(16, np.float32))[1] == 16
    message = str(refusal(recorder, np.zeros(12, np.float32)))
    assert message.startswith("argument 1 'a' of f: extent 12 of mode 0 is not a multiple of 8\n")
    assert "expected  f32 (?{div=8}) : (1) on cpu" in message


def test_symbols_are_equal_across_arguments():
    recorder = Recorder(
        tensor("a", shape=(dyn(symbol="m"), dyn(symbol="k")), stride=(dyn(symbol="k"), Dim(value=1))),
        tensor("b", shape=(dyn(width=64, symbol="k"),)),
    )
    assert recorder.leaves(np.zeros((2, 6), np.float32), np.zeros(6, np.float32))[1:4] == [2, 6, 6]
    message = str(refusal(recorder, np.zeros((2, 6), np.float32), np.zeros(7, np.float32)))
    head = "argument 2 'b' of f: extent of mode 0 must equal 'k' = 6, extent of mode 1 of argument 1 'a' of f\n"
    assert message.startswith(head)
    wide = np.zeros((2, 8), np.float32)[:, :6]
    assert "stride of mode 0 must equal 'k' = 6" in str(refusal(recorder, wide, np.zeros(6, np.float32)))
    # With one row the stride is never used.
    assert recorder.leaves(wide[:1], np.zeros(6, np.float32))[1:3] == [1, 6]


MOST = (2**31 - 2**20) // 4  # elements of f32 in the 32-bit form
BEYOND = f"it has or spans more than {MOST} elements, too many for the 32-bit form"


def test_extents_and_strides_beyond_the_32_bit_form():
    narrow = Recorder(tensor(shape=(dyn(), dyn()), stride=(dyn(), dyn())))
    for shape, stride in [
        ((2**31, 1), (1, 1)), ((2, 2), (1, -(2**31) - 1)), ((2**15, 2**15), (2**15, 1)), ((2**20, 2**20), (0, 0)),
        ((0, 2**40), (1, 1)), ((2, 0), (2**40, 1)), ((2**62, 2**62), (2**62, 2**62)),
        ((2, 2), (-(2**63), 1)), ((2**33, 2**31), (2**31, 2**33)),
    ]:  # fmt: skip
        error = refusal(narrow, View(64, shape, stride))
        assert error.message == f"argument 1 'a' of f: {BEYOND}"
        assert error.values["actual"].startswith(f"f32 ({shape[0]}, {shape[1]}) : ({stride[0]}, {stride[1]})")
        assert error.hint == "compile it with extents of 64 bits: cute.sym_int64() in a fake tensor"
    assert narrow.leaves(View(64, (2**14, 2**14), (2**14, 1)))[1:] == [2**14, 2**14, 2**14, 1]
    assert narrow.leaves(View(64, (1, 2), (2**40, -(MOST - 1))))[1:] == [1, 2, 0, -(MOST - 1)]
    wide = Recorder(tensor(shape=(dyn(width=64), dyn(width=64)), stride=(dyn(width=64), Dim(value=1))))
    assert wide.leaves(View(64, (2**33, 2**33), (2**33, 1))) == [64, 2**33, 2**33, 2**33]


@pytest.mark.parametrize(("dtype", "code"), [("i8", (0, 8, 1)), ("f16", (2, 16, 1)), ("f64", (2, 64, 1))])
def test_the_largest_tensor_of_the_32_bit_form(dtype, code):
    recorder = Recorder(tensor(dtype=dtype, align=1))
    most = (2**31 - 2**20) // (code[1] // 8)
    assert recorder.leaves(View(64, (most,), (1,), dtype=code)) == [64, most]
    assert "too many for the 32-bit form" in str(refusal(recorder, View(64, (most + 1,), (1,), dtype=code)))


def test_packed_types_count_elements_too():
    recorder = Recorder(tensor(dtype="f4e2m1fn", align=1))
    most = 2**31 - 2**20
    assert recorder.leaves(View(64, (most,), (1,), dtype=(17, 4, 1))) == [64, most]
    assert recorder.leaves(View(64, (most // 2,), (1,), dtype=(17, 4, 2))) == [64, most]
    for extent, lanes in ((most + 1, 1), (most // 2 + 1, 2)):
        assert "too many for the" in str(refusal(recorder, View(64, (extent,), (1,), dtype=(17, 4, lanes))))


EXTENT = st.one_of(
    st.integers(0, 5), st.integers(0, 2**17), st.integers(2**28, 2**34), st.sampled_from([MOST, MOST + 1])
)
STRIDE = st.one_of(st.integers(-5, 5), st.integers(-(2**17), 2**17), st.integers(-(2**34), 2**34))


@given(st.lists(st.tuples(EXTENT, STRIDE), min_size=3, max_size=3))
@settings(max_examples=400, deadline=None)
def test_the_check_is_exact(modes):
    """Against Python's integers, and against the check of tensors that a direct call makes in Python."""
    shape, stride = zip(*modes, strict=True)
    param = tensor(shape=(dyn(),) * 3, stride=(dyn(width=64),) * 3)
    recorder = _exact_recorder(param)
    count = math.prod(max(extent, 1) for extent in shape)
    span = 1 + sum((max(extent, 1) - 1) * abs(step) for extent, step in modes)
    large = count > MOST or span > MOST
    assert spans.too_large(param, shape, stride) is large
    if large:
        assert BEYOND in str(refusal(recorder, View(64, shape, stride)))
    else:
        assert recorder.leaves(View(64, shape, stride))[1:4] == list(shape)


@functools.cache
def _exact_recorder(param):
    return Recorder(param)


def test_long_shapes_print_whole_or_cut_off(matrix):
    message = str(refusal(matrix, View(64, (2,) * 64, (10**18,) * 64)))
    assert "wrong rank" in message
    assert "(2, 2, 2, 2," in message


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.zeros(4, ">f4"), "float32 in the other byte order"), (np.zeros(4, "U3"), "arrays of str96 cannot be"),
     (np.zeros(4, ml_dtypes.int4), "arrays of int4 cannot be passed"), (np.zeros(4, "c8"), "of complex64 cannot"),
     (np.zeros(3, "f4,u1")["f0"], "stride is not a whole number of elements")],
)  # fmt: skip
def test_numpy_arrays_without_a_meaning(value, message):
    value.flags.writeable = False
    assert message in str(refusal(Recorder(tensor(align=1)), value))


def test_what_tvm_ffi_refuses_is_an_argument_error(matrix):
    assert "an argument cannot be passed" in str(refusal(matrix, np.zeros((3, 2), "f4,u1")["f0"]))


def test_names_with_percent_signs():
    recorder = Recorder(TensorParam("100%d", "f32", (dyn(),), static(1), 16))
    assert "argument 1 '100%d' of f: its address 0x4 " in str(refusal(recorder, View(4, (4,))))
    assert "argument 1 '100%d' of f is not a tensor" in str(refusal(recorder, 1))


@pytest.mark.parametrize(
    ("param", "message"),
    [(ScalarParam("x", "f8e4m3fn"), "parameter 'x': a number of type f8e4m3fn cannot be passed"),
     (ScalarParam("x", "i128"), "parameter 'x': a number of type i128 cannot be passed"),
     (tensor("t", dtype="i128"), "parameter 't': a tensor of i128 cannot be passed"),
     (TupleParam("p", (StreamParam("s", env=True),)), "parameter 'p': a stream of the environment")],
)  # fmt: skip
def test_parameters_without_native_form(param, message):
    with pytest.raises(CompileError, match=message):
        wrapper_ir(Signature("f", (param,)), "f")


# Random signatures against the rules written down again in Python

DIMS = st.builds(
    Dim,
    value=st.none() | st.integers(0, 4),
    width=st.sampled_from((32, 64)),
    divisibility=st.sampled_from((1, 2, 3)),
    symbol=st.sampled_from((None, None, "m", "n")),
)


def fits(dims, values, extents, symbols):
    """Whether `values` satisfy `dims`; an extent below 2 frees its stride, an empty tensor all (`extents` given)."""
    for mode, (dim, value) in enumerate(zip(dims, values, strict=True)):
        free = extents is not None and (extents[mode] < 2 or 0 in extents)
        if free:
            if dim.value is None and dim.symbol:
                symbols.setdefault(dim.symbol, None)
            continue
        if dim.value is not None:
            if value != dim.value:
                return False
            continue
        if value % dim.divisibility or (dim.width == 32 and not -(2**31) <= value < 2**31):
            return False
        if dim.symbol:
            known = symbols.setdefault(dim.symbol, value)
            if known not in (None, value):
                return False
    return True


@settings(max_examples=60)
@given(st.data())
def test_random_signatures(data):
    ranks = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    params = [
        tensor(f"t{index}", shape=data.draw(st.tuples(*[DIMS] * rank)), stride=data.draw(st.tuples(*[DIMS] * rank)))
        for index, rank in enumerate(ranks)
    ]
    recorder = Recorder(*params)
    for _ in range(8):
        shapes, strides = [], []
        for param in params:
            shapes.append([data.draw(st.sampled_from((d.value, 2)) if d.value is not None else st.integers(0, 6))
                           for d in param.shape])  # fmt: skip
            strides.append([data.draw(st.sampled_from((d.value, 2)) if d.value is not None else st.integers(-6, 6))
                            for d in param.stride])  # fmt: skip
        symbols = {}
        expected = all(
            fits(param.shape, shape, None, symbols) and fits(param.stride, stride, shape, symbols)
            for param, shape, stride in zip(params, shapes, strides, strict=True)
        )
        views = [View(64, shape, stride) for shape, stride in zip(shapes, strides, strict=True)]
        if not expected:
            refusal(recorder, *views)
            continue
        leaves = []
        for param, shape, stride in zip(params, shapes, strides, strict=True):
            leaves.append(64)
            leaves += [value for dim, value in zip(param.shape, shape, strict=True) if dim.value is None]
            leaves += [0 if extent < 2 or 0 in shape else value
                       for dim, extent, value in zip(param.stride, shape, stride, strict=True)
                       if dim.value is None]  # fmt: skip
        assert recorder.leaves(*views) == leaves
