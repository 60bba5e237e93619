"""Run-time extents by brute force: what is answered is right for all values of the symbols that satisfy the facts.

Symbols take several values, 1 among them; the values of a composition are those of the left layout at the right one's,
past its end and below its start too.
"""

import random

import pytest

from tests.layout import oracle
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    blocked_product,
    coalesce,
    common_sub_layout,
    complement,
    composition,
    downcast,
    evaluate,
    flatten_to_tuple,
    is_bijective,
    is_static,
    logical_divide,
    logical_product,
    max_common_layout,
    nullspace,
    product,
    raked_product,
    right_inverse,
    runtime_checks,
    sym_int,
    tile_to_shape,
    upcast,
    zipped_divide,
)
from tilewright.layout.dynamic import mul

SYMBOLS = {
    "n": (1, (1, 1, 2, 3, 4, 5, 8)),
    "m": (4, (4, 4, 8, 12)),
    "k": (3, (3, 3, 6, 12)),
    "h": (2, (2, 2, 4, 6, 8)),
    "s": (1, (1, 1, 2, 6, 12)),
    "t": (1, (1, 1, 2, 3, 7, 28)),
}
"""Divisor and values of each symbol."""
MOST = 3000
"""The most elements that are compared."""


def symbol(rng):
    name = rng.choice(list(SYMBOLS))
    return sym_int(SYMBOLS[name][0], name=name)


def an_extent(rng):
    pick = rng.random()
    if pick < 0.25:
        return 1
    if pick < 0.55:
        return rng.choice([2, 3, 4, 6, 8])
    if pick < 0.9:
        return symbol(rng)
    return mul(symbol(rng), rng.choice([2, 3]) if rng.random() < 0.5 else symbol(rng))


def a_layout(rng, most=3, negative=True):
    shape, stride, below = [], [], 1
    for _ in range(rng.randint(1, most)):
        extent = an_extent(rng)
        odd = [0, 1, 2, 3, 4, 6, 16, 100, symbol(rng), symbol(rng) * 4, *([-1, -4] if negative else [])]
        shape.append(extent)
        stride.append(below if rng.random() < 0.6 else rng.choice(odd))
        below = mul(extent, below) if rng.random() < 0.8 else rng.choice([1, 2, 8, 100, symbol(rng)])
    if len(shape) > 1 and rng.random() < 0.3:
        shape[-1] = 1
    if len(shape) == 1 and rng.random() < 0.5:
        return Layout(shape[0], stride[0])
    if len(shape) == 3 and rng.random() < 0.3:
        return Layout((shape[0], tuple(shape[1:])), (stride[0], tuple(stride[1:])))
    return Layout(tuple(shape), tuple(stride))


def positive(rng, most=2):
    return a_layout(rng, most, negative=False)


def a_tile(rng):
    pick = rng.random()
    return rng.choice([1, 2, 3, 4, 8, 16]) if pick < 0.3 else symbol(rng) if pick < 0.5 else positive(rng)


def a_target(rng):
    sums = [symbol(rng) * 4, symbol(rng), mul(symbol(rng), symbol(rng)), 16, 24]
    return rng.choice(
        [*sums, (symbol(rng), mul(symbol(rng), symbol(rng))), (symbol(rng) * 2, symbol(rng), symbol(rng))]
    )


def a_tiled_shape(rng):
    block = positive(rng)
    block = block if isinstance(block.shape, tuple) else Layout((block.shape,), (block.stride,))
    return block, tuple(mul(product(x), rng.choice([1, 2, 3, symbol(rng)])) for x in block.shape)


def instance(value, env):
    if isinstance(value, Layout):
        return Layout(evaluate(value.shape, env), evaluate(value.stride, env))
    return evaluate(value, env)


def at(layout, x):
    return oracle.value(layout.shape, layout.stride, x)


def composes(a, b, r):
    assert oracle.refines(b.shape, r.shape)
    assert oracle.values(r) == [at(a, x) for x in oracle.values(b)]


def covers(tile, rest, count):
    """`tile + rest` reaches every index below `count`, none twice."""
    points, distinct = oracle.values(rest), set(oracle.values(tile))
    reached = {x + y for x in points for y in distinct}
    assert len(reached) == len(points) * len(distinct)
    assert reached >= set(range(count))


def divides(a, tile, r, rest):
    count = oracle.size(a)
    tile = tile if isinstance(tile, Layout) else Layout(tile)
    if not 0 < count * oracle.size(rest) * oracle.size(tile) < MOST**2:
        return
    covers(tile, rest, count)
    points = [x + y for x in oracle.values(rest) for y in oracle.values(tile)]
    values = oracle.values(r)
    assert len(points) == len(values)
    assert all(v == at(a, x) for x, v in zip(points, values, strict=True) if x < count)


def is_disjoint(a, b, r):
    """Copies of `a` by `b` do not overlap, however often either takes one value itself."""
    if oracle.size(r) < MOST:
        assert oracle.size(r) == oracle.size(a) * oracle.size(b)
        assert len(set(oracle.values(r))) == len(set(oracle.values(a))) * len(set(oracle.values(b)))


def tiles(a, target, r):
    if oracle.size(r) < MOST:
        for wanted, part, made in zip(target, a.shape, r.shape, strict=True):
            inside = oracle.size(Layout(part))
            assert oracle.size(Layout(made)) == -(-wanted // inside) * inside
        assert len(set(oracle.values(r))) == len(set(oracle.values(a))) * (oracle.size(r) // oracle.size(a))


def inverts(a, r):
    assert [at(a, x) for x in oracle.values(r)] == list(range(oracle.size(r)))


def agrees(a, b, r):
    for x in oracle.values(r):
        assert x >= min(oracle.size(a), oracle.size(b)) or at(a, x) == at(b, x)


def in_common(a, b, r):
    for i, x in enumerate(oracle.values(r)):
        assert at(a, x) == at(b, x) == i


def parts(count):
    def check(a, r):
        assert sorted(oracle.values(r)) == sorted(x * count + i for x in oracle.values(a) for i in range(count))

    return check


def groups(count):
    def check(a, r):
        assert set(oracle.values(r)) == {x // count for x in oracle.values(a)}

    return check


CASES = {
    "composition": (composition, lambda rng: (a_layout(rng), a_layout(rng, 2)), composes),
    "logical_divide": (logical_divide, lambda rng: (a_layout(rng), a_tile(rng)), divides),
    "zipped_divide": (zipped_divide, lambda rng: (a_layout(rng), a_tile(rng)), divides),
    "complement": (complement, lambda rng: (positive(rng), a_target(rng)), None),
    "logical_product": (logical_product, lambda rng: (positive(rng), positive(rng)), is_disjoint),
    "blocked_product": (blocked_product, lambda rng: (positive(rng), positive(rng)), is_disjoint),
    "raked_product": (raked_product, lambda rng: (positive(rng), positive(rng)), is_disjoint),
    "tile_to_shape": (tile_to_shape, a_tiled_shape, tiles),
    "right_inverse": (right_inverse, lambda rng: (a_layout(rng),), inverts),
    "coalesce": (coalesce, lambda rng: (a_layout(rng),), lambda a, r: oracle.values(a) == oracle.values(r) or 1 / 0),
    "nullspace": (
        nullspace,
        lambda rng: (a_layout(rng),),
        lambda a, r: any(at(a, x) for x in oracle.values(r)) and 1 / 0,
    ),
    "common_sub_layout": (common_sub_layout, lambda rng: (a_layout(rng), a_layout(rng)), agrees),
    "max_common_layout": (max_common_layout, lambda rng: (a_layout(rng), a_layout(rng)), in_common),
    "upcast 2": (lambda a: upcast(a, 2), lambda rng: (positive(rng, 3),), groups(2)),
    "upcast 4": (lambda a: upcast(a, 4), lambda rng: (positive(rng, 3),), groups(4)),
    "downcast 2": (lambda a: downcast(a, 2), lambda rng: (positive(rng, 3),), parts(2)),
}


def environments(rng, facts, arguments, count=5):
    """Values of the symbols that satisfy the facts, at which the arguments are neither empty nor long."""
    for _ in range(count):
        env = {name: rng.choice(values) for name, (_, values) in SYMBOLS.items()}
        if not all(fact.holds(env) for fact in facts):
            continue
        sizes = [oracle.size(instance(value, env)) for value in arguments if isinstance(value, Layout)]
        if all(0 < size < MOST for size in sizes):
            yield env


@pytest.mark.parametrize("checked", [False, True], ids=["proved", "checked"])
@pytest.mark.parametrize("name", CASES)
def test_every_answer_is_right_for_every_instance(name, checked):
    function, make, check = CASES[name]
    answers = 0
    for number in range(600 if name == "composition" else 200):
        rng = random.Random(f"{name} {number}")
        arguments = make(rng)
        if is_static(tuple(arguments)):
            continue
        facts = []
        try:
            if checked:
                with runtime_checks(facts.append):
                    r = function(*arguments)
            else:
                r = function(*arguments)
        except LayoutError:
            continue
        answers += 1
        for env in environments(rng, facts, arguments):
            given, made = [instance(value, env) for value in arguments], instance(r, env)
            try:
                if check is None:
                    size = oracle.size(Layout(given[1]))
                    if oracle.size(made) * oracle.size(given[0]) < MOST:
                        covers(given[0], made, size)
                elif check is divides:
                    with runtime_checks(facts.append):
                        tile = arguments[1] if isinstance(arguments[1], Layout) else Layout(arguments[1])
                        count = product(arguments[0].shape)
                        rest = complement(tile, count if type(count) is int else coalesce(arguments[0]).shape)
                    check(*given, made, instance(rest, env))
                else:
                    check(*given, made)
            except (AssertionError, ZeroDivisionError) as wrong:
                raise AssertionError(f"{name} {arguments} = {r}, {[str(f) for f in facts]}, {env}") from wrong
    assert answers > 20


def leaves(layout):
    return flatten_to_tuple(layout.shape) + flatten_to_tuple(layout.stride)


def test_bijectivity_of_every_instance():
    known = {True: 0, False: 0}
    for number in range(300):
        rng = random.Random(number)
        a = a_layout(rng)
        try:
            answer = is_bijective(a)
        except LayoutError:
            continue
        known[answer] += 1
        for env in environments(rng, (), (a,)):
            values = sorted(oracle.values(instance(a, env)))
            assert answer == (values == list(range(len(values)))), (leaves(a), env)
    assert known[True] > 10 < known[False]


# Past the end of a layout whose last mode has one element


def test_what_was_found_in_use():
    m = sym_int(3, name="m")
    with pytest.raises(LayoutError, match="it is not known that 29 is at most 3\\*\\(m/3\\)"):
        composition(Layout((m, 1), (1, 0)), Layout((4, 2), (4, 16)))
    facts = []
    with runtime_checks(facts.append):
        r = composition(Layout((m, 1), (1, 0)), Layout((4, 2), (4, 16)))
    assert [str(fact) for fact in facts] == ["29 is at most 3*(m/3)"]
    assert not facts[0].holds({"m": 9}) and facts[0].holds({"m": 30})
    composes(Layout((30, 1), (1, 0)), Layout((4, 2), (4, 16)), instance(r, {"m": 30}))
    s, t = sym_int(name="s"), sym_int(name="t")
    r = composition(Layout((1, 1), (s, t)), Layout((4, 2), (1, 16)))
    for env in ({"s": 6, "t": 28}, {"s": 1, "t": 1}, {"s": 28, "t": 6}):
        left = instance(Layout((1, 1), (s, t)), env)
        composes(left, Layout((4, 2), (1, 16)), instance(r, env))
        assert instance(r, env) == composition(left, Layout((4, 2), (1, 16)))


def test_known_to_stay_inside():
    m, n = sym_int(8, name="m"), sym_int(name="n")
    assert str(composition(Layout((m, 1), (1, 0)), Layout((4, 2), (1, 4)))) == "(4,2):(1,4)"
    assert str(composition(Layout((n, 1), (1, 0)), Layout(n))) == "?:1"
    assert str(composition(Layout((n, 1), (3, n * 3)), Layout(1000))) == "1000:3"  # the last mode goes on
    assert str(composition(Layout((m, n, 1), (n, 1, 7)), Layout((2, n), (1, m)))) == "(2,?):(?,1)"


def test_known_to_go_past_the_end():
    n, s = sym_int(name="n"), sym_int(name="s")
    r = composition(Layout((4, 1), (1, s)), Layout((8, n), (1, 8)))
    assert str(r) == "((4,2),?):((1,?),?{div=2})"
    for env in ({"n": 1, "s": 5}, {"n": 3, "s": 4}, {"n": 2, "s": 1}):
        composes(instance(Layout((4, 1), (1, s)), env), instance(Layout((8, n), (1, 8)), env), instance(r, env))


def test_below_the_start():
    m, n = sym_int(4, name="m"), sym_int(name="n")
    with pytest.raises(LayoutError, match="leads below the start of a mode whose extent is known only at run time"):
        composition(Layout((m, 4), (1, 100)), Layout(3, -1))
    with pytest.raises(LayoutError, match="leads below the start"):
        composition(Layout((m, 1), (1, 100)), Layout(3, -1))
    assert str(composition(Layout((4, n), (1, 100)), Layout(3, -4))) == "3:-100"


@pytest.mark.parametrize(
    ("layout", "tile"),
    [
        (lambda t, s, m: Layout((t, s), (1, t)), lambda t, s, m: Layout((t, m), (1, t))),
        (lambda t, s, m: Layout((t, s), (3, t * 3)), lambda t, s, m: Layout((t, m), (1, t))),
        (lambda t, s, m: Layout((2, t, s), (1, 2, t * 2)), lambda t, s, m: t * 2 * m),
        (lambda t, s, m: Layout((t, s), (1, t)), lambda t, s, m: t),
    ],
)
def test_tiles_that_end_inside_a_later_mode(layout, tile):
    """The rest of a run-time shape is stepped through in whole tiles, whichever mode they end in."""
    t, s, m = sym_int(name="t"), sym_int(name="s"), sym_int(4, name="m")
    a, b = layout(t, s, m), tile(t, s, m)
    b = b if isinstance(b, Layout) else Layout(b)
    r = logical_divide(a, b)
    for env in (
        {"t": 28, "s": 12, "m": 8},
        {"t": 3, "s": 8, "m": 4},
        {"t": 1, "s": 5, "m": 4},
        {"t": 2, "s": 1, "m": 8},
    ):
        left, right = instance(a, env), instance(b, env)
        rest = instance(complement(b, coalesce(a).shape), env)
        divides(left, right, instance(r, env), rest)
