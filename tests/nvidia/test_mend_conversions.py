"""Conversions that ptxas gets wrong: the mended text has the value of the PTX, and machine code that computes it."""

import re

import numpy as np
import pytest

from tilewright.emulate import run_ptx
from tilewright.targets.nvidia.mends.mend_ptx import mend
from tilewright.targets.nvidia.sass.listing import disassemble
from tilewright.targets.nvidia.toolkit.assemble import assemble

FLOATS = np.array([0, -0.0, 0.25, 2.5, 3.5, -3.5, 16777217, 4294967040, 4294967296, 1e10, np.inf, np.nan], np.float32)
HALVES = np.array([0, -0.0, 3.5, -3.5, 2.25, -0.75, 6e-8, -6e-8, 60000, -60000, np.inf, -np.inf], np.float16)
ROUNDED = {"rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil, "rni": np.rint}


def program(lines):
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry apply(.param .u64 source, .param .u64 target) {{
    .reg .pred %p<3>;
    .reg .b16 %h<9>;
    .reg .b32 %r<9>, %tid4;
    .reg .f32 %f<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [source];
    ld.param.u64 %rd2, [target];
    mov.u32 %r8, %tid.x;
    mad.wide.u32 %rd3, %r8, 4, %rd1;
    mad.wide.u32 %rd4, %r8, 2, %rd1;
    mad.wide.u32 %rd2, %r8, 4, %rd2;
    {lines}
    ret;
}}
"""


def checked(lines, values, result, shape):
    """The mended program's machine code, whose result is that of the program as it is."""
    text = program(lines)
    mended = mend(text)
    assert mended.count("\n") == text.count("\n")
    plain = result.copy()
    run_ptx(text, "apply", grid=1, block=len(plain), args=[values.copy(), plain])
    run_ptx(mended, "apply", grid=1, block=len(result), args=[values.copy(), result])
    np.testing.assert_array_equal(plain, result)
    code = disassemble(assemble(mended, "sm_90").data)
    assert re.search(shape, code, re.DOTALL), code
    return mended


def unsigned(values):
    """As `cvt.u32.f32`: held within bounds, NaN is 0."""
    return np.clip(np.nan_to_num(values.astype(np.float64), nan=0, posinf=2**33), 0, 2**32 - 1)


@pytest.mark.parametrize("first", ROUNDED)
@pytest.mark.parametrize("second", ROUNDED)
@pytest.mark.parametrize("between", ["rn", "rz"])
def test_a_number_that_was_a_float_before(first, between, second):
    lines = (
        f"ld.global.f32 %f0, [%rd3];\n cvt.{first}.u32.f32 %r0, %f0;\n cvt.{between}.f32.u32 \t%f1, %r0;\n"
        f" cvt.{second}.u32.f32 %r1, %f1;\n st.global.u32 [%rd2], %r1;"
    )
    result = np.zeros(len(FLOATS), np.uint32)
    plain = between == "rn" and first == second == "rzi"  # one instruction is right, and LLVM writes it
    mended = checked(lines, FLOATS, result, "F2I" if plain else "F2I.*F2I")
    assert ("max.f32" in mended) is not plain
    whole = unsigned(ROUNDED[first](FLOATS))
    near = whole.astype(np.float32).astype(np.float64)
    exact = whole if between == "rn" else np.minimum(whole, 4294967040)
    wanted = np.where(whole == 2**32 - 1, exact, near)
    np.testing.assert_array_equal(result, unsigned(wanted).astype(np.uint32))


def test_a_guard_goes_before_each_instruction():
    lines = (
        "ld.global.f32 %f0, [%rd3];\n setp.gt.f32 %p1, %f0, 0f40400000;\n mov.b32 %f1, 0f41200000;\n"
        " cvt.rpi.u32.f32 %r0, %f0;\n @%p1 cvt.rn.f32.u32 \t%f1, %r0;\n cvt.rzi.u32.f32 %r1, %f1;\n"
        " st.global.u32 [%rd2], %r1;"
    )
    result = np.zeros(len(FLOATS), np.uint32)
    mended = checked(lines, FLOATS, result, "F2I.*F2I")
    assert mended.count("@%p1") == 2
    assert result[3:6].tolist() == [10, 4, 10]


@pytest.mark.parametrize("instruction", ["abs", "neg"])
def test_a_flushed_half_is_rounded_to_zero(instruction):
    lines = (
        f"ld.global.b16 %h0, [%rd4];\n {instruction}.ftz.f16 \t%h1, %h0;\n cvt.rzi.s32.f16 %r1, %h1;\n"
        " st.global.u32 [%rd2], %r1;"
    )
    result = np.zeros(len(HALVES), np.int32)
    mended = checked(lines, HALVES, result, r"F2I\.F16\.TRUNC")
    assert ".ftz.f16 \t%h1, %h0" not in mended
    exact = np.abs(HALVES) if instruction == "abs" else -HALVES
    wanted = np.clip(np.trunc(exact.astype(np.float64)), -(2**31), 2**31 - 1)
    np.testing.assert_array_equal(result, wanted.astype(np.int32))


@pytest.mark.parametrize(("width", "shape"), [(32, "MNMX.U32|GT.U32"), (16, "STG")])
def test_bytes_of_a_vector_keep_their_sign_where_it_is_loaded(width, shape):
    names = [f"%{'r' if width == 32 else 'h'}{number}" for number in range(4)]
    take = "cvt.sat.u16.u32 %h7, %r3;" if width == 32 else "cvt.u16.u8 %h7, %h3; shr.u16 %h7, %h3, 4;"
    load = f"ld.global.v4.s8 \t{{{', '.join(names)}}}, [%rd3];"
    lines = f"{load}\n {take}\n cvt.u32.u16 %r1, %h7;\n st.global.u32 [%rd2], %r1;"
    values = np.array([5, -1, -128, 127, 9, 1, 2, -5], np.int8)
    result = np.zeros(2, np.uint32)
    mended = checked(lines, values, result, shape)
    assert ".v4.b8" in mended
    if width == 32:  # -5 as u32 is more than 65535
        assert result.tolist() == [127, 65535]
    else:
        assert result.tolist() == [127 >> 4, (-5 & 0xFFFF) >> 4]


def test_texts_without_the_forms_stay():
    for line in (
        "cvt.rn.f32.u32 \t%f1, %r0;", "cvt.rzi.u32.f32 %r1, %f1; cvt.rn.f32.u32 \t%f1, %r0;", "abs.ftz.f16 \t%h1, %h0;",
        "ld.global.v4.u8 \t{%r0, %r1, %r2, %r3}, [%rd3];", "abs.f16 \t%h1, %h0; cvt.rzi.s32.f16 %r1, %h1;",
    ):  # fmt: skip
        assert mend(program(line)) == program(line)
