"""State of Python objects that runtime branches and loops change: carried as Python has it, or an error, never lost."""

from __future__ import annotations

import array
import collections
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright.base.errors import CompileError

INPUTS = [0, 1, 2, 3, 5, 7]


class Plain:
    pass


class Defaults:
    """Attributes live on the class until a method assigns them."""

    n = 3
    tag = 1

    def up(self, by: Any) -> None:
        self.n = self.n + by


class Node:
    def __init__(self, value: Any, following: Any) -> None:
        self.value = value
        self.following = following


def made_in_both_arms(x, i):
    s, d = Plain(), {}
    if x > 2:
        s.v = 5
        d["a"] = i
    else:
        s.v = 6
        d["a"] = x
    return s.v * 10 + d["a"]


def class_default_then_own_in_a_loop(x, i):
    s = Defaults()
    alias = s
    for k in range(x):
        s.up(k)
    return alias.n


def class_default_then_own_in_a_branch(x, i):
    s = Defaults()
    alias = s
    if x > 2:
        s.up(i)
    if x > 3:
        alias.tag = 7
    return alias.n * 10 + s.tag


def class_default_in_a_while(x, i):
    s, k = Defaults(), 0
    while k < x:
        s.tag = s.tag + k
        k += 1
    return s.tag


def attributes_of_a_local_class(x, i):
    class Local:
        n = 0

    for _ in range(x):
        Local.n = Local.n + 1
    if x > 2:
        Local.n = Local.n * 2
    return Local.n


def attributes_of_a_function(x, i):
    def count():
        count.calls = count.calls + i

    count.calls = 0
    for _ in range(x):
        count()
    return count.calls


def items_of_a_deque(x, i):
    q = collections.deque([1, 2], maxlen=2)
    for _ in range(x):
        q[0] += 1
        q.rotate(1)
    return q[0] * 10 + q[1]


def a_chain_of_many_objects(x, i):
    leaf = Node(0, None)
    head = leaf
    for _ in (1,) * 12:
        head = Node(0, head)
    for _ in range(x):
        node = head
        while node.following is not None:
            node = node.following
        node.value = node.value + 1
    return leaf.value


def a_long_list_changed_by_a_call(x, i):
    many = [0] * 5000

    def change(by):
        many[4999] += by

    for k in range(x):
        change(k)
    return many[4999]


def attributes_made_in_every_turn(x, i):
    s = Plain()
    s.total = 0
    for k in range(x):
        s.scratch = k * 2
        s.total = s.total + s.scratch
    return s.total


def values_of_one_arm_in_two_dead_names(x, i):
    r = 0
    if x > 0:
        if x > 1:
            v = 1
            r += v
    else:
        if i > 1:
            v = 2
            r += v
    return r


CARRIED = [
    made_in_both_arms, class_default_then_own_in_a_loop, class_default_then_own_in_a_branch, class_default_in_a_while,
    attributes_of_a_local_class, attributes_of_a_function, items_of_a_deque, a_chain_of_many_objects,
    a_long_list_changed_by_a_call, attributes_made_in_every_turn, values_of_one_arm_in_two_dead_names,
]  # fmt: skip


@pytest.mark.parametrize("function", CARRIED, ids=lambda f: f.__name__)
def test_state_is_carried_as_python_has_it(function):
    wanted = [function(x, i) for i, x in enumerate(INPUTS)]
    traced = cute.jit(function)

    def kernel(x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        out[i] = traced(x[i], i)

    def host(x: cute.Tensor, out: cute.Tensor):
        for i in range(cute.size(x)):
            out[i] = traced(x[i], i)

    x, out = np.array(INPUTS, np.int32), np.zeros(len(INPUTS), np.int32)
    assert on_device(kernel, x, out, block=len(INPUTS))[1].tolist() == wanted
    out[:] = 0
    assert on_host(host, x, out)[1].tolist() == wanted


def _branch(make: Callable[[], Any], change: Callable[[Any], object]) -> Callable[..., None]:
    def body(x: cute.Tensor):
        held = make()
        if x[0] > 2:
            change(held)
        x[0] = 1

    return body


def _loop(make: Callable[[], Any], change: Callable[[Any], object]) -> Callable[..., None]:
    def body(x: cute.Tensor):
        held = make()
        for _ in range(x[0]):
            change(held)
        x[0] = 1

    return body


def _while(make: Callable[[], Any], change: Callable[[Any], object]) -> Callable[..., None]:
    def body(x: cute.Tensor):
        held, k = make(), 0
        while k < x[0]:
            change(held)
            k += 1
        x[0] = 1

    return body


LOST: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "set": (set, lambda s: s.add(1)),
    "bytearray": (lambda: bytearray(2), lambda b: b.__setitem__(0, 7)),
    "array": (lambda: array.array("i", [1]), lambda a: a.append(3)),
    "ndarray": (lambda: np.zeros((2, 3))[:, 1:], lambda a: a.__setitem__((1, 0), 5)),
    "memoryview": (lambda: memoryview(bytearray(2)), lambda m: m.__setitem__(1, 5)),
    "list_iterator": (lambda: iter([1, 2, 3]), next),
    "tuple_iterator": (lambda: iter((1, 2, 3)), next),
    "zip": (lambda: zip((1, 2), (3, 4), strict=True), next),
    "enumerate": (lambda: enumerate((1, 2)), next),
    "map": (lambda: map(abs, (1, 2)), next),
    "count": (itertools.count, next),
    "generator": (lambda: (v for v in (1, 2, 3)), next),
    "dict": (dict, lambda d: d.setdefault("a", 1)),
    "defaultdict": (lambda: collections.defaultdict(int), lambda d: d["n"]),
    "Counter": (collections.Counter, lambda c: c.update("a")),
    "OrderedDict": (lambda: collections.OrderedDict(a=1, b=2), lambda d: d.move_to_end("a")),
    "deque": (collections.deque, lambda q: q.append(1)),
}


@pytest.mark.parametrize("region", [_branch, _loop, _while], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", LOST)
def test_what_cannot_be_carried_is_an_error(kind, region):
    body = region(*LOST[kind])
    with pytest.raises(CompileError, match=rf"the Python {kind} `held` changes .*inside a runtime region") as caught:
        on_device(body, np.array([1], np.int32), block=1)
    line = {_branch: "if x[0] > 2", _loop: "for _ in range(x[0])", _while: "while k < x[0]"}[region]
    assert line in str(caught.value) and "hint: " in str(caught.value)


def test_a_test_of_a_while_takes_no_items():
    def body(x: cute.Tensor):
        items = iter([1, 2, 3])
        while next(items) < x[0]:
            x[0] -= 1

    with pytest.raises(CompileError, match="the Python list_iterator `items` changes"):
        on_device(body, np.array([1], np.int32), block=1)


def test_iterators_and_sets_of_compile_time_are_pythons():
    def body(x: cute.Tensor):
        items, seen = iter([1, 2, 3]), set()
        for k in cutlass.range_constexpr(3):
            seen.add(k % 2)
            x[k] = next(items)
        if x[0] > 0:
            fresh = iter([7, 8])
            x[3] = next(fresh) + next(fresh) + len(seen)

    assert on_device(body, np.zeros(4, np.int32), block=1).tolist() == [1, 2, 3, 17]


ONE_SIDED = {
    "made in one arm": (lambda s, x: None, "`s.v` is used, but only one branch of a runtime `if` gives it a value"),
    "deleted in one arm": (lambda s, x: setattr(s, "v", x[0]), "`s.v` is used, but only one branch"),
}


@pytest.mark.parametrize("kind", ONE_SIDED)
def test_an_attribute_of_one_arm_has_no_value_afterwards(kind):
    before, message = ONE_SIDED[kind]

    def body(x: cute.Tensor):
        s = Plain()
        before(s, x)
        if x[0] > 2:
            if cutlass.const_expr(hasattr(s, "v")):
                del s.v
            else:
                s.v = 5
        x[0] = getattr(s, "v", 0)

    with pytest.raises(CompileError, match=message):
        on_device(body, np.array([1], np.int32), block=1)


def test_an_attribute_made_in_a_loop_is_not_there_in_the_next_turn():
    def body(x: cute.Tensor):
        s = Plain()
        for _ in range(x[0]):
            if cutlass.const_expr(hasattr(s, "n")):
                s.n = s.n + 1
            else:
                s.n = 10

    with pytest.raises(CompileError, match=r"`s\.n` is used, but it has no value if the `for` loop runs zero times"):
        on_device(body, np.array([1], np.int32), block=1)
