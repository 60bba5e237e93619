"""Mistakes of a first day: each error names the line and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int32
from tilewright.base.errors import ArgumentError, CompileError


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
def divided_grid(x: cute.Tensor):
    does(x, abs).launch(grid=cute.size(x) / 32, block=32)


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
    "a grid that is no integer": (divided_grid, "grid takes one to three integers", "cute.ceil_div"),
    "an argument too many": (lambda x: divided_grid(x, stream=0), "unexpected keyword argument 'stream'", "it takes x"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name):
    call, words, hint = MISTAKES[name]
    with pytest.raises(CompileError) as caught:
        call(np.zeros((4, 8), np.float32))
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("align", [3, 0, -16, 2.5])
def test_an_alignment_is_a_power_of_two(align):
    with pytest.raises(ArgumentError, match="assumed_align is a power of two"):
        cute.runtime.from_dlpack(np.zeros(8, np.float32), assumed_align=align)
    with pytest.raises(ArgumentError, match="assumed_align is a power of two"):
        cute.runtime.make_fake_compact_tensor(cute.Float32, (8,), assumed_align=align)


@pytest.mark.parametrize("checks", ["all", "on", 3, None])
def test_checks_are_of_three_kinds(checks):
    with pytest.raises(CompileError, match="checks is True, False or 'collect'"):
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
