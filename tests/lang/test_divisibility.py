"""What is known to divide a runtime integer: right for every value, and known where bits say so."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright import Int4, Int32

OPERATIONS = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
DIVISORS = (1, 2, 3, 4, 6, 8, 12)


def claimed(sign, left, right):
    """The divisor that a result is said to have, for multiples of `left`, and of `right` or the constant `right`."""
    found = []

    @cute.jit
    def host(x: Int32, y: Int32):
        a = cute.assume(x, divby=left)
        b = right if isinstance(right, int) else cute.assume(y, divby=right[0])
        found.append(OPERATIONS[sign](a, b).divisibility)

    cute.compile(host, 0, 0, target="emu")
    return found[0]


@pytest.mark.parametrize("sign", OPERATIONS)
def test_every_value_is_a_multiple_of_what_is_known(sign):
    for left in DIVISORS:
        for right in (1, 2, 3, 5, 6, *(((d,) for d in DIVISORS) if sign not in ("<<", ">>", "//", "%") else ())):
            known = claimed(sign, left, right)
            others = [right] if isinstance(right, int) else [right[0] * k for k in range(7)]
            for value in [left * k for k in range(9)]:
                for other in others:
                    assert OPERATIONS[sign](value, other) % known == 0, (value, other, known)


def test_bits_tell_divisors():
    assert claimed("&", 1, 6) == 2 and claimed("&", 4, 7) == 4
    assert claimed("^", 4, 6) == claimed("|", 4, (6,)) == 2
    assert claimed("<<", 3, 2) == 12 and claimed(">>", 12, 2) == 3 and claimed(">>", 2, 2) == 1


def test_four_bit_views_start_where_bits_say_that_a_byte_starts():
    def body(x: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        t = cute.make_tensor(cute.recast_ptr(x.iterator, dtype=Int4), cute.make_layout((4, 8), stride=(8, 1)))
        view = cute.domain_offset((i, (i ^ 1) << 1), t)
        view[0, 0], view[0, 1] = Int4(3), Int4(2)

    expected = np.zeros((4, 4), np.uint8)
    for i in range(4):
        expected[i, i ^ 1] = 0x23
    assert on_device(body, np.zeros(16, np.uint8), block=4).tolist() == expected.ravel().tolist()


def test_rows_of_a_swizzled_tensor_of_four_bits():
    swizzle = cute.make_swizzle(1, 1, 2)

    def body(out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        layout = cute.make_composed_layout(swizzle, 0, cute.make_layout((4, 4, 4), stride=(16, 4, 1)))
        t = cutlass.utils.SmemAllocator().allocate_tensor(Int4, layout)
        t[i, i, None].fill((i - 2).to(Int4))
        for j in range(4):
            out[i, j] = t[i, i, j].to(Int32)

    out = on_device(body, np.zeros((4, 4), np.int32), block=4)
    assert out.tolist() == [[i - 2] * 4 for i in range(4)]
