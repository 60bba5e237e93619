"""Layouts as the notebooks of NVIDIA/cutlass state them, where several layouts are the same function."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int32


def printed(capfd, *layouts):
    """What `print` shows at compile time and `printf` at run time, one line each."""

    @cute.jit
    def show():
        left, right = layouts[0](), layouts[1]()
        composed = cute.composition(left, right)
        print(composed)
        cute.printf("{}", composed)

    capfd.readouterr()
    cute.compile(show, target="emu")()
    return capfd.readouterr().out.split("\n")[:2]


def test_a_composition_with_a_runtime_stride(capfd):
    lines = printed(
        capfd,
        lambda: cute.make_layout((6, 2), stride=(Int32(8), 2)),
        lambda: cute.make_layout((4, 3), stride=(3, 1)),
    )
    assert sorted(lines) == ["((2,2),3):((24,2),8)", "((2,2),3):((?{div=3},2),?)"]


def test_runtime_extents_keep_the_mode_that_may_have_more_than_one_element(capfd):
    lines = printed(
        capfd,
        lambda: cute.make_layout((Int32(10), Int32(2)), stride=(Int32(16), Int32(4))),
        lambda: cute.make_layout((Int32(5), Int32(4)), stride=(Int32(1), Int32(5))),
    )
    assert "((5,1),(2,2)):((16,4),(80,4))" in lines
    static = cute.composition(cute.make_layout((10, 2), stride=(16, 4)), cute.make_layout((5, 4), stride=(1, 5)))
    assert str(static) == "(5,(2,2)):(16,(80,4))"


def test_facts_between_written_numbers_are_decided_at_once():
    @cute.kernel
    def kernel(out: cute.Tensor):
        divided = cute.zipped_divide(cute.make_layout((Int32(8), 4), stride=(4, 1)), (Int32(4), 2))
        out[0] = divided(((1, 1), (1, 1)))

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    cute.compile(run, out, target="emu")(out)
    assert out[0] == (1 + 4) * 4 + (1 + 2)  # row 5, column 3
    assert cutlass.Int32(8).written == 8
