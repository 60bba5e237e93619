"""Pointers that lose alignment in a loop or a branch: what is carried knows as much as all turns and arms know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, Float32, Int32
from tilewright.cute.runtime import from_dlpack

N = 32


def aligned() -> np.ndarray:
    """0 to 31 at an address that is a multiple of 16."""
    room = np.zeros(N + 4, np.int32)
    start = (-room.ctypes.data % 16) // 4
    array = room[start : start + N]
    array[:] = np.arange(N)
    return array


class Walker:
    def __init__(self, place):
        self.place = place
        self.sum = Int32(0)

    def step(self, by):
        self.sum += self.place.load()
        self.place = self.place + by


@dataclass
class Window:
    tensor: cute.Tensor
    count: Int32


@cute.jit
def walk(x: cute.Tensor, n: Int32):
    place, total = x.iterator, Int32(0)
    for _ in range(n):
        total += place.load()
        place = place + 1
    return total


@cute.jit
def slide(x: cute.Tensor, n: Int32):
    view, total, i = cute.make_tensor(x.iterator, cute.make_layout(4)), Int32(0), 0
    while i < n:
        total += view.load().reduce(cute.ReductionOp.ADD, 0, 0)
        view = cute.make_tensor(view.iterator + i, view.layout)
        i += 1
    return total


@cute.jit
def swap(x: cute.Tensor, n: Int32):
    a, b = x.iterator, x.iterator + 3
    for _ in range(n):
        a, b = b, a
    return a.load() * 100 + b.load()


@cute.jit
def in_a_tuple(x: cute.Tensor, n: Int32):
    state = (x.iterator, (Int32(0), "text"))
    for _ in range(n):
        state = (state[0] + 2, (state[1][0] + state[0].load(), "text"))
    return state[1][0]


@cute.jit
def in_an_object(x: cute.Tensor, n: Int32):
    walker = Walker(x.iterator)
    for i in range(n):
        if i % 2 == 0:
            walker.step(1)
        else:
            walker.step(i)
    return walker.sum


@cute.jit
def in_a_dataclass(x: cute.Tensor, n: Int32):
    window = Window(cute.make_tensor(x.iterator, cute.make_layout((2, 2), stride=(1, 4))), Int32(0))
    for _ in range(n):
        window = Window(cute.make_tensor(window.tensor.iterator + 1, window.tensor.layout), window.count + 1)
    return window.tensor[1, 1] * 100 + window.count


@cute.jit
def nested(x: cute.Tensor, n: Int32):
    place, total = x.iterator, Int32(0)
    for _ in range(n):
        for j in range(3):
            if j == 1:
                place = place + 1
            total += place.load()
    return total


@cute.jit
def arms(x: cute.Tensor, n: Int32):
    place = x.iterator + 8 if n > 2 else x.iterator + 1
    other = x.iterator
    if n == 3:
        other = other + 5
    return place.load() * 100 + other.load()


def python_walk(x, n):
    return sum(x[:n])


def python_slide(x, n):
    total = start = 0
    for i in range(n):
        total += sum(x[start : start + 4])
        start += i
    return total


def python_object(x, n):
    place = total = 0
    for i in range(n):
        total += x[place]
        place += 1 if i % 2 == 0 else i
    return total


def python_nested(x, n):
    place = total = 0
    for _ in range(n):
        for j in range(3):
            place += j == 1
            total += x[place]
    return total


CASES = [
    (walk, python_walk),
    (slide, python_slide),
    (swap, lambda x, n: [x[0] * 100 + x[3], x[3] * 100 + x[0]][n % 2]),
    (in_a_tuple, lambda x, n: sum(x[: 2 * n : 2])),
    (in_an_object, python_object),
    (in_a_dataclass, lambda x, n: x[n + 5] * 100 + n),
    (nested, python_nested),
    (arms, lambda x, n: (x[8] if n > 2 else x[1]) * 100 + (x[5] if n == 3 else x[0])),
]


def compiled(function, x, on_the_device):
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, n: Int32):
        out[0] = function(x, n)

    @cute.jit
    def device(x: cute.Tensor, out: cute.Tensor, n: Int32):
        kernel(x, out, n).launch(grid=1, block=1)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: Int32):
        out[0] = function(x, n)

    return cute.compile(device if on_the_device else host, x, np.zeros(1, np.int32), 1)


@pytest.mark.parametrize("on_the_device", [True, False], ids=["device", "host"])
@pytest.mark.parametrize(("function", "python"), CASES, ids=[item[0].function.__name__ for item in CASES])
def test_weaker_alignment_is_carried(function, python, on_the_device):
    array = aligned()
    x = from_dlpack(array, assumed_align=16)
    executor = compiled(function, x, on_the_device)
    for n in (0, 1, 2, 3, 5):
        out = np.zeros(1, np.int32)
        executor(x, out, n)
        assert out[0] == python(array.tolist(), n), n


def test_a_loop_that_keeps_the_alignment_keeps_its_wide_loads():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, n: Int32):
        view = cute.make_tensor(x.iterator, cute.make_layout(4))
        total = cute.full((4,), 0, Int32)
        for _ in range(n):
            total = total + view.load()
            view = cute.make_tensor(view.iterator + 4, view.layout)
        out.store(total)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, n: Int32):
        kernel(x, out, n).launch(grid=1, block=1)

    x, out = aligned(), np.zeros(4, np.int32)
    arguments = from_dlpack(x, assumed_align=16), from_dlpack(out)
    executor = cute.compile(host, *arguments, 2)
    executor(*arguments, 2)
    assert out.tolist() == [4, 6, 8, 10] and ".v4.b32" in executor.__ptx__


@pytest.mark.parametrize("change", ["element type", "layout"])
def test_what_cannot_be_carried_is_refused(change):
    @cute.kernel
    def kernel(x: cute.Tensor, n: Int32):
        view = cute.make_tensor(x.iterator, cute.make_layout(4))
        for _ in range(n):
            if cutlass.const_expr(change == "layout"):
                view = cute.make_tensor(view.iterator + 1, cute.make_layout(5))
            else:
                view = cute.make_tensor(cute.recast_ptr(view.iterator, dtype=Float32), view.layout)

    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        kernel(x, n).launch(grid=1, block=1)

    with pytest.raises(CompileError, match="`view` changes its type in a runtime `for` loop"):
        cute.compile(host, from_dlpack(aligned(), assumed_align=16), 2)
