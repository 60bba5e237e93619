"""Values and loops of no elements, and of more than a thread can hold: an error of ours, at once."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Boolean, Float32, Int8, Int16, Int32, TilewrightError

MANY = 99_999_999_999


def empty(x):
    return cute.make_tensor(x.iterator, cute.make_layout((2, 0)))


def long(x):
    return cute.make_tensor(x.iterator, cute.make_layout(MANY))


REFUSED = {
    "full": (lambda x: cute.full((0,), 1.0, Float32), "a value of no elements"),
    "full of a runtime number": (lambda x: cute.full((2, 0), x[0], Float32), "a value of no elements"),
    "full of a negative extent": (lambda x: cute.full((-1,), 1.0, Float32), "an extent is negative"),
    "full of half an extent": (lambda x: cute.full((2.0,), 1.0, Float32), "made of integers, not float"),
    "full of a name": (lambda x: cute.full("a", 1.0, Float32), "made of integers, not str"),
    "full of a runtime extent": (lambda x: cute.full(Int32(x.shape[0]), 1.0, Float32), "known only at run time"),
    "zeros_like": (lambda x: cute.zeros_like(empty(x)), "a value of no elements"),
    "ones_like": (lambda x: cute.ones_like(empty(x)), "a value of no elements"),
    "full_like": (lambda x: cute.full_like(empty(x), 2), "a value of no elements"),
    "broadcast": (lambda x: cute.full((1, 3), 1.0, Float32).broadcast_to((0, 3)), "a value of no elements"),
    "reshape": (lambda x: cute.full((4,), 1.0, Float32).reshape((0, 4)), "a value of no elements"),
    "where": (lambda x: cute.where(cute.full((0,), True, Boolean), 1, 2), "a value of no elements"),
    "load": (lambda x: empty(x).load(), "no elements has none to load"),
    "an element": (lambda x: empty(x)[0, 0], "an index is outside the tensor"),
    "an element of registers": (lambda x: cute.make_rmem_tensor(0, Float32)[0], "an index is outside the tensor"),
    "half a number": (lambda x: cute.full((3,), 1, Int8).bitcast(Int16), "3 elements of Int8 are no whole number"),
    "a long value": (lambda x: cute.full(MANY, 1.0, Float32), f"a value of {MANY} elements by one thread"),
    "a long load": (lambda x: long(x).load(), f"load of {MANY} elements by one thread"),
    "a long fill": (lambda x: long(x).fill(1.0), f"fill of {MANY} elements by one thread"),
    "a long copy": (lambda x: cute.autovec_copy(long(x), long(x)), f"a copy of {MANY} elements by one thread"),
    "many turns": (lambda x: cutlass.range_constexpr(MANY), f"range_constexpr of {MANY} iterations"),
    "many registers": (lambda x: cute.make_rmem_tensor(1 << 20, Int32), "a register tensor of 4194304 bytes"),
}


@cute.kernel
def does(x: cute.Tensor, action: cutlass.Constexpr):
    action(x)


@cute.jit
def on_device(x: cute.Tensor, action: cutlass.Constexpr):
    does(x, action).launch(grid=1, block=1)


@cute.jit
def on_host(x: cute.Tensor, action: cutlass.Constexpr):
    action(x)


@pytest.mark.parametrize("where", [on_device, on_host], ids=["device", "host"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, where):
    action, words = REFUSED[name]
    with pytest.raises(TilewrightError, match=words) as caught:
        where(np.zeros(8, np.float32), action)
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("where", [on_device, on_host], ids=["device", "host"])
def test_what_has_no_elements_is_moved_and_filled(where):
    def action(x):
        empty(x).fill(1.0)
        empty(x).store(x[0])
        cute.autovec_copy(empty(x), empty(x))
        assert list(empty(x)) == []
        cute.make_rmem_tensor((2, 0), Float32)

    x = np.arange(8, dtype=np.float32)
    where(x, action)
    assert x.tolist() == list(range(8))


def test_shared_memory_of_no_elements_has_an_address():
    @cute.kernel
    def kernel(x: cute.Tensor):
        allocator = cutlass.utils.SmemAllocator()
        none, some = allocator.allocate_tensor(Float32, cute.make_layout(0)), allocator.allocate_array(Float32, 1)
        none.fill(1.0)
        allocator.allocate(0)
        some.store(5.0)
        x[0] = some.load()

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = np.zeros(1, np.float32)
    launch(x)
    assert x[0] == 5
