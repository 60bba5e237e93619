"""Accesses outside a tensor in host code: an error while compiling, or with EnableAssertions at run time."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import CompileError, Float32, Int32, LaunchError
from tilewright.cute.runtime import from_dlpack

CHECKED = "--enable-assertions"


@cute.jit
def count(x: cute.Tensor, n: Int32):
    for i in range(n):
        x[i] = Float32(i + 1)


def line_of(function, offset: int) -> tuple[str, int]:
    return __file__, function.function.__code__.co_firstlineno + offset


@pytest.mark.parametrize("wrap", [from_dlpack, lambda array: array], ids=["static", "dynamic"])
def test_an_index_past_the_end_ends_the_call(wrap, capfd):
    x = np.zeros(8, np.float32)
    executor = cute.compile(count, wrap(x), 8, options=CHECKED)
    executor(wrap(x), 8)
    assert x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(LaunchError, match="index out of bounds of a tensor") as caught:
        executor(wrap(x), 9)
    assert (caught.value.location.file, caught.value.location.line) == line_of(count, 3)
    assert "index 8 of 8" in capfd.readouterr().out


def test_what_follows_a_failed_check_is_not_run():
    @cute.kernel
    def fill(x: cute.Tensor):
        x[0] = 7.0

    @cute.jit
    def search(x: cute.Tensor, start: Int32):
        i = start
        while x[i] == 0.0:  # no end in sight but that of the tensor
            i += 1
        x[1] = 5.0
        fill(x).launch(grid=1, block=1)

    x = np.zeros(16, np.float32)
    executor = cute.compile(search, x, 0, options=CHECKED)
    with pytest.raises(LaunchError, match="index out of bounds"):
        executor(x, 3)
    assert not x.any()
    x[9] = 1.0
    executor(x, 3)
    assert x.tolist() == [7, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_what_follows_a_failed_assertion_is_not_run():
    @cute.jit
    def host(x: cute.Tensor, n: Int32):
        cute.testing.assert_(n < 4, "n is small")
        x[0] = n

    x = np.zeros(1, np.int32)
    executor = cute.compile(host, x, 0)
    executor(x, 3)
    with pytest.raises(LaunchError, match="n is small"):
        executor(x, 9)
    assert x[0] == 3


def test_indices_of_several_modes_and_tuples_of_tensors(capfd):
    @cute.jit
    def pick(pair: tuple, n: Int32):
        pair[1][0] = pair[0][n, 1]

    pair = (np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(1, np.float32))
    executor = cute.compile(pick, pair, 0, options=CHECKED)
    executor(pair, 2)
    assert pair[1][0] == 9
    for n in (3, -1):
        with pytest.raises(LaunchError, match="index out of bounds"):
            executor(pair, n)
        assert f"index {n} of 3, 1 of 4" in capfd.readouterr().out


def test_a_tile_outside_the_argument(capfd):
    @cute.jit
    def tile(x: cute.Tensor, n: Int32):
        cute.local_tile(x, (4,), (n,)).store(cute.full((4,), 1.0, Float32))

    x = np.zeros(8, np.float32)
    executor = cute.compile(tile, x, 0, options=CHECKED)
    executor(x, 1)
    for n, elements in ((2, "8 to 11"), (-1, "-4 to -1")):
        with pytest.raises(LaunchError, match="access outside the memory of x"):
            executor(x, n)
        assert f"elements {elements} of 8 of x" in capfd.readouterr().out
    assert x.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_view_with_64_bit_strides_is_measured_right(capfd):
    @cute.jit
    def corner(x: cute.Tensor, i: Int32, j: Int32):
        x[i, j] = 1.0

    base = np.zeros((6, 8), np.float32)
    view = base[::2, 1:5]
    executor = cute.compile(corner, view, 0, 0, options=CHECKED)
    executor(view, 2, 3)
    assert base[4, 4] == 1 and base.sum() == 1
    with pytest.raises(LaunchError, match="index out of bounds"):
        executor(view, 0, 4)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_great_strided_tile_is_measured_to_its_end(columns, capfd):
    @cute.jit
    def tile(x: cute.Tensor, n: Int32):
        part = cute.local_tile(x, (9, 9), (n, 0))
        part.store(cute.full((9, 9), 1.0, Float32))

    base = np.zeros((19, 20), np.float32)
    view = base[:18, ::columns][:, :9]
    executor = cute.compile(tile, view, 0, options=CHECKED)
    executor(view, 1)
    assert view[9:].all() and base.sum() == 81
    with pytest.raises(LaunchError, match="access outside the memory of x"):
        executor(view[1:], 1)
    assert base.sum() == 81


@pytest.mark.parametrize("index", [4, -1, Int32(4), (1, 2), (2, 0), (0, Int32(-1))], ids=str)
def test_a_known_index_outside_is_an_error_while_compiling(index):
    @cute.jit
    def host(x: cute.Tensor):
        x[index] = 0.0

    array = np.zeros((2, 2), np.float32)
    with pytest.raises(CompileError, match="an index is outside the tensor"):
        cute.compile(host, from_dlpack(array))


@pytest.mark.parametrize("index", [6, -1, Int32(-1), Int32(6), (2, 0), (0, 3), (0, Int32(-1))], ids=str)
def test_a_known_index_outside_a_value_is_an_error(index):
    @cute.jit
    def host():
        value = cute.full((2, 3), 1.0, Float32)
        cute.printf("{}", value[index])

    with pytest.raises(CompileError, match="outside a TensorSSA") as caught:
        cute.compile(host)
    assert __file__ in str(caught.value)


def test_only_a_rank_of_indices_is_taken():
    @cute.jit
    def host():
        cute.printf("{}", cute.full((2, 3), 1.0, Float32)[0, 0, 0])

    with pytest.raises(CompileError, match="3 indices for a TensorSSA of rank 2"):
        cute.compile(host)


def test_without_the_option_host_code_has_no_checks():
    executor = cute.compile(count, np.zeros(8, np.float32), 8)
    assert "check-bounds" not in executor.pipeline and "cute.assert" not in executor.stages["cute"]
