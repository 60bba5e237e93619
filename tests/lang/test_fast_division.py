"""Division by a number known at run time, against Python's integers at the edges of all ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright.base.errors import CompileError

TOP = 2**31 - 1
EDGES = sorted({0, 1, 2, 3, 5, 6, 7, 9, 10, 31, 32, 33, 641, 65535, 65536, 65537, 6700417, 2**30 - 1, 2**30, 2**30 + 1,
                TOP - 2, TOP - 1, TOP})  # fmt: skip
DIVISORS = [edge for edge in EDGES if edge > 0]


def near(divisors: list[int], top: int) -> list[int]:
    """Dividends around multiples of the divisors, where a wrong reciprocal shows."""
    found = set(EDGES) | {top, top - 1, top // 2, top // 3}
    for d in divisors:
        for count in (1, 2, 3, top // d, max(top // d - 1, 0), top // d // 2):
            found |= {count * d + step for step in (-1, 0, 1)}
    return sorted(n for n in found if 0 <= n <= top)


def check(dividends: np.ndarray, divisors: np.ndarray, place) -> None:
    def body(n: cute.Tensor, d: cute.Tensor, q: cute.Tensor, r: cute.Tensor):
        for j in range(d.shape[0]):
            divisor = cute.FastDivmodDivisor(d[j])
            for i in range(n.shape[0]):
                quotient, rest = divmod(n[i], divisor)
                q[i, j] = quotient
                r[i, j] = rest

    q, r = (np.zeros((len(dividends), len(divisors)), dividends.dtype) for _ in range(2))
    place(body, dividends, divisors, q, r)
    wide = dividends.astype(np.int64)[:, None]
    np.testing.assert_array_equal(q, wide // divisors.astype(np.int64))
    np.testing.assert_array_equal(r, wide % divisors.astype(np.int64))


def test_int32_at_the_edges():
    numbers = near(DIVISORS, TOP)
    check(np.array([*numbers, *(-n for n in numbers), -(2**31)], np.int32), np.array(DIVISORS, np.int32), on_host)


def test_uint32_at_the_edges():
    divisors = [*DIVISORS, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]
    check(np.array(near(divisors, 2**32 - 1), np.uint32), np.array(divisors, np.uint32), on_host)


def test_every_small_pair():
    check(np.arange(-300, 300, dtype=np.int32), np.arange(1, 70, dtype=np.int32), on_host)


def test_in_a_kernel():
    def body(n: cute.Tensor, d: cute.Tensor, q: cute.Tensor, r: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        divisor = cute.FastDivmodDivisor(d[0], is_power_of_2=False)
        q[i] = n[i] // divisor
        r[i] = n[i] % divisor

    random = np.random.default_rng(5)
    n = random.integers(-(2**31), 2**31, 256).astype(np.int32)
    for d in (1, 7, 96, 2**20 + 3, TOP):
        q, r = np.zeros_like(n), np.zeros_like(n)
        on_device(body, n, np.array([d], np.int32), q, r, block=256)
        np.testing.assert_array_equal(q, n.astype(np.int64) // d)
        np.testing.assert_array_equal(r, n.astype(np.int64) % d)


@dataclass(frozen=True)
class Params:
    rows: cute.FastDivmodDivisorV2
    fixed: cute.FastDivmodDivisor


@cute.kernel
def places(out: cute.Tensor, params: Params):
    i = cute.arch.thread_idx()[0]
    column, row = divmod(i, params.rows)
    out[i] = column * 1000 + row + i // params.fixed * 100000
    if i == 0:
        out[i] = params.rows.divisor


@cute.jit
def host(out: cute.Tensor, rows: cutlass.Int32):
    params = Params(cute.fast_divmod_create_divisor_v2(rows), cute.fast_divmod_create_divisor(16))
    places(out, params).launch(grid=1, block=64)


def test_made_on_the_host_and_read_in_a_kernel():
    out = np.zeros(64, np.int32)
    host(out, 12)
    assert out.tolist() == [12, *(i // 12 * 1000 + i % 12 + i // 16 * 100000 for i in range(1, 64))]


def test_carried_through_a_loop_and_of_64_bits():
    def body(out: cute.Tensor, d: cute.Tensor):
        divisor = cute.FastDivmodDivisor(d[0])
        total = cutlass.Int64(0)
        for i in range(d[1]):
            total += (cutlass.Int64(2**40) + i) // divisor
        out[0] = total

    out = on_device(body, np.zeros(1, np.int64), np.array([1000, 3], np.int32), block=1)[0]
    assert out[0] == sum((2**40 + i) // 1000 for i in range(3))


@pytest.mark.parametrize("d", [1, 7, 2**31, 2**33 + 5])
def test_divisors_of_64_bits(d):
    """Such are extents of tensors beyond 2^31 elements."""

    def body(n: cute.Tensor, d: cute.Tensor, q: cute.Tensor, r: cute.Tensor, wide: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        divisor = cute.FastDivmodDivisor(d[0])
        for _ in range(d[1]):
            q[i], r[i] = divmod(n[i], divisor)
            wide[i] = (cutlass.Int64(n[i]) << 4) // divisor + divisor.divisor % cute.FastDivmodDivisor(5)
        assert isinstance(n[i] % divisor, cutlass.Int32) and isinstance(divisor.divisor, cutlass.Int64)

    n = np.random.default_rng(5).integers(0, 2**31, 64).astype(np.int32)
    q, r, wide = np.zeros_like(n), np.zeros_like(n), np.zeros(64, np.int64)
    on_device(body, n, np.array([d, 1], np.int64), q, r, wide, block=64)
    np.testing.assert_array_equal(q, n.astype(np.int64) // d)
    np.testing.assert_array_equal(r, n.astype(np.int64) % d)
    np.testing.assert_array_equal(wide, (n.astype(np.int64) << 4) // d + d % 5)


@pytest.mark.parametrize("divisor", [0, -4, 1.5, cutlass.Int128(5)])
def test_no_divisor(divisor):
    with pytest.raises(CompileError, match="a divisor is a positive integer of up to 64 bits"):
        cute.FastDivmodDivisor(divisor)
