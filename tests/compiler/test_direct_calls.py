"""What direct calls keep: the right program for every kind of argument, and nothing that may have changed."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Constexpr, Float32, Int32
from tilewright.base import settings
from tilewright.compiler import build


@cute.kernel
def write_kernel(out: cute.Tensor, value: Float32):
    out[0] = value


ONE, TEN = Int32(1), Int32(10)


@pytest.fixture
def found(monkeypatch):
    """How often a program was looked for behind the table; what is found stays valid while `valid` holds True."""
    calls, valid, real = [], [True], build.find

    def find(made, no_cache=False):
        calls.append(made)
        return replace(real(made, no_cache), still_valid=lambda: valid[0])

    monkeypatch.setattr(build, "find", find)
    return lambda: len(calls), valid


def value_of(function, *args, **kwargs):
    out = np.zeros(4, np.float32)
    function(out, *args, **kwargs)
    return float(out[0])


def test_numbers_of_run_time_and_baked_in_ones(found):
    calls, _ = found

    @cute.jit
    def write(out: cute.Tensor, more: Int32, factor: Constexpr):
        kind = {bool: 100.0, int: 10.0, float: 1.0}[type(factor)]
        sign = -1.0 if str(factor).startswith("-") else 1.0
        write_kernel(out, (more + 1) * kind * sign).launch(grid=1, block=1)

    for _ in range(2):
        assert value_of(write, 1, 1) == 20 and value_of(write, 4, 1) == 50
        assert value_of(write, 1, True) == 200
        assert value_of(write, 1, 1.0) == 2
        assert value_of(write, 1, 0.0) == 2 and value_of(write, 1, -0.0) == -2
    assert calls() == 5


def test_names_defaults_and_their_order(found):
    calls, _ = found

    @cute.jit
    def write(out: cute.Tensor, a: Int32 = ONE, b: Int32 = TEN):
        write_kernel(out, Float32(a - b)).launch(grid=1, block=1)

    for _ in range(2):
        assert value_of(write) == -9
        assert value_of(write, 5) == -5
        assert value_of(write, b=2, a=7) == value_of(write, a=7, b=2) == 5
        assert value_of(write, 7, b=3) == 4
    assert calls() == 5


def test_shapes_types_and_strides(found):
    calls, _ = found

    @cute.jit
    def fill(x: cute.Tensor):
        last = x.layout.stride[-1]
        bits = x.element_type.width
        for i in range(x.shape[0]):
            x[i, 0] = bits + (1000 if isinstance(last, int) and last == 1 else 0)

    def first(x):
        fill(x)
        return int(x[0, 0])

    for _ in range(2):
        assert first(np.zeros((2, 3), np.int32)) == 1032 and first(np.zeros((5, 7), np.int32)) == 1032
        assert first(np.zeros((2, 3), np.int64)) == 1064
        assert first(np.zeros((3, 2), np.int32).T) == 32
    assert calls() == 3


def test_objects_are_known_by_what_they_hold(found):
    calls, _ = found

    @dataclass
    class Config:
        factor: int

    @cute.jit
    def write(out: cute.Tensor, config: Constexpr, pair: Constexpr):
        write_kernel(out, Float32(config.factor * pair[0])).launch(grid=1, block=1)

    config = Config(3)
    for _ in range(2):
        config.factor = 3
        assert value_of(write, config, (2, "a")) == 6 and value_of(write, Config(3), (2, "a")) == 6
        config.factor = 4
        assert value_of(write, config, (2, "a")) == 8
        assert value_of(write, config, (5, "a")) == 20
    assert calls() == 3


def test_what_may_have_changed_is_looked_for_again(found, monkeypatch):
    calls, valid = found

    @cute.jit
    def write(out: cute.Tensor):
        write_kernel(out, 1.0).launch(grid=1, block=1)

    value_of(write)
    value_of(write)
    assert calls() == 1
    with settings.scope(fp_contract="off"):
        value_of(write)
        assert calls() == 2
    monkeypatch.setenv("TILEWRIGHT_SEED", "3")
    value_of(write)
    assert calls() == 3
    valid[0] = False
    value_of(write)
    value_of(write)
    assert calls() == 5


def test_arguments_that_do_not_fit_are_refused_as_ever(found):
    @cute.jit
    def write(out: cute.Tensor, more: Int32):
        write_kernel(out, Float32(more)).launch(grid=1, block=1)

    value_of(write, 1)
    for wrong in ((), (1, 2), ("text",)):
        with pytest.raises(cutlass.TilewrightError):
            value_of(write, *wrong)
    assert value_of(write, 2) == 2
