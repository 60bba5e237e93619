"""The passes and operations of docs/extending.md, used on other kernels than the page's own."""

import ast
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.docs.blocks import Document, find_blocks
from tilewright.cute.runtime import from_dlpack
from tilewright.ir.user_ops import USER_OPS
from tilewright.passes import pipeline
from tilewright.tools import demo_kernels

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def page():
    """The names that the page defines."""
    registered, operations = dict(pipeline.REGISTRY), dict(USER_OPS)
    document = Document(PAGE)
    assert list(document.run(lambda: "")) is not None
    yield document.module
    for table, before in ((pipeline.REGISTRY, registered), (USER_OPS, operations)):
        table.clear()
        table.update(before)


@pytest.mark.parametrize("name", ["CountLoads", "ReduceStrength", "Relu", "WidenCopies", "CacheLoads", "Halve"])
def test_the_passes_have_at_most_20_lines(name):
    texts = ["\n".join(block.lines) for block in find_blocks(PAGE.read_text())]
    (text,) = [text for text in texts if f"class {name}(" in text]
    found = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    assert found.end_lineno - found.lineno + 1 <= 20


@pytest.mark.parametrize(
    ("function", "arguments", "loads"),
    [
        (demo_kernels.add, [np.zeros(256, np.float32)] * 3, 2),
        (demo_kernels.row_sum, [np.zeros((4, 256), np.float32), np.zeros(4, np.float32)], 2),
        # The halving starts from a constant, so its 8 steps of 2 loads are unrolled.
        (demo_kernels.block_sum, [np.zeros(512, np.int32), np.zeros(2, np.int32)], 1 + 8 * 2 + 1),
    ],
)
def test_the_pass_counts_the_loads_of_other_kernels(page, function, arguments, loads):
    counter = page.CountLoads()
    cute.compile(function, *arguments, passes=counter, target="emu")
    assert counter.loads == loads


def test_the_operation_adds_over_a_warp(page):
    x = np.random.default_rng(0).integers(-100, 100, 96).astype(np.float32)
    sums = np.zeros_like(x)
    cute.compile(page.warp_sums, x, sums, target="emu")(x, sums)
    assert np.array_equal(sums, np.repeat(x.reshape(3, 32).sum(axis=1), 32))


def loop_kernel(x, y, n):
    """Products and squares in a loop and a branch, vectors and numbers, stored in three ways."""
    i = cute.arch.thread_idx()[0]
    total = cutlass.Float32(0)
    for step in cutlass.range(n):
        if step != 1:
            total += x[i] * 2.0 - cute.math.pow(x[step], 2.0)
    y[i] = total
    part = cute.local_tile(x, (2,), (i,)).load()
    cute.local_tile(y, (2,), (i + 4,)).store(part * 2.0 - cute.math.pow(part, 2.0))
    cute.autovec_copy(cute.local_tile(x, (2,), (i,)), cute.local_tile(y, (2,), (i + 12,)))


def expected(x, n):
    total = sum((x[:8] * 2 - x[step] ** 2 for step in range(n) if step != 1), np.zeros(8, np.float32))
    return np.concatenate([total, x * 2 - x**2, x])


@cute.jit
def loop(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    cute.kernel(loop_kernel)(x, y, n).launch(grid=1, block=8)


def loop_arguments():
    return (np.arange(16) - 6).astype(np.float32), np.zeros(40, np.float32)


@pytest.mark.parametrize("relu", [False, True])
def test_the_rewriting_passes_by_values(page, relu):
    x, y = loop_arguments()
    passes = [page.ReduceStrength()] + ([page.Relu(output="y")] if relu else [])
    executor = cute.compile(loop, x, y, 3, passes=passes, target="emu")
    executor(x, y, 3)
    right = expected(x, 3)
    assert np.array_equal(y, np.maximum(right, 0) if relu else right)
    assert passes[0].changes == 4 and "powf" not in executor.stages["cute"]
    assert not relu or passes[1].changes == 3


def test_strength_reduction_is_validated_and_relu_is_not(page):
    x, y = loop_arguments()
    cute.compile(loop, x, y, 3, passes=page.ReduceStrength, validate=(x, y, 3), target="emu")
    with pytest.raises(cutlass.PassError, match="pass relu changes what loop computes"):
        cute.compile(loop, x, y, 3, passes=page.Relu(output="y"), validate=(x, y, 3), target="emu")
    with pytest.raises(cutlass.PassError, match="pass halve changes what loop computes"):
        cute.compile(loop, x, y, 3, passes=page.Halve, validate=(x, y, 3), target="emu")


@pytest.mark.parametrize(
    ("extent", "align", "dtype", "load"),
    [
        (8, 16, np.float32, "ld.global.v4.b32"),
        (6, 16, np.float32, "ld.global.v2.b32"),
        (8, 8, np.float32, "ld.global.v2.b32"),
        (8, 4, np.float32, "ld.global.b32"),
        (5, 16, np.float32, "ld.global.b32"),
    ],
)
def test_copies_are_as_wide_as_is_proved(page, extent, align, dtype, load):
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
        fragment = cute.make_rmem_tensor((extent,), cutlass.Float32)
        cute.copy(atom, cute.local_tile(x, (extent,), (i,)), fragment)
        cute.copy(atom, fragment, cute.local_tile(y, (extent,), (i,)))

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=4)

    x, y = np.arange(4 * extent, dtype=dtype), np.zeros(4 * extent, dtype)
    arguments = [from_dlpack(item, assumed_align=align) for item in (x, y)]
    plain = cute.compile(host, *arguments, target="emu")
    wide = cute.compile(host, *arguments, passes=page.WidenCopies, validate=arguments, target="emu")
    wide(*arguments)
    assert np.array_equal(x, y) and plain.stages["ptx"].count("ld.global.b32") == extent
    bits = {"ld.global.b32": 32, "ld.global.v2.b32": 64, "ld.global.v4.b32": 128}[load]
    assert wide.stages["ptx"].count(load) == extent * 32 // bits


def test_the_operation_of_the_ir_clamps(page):
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    y = np.zeros_like(x)
    cute.compile(page.clamp_all, x, y, 0.25, target="emu")(x, y, 0.25)
    right = np.clip(x, 0, 1)
    right[0] = min(max(x[5], 0), 0.25)
    assert np.array_equal(y, right)
