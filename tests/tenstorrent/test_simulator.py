"""The simulator: numbers against float64, cores that agree bit for bit, and what it reports."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
import tilewright.tile as tile
from examples.tenstorrent import elementwise, fused_matmul, gemm, row_sum, softmax
from tests.tenstorrent.programs import BF16, before, context, error, gemm_module, kernels, launched, random, run, zeros
from tilewright import ArgumentError, BFloat16, CompileError, EmulationError, Float32, PassError
from tilewright.hw.tensix import WORMHOLE
from tilewright.targets.tenstorrent.simulator.data import DataCore
from tilewright.targets.tenstorrent.simulator.faults import Fault
from tilewright.targets.tenstorrent.simulator.numerics import tilize, unpacked, untilize
from tilewright.targets.tenstorrent.simulator.program import Program
from tilewright.targets.tenstorrent.simulator.schedule import run_core
from tilewright.tenstorrent import IRMutator, trace


def product(size, options, m=256, n=256, k=256):
    a, b, c = random(m, k), random(k, n, seed=1), zeros(m, n)
    compiled = cute.compile(gemm.main, a, b, c, *size, target="tenstorrent", options=options)
    compiled(a, b, c)
    return c, a.astype(np.float64) @ b.astype(np.float64)


def test_gemm_accumulated_in_fp32():
    got, expected = product((32, 32, 32), "--core-grid 4x2")
    assert error(got, expected) <= 2.5e-3 and abs(got.astype(float) - expected).max() <= 0.5


def test_gemm_accumulated_in_bf16():
    got, expected = product((32, 32, 32), "--dst bf16 --core-grid 4x2")
    assert 2.5e-3 < error(got, expected) <= 1.5e-2


def test_gemm_is_the_same_on_1_8_and_64_cores():
    results = [product((32, 64, 64), f"--core-grid {grid}")[0] for grid in ("1x1", "4x2", "8x8")]
    assert all((result.view(np.uint16) == results[0].view(np.uint16)).all() for result in results[1:])


def test_sizes_that_are_no_powers_of_two_and_idle_cores():
    got, expected = product((32, 32, 32), "--core-grid 3x2", m=96, n=160, k=64)
    assert error(got, expected) <= 1.5e-2
    got, expected = product((32, 32, 32), "--core-grid 4x1", m=32, n=160, k=32)
    assert error(got, expected) <= 2.5e-3


@pytest.mark.parametrize("size", [128, 256, 512])
def test_tensor_sizes(size):
    assert gemm.check(sizes=(size, size, size)) < 2.5e-3


@pytest.mark.parametrize(("function", "name"), [
    (lambda x, y: x + y, "add"), (lambda x, y: x - y, "subtract"), (lambda x, y: x * y, "multiply"),
])  # fmt: skip
def test_elementwise_256(function, name):
    def body(a, b, c):
        row, column, _ = cute.arch.block_idx()
        x, y = (tile.load(item, (row, column), (32, 32)) for item in (a, b))
        tile.store(c, (row, column), function(x, y))

    a, b, c = random(256, 256), random(256, 256, seed=1), zeros(256, 256)
    run(body, a, b, c, grid=(8, 8, 1), options="--core-grid 4x2")
    assert error(c, getattr(np, name)(a.astype(np.float64), b.astype(np.float64))) <= 3e-3


def test_row_sum():
    assert row_sum.check() <= 3e-3


@pytest.mark.parametrize("example", [elementwise, fused_matmul, softmax])
def test_examples(example):
    assert example.check() < 5e-3


def test_ragged_tensors_are_padded_as_the_source_says():
    def body(x, y):
        values = tile.load(x, (0, 0), (64, 96), pad=-float("inf")).to(Float32)
        tile.store(y, (0, 0), tile.max(values, 1).to(y.element_type))

    x = (-abs(random(50, 70).astype(np.float32)) - 3).astype(BF16)
    y = zeros(50, 1)
    run(body, x, y)
    assert (y == x.max(1, keepdims=True)).all()


def test_a_persistent_grid():
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        for work in tile.persistent(7):
            if work != 3:
                tile.store(y, (work, 0), tile.load(x, (work, 0), (32, 32)) * 2.0)

    @cute.jit
    def main(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=(3, 1, 1), block=(32, 1, 1))

    x, y = random(224, 32), zeros(224, 32)
    cute.compile(main, x, y, target="tenstorrent", options="--core-grid 2x1")(x, y)
    expected = x.astype(np.float64) * 2
    expected[96:128] = 0
    assert (y.astype(np.float64) == expected).all()


def test_two_launches_run_in_order():
    @cute.kernel
    def double(x: cute.Tensor, y: cute.Tensor):
        tile.store(y, (0, 0), tile.load(x, (0, 0), (32, 32)) * 2.0)

    @cute.kernel
    def add_one(x: cute.Tensor, y: cute.Tensor):
        tile.store(y, (0, 0), tile.load(x, (0, 0), (32, 32)) + 1.0)

    @cute.jit
    def main(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        double(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))
        add_one(y, z).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x, y, z = random(32, 32), zeros(32, 32), zeros(32, 32)
    compiled = cute.compile(main, x, y, z, target="tenstorrent")
    compiled(x, y, z)
    assert error(z, 2 * x.astype(np.float64) + 1) < 5e-3
    assert list(compiled.stages["cpp"]) == ["double", "add_one"]
    assert set(compiled.kernels["add_one"].stages["cpp"]) == {"reader", "compute", "writer"}


def test_pages_are_four_faces():
    matrix = np.arange(64 * 96).reshape(64, 96)
    pages = tilize(matrix)
    assert pages.shape == (6, 1024)
    assert (pages[0, :256].reshape(16, 16) == matrix[:16, :16]).all()
    assert (pages[0, 256:512].reshape(16, 16) == matrix[:16, 16:32]).all()
    assert (pages[4, 512:768].reshape(16, 16) == matrix[48:64, 32:48]).all()
    assert (untilize(pages, (64, 96)) == matrix).all()


def test_the_engine_gets_19_bits_of_a_float32():
    page = np.full(1024, 1 + 2**-10 + 2**-11, np.float32)
    assert (unpacked(page) == np.float32(1 + 2**-10)).all()


class Without(IRMutator):
    def __init__(self, name):
        self.name = name

    def visit_evaluate(self, op):
        return None if op.value.op.name == self.name else op


def result_without(name, checked):
    """A product on one core whose kernels lack one operation."""
    parts = kernels(before("verify-protocol", gemm_module(64), context(core_grid="1x1")))
    programs = [Program(func.with_body(Without(name).visit_body(func.body))) for func in parts.values()]
    first = parts["reader"]
    a, b, c = random(64, 64), random(64, 64, seed=1), zeros(64, 64)
    memory = {key: tilize(item) for key, item in zip("abc", (a, b, c), strict=True)}
    core = DataCore(first.attrs["tt.cb_assignment"], memory, WORMHOLE.dst_capacity("fp32"), "fp32", checked)
    run_core(core, programs, {"a": 0, "b": 0, "c": 0, "start_id": 0, "count": 1})
    return untilize(memory["c"], (64, 64)).astype(np.float64), a.astype(np.float64) @ b.astype(np.float64)


def test_without_a_barrier_the_data_is_wrong():
    """What neither simulator of the C++ shows: data lands at the barrier alone."""
    got, expected = result_without("nothing", False)
    assert error(got, expected) < 2.5e-3
    got, _ = result_without("tt.noc.read_barrier", False)
    assert np.isnan(got).any()
    got, _ = result_without("tt.noc.write_barrier", False)
    assert not got.any()
    with pytest.raises(Fault, match="before the data has arrived"):
        result_without("tt.noc.read_barrier", True)


def test_a_deadlock_names_roles_and_buffers():
    with pytest.raises(Fault, match="deadlock") as caught:
        parts = kernels(before("verify-protocol", gemm_module(64), context(core_grid="1x1")))
        reader = parts["reader"]
        programs = [Program(func) for func in parts.values() if func is not reader]
        core = DataCore(reader.attrs["tt.cb_assignment"], {"c": tilize(zeros(64, 64))}, 4, "fp32")
        run_core(core, programs, {"c": 0, "start_id": 0, "count": 1})
    assert caught.value.values == {
        "compute": "waits for 2 pages of cb_a, which has 0 of 4",
        "writer": "waits for 4 pages of cb_c, which has 0 of 8",
    }  # fmt: skip


def test_a_tile_outside_the_tensor():
    def body(x, y):
        tile.store(y, (0, 0), tile.load(x, (2, 0), (32, 32)))

    with pytest.raises((EmulationError, PassError), match="touches tile 2 of tensors_0, which has 2") as caught:
        run(body, random(64, 32), zeros(32, 32))
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:32], "x is another tensor than the function was compiled for"),
        (lambda x: x.astype(np.float32), "x is another tensor than the function was compiled for"),
    ],
)
def test_other_arguments_are_refused(change, message):
    x, y = zeros(64, 64), zeros(64, 1)
    compiled = cute.compile(row_sum.main, x, y, target="tenstorrent")
    with pytest.raises(ArgumentError, match=message) as caught:
        compiled(change(x), y)
    assert "compiled for" in str(caught.value)


def test_a_tensor_of_open_shape_is_refused():
    x = cute.runtime.make_fake_compact_tensor(BFloat16, (cute.sym_int(), 64), stride_order=(1, 0))
    with pytest.raises(PassError, match="a grid whose extents are known only at run time"):
        cute.compile(row_sum.main, x, x, target="tenstorrent")
    with pytest.raises(PassError, match="tensor tensors_0, whose shape or strides are known only at run time"):
        trace(launched(lambda a: tile.load(a, (0, 0), (32, 32)), x), x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--dst fp16", "--dst 'fp16' is not known"),
        ("--core-grid 8", "--core-grid '8' is no grid"),
        ("--fidelity best", "--fidelity 'best' is not known"),
        ("--profile ttnn-1", "--profile 'ttnn-1' is not known"),
        ("--keep-ptx", "unknown compile option '--keep-ptx'"),
    ],
)
def test_options_that_it_refuses(options, message):
    x, y = zeros(64, 64), zeros(64, 1)
    with pytest.raises(CompileError, match=message):
        cute.compile(row_sum.main, x, y, target="tenstorrent", options=options)
    with pytest.raises(CompileError, match="unknown architecture 'blackhole'"):
        cute.compile(row_sum.main, x, y, target="tenstorrent", arch="blackhole")
