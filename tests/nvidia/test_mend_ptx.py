"""Instructions that some assemblers get wrong are replaced by others with the same value."""

import numpy as np
import pytest

from tilewright import cute
from tilewright.emulate import run_ptx
from tilewright.targets.nvidia.mend_ptx import mend

VALUES = np.array([-32768, -32767, -129, -128, -1, 0, 1, 127, 128, 255, 32766, 32767], np.int16)


def program(instruction):
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry apply(.param .u64 source, .param .u64 target) {{
    .reg .b16 %rs<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [source];
    ld.param.u64 %rd2, [target];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 2;
    mul.wide.u32 %rd4, %r1, 8;
    add.s64 %rd5, %rd1, %rd3;
    add.s64 %rd6, %rd2, %rd4;
    ld.global.u16 %rs1, [%rd5];
    {instruction}.s16 \t%rs2, %rs1;
    cvt.s64.s16 %rd7, %rs2;
    st.global.u64 [%rd6], %rd7;
    ret;
}}
"""


@pytest.mark.parametrize(("instruction", "wanted"), [("neg", np.negative), ("abs", np.abs)])
def test_the_value_is_that_of_16_bits(instruction, wanted):
    text = mend(program(instruction))
    assert f"{instruction}.s16" not in text
    assert text.count("\n") == program(instruction).count("\n")  # lines stay where the source map says
    result = np.zeros(len(VALUES), np.int64)
    run_ptx(text, "apply", grid=1, block=len(VALUES), args=[VALUES, result])
    np.testing.assert_array_equal(result, wanted(VALUES).astype(np.int64))  # NumPy wraps in 16 bits too


def test_other_text_is_left_alone():
    text = program("neg").replace("neg.s16", "neg.s32").replace("%rs2, %rs1", "%r1, %r1")
    assert mend(text) == text


def test_compiled_code_has_no_such_instruction():
    @cute.kernel
    def negate(x: cute.Tensor, y: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        y[i] = cute.Int64(-x[i])

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor):
        negate(x, y).launch(grid=(1, 1, 1), block=(len(VALUES), 1, 1))

    y = np.zeros(len(VALUES), np.int64)
    compiled = cute.compile(run, VALUES.copy(), y, target="emu")
    compiled(VALUES.copy(), y)
    text = str(compiled.stages["ptx"])
    assert "neg.s16" not in text
    assert "mul.lo.s16" in text
    np.testing.assert_array_equal(y, np.negative(VALUES).astype(np.int64))
