"""Names that may be one object after a runtime branch or loop: right where nobody can tell, an error where one can."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import CompileError, Int32


class State:
    """A state object of the DynamicExpression protocol, as pipelines use them."""

    def __init__(self, count):
        self.count = count

    def advance(self, by):
        self.count = self.count + by

    def __extract_mlir_values__(self):
        return self.count.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values):
        return State(self.count.__new_from_mlir_values__(values))


@dataclass
class Record:
    count: Int32

    def advance(self, by):
        self.count = self.count + by


def executor(function, kind):
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        function(x, out, kind, Int32)

    return cute.compile(host, np.zeros(3, np.int32), np.zeros(3, np.int32))


# Programs in which a copy and an alias cannot be told apart.


@cute.jit
def only_read(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    if x[0] > 0:
        s = other
    out[0], out[1] = s.count, other.count


@cute.jit
def others_are_done_with(x, out, kind, number):
    a, b = kind(number(x[1])), kind(number(x[2]))
    s = a if x[0] > 0 else b
    s.advance(100)
    out[0] = s.count


@cute.jit
def swapped(x, out, kind, number):
    a, b = kind(number(x[1])), kind(number(x[2]))
    if x[0] > 0:
        a, b = b, a
    a.advance(1)
    b.advance(10)
    out[0], out[1] = a.count, b.count


@cute.jit
def made_in_the_branch(x, out, kind, number):
    s = kind(number(x[1]))
    if x[0] > 0:
        s = kind(number(x[2]))
    s.advance(1)
    out[0] = s.count


@cute.jit
def changed_before(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    other.advance(5)
    if x[0] > 0:
        s = other
    out[0], out[1] = s.count, other.count


@cute.jit
def changed_in_the_branch_under_all_names(x, out, kind, number):
    s = kind(number(x[1]))
    other = s
    if x[0] > 0:
        s.advance(7)
    out[0], out[1] = s.count, other.count


@cute.jit
def followed_in_a_loop(x, out, kind, number):
    first, second = kind(number(x[1])), kind(number(x[2]))
    for _ in range(x[0] + 2):
        first, second = second, kind(first.count + second.count)
    out[0], out[1] = first.count, second.count


RIGHT = [only_read, others_are_done_with, swapped, made_in_the_branch, changed_before,
         changed_in_the_branch_under_all_names, followed_in_a_loop]  # fmt: skip


@pytest.mark.parametrize("kind", [State, Record])
@pytest.mark.parametrize("function", RIGHT, ids=lambda item: item.function.__name__)
def test_what_nobody_can_tell_is_right(function, kind):
    compiled = executor(function, kind)
    for condition in (0, 1):
        x, out, wanted = np.array([condition, 5, 7], np.int32), np.zeros(3, np.int32), [0, 0, 0]
        compiled(x, out)
        function.function(x.tolist(), wanted, kind, int)
        assert out.tolist() == wanted, condition


# Programs in which Python would show a change under both names.


@cute.jit
def the_other_changes(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    if x[0] > 0:
        s = other
    other.advance(100)
    out[0], out[1] = s.count, other.count


@cute.jit
def the_new_one_changes(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    if x[0] > 0:
        s = other
    s.advance(100)
    out[0], out[1] = s.count, other.count


@cute.jit
def an_attribute_is_assigned(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    if x[0] > 0:
        s = other
    other.count = other.count + 1
    out[0], out[1] = s.count, other.count


@cute.jit
def the_first_name_changes(x, out, kind, number):
    other, first = kind(number(x[2])), kind(number(x[1]))
    s = first
    if x[0] > 0:
        s = kind(other.count)
    first.advance(100)
    out[0], out[1] = s.count, first.count


@cute.jit
def in_an_expression(x, out, kind, number):
    first, second = kind(number(x[1])), kind(number(x[2]))
    s = first if x[0] > 0 else second
    s.advance(100)
    out[0], out[1] = s.count, first.count


@cute.jit
def in_a_list(x, out, kind, number):
    both = [kind(number(x[1])), kind(number(x[2]))]
    s = both[0]
    if x[0] > 0:
        s = both[1]
    both[1].advance(100)
    out[0], out[1] = s.count, both[1].count


@cute.jit
def in_a_tuple(x, out, kind, number):
    other, s = kind(number(x[2])), (kind(number(x[1])), 0)
    if x[0] > 0:
        s = (other, 1)
    other.advance(100)
    out[0], out[1] = s[0].count, other.count


@cute.jit
def changed_in_a_later_loop(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    if x[0] > 0:
        s = other
    for i in range(x[1]):
        other.advance(i)
    out[0], out[1] = s.count, other.count


@cute.jit
def merged_in_a_loop_body(x, out, kind, number):
    other = kind(number(x[2]))
    for _ in range(x[1]):
        s = kind(number(x[1]))
        if x[0] > 0:
            s = other
        s.advance(1)
        out[0], out[1] = s.count, other.count


@cute.jit
def after_a_loop(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    for _ in range(x[0]):
        s = other
    other.advance(100)
    out[0], out[1] = s.count, other.count


@cute.jit
def behind_in_a_loop(x, out, kind, number):
    s, other = kind(number(x[1])), kind(number(x[2]))
    for _ in range(x[0]):
        other.advance(1)
        out[0] = s.count
        s = other
    out[1] = other.count


WRONG = {
    the_other_changes: ("`s`", "`other`"),
    the_new_one_changes: ("`s`", "`other`"),
    an_attribute_is_assigned: ("`s`", "`other`"),
    the_first_name_changes: ("`s`", "`first`"),
    in_an_expression: ("the conditional expression", "`first`"),
    in_a_list: ("`s`", "`both[1]`"),
    in_a_tuple: ("`s[0]`", "`other`"),
    changed_in_a_later_loop: ("`s`", "`other`"),
    merged_in_a_loop_body: ("`s`", "`other`"),
    after_a_loop: ("`s`", "`other`"),
    behind_in_a_loop: ("`s`", "`other`"),
}


@pytest.mark.parametrize("kind", [State, Record])
@pytest.mark.parametrize("function", WRONG, ids=lambda item: item.function.__name__)
def test_what_python_would_show_under_both_names_is_an_error(function, kind):
    with pytest.raises(CompileError) as caught:
        executor(function, kind)
    shown = str(caught.value)
    first, second = WRONG[function]
    assert f"{first} and {second} may be one object after a runtime" in shown
    assert __file__ in shown and ("x[0] > 0" in shown or "range(x[0])" in shown)


def test_helpers_pass_aliases_on():
    def pick(a, b, condition):
        return a if condition else b

    pick = cute.jit(pick)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        first, second = State(Int32(x[1])), State(Int32(x[2]))
        s = pick(first, second, x[0] > 0)
        second.advance(1)
        out[0], out[1] = s.count, second.count

    with pytest.raises(CompileError, match="may be one object after a runtime `if`"):
        cute.compile(host, np.zeros(3, np.int32), np.zeros(3, np.int32))
