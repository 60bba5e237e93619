"""Contraction: where a product and a sum become one fma, where they must not, and that both are among the roundings."""

import linecache
import random
import re
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tilewright.cute as cute
from tests.emu.numerics.reference import round_to, value
from tests.lang.kernels import on_device, on_host
from tilewright.base import settings
from tilewright.base.errors import CompileError

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
LANES, LEAVES = 32, 6


def expression(generator, depth):
    """A random tree of sums, differences and products over the columns of x: nested tuples, and numbers of columns."""
    if depth == 0 or generator.random() < 0.15:
        return generator.randrange(LEAVES)
    return generator.choice("++-**"), expression(generator, depth - 1), expression(generator, depth - 1)


def text(tree):
    return f"x[i, {tree}]" if isinstance(tree, int) else f"({text(tree[1])} {tree[0]} {text(tree[2])})"


def roundings(tree, leaves, format_):
    """The results of a compiler that contracts some, all or none of the products with the sums they go into."""
    if isinstance(tree, int):
        return {leaves[tree]}
    kind, left, right = tree
    lefts, rights = (roundings(side, leaves, format_) for side in (left, right))
    if kind == "*":
        return {rounded(a * b, format_) for a in lefts for b in rights}
    sign = -1 if kind == "-" else 1
    found = {a + sign * b for a in lefts for b in rights}
    found |= {product + sign * b for product in products(left, leaves, format_) for b in rights}
    found |= {a + sign * product for a in lefts for product in products(right, leaves, format_)}
    return {rounded(number, format_) for number in found}


def products(tree, leaves, format_):
    """The exact values of a product of rounded operands; none for another operation."""
    if isinstance(tree, int) or tree[0] != "*":
        return set()
    lefts, rights = (roundings(side, leaves, format_) for side in tree[1:])
    return {a * b for a in lefts for b in rights}


def rounded(number, format_):
    found = value(round_to(number, format_), format_)
    return Fraction(found)


def plain(tree, leaves, format_):
    """The result where each operation rounds."""
    if isinstance(tree, int):
        return leaves[tree]
    a, b = (plain(side, leaves, format_) for side in tree[1:])
    return rounded({"+": a + b, "-": a - b, "*": a * b}[tree[0]], format_)


def run_tree(tree, x, options):
    """What a kernel computes for the tree; its source is of a file, where the compiler finds it."""
    out, names, file = np.zeros(LANES, x.dtype), {"cute": cute}, f"<contraction of {text(tree)}>"
    source = f"def body(x, out):\n    i, _, _ = cute.arch.thread_idx()\n    out[i] = {text(tree)}\n"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    on_device(names["body"], x, out, options=options)
    return out


@pytest.mark.parametrize("format_", DTYPES)
def test_random_expressions_give_one_of_the_roundings(format_):
    generator, numbers = random.Random(format_), np.random.default_rng(3)
    differing = 0
    for _ in range(6):
        tree = (
            generator.choice("+-"),
            ("*", expression(generator, 1), expression(generator, 2)),
            expression(generator, 2),
        )
        x = (numbers.standard_normal((LANES, LEAVES)) * 2).astype(DTYPES[format_])
        contracted, separate = run_tree(tree, x, ""), run_tree(tree, x, "--fp-contract off")
        for lane in range(LANES):
            leaves = [Fraction(float(number)) for number in x[lane]]
            exact = plain(tree, leaves, format_)
            assert Fraction(float(separate[lane])) == exact, (text(tree), lane)
            assert Fraction(float(contracted[lane])) in roundings(tree, leaves, format_), (text(tree), lane)
            differing += Fraction(float(contracted[lane])) != exact
    assert differing, "nothing was contracted"


def compiled(body, *arrays, **options):
    """The executor of a body as a kernel."""
    kernel = cute.kernel(body)

    @cute.jit
    def launch(tensors: tuple):
        kernel(*tensors).launch(grid=1, block=32)

    return cute.compile(launch, arrays, target="emu", **options)


def float_operations(executor):
    return re.findall(r"\b((?:fma|add|sub|mul)\.[a-z.]*(?:f|bf)\d+x?\d?)\s", executor.stages["ptx"])


def axpy(x, y, out):
    i, _, _ = cute.arch.thread_idx()
    out[i] = x[i] * y[i] + out[i]


THREE = [np.ones(32, np.float32) for _ in range(3)]


def test_a_product_and_a_sum_become_one_fma():
    executor = compiled(axpy, *THREE)
    assert float_operations(executor) == ["fma.rn.f32"]
    assert executor.stages["cute"].count("fastmath<contract>") == 2


@pytest.mark.parametrize("options", ["--fp-contract off", cute.FpContract("off"), {"fp_contract": "off"}], ids=str)
def test_the_option_keeps_them_apart(options):
    executor = compiled(axpy, *THREE, options=options)
    assert float_operations(executor) == ["mul.rn.f32", "add.rn.f32"]
    assert "fastmath" not in executor.stages["cute"]


def test_the_setting_keeps_them_apart():
    with settings.scope(fp_contract="off"):
        assert float_operations(compiled(axpy, *THREE)) == ["mul.rn.f32", "add.rn.f32"]


def test_a_pass_list_keeps_them_apart():
    executor = compiled(axpy, *THREE, pipeline="builtin.module(cute-to-nvvm{fp-contract=off})")
    assert float_operations(executor) == ["mul.rn.f32", "add.rn.f32"]


def test_an_option_that_is_neither_on_nor_off():
    with pytest.raises(CompileError, match="fp-contract is on or off, not 'fast'"):
        compiled(axpy, *THREE, options="--fp-contract fast")


def test_a_block_keeps_them_apart():
    def body(x, y, out):
        i, _, _ = cute.arch.thread_idx()
        with cute.fp_contract(False):
            apart = x[i] * y[i] + out[i]
        out[i] = apart * y[i] + x[i]

    assert sorted(float_operations(compiled(body, *THREE))) == ["add.rn.f32", "fma.rn.f32", "mul.rn.f32"]


def test_a_block_allows_no_more_than_the_option():
    def body(x, y, out):
        i, _, _ = cute.arch.thread_idx()
        with cute.fp_contract(True):
            out[i] = x[i] * y[i] + out[i]

    executor = compiled(body, *THREE, options="--fp-contract off")
    assert float_operations(executor) == ["mul.rn.f32", "add.rn.f32"]


def test_a_block_takes_a_bool():
    with pytest.raises(
        CompileError, match=r"fp_contract takes True or False, not 'off'[\s\S]*with cute.fp_contract\(False\)"
    ):
        with cute.fp_contract("off"):
            pass


def test_what_stays_apart_says_how_it_rounds():
    """Without `.rn` the assembler could contract what the emulator does not."""

    def body(x, y, out):
        i, _, _ = cute.arch.thread_idx()
        out[i] = (x[i] + y[i]) * (out[i] - y[i])

    assert float_operations(compiled(body, *THREE)) == ["add.rn.f32", "sub.rn.f32", "mul.rn.f32"]


def test_a_fold_of_products_is_contracted():
    def body(x, y, out):
        a, b = (cute.make_tensor(item.iterator, 4).load() for item in (x, y))
        out[0] = (a * b).reduce(cute.ReductionOp.ADD, 0.0, 0)

    assert float_operations(compiled(body, *THREE)).count("fma.rn.f32") == 2
    assert "fma.rn.f32" not in float_operations(compiled(body, *THREE, options="--fp-contract off"))


def test_powers_are_products():
    def body(x, y, out):
        i, _, _ = cute.arch.thread_idx()
        out[i] = x[i] ** 2 + y[i]

    assert float_operations(compiled(body, *THREE)) == ["fma.rn.f32"]


def test_all_lanes_have_the_same_sum_of_products():
    """A lane that contracted its own product with the sum of the others would differ from its neighbours."""
    x, y = (np.random.default_rng(seed).standard_normal(32).astype(np.float32) for seed in range(2))
    out = np.zeros(32, np.float32)

    def body(x, y, out):
        i, _, _ = cute.arch.thread_idx()
        out[i] = cute.arch.warp_reduction_sum(x[i] * y[i])

    on_device(body, x, y, out)
    assert len(set(out.view(np.uint32))) == 1


def test_host_code_rounds_as_python_does():
    x = np.array([1 + 2.0**-12], np.float32)
    out = np.zeros(1, np.float32)

    def body(x, out):
        out[0] = x[0] * x[0] - 1

    on_host(body, x, out)
    assert out[0] == x[0] * x[0] - np.float32(1)
