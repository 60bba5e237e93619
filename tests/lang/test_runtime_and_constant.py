"""Values of run time where Python, or a parameter of compile time, needs a constant: what the error says."""

from __future__ import annotations

import dataclasses
import math
import warnings
from math import exp as natural_exponential

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, Float16, Float32, Int32
from tilewright.cute.nvgpu import warp

C = cutlass.Constexpr


def traced(body, block=1, **options):
    """Compile a kernel with this body of (x, n)."""
    kernel = cute.kernel(body)

    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        kernel(x, n).launch(grid=1, block=block)

    return cute.compile(host, np.zeros(8, np.float32), 3, **options)


def by_exp(x: cute.Tensor, n: Int32):
    x[0] = math.exp(x[1])


def by_imported_name(x: cute.Tensor, n: Int32):
    x[0] = natural_exponential(x[1])


def by_floor(x: cute.Tensor, n: Int32):
    x[0] = math.floor(x[1])


def by_pow(x: cute.Tensor, n: Int32):
    x[0] = math.pow(x[1], 2)


def by_isnan(x: cute.Tensor, n: Int32):
    x[0] = 1.0 if math.isnan(x[1]) else 0.0


def by_gamma(x: cute.Tensor, n: Int32):
    x[0] = math.gamma(x[1])


def by_numpy_type(x: cute.Tensor, n: Int32):
    x[0] = np.float32(x[1])


def by_list(x: cute.Tensor, n: Int32):
    x[0] = [1.0, 2.0, 3.0, 4.0][n]


def by_tuple(x: cute.Tensor, n: Int32):
    x[0] = (1.0, 2.0)[n]


def by_assignment(x: cute.Tensor, n: Int32):
    numbers = [1.0, 2.0]
    numbers[n] = 3.0


def by_slice(x: cute.Tensor, n: Int32):
    x[0] = [1.0, 2.0][:n][0]


def by_numpy_array(x: cute.Tensor, n: Int32):
    x[0] = np.arange(4)[n]


@pytest.mark.parametrize(
    ("body", "hint"),
    [(by_exp, "`cute.math.exp`"), (by_floor, "`cute.math.floor`"), (by_pow, "`x ** y` or `cute.math.pow"),
     (by_isnan, "`x != x`"), (by_gamma, "`cute.math`, or arithmetic"), (by_numpy_type, "cutlass.Float32(x)"),
     (by_list, "cute.make_rmem_tensor"), (by_tuple, "cute.make_rmem_tensor"), (by_assignment, "cute.make_rmem_tensor"),
     (by_slice, "cute.make_rmem_tensor"), (by_numpy_array, "pass it to the kernel as a `cute.Tensor`")],
)  # fmt: skip
def test_python_needs_a_number(body, hint):
    with pytest.raises(CompileError) as error:
        traced(body)
    assert hint in error.value.hint and "Constexpr" not in error.value.hint
    assert error.value.location.function == body.__name__


@cute.kernel
def with_constant(x: cute.Tensor, unused: Int32, n: C):
    x[0] = 1.0


@dataclasses.dataclass
class Pair:
    left: object
    right: object = 1


@pytest.mark.parametrize(
    ("constant", "shown"),
    [(lambda x, n: n, "Int32"), (lambda x, n: n * 2 + 1, "Int32"), (lambda x, n: (1, (n, 2)), "(int, (Int32, int))"),
     (lambda x, n: Pair(n), "Pair"), (lambda x, n: {"a": [n]}, "dict"), (lambda x, n: x, "Tensor"),
     (lambda x, n: cute.make_layout((n, 4)), "Layout"), (lambda x, n: x.iterator, "Pointer")],
)  # fmt: skip
def test_a_constant_of_a_kernel_that_is_of_run_time(constant, shown):
    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        with_constant(x, 1, constant(x, n)).launch(grid=1, block=1)  # here

    with pytest.raises(CompileError, match=r"argument #3 \(n\) of with_constant is Constexpr") as error:
        cute.compile(host, np.zeros(4, np.float32), 3)
    assert error.value.location.line == host.function.__code__.co_firstlineno + 2
    assert str(error.value.values["n"]).startswith(shown) and "Constexpr there too" in error.value.hint


def test_constants_may_be_any_object_of_compile_time():
    @cute.jit
    def host(x: cute.Tensor):
        for constant in (3, (1, (2,)), Pair(4), {"a": [5]}, cute.make_layout((2, 4)), Int32(7), None, len, Float32):
            with_constant(x, 1, constant).launch(grid=1, block=1)

    x = np.zeros(4, np.float32)
    cute.compile(host, x)(x)
    assert x[0] == 1


@cute.jit
def unroll(x, n: C[int]):
    for i in cutlass.range_constexpr(n):
        x[i] = 1.0


@cute.jit
def hand_on(x, m: C):
    unroll(x, m)


@cute.jit
def only_compute(x, m: C):
    x[0] = m + 1


def in_a_helper(x: cute.Tensor, n: Int32):
    unroll(x, n=n)


def two_helpers_deep(x: cute.Tensor, n: Int32):
    hand_on(x, n)


def helper_after_arithmetic(x: cute.Tensor, n: Int32):
    hand_on(x, (n + 1) % 4)


@pytest.mark.parametrize(
    ("body", "named"),
    [(in_a_helper, r"\(n\) of unroll"), (two_helpers_deep, r"\(m\) of hand_on"),
     (helper_after_arithmetic, r"\(m\) of hand_on")],
)  # fmt: skip
def test_a_constant_of_a_helper_that_is_of_run_time(body, named):
    with pytest.raises(CompileError, match=f"argument #2 {named} is Constexpr, but gets a value known only") as error:
        traced(body)
    assert error.value.location.line == body.__code__.co_firstlineno + 1
    name = named[2]
    assert error.value.hint == (
        "make it a constant where it comes from (Constexpr there too; an extent of a tensor is one if the tensor comes "
        f"from `from_dlpack`), or annotate `{name}` with a type of run time, such as cutlass.Int32"
    )


def test_a_helper_that_only_computes_with_it_is_left_alone():
    def body(x: cute.Tensor, n: Int32):
        only_compute(x, n)

    x = np.zeros(8, np.float32)
    traced(body)(x, 5)
    assert x[0] == 6


def gives_a_number(x: cute.Tensor, n: Int32):
    return n + 1


def gives_a_constant(x: cute.Tensor, n: Int32):
    return 7


def gives_a_tuple(x: cute.Tensor, n: Int32):
    if cutlass.const_expr(True):
        return x[0], None


@pytest.mark.parametrize(
    ("body", "shown"),
    [(gives_a_number, "Int32"), (gives_a_constant, "int"), (gives_a_tuple, "(Float32, None)")],
)
def test_a_kernel_that_returns_a_value(body, shown):
    with pytest.raises(CompileError, match=f"kernel {body.__name__} returns a value") as error:
        traced(body)
    assert error.value.values["returned"] == shown and "write it into a tensor" in error.value.hint


def test_a_kernel_may_return_early():
    def body(x: cute.Tensor, n: Int32):
        if cutlass.const_expr(cute.size(x.stride) == 1):
            x[0] = n
            return
        x[1] = 1.0

    x = np.zeros(8, np.float32)
    traced(body)(x, 5)
    assert x[0] == 5 and x[1] == 0


def sliced_by(index):
    def body(x: cute.Tensor, n: Int32):
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), cute.make_layout((2, 1, 1)))
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout(64), cute.make_layout(4))
        mma.get_slice(index())
        copy.get_slice(index())

    return body


def thread():
    return cute.arch.thread_idx()[0]


def thread_of_two_rows():
    x, y, _ = cute.arch.thread_idx()
    return x + 32 * y


@pytest.mark.parametrize(
    ("index", "block", "warned"),
    [(thread, 32, 2), (thread, (32, 4), 2), (thread, 63, 2), (thread, 64, 0), (thread, 128, 0),
     (thread_of_two_rows, (32, 2), 0), (lambda: 5, 32, 0), (lambda: thread() % 32, 32, 0)],
)  # fmt: skip
def test_fewer_threads_than_share_a_tile(index, block, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced(sliced_by(index), block)
    found = [str(item.message) for item in caught if "shares its tile among 64 threads" in str(item.message)]
    assert len(found) == warned
    if warned:
        across = block if isinstance(block, int) else block[0]
        assert "tiled MMA" in found[0] and "tiled copy" in found[1] and f"the block has {across} along x" in found[0]
        assert {item.filename for item in caught} == {__file__}


def test_a_step_that_is_zero_at_run_time():
    def count(x: cute.Tensor, n: Int32):
        for _ in cutlass.range(0, 4, n):
            x[0] += 1.0

    x = np.zeros(8, np.float32)
    traced(count)(x, 0)
    assert x[0] == 0  # without assertions it makes no turn
    checked = traced(count, options="--enable-assertions")
    for step, turns in ((1, 4), (3, 2), (-1, 0)):
        x[0] = 0
        checked(x, step)
        assert x[0] == turns
    with pytest.raises(cutlass.EmulationError, match="the step of `range` is zero"):
        checked(x, 0)

    @cute.jit
    def on_the_host(x: cute.Tensor, n: Int32):
        for _ in range(0, 4, n):
            x[0] += 1.0

    with pytest.raises(cutlass.TilewrightError, match="the step of `range` is zero"):
        on_the_host(x, 0)

    def by_a_constant(x: cute.Tensor, n: Int32):
        for _ in range(0, n, 0):
            x[0] += 1.0

    with pytest.raises(CompileError, match="the step of `range` is zero"):
        traced(by_a_constant)
