"""Jit functions and kernels as functions: arguments, methods, helpers, user ops, several launches, caching."""

from __future__ import annotations

import dataclasses
import types
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Boolean, CompileError, Float32, Float64, Int32, Int64
from tilewright.ir import mlir

AN_ARRAY_OF_THE_MODULE = np.arange(6, dtype=np.float64).reshape(2, 3)  # nothing to do with any kernel


@cute.kernel
def affine_kernel(x: cute.Tensor, out: cute.Tensor, scale: Float32, shift: Float32):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(out):
        out[i] = x[i] * scale + shift


def arrays(n=32):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


# Arguments.


def test_defaults_and_keywords():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, scale: Float32 = 2.0, *, shift: Float32 = 1.0):
        affine_kernel(x, out, shift=shift, scale=scale).launch(grid=1, block=32)

    x, out = arrays()
    executor = cute.compile(host, x, out)
    executor(x, out)
    assert (out == 2 * x + 1).all()
    executor(x, out, 3.0, shift=4.0)
    assert (out == 3 * x + 4).all()
    executor(out=out, x=x, shift=0.5)
    assert (out == 2 * x + 0.5).all()
    host(x, out, shift=9.0)
    assert (out == 2 * x + 9).all()
    with pytest.raises(cutlass.ArgumentError, match="has no parameter 'scales'"):
        executor(x, out, scales=1.0)


def test_constexpr_is_baked_in():
    class Shape:
        rows = 3

    @cute.jit
    def host(
        out: cute.Tensor,
        n: cutlass.Constexpr,
        kind: cutlass.Constexpr[type],
        epilogue: cutlass.Constexpr,
        shape: cutlass.Constexpr = Shape,
    ):
        assert isinstance(n, int) and kind is Float32
        out[0] = epilogue(kind(n)) + shape.rows

    out = np.zeros(1, np.float32)
    executor = cute.compile(host, out, 4, Float32, lambda v: v * 10)
    executor(out)
    assert out[0] == 43
    executor(out, 4, Float32, lambda v: v * 99)  # compile-time arguments may be repeated; they are baked in
    assert out[0] == 43
    with pytest.raises(CompileError, match=r"`const_expr`|Constexpr"):

        @cute.jit
        def wrong(n: Int32):
            if cutlass.const_expr(n > 1):
                pass

        cute.compile(wrong, 3)


def test_python_numbers_become_typed():
    seen = {}

    @cute.jit
    def host(a, b, c, d: Int64, e: Float64, f: Boolean):
        seen.update(a=type(a), b=type(b), c=type(c), d=type(d), e=type(e), f=type(f))

    cute.compile(host, 1, 1.5, True, 2, 3, False)
    assert seen == {"a": Int32, "b": Float32, "c": Boolean, "d": Int64, "e": Float64, "f": Boolean}


def test_numbers_reach_native_code_as_they_are():
    @cute.jit
    def host(
        out: cute.Tensor, a: Int32, b: Int64, c: Float32, d: Float64, e: Boolean, f: cutlass.Int8, g: cutlass.Uint32
    ):
        out[0], out[1], out[2], out[3] = Float64(a), Float64(b), Float64(c), d
        out[4], out[5], out[6] = Float64(e), Float64(f), Float64(g)

    out = np.zeros(7)
    given = (-(2**31), 2**53, 0.5, 1 / 3, True, -128, 2**32 - 1)
    executor = cute.compile(host, out, *given)
    executor(out, *given)
    assert out.tolist() == [-(2**31), 2**53, 0.5, 1 / 3, 1.0, -128.0, 2.0**32 - 1]
    executor(out, np.int32(7), Int64(8), np.float32(1.5), 2, np.bool_(False), 3, 4)
    assert out.tolist() == [7, 8, 1.5, 2, 0, 3, 4]
    with pytest.raises(cutlass.ArgumentError):
        executor(out, 2**31, 0, 0.0, 0.0, False, 0, 0)
    with pytest.raises(cutlass.ArgumentError):
        executor(out, "a", 0, 0.0, 0.0, False, 0, 0)


@cute.kernel
def combine_kernel(*tensors: cute.Tensor, **factors: Float32):
    i = cute.arch.thread_idx()[0]
    total = Float32(0)
    for tensor, factor in zip(tensors[:-1], factors.values(), strict=True):
        assert type(factor) is Float32
        total += tensor[i] * factor
    tensors[-1][i] = total


@cute.jit
def combine(*tensors: cute.Tensor, **factors: Float32):
    combine_kernel(*tensors, **factors).launch(grid=1, block=32)


def test_annotations_of_all_positional_and_keyword_arguments():
    x, out = arrays()
    combine(x, x + 1, out, a=2, b=3)
    assert (out == 2 * x + 3 * (x + 1)).all()
    executor = cute.compile(combine, x, x, x, out, a=1, b=1, c=1)
    executor(x, x + 1, x + 2, out, a=2, b=0.5, c=3)
    assert (out == 2 * x + 0.5 * (x + 1) + 3 * (x + 2)).all()
    executor(x, x + 1, x + 2, out, c=3, a=2, b=0.5)
    assert (out == 2 * x + 0.5 * (x + 1) + 3 * (x + 2)).all()


@cute.kernel
def write_kernel(out: cute.Tensor, *numbers: Int32, **wishes: cutlass.Constexpr):
    for i in cutlass.range_constexpr(len(numbers)):
        out[i] = numbers[i] * wishes["factor"]


@cute.jit
def write(out: cute.Tensor, *numbers: Int32, **wishes: cutlass.Constexpr[int]):
    assert all(type(number) is Int32 for number in numbers) and type(wishes["factor"]) is int
    write_kernel(out, *numbers, **wishes).launch(grid=1, block=1)


def test_numbers_and_constants_among_all_arguments():
    out = np.zeros(4, np.int32)
    write(out, 1, 2, True, factor=5)
    assert out.tolist() == [5, 10, 5, 0]
    executor = cute.compile(write, out, 1, 2, factor=-3)
    executor(out, 7, 8)
    executor(out, 7, 9, factor=-3)
    assert out.tolist() == [-21, -27, 5, 0]


def test_constants_of_all_positional_arguments_and_optional_keywords():
    @cute.jit
    def host(out: cute.Tensor, *sizes: cutlass.Constexpr, **rest):
        assert all(type(size) is int for size in sizes)
        write_kernel(out, *sizes, factor=1 if rest["mask"] is None else 2).launch(grid=1, block=1)

    out = np.zeros(2, np.int32)
    host(out, 3, 4, mask=None)
    assert out.tolist() == [3, 4]
    host(out, 3, 4, mask=out)
    assert out.tolist() == [6, 8]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: combine(x, 3, x, a=1.0, b=1.0), r"argument #2 \(tensors\[1\]\) to be cute.Tensor, but got int"),
        (lambda x: combine(x, x, a="1"), r"argument #2 \(factors.a\) to be Float32, but got str"),
        (lambda x: write(x, 1, 2.5j, factor=1), r"argument #3 \(numbers\[1\]\) to be Int32, but got complex"),
        (lambda x: cute.compile(combine, x, x, a=1)(x, x, x, a=1), "tensors of combine has 3 items"),
        (lambda x: cute.compile(combine, x, x, a=1)(x, x), "compiled for other keywords of `\\*\\*factors`"),
        (lambda x: cute.compile(combine, x, x, a=1)(x, x, b=1), "compiled for other keywords of `\\*\\*factors`"),
        (lambda x: cute.compile(combine, x, x, a=1)(x, x, a=1, b=1), "compiled for other keywords"),
        (lambda x: cute.compile(write, x, 1, factor=2)(x, 1, factor=3), "wishes.factor is compile-time and differs"),
        (lambda x: cute.compile(write, x, 1, factor=2)(x, 1, 2), "numbers of write has 2 items"),
    ],
)
def test_wrong_arguments_of_all_kinds(call, message):
    with pytest.raises((CompileError, cutlass.ArgumentError), match=message):
        call(np.zeros(32, np.float32))


def test_parameters_of_every_kind():
    @cute.kernel
    def kernel(first, /, *tensors, shift):
        i = cute.arch.thread_idx()[0]
        tensors[-1][i] = first[i] + tensors[0][i] + shift

    @cute.jit
    def host(*tensors, shift: Float32 = 1.0):
        kernel(*tensors, shift=shift).launch(grid=1, block=32)

    @cute.jit
    def positional(x, out, /, shift: Float32 = 2.0):
        kernel(x, x, out, shift=shift).launch(grid=1, block=32)

    x, out = arrays()
    executor = cute.compile(host, x, x + 1, out)
    executor(x, x + 1, out)
    assert (out == 2 * x + 2).all()
    executor(x, x, out, shift=5.0)
    assert (out == 2 * x + 5).all()
    host(x, x, out, shift=0.5)
    assert (out == 2 * x + 0.5).all()
    cute.compile(positional, x, out)(x, out, 3.0)
    assert (out == 2 * x + 3).all()

    @cute.jit
    def only(*tensors):
        kernel(tensors[0], *tensors, shift=1.0).launch(grid=1, block=32)

    cute.compile(only, out)(out)
    assert (out == 2 * (2 * x + 3) + 1).all()


class Pair(NamedTuple):
    first: cute.Tensor
    scale: Float32


def test_tuples_and_named_tuples():
    @cute.kernel
    def kernel(pair: Pair, items: tuple, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        tensor, (offset, other) = items
        out[i] = pair.first[i] * pair.scale + tensor[i] * other + offset

    @cute.jit
    def host(pair: Pair, items: tuple, out: cute.Tensor):
        assert isinstance(pair, Pair)
        kernel(pair, items, out).launch(grid=1, block=32)

    x, out = arrays()
    arguments = (Pair(x, 2.0), (x + 1, (3, 0.5)), out)
    executor = cute.compile(host, *arguments)
    executor(*arguments)
    assert (out == x * 2 + (x + 1) * 0.5 + 3).all()
    executor(Pair(x + 1, 4.0), (x, (1, 1.5)), out)
    assert (out == (x + 1) * 4 + x * 1.5 + 1).all()


@dataclasses.dataclass(frozen=True)
class Settings:
    scale: Float32
    rounds: int


def test_dataclasses():
    @cute.jit
    def host(settings: Settings, x: cute.Tensor, out: cute.Tensor):
        scale = settings.scale
        for _ in cutlass.range_constexpr(settings.rounds):
            scale = scale * 2.0
        affine_kernel(x, out, scale, 0.0).launch(grid=1, block=32)

    x, out = arrays()
    settings = Settings(Float32(1.5), 2)
    cute.compile(host, settings, x, out)(settings, x, out)
    assert (out == 6 * x).all()


class Scaler:
    def __init__(self, scale):
        self.scale = scale

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = self.apply(x[i])

    @cute.jit
    def apply(self, value):
        return value * self.scale

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        self.kernel(x, out).launch(grid=1, block=32)

    @cute.jit
    def other(self, x: cute.Tensor, out: cute.Tensor):
        affine_kernel(x, out, 1.0, self.scale).launch(grid=1, block=32)


def test_methods():
    x, out = arrays()
    scaler = Scaler(3)
    executor = cute.compile(scaler, x, out)
    executor(x, out)
    assert (out == 3 * x).all()
    Scaler(5)(x, out)
    assert (out == 5 * x).all()
    cute.compile(scaler.other, x, out)(x, out)
    assert (out == x + 3).all()


def test_static_methods_and_local_functions():
    class Tools:
        @staticmethod
        @cute.jit
        def twice(value):
            return value + value

    @cute.jit
    def host(out: cute.Tensor, n: Int32):
        def local(value, by=3):
            return value * by

        out[0] = Tools.twice(local(n))
        out[1] = (lambda v: v - 1)(n)

    out = np.zeros(2, np.int32)
    cute.compile(host, out, 1)(out, 7)
    assert out.tolist() == [42, 6]


def test_jit_functions_give_values_to_jit_functions():
    @cute.jit
    def split(i, g):
        return i // g, i % g

    @cute.kernel
    def kernel(out: cute.Tensor, start: Int32):
        p = 0
        for i in range(start, 512, 78):
            q, r = split(i, 128)
            out[p] = q
            out[p + 1] = r
            p += 2

    @cute.jit
    def host(out: cute.Tensor, start: Int32):
        kernel(out, start).launch(grid=1, block=1)

    out = np.zeros(14, np.int32)
    cute.compile(host, out, 0)(out, 0)
    assert out.reshape(7, 2).tolist() == [[0, 0], [0, 78], [1, 28], [1, 106], [2, 56], [3, 6], [3, 84]]


def test_what_comes_back_to_python():
    @cute.jit
    def static(n: cutlass.Constexpr):
        return n * 2, "text"

    @cute.jit
    def dynamic(n: Int32):
        return n + 1

    assert static(21) == (42, "text")
    with pytest.raises(CompileError, match="dynamic returns a value known only at run time") as caught:
        dynamic(3)
    assert caught.value.location.file == __file__ and "tensor" in caught.value.hint
    cute.compile(dynamic, 3)(3)


def test_containers_that_are_no_arguments():
    @cute.jit
    def host(items):
        items["x"][0] = 1

    x, _ = arrays()
    with pytest.raises(cutlass.ArgumentError, match=r"argument #1 \(items\) is a dict of tensors") as caught:
        cute.compile(host, {"x": x})
    assert "NamedTuple" in caught.value.hint and x[0] == 0


# Launches.


def test_two_launches_of_one_kernel_and_a_second_kernel():
    @cute.kernel
    def negate(x: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        x[i] = -x[i]

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: Int32):
        affine_kernel(x, out, 2.0, 1.0).launch(grid=1, block=32)
        for _ in range(n):
            affine_kernel(out, out, 1.0, 1.0).launch(grid=1, block=32)
        if n > 2:
            negate(out).launch(grid=1, block=32)

    x, out = arrays()
    executor = cute.compile(host, x, out, 1)
    assert list(executor.kernels) == ["affine_kernel", "affine_kernel_1", "negate"]
    executor(x, out, 2)
    assert (out == 2 * x + 3).all() and len(executor.last_report) == 3
    executor(x, out, 3)
    assert (out == -(2 * x + 4)).all() and len(executor.last_report) == 5


def test_dynamic_grid_and_block():
    @cute.kernel
    def kernel(out: cute.Tensor):
        i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
        if i < cute.size(out):
            out[i] = cute.arch.grid_dim()[0] * 1000 + cute.arch.block_dim()[0]

    @cute.jit
    def host(out: cute.Tensor, block: Int32):
        kernel(out).launch(grid=cute.ceil_div(cute.size(out), block), block=[block, 1, 1])

    out = np.zeros(100, np.int32)
    executor = cute.compile(host, out, 32)
    for block in (32, 64, 100, 1):
        executor(out, block)
        assert set(out.tolist()) == {-(-100 // block) * 1000 + block}


def test_launch_bounds():
    @cute.kernel
    def kernel(out: cute.Tensor):
        out[cute.arch.thread_idx()[0]] = 1

    @cute.jit
    def host(out: cute.Tensor, block: Int32):
        kernel(out).launch(grid=1, block=block, max_number_threads=128, min_blocks_per_mp=2)

    executor = cute.compile(host, np.zeros(32, np.int32), 32)
    assert ".maxntid 128" in executor.stages["ptx"] and ".minnctapersm 2" in executor.stages["ptx"]


# Caching, and what changes between calls.


def test_a_changed_helper_gives_a_new_result():
    """Case: the kernel calls `h` only inside a runtime loop; `h` changes in the same process."""
    module = types.ModuleType("changing")
    module.h = lambda v: v + 1

    @cute.kernel
    def kernel(out: cute.Tensor, n: Int32):
        value = Int32(0)
        for _ in range(n):
            value = module.h(value)
        out[0] = value

    @cute.jit
    def host(out: cute.Tensor, n: Int32):
        kernel(out, n).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    host(out, 5)
    assert out[0] == 5
    module.h = lambda v: v + 2
    host(out, 5)
    assert out[0] == 10
    host(out, 5, no_cache=True)
    assert out[0] == 10


def test_a_direct_call_compiles_once(monkeypatch):
    from tilewright.compiler import build

    count = []
    finished = build.finished
    monkeypatch.setattr(build, "finished", lambda *args: (count.append(1), finished(*args))[1])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, shift: Float32):
        affine_kernel(x, out, 1.0, shift).launch(grid=1, block=32)

    x, out = arrays()
    for n, shift in ((32, 1.0), (32, 2.0), (16, 3.0)):
        host(x[:n], out[:n], shift)
        assert (out[:n] == x[:n] + shift).all()
    assert len(count) == 1
    host(x.astype(np.float64), out.astype(np.float64), 1.0)
    assert len(count) == 2


def test_arrays_of_the_module_do_no_harm():
    """Case: a NumPy array among the globals, and a mathematical function in the kernel."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = cute.math.exp2(x[i]) + float(AN_ARRAY_OF_THE_MODULE[1, 2])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=8)

    x, out = arrays(8)
    host(x, out)
    assert (out == 2.0**x + 5).all()


# Without preprocessing.


def test_tracing_alone():
    @cute.kernel(preprocess=False)
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        total = x[i]
        for k in range(3):
            total = total + k
        out[i] = total

    @cute.jit(preprocess=False)
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=32)

    x, out = arrays()
    executor = cute.compile(host, x, out)
    executor(x, out)
    assert (out == x + 3).all()
    assert "scf" not in executor.stages["cute"]


# User ops.


@cutlass.dsl_user_op
def clamp(value, low, high, *, loc=None, ip=None):
    if value < low:
        value = low
    return high if value > high else value


@cute.dsl_user_op
def fused_add(a: Float32, b: Float32, *, loc=None, ip=None) -> Float32:
    f32 = mlir.ir.F32Type.get()
    operands = [Float32(a).ir_value(loc=loc, ip=ip), Float32(b).ir_value(loc=loc, ip=ip)]
    return Float32(mlir.llvm.inline_asm(f32, operands, "add.rz.f32 $0, $1, $2;", "=f,f,f", loc=loc, ip=ip))


@cutlass.dsl_user_op
def without_places(value):
    return value + 1


def test_user_ops_with_control_flow():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = without_places(clamp(x[i], Float32(3), Float32(20)), loc=None)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=32)

    x, out = arrays()
    cute.compile(host, x, out)(x, out)
    assert (out == np.clip(x, 3, 20) + 1).all()
    assert clamp(7, 1, 5) == 5 and clamp(0, 1, 5) == 1  # plain Python outside of kernels


def test_user_ops_of_inline_assembly():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = fused_add(x[i], 2.0**-24 * 1.5)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=4)

    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    executor = cute.compile(host, x, out)
    executor(x, out)
    assert (out == 1).all() and "add.rz.f32" in executor.stages["ptx"]  # towards zero; to nearest it were 1 + 2^-23
    line = fused_add.function.__code__.co_firstlineno
    body = kernel.function.__code__.co_firstlineno + 3
    places = {place for place, items in executor.source_map.ptx.items() if any("add.rz" in item.text for item in items)}
    assert places and all(number in (body, line + 4) for _, number in places)


# Cases from reports.


def test_chained_comparison():
    @cute.kernel
    def kernel(out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        out[i] = 0
        if 2 <= i < 5:
            out[i] = 1
        if 1 < 5 < 3:
            out[i] = 7

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=10)

    out = np.zeros(10, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cute.compile(host, out)(out)
    assert out.tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]


def test_dead_code_of_compile_time_is_not_traced():
    @cute.kernel
    def kernel(out: cute.Tensor):
        tid = cute.arch.thread_idx()[0]
        if tid == 0:
            out[0] = 7
        else:
            if cutlass.const_expr(False):
                raise AssertionError("traced")

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=2)

    out = np.zeros(1, np.int32)
    cute.compile(host, out)(out)
    assert out[0] == 7


class PipelineState:
    """A two-stage state: index and phase as runtime values."""

    def __init__(self, index, phase, count):
        self.index, self.phase, self.count = index, phase, count

    def advance(self):
        self.index += 1
        self.count += 1
        if self.index == 2:
            self.index = Int32(0)
            self.phase = self.phase ^ 1

    def __extract_mlir_values__(self):
        return [self.index.ir_value(), self.phase.ir_value(), self.count.ir_value()]

    def __new_from_mlir_values__(self, values):
        return PipelineState(*(Int32.from_ir(value) for value in values))


def test_two_names_for_one_state():
    """Case: both names read index 1, phase 0, count 3 after three steps through the first; or it is refused."""

    @cute.kernel
    def kernel(out: cute.Tensor, n: Int32):
        first = PipelineState(Int32(0), Int32(1), Int32(0))
        second = first
        for _ in range(n):
            first.advance()
        out[0], out[1], out[2] = first.index, first.phase, first.count
        out[3], out[4], out[5] = second.index, second.phase, second.count

    @cute.jit
    def host(out: cute.Tensor, n: Int32):
        kernel(out, n).launch(grid=1, block=1)

    out = np.full(6, -1, np.int32)
    try:
        cute.compile(host, out, 3)(out, 3)
    except CompileError as error:
        assert error.location.file == __file__ and error.hint
    else:
        assert out.tolist() == [1, 0, 3, 1, 0, 3]


def test_rebinding_a_list_under_a_runtime_branch():
    @cute.kernel
    def kernel(out: cute.Tensor):
        items = [1, 2]
        if cute.arch.thread_idx()[0] > 0:
            items = [1, 2, 3]
        out[0] = items[0]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=2)

    with pytest.raises(CompileError, match="`items`") as caught:
        cute.compile(host, np.zeros(1, np.int32))
    assert caught.value.location.line == kernel.function.__code__.co_firstlineno + 3
    assert "const_expr" in caught.value.hint


def test_a_runtime_if_on_a_compile_time_value_warns():
    @cute.jit
    def host(out: cute.Tensor):
        limit = Int32(5)
        if limit > 2:
            out[0] = 1

    with pytest.warns(UserWarning, match="const_expr") as caught:
        cute.compile(host, np.zeros(1, np.int32))
    assert (caught[0].filename, caught[0].lineno) == (__file__, host.function.__code__.co_firstlineno + 3)


def test_index_arithmetic_respects_divisors():
    """Case: B[j % 24] in a fused loop: (f % 32) % 24 is not f % 24."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        i = cute.arch.block_idx()[0]
        j = cute.arch.thread_idx()[0]
        f = 32 * i + j
        out[f] = (f % 32) % 24

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=32, block=32)

    out = np.zeros(1024, np.int32)
    cute.compile(host, out)(out)
    f = np.arange(1024)
    assert (out == f % 32 % 24).all() and (out != f % 24).sum() == 672


@pytest.mark.parametrize(
    "host_name, kernel_name, symbol",
    [("add", "add", "add"), ("<lambda>", "<lambda>", "_lambda_"), ("größe", "größe", "gr__e"), ("main", "main", "main"),
     ("f", "1st", "_1st")],
)  # fmt: skip
def test_names_of_functions(host_name, kernel_name, symbol):
    """A kernel may be called as its jit function is, and a name need not be a symbol."""

    def body(out):
        out[0] = 5

    body.__name__ = kernel_name
    kernel = cute.kernel(body)

    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    host.__name__ = host_name
    out = np.zeros(1, np.int32)
    executor = cute.compile(cute.jit(host), out)
    executor(out)
    assert out[0] == 5 and list(executor.kernels) == [symbol]
