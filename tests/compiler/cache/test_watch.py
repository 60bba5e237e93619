"""What a direct call asks before it runs what it ran before: has anything changed, by identity?"""

from __future__ import annotations

import collections
import types

import pytest

from tilewright.compiler.cache.watch import Watch


class Holder:
    """An object with attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def function():
    pass


def cell():
    n = 1
    return (lambda: n).__closure__[0]


EQUAL, OTHER = [1], [1]  # equal, and not the same
CASES = {
    "entry": (lambda: {"a": EQUAL}, lambda w, x: w.entry(x, "a"), lambda x: x.update(a=OTHER)),
    "missing entry": (dict, lambda w, x: w.entry(x, "a"), lambda x: x.update(a=None)),
    "entry taken away": (lambda: {"a": None}, lambda w, x: w.entry(x, "a"), dict.clear),
    "attribute": (lambda: Holder(a=EQUAL), lambda w, x: w.attributes(x, ["a"]), lambda x: setattr(x, "a", OTHER)),
    "missing attribute": (Holder, lambda w, x: w.attributes(x, ["a"]), lambda x: setattr(x, "a", None)),
    "cell": (cell, lambda w, x: w.cell(x), lambda x: setattr(x, "cell_contents", OTHER)),
    "cell emptied": (cell, lambda w, x: w.cell(x), lambda x: delattr(x, "cell_contents")),
    "empty cell": (types.CellType, lambda w, x: w.cell(x), lambda x: setattr(x, "cell_contents", None)),
    "value": (lambda: {"a": EQUAL, "b": 2}, lambda w, x: w.mapping(x), lambda x: x.update(a=OTHER)),
    "order": (lambda: {"a": 1, "b": 1}, lambda w, x: w.mapping(x), lambda x: x.update(a=x.pop("a"))),
    "added": (lambda: {"a": 1}, lambda w, x: w.mapping(x), lambda x: x.update(b=2)),
    "removed": (lambda: {"a": 1}, lambda w, x: w.mapping(x), lambda x: x.pop("a")),
    "added to nothing": (dict, lambda w, x: w.mapping(x), lambda x: x.update(b=2)),
    "of a class": (lambda: type("A", (), {"a": 1}), lambda w, x: w.state(x), lambda x: setattr(x, "a", OTHER)),
    "of a function": (
        lambda: types.FunctionType(function.__code__, {}), lambda w, x: w.state(x), lambda x: setattr(x, "n", 1)
    ),
    "dict of a function": (
        lambda: types.FunctionType(function.__code__, {}), lambda w, x: w.state(x),
        lambda x: setattr(x, "__dict__", {"n": 1}),
    ),
    "object": (lambda: Holder(a=EQUAL), lambda w, x: w.object_(x), lambda x: setattr(x, "a", OTHER)),
    "dict of an object": (lambda: Holder(a=1), lambda w, x: w.object_(x), lambda x: setattr(x, "__dict__", {"a": 1})),
    "class": (Holder, lambda w, x: w.class_of(x), lambda x: setattr(x, "__class__", type("B", (), {}))),
    "item": (lambda: [EQUAL, 2], lambda w, x: w.items(x), lambda x: x.__setitem__(0, OTHER)),
    "length": (lambda: [1, 2], lambda w, x: w.items(x), lambda x: x.append(3)),
    "first item": (list, lambda w, x: w.items(x), lambda x: x.append(3)),
    "deque": (lambda: collections.deque([1, 2]), lambda w, x: w.items(x), lambda x: x.rotate()),
    "check": (set, lambda w, x: w.check(x, lambda: not x), lambda x: x.add(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen_among_others(name):
    """Things of one kind are compared together: one that changes lies between two that do not."""
    make, watch_it, change = CASES[name]
    watch, things = Watch(), [make() for _ in range(3)]
    for thing in things:
        watch_it(watch, thing)
    for other_make, other_watch, _ in CASES.values():
        other = other_make()
        things.append(other)
        other_watch(watch, other)
    still_valid = watch.still_valid()
    assert still_valid() and still_valid()
    change(things[1])
    assert not still_valid()


def test_attributes_of_objects_may_be_left_out():
    watch, thing = Watch(), Holder(a=1)
    watch.object_(thing)
    thing.b = 2
    assert watch.still_valid(objects=False)() and watch.still_valid()() is False
    assert [(held is thing, before) for held, before in watch.objects()] == [(True, {"a": 1})]
