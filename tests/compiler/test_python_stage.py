"""Stage `python`: the source of functions as they are traced."""

from __future__ import annotations

import ast

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats


@cute.kernel
def branches(x: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.thread_idx()[0]
    for step in cutlass.range(n):
        if x[i] > 0 and step != 2:
            x[i] = x[i] - 1.0
    while x[i] < -3.0:
        x[i] = x[i] + 1.0


@cute.jit
def host(x: cute.Tensor, n: cutlass.Int32):
    # A comment is not traced.
    branches(x, n).launch(grid=1, block=8)


@cute.kernel(preprocess=False)
def plain_kernel(x: cute.Tensor):
    # This one is as it is written.
    x[cute.arch.thread_idx()[0]] = 1.0


@cute.jit(preprocess=False)
def plain(x: cute.Tensor):
    plain_kernel(x).launch(grid=1, block=8)


def test_control_flow_is_rewritten():
    executor = cute.compile(host, np.zeros(8, np.float32), 3)
    text = executor.kernels["branches"].stages["python"]
    tree = ast.parse(text)
    assert isinstance(tree.body[0], ast.FunctionDef) and tree.body[0].name == "branches"
    assert not any(isinstance(node, ast.For | ast.While | ast.BoolOp) for node in ast.walk(tree))
    for name in ("for_", "while_", "if_", "and_"):
        assert f"__tilewright_control__.{name}" in text, text
    whole = executor.stages["python"]
    assert whole.startswith("def host(x, n):") and "comment" not in whole and ".launch(" in whole


def test_without_preprocessing_the_source_is_plain():
    executor = cute.compile(plain, np.zeros(8, np.float32))
    assert "# This one is as it is written." in executor.kernels["plain_kernel"].stages["python"]
    assert executor.stages["python"].startswith("@cute.jit(preprocess=False)")


def test_methods_and_nested_functions():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @cute.kernel
        def kernel(self, x: cute.Tensor):
            i = cute.arch.thread_idx()[0]

            def scaled(value):
                return value * self.factor if value > 0.0 else value

            x[i] = scaled(x[i])

        @cute.jit
        def __call__(self, x: cute.Tensor):
            self.kernel(x).launch(grid=1, block=8)

    x = np.arange(8, dtype=np.float32) - 4
    executor = cute.compile(Scale(3.0), x)
    assert executor.stages["python"].startswith("def __call__(self, x):")
    (kernel,) = executor.kernels.values()
    assert "def scaled(value):" in kernel.stages["python"] and "IfExp" not in ast.dump(
        ast.parse(kernel.stages["python"])
    )


def test_source_that_is_given_to_exec():
    names = {"cute": cute}
    text = "def body(x):\n    x[0] = 1.0\n"
    exec(text, names)
    kernel = cute.kernel(preprocess=False)(names["body"])

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    executor = cute.compile(launch, np.zeros(1, np.float32))
    assert executor.kernels["body"].stages["python"] == "# the source of body is not available\n"


def test_it_is_there_for_a_direct_look_and_written():
    executor = cute.compile(double, *floats())
    assert executor.stages["python"].startswith("def double(x, out):")
    assert "if_" in executor.kernels["double_kernel"].stages["python"]
