"""Instructions that some assemblers get wrong are replaced by others with the same value."""

import ml_dtypes
import numpy as np
import pytest

from tilewright import cute
from tilewright.emulate import run_ptx
from tilewright.targets.nvidia.mends.mend_ptx import mend

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


WORDS = np.array([-(2**31), 1 - 2**31, -65536, -1, 0, 1, 255, 65535, 65536, 2**31 - 1], np.int32)


def run(lines, result):
    """The mended text of a kernel of `lines`: `%r1` is a word, `%rs1` its lower half, `%p1` its sign."""
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry apply(.param .u64 source, .param .u64 target) {{
    .reg .pred %p<3>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [source];
    ld.param.u64 %rd2, [target];
    mov.u32 %r8, %tid.x;
    mad.wide.u32 %rd1, %r8, 4, %rd1;
    mad.wide.u32 %rd2, %r8, {result.dtype.itemsize}, %rd2;
    ld.global.b32 %r1, [%rd1];
    ld.global.b16 %rs1, [%rd1];
    setp.lt.s32 %p1, %r1, 0;
    {lines}
    ret;
}}
"""
    mended = mend(text)
    assert mended.count("\n") == text.count("\n")
    run_ptx(mended, "apply", grid=1, block=len(WORDS), args=[WORDS, result])
    return mended


def test_the_absolute_value_of_the_least_number_is_converted_without_a_sign():
    result = np.zeros(len(WORDS), np.float32)
    mended = run("abs.s32 \t%r2, %r1;\n cvt.rn.f32.u32 \t%r3, %r2;\n st.global.b32 [%rd2], %r3;", result)
    assert "abs.s32" not in mended
    np.testing.assert_array_equal(result, np.abs(WORDS.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("bits", [32, 64])
def test_the_absolute_value_of_the_least_number_is_below_zero(bits):
    result = np.zeros(len(WORDS), np.uint32)
    shift = "cvt.u64.u32 \t%rd3, %r1;\n shl.b64 \t%rd3, %rd3, 32;" if bits == 64 else ""
    number, absolute = ("%rd3", "%rd4") if bits == 64 else ("%r1", "%r2")
    lines = f"{shift}\n abs.s{bits} \t{absolute}, {number};\n setp.lt.s{bits} \t%p2, {absolute}, 0;"
    mended = run(f"{lines}\n selp.b32 \t%r3, 1, 0, %p2;\n st.global.b32 [%rd2], %r3;", result)
    assert "abs.s" not in mended
    np.testing.assert_array_equal(result, WORDS == -(2**31))


@pytest.mark.parametrize(
    "way",
    [
        "cvt.u32.u16 \t%r2, %rs1;",
        "cvt.u32.u16 \t%r3, %rs1;\n or.b32 \t%r2, %r3, 0;",
        "cvt.u64.u16 \t%rd3, %rs1;\n cvt.u32.u64 \t%r2, %rd3;",
        "mov.b16 \t%rs2, 1;\n mul.wide.u16 \t%r3, %rs1, %rs2;\n mov.b32 \t%r2, %r3;",
    ],
)
def test_the_halves_of_a_widened_number_are_taken_by_shifts(way):
    result = np.zeros((len(WORDS), 2), np.uint16)
    store = "st.global.b16 [%rd2], %rs3;\n st.global.b16 [%rd2+2], %rs4;"
    mended = run(f"mad.wide.u32 %rd2, %r8, 2, %rd2;\n {way}\n mov.b32 \t{{%rs3, %rs4}}, %r2;\n {store}", result)
    assert "mov.b32 \t{" not in mended
    np.testing.assert_array_equal(result[:, 0], WORDS.astype(np.uint16))
    assert not result[:, 1].any()


def test_the_parts_of_64_bits():
    result = np.zeros((len(WORDS), 4), np.uint16)
    take = "mov.b64 \t{%rs3, _, %rs5, %rs6}, %rd3;"
    store = "st.global.b16 [%rd2], %rs3;\n st.global.b16 [%rd2+4], %rs5;\n st.global.b16 [%rd2+6], %rs6;"
    mended = run(f"mad.wide.u32 %rd2, %r8, 6, %rd2;\n cvt.u64.u16 \t%rd3, %rs1;\n {take}\n {store}", result)
    assert "mov.b64 \t{" not in mended
    np.testing.assert_array_equal(result[:, 0], WORDS.astype(np.uint16))
    assert not result[:, 1:].any()


def test_other_halves_keep_their_form():
    result = np.zeros(len(WORDS), np.uint16)
    lines = "cvt.u32.u16 \t%r2, %rs1;\n mov.b32 \t{_, %rs4}, %r1;\n st.global.b16 [%rd2], %rs4;"
    assert "mov.b32 \t{_, %rs4}, %r1;" in run(lines, result)
    np.testing.assert_array_equal(result, WORDS.view(np.uint32) >> 16)


@pytest.mark.parametrize(("part", "wanted"), [("{%rs3, _}", (-7.0, 3.0)), ("{_, %rs3}", (1.5, -0.5))])
def test_the_halves_of_a_constant_of_fp8_are_taken_by_shifts(part, wanted):
    constant = sum(byte << 8 * place for place, byte in enumerate((0xC7, 0x42, 0x3E, 0xB8)))  # e5m2
    result = np.zeros((len(WORDS), 2), np.float16)
    unpack = f"mov.b32 \t%r2, {constant - (1 << 32)};\n mov.b32 \t{part}, %r2;\n cvt.rn.f16x2.e5m2x2 \t%r3, %rs3;"
    mended = run(f"{unpack}\n st.global.b32 [%rd2], %r3;".replace("[%rd2]", "[%rd4]").replace(
        "mov.b32 \t%r2", "mad.wide.u32 %rd4, %r8, 2, %rd2;\n mov.b32 \t%r2"), result)  # fmt: skip
    assert "mov.b32 \t{" not in mended
    assert (result == wanted).all()


@pytest.mark.parametrize(
    ("type_", "convert", "dtype"),
    [("f64", "cvt.rn.f64.u32 \t%rd3", np.float64), ("f32", "cvt.rn.f32.u32 \t%r3", np.float32),
     ("f16", "cvt.rn.f16.u32 \t%rs3", np.float16)],
)  # fmt: skip
def test_the_zero_of_a_negated_boolean_has_its_sign(type_, convert, dtype):
    result = np.zeros(len(WORDS), dtype)
    register = convert.split("\t")[1]
    lines = f"selp.b32 \t%r2, 1, 0, %p1;\n {convert}, %r2;\n neg.{type_} \t{register}, {register};"
    mended = run(f"{lines}\n st.global.b{type_[1:]} [%rd2], {register};", result)
    assert f"neg.{type_}" not in mended
    np.testing.assert_array_equal(result, np.where(WORDS < 0, -1.0, -0.0))
    assert np.signbit(result).all()


def test_other_negations_stay():
    result = np.zeros(len(WORDS), np.float32)
    assert "neg.f32" in run("neg.f32 \t%r2, %r1;\n st.global.b32 [%rd2], %r2;", result)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, -WORDS.view(np.float32))


NEGATED = 3 - WORDS.astype(np.int64)


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("negation", ["neg.s32 \t%r3, %r2;", "sub.s32 \t%r4, 0, %r2;\n mov.b32 \t%r3, %r4;"])
def test_minima_and_maxima_see_no_negation(operation, negation):
    result = np.zeros(len(WORDS), np.int32)
    nested = f"{operation}.s32 \t%r5, %r1, %r3;\n {operation}.s32 \t%r6, %r5, -5;"
    mended = run(f"add.s32 \t%r2, %r1, -3;\n {negation}\n {nested}\n st.global.b32 [%rd2], %r6;", result)
    assert "neg.s32" not in mended
    assert ", 0, %r2" not in mended
    best = np.minimum if operation == "min" else np.maximum
    np.testing.assert_array_equal(result, best(best(WORDS, NEGATED.astype(np.int32)), np.int32(-5)))


def test_a_negation_that_is_not_compared_stays():
    result = np.zeros(len(WORDS), np.int32)
    lines = "neg.s32 \t%r2, %r1;\n max.s32 \t%r3, %r1, 7;\n st.global.b32 [%rd2], %r2;"
    assert "neg.s32" in run(lines, result)
    np.testing.assert_array_equal(result, np.negative(WORDS))


def test_the_maximum_of_an_absolute_value_sees_no_negation():
    result = np.zeros(len(WORDS), np.int32)
    mended = run("abs.s32 \t%r2, %r1;\n max.s32 \t%r3, %r2, 300;\n st.global.b32 [%rd2], %r3;", result)
    assert "neg.s32" not in mended
    np.testing.assert_array_equal(result, np.maximum(np.abs(WORDS), 300))


FLOATS = WORDS.view(np.float32)


@pytest.mark.parametrize(
    ("bounded", "comparison", "wanted"),
    [
        ("abs.f32 \t%r2, %r1;", "ge.f32 \t%p2, %r2, 0fBF800000", ~np.isnan(FLOATS)),
        ("abs.f32 \t%r2, %r1;", "lt.f32 \t%p2, 0fBF800000, %r2", ~np.isnan(FLOATS)),
        ("abs.f32 \t%r3, %r1;\n add.f32 \t%r2, %r3, 0f40000000;", "gt.f32 \t%p2, %r2, 0f3F800000", ~np.isnan(FLOATS)),
        ("cos.approx.f32 \t%r2, %r1;", "ge.f32 \t%p2, %r2, 0fC0000000", ~np.isnan(FLOATS)),
    ],
)
def test_a_comparison_of_a_number_with_bounds_is_false_for_nan(bounded, comparison, wanted):
    assert np.isnan(FLOATS).any()
    result = np.zeros(len(WORDS), np.uint32)
    mended = run(f"{bounded}\n setp.{comparison};\n selp.b32 \t%r5, 1, 0, %p2;\n st.global.b32 [%rd2], %r5;", result)
    assert f"setp.{comparison}" not in mended
    np.testing.assert_array_equal(result, wanted)


def test_other_comparisons_keep_their_form():
    result = np.zeros(len(WORDS), np.uint32)
    lines = "abs.f32 \t%r2, %r1;\n setp.ge.f32 \t%p2, %r1, 0fBF800000;\n selp.b32 \t%r5, 1, 0, %p2;"
    assert "setp.ge.f32 \t%p2, %r1, 0fBF800000;" in run(f"{lines}\n st.global.b32 [%rd2], %r5;", result)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result, FLOATS >= -1)


@pytest.mark.parametrize("constant", [7, -65533, 0x00010002])
def test_halves_of_a_sum_with_a_constant_are_added_one_by_one(constant):
    result = np.zeros(len(WORDS), np.uint32)
    lines = f"mov.b32 \t%r2, {constant};\n add.s16x2 \t%r3, %r2, %r1;\n st.global.b32 [%rd2], %r3;"
    assert "16x2" not in run(lines, result)
    halves = WORDS.view(np.uint16).reshape(-1, 2) + np.array([constant & 0xFFFF, constant >> 16 & 0xFFFF], np.uint16)
    np.testing.assert_array_equal(result, halves.view(np.uint32)[:, 0])


def test_sums_of_other_halves_stay_packed():
    result = np.zeros(len(WORDS), np.uint32)
    assert "add.s16x2" in run("add.s16x2 \t%r3, %r1, %r1;\n st.global.b32 [%rd2], %r3;", result)
    halves = WORDS.view(np.uint16) * np.uint16(2)
    np.testing.assert_array_equal(result, halves.view(np.uint32))


@pytest.mark.parametrize("other", ["%rs3", "%rs4", ""])
def test_pairs_of_fp8_with_other_uses_are_joined_otherwise(other):
    result = np.zeros(len(WORDS), np.uint32)
    pairs = "".join(f"cvt.rn.satfinite.e5m2x2.f32 \t%rs{n}, %r{n}, %r2;\n " for n in (3, 4))
    use = f"st.local.b16 [room], {other};" if other else ""
    lines = ".local .b16 room;\n cvt.rn.f32.s32 \t%r2, %r1;\n mov.b32 \t%r3, 0f40000000;\n mov.b32 \t%r4, 0fBF800000;"
    mended = run(f"{lines}\n {pairs}\n mov.b32 \t%r5, {{%rs3, %rs4}};\n {use}\n st.global.b32 [%rd2], %r5;", result)
    assert ("mov.b32 \t%r5" in mended) == (not other)
    low = WORDS.astype(np.float32).clip(-57344, 57344).astype(ml_dtypes.float8_e5m2).view(np.uint8).astype(np.uint32)
    np.testing.assert_array_equal(result, low | 0x40 << 8 | low << 16 | 0xBC << 24)


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


BARE = """
\tadd.f32 \t%r1, %r2, %r3;
\tsub.ftz.f32 \t%r1, %r2, %r3;
\tmul.f16x2 \t%r1, %r2, %r3;
\tmul.rn.f64 \t%rd1, %rd2, %rd3;
\tadd.s32 \t%r1, %r2, %r3;
\t// begin inline asm
\tmul.f32 %r1, %r2, %r3;
\t// end inline asm
\tmul.bf16 \t%rs1, %rs2, %rs3;
"""


def test_sums_and_products_that_may_be_contracted_say_how_they_round():
    lines = [line.strip() for line in mend(BARE).strip().splitlines()]
    assert lines == [
        "add.rn.f32 \t%r1, %r2, %r3;",
        "sub.rn.ftz.f32 \t%r1, %r2, %r3;",
        "mul.rn.f16x2 \t%r1, %r2, %r3;",
        "mul.rn.f64 \t%rd1, %rd2, %rd3;",
        "add.s32 \t%r1, %r2, %r3;",
        "// begin inline asm",
        "mul.f32 %r1, %r2, %r3;",
        "// end inline asm",
        "mul.rn.bf16 \t%rs1, %rs2, %rs3;",
    ]
