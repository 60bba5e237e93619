"""What the target does not take, said at the user's line; and wrong passes in a pass list."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
import tilewright.tile as tile
from examples.tenstorrent import gemm
from tests.tenstorrent.programs import random, run, zeros
from tilewright import ArgumentError, EmulationError, Float32, Int32, PassError
from tilewright.targets.tenstorrent.passes.tile_values.planner import Planner
from tilewright.targets.tenstorrent.tir.nodes import Yield
from tilewright.tenstorrent import (
    Evaluate,
    FloatImm,
    For,
    IntImm,
    PrimFunc,
    SeqStmt,
    TileDfg,
    Var,
    call_extern,
    evaluate,
    func_pass,
    let,
)

A = zeros(64, 64, dtype=np.float32)


def body(function):
    """A kernel whose body is rewritten, so that its loops and branches are of run time."""
    return cute.jit(function)


@body
def chooses(a):
    row, _, _ = cute.arch.block_idx()
    place = Int32(0)
    if row > 0:
        place = row - 1
    tile.store(a, (place, 0), tile.load(a, (place, 0), (32, 32)))


@body
def reads_elements(a):
    tile.store(a, (0, 0), tile.full((32, 32), a[0, 0], a.element_type))


@body
def computes_a_number(a):
    row, _, _ = cute.arch.block_idx()
    tile.store(a, (0, 0), tile.full((32, 32), Float32(row), Float32).to(a.element_type))


@body
def uses_a_sum(a):
    acc = tile.zeros((32, 32), Float32)
    for step in range(2):
        tile.store(a, (0, step), acc.to(a.element_type))
        acc = tile.dot(tile.load(a, (0, step), (32, 32)), tile.load(a, (0, step), (32, 32)), acc)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (chooses, "a value chosen by an `if` of run time"),
        (reads_elements, "a tile of a number that the kernel computes"),
        (computes_a_number, "a tile of a number that the kernel computes"),
        (uses_a_sum, "another use of a tile that a loop carries, inside the loop"),
    ],
)
def test_constructs(function, message):
    with pytest.raises(PassError, match=f"the tenstorrent target does not take {message}") as caught:
        run(function, A, grid=(2, 1, 1))
    assert caught.value.location.file == __file__ and caught.value.hint


@cute.kernel
def scale(x: cute.Tensor, factor: Float32):
    tile.store(x, (0, 0), tile.load(x, (0, 0), (32, 32)) * tile.full((32, 32), factor, Float32))


@cute.jit
def computed_argument(x: cute.Tensor, factor: Float32):
    scale(x, factor * 2.0).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_arguments_that_host_code_computes():
    with pytest.raises(PassError, match="argument factor of a kernel, which host code computes"):
        cute.compile(computed_argument, zeros(32, 32, dtype=np.float32), 1.0, target="tenstorrent")


def test_a_loop_that_carries_a_tile_for_nothing():
    kind = "tensor<32x32xf32>"
    carried, result = Var("c", kind), Var("r", kind)
    loop = For(
        Var("i"), IntImm(2), SeqStmt((Yield((carried,)),)), "serial", ((carried, FloatImm(0.0, kind)),), (result,)
    )
    use = evaluate("tt.write_from_cb", Var("cb", "!tt.cb"), Var("a"), 0, 0, result, rows=1, cols=1)
    with pytest.raises(PassError, match="a loop carries a tile that it does not use"):
        Planner(PrimFunc("f", body=SeqStmt((loop, use)))).body()


def allocated(*statements):
    buffer = Var("cb_a", "!tt.cb")
    allocation = let(buffer, "tt.alloc_cb", format="bf16", tiles=1, name="a", kind="input")
    return PrimFunc("f", body=SeqStmt((allocation, *(make(buffer) for make in statements))))


def test_circular_buffers_without_two_ends():
    packs = lambda buffer: evaluate("tt.pack", 0, buffer)  # noqa: E731
    fills = lambda buffer: evaluate("tt.fill", buffer, number=1.0)  # noqa: E731
    with pytest.raises(PassError, match="circular buffer a has no consumer"):
        TileDfg(allocated(packs), None, None)
    with pytest.raises(PassError, match="circular buffer a has no producer"):
        TileDfg(allocated(), None, None)
    with pytest.raises(PassError, match="circular buffer cb_a has two producers, compute and reader"):
        TileDfg(allocated(packs, fills), None, None)


class OverModules(cutlass.Pass):
    """A pass over MLIR."""

    name = "over-modules"

    def run(self, module):
        """Nothing."""


@func_pass(opt_level=0)
def LeavesAType(func, mod, ctx):
    """An operation that MLIR does not take."""
    return func.with_body(SeqStmt((*func.body.seq, evaluate("gpu.barrier", 3))))


@func_pass(opt_level=0)
def CallsCpp(func, mod, ctx):
    """A function of C++ at the end of the reader."""
    if func.attrs["tt.kernel_role"] != "reader":
        return func
    return func.with_body(SeqStmt((*func.body.seq, Evaluate(call_extern("void", "my_function", 7)))))


def test_functions_of_c_plus_plus_are_not_simulated():
    a = zeros(64, 64)
    compiled = cute.compile(
        gemm.main, a, a, a, target="tenstorrent", passes=cutlass.before("verify-protocol", CallsCpp)
    )
    assert "    my_function(7);\n}" in compiled.stages["cpp"]["reader"]
    with pytest.raises(EmulationError, match=r"the reader of kernel calls my_function, a function of C\+\+"):
        compiled(a, a, a)


def test_passes_in_the_wrong_place():
    a = zeros(64, 64)
    with pytest.raises(PassError, match="pass over-modules runs on modules of MLIR, and stands among the passes of"):
        cute.compile(gemm.main, a, a, a, target="tenstorrent", passes=cutlass.after("split", OverModules))
    cute.compile(gemm.main, a, a, a, target="tenstorrent", passes=OverModules)  # at the end of stage cute
    with pytest.raises(PassError, match=r"gpu\.barrier is no operation of a kernel"):
        cute.compile(gemm.main, a, a, a, target="tenstorrent", passes=cutlass.before("verify-protocol", LeavesAType))


@cute.jit
def takes_a_pointer(x: cute.Tensor, y: cute.Pointer):
    scale(x, Float32(2.0)).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_arguments_of_calls():
    x = zeros(32, 32, dtype=np.float32)
    pointer = cute.runtime.make_ptr(Float32, 16, cute.AddressSpace.gmem, assumed_align=16)
    compiled = cute.compile(takes_a_pointer, x, pointer, target="tenstorrent")
    with pytest.raises(
        ArgumentError, match=r"y: the tenstorrent target takes tensors and numbers[\s\S]*hint: pass pointers as tensors"
    ):
        compiled(x, pointer)

    @cute.jit
    def with_integers(x: cute.Tensor, n: cute.Tensor):
        scale(x, Float32(2.0)).launch(grid=(1, 1, 1), block=(32, 1, 1))

    n = np.zeros(4, np.int32)
    with pytest.raises(
        ArgumentError, match=r"n: tensors of bf16, f32 are taken[\s\S]*hint: convert it on the host first"
    ):
        cute.compile(with_integers, x, n, target="tenstorrent")(x, n)


def test_a_number_that_is_known_needs_no_argument():
    x = random(32, 32, dtype=np.float32)
    expected = x.astype(np.float64) * 2
    cute.compile(takes_two, x, target="tenstorrent")(x)
    assert np.allclose(x, expected, rtol=2e-3)


@cute.jit
def takes_two(x: cute.Tensor):
    scale(x, Float32(2.0)).launch(grid=(1, 1, 1), block=(32, 1, 1))
