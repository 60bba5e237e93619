"""Objects in control flow: tuples, dataclasses, closures, classes, nested functions, against Python."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from typing import Any, NamedTuple

from tests.lang.control.harness import agrees, compiled, trace
from tests.lang.control.programs import State
from tilewright.lang import control
from tilewright.lang.control import const_expr
from tilewright.lang.numbers.numeric import Float16, Float32
from tilewright.lang.rewrite import is_rewritten, rewrite

SMALL = list(itertools.product(range(-4, 5), repeat=2))
TRIPLES = list(itertools.product(range(-3, 4), repeat=3))


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    tag: str = "t"


@dataclasses.dataclass
class Box:
    x: Any
    n: int = 2


def test_aggregates():
    def f(a, b):
        pair, point, frozen, table = (a, (b, 1)), Point(a, b), Frozen(a), {"k": a, "n": None}
        for i in range(b):
            pair = (pair[0] + i, (pair[1][0] - 1, 1))
            point = point._replace(x=point.y, y=point.x)
            frozen = Frozen(frozen.x * 2 % 100)
            table["k"] += pair[0]
        if a > b:
            point = Point(0, point.y)
            pair = (pair[0], (7, 1))
        assert isinstance(point, Point) and frozen.tag == "t" and table["n"] is None
        assert const_expr(pair[1][1]) == 1
        return pair[0], pair[1][0], point.x, point.y, frozen.x, table["k"]

    agrees(f, SMALL)


def test_attributes_and_items_assigned_in_regions():
    def f(a, b):
        box, items = Box(a + 0), [a, b, 3]
        held = (box, items)
        for i in range(b):
            box.x += i
            items[1] = items[0] + box.x
        if a > 0:
            box.x = items[1]
            items[2] = 5
        else:
            items[0] = 1
        return held[0].x, held[1][0], held[1][1], held[1][2], box.n

    agrees(f, SMALL)


def test_attributes_changed_by_a_method_in_a_branch():
    class Counter:
        def __init__(self, n: Any) -> None:
            self.n = n

        def bump(self) -> None:
            self.n = self.n + 1

    def f(a, b):
        counter = Counter(a)
        if b > 0:
            counter.bump()
        else:
            counter.bump()
            counter.bump()
        return counter.n

    agrees(f, SMALL)


def test_attributes_changed_by_a_method_in_a_loop():
    class Counter:
        step = 1

        def __init__(self, n: Any) -> None:
            self.n = n
            self.turns = 0
            self.inner: Any = [n, self]

        def bump(self) -> None:
            self.n = self.n + self.step
            self.turns += 2
            self.inner[0] = self.inner[0] - self.turns

    def f(a, b):
        counter = Counter(a)
        for _ in range(b):
            counter.bump()
        while counter.turns < 9:
            counter.bump()
        return counter.n, counter.turns, counter.inner[0]

    agrees(f, SMALL)


def test_static_attributes_of_a_state_change_in_a_loop():
    class Tagged(State):
        def __init__(self, count: Any) -> None:
            super().__init__(count)
            self.turns = 0

        def advance(self, by: Any) -> None:
            super().advance(by)
            self.turns += 1

    def f(n, m):
        state = Tagged(n + 0)
        alias = state
        for i in range(m):
            state.advance(i)
        return state.count, alias.turns

    agrees(f, SMALL)


def test_closures_changed_by_a_call_in_a_loop():
    def f(n, m):
        total = 0

        def add(v):
            nonlocal total
            total += v

        for i in range(n):
            add(i)
            if i > 1:
                add(m)
        return total

    agrees(f, SMALL)


def test_nonlocal_and_closures():
    scale = 3

    def f(a, b):
        total = 0

        def add(v):
            nonlocal total
            total = total + v * scale

        if a > b:
            add(a)
        add(1)

        def twice(g, v):
            return g(g(v))

        return total + twice(lambda v: v + 1 if v > 0 else v - 1, b)

    agrees(f, SMALL)


def test_methods_super_and_private_names():
    class Base:
        def value(self, a):
            return a + 1

    class Derived(Base):
        __secret = 5

        def value(self, a):
            if a > 0:
                a = super().value(a) + self.__secret
            return a

    plain = Derived()
    derived = rewrite(Derived.value)
    assert compiled(lambda a: derived(plain, a))(3) == plain.value(3) == 9
    assert compiled(lambda a: derived(plain, a))(-3) == -3


def test_with_keeps_python_meaning():
    log = []

    class Manager:
        def __enter__(self):
            log.append("in")
            return 5

        def __exit__(self, *error):
            log.append("out")

    def f(a):
        with Manager() as five, Manager():
            x = a + five
        return x

    assert compiled(f)(1) == 6
    assert log == ["in", "in", "out", "out"]


def test_with_that_stands_for_a_region():
    class When:
        __tw_region__ = True

        def __init__(self, test: Any) -> None:
            self.test = test

        def __tw_predicate__(self) -> Any:
            return self.test

    def f(a):
        x = 1
        with When(a > 0):
            x = a
        return x

    native = compiled(f)
    assert [native(a) for a in (-1, 0, 5)] == [1, 1, 5]
    assert "scf.if" in trace(f)


def test_match_and_try():
    def f(a):
        match const_expr(2):
            case 1:
                x = a
            case 2 | 3:
                x = a * 2
                if a > 3:
                    x = 0
        try:
            if a > 1:
                x += 1
            {}["missing"]
        except KeyError:
            x += 10
        finally:
            x += 100
        return x

    agrees(f, [(a,) for a in range(6)])


def test_comprehensions_and_generators():
    def f(a, b):
        xs = [x * a if x > 1 else x for x in range(4) if x != 2]
        return sum(xs), max(xs), min([a, b, 0]), any(x > b for x in xs), all(x > b for x in xs)

    agrees(f, SMALL)


def test_builtins_on_runtime_values():
    def f(a, b):
        return max(a, b), min(a, b, 1), abs(a), bool(a), int(b), a in (1, b), a not in [2, 3], not a

    agrees(f, SMALL)


def test_extremes_of_whatever_is_iterated():
    def f(a, b):
        items = {"a": a, "b": b}
        most, least = max(x * a for x in range(3)), min(items.values())
        return most, least, max((x for x in (a, b)), default=7), max([], default=7), min(map(abs, (a, b)))

    agrees(f, SMALL)


def test_lists_are_compared_item_by_item():
    def f(a, b):
        return [a, 1] == [b, a], [a, b] != [b, a], [a] == [a, b], [a, b] == (a, b)

    agrees(f, SMALL)


def test_minimum_of_floats_is_pythons_also_for_nan():
    def f(a, b):
        return max(a, b), min(a, b), max(a, 0.0)

    native = compiled(f, Float32, Float32)
    assert native(1.5, -2.0) == (1.5, -2.0, 1.5)
    nan = float("nan")
    for arguments in [(nan, 1.0), (1.0, nan), (-0.0, 0.0)]:
        assert repr(native(*arguments)) == repr(f(*arguments))
    assert compiled(lambda a: max(a, 0.0), Float16).results == [Float16]


def test_floats_and_conversions():
    def f(a):
        return int(a), float(int(a))

    agrees(f, [(2.75,), (-2.75,), (0.0,)], Float32)


def test_shadowed_builtins_are_left_alone():
    def f(a):
        def range(n):
            return (n, n)

        def max(x, y):
            return 7

        total = 0
        for x in range(a):
            total += x
        return total + max(1, 2)

    agrees(f, [(3,)])


def test_loop_wishes_become_attributes():
    def f(n):
        total = 0
        for i in control.range(n, unroll=4, prefetch_stages=2, vectorize=True):
            total += i
        for i in control.range(4, unroll_full=True):
            total += i
        return total

    text = trace(f)
    for wish in ("tilewright.unroll = 4", "tilewright.prefetch_stages = 2", "tilewright.vectorize", "unroll_full"):
        assert wish in text


def test_plain_range_is_a_loop_also_for_constants():
    def f(a):
        total = a
        for i in range(4):
            total += i
        return total

    assert "scf.for" in trace(f)
    agrees(f, [(3,)])


def test_outside_tracing_everything_is_python():
    def f(a, b):
        for i in range(a):
            if i == b:
                break
            if i > 7:
                return "early"
        else:
            return "none"
        while True:
            a -= 1
            if a < 0:
                return i, a

    again = rewrite(f)
    for arguments in [(3, 1), (20, 30), (2, 5)]:
        assert again(*arguments) == f(*arguments)


def test_rewriting_keeps_the_function():
    y = 3

    def f(a: int, b: float = 2.0, *, c: str = "c") -> int:
        """Doc."""
        if a > 0:
            a += y
        return a

    f.note = "kept"
    made = rewrite(f)
    assert made.__wrapped__ is f and made.__doc__ == "Doc." and made.note == "kept"
    assert made.__defaults__ == (2.0,) and made.__kwdefaults__ == {"c": "c"} and made.__globals__ is globals()
    assert made.__annotations__ == f.__annotations__ and made.__qualname__ == f.__qualname__
    assert made.__code__.co_filename == __file__
    assert rewrite(made) is made and is_rewritten(made) and not is_rewritten(f)
    y = 10
    assert made(1) == 11


def test_local_classes_keep_their_qualified_name():
    def f(a):
        class Local:
            """Local."""

            def method(self):
                return a if a > 0 else -a

        if a is not None:

            class Inner:
                pass

        return Local, Inner

    for plain, made in zip(f(1), rewrite(f)(1), strict=True):
        assert made.__qualname__ == plain.__qualname__
    assert rewrite(f)(-1)[0]().method() == 1


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def test_recursion_calls_what_the_name_holds():
    made = rewrite(factorial)
    assert made(5) == 120

    def local(n):
        return 0 if n == 0 else local(n - 1) + n

    assert rewrite(local)(4) == 10


def test_frames_point_to_the_users_lines():
    lines = []

    def note():
        lines.append(sys._getframe(1).f_lineno)

    def f(a):
        if a > 0:
            note()
        for _ in range(a):
            note()
        return a

    trace(f)
    first = f.__code__.co_firstlineno
    assert lines == [first + 2, first + 4]


def test_decorators_are_stripped_once():
    seen = []

    def decorate(fn):
        seen.append(fn.__name__)
        return fn

    @decorate
    @functools.wraps(decorate)
    def f(a):
        return a if a > 0 else -a

    f = f.__wrapped__ if hasattr(f, "__wrapped__") else f
    assert len(seen) == 1
