# ruff: noqa: B007  (loops whose variable is not used are what is tested)
"""Control flow means what it means in Python: compiled functions against the same functions run by Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.lang.control.harness import agrees, compiled, trace
from tests.lang.control.programs import State
from tilewright.lang import control
from tilewright.lang.control import const_expr, range_constexpr
from tilewright.lang.numbers.numeric import Boolean, Float32, Float64, Int32, Int64, Uint32
from tilewright.lang.rewrite import rewrite

SMALL = list(itertools.product(range(-4, 5), repeat=2))
TRIPLES = list(itertools.product(range(-3, 4), repeat=3))


def test_chained_comparison_of_a_runtime_value():
    def f(i, n):
        out = 0
        if 2 <= i < 5:
            out = 1
        return out

    native = compiled(f)
    assert [native(i, 0) for i in range(10)] == [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]


def test_chained_comparison_of_constants():
    def f(i):
        return 1 if 1 < 5 < 3 else 0

    assert compiled(f)(0) == 0


def test_chained_comparison_computes_the_middle_once():
    calls = []

    def middle(i):
        calls.append(1)
        return i * 2

    def f(i, n):
        return 1 if 0 <= middle(i) < n else 0

    agrees(f, SMALL)
    calls.clear()
    trace(f)
    assert len(calls) == 1


def test_range_with_runtime_start_calls_a_helper():
    def split(i, g):
        return i // g, i % g

    def f(start, k):
        p = 0
        quotient, remainder = -1, -1
        for i in range(start, 512, 78):
            q, r = split(i, 128)
            if p == k:
                quotient, remainder = q, r
            p += 1
        return quotient, remainder, p

    native = compiled(f)
    assert [native(0, k)[:2] for k in range(7)] == [(0, 0), (0, 78), (1, 28), (1, 106), (2, 56), (3, 6), (3, 84)]
    assert native(0, 0)[2] == 7


def test_constant_branch_alone_in_a_runtime_else():
    def dead():
        raise AssertionError("traced")

    def f(tid):
        out = 0
        if tid == 0:
            out = 7
        else:
            if const_expr(False):
                dead()
        return out

    agrees(f, [(0,), (1,)])


def test_aliases_of_a_state_see_changes_in_a_loop():
    class Pipeline:
        def __init__(self, index: Any, phase: Any, count: Any) -> None:
            self.index, self.phase, self.count = index, phase, count

        def advance(self) -> None:
            self.count += 1
            self.index += 1
            if self.index == 2:
                self.index = Int32(0)
                self.phase ^= 1

        advance = rewrite(advance) if "rewrite" in globals() else advance

        def __extract_mlir_values__(self) -> list[Any]:
            return [v.ir_value() for v in (self.index, self.phase, self.count)]

        def __new_from_mlir_values__(self, values: list[Any]) -> Pipeline:
            return Pipeline(*(Int32.from_ir(value) for value in values))

    def f(n):
        first = Pipeline(Int32(0), Int32(1), Int32(0))
        second = first
        for _ in range(n):
            first.advance()
        return first.index, first.phase, first.count, second.index, second.phase, second.count

    native = compiled(f)
    assert native(3) == (1, 0, 3, 1, 0, 3)
    assert native(0) == (0, 1, 0, 0, 1, 0)
    assert native(4) == (0, 1, 4, 0, 1, 4)


def test_aliases_of_a_state_see_changes_in_a_branch_and_a_while():
    def f(a, b):
        state = State(a + 0)
        held = {"state": state, "others": [state]}
        if b > 0:
            state.advance(3)
        while held["others"][0].count % 4 != 0:
            held["state"].advance(1)
        return state.count, held["state"].count

    agrees(f, SMALL)


def test_an_object_that_is_only_assigned_may_have_two_names():
    def f(n):
        state = State(n + 0)
        first = state
        for _ in range(n):
            state = State(state.count + 1)
        return state.count, first.count

    agrees(f, [(n,) for n in range(5)])


def test_a_call_that_changes_its_argument_and_returns_it():
    def step(state, by):
        for _ in range(by):
            state.advance(1)
        return state

    step = rewrite(step)

    def f(n, m):
        state = State(n + 0)
        alias, pair = state, (state, 0)
        for i in range(n):
            state = step(state, m)
            pair = (state, pair[1] + i)
        while alias.count % 3 != 0:
            alias = step(alias, 2)
        return state.count, alias.count, pair[0].count, pair[1]

    agrees(f, SMALL)


def test_lists_of_two_names():
    def f(n, m):
        xs = [n, m]
        ys = xs
        for i in range(n):
            xs[0] = xs[1] + i
            ys[1] = ys[1] - 1
        for i in range(m):
            zs = ys
            zs[0] += 1
        return xs[0], xs[1], ys[0], ys[1]

    agrees(f, SMALL)


def test_loop_variable_after_the_loop():
    def f(n, m):
        i = 100
        for i in range(n, m):
            pass
        j = i
        for i in range(m, n, -2):
            pass
        return i, j

    agrees(f, SMALL)


def test_loop_variable_and_first_value_where_the_loop_surely_runs():
    def f(a):
        for i in range(3, 9, 2):
            last = i * a
        return i, last

    agrees(f, [(a,) for a in range(-3, 4)])


def test_body_may_assign_the_loop_variable():
    def f(n):
        total = 0
        i = 0
        for i in range(n):
            i = i * 2
            total += i
        return total, i

    agrees(f, [(n,) for n in range(5)])


def test_steps_of_either_sign():
    def f(a, b, s):
        total, turns, i = 0, 0, 55
        for i in control.range(a, b, s):
            total = total * 3 + i
            turns += 1
        return total, turns, i

    agrees(f, [t for t in TRIPLES if t[2] != 0])


def test_a_runtime_step_of_zero_makes_no_turn():
    def f(s):
        turns = 0
        for _ in range(0, 10, s):
            turns += 1
        return turns

    assert compiled(f)(0) == 0


@pytest.mark.parametrize(
    "a, b, s", [(2**31 - 5, 2**31 - 1, 3), (-(2**31) + 4, -(2**31), -3), (2**31 - 2, 2**31 - 1, 9)]
)
def test_index_at_the_ends_of_its_type(a, b, s):
    def f(a, b, s):
        total, turns = 0, 0
        for i in range(a, b, s):
            total ^= i
            turns += 1
        return total, turns

    agrees(f, [(a, b, s)])


def test_more_turns_than_a_signed_number_holds():
    def f(a, b):
        turns = 0
        for _ in range(a, b, 1 << 30):
            turns += 1
        return turns

    agrees(f, [(-(2**31), 2**31 - 1)])


def test_bounds_of_numpy():
    def f(n):
        total = n
        for i in range(np.int64(1), np.int32(4)):
            total += i
        return total

    agrees(f, [(3,)])


def test_unsigned_and_wide_indices():
    def f(n):
        total = Int64(0)
        for i in range(n):
            total += i
        return total

    assert compiled(f, Int64)(5) == 10

    def g(n):
        turns = 0
        for i in range(n - 2, n):
            turns += 1
        return turns

    assert compiled(g, Uint32)(-1) == 2


def test_while_with_walrus_and_else():
    def f(a, b):
        total = 0
        while (x := a - total) > 0 and total < 20:
            total += 3
            b += x
        else:
            b += 1
        return total, b, x

    agrees(f, SMALL)


def test_nested_loops_carry_everything():
    def f(a, b):
        x, y = a, b
        for i in range(a):
            for j in range(i, b):
                if (i + j) % 2 == 0:
                    x, y = y + i, x - j
                while y > 10:
                    y -= 3
            x += i
        return x, y

    agrees(f, SMALL + [(7, 9), (9, 3)])


def test_static_loops_keep_break_continue_return_and_else():
    def f(a):
        total = 0
        for i in range_constexpr(10):
            if i == 2:
                continue
            if i > 5:
                break
            total += i * a
        else:
            total = 1000
        for name in ("x", "y"):
            if name == "y":
                return total, 1
        return total, 2

    agrees(f, [(a,) for a in range(3)])


def test_static_return_inside_static_ifs():
    def f(a, kind="second"):
        if const_expr(kind == "first"):
            return a
        elif kind == "second":
            for i in (1, 2, 3):
                with functools_nullcontext():
                    if i == 2:
                        return a * i
        return a + 100

    assert compiled(lambda a: rewrite(f)(a))(5) == 10
    assert compiled(lambda a: rewrite(f)(a, "first"))(5) == 5
    assert compiled(lambda a: rewrite(f)(a, "none"))(5) == 105


class functools_nullcontext:
    def __enter__(self) -> int:
        return 1

    def __exit__(self, *error: object) -> None:
        return None


def test_raise_and_assert_in_static_branches():
    def f(a):
        if a is None:
            raise ValueError("no value")
        assert isinstance(a, Int32), "not a number"
        for _ in range(a):
            if const_expr(False):
                raise ValueError("never")
        return a

    assert compiled(f)(3) == 3

    def g(a):
        for _ in range(a):
            if const_expr(True):
                raise ValueError("the user's own")

    with pytest.raises(ValueError, match="the user's own"):
        trace(g)


def test_only_the_arm_taken_runs():
    def f(a, b):
        return a // b if b != 0 else -1

    agrees(f, SMALL)

    def g(a, b):
        return 1 if b != 0 and a % b == 0 else 0

    agrees(g, SMALL)


def test_operands_with_effects_stay_in_their_region():
    def f(a, b):
        state = State(a + 0)

        def bump(by):
            state.advance(by)
            return state.count > 2

        found = b > 0 and bump(b)
        other = bump(3) if a > b else b == 1
        third = a > 1 or bump(1)
        return found, other, third, state.count

    agrees(f, SMALL)


def test_numbers_take_the_type_of_the_other_branch():
    def f(x, n):
        y = x if n > 0 else 0
        if n > 1:
            z = x + x
        else:
            z = 0.5
        return y, z

    native = compiled(f, Float64, Int32)
    assert native.results == [Float64, Float64]
    assert native(1.25, 1) == (1.25, 0.5)
    assert native(1.25, 0) == (0.0, 0.5)
    assert native(1.25, 2) == (1.25, 2.5)


def test_python_numbers_of_both_arms_promote():
    def f(n):
        return (1 if n > 0 else 2.5), (True if n > 0 else 3), (n > 0 if n > 1 else False)

    native = compiled(f)
    assert native.results == [Float32, Int32, Boolean]
    assert native(1) == (1.0, 1, False)
    assert native(0) == (2.5, 3, False)


def test_a_literal_of_no_fit_promotes():
    def f(n, m):
        return n if m > 0 else 0.5

    native = compiled(f)
    assert native.results == [Float32]
    assert native(3, 1) == 3.0
    assert native(3, 0) == 0.5


def test_literals_carried_by_loops():
    def f(n):
        total, scale, flag = 0, 1.0, False
        for i in range(n):
            total += i
            scale = scale * 2.0
            flag = i == 1
        return total, scale, flag

    native = compiled(f)
    assert native.results == [Int32, Float32, Boolean]
    assert native(3) == (3, 8.0, False)
    assert native(0) == (0, 1.0, False)


def test_values_that_do_not_change_stay_constants():
    def f(n):
        size, name = 4, "abc"
        for _ in range(n):
            size = 4
            name = "abc"
            if const_expr(False):
                size += 1
        if n > 0:
            size = 4
        assert const_expr(size) == 4
        return n + size if name == "abc" else 0

    assert compiled(f)(1) == 5


def test_unchanged_values_are_not_carried():
    def f(a, n):
        x, y = a, a + 1
        for _ in range(n):
            if const_expr(False):
                x += 1
            y += x
        return x, y

    text = trace(f)
    assert text.count("iter_args(%arg") == 1
    assert "-> (i32)" in text and "-> (i32, i32)" not in text


def test_dead_variables_are_not_carried():
    def f(a, n):
        t = a
        total = t
        for i in range(n):
            t = i * 2
            total += t
        return total

    assert "-> (i32, i32)" not in trace(f)
    agrees(f, SMALL)
