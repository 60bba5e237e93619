"""Jit functions called directly: traced at each call, compiled once, from several threads, in a bounded cache."""

import sys
import threading

import numpy as np
import pytest

import tilewright.cute as cute
from tests.boundary.support import add_kernel
from tilewright import Constexpr, Float32
from tilewright.compiler import build
from tilewright.compiler.memory_cache import MemoryCache


def shifted(value):
    return value + 1


@cute.kernel
def loop_kernel(x: cute.Tensor, times: cute.Int32):
    i, _, _ = cute.arch.thread_idx()
    for _ in range(times):
        if i < x.shape[0]:
            x[i] = shifted(x[i])


@cute.jit
def repeat(x: cute.Tensor, times: cute.Int32):
    loop_kernel(x, times).launch(grid=1, block=32)


@cute.jit
def add_constant(x: cute.Tensor, y: cute.Tensor, amount: Constexpr[int]):
    add_kernel(x, y, float(amount)).launch(grid=1, block=32)


@pytest.fixture
def compilations(monkeypatch):
    """How often a direct call compiled."""
    count = []
    finished = build.finished
    monkeypatch.setattr(build, "finished", lambda *args: count.append(1) or finished(*args))
    monkeypatch.setattr(build, "_cache", MemoryCache(limit=4))
    return count


def test_a_changed_helper_is_seen(monkeypatch, compilations):
    """R3 of the cases: the helper is called inside a runtime loop only."""
    x = np.zeros(32, np.float32)
    repeat(x, 3)
    assert (x == 3).all()
    monkeypatch.setattr(sys.modules[__name__], "shifted", lambda value: value + 2)
    repeat(x, 3)
    assert (x == 9).all()
    monkeypatch.undo()


def test_the_cache_keeps_what_was_used_last(compilations):
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    for amount in (1, 2, 3, 4, 1, 5, 1, 2):
        add_constant(x, y, amount)
        assert (y == 1 + amount).all()
    # 5 pushes out 2, the one used longest ago; 1 stays.
    assert len(compilations) == 6
    assert len(build._cache) == 4


def test_baked_in_members_that_the_program_ignores(compilations):
    @cute.jit
    def ignores(x: cute.Tensor, y: cute.Tensor, pair: tuple, shape: cute.Shape):
        add_kernel(x, y, pair[0]).launch(grid=1, block=32)

    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    for last in (1, 2):
        ignores(x, y, (Float32(last), 3), (last, last))
        assert (y == 1 + last).all()
    assert len(compilations) == 1


def test_two_threads_at_once(monkeypatch):
    monkeypatch.setattr(build, "_cache", MemoryCache(limit=3))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    failures = []

    def work(number):
        try:
            for turn in range(6):
                dtype = (np.float32, np.float64, np.int32)[(number + turn) % 3]
                amount = 1 + (number + turn) % 4
                x, y = np.ones(32, dtype), np.zeros(32, dtype)
                add_any(x, y, amount)
                assert (y == 1 + amount).all()
        except BaseException as error:  # noqa: BLE001  (shown by the assertion below)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []
    assert len(build._cache) <= 3


@cute.kernel
def any_kernel(x: cute.Tensor, y: cute.Tensor, amount: Constexpr[int]):
    i, _, _ = cute.arch.thread_idx()
    y[i] = x[i] + amount


@cute.jit
def add_any(x: cute.Tensor, y: cute.Tensor, amount: Constexpr[int]):
    any_kernel(x, y, amount).launch(grid=1, block=32)


def test_the_cache_under_threads():
    cache: MemoryCache[int] = MemoryCache(limit=8)

    def work(seed):
        for number in range(3000):
            key = (seed * 7 + number) % 20
            found = cache.get(key)
            assert found is None or found == key
            cache.put(key, key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 8


def test_the_first_value_stays_until_it_is_replaced():
    cache: MemoryCache[str] = MemoryCache(limit=2)
    assert cache.put("a", "first") == "first"
    assert cache.put("a", "second") == "first"
    cache.replace("a", "third")
    assert cache.get("a") == "third"
    cache.clear()
    assert cache.get("a") is None
