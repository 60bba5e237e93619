"""`cute.compile(..., validate=inputs)`: the first pass that changes a result is named."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright import ArgumentError, CompileError, EmulationError, Float32, PassError, passes
from tilewright.base import settings
from tilewright.cute.runtime import from_dlpack


@pytest.fixture(scope="module", autouse=True)
def on_the_emulator():
    with settings.scope(target="emu", arch="sm_90a"):
        yield


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, scale: Float32):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] * 2.0 + scale
    if i == 5:
        y[i] = x[i] * 4.0


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor, scale: Float32):
    kernel(x, y, scale).launch(grid=1, block=8)


def arrays():
    return np.arange(8, dtype=np.float32) + 1, np.full(8, -7, np.float32)


def replacing(number, by, name):
    """A pass that replaces `x * number`."""

    class Replace(passes.Rewrite):
        @passes.rule("arith.mulf")
        def replace(self, op, rewriter):
            x, factor = op.operands
            if passes.is_constant(factor, number):
                return by(x, rewriter)

    Replace.name = name
    return Replace


right = replacing(2, lambda x, rewriter: rewriter.build("arith.addf", x.type, x, x), "right")
wrong_two = replacing(2, lambda x, rewriter: x, "wrong-two")
wrong_four = replacing(4, lambda x, rewriter: rewriter.build("arith.negf", x.type, x), "wrong-four")


class Look(passes.Pass):
    """Changes nothing."""

    name = "look"

    def run(self, module):
        pass


def compiled(*items, function=host, arguments=None, **given):
    arguments = arguments or (*arrays(), 0.5)
    return cute.compile(function, *arguments, passes=list(items), validate=arguments, **given)


def test_right_passes_go_through_and_inputs_are_untouched():
    x, y = arrays()
    executor = cute.compile(host, x, y, 0.5, passes=[Look, right], validate=(x, y, 0.5))
    assert np.array_equal(x, np.arange(8) + 1) and (y == -7).all()
    executor(x, y, 0.5)
    expected = 2 * x + 0.5
    expected[5] = 4 * x[5]
    assert np.array_equal(y, expected)


@pytest.mark.parametrize(
    ("items", "name", "element", "before", "after", "count"),
    [
        ([wrong_two], "wrong-two", "y[0]", "2.5", "1.5", "7 of 8"),
        ([Look, right, wrong_four], "wrong-four", "y[5]", "24.0", "-6.0", "1 of 8"),
        ([wrong_four, wrong_two], "wrong-four", "y[5]", "24.0", "-6.0", "1 of 8"),
        ([wrong_two, wrong_four], "wrong-two", "y[0]", "2.5", "1.5", "7 of 8"),
        ([cutlass.after("cute-to-nvvm", wrong_four)], "wrong-four", "y[5]", "24.0", "-6.0", "1 of 8"),
    ],
)
def test_the_first_wrong_pass_is_named(items, name, element, before, after, count):
    x, y = arrays()
    with pytest.raises(PassError, match=f"pass {name} changes what host computes") as caught:
        cute.compile(host, x, y, 0.5, passes=items, validate=(x, y, 0.5))
    assert caught.value.values == {
        "first element that differs": element,
        "without the pass": before,
        "with it": after,
        "elements that differ": count,
    }
    assert caught.value.location.file == __file__ and "after_pass" in caught.value.hint
    assert np.array_equal(x, np.arange(8) + 1) and (y == -7).all()


@pytest.mark.parametrize("stage", ["llvm", "ptx"])
def test_passes_over_text(stage):
    class Text(passes.Pass):
        def run_text(self, text, kernel):
            changed = text.replace("4.000000e+00", "3.000000e+00").replace("0f40800000", "0f40400000")
            assert changed != text
            return changed

    Text.name, Text.stage = "text", stage
    with pytest.raises(PassError, match="pass text changes what host computes") as caught:
        compiled(right, Text)
    assert caught.value.values["with it"] == "18.0"


def test_a_list_as_text_and_passes_of_mlir():
    executor = cute.compile(
        host,
        *arrays(),
        0.5,
        pipeline="builtin.module(gpu.module(canonicalize,cse),cute-to-nvvm)",
        validate=(*arrays(), 0.5),
    )
    assert "canonicalize" in executor.pipeline


def test_a_program_that_fails_with_a_pass():
    class Beyond(passes.Rewrite):
        """Stores a million elements on."""

        name = "beyond"
        greedy = False

        @passes.rule("cute.store")
        def beyond(self, op, rewriter):
            parts = passes.operands_of(op)
            (index,) = parts["coord32"]
            op.operands[2] = rewriter.build("arith.addi", index.type, index, rewriter.constant(1000000, index.type))
            return True

    x, y = arrays()
    with pytest.raises(PassError, match="host fails with pass beyond, and runs without it") as caught:
        cute.compile(host, x, y, 0.5, passes=[right, Beyond], validate=(x, y, 0.5))
    assert "reason" in caught.value.values and (y == -7).all()
    assert caught.value.location.file == __file__


def test_a_program_that_fails_by_itself():
    @cute.kernel
    def bad(x: cute.Tensor):
        x[cute.arch.thread_idx()[0] + 100] = 1.0

    @cute.jit
    def launch(x: cute.Tensor):
        bad(x).launch(grid=1, block=8)

    x = np.zeros(8, np.float32)
    with pytest.raises(EmulationError):
        cute.compile(launch, x, passes=Look, validate=(x,))


def sum_kernel(dtype, change):
    """A program over elements of `dtype` whose second element a pass changes by `change(value)`."""

    @cute.kernel
    def one(x: cute.Tensor):
        x[1] = x[2]

    @cute.jit
    def launch(x: cute.Tensor):
        one(x).launch(grid=1, block=1)

    class Change(passes.Rewrite):
        name = "change"
        greedy = False

        @passes.rule("cute.store")
        def changed(self, op, rewriter):
            return passes.change_stored(op, lambda value: change(value, rewriter))

    return launch, Change


def negated(value, rewriter):
    return rewriter.build("arith.negf", value.type, value)


def flipped(value, rewriter):
    return rewriter.build("arith.xori", value.type, value, rewriter.constant(1, value.type))


@pytest.mark.parametrize(
    ("dtype", "change", "value", "before", "after"),
    [
        (np.float16, negated, 1.5, "1.5", "-1.5"),
        (np.float64, negated, 0.1, "0.1", "-0.1"),
        (ml_dtypes.bfloat16, negated, 3, "3.0", "-3.0"),
        (np.int8, flipped, -2, "-2", "-1"),
        (np.uint16, flipped, 65535, "65535", "65534"),
        (np.int64, flipped, -(1 << 40), str(-(1 << 40)), str(-(1 << 40) + 1)),
        (np.bool_, flipped, True, "True", "False"),
        (np.float32, negated, 0.0, "0.0", "-0.0"),
    ],
)
def test_elements_of_each_type(dtype, change, value, before, after):
    launch, item = sum_kernel(dtype, change)
    x = np.array([0, 0, value], dtype)
    with pytest.raises(PassError, match="pass change changes") as caught:
        cute.compile(launch, x, passes=item, validate=(x,))
    values = caught.value.values
    assert (values["first element that differs"], values["without the pass"], values["with it"]) == (
        "x[1]",
        before,
        after,
    )


def test_two_nans_are_equal():
    launch, item = sum_kernel(np.float32, negated)
    x = np.array([0, 0, np.nan], np.float32)
    executor = cute.compile(launch, x, passes=item, validate=(x,))
    assert item.name in executor.pipeline
    np.testing.assert_array_equal(x, [0, 0, np.nan])


def test_strides_order_and_arguments_that_overlap():
    """The place is that of the tensor as it is passed; inputs that share memory do so in each run."""

    base = np.arange(36, dtype=np.float32).reshape(6, 6)
    x, y = base[::2, :3].T, base[1::2, 3:]
    kept = base.copy()

    @cute.kernel
    def scale(x: cute.Tensor, y: cute.Tensor):
        i, j, _ = cute.arch.thread_idx()
        y[i, j] = x[i, j] * 2.0

    @cute.jit
    def scaled(x: cute.Tensor, y: cute.Tensor):
        scale(x, y).launch(grid=1, block=(3, 3, 1))

    with pytest.raises(PassError) as caught:
        cute.compile(scaled, x, y, passes=wrong_two, validate=(x, y))
    assert caught.value.values["first element that differs"] == "y[0, 1]", "2 * 0 is 0"
    assert caught.value.values["elements that differ"] == "8 of 9" and np.array_equal(base, kept)

    x = np.arange(8, dtype=np.float32)  # y is x, so x changes too
    with pytest.raises(PassError) as caught:
        cute.compile(host, x, x, 0.0, passes=wrong_two, validate=(x, x, 0.0))
    assert caught.value.values["first element that differs"] == "x[1]" and np.array_equal(x, np.arange(8))


def test_tuples_and_tensors_with_facts():
    @cute.jit
    def launch(pair: tuple[cute.Tensor, cute.Tensor], scale: Float32):
        kernel(pair[0], pair[1], scale).launch(grid=1, block=8)

    x, y = arrays()
    pair = tuple(from_dlpack(item, assumed_align=16) for item in (x, y))
    with pytest.raises(PassError) as caught:
        cute.compile(launch, pair, 0.5, passes=wrong_two, validate=(pair, 0.5))
    assert caught.value.values["without the pass"] == "2.5" and (y == -7).all()


@pytest.mark.parametrize(
    ("inputs", "error", "words"),
    [
        (3, CompileError, "validate takes the arguments of a call, not int"),
        (np.zeros(8), CompileError, "validate takes the arguments of a call, not ndarray"),
        ((np.zeros(8, np.float32),), ArgumentError, "needs an argument for 'y'"),
        ((np.zeros(8, np.float64), np.zeros(8, np.float32), 0.5), ArgumentError, "x"),
    ],
)
def test_wrong_inputs(inputs, error, words):
    with pytest.raises(error, match=words) as caught:
        cute.compile(host, *arrays(), 0.5, passes=Look, validate=inputs)
    assert caught.value.location.file == __file__


def test_with_override():
    with pytest.raises(CompileError, match="validate checks passes, and override"):
        cute.compile(host, *arrays(), 0.5, validate=(*arrays(), 0.5), override={"ptx": "x\n"})


def test_bare_pointers_cannot_be_kept():
    @cute.kernel
    def one(p: cute.Pointer):
        cute.make_tensor(p, 4)[0] = Float32(1)

    @cute.jit
    def launch(p: cute.Pointer):
        one(p).launch(grid=1, block=1)

    x = np.zeros(4, np.float32)
    pointer = cute.runtime.make_ptr(Float32, x.ctypes.data, cute.AddressSpace.gmem)
    with pytest.raises(ArgumentError, match="how much memory lies behind p is not known") as caught:
        cute.compile(launch, pointer, passes=Look, validate=(pointer,))
    assert "pass tensors" in caught.value.hint


def test_an_error_of_the_pass_itself_passes_through():
    class Fails(passes.Pass):
        name = "fails"

        def run(self, module):
            raise ValueError("mine")

    x, out = floats()
    with pytest.raises(PassError, match="pass fails failed"):
        cute.compile(double, x, out, passes=Fails, validate=(x, out))
