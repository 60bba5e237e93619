"""`EnableAssertions`: accesses outside a tensor stop the kernel, with file, line, block and thread."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import EmulationError
from tilewright.cute.runtime import from_dlpack

CHECKED = "--enable-assertions"


@cute.kernel
def write(x: cute.Tensor, start: cutlass.Int32):
    x[cute.arch.thread_idx()[0] + start] = 1.0


@cute.jit
def write_host(x: cute.Tensor, start: cutlass.Int32):
    write(x, start).launch(grid=1, block=32)


@cute.kernel
def write_tiles(x: cute.Tensor, predicated: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    tile = cute.local_tile(x, (4,), (i,))
    ones = cute.make_rmem_tensor(4, cutlass.Float32)
    ones.fill(1.0)
    pred = cute.make_rmem_tensor(4, cutlass.Boolean)
    for k in cutlass.range_constexpr(4):
        pred[k] = i * 4 + k < x.shape[0]
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    cute.copy(atom, ones, tile, pred=pred if cutlass.const_expr(predicated) else None)


@cute.jit
def write_tiles_host(x: cute.Tensor, predicated: cutlass.Constexpr):
    write_tiles(x, predicated).launch(grid=1, block=16)


def test_an_index_past_the_end(capfd):
    x = np.zeros(40, np.float32)
    compiled = cute.compile(write_host, x, 8, options=CHECKED, target="emu")
    compiled(x, 8)
    assert x.sum() == 32
    with pytest.raises(EmulationError, match="index out of bounds of a tensor") as caught:
        compiled(x, 9)
    text = str(caught.value)
    assert "x[cute.arch.thread_idx()[0] + start] = 1.0" in text and "(31, 0, 0)" in text and "block" in text
    assert "index 40 of 40" in capfd.readouterr().out


def test_a_negative_index():
    x = np.zeros(40, np.float32)
    with pytest.raises(EmulationError, match="index out of bounds"):
        cute.compile(write_host, x, -1, options=CHECKED, target="emu")(x, -1)


def test_a_tile_over_the_edge(capfd):
    x = np.zeros(61, np.float32)
    with pytest.raises(EmulationError, match="access outside the memory of x"):
        cute.compile(write_tiles_host, x, False, options=CHECKED, target="emu")(x)
    assert "elements 60 to 63 of 61 of x" in capfd.readouterr().out


def test_a_predicate_that_guards_the_edge():
    x = np.zeros(61, np.float32)
    cute.compile(write_tiles_host, x, True, options=CHECKED, target="emu")(x)
    assert x.sum() == 61


def test_without_the_option_there_are_no_checks():
    compiled = cute.compile(write_host, from_dlpack(np.zeros(40, np.float32)), 8, target="emu")
    assert "check-bounds" not in compiled.pipeline and "__assertfail" not in compiled.__ptx__


def test_facts_of_layouts_are_checked_on_the_host():
    @cute.jit
    def f(n: cutlass.Int32, d: cutlass.Int32, out: cute.Tensor):
        layout = cute.composition(cute.make_layout((n, 2), stride=(16, 4)), cute.make_layout((5, 4), stride=(1, d)))
        for i in cutlass.range_constexpr(4):
            out[i] = layout((0, i))

    out = np.zeros(4, np.int32)
    compiled = cute.compile(f, 10, 5, from_dlpack(out), target="emu")
    compiled(10, 5, from_dlpack(out))
    assert out.tolist() == [0, 80, 4, 84]
    with pytest.raises(cutlass.LaunchError, match="a layout function relied on what does not hold"):
        compiled(12, 5, from_dlpack(out))


def frames(error):
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    return found


def test_tracebacks_show_the_users_code_only(monkeypatch):
    def helper(x):
        return x[0, 0]

    @cute.kernel
    def kernel(x: cute.Tensor):
        x[0] = helper(x)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = np.zeros(4, np.float32)
    with pytest.raises(cutlass.CompileError, match="2 indices for a tensor of rank 1") as caught:
        cute.compile(host, x, target="emu")
    assert [name for _, name in frames(caught.value)][1:] == ["host", "kernel", "helper"]
    assert all(file == __file__ for file, _ in frames(caught.value))
    assert "return x[0, 0]" in str(caught.value) and "^" in str(caught.value)
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    with pytest.raises(cutlass.CompileError) as caught:
        cute.compile(host, x, target="emu")
    assert any("tilewright" in file for file, _ in frames(caught.value) if file != __file__)
