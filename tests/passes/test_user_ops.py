"""Operations of users: in the IR, seen by passes, checked, lowered by their rules in kernels and in host functions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, Float32, Int32, PassError, passes
from tilewright.ir import mlir, user_ops
from tilewright.ir.context import compile_context
from tilewright.passes import OpSpec, register_op
from tilewright.passes.check_bounds import CheckBounds


@pytest.fixture(autouse=True)
def restored():
    before = dict(user_ops.USER_OPS)
    yield
    user_ops.USER_OPS.clear()
    user_ops.USER_OPS.update(before)


def lower_axpy(op, rewriter):
    a, x, y = op.operands
    if a.type != x.type:
        a = mlir.vector.BroadcastOp(x.type, a).result
    return rewriter.build("arith.addf", x.type, rewriter.build("arith.mulf", x.type, a, x), y)


def launched(body, *arguments, block=4, **given):
    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        cute.kernel(body)(x, y).launch(grid=1, block=block)

    executor = cute.compile(host, *arguments, **given)
    executor(*arguments)
    return executor


def arrays(n=32, dtype=np.float32):
    return np.arange(n).astype(dtype), np.zeros(n, dtype)


def test_numbers_and_vectors_by_values():
    axpy = register_op(OpSpec("mine.axpy", ("a:f32", "x:any", "y:any"), ("any",), pure=True), lower=lower_axpy)

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        row = cute.local_tile(x, (8,), (i,)).load()
        cute.local_tile(y, (8,), (i,)).store(axpy(3.0, row, row))
        if i == 0:
            y[0] = axpy(Float32(2), x[1], x[2]) + 0.5

    x, y = arrays()
    executor = launched(body, x, y)
    expected = 4 * x
    expected[0] = 2 * x[1] + x[2] + 0.5
    assert np.array_equal(y, expected) and executor.stages["cute"].count('"mine.axpy"') == 2
    assert "mine" not in executor.stages["nvvm"] and executor.stages["cubin"][:4] == b"\x7fELF"


def test_on_the_host_and_for_extents():
    """The rule runs for host code too: what it gives is the extent of the grid."""
    seen = []

    def lower(op, rewriter):
        seen.append(passes.on_device(op))
        (x,) = op.operands
        one = rewriter.constant(1, x.type)
        return rewriter.build("arith.shrsi", x.type, rewriter.build("arith.addi", x.type, x, one), one)

    halve = register_op(OpSpec("mine.halve_up", ("x:i32",), ("i32",), pure=True), lower=lower)

    @cute.kernel
    def kernel(y: cute.Tensor):
        block = cute.arch.block_idx()[0]
        y[block] = Float32(halve(block))

    @cute.jit
    def host(y: cute.Tensor, n: Int32):
        kernel(y).launch(grid=halve(n), block=1)

    y = np.full(8, -1, np.float32)
    cute.compile(host, y, 9)(y, 9)
    assert sorted(seen) == [False, True]
    assert np.array_equal(y, [0, 1, 1, 2, 2, -1, -1, -1])


def test_effects_tensors_lists_and_attributes():
    """An operation without results that writes a tensor, takes any number of values, and a number of compile time."""

    def lower(op, rewriter):
        parts = passes.operands_of(op)
        first = passes.number_of(op, "first")
        for number, value in enumerate(parts["values"]):
            rewriter.build("cute.store", None, value, parts["tensor"], coord=str(first + number))

    put = register_op(OpSpec("mine.put", ("tensor:tensor", "values:f32*"), (), ("first",)), lower=lower)

    def body(x, y):
        put(cute.local_tile(y, (8,), (cute.arch.thread_idx()[0],)), [x[3], 5.0, x[4]], first=2)

    x, y = arrays()
    launched(body, x, y)
    expected = np.zeros((4, 8), np.float32)
    expected[:, 2:5] = [3, 5, 4]
    assert np.array_equal(y.reshape(4, 8), expected)


def test_what_it_touches_is_not_checked_and_said():
    put = register_op(
        OpSpec("mine.put", ("tensor:tensor", "value:f32")),
        lower=lambda op, rewriter: rewriter.build("cute.store", None, op.operands[1], op.operands[0], coord="1"),
    )
    negate = register_op(OpSpec("mine.negate", ("x:any",), ("any",)), lower=lambda op, rewriter: op.operands[0])

    def body(x, y):
        put(y, negate(x[2]))

    x, y = arrays()
    check = CheckBounds()
    launched(body, x, y, passes=cutlass.before("place-shared-memory", check))
    (remark,) = [text for text in check.remarks if "mine" in text]
    assert remark.endswith("mine.put is not checked: the rule that lowers it decides later what it touches")
    assert f"{__file__}:{body.__code__.co_firstlineno + 1}" in remark and y[1] == 2


def test_several_results_and_their_types():
    def lower(op, rewriter):
        x, i32 = op.operands[0], op.results[1].type
        return [rewriter.build("arith.negf", x.type, x), rewriter.build("arith.fptosi", i32, x)]

    split = register_op(OpSpec("mine.split", ("x:any",), ("any", "any"), pure=True), lower=lower)

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        negative, whole = split(x[i] + 0.75, results=[None, Int32])
        y[i] = negative + Float32(whole * 100)

    x, y = arrays(4)
    launched(body, x, y)
    assert np.array_equal(y, -(x + np.float32(0.75)) + 100 * x)


def test_in_terms_of_each_other():
    square = register_op(
        OpSpec("mine.square", ("x:any",), ("any",), pure=True),
        lower=lambda op, rewriter: rewriter.build("arith.mulf", op.results[0].type, op.operands[0], op.operands[0]),
    )
    fourth = register_op(
        OpSpec("mine.fourth", ("x:any",), ("any",), pure=True),
        lower=lambda op, rewriter: rewriter.build(
            "mine.square", op.results[0].type, rewriter.build("mine.square", op.results[0].type, op.operands[0])
        ),
    )

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        y[i] = fourth(x[i]) + square(x[i])

    x, y = arrays(4)
    launched(body, x, y)
    assert np.array_equal(y, x**4 + x**2)


def test_passes_see_it_and_what_is_unused_goes():
    axpy = register_op(OpSpec("mine.axpy", ("a:f32", "x:any", "y:any"), ("any",), pure=True), lower=lower_axpy)

    class Zero(passes.Rewrite):
        name = "zero"

        @passes.rule("mine.*")
        def one_factor(self, op, rewriter):
            parts = passes.operands_of(op)
            if passes.is_constant(parts["a"], 0):
                return parts["y"]

    def body(x, y):
        i = cute.arch.thread_idx()[0]
        axpy(x[i], x[i], x[i])  # not used, and pure
        y[i] = axpy(0.0, x[i], x[i + 4]) + axpy(1.0, x[i], x[i])

    x, y = arrays(8)
    executor = launched(body, x, y, passes=Zero)
    assert executor.stages["cute"].count('"mine.axpy"') == 1
    assert np.array_equal(y[:4], x[4:8] + 2 * x[:4])


def test_a_registration_reaches_contexts_that_were_there_before():
    with compile_context() as session:
        assert not session.context.is_registered_operation("mine.late")
    register_op(OpSpec("mine.late", ("x:i32",), ("i32",)), lower=lower_axpy)
    with compile_context() as later:
        assert later is session and later.context.is_registered_operation("mine.late")
        register_op(OpSpec("mine.inside", ("x:i32",)), lower=lower_axpy)
        assert later.context.is_registered_operation("mine.inside")
        with pytest.raises(PassError, match=r"mine\.inside is registered anew in the middle of a compilation"):
            register_op(OpSpec("mine.inside", ("x:f32",)), lower=lower_axpy)


@pytest.mark.parametrize("changed", [False, True])
def test_registered_again_the_new_one_counts(changed):
    """As when a notebook's cell is run again: another rule, and another specification."""

    def times(factor):
        def lower(op, rewriter):
            x = op.operands[0]
            return rewriter.build("arith.mulf", x.type, x, rewriter.constant(factor, x.type))

        return lower

    for factor in (2.0, 3.0):
        kind = "any" if changed and factor == 3.0 else "f32"
        scale = register_op(OpSpec("mine.scale", (f"x:{kind}",), ("any",)), lower=times(factor))

        def body(x, y, scale=scale):
            y[cute.arch.thread_idx()[0]] = scale(x[cute.arch.thread_idx()[0]])

        x, y = arrays(4)
        launched(body, x, y)
        assert np.array_equal(y, factor * x)


def test_direct_calls_take_the_new_rule():
    """The program has the same text, its lowering is another."""

    @cute.kernel
    def kernel(y: cute.Tensor):
        y[0] = scale(Float32(y[1]))

    @cute.jit
    def host(y: cute.Tensor):
        kernel(y).launch(grid=1, block=1)

    for factor in (2.0, 5.0):
        scale = register_op(
            OpSpec("mine.scale", ("x:f32",), ("f32",)),
            lower=lambda op, rewriter, factor=factor: rewriter.build(
                "arith.mulf", op.operands[0].type, op.operands[0], rewriter.constant(factor, op.operands[0].type)
            ),
        )
        y = np.array([0, 7], np.float32)
        host(y)
        assert y[0] == 7 * factor


@pytest.mark.parametrize(
    ("spec", "lower", "words"),
    [
        (OpSpec("clamp"), lower_axpy, "'clamp' is no name of an operation"),
        (OpSpec("mine.a.b"), lower_axpy, "is no name of an operation"),
        (OpSpec("cute.clamp"), lower_axpy, "is in a dialect that is not yours"),
        (OpSpec("arith.clamp"), lower_axpy, "is in a dialect that is not yours"),
        (OpSpec("mine.clamp", ("x:number",)), lower_axpy, r"mine\.clamp: unknown kind of operand 'number'"),
        (OpSpec("mine.clamp", ("x",)), lower_axpy, r"mine\.clamp: unknown kind of operand ''"),
        (OpSpec("mine.clamp", (), ("f33",)), lower_axpy, "unknown kind of operand 'f33'"),
        (OpSpec("mine.clamp", ("x-y:any",)), lower_axpy, "need names of their own, 'x-y' is none"),
        (OpSpec("mine.clamp", ("x:any", "x:any")), lower_axpy, "need names of their own, 'x' is none"),
        (OpSpec("mine.clamp", ("x:any",), (), ("x",)), lower_axpy, "need names of their own, 'x' is none"),
        (OpSpec("mine.clamp", (), (), ("results",)), lower_axpy, "need names of their own, 'results' is none"),
        (OpSpec("mine.clamp"), None, r"mine\.clamp needs a rule that lowers it"),
    ],
)
def test_wrong_registrations(spec, lower, words):
    before = dict(user_ops.USER_OPS)
    with pytest.raises(PassError, match=words) as caught:
        register_op(spec, lower=lower)
    assert caught.value.hint and before == user_ops.USER_OPS


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda op, x, i: op(x[i]), "1 operands are given"),
        (lambda op, x, i: op(x[i], i, x, 1.0), "4 operands are given"),
        (lambda op, x, i: op(i, i, x), "operand value is of another kind"),
        (lambda op, x, i: op(x[i], x[i], x), "operand count is of another kind"),
        (lambda op, x, i: op(x[i], i, x.iterator), "operand where is of another kind"),
        (lambda op, x, i: op(x[i], i, "there"), "operand where is no value of run time"),
        (lambda op, x, i: op(x[i], i, 3), "operand where is of another kind"),
        (lambda op, x, i: op(x[i], i, x, scale=2), "the attributes are others"),
        (lambda op, x, i: op(x[i], i, x, results=[Float32, Float32]), "2 types of results are given"),
        (lambda op, x, i: op(x[i], i, x, results=Int32), "the type of the result is not known"),
    ],
)
def test_wrong_calls_are_at_the_users_line(call, words):
    op = register_op(OpSpec("mine.put", ("value:f32", "count:i32", "where:tensor"), ("f32",)), lower=lower_axpy)

    def body(x, y):
        call(op, x, cute.arch.thread_idx()[0])

    with pytest.raises(CompileError, match=rf"mine\.put: {words}") as caught:
        launched(body, *arrays())
    assert caught.value.location.file == __file__ and caught.value.values


@pytest.mark.parametrize("name", ["op", "type", "operands", "variadic", "in", "loc", "any"])
def test_names_that_mean_something_elsewhere(name):
    op = register_op(
        OpSpec("mine.named", (f"{name}:f32",), ("f32",), ("attribute",)), lower=lambda op, rewriter: op.operands[0]
    )

    def body(x, y):
        y[0] = op(x[3], attribute=1)

    x, y = arrays()
    launched(body, x, y)
    assert y[0] == 3


def test_outside_compiled_functions():
    op = register_op(OpSpec("mine.put", ("value:f32",)), lower=lower_axpy)
    with pytest.raises(CompileError):
        op(2.0)


def test_the_ir_checks_the_kinds_too():
    """A pass that builds the operation with wrong operands."""
    register_op(OpSpec("mine.put", ("value:f32",)), lower=lambda op, rewriter: None)

    class Build(passes.Rewrite):
        name = "build"
        greedy = False

        @passes.rule("cute.store")
        def build(self, op, rewriter):
            rewriter.build("mine.put", None, rewriter.constant(1, mlir.ir.IntegerType.get_signless(32)))

    def body(x, y):
        y[0] = 1.0

    with pytest.raises(PassError, match="pass build left a module that is not valid") as caught:
        launched(body, *arrays(), passes=Build)
    assert "expected 'f32' but got 'i32'" in caught.value.nvvm_error


def gives_nothing(op, rewriter):
    return None


def gives_another_type(op, rewriter):
    return rewriter.constant(1, mlir.ir.IntegerType.get_signless(32))


def is_its_own(op, rewriter):
    return rewriter.build("mine.put", op.results[0].type, op.operands[0])


def fails(op, rewriter):
    raise KeyError("no table")


@pytest.mark.parametrize(
    ("lower", "words"),
    [
        (gives_nothing, r"the rule that lowers mine\.put gives no value"),
        (gives_another_type, r"mine\.put is replaced by values of other types"),
        (is_its_own, r"rule that lowers mine\.put finds no end"),
        (fails, r"rule that lowers mine\.put failed at mine\.put"),
    ],
)
def test_wrong_lowerings_are_named_with_the_users_line(lower, words):
    op = register_op(OpSpec("mine.put", ("value:f32",), ("f32",)), lower=lower)

    def body(x, y):
        y[0] = op(x[0])

    with pytest.raises(PassError, match=words) as caught:
        launched(body, *arrays())
    assert caught.value.location.file == __file__
    assert caught.value.location.line == body.__code__.co_firstlineno + 1
