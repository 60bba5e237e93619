# ruff: noqa: B007, SIM223  (what is bound and never read, and never bound, is tested)
"""A name that is bound again before it is read needs no value from a branch or a loop before."""

from __future__ import annotations

import itertools

import pytest

from tests.lang.control.harness import agrees, trace
from tilewright.base.errors import CompileError
from tilewright.lang.numbers.numeric import Int32

SMALL = list(itertools.product(range(-4, 5), repeat=2))


def by_pattern(i, n):
    out = 0
    for _k in range(n):
        match ("a", 5):
            case ("a", q):
                out += q
    for _k in range(2):
        match ("a", 7):
            case ("a", q) if q < 6:
                out += 100
            case (_, q) | q if q > 3:
                out += q
            case _:
                out -= 1
    return out


def by_walrus(i, n):
    out = 0
    if i > 0:
        q = i
        out += q
    for k in range(n):
        if (q := k * 2) > 1:
            out += q
    return out


def by_walrus_of_a_while(i, n):
    out = 0
    if i > 0:
        q = i
        out += q
    k = Int32(0)
    while (q := k + 1) < n:
        out += q
        k += 1
    return out


def by_comprehension(i, n):
    out = 0
    if i > 0:
        q = i
        out += q
    for k in range(n):
        out += sum([q * k for q in (1, 2, 3) if q != 2])
    return out


def by_an_arm_of_each(i, n):
    out = 0
    if i > 0:
        q = i
        out += q
    for k in range(n):
        out += (q := 3) if True else (q := 4)
        out += q
    return out


@pytest.mark.parametrize(
    "f", [by_pattern, by_walrus, by_walrus_of_a_while, by_comprehension, by_an_arm_of_each], ids=lambda f: f.__name__
)
def test_a_name_bound_first_is_not_read_from_before(f):
    agrees(f, SMALL)


def test_a_generator_reads_when_it_is_consumed():
    def f(i, n):
        scale = 2
        scaled = (x * scale for x in (1, 2))
        if n > 0:
            scale = 5
        return sum(scaled)

    agrees(f, SMALL)


def after_a_guard(i, n):
    if n > 0:
        q = 1
    match ("b", 1):
        case ("a", q) if q > 0:
            return 0
    return q


def after_an_operand_that_may_be_skipped(i, n):
    if n > 0:
        q = 1
    if False and (q := 2) > 1:
        return 0
    return q


@pytest.mark.parametrize("f", [after_a_guard, after_an_operand_that_may_be_skipped], ids=lambda f: f.__name__)
def test_what_may_not_be_bound_is_read_from_before(f):
    with pytest.raises(CompileError, match="`q` is used, but only one branch of a runtime `if` gives it a value"):
        trace(f)
