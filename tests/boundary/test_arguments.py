"""What compiled functions take: names, defaults, tuples, symbols, views; as functions of tvm-ffi; as artifacts."""

import ctypes
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.boundary.support import add, add_kernel, vector
from tilewright import Constexpr, Float32, Int32
from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.targets.artifact_bytes import from_bytes, to_bytes
from tilewright.targets.host.ffi import tvm_ffi

TVM = "--enable-tvm-ffi"


def floats(n=16, start=0):
    return np.arange(start, start + n, dtype=np.float32)


class Pair(NamedTuple):
    x: cute.Tensor
    y: cute.Tensor
    shift: Float32 = Float32(1)


class OtherPair(NamedTuple):
    x: object
    y: object
    shift: float = 2.0


@cute.jit
def add_pair(pair: Pair):
    add_kernel(pair.x, pair.y, pair.shift).launch(grid=1, block=32)


@cute.jit
def add_nested(all_: tuple, factors: cute.Shape):
    x, (y, shift) = all_
    add_kernel(x, y, shift * factors[0]).launch(grid=1, block=32)


@pytest.fixture(scope="module")
def compiled():
    n = cute.sym_int(divisibility=4)
    return cute.compile(add, vector(symbol=n), vector(symbol=n), options=TVM, target="emu")


@pytest.mark.parametrize(
    ("call", "shift"),
    [
        (lambda f, x, y: f(x, y), 1),
        (lambda f, x, y: f(x, y, 3), 3),
        (lambda f, x, y: f(x, y, shift=4), 4),
        (lambda f, x, y: f(x, y=y), 1),
        (lambda f, x, y: f(shift=5.0, y=y, x=x), 5),
    ],
)
def test_names_and_defaults(compiled, call, shift):
    x, y = floats(), np.zeros(16, np.float32)
    call(compiled, x, y)
    assert (y == x + shift).all()


def test_an_unknown_name_and_a_missing_argument(compiled):
    with pytest.raises(ArgumentError, match="add has no parameter 'z'"):
        compiled(floats(), floats(), z=1)
    with pytest.raises(ArgumentError, match="add needs an argument for 'y'"):
        compiled(floats())


def test_messages_cite_the_argument_and_the_function(compiled):
    with pytest.raises(ArgumentError) as caught:
        compiled(floats(8), floats(12))
    error = caught.value
    assert error.message.startswith("argument 2 'y' of add: extent of mode 0 must equal 'n0' = 8")
    assert error.values["expected"] == "f32 (n0{div=4}) : (1) on cpu"
    assert error.values["actual"] == "f32 (12) : (1) on cpu"
    assert error.values["calling"] == "add(x: f32 (n0{div=4}), y: f32 (n0{div=4}), shift: f32)"
    assert isinstance(error, TypeError)
    assert isinstance(error, ValueError)


def test_symbols_have_the_same_names_in_every_compilation():
    signatures = []
    for _ in range(2):
        n, m = cute.sym_int(), cute.sym_int(divisibility=2)
        made = cute.compile(add, vector(symbol=m), vector(symbol=n), target="emu")
        signatures.append(made.signature)
    assert signatures[0] == signatures[1]
    assert [param.shape[0].symbol for param in signatures[0].params[:2]] == ["n0", "n1"]


def test_divisibility_and_alignment():
    made = cute.compile(add, vector(align=16, divisibility=4), vector(), target="emu")
    memory = np.zeros(36, np.float32)
    skip = -memory.ctypes.data % 16 // 4
    aligned = memory[skip : skip + 32]
    with pytest.raises(ArgumentError, match="extent 6 of mode 0 is not a multiple of 4"):
        made(aligned[:6], floats())
    with pytest.raises(ArgumentError, match=r"its address 0x\w+ is not a multiple of 16"):
        made(aligned[1:5], floats())
    made(aligned[4:8], memory[:4])


def test_a_named_tuple_of_another_class():
    made = cute.compile(add_pair, Pair(vector(), vector()), options=TVM, target="emu")
    x, y = floats(), np.zeros(16, np.float32)
    for given, shift in ((OtherPair(x, y), 2), (Pair(x, y, 7), 7), ((x, y, 9), 9)):
        made(given)
        assert (y == x + shift).all()


def test_nested_tuples_and_what_is_baked_in():
    made = cute.compile(add_nested, (vector(), (vector(), Float32(1))), (2,), target="emu")
    x, y = floats(), np.zeros(16, np.float32)
    made((x, (y, 5)), (2,))
    assert (y == x + 10).all()
    with pytest.raises(ArgumentError, match=r"item 1 'all_\[1\]' has the wrong length"):
        made((x, (y,)), (2,))
    with pytest.raises(ArgumentError, match=r"item 0 'all_\[0\]' is not a tensor"):
        made((1, (y, 5)), (2,))
    with pytest.raises(ArgumentError, match=r"factors is compile-time and differs"):
        made((x, (y, 5)), (3,))


@pytest.mark.parametrize("wrap", [lambda t: t, cute.runtime.from_dlpack], ids=["direct", "from_dlpack"])
@pytest.mark.parametrize("compile_first", [True, False])
def test_storage_offsets(wrap, compile_first):
    """R1 of the cases: x = 0..15, y = x[5:9], doubled in place, on every call path."""
    torch = pytest.importorskip("torch")

    @cute.kernel
    def double_kernel(y: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        if i < cute.size(y):
            y[i] = y[i] * 2

    @cute.jit
    def double(y: cute.Tensor):
        double_kernel(y).launch(grid=1, block=32)

    for make in (lambda: np.arange(16, dtype=np.int32), lambda: torch.arange(16, dtype=torch.int32)):
        x = make()
        y = wrap(x[5:9])
        (cute.compile(double, y, target="emu") if compile_first else double)(y)
        assert [int(item) for item in x] == [0, 1, 2, 3, 4, 10, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15]


def test_size_one_modes_take_any_stride():
    made = cute.compile(add, cute.runtime.from_dlpack(floats()).mark_layout_dynamic(), vector(), target="emu")
    x = np.lib.stride_tricks.as_strided(floats(1), (1,), (400,))
    y = np.zeros(1, np.float32)
    made(x, y)
    assert y[0] == 1


def test_empty_tensors(compiled):
    empty = np.zeros(0, np.float32)
    compiled(empty, empty)
    (report,) = compiled.last_report
    assert report.ok and report.instructions > 0  # the launch ran, and touched nothing


def test_read_only_inputs(compiled):
    x, y = floats(), np.zeros(16, np.float32)
    x.flags.writeable = False
    compiled(x, y)
    assert (y == x + 1).all()
    with pytest.raises(EmulationError, match="read-only"):
        compiled(y, x)


def test_tensors_that_require_a_gradient(compiled):
    torch = pytest.importorskip("torch")
    x, y = torch.ones(16, requires_grad=True), torch.zeros(16)
    compiled(x, y)
    add(x, y, 2.0)
    assert (y == 3).all()


def test_strides_of_32_bits():
    tensor = cute.runtime.from_dlpack(np.zeros((4, 4), np.float32), use_32bit_stride=True).mark_layout_dynamic()

    @cute.jit
    def nothing(x: cute.Tensor):
        pass

    made = cute.compile(nothing, tensor, target="emu")
    assert [dim.width for dim in made.signature.params[0].stride if dim.value is None] == [32]
    far = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 2), (4 << 31, 4))
    with pytest.raises(RuntimeError, match="too many for the 32-bit form"):
        made.native(far)
    made(far)  # by the 64-bit form
    assert [dim.width for dim in made.wide_form.executor.signature.params[0].stride if dim.value is None] == [64]


def test_pointers_as_addresses_and_c_void_p():
    @cute.kernel
    def store(p: cute.Pointer):
        cute.make_tensor(p, cute.make_layout(4))[2] = 5

    @cute.jit
    def host(p: cute.Pointer):
        store(p).launch(grid=1, block=1)

    memory = (ctypes.c_int32 * 4)()
    pointer = cute.runtime.make_ptr(Int32, ctypes.addressof(memory), cute.AddressSpace.gmem)
    made = cute.compile(host, pointer, options=TVM, target="emu")
    opaque = type("Address", (), {"__tvm_ffi_opaque_ptr__": lambda self: ctypes.addressof(memory)})()
    for given in (pointer, ctypes.c_void_p(ctypes.addressof(memory)), ctypes.addressof(memory), opaque):
        memory[2] = 0
        made(given)
        assert list(memory) == [0, 0, 5, 0]
    with pytest.raises(ArgumentError, match="is not aligned"):
        made(ctypes.addressof(memory) + 1)


def test_pairs_of_4_bit_elements_count_as_two():
    torch = pytest.importorskip("torch")

    @cute.kernel
    def copy_bytes(x: cute.Tensor, out: cute.Tensor):
        data = cute.recast_tensor(x, cutlass.Uint8)
        i, _, _ = cute.arch.thread_idx()
        out[i] = Int32(data[i // 4, i % 4])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        copy_bytes(x, out).launch(grid=1, block=12)

    n, m = cute.sym_int(), cute.sym_int(divisibility=8)
    fake = cute.runtime.make_fake_compact_tensor(cutlass.Float4E2M1FN, (n, m), stride_order=(1, 0))
    out = torch.zeros(12, dtype=torch.int32)
    made = cute.compile(host, fake, out, target="emu")
    data = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
    made(data.view(torch.float4_e2m1fn_x2), out)
    assert out.tolist() == list(range(12))
    assert cute.runtime.from_dlpack(data.view(torch.float4_e2m1fn_x2)).shape == (3, 8)
    with pytest.raises(ArgumentError, match="extent 6 of mode 1 is not a multiple of 8"):
        made(torch.zeros((3, 3), dtype=torch.uint8).view(torch.float4_e2m1fn_x2), out)
    with pytest.raises(ArgumentError, match="wrong dtype"):
        made(data, out)


# tvm-ffi's functions


def test_where_asked_for_it_is_a_tvm_ffi_function(compiled):
    assert isinstance(compiled, tvm_ffi().Function)
    assert not isinstance(cute.compile(add, vector(), vector(), target="emu"), tvm_ffi().Function)
    assert compiled.name == "add"
    assert compiled.stages["ptx"].startswith("//")


def test_register_global_func_publishes_it():
    made = cute.compile(add, vector(), vector(), options=TVM, target="emu")
    tvm_ffi().register_global_func("tilewright.test.add", made, override=True)
    del made
    found = tvm_ffi().get_global_func("tilewright.test.add")
    x, y = floats(), np.zeros(16, np.float32)
    found(x, y, 6.0)
    assert (y == x + 6).all()
    tvm_ffi().remove_global_func("tilewright.test.add")


def test_a_shape_of_tvm_ffi_stands_for_a_tuple_of_integers():
    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, shape: cute.Shape):
        add_kernel(x, y, Float32(shape[0] * 10 + shape[1])).launch(grid=1, block=32)

    made = cute.compile(host, vector(), vector(), (Int32(1), cutlass.Int64(1)), options=TVM, target="emu")
    x, y = floats(), np.zeros(16, np.float32)
    for given in (tvm_ffi().Shape((4, 2)), (4, 2), [4, 2]):
        made(x, y, given)
        assert (y == x + 42).all()
    host_only = made.device.host.function  # native code, without the conversions of Python
    for given, message in ((tvm_ffi().Shape((1,)), "has the wrong length"), (tvm_ffi().Shape((1 << 40, 1)), "range")):
        with pytest.raises(Exception, match=message):
            host_only(x, y, given)


# Artifacts


def test_an_artifact_runs_without_what_made_it():
    @cute.jit
    def scaled(x: cute.Tensor, y: cute.Tensor, shift: Float32, twice: Constexpr[bool]):
        add_kernel(x, y, shift * 2 if twice else shift).launch(grid=1, block=32)

    made = cute.compile(scaled, vector(), vector(), 1.0, True, target="emu")
    data = to_bytes(made.artifact)
    copy = from_bytes(data)
    assert copy == made.artifact
    assert to_bytes(copy) == data
    assert copy.kernels[0].launched_at.line > 0
    device = type(made.device)(copy, True)
    x, y = floats(), np.zeros(16, np.float32)
    device.run([x, y, 3.0])
    assert (y == x + 6).all()


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: b"y" + d, lambda d: d[:30]])
def test_a_damaged_artifact_is_refused(compiled, damage):
    with pytest.raises(cutlass.base.errors.CompileError, match="the artifact is damaged"):
        from_bytes(damage(to_bytes(compiled.artifact)))


def test_an_artifact_of_another_version_is_refused(compiled):
    data = to_bytes(compiled.artifact).replace(b'{"format":2,', b'{"format":0,')
    with pytest.raises(cutlass.base.errors.CompileError, match="written by another version"):
        from_bytes(data)


def _machine_values(self):
    raise AssertionError("a tuple with tensors is passed member by member")


class Protocol(NamedTuple):
    """A NamedTuple to which a library adds the JitArgument protocol."""

    x: cute.Tensor
    y: cute.Tensor
    shift: Float32
    factor: int = 2
    negate: Constexpr[bool] = False


Protocol.__c_pointers__ = Protocol.__get_mlir_types__ = _machine_values
Protocol.__new_from_mlir_values__ = lambda self, values: _machine_values(self)


@cute.jit
def add_protocol(given: Protocol):
    assert isinstance(given, Protocol) and isinstance(given.factor, int)
    shift = -given.shift if cutlass.const_expr(given.negate) else given.shift
    add_kernel(given.x, given.y, shift * given.factor).launch(grid=1, block=32)


@pytest.mark.parametrize("negate", [False, True])
def test_named_tuples_of_the_protocol_are_passed_member_by_member(negate):
    n = cute.sym_int(divisibility=4)
    made = Protocol(vector(symbol=n), vector(symbol=n), Float32(0), negate=negate)
    executor = cute.compile(add_protocol, made, options=TVM, target="emu")
    x, y = floats(), np.zeros(16, np.float32)
    executor(Protocol(x, y, 3.0, negate=None))  # None stands for what is baked in
    np.testing.assert_array_equal(y, x + (-6 if negate else 6))
    with pytest.raises(ArgumentError, match="is compile-time and differs from what was compiled"):
        executor(Protocol(x, y, 3.0, negate=not negate))
    with pytest.raises(ArgumentError, match="is compile-time and differs from what was compiled"):
        executor(Protocol(x, y, 3.0, factor=3, negate=negate))
    with pytest.raises(ArgumentError, match="is compile-time and differs from what was compiled"):
        executor(Protocol(x, y, 3.0, factor=None, negate=negate))


@cute.jit
def add_optional(x: cute.Tensor, other: cute.Tensor | None, y: cute.Tensor, stream: object, last: object = None):
    add_kernel(x, y, Float32(1) if other is None else Float32(2)).launch(grid=1, block=32, stream=stream)


def test_none_at_a_call_while_the_stream_comes_from_the_environment():
    env = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True)
    made = cute.compile(add_optional, vector(), None, vector(), env, None, options=TVM, target="emu")
    for args, kwargs in (((None,), {}), ((), {}), ((None,), {"last": None})):
        x, y = floats(), np.zeros(16, np.float32)
        (made(x, *args, y, **kwargs))
        np.testing.assert_array_equal(y, x + 1)
