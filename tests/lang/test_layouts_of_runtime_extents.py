"""Layout functions on extents and strides that arrive at run time, in kernels and in host code, against brute force."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.layout import oracle
from tilewright.base.errors import LayoutError

L, E = cute.make_layout, cute.E


def composed(left, right):
    """A(B(c)) at every c; each side is a pair of shape and stride."""
    points = oracle.values(cute.Layout(*right))
    return [oracle.value(*left, x) for x in points]


def in_kernel(make, numbers, count):
    return run(make, numbers, count, kernel=True)


def on_host(make, numbers, count):
    return run(make, numbers, count, kernel=False)


def run(make, numbers, count, *, kernel):
    """The values at 0 .. count-1 of the layout that `make` gives for numbers known only at run time."""

    @cute.kernel
    def write_kernel(out: cute.Tensor, given: cute.Tensor):
        layout = make(*[given[index] for index in cutlass.range_constexpr(len(numbers))])
        for index in range(count):
            out[index] = layout(index)

    @cute.jit
    def launch(out: cute.Tensor, given: cute.Tensor):
        write_kernel(out, given).launch(grid=1, block=1)

    @cute.jit
    def directly(out: cute.Tensor, given: cute.Tensor):
        layout = make(*[given[index] for index in cutlass.range_constexpr(len(numbers))])
        for index in range(count):
            out[index] = layout(index)

    out = np.full(count, -1, np.int64)
    (launch if kernel else directly)(out, np.array(numbers, np.int32))
    return out.tolist()


COMPOSITIONS = {  # name: (left, right, numbers); shapes and strides as functions of the numbers
    "L1": (lambda m, n: ((m, n), (1, m)), lambda m, n: ((m, n), (n, 1)), [(2, 3), (1, 5), (7, 4)]),
    "L1 of rank 3": (
        lambda m, n, k: ((m, n, k), (1, m, m * n)),
        lambda m, n, k: ((m, n, k), (n * k, k, 1)),
        [(2, 3, 4), (1, 1, 5), (3, 1, 2)],
    ),
    "L1 nested": (
        lambda m, n: (((m, 2), n), ((1, m), 2 * m)),
        lambda m, n: (((m, 2), n), ((2 * n, n), 1)),
        [(2, 3), (3, 1)],
    ),
    "L1 downwards": (lambda m, n: ((m, n), (-1, -m)), lambda m, n: ((m, n), (n, 1)), [(2, 3), (3, 5)]),
    "L1 with a mode of 1": (lambda m: ((m, 1, 4), (1, 77, m)), lambda m: ((m, 4), (4, 1)), [(2,), (3,)]),
    "row-major by columns": (lambda m, n: ((m, n), (n, 1)), lambda m, n: ((m, n), (1, m)), [(2, 3), (4, 4)]),
    "any order by columns": (
        lambda m, n, k: ((m, n, k), (n * k, 1, n)),
        lambda m, n, k: ((m, n, k), (1, m, n * m)),
        [(2, 3, 4), (1, 2, 3)],
    ),
    "transposed twice": (lambda m, n: ((m, n), (n, 1)), lambda m, n: ((n, m), (m, 1)), [(2, 4), (5, 3)]),
    "L5": (lambda s, t: ((10, 2), (s, t)), lambda s, t: ((3, 4), (1, 5)), [(16, 4), (1, 10), (3, -7)]),
    "L5 with other extents": (lambda s, t: ((12, 3), (s, t)), lambda s, t: ((4, 9), (1, 4)), [(16, 4), (-2, 12)]),
    "L5 of rank 3": (
        lambda s, t, u: ((6, 4, 2), (s, t, u)),
        lambda s, t, u: ((2, 6), (1, 3)),
        [(16, 4, 9), (1, 6, 24)],
    ),
    "L5 with a last extent": (lambda n: ((10, n), (16, 4)), lambda n: ((3, 4), (1, 5)), [(2,), (5,)]),
}


@pytest.mark.parametrize("where", [in_kernel, on_host])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions(name, where):
    left, right, several = COMPOSITIONS[name]
    for numbers in several:
        expect = composed(left(*numbers), right(*numbers))

        def make(*given):
            (shape, stride), (other, steps) = left(*given), right(*given)
            return cute.composition(L(shape, stride=stride), L(other, stride=steps))

        assert where(make, numbers, len(expect)) == expect


BY_COORDINATES = {  # L11: basis strides on the right
    "L11": (
        lambda n: cute.composition(
            L((4096, 8192)), L((32, cute.assume(n, 8) // 8, 8, 128), stride=(E(0), 8 * E(1), E(1), 32 * E(0)))
        ),
        (16,),
        [a + 32 * d + 4096 * (8 * b + c) for d in range(128) for c in range(8) for b in range(2) for a in range(32)],
    ),
    "transpose": (
        lambda m, n: cute.composition(L((m, n), stride=(n, 1)), L((n, m), stride=(E(1), E(0)))),
        (3, 4),
        [i + j * 4 for j in range(3) for i in range(4)],
    ),
    "into a nested mode": (
        lambda m, n: cute.composition(
            L(((m, 2), n), stride=((1, 100), 7)), L((n, 2, m), stride=(E(1), E(0, 1), E(0, 0)))
        ),
        (3, 4),
        [i * 7 + j * 100 + k for k in range(3) for j in range(2) for i in range(4)],
    ),
    "nested on the right": (
        lambda n, ld: cute.composition(L((64, n), stride=(1, ld)), L((8, (8, n)), stride=(8 * E(0), (E(0), E(1))))),
        (3, 100),
        [i * 8 + j + k * 100 for k in range(3) for j in range(8) for i in range(8)],
    ),
    "a run-time factor": (
        lambda n, ld, c: cute.composition(L((64, n), stride=(ld, 1)), L((n, 8), stride=(E(1), c * E(0)))),
        (3, 64, 8),
        [i + j * 8 * 64 for j in range(8) for i in range(3)],
    ),
    "downwards": (
        lambda n: cute.composition(L((64, n), stride=(n, 1)), L((n, 64), stride=(-1 * E(1), E(0)))),
        (3,),
        [-i + j * 3 for j in range(64) for i in range(3)],
    ),
}


@pytest.mark.parametrize("where", [in_kernel, on_host])
@pytest.mark.parametrize("name", BY_COORDINATES)
def test_basis_strides_on_the_right(name, where):
    make, numbers, expect = BY_COORDINATES[name]
    count = min(len(expect), 1024)
    assert where(make, numbers, count) == expect[:count]


@pytest.mark.parametrize("where", [in_kernel, on_host])
def test_what_has_no_composition_is_refused(where):  # L3
    with pytest.raises(LayoutError) as refused:
        where(lambda s: cute.composition(L((4, 6, 8), stride=(2, 3, 5)), L(6, stride=3)), (1,), 6)
    assert "extent 4 (mode 0)" in str(refused.value)
    assert "stride 3" in str(refused.value)


def of(m, n):
    """Known to be multiples of 8, as a program states it."""
    return cute.assume(m, 8), cute.assume(n, 8)


DIVIDES = {  # name: (layout of m and n, both multiples of 8, the tile's size); the whole is cut, across modes
    "tile of 2": (lambda m, n: ((m, n), (1, m * 3)), 2),
    "tile of 4": (lambda m, n: ((m, (3, n)), (3 * n, (n, 1))), 4),
    "tile of 8": (lambda m, n: ((4, (m, 3), n), (m, (1, 4 * m), 12 * m)), 8),
    "tile over a mode": (lambda m, n: ((4, m, 2, n), (100, 1, 7, 9)), 4),
}


@pytest.mark.parametrize("where", [in_kernel, on_host])
@pytest.mark.parametrize("name", DIVIDES)
def test_tiles_of_several_modes_of_known_divisibility(name, where):
    make, tile = DIVIDES[name]
    shape, stride = make(8, 16)
    expect = oracle.values(cute.Layout(shape, stride))  # tile and rest go on in order

    def divided(m, n):
        shape, stride = make(*of(m, n))
        return cute.logical_divide(L(shape, stride=stride), tile)

    assert where(divided, (8, 16), len(expect)) == expect


@pytest.mark.parametrize("where", [in_kernel, on_host])
def test_a_fact_that_fails_while_compiling_is_a_refusal(where):
    with pytest.raises(LayoutError, match="it does not hold that"):
        where(lambda n: cute.logical_divide(L((3, 8), stride=(1, 3 * n)), 4), (2,), 24)
