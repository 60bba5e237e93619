"""Arguments of odd kinds: torch's lazy bits, tensors without memory, None at any place, streams, NumPy's numbers."""

from __future__ import annotations

import ctypes
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import ArgumentError, CompileError
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor

# Tensors whose memory is not what they show


def negated(torch):
    return {
        "imag": torch.complex(torch.ones(4), torch.arange(4.0)).conj().imag,
        "neg_view": torch._neg_view(torch.ones(4)),
        "double": torch.complex(torch.ones(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)).conj().imag,
        "half": torch._neg_view(torch.ones(4, dtype=torch.float16)),
        "integers": torch._neg_view(torch.arange(4)),
    }


@pytest.mark.parametrize("name", ["imag", "neg_view", "double", "half", "integers"])
def test_a_lazily_negated_tensor_is_refused_and_its_copy_right(name):
    torch = pytest.importorskip("torch")
    x = negated(torch)[name]
    assert x.is_neg()
    out = torch.zeros_like(x.resolve_neg())
    compiled = cute.compile(double, out, out.clone(), target="emu")

    class Pair(NamedTuple):
        x: Any
        out: Any

    @cute.jit
    def of_pair(pair: Pair):
        pair.out[0] = pair.x[0]

    compiled_of_pair = cute.compile(of_pair, Pair(out, out.clone()), target="emu")
    for action in (
        lambda: double(x, out),
        lambda: double(out, x),
        lambda: cute.compile(double, x, out),
        lambda: compiled(x, out),
        lambda: compiled(out, out=x),
        lambda: from_dlpack(x),
        lambda: compiled_of_pair(Pair(x, out)),
        lambda: compiled_of_pair(Pair(out, x)),
    ):
        with pytest.raises(ArgumentError, match="the tensor is negated lazily") as caught:
            action()
        assert "t.resolve_neg()" in caught.value.hint
    compiled(x.resolve_neg(), out)
    assert (out.numpy() == 2 * x.resolve_neg().numpy()).all()


def test_the_check_before_a_native_call():
    """What a CUDA device's calls go through."""
    torch = pytest.importorskip("torch")
    compiled = cute.compile(double, *floats(), target="emu")
    good, bad = torch.ones(4), torch._neg_view(torch.ones(4))
    for arguments in ((good, good), (np.zeros(4), good), (), (3, good, good), (good,)):
        assert compiled.form.takes_native(arguments)
    assert not compiled.form.takes_native((from_dlpack(good), good))
    for arguments in ((good, bad), (np.zeros(4), bad), (bad,), (3, (good, [bad]))):
        with pytest.raises(ArgumentError, match="negated lazily"):
            compiled.form.takes_native(arguments)


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda t: t.ones(4, dtype=t.complex64).conj(), "conjugated lazily", "t.resolve_conj()"),
        (lambda t: t.ones(4, dtype=t.complex64), "the element type is not one of the language", "torch.view_as_real"),
        (lambda t: t.eye(3).to_sparse(), "layout sparse_coo", "t.to_dense()"),
        (lambda t: t.eye(3).to_sparse_csr(), "layout sparse_csr", "t.to_dense()"),
        (lambda t: t.ones(4).to_mkldnn(), "layout _mkldnn", "t.to_dense()"),
        (lambda t: t.ones(4, device="meta"), "a tensor without memory", "make_fake_tensor"),
        (lambda t: t.quantize_per_tensor(t.ones(4), 0.1, 0, t.qint8), "a quantized tensor", "t.int_repr()"),
        (lambda t: t.nested.nested_tensor([t.ones(2), t.ones(3)]), "a nested tensor", "t.unbind()"),
    ],
)
def test_tensors_of_torch_that_are_no_plain_memory(make, message, hint):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: some of these kinds are new, some old
        x = make(torch)
    good = torch.ones(4)
    compiled = cute.compile(double, good, good.clone(), target="emu")
    for action in (lambda: double(x, good), lambda: compiled(good, x), lambda: from_dlpack(x)):
        with pytest.raises(ArgumentError, match=message) as caught:
            action()
        assert hint in caught.value.hint


def test_fake_tensors_of_torch():
    torch = pytest.importorskip("torch")
    with torch._subclasses.fake_tensor.FakeTensorMode():
        x = torch.ones(4)
    with pytest.raises(ArgumentError, match="a tensor without memory"):
        from_dlpack(x)


@pytest.mark.parametrize(
    ("array", "message", "hint"),
    [
        (np.arange(4, dtype=">f4"), "float32 in the other byte order", "newbyteorder"),
        (np.arange(4, dtype=">i2"), "int16 in the other byte order", "newbyteorder"),
        (np.ones(4, np.complex64), "NumPy arrays of complex64", "x.real"),
        (np.array(["a", "b"]), "NumPy arrays of str", ".astype"),
        (np.zeros(4, "datetime64[s]"), "NumPy arrays of datetime64", ".astype"),
        (np.ma.masked_array([1.0, 2.0], mask=[0, 1]), "a masked array", "x.filled(value)"),
    ],
)
def test_arrays_of_numpy_that_are_refused(array, message, hint):
    good = np.zeros(4, np.float32)
    compiled = cute.compile(double, good, good.copy(), target="emu")
    for action in (lambda: double(array, good), lambda: compiled(good, array), lambda: from_dlpack(array)):
        with pytest.raises(ArgumentError, match=message) as caught:
            action()
        assert hint in caught.value.hint


def test_tensors_that_require_a_gradient():
    """They are passed, and where autograd records, a warning says at the line what it will not see."""
    torch = pytest.importorskip("torch")
    x, out = torch.arange(4.0, requires_grad=True), torch.zeros(4)
    with pytest.warns(UserWarning, match=r"t\.detach\(\).*torch\.autograd\.Function") as caught:
        double(x, out)
    assert caught[0].filename == __file__ and (out == 2 * x.detach()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.no_grad():
            double(x, out)
        double(x.detach(), out)


# None


@cute.kernel
def biased_kernel(x: cute.Tensor, out: cute.Tensor, t: cutlass.Constexpr, bias: cute.Tensor | None):
    i, _, _ = cute.arch.thread_idx()
    out[i] = x[i] * t + (bias[i] if cutlass.const_expr(bias is not None) else 0.0)


@cute.jit
def last(x: cute.Tensor, out: cute.Tensor, t: cutlass.Constexpr, bias: cute.Tensor | None):
    biased_kernel(x, out, t, bias).launch(grid=1, block=4)


@cute.jit
def second(x: cute.Tensor, bias: cute.Tensor | None, out: cute.Tensor, t: cutlass.Constexpr):
    biased_kernel(x, out, t, bias).launch(grid=1, block=4)


@cute.jit
def third(x: cute.Tensor, t: cutlass.Constexpr, bias: cute.Tensor | None, out: cute.Tensor):
    biased_kernel(x, out, t, bias).launch(grid=1, block=4)


@cute.jit
def named(x: cute.Tensor, out: cute.Tensor, *, bias: cute.Tensor | None = None, t: cutlass.Constexpr = 2):
    biased_kernel(x, out, t, bias).launch(grid=1, block=4)


class Operator:
    """A method, and two optional tensors."""

    @cute.jit
    def run(
        self,
        a: cute.Tensor | None,
        t: cutlass.Constexpr,
        x: cute.Tensor,
        b: cute.Tensor | None,
        out: cute.Tensor,
    ):
        if cutlass.const_expr(a is None):
            biased_kernel(x, out, t, b).launch(grid=1, block=4)
        else:
            biased_kernel(x, out, t, a).launch(grid=1, block=4)


X, Z = np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)


@pytest.mark.parametrize("bias", [None, Z])
@pytest.mark.parametrize(
    ("function", "every"),
    [
        (last, lambda o, b: (X, o, 2, b)),
        (second, lambda o, b: (X, b, o, 2)),
        (third, lambda o, b: (X, 2, b, o)),
        (Operator().run, lambda o, b: (b, 2, X, None, o)),
        (Operator().run, lambda o, b: (None, 2, X, b, o)),
    ],
)
def test_an_optional_tensor_at_any_place(function, every, bias):
    out = np.zeros(4, np.float32)
    given = every(out, bias)
    compiled = cute.compile(function, *given, target="emu")
    without_constants = [value for value in given if not isinstance(value, int)]
    of_run_time = [value for value in without_constants if value is not None]
    for arguments in (given, without_constants, of_run_time):
        out[:] = -1
        compiled(*arguments)
        assert (out == 2 * X + (0 if bias is None else bias)).all()
    names = [
        name for name in ("bias", "b", "a") if name in compiled.form.constants and compiled.form.constants[name] is None
    ]
    for name in names:  # a tensor where there was none, by its name
        with pytest.raises(ArgumentError, match=f"{name} is compile-time and differs"):
            compiled(*of_run_time, **{name: Z})
    changed = [3 if isinstance(value, int) else value for value in given]
    with pytest.raises(ArgumentError, match="t is compile-time and differs"):
        compiled(*changed)
    with pytest.raises(ArgumentError, match=r"takes .* arguments, got 7"):
        compiled(*[X] * 7)


@pytest.mark.parametrize("bias", [None, Z])
def test_an_optional_tensor_by_name(bias):
    out = np.zeros(4, np.float32)
    compiled = cute.compile(named, X, out, bias=bias, target="emu")
    for arguments in ({"bias": bias}, {"bias": bias, "t": 2}) if bias is not None else ({}, {"bias": None}, {"t": 2}):
        out[:] = -1
        compiled(X, out, **arguments)
        assert (out == 2 * X + (0 if bias is None else bias)).all()


@dataclass(frozen=True)
class Parts:
    bias: cute.Tensor | None
    x: cute.Tensor
    second: cute.Tensor | None = None


class Named(NamedTuple):
    bias: Any
    x: Any
    second: Any = None


@pytest.mark.parametrize("kind", [Parts, Named, lambda *items: (*items, None)])
@pytest.mark.parametrize("bias", [None, Z])
def test_optional_tensors_in_aggregates(kind, bias):
    @cute.jit
    def f(parts: Any, t: cutlass.Constexpr, out: cute.Tensor):
        bias, x = (parts[0], parts[1]) if isinstance(parts, tuple) else (parts.bias, parts.x)
        biased_kernel(x, out, t, bias).launch(grid=1, block=4)

    out = np.zeros(4, np.float32)
    compiled = cute.compile(f, kind(bias, X), 2, out, target="emu")
    for arguments in ((kind(bias, X), out), (kind(bias, X), 2, out)):
        out[:] = -1
        compiled(*arguments)
        assert (out == 2 * X + (0 if bias is None else bias)).all()
    with pytest.raises(ArgumentError):
        compiled(kind(Z if bias is None else None, X), out)


def test_aggregates_of_nothing():
    @cute.jit
    def f(pair: Any, out: cute.Tensor):
        double(out, out) if cutlass.const_expr(pair[0] is None) else None

    out = np.ones(4, np.float32)
    compiled = cute.compile(f, (None, None), out, target="emu")
    compiled((None, None), out)
    compiled(out)
    assert (out == 4).all()
    with pytest.raises(ArgumentError, match="pair is compile-time and differs"):
        compiled((None, out), out)


# Streams


class Protocol:
    def __cuda_stream__(self):
        return 0, 7


class Numba:
    """As `numba.cuda.stream()`."""

    handle = ctypes.c_void_p(9)


Numba.__name__ = "Stream"


@cute.jit
def on_stream(x: cute.Tensor, stream):
    double_once(x, stream)


def double_once(x, stream):
    doubling(x).launch(grid=1, block=4, stream=stream)


@cute.kernel
def doubling(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] * 2


def launched_on(function, x, stream):
    """The handle that a launch was given."""
    compiled = cute.compile(function, x, stream, target="emu")
    seen, launch = [], compiled.device._emulation.launch
    compiled.device._emulation.launch = lambda kernel, config, *memory: (
        seen.append(config.stream) or launch(kernel, config, *memory)
    )
    compiled(x) if stream is None or function is on_constant else compiled(x, stream)
    return seen[0]


@cute.jit
def on_constant(x: cute.Tensor, stream: cutlass.Constexpr):
    double_once(x, stream)


@cute.jit
def on_annotated(x: cute.Tensor, stream: cutlass.cuda.CUstream):
    double_once(x, stream)


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(0, 0), (1, 1), (np.int64(2), 2), (94_000_000_000_000, 94_000_000_000_000), (cutlass.Int64(5), 5), (None, 0),
     (np.uint8(0), 0)],
)  # fmt: skip
def test_numbers_as_streams(stream, handle):
    x = np.ones(4, np.float32)
    assert launched_on(on_stream, x, stream) == handle
    assert launched_on(on_constant, x, stream) == handle
    if not isinstance(stream, cutlass.Int64):
        assert launched_on(on_annotated, x, stream) == handle
    assert x[0] in (4, 8)


@pytest.mark.parametrize(("stream", "handle"), [(Protocol(), 7), (Numba(), 9)])
def test_objects_as_streams(stream, handle):
    assert launched_on(on_stream, np.ones(4, np.float32), stream) == handle


def test_a_c_void_p_as_stream():
    x = np.ones(4, np.float32)
    assert launched_on(on_constant, x, ctypes.c_void_p(3)) == 3
    assert launched_on(on_annotated, x, ctypes.c_void_p(3)) == 3


@pytest.mark.parametrize("stream", [True, 1.5, "main", np.float32(1), Protocol(), -1])
def test_what_is_no_stream(stream):
    line = double_once.__code__.co_firstlineno + 1
    with pytest.raises(CompileError, match="stream is ") as caught:
        cute.compile(on_constant, np.ones(4, np.float32), stream, target="emu")
    assert (caught.value.location.file, caught.value.location.line) == (__file__, line)
    assert "CUstream argument" in caught.value.hint


def test_a_stream_object_without_a_handle():
    class Stream:
        pass

    with pytest.raises(ArgumentError, match="a Stream has no handle"):
        on_stream(np.ones(4, np.float32), Stream())


# Numbers of NumPy


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_integers_of_numpy_where_pythons_may_stand(kind):
    zero, one, two, four, eight = (kind(n) for n in (0, 1, 2, 4, 8))

    @cute.kernel
    def kernel(out: cute.Tensor, c: cutlass.Constexpr, r: cutlass.Int32):
        i = cute.arch.thread_idx()[0]
        t = cute.make_rmem_tensor(cute.make_layout((four, two), stride=(two, one)), cutlass.Float32)
        t.fill(zero)
        for j in cutlass.range_constexpr(zero, four, one):
            t[j, one] = t[j, one] + c
        for _ in range(two):
            t[zero, one] = t[zero, one] + r
        for _ in cutlass.range(zero, four, two, unroll=two):
            t[one, one] += four
        out[i] = t[zero, one] * one + four * t[one, one]

    @cute.jit
    def host(out: cute.Tensor, c: cutlass.Constexpr, r):
        assert cute.size(eight) == 8 and cute.size(cute.make_layout((four, two)), mode=[one]) == 2
        assert cute.ceil_div(kind(9), four) == 3 and cute.round_up(kind(9), four) == 12
        assert str(cute.logical_divide(cute.make_layout(eight), two)) == "(2,4):(1,2)"
        assert cute.crd2idx((one, one), cute.make_ordered_layout((four, two), order=(one, zero))) == 3
        assert cute.select(cute.make_layout((four, two)), mode=[one]).shape == (2,)
        kernel(out, c, r).launch(
            grid=(one, one, one), block=[four, two, one], smem=kind(64), min_blocks_per_mp=one, stream=zero
        )

    # t[0, 1] is c + 2 r, t[1, 1] is c + 2 * 4
    for call, r in ((host, 3), (cute.compile(host, np.zeros(8, np.float32), two, kind(3), target="emu"), 5)):
        out = np.zeros(8, np.float32)
        call(out, two, kind(r)) if call is host else call(out, kind(r))
        assert (out[:4] == (2 + 2 * r) + 4 * (2 + 8)).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.bool_])
def test_floats_and_truth_of_numpy(kind):
    @cute.kernel
    def kernel(out: cute.Tensor, c: cutlass.Constexpr, r, q: cutlass.Float32):
        out[0] = cutlass.Float32(r) + c * cutlass.Float32(1) + q

    @cute.jit
    def host(out: cute.Tensor, c: cutlass.Constexpr, r, q: cutlass.Float32):
        kernel(out, c, r, q).launch(grid=1, block=1)

    out = np.zeros(1, np.float32)
    host(out, kind(1), kind(1), np.float64(2))
    assert out[0] == 4
    compiled = cute.compile(host, out, kind(1), kind(1), np.float16(2), target="emu")
    compiled(out, kind(0), np.float64(4))
    assert out[0] == 5
    wanted = "bool" if kind is np.bool_ else "f32"
    assert [param.dtype for param in compiled.signature.params[1:3]] == [wanted, "f32"]


def test_numbers_of_numpy_as_options_and_facts():
    x = np.zeros((4, 4), np.float32)
    four, one = np.int64(4), np.int32(1)
    assert cute.compile[cute.OptLevel(one)](double, *floats()).job.options.opt_level == 1
    assert (
        str(make_fake_compact_tensor(cutlass.Float32, (four, 2), assumed_align=np.int64(16)).param("x").shape[0]) == "4"
    )
    made = from_dlpack(x, assumed_align=four).mark_compact_shape_dynamic(
        np.int64(0), stride_order=(0, 1), divisibility=four
    )
    assert str(made.param("x").shape[0]) == "?{div=4}"
    compiled = cute.compile(double, *floats())
    assert compiled.occupancy(np.int64(64)) == compiled.occupancy(64)


def test_members_of_aggregates_of_numpy():
    @cute.jit
    def f(pair: Any, out: cute.Tensor):
        out[0], out[1] = pair[0] + 1, pair[1] * 2

    out = np.zeros(2, np.float32)
    compiled = cute.compile(f, (np.int64(3), np.float32(0.5)), out, target="emu")
    compiled((np.int32(7), np.float64(4)), out)
    assert out.tolist() == [8, 8]
