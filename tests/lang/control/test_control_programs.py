# ruff: noqa: B905, F841  (programs of users, as they write them)
"""Programs of many shapes: compiled ones do what Python does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.lang.control.harness import agrees
from tilewright.lang.control import const_expr, range_constexpr
from tilewright.lang.numbers.numeric import Int32

INPUTS = [(a, b) for a in range(-2, 8) for b in range(-2, 6)]


def items_of_a_list(n, m):
    acc = [0] * 3
    for i in range(n):
        for j in range_constexpr(3):
            acc[j] += i * j
    return acc[0], acc[1], acc[2]


def items_of_a_dict(n, m):
    d = {"x": n}
    for i in range(m):
        d["x"] += 1
        d2 = {"y": i}
        d["x"] += d2["y"]
    return d["x"]


def endless_loop_with_static_break(n, m):
    x = n
    while True:
        x += 1
        if const_expr(True):
            break
    return x


def list_of_lambdas(n, m):
    fns = [lambda v: v + 1, lambda v: v * 2]
    x = n
    for f in fns:
        if x < m:
            x = f(x)
    return x


def ternaries_and_sums_of_truths(n, m):
    x = n if n > m else (m if m > 0 else -1)
    y = (n > 0) + (m > 0)
    z = x
    z <<= 1 if n > 0 else 0
    return x, y, z


def while_with_elif(n, m):
    i = 0
    while i < n and (m > 0 or i < 2):
        if i == m:
            m -= 1
        elif i == 1:
            pass
        else:
            for _ in range(2):
                m += 0
        i += 1
    return i, m


class Scheduler:
    def __init__(self, cur: Any, n: Any) -> None:
        self.cur, self.n = cur, n

    def valid(self):
        return self.cur < self.n

    def next(self):
        self.cur += 2

    def __extract_mlir_values__(self):
        return [self.cur.ir_value(), self.n.ir_value()]

    def __new_from_mlir_values__(self, v):
        return Scheduler(Int32.from_ir(v[0]), Int32.from_ir(v[1]))


def scheduler(n, m):
    s = Scheduler(n + 0, m + 0)
    total = 0
    while s.valid():
        total += s.cur
        s.next()
    return total, s.cur


@dataclass
class Params:
    a: Any
    b: Any
    c: int = 3


def dataclass_of_two_names(n, m):
    p = Params(n, m)
    q = p
    for i in range(m):
        p.a = p.a + i
        if p.a > 2:
            p.b = p.a
        for k in range_constexpr(p.c):
            p.a -= k
    return q.a, q.b


def nested_functions(n, m):
    def inner(k):
        r = 0
        for i in range(k):
            if i > 1:
                r += n
        return r

    x = inner(m)

    def inner2(k):
        return inner(k) if k > 1 else -k

    return x + inner2(n)


def starred_targets(n, m):
    (a, b), *c = (n, m), 1, 2
    for i in range(n):
        (a, b), c = (b, a + i), c
    return a, b, c[0]


def raise_caught_at_trace_time(n, m):
    try:
        for i in range_constexpr(5):
            if i == 2:
                raise KeyError
            n += i
    except KeyError:
        n += 100
    return n


def walrus_in_a_condition(n, m):
    x = n
    if (y := x + m) > 0 and y < 3:
        x = y
    return x, y


def names_deleted(n, m):
    x = 0
    for i in range(n):
        del_me = i
        if i > 1:
            y = i
            x += y
        del del_me
    return x


def import_in_a_branch(n, m):
    if n > 0:
        import math

        x = math.floor(2.5)
    else:
        x = 2
    return x + n


def python_loop_around_a_loop(n, m):
    x = n
    for i, j in zip(range(3), (n, m, n)):
        for k in range(j):
            x += k * i
        else:
            x += 1
    return x


def continue_inside_with(n, m):
    from contextlib import nullcontext

    x = 0
    for i in range_constexpr(3):
        with nullcontext() as z:
            if i == 1:
                continue
            x += i * n
    return x


def booleans(n, m):
    b = False
    for i in range(n):
        b = b or i == m
    c = not b and n > 0
    return b, c, (b if n > 1 else c)


def extremes_and_assert(n, m):
    x = max(n, m) if n != m else min(n, 0)
    x = abs(x) if not (n == 0 or m == 0) else x
    assert x is not None and isinstance(n, (int, Int32))
    return x


def ranges_down_and_up(n, m):
    s = 0
    for i in range(n - 1, -1, -1):
        s = s * 2 + i
    for i in range(0, n, 2):
        s += i
    for i in range(m, n):
        s -= i
    return s


PROGRAMS = [
    items_of_a_list,
    items_of_a_dict,
    endless_loop_with_static_break,
    list_of_lambdas,
    ternaries_and_sums_of_truths,
    while_with_elif,
    scheduler,
    dataclass_of_two_names,
    nested_functions,
    starred_targets,
    raise_caught_at_trace_time,
    walrus_in_a_condition,
    names_deleted,
    import_in_a_branch,
    python_loop_around_a_loop,
    continue_inside_with,
    booleans,
    extremes_and_assert,
    ranges_down_and_up,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    agrees(program, INPUTS)
