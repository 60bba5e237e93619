"""The verifier's rules for tiles, on modules written as text."""

from __future__ import annotations

import pytest

from tilewright import PassError
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.passes.verify import verify

MEMORY = '!cute.tensor<f32, "gmem", "(64,64):(64,1)", 4 : i32>'
SHARED = MEMORY.replace("gmem", "smem")


def check(line, memory=MEMORY, a="tensor<8x16xf32>", b="tensor<16x4xf32>", c="tensor<8x4xf32>"):
    """Verify a function with one operation on a tensor, an i32, and three tiles."""
    text = f"func.func @f(%m: {memory}, %i: i32, %a: {a}, %b: {b}, %c: {c}, %x: f32) {{ {line}\n return }}"
    with compile_context():
        verify(mlir.ir.Module.parse(text).operation, "pass test")


LOAD = f'%0 = "cute.tile_load"(%m, %i, %i) {{pad = 0.0 : f64}} : ({MEMORY}, i32, i32) -> tensor<8x16xf32>'
DOT = '%0 = "cute.tile_dot"(%a, %b, %c) : (tensor<8x16xf32>, tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>'
SUM = '%0 = "cute.tile_reduce"(%a) {kind = "addf", axis = 1 : i32} : (tensor<8x16xf32>) -> tensor<8x1xf32>'
STORE = f'"cute.tile_store"(%a, %m, %i, %i) : (tensor<8x16xf32>, {MEMORY}, i32, i32) -> ()'
FULL = '%0 = "cute.tile_full"(%x) : (f32) -> tensor<8x8xf32>'
SPREAD = f'{SUM} %1 = "cute.tile_broadcast"(%0) : (tensor<8x1xf32>) -> tensor<8x16xf32>'


@pytest.mark.parametrize("line", [LOAD, DOT, SUM, STORE, FULL, SPREAD])
def test_right_ones(line):
    check(line)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LOAD.replace("-> tensor<8x16xf32>", "-> tensor<8x16xf16>"), "of another type than the tensor's"),
        (LOAD.replace("-> tensor<8x16xf32>", "-> tensor<8xf32>"), "a tensor of rank 2, a coordinate of 2 and a tile"),
        (LOAD.replace("%i, %i", "%i").replace("i32, i32", "i32"), "a coordinate of 1 and a tile of 2 modes"),
        (LOAD.replace("0.0 : f64", '"zero"'), "pad is a number"),
        (LOAD.replace("-> tensor<8x16xf32>", "-> tensor<8x?xf32>"), "the shape of a tile is static"),
        (FULL.replace("-> tensor<8x8xf32>", "-> tensor<8x8xf16>"), "of another type than the tile's elements"),
        (SPREAD[: -len("tensor<8x16xf32>")] + "tensor<4x16xf32>", "repeated along its modes of extent 1"),
        (SUM.replace("axis = 1", "axis = 2"), "there is no axis 2"),
        (SUM.replace("axis = 1", "axis = 0"), "the folded mode is left with extent 1"),
        (SUM.replace("addf", "addi"), "kind 'addi' does not fold f32"),
        (SUM.replace("addf", "mean"), "kind 'mean' is not known"),
    ],
)
def test_wrong_ones(line, message):
    with pytest.raises(PassError, match=message) as caught:
        check(line)
    assert "pass test left cute.tile_" in str(caught.value)


def test_products():
    with pytest.raises(PassError, match=r"the shapes are \(M, K\), \(K, N\), \(M, N\)"):
        check(DOT.replace("16x4", "8x4"), b="tensor<8x4xf32>")
    with pytest.raises(PassError, match="elements of one type"):
        check(DOT.replace("16x4xf32", "16x4xf16"), b="tensor<16x4xf16>")
    with pytest.raises(PassError, match="the sums are f32 of floats, i32 of integers"):
        check(DOT.replace("8x4xf32", "8x4xf16"), c="tensor<8x4xf16>")


def test_spaces():
    with pytest.raises(PassError, match="tiles are read and written in global memory"):
        check(LOAD.replace(MEMORY, SHARED), memory=SHARED)
