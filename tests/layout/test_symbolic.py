"""Run-time extents: arithmetic in normal form; functions that agree with every instance or say what is missing."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout import oracle
from tests.layout.test_divide import without_trailing_units
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    DynamicInt,
    E,
    Layout,
    append,
    ceil_div,
    coalesce,
    complement,
    composition,
    cosize,
    crd2idx,
    divisibility,
    domain_offset,
    downcast,
    elem_less,
    evaluate,
    filter,
    filter_zeros,
    flat_divide,
    group_modes,
    idx2crd,
    is_static,
    local_partition_and_offset,
    local_tile_and_offset,
    logical_divide,
    logical_product,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    nullspace,
    parse,
    product,
    product_each,
    recast_layout,
    right_inverse,
    round_up,
    runtime_checks,
    select,
    shape_div,
    size,
    slice_,
    slice_and_offset,
    sym_int,
    sym_int64,
    tile_to_shape,
    unflatten,
    zipped_divide,
)
from tilewright.layout.dynamic import add, at_most, ceil_div_leaf, floor_div, is_multiple, mod, mul, same, sub


def instance(value, env):
    if isinstance(value, Layout):
        return Layout(evaluate(value.shape, env), evaluate(value.stride, env))
    return evaluate(value, env)


# Arithmetic


def expressions():
    symbols = st.sampled_from([("a", 1), ("b", 4), ("c", 6)]).map(lambda s: sym_int(s[1], name=s[0]))
    leaf = st.one_of(symbols, st.integers(0, 12))
    step = lambda inner: st.one_of(  # noqa: E731
        st.tuples(st.sampled_from("+*-"), inner, inner), st.tuples(st.sampled_from("/%"), inner, st.integers(1, 12))
    )
    return st.recursive(leaf, step, max_leaves=8)


def compute(tree, env=None):
    if not isinstance(tree, tuple):
        return tree.evaluate(env) if env is not None and isinstance(tree, DynamicInt) else tree
    op, left, right = tree[0], compute(tree[1], env), compute(tree[2], env)
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left // right,
        "%": lambda: left % right,
    }[op]()


@given(expressions(), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=400, deadline=None)
def test_arithmetic_agrees_with_ints(tree, a, b, c):
    env = {"a": a, "b": 4 * b, "c": 6 * c}
    symbolic = compute(tree)
    value = compute(tree, env)
    assert evaluate(symbolic, env) == value
    assert value == 0 or divisibility(symbolic) == 0 or value % divisibility(symbolic) == 0


def test_normal_form():
    n, m, k = sym_int(name="n"), sym_int(8, name="m"), sym_int(width=64, name="k")
    assert n * 1 is not None and same(n * 1, n) and n * 0 == 0 and same(n + 0, n) and n - n == 0
    assert same((m // 8) * 8, m) and same((n // 5) * 5 + n % 5, n) and same((n * m) // n, m)
    assert m % 8 == 0 and m % 4 == 0 and (m * n) % 2 == 0 and n // n == 1 and m // m == 1
    assert same((m + 3) // 8, m // 8) and (m + 3) % 8 == 3 and same((n * 6) // 4, (n * 3) // 2)
    assert same(n * m, m * n) and not same(n, sym_int()) and not same(n, 4) and same(sym_int(name="n"), n)
    assert (n + k).width == 64 and (n + m).width == 32 and (n * 12 + m).divisibility == 4
    assert 5 // n is not None and evaluate(100 // n, {"n": 7}) == 14 and evaluate(100 % n, {"n": 7}) == 2
    assert evaluate((n & 6) ^ (n >> 1) << 2, {"n": 13}) == (13 & 6) ^ (13 >> 1) << 2
    assert m.expression() == "8*(m/8)" and (n + 1).expression() == "1 + n"


def test_printing():
    assert [str(x) for x in (sym_int(), sym_int(8), sym_int(width=64), sym_int64(8), sym_int() * 4)] == [
        "?",
        "?{div=8}",
        "?{i64}",
        "?{i64 div=8}",
        "?{div=4}",
    ]


def test_symbols_refuse_bad_facts_and_truth():
    with pytest.raises(LayoutError, match="32 or 64"):
        sym_int(width=16)
    with pytest.raises(LayoutError, match="integer from 1"):
        sym_int(0)
    with pytest.raises(LayoutError, match="no order"):
        elem_less((sym_int(name="n"), 3), (8, 8))
    with pytest.raises(LayoutError, match="truth value"):
        bool(sym_int())
    with pytest.raises(LayoutError, match="multiple of 8"):
        sym_int(8, name="m").evaluate({"m": 12})


def test_leaf_arithmetic_folds():
    n, m = sym_int(name="n"), sym_int(8, name="m")
    assert add(0, n) is n and add(n, 0) is n and mul(1, n) is n and mul(n, 1) is n and mul(n, 0) == 0 == mul(0, n)
    assert floor_div(n, 1) is n and floor_div(n, n) == 1 and mod(n, 1) == 0 and mod(m, 8) == 0 and mod(0, n) == 0
    assert sub(n, n) == 0 and sub(n, 0) is n and ceil_div_leaf(7, 2) == 4
    assert same(ceil_div_leaf(m, 8), m // 8) and is_multiple(m * n, m) and not is_multiple(n, m)
    assert at_most(8, m) and not at_most(9, m) and at_most(m, m * 2) and not at_most(n, 8)


class Counted(DynamicInt):
    """A traced value that counts the operations it would emit, and takes no comparison."""

    __slots__ = ("log", "value")

    def __init__(self, value, log):
        self.value, self.log = value, log

    def evaluate(self, env):
        return self.value

    divisibility = property(lambda self: 1)
    width = property(lambda self: 32)

    def same_as(self, other):
        return self is other

    def _emit(self, op, other):
        self.log.append(op)
        other = other.value if isinstance(other, Counted) else other
        results = {
            "+": lambda a, b: a + b,
            "*": lambda a, b: a * b,
            "-": lambda a, b: a - b,
            "~": lambda a, b: b - a,
            "/": lambda a, b: a // b,
            "%": lambda a, b: a % b,
            "&": lambda a, b: a & b,
            "^": lambda a, b: a ^ b,
            ">": lambda a, b: a >> b,
            "<": lambda a, b: a < b,
            "g": lambda a, b: a > b,
        }
        return Counted(results[op](self.value, other), self.log)

    def __sub__(self, other):
        return self._emit("-", other)

    def __rsub__(self, other):
        return self._emit("~", other)

    def __floordiv__(self, other):
        return self._emit("/", other)

    def __mod__(self, other):
        return self._emit("%", other)

    def __and__(self, other):
        return self._emit("&", other)

    def __xor__(self, other):
        return self._emit("^", other)

    def __rshift__(self, other):
        return self._emit(">", other)

    def __lt__(self, other):
        return self._emit("<", other)

    def __gt__(self, other):
        return self._emit("g", other)

    def __add__(self, other):
        return self._emit("+", other)

    def __mul__(self, other):
        return self._emit("*", other)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        raise AssertionError("a traced value was compared")

    def __bool__(self):
        raise AssertionError("a traced value was asked for its truth")

    __hash__ = object.__hash__


def test_traced_values_are_never_compared_and_cost_only_what_is_needed():
    log = []
    i, j = Counted(3, log), Counted(5, log)
    layout = Layout((8, 16), (16, 1))
    assert layout((i, j)).value == 3 * 16 + 5 and log == ["*", "+"]
    log.clear()
    assert layout((0, j)) is j and log == []
    composition(layout, Layout((4, 4), (1, 8)))
    assert log == []
    traced = Layout((i, 16), (16, 1))
    assert zipped_divide(traced, (1, 4)).shape[1][0] is i and log == []
    assert (traced == traced) and str(traced) == "(?,16):(16,1)"


def test_every_function_takes_traced_values():
    """None compares them or asks for their truth; all agree with ints."""

    def run(m, n, ld, x):
        a = Layout((m, n), (ld, 1))
        s = parse("S<3,3,3> o 0 o (8,64):(64,1)")
        flat_ = Layout((n, 4, m), (1, n, ld))
        return [
            size(a),
            cosize(a),
            a(x),
            a((x, 3)),
            idx2crd(x, (m, n)),
            coalesce(flat_)(x),
            composition(a, (2, 4))(x),
            composition(a, Layout((4, m), (E(1), E(0))))(x),
            composition(Layout(m, ld), Layout((n, 2), (1, 5)))(x),
            zipped_divide(a, (4, 8))((1, 2), (x, 1)),
            logical_divide(Layout(m), 4)(x),
            logical_product(Layout(4), Layout(n))(x),
            right_inverse(a)(x),
            ceil_div((m, n), (4, 8)),
            round_up(m, 16),
            complement(Layout(4), m)(x),
            group_modes(flat_, 0, 2)(x),
            select(flat_, [2, 0])(x),
            filter_zeros(a)(x),
            make_layout((m, n))(x),
            make_ordered_layout((m, n), (1, 0))(x),
            make_layout_like(a)(x),
            make_identity_layout((m, n))(x),
            slice_and_offset((x, None), a),
            s((x, 5)),
            slice_(s, (x, None))(3),
            local_tile_and_offset(a, (4, 8), (x, 1))[1],
            local_partition_and_offset(a, parse("(4,8):(8,1)"), x)[1],
            downcast(a, 2)(x),
            recast_layout(8, 16, a)(x),
            elem_less((x, 1), (m, n)),
            append(a, Layout(2))(x),
            tile_to_shape(Layout(4), (m,))(x),
            nullspace(a)(x),
            filter(a)(x),
            product_each((m, (n, 2))),
            unflatten([m, n], (0, 0)),
        ]

    log = []
    numbers = (12, 16, 100, 7)
    traced = run(*(Counted(value, log) for value in numbers))
    static = run(*numbers)
    for got, expect in zip(traced, static, strict=True):
        if isinstance(got, tuple) and isinstance(got[0], Layout):
            got, expect = (got[0].shape, got[1]), (expect[0].shape, expect[1])
        assert evaluate(got, {}) == expect
    assert log


# Functions of layouts


def test_l11():
    n = sym_int(8, name="N")
    b = Layout((32, n // 8, 8, 128), (E(0), E(1) * 8, E(1), E(0) * 32))
    r = composition(parse("(4096,8192):(1,4096)"), b)
    assert str(r) == "(32,?,8,128):(1,32768,4096,32)"
    assert r(31, 7, 7, 127) == 262143
    for value in range(8, 8 * 21, 8):
        got = instance(r, {"N": value})
        for c in [(0, 0, 0, 0), (31, value // 8 - 1, 7, 127), (5, value // 16, 3, 64)]:
            assert got(c) == (c[0] + 32 * c[3]) + 4096 * (8 * c[1] + c[2])


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (lambda m, n: ((m, n), (1, m)), lambda m, n: ((m, n), (n, 1)), "(?,?):(?,1)"),
        (lambda m, n: ((m, 4), (1, m)), lambda m, n: ((m, 4), (4, 1)), "(?,4):(4,1)"),
        (lambda m, n: ((m, n), (3, m * 3)), lambda m, n: ((n, m), (m, 1)), "(?,?):(?{div=3},3)"),
        (lambda m, n: ((m, n, 5), (1, m, m * n)), lambda m, n: (7, 3), "7:3"),
        (lambda m, n: ((m, n), (1, m)), lambda m, n: (m * n, 1), "(?,?):(1,?)"),
    ],
)
def test_compact_modes_of_unknown_extents_are_one(left, right, text):  # L1 with run-time extents
    m, n = sym_int(name="m"), sym_int(name="n")
    r = composition(Layout(*left(m, n)), Layout(*right(m, n)))
    assert str(r) == text
    rng = random.Random(3)
    for _ in range(20):
        m, n = rng.randint(1, 9), rng.randint(1, 9)
        a, b = Layout(*left(m, n)), Layout(*right(m, n))
        wanted = [oracle.value(a.shape, a.stride, x) for x in oracle.values(b)]
        assert oracle.values(instance(r, {"m": m, "n": n})) == wanted


EXTENTS = [1, 2, 4, 8, ("n", 1), ("m", 4), ("k", 16)]


def random_symbolic(rng, most=3):
    shape, stride, below = [], [], 1
    for _ in range(rng.randint(1, most)):
        pick = rng.choice(EXTENTS)
        extent = sym_int(pick[1], name=pick[0]) if isinstance(pick, tuple) else pick
        shape.append(extent)
        stride.append(below if rng.random() < 0.8 else rng.choice([0, 1, 64, sym_int(4, name="ld")]))
        below = mul(extent, below) if rng.random() < 0.7 else rng.choice([1, 8, 100])
    return Layout(tuple(shape), tuple(stride))


def random_tiler(rng):
    pick = rng.random()
    if pick < 0.3:
        return rng.choice([1, 2, 4, 8, 16])
    if pick < 0.6:
        return Layout((rng.choice([2, 4]), rng.choice([2, 4])), (rng.choice([1, 4]), rng.choice([1, 2, 8])))
    if pick < 0.8:
        return Layout(sym_int(4, name="tile"), rng.choice([1, 4]))
    return (rng.choice([1, 2, 4]),)


def environments(rng, count=20):
    return [
        {
            "n": rng.randint(1, 12),
            "m": 4 * rng.randint(1, 4),
            "k": 16 * rng.randint(1, 2),
            "ld": 4 * rng.randint(1, 9),
            "tile": 4 * rng.randint(1, 3),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("function", [composition, logical_divide, logical_product], ids=lambda f: f.__name__)
def test_whatever_is_answered_holds_for_every_instance(function):
    rng = random.Random(17)
    answers = 0
    for _ in range(400):
        a, b = random_symbolic(rng), random_tiler(rng)
        if is_static(a) and is_static(b):
            continue
        try:
            r = function(a, b)
        except LayoutError:
            continue
        answers += 1
        for env in environments(rng):
            whole = function is composition or isinstance(b, tuple)
            left = instance(a if whole else without_trailing_units(a), env)
            right = instance(b, env) if isinstance(b, Layout) else b
            try:
                static = function(left, right)
            except LayoutError as refused:
                raise AssertionError(f"{a} and {b} gave {r}, but {left} and {right} is refused") from refused
            got, expect = oracle.values(instance(r, env)), oracle.values(static)
            if function is logical_divide:  # past the end the two may differ
                assert set(got) >= set(oracle.values(left))
                pairs = zip(got, expect, strict=False) if len(got) == len(expect) == oracle.size(left) else ()
                assert all(x == y for x, y in pairs), (str(a), str(b), env)
            else:
                assert got == expect, (str(a), str(b), env)
    assert answers > 40


def test_answers_where_divisibility_proves_them():
    m = sym_int(4, name="m")
    r = composition(Layout((m, 8), (1, 100)), Layout(4))
    assert str(r) == "4:1"
    r = composition(Layout((m, 8), (1, 100)), Layout(m * 2))
    assert str(r) == "(?{div=4},2):(1,100)"
    r = composition(Layout((4, m), (100, 1)), Layout((2, 2), (1, 2)))
    assert str(r) == "(2,2):(100,200)"


def test_a_missing_fact_is_named():
    n = sym_int(name="n")
    with pytest.raises(LayoutError, match="it is not known that 4 is at most n") as refused:
        composition(Layout((n, 8), (1, 100)), Layout(4))
    assert "divisibility" in str(refused.value)
    with pytest.raises(LayoutError, match="not known"):
        composition(Layout((8, n), (1, 100)), Layout(sym_int(name="t")))
    with pytest.raises(LayoutError, match="not known"):
        composition(Layout((sym_int(4, name="m"), 8), (1, 100)), Layout((4, 4), (1, 2)))


def test_on_request_the_fact_is_checked_at_run_time():
    """As CuTe: the extents are the lesser of tile and mode, whichever it is; the facts say when that is right."""
    n = sym_int(name="n")
    facts = []
    with runtime_checks(facts.append):
        r = composition(Layout((n, 8), (1, 100)), Layout(4))
    assert str(r) == "(?,?):(1,100)"
    right = [value for value in range(1, 40) if all(fact.holds({"n": value}) for fact in facts)]
    for value in range(1, 40):
        static = Layout((value, 8), (1, 100))
        assert (value in right) == oracle.composition_exists(static, Layout(4))
        if value in right:
            assert oracle.values(instance(r, {"n": value})) == oracle.values(composition(static, Layout(4)))
    assert right == [1, 2, *range(4, 40)]


def test_checked_facts_are_enough():
    rng = random.Random(23)
    checked = 0
    for _ in range(400):
        a, b = random_symbolic(rng), random_tiler(rng)
        if isinstance(b, tuple):
            continue
        facts = []
        try:
            with runtime_checks(facts.append):
                r = composition(a, b)
        except LayoutError:
            continue
        for env in environments(rng, 40):
            if facts and all(fact.holds(env) for fact in facts):
                checked += 1
                left = instance(a, env)
                right = instance(Layout(b) if isinstance(b, int) else b, env)
                assert oracle.values(instance(r, env)) == [
                    oracle.value(left.shape, left.stride, x) for x in oracle.values(right)
                ], (str(a), str(b), env, [str(f) for f in facts])
    assert checked > 100


def test_shapes_of_unknown_extents():
    n, m = sym_int(name="n"), sym_int(32, name="m")
    assert str(ceil_div((n, m), (32, 32))[1]) == "?" and same(ceil_div(m, 32), m // 32)
    for value in range(1, 200, 9):
        assert evaluate(ceil_div(n, 32), {"n": value}) == -(-value // 32)
        assert evaluate(round_up(n, 32), {"n": value}) == -(-value // 32) * 32
    assert shape_div(m, 8).divisibility == 4 and shape_div(16, sym_int(name="q") * 0 + 32) == 1
    with pytest.raises(LayoutError, match="neither"):
        shape_div(n, 8)
    assert same(size(Layout((n, m))), n * m) and same(product((n, (m, 2))), n * m * 2)
    assert evaluate(cosize(Layout((n, m), (m, 1))), {"n": 5, "m": 64}) == 4 * 64 + 63 + 1
    assert str(make_ordered_layout((n, m, 4), (1, 0, 2))) == "(?,?{div=32},4):(?{div=32},1,?{div=32})"
    assert str(make_layout((8, n, 4))) == "(8,?,4):(1,8,?{div=8})"
    assert str(coalesce(make_layout((8, n, 4)))) == "(?{div=8},4):(1,?{div=8})"
    assert str(coalesce(Layout((8, 4, n), (1, 8, sym_int(name="s"))))) == "(32,?):(1,?)"


def test_coordinates_and_indices():
    n, i, j, x = (sym_int(name=s) for s in "nijx")
    layout = Layout((n, 8), (8, 1))
    index = crd2idx((i, j), layout)
    coord = idx2crd(x, layout)
    offset = domain_offset((i, j), layout)[1]
    rng = random.Random(1)
    for _ in range(30):
        env = {"n": rng.randint(1, 9), "j": rng.randint(0, 7)}
        env["i"] = rng.randint(0, env["n"] - 1)
        env["x"] = rng.randint(0, env["n"] * 8 - 1)
        assert evaluate(index, env) == evaluate(offset, env) == env["i"] * 8 + env["j"]
        assert evaluate(coord, env) == (env["x"] % env["n"], env["x"] // env["n"])
        assert evaluate(layout(x), env) == instance(layout, env)(env["x"])


def test_tiles_and_partitions_at_run_time_coordinates():
    n, t, b = (sym_int(name=s) for s in "ntb")
    tile, offset = local_tile_and_offset(Layout((n, 64), (64, 1)), (8, 16), (b, 2))
    assert str(tile) == "(8,16):(64,1)"
    part, first = local_partition_and_offset(tile, parse("(4,8):(8,1)"), t)
    assert str(part) == "(2,2):(256,8)"
    for tid in range(32):
        for block in range(5):
            env = {"b": block, "t": tid, "n": 100}
            assert evaluate(offset, env) == block * 8 * 64 + 32
            assert evaluate(first, env) == tid // 8 * 64 + tid % 8
    s = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    sliced, zero = slice_and_offset((b, None), s)
    assert zero == 0 and str(sliced) == "S<3,3,3> o ?{div=64} o (64):(1)"
    assert [evaluate(sliced(k), {"b": 3}) for k in range(64)] == [s(3, k) for k in range(64)]


def test_a_tile_inside_the_first_mode_of_unknown_extent():
    m, n = sym_int(64, name="m"), sym_int(name="n")
    r = logical_divide(Layout((m, n), (1, sym_int(name="ld"))), 32)
    assert str(r) == "(32,(?{div=2},?)):(1,(32,?))"
    for k in range(1, 21):
        env = {"m": 64 * k, "n": 3, "ld": 64 * k + 8}
        static = Layout((64 * k, 3), (1, 64 * k + 8))
        assert oracle.values(instance(r, env)) == oracle.values(static)
    assert same(ceil_div_leaf(64, m), 1) and not same(ceil_div_leaf(65, m), 1)


def test_divides_print_as_in_cute():
    n, ld = sym_int(name="n"), sym_int64(8, name="ld")
    assert str(flat_divide(Layout((n, 64), (ld, 1)), (16, 16))) == "(16,16,?,4):(?{i64 div=8},1,?{i64 div=128},16)"
    assert str(complement(Layout(16), n * 16)) == "?:16"
