"""Compilations in processes beside each other."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tilewright.cute as cute
from tests.compiler.cache.programs import numbers, scale
from tilewright import ArgumentError, CompileError
from tilewright.compiler import hooks


@cute.jit
def wrong(x: cute.Tensor):
    raise_no_such_name(x)  # noqa: F821


@pytest.mark.parametrize("on", [True, False])
def test_all_are_right_and_in_order(cache_dir, monkeypatch, on):
    if not on:
        monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    heard = []
    with hooks.after_compile(heard.append):
        made = cute.compile_parallel([(scale, numbers(), factor) for factor in range(2, 8)], processes=3)
    assert heard == made
    for factor, executor in enumerate(made, 2):
        x = numbers()
        executor(x)
        np.testing.assert_array_equal(x, factor * numbers())
    assert cache_dir.exists() == on


def test_calls_with_options(cache_dir):
    call = functools.partial(cute.compile[cute.OptLevel(1)], scale, numbers(), 3, arch="sm_80")
    (made,) = cute.compile_parallel([call])
    assert (made.arch, made.artifact.options.opt_level, made.cached) == ("sm_80", 1, "memory")


def test_errors_are_those_of_the_call(cache_dir):
    with pytest.raises(NameError, match="raise_no_such_name"):
        cute.compile_parallel([(scale, numbers(), 3), (wrong, numbers())])
    assert cute.compile(scale, numbers(), 3).cached
    with pytest.raises(CompileError, match=r"takes a @cute[.]jit function"):
        cute.compile_parallel([(len, numbers())])
    with pytest.raises(ArgumentError, match="item 1 of compile_parallel is no call"):
        cute.compile_parallel([(scale, numbers(), 3), scale])
    with pytest.raises(ArgumentError, match="processes is at least 1, not 0"):
        cute.compile_parallel([(scale, numbers(), 3)], processes=0)


def test_a_bar_where_it_is_asked_for(cache_dir, capfd):
    cute.compile_parallel([(scale, numbers(), 3)], progress=True)
    assert "1/1" in capfd.readouterr().err
    cute.compile_parallel([(scale, numbers(), 4)])
    assert capfd.readouterr().err == ""


def test_a_bar_below_the_cell_of_a_notebook(cache_dir, monkeypatch, capfd):
    shown = []

    class Cell:
        def display(self, data, raw, display_id):
            shown.append(data["text/plain"])
            return self

        def update(self, data, raw):
            shown.append(data["text/plain"])

    monkeypatch.setattr("tilewright.compiler.parallel.display_module", Cell)
    cute.compile_parallel([(scale, numbers(), 3), (scale, numbers(), 5)], progress=True)
    assert shown == ["compiling  0/2", "compiling  1/2", "compiling  2/2", ""]
    assert capfd.readouterr().err == ""


def test_the_same_function_many_times_and_none(cache_dir):
    cute.compile_parallel([(scale, numbers(), 3)] * 4)
    assert cute.compile_parallel([]) == []
