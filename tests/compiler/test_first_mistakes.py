"""Mistakes of a first day: each error names the line and what to write instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32, Int32
from tilewright.base.errors import ArgumentError, CompileError, TilewrightError


@cute.kernel
def does(x: cute.Tensor, action: cutlass.Constexpr):
    action(x)


@cute.jit
def runs(x: cute.Tensor, action: cutlass.Constexpr):
    does(x, action).launch(grid=1, block=32)


@cute.jit
def indexed_launch(x: cute.Tensor):
    does[1, 32](x, None)


@cute.jit
def unnamed_launch(x: cute.Tensor):
    does(x, None).launch(1, 32)


@cute.jit
def divided_grid(x: cute.Tensor):
    does(x, abs).launch(grid=cute.size(x) / 32, block=32)


def takes_two_of_three(x: cute.Tensor) -> None:
    _, _ = cute.arch.thread_idx()


def takes_two_of_one(x: cute.Tensor) -> None:
    _, _ = (x.shape,)


def takes_two_of_a_number(x: cute.Tensor) -> None:
    _, _ = x[0]


def writes_to_an_item_of_a_number(x: cute.Tensor) -> None:
    x[0][1] = 2.0


def writes_to_a_value(x: cute.Tensor) -> None:
    cute.full((4,), 0.0, Float32)[0] = 2.0


def writes_to_a_tuple(x: cute.Tensor) -> None:
    cute.arch.thread_idx()[0] = 2


def as_kernel(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: runs(x, action)


MISTAKES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a slice of Python": (as_kernel(lambda x: x[:, 0]), "indexed by integers, not by slice", "t[i, None]"),
    "an index that is a float": (as_kernel(lambda x: x[0.0, 0]), "not by float", "indices are integers"),
    "the length of a tensor": (as_kernel(lambda x: len(x)), "has no len", "cute.size(t)"),
    "a number of Python": (as_kernel(lambda x: x[0, 0].to(int)), "becomes no int of Python", ".to(Int32)"),
    "a copy without atom": (as_kernel(lambda x: cute.copy(x, x)), "'dst'", "cute.autovec_copy"),
    "a second operand": (as_kernel(lambda x: cute.rsqrt(x[0, 0], x[0, 1])), "fastmath is True or False", "one number"),
    "half an integer": (
        as_kernel(lambda x: cute.arch.atomic_add(cute.recast_ptr(x.iterator, dtype=Int32), 1.5)),
        "atomic_add of 1.5 on memory of Int32", "whole number",
    ),
    "a launch in brackets": (indexed_launch, "not launched by [grid, block]", ".launch(grid=..., block=...)"),
    "names for fields": (as_kernel(lambda x: x["a"]), "indexed by integers, not by str", "a tensor has no fields"),
    "a name among indices": (as_kernel(lambda x: x[0, "a"]), "indexed by integers, not by str", "has no fields"),
    "too few names": (as_kernel(takes_two_of_three), "too many values to unpack", "equally many"),
    "too many names": (as_kernel(takes_two_of_one), "not enough values to unpack", "equally many"),
    "names for a number": (as_kernel(takes_two_of_a_number), "cannot unpack", "it is one number"),
    "two brackets": (as_kernel(writes_to_an_item_of_a_number), "item assignment", "`t[i, j] = x`"),
    "an element of a value": (as_kernel(writes_to_a_value), "item assignment", "`t[i] = x`"),
    "an element of a tuple": (as_kernel(writes_to_a_tuple), "item assignment", "keep values in a list"),
    "a tensor and a number": (as_kernel(lambda x: x == 3), "compares with nothing", "`t.load() == x`"),
    "a number and a tensor": (as_kernel(lambda x: x != 3.0), "compares with nothing", "`t[i] == x`"),
    "two tensors": (as_kernel(lambda x: x == x[0, None]), "compares with nothing", "`t.load() == x`"),
    "a tensor and a value": (as_kernel(lambda x: cute.full((4,), 0.0, Float32) == x), "compares with", "t.load()"),
    "the order of a tensor": (as_kernel(lambda x: x < 3), "not supported between", "`t.load()` gives its elements"),
    "a negative tensor": (as_kernel(lambda x: -x), "bad operand", "`t.load()` gives its elements"),
    "a pointer and a number": (as_kernel(lambda x: x.iterator == 0), "pointer compares", "p.toint()"),
    "a row from the end": (as_kernel(lambda x: x[-1, None]), "outside the tensor", "do not count from the end"),
    "a launch without names": (unnamed_launch, "takes its options by name", "launch(grid=(x, y, z), block=(x, y, z))"),
    "an offset of another rank": (
        as_kernel(lambda x: cute.domain_offset((1, 2, 3), x)), "does not fit the shape", "one integer for each mode",
    ),
    "an offset that is no number": (
        as_kernel(lambda x: cute.domain_offset("a", x)), "made of integers", "one integer for each mode",
    ),
    "a memory space that is none": (
        as_kernel(lambda x: cute.make_ptr(Float32, 0, x)), "a pointer into", "one of AddressSpace",
    ),
    "a grid that is no integer": (divided_grid, "grid takes one to three integers", "cute.ceil_div"),
    "an argument too many": (lambda x: divided_grid(x, stream=0), "unexpected keyword argument 'stream'", "it takes x"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name):
    call, words, hint = MISTAKES[name]
    with pytest.raises(TilewrightError) as caught:
        call(np.zeros((4, 8), np.float32))
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("name", ["UnicodeEncodeError", "JSONDecodeError"])
def test_an_error_that_takes_more_than_a_message_is_ours_too(name):
    text = "\ud800" if name == "UnicodeEncodeError" else "{"
    with pytest.raises(CompileError, match=name) as caught:
        runs(np.zeros(4, np.float32), lambda _: json.loads(text.encode()))
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("align", [3, 0, -16, 2.5])
def test_an_alignment_is_a_power_of_two(align):
    with pytest.raises(ArgumentError, match="assumed_align is a power of two"):
        cute.runtime.from_dlpack(np.zeros(8, np.float32), assumed_align=align)
    with pytest.raises(ArgumentError, match="assumed_align is a power of two"):
        cute.runtime.make_fake_compact_tensor(cute.Float32, (8,), assumed_align=align)


@pytest.mark.parametrize("checks", ["all", "on", 3, None])
def test_checks_are_of_three_kinds(checks):
    with pytest.raises(CompileError, match="checks is True, False, 'collect' or a list"):
        cute.compile(divided_grid, np.zeros((4, 8), np.float32), checks=checks)


def test_a_chip_may_be_its_number():
    x = np.zeros((4, 8), np.float32)
    executor = cute.compile(runs, x, lambda tensor: None, arch=90, target="emu")
    assert executor.arch == "sm_90"


def test_what_is_kept_must_be_known(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_KEEP", "ptx,foo")
    with pytest.raises(CompileError, match="TILEWRIGHT_KEEP='ptx,foo' is not valid") as caught:
        cute.compile(runs, np.zeros((4, 8), np.float32), lambda tensor: None)
    assert "ir, ptx, cubin, sass, all" in caught.value.hint


@pytest.mark.parametrize("block", ["x", 2.5, (), (1, 2, 3, 4), ("x", 1)])
def test_occupancy_takes_a_block(block):
    executor = cute.compile(runs, np.zeros((4, 8), np.float32), lambda tensor: None)
    with pytest.raises(CompileError, match="block is one to three integers"):
        executor.occupancy(block)
    assert executor.occupancy((16, 16)) == executor.occupancy(256)


def test_a_launch_without_a_block_is_named():
    @cute.jit
    def launch(x: cute.Tensor):
        does(x, lambda tensor: None).launch(grid=4)

    x = np.zeros(4, np.float32)
    with pytest.warns(UserWarning, match="kernel does is launched without block=") as warned:
        cute.compile(launch, x)
    assert (warned[0].filename, warned[0].lineno) == (__file__, launch.function.__code__.co_firstlineno + 2)


def test_a_tensor_equals_itself_and_nothing_else():
    @cute.jit
    def host(x: cute.Tensor):
        assert x == x and x != None and x in (None, x)  # noqa: E711  (what is tested)
        assert x.iterator == x.iterator and x.iterator != "x"

    host(np.zeros(4, np.float32))
