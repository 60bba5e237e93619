"""`autotune_jit`: the choice is kept on disk, for the same programs, counts and watched arguments."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.cache.programs import forget
from tilewright.base.errors import CompileError
from tilewright.compiler import tuning
from tilewright.compiler.cache.store import CacheWarning

FACTOR = {"n": 1}


@cute.kernel
def repeated_kernel(x: cute.Tensor, n: cutlass.Constexpr):
    for _ in cutlass.range_constexpr(n):
        x[0] = x[0] + FACTOR["n"]


@pytest.fixture
def timed(cache_dir, monkeypatch):
    """The numbers of the configurations that were timed; the greatest is the fastest."""
    found = []

    def benchmark(executor, kernel_arguments, **_):
        x = np.zeros(1, np.int32)
        executor(x)
        found.append(int(x[0]))
        return 1 / x[0]

    monkeypatch.setitem(vars(tuning), "benchmark", benchmark)
    return found


def repeated(numbers, watched=(), iterations=100):
    @cute.testing.autotune_jit({"n": numbers}, update_on_change=watched, iterations=iterations)
    @cute.jit
    def repeat(x: cute.Tensor, n: cutlass.Constexpr = 1):
        if cutlass.const_expr(n > 50):
            raise ValueError(f"{n} is too many")
        repeated_kernel(x, n).launch(grid=1, block=1)

    return repeat


def call(function, expected):
    forget()
    x = np.zeros(1, np.int32)
    function(x)
    assert x[0] == expected * FACTOR["n"] and function.best_config == {"n": expected}


def test_the_choice_is_kept(timed):
    call(repeated([1, 3, 2]), 3)
    assert timed == [1, 3, 2]
    call(repeated([1, 3, 2]), 3)  # another function of the same code, as in a new process
    assert timed == [1, 3, 2]


def test_what_it_depends_on(timed, monkeypatch):
    call(repeated([1, 2]), 2)
    for other in ([2, 1], [1, 2, 3]):
        before = len(timed)
        call(repeated(other), max(other))
        assert len(timed) == before + len(other)
    before = len(timed)
    call(repeated([1, 2], iterations=7), 2)
    assert len(timed) == before + 2
    monkeypatch.setitem(FACTOR, "n", 2)
    call(repeated([1, 2]), 2)
    assert len(timed) == before + 4


def test_configurations_that_do_not_work_are_passed_over(timed):
    for _ in range(2):
        call(repeated([60, 1, 2]), 2)
    with pytest.raises(CompileError, match="no configuration works") as raised:
        repeated([60, 70])(np.zeros(1, np.int32))
    assert "70 is too many" in str(raised.value)


def test_without_a_cache_it_is_tried_each_time(timed, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_NO_CACHE", "1")
    for _ in range(2):
        call(repeated([1, 2]), 2)
    assert timed == [1, 2, 1, 2]


def test_a_damaged_choice_is_made_again(timed, cache_dir):
    call(repeated([1, 2]), 2)
    (file,) = [path for path in cache_dir.rglob("tunings/*/*") if path.is_file()]
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.warns(CacheWarning, match="the cache does not use"):
        call(repeated([1, 2]), 2)
    assert timed == [1, 2, 1, 2]
