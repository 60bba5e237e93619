"""What the emulator says of wrong launches and of kernels that do something undefined."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.emulate import run_ptx

PTX = (Path(__file__).parent / "data" / "engine" / "engine.ptx").read_text()


def fails(name, grid, block, args, error=EmulationError, **options):
    with pytest.raises(error) as caught:
        run_ptx(PTX, name, grid, block, args, **options)
    return str(caught.value)


def header(body, registers="", params=""):
    """A kernel `k` of one pointer and `n`, around a body in PTX."""
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n{params})
{{
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>; .reg .f32 %f<9>;
  .shared .align 16 .b8 s[256];
  {registers}
  ld.param.u64 %d1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
{body}
  ret;
}}
"""


def run(body, block=32, n=0, out=None, **options):
    out = np.zeros(64, np.int32) if out is None else out
    return run_ptx(header(body), "k", 1, block, [out, n], **options), out


def complaint(body, block=32, n=0, out=None, **options):
    with pytest.raises(EmulationError) as caught:
        run(body, block, n, out, **options)
    return str(caught.value)


@pytest.mark.parametrize("checks", [True, False])
def test_out_of_bounds_names_line_block_thread_and_buffer(checks):
    a, b, c = np.zeros((3, 1000), np.float32)
    text = fails("add", 4, 256, [a, b.copy(), c.copy(), 1001], checks=checks)
    assert "Out-of-bounds read of global memory" in text
    assert "ld.global" in text and "(3, 0, 0)" in text and "(232, 0, 0)" in text
    assert "0 bytes past its end" in text and "4000 bytes" in text


@pytest.mark.parametrize("checks", [True, False])
def test_null_pointer(checks):
    text = fails("add", 1, 32, [np.zeros(32, np.float32), None, np.zeros(32, np.float32), 32], checks=checks)
    assert "address  " in text and "0x0" in text and "null pointer" in text


def test_wild_addresses_do_not_reach_memory():
    far = (1 << 40, (1 << 56) + 4096, (1 << 57) - 4, (1 << 57) + 8, (1 << 63) + 64, (1 << 64) - 4)
    for space, addresses in (("", (1, 8, *far)), (".global", (1, 8, *far)), (".shared", far), (".local", far)):
        for address in addresses:
            for checks in (True, False):
                body = f"mov.b64 %d2, {address}; ld{space}.u32 %r3, [%d2]; st.global.u32 [%d1], %r3;"
                assert "ut-of-bounds" in complaint(body, checks=checks) or "isaligned" in complaint(body, checks=checks)


def test_write_to_a_read_only_array():
    a = np.zeros(32, np.float32)
    c = np.zeros(32, np.float32)
    c.flags.writeable = False
    assert "Write to read-only global memory" in fails("add", 1, 32, [a, a, c, 32])


def test_misaligned_access():
    text = complaint("add.u64 %d2, %d1, 2; ld.global.u32 %r3, [%d2]; st.global.u32 [%d1], %r3;")
    assert "Misaligned access to global memory" in text and "a multiple of 4" in text


def test_misaligned_vector_access_in_shared_memory():
    text = complaint("mov.u32 %r3, s; st.shared.v4.u32 [%r3+4], {%r2, %r2, %r2, %r2};", block=1)
    assert "Misaligned access to shared memory" in text and "a multiple of 16" in text


def test_shared_memory_has_its_declared_size():
    assert "Out-of-bounds access to shared memory" in complaint("st.shared.u32 [s+256], %r2;", block=1)


def test_value_never_written():
    text = fails("unwritten", 1, 64, [np.zeros(64, np.int32)])
    assert "A value that was never written is used as a value stored to global memory" in text
    assert "(32, 0, 0)" in text and "31 other threads" in text


def test_value_never_written_in_a_branch_and_an_address():
    branch = "ld.shared.u32 %r3, [s]; setp.eq.u32 %p1, %r3, 5; @%p1 bra L; st.global.u32 [%d1], %r2; L:"
    assert "used as a branch" in complaint(branch, block=1)
    address = "ld.shared.u64 %d3, [s]; add.u64 %d4, %d1, %d3; st.global.u32 [%d4], %r2;"
    assert "used as an address" in complaint(address, block=1)


def test_deadlock_says_where_threads_wait():
    text = fails("stuck", 1, 64, [np.zeros(64, np.int32)])
    assert text.startswith("Deadlock") and "bar.sync 1, 64" in text and "32 threads" in text


def test_waiting_for_what_never_comes():
    assert fails("spin", 1, 32, [np.zeros(1, np.int32)]).startswith("Deadlock")


def test_trap():
    text = fails("assertion", 1, 32, [30])
    assert "The kernel trapped" in text and "(30, 0, 0)" in text


def test_endless_loop_meets_the_limit():
    assert "longer than its limit" in complaint("L: add.u32 %r3, %r3, 1; bra L;", limit=10000)


def test_barrier_with_different_counts():
    body = "setp.lt.u32 %p1, %r2, 32; @%p1 bra A; bar.sync 1, 96; bra B; A: bar.sync 1, 64; B:"
    assert "different numbers of threads" in complaint(body, block=64)


def test_barrier_with_a_count_that_is_no_multiple_of_a_warp():
    assert "A barrier for 33 threads" in complaint("bar.sync 1, 33;", block=64)


def test_unknown_instruction_is_named_with_its_line():
    text = complaint("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [n, {%f1, %f2}];")
    assert "tex.2d.v4.f32.f32 is not emulated: the emulator has no textures" in text and "PTX line" in text


def test_source_line_is_shown_where_the_ptx_has_one(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text("first\nout[99] = value\n")
    text = header("  .loc 1 2 0\n  st.global.u32 [%d1+4096], %r2;").replace(
        ".address_size 64", f'.address_size 64\n.file 1 "{source}"'
    )
    with pytest.raises(EmulationError) as caught:
        run_ptx(text, "k", 1, 1, [np.zeros(1, np.int32), 0])
    assert f"{source}:2" in str(caught.value) and "out[99] = value" in str(caught.value)
    assert caught.value.location.line == 2


def test_collecting_findings_goes_on_after_them():
    a, c = np.ones(100, np.float32), np.zeros(100, np.float32)
    report = run_ptx(PTX, "add", 1, 128, [a, a.copy(), c, 101], checks="collect")
    assert [error.kind for error in report.errors] == ["bounds"] * len(report.errors) and len(report.errors) == 3
    assert not report.ok and not report.races and (c == 2).all()


@pytest.mark.parametrize(
    "case",
    [
        (("add", 1, 2048, [None, None, None, 1]), "a block of 2048 threads is too large"),
        (("add", 0, 32, [None, None, None, 1]), "grid must be one to three positive numbers"),
        (("add", 1, 32, [None, None, None]), "kernel add takes 4 parameters, 3 were given"),
        (("add", 1, 32, [None, None, None, 1.5]), "a float does not fit here"),
        (("add", 1, 32, [None, None, None, 1 << 40]), "it does not fit in 32 bits"),
        (("add", 1, 32, [None, None, None, np.zeros(3)]), "an array goes to a 64-bit parameter"),
        (("add", 1, 32, [None, None, None, "x"]), "pass an array, a number, bytes or None"),
        (("add", 3, 32, [None, None, None, 1], (2, 1, 1)), "the grid is not a multiple of the cluster"),
    ],
)
def test_wrong_launches(case):
    launch, message = case
    with pytest.raises(ArgumentError, match=message.replace("*", r"\*")):
        run_ptx(PTX, *launch)


def test_unknown_kernel_names_those_there_are():
    assert "kernels" in fails("nothing", 1, 1, []) and "collatz" in fails("nothing", 1, 1, [])


def test_too_much_shared_memory():
    assert "at most 232448 bytes" in fails("add", 1, 1, [None, None, None, 0], ArgumentError, smem=1 << 20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "unexpected 'hello' at module level"),
        (header("add.u32 %r1, %r2"), "expected ';'"),
        (header("bra NOWHERE;"), "label NOWHERE is not defined"),
        (header("add.u32 %r3, %r2, missing;"), "unknown symbol missing"),
        (header("mov.u32 %r3, 1.5;"), "a float literal where .u32 is needed"),
        (header("add.u32 %p1, %r2, %r2;"), "does not fit register %p1"),
        (header("L: L: bra L;"), "label L is defined twice"),
        (header("call nothing;"), "function nothing is not defined"),
        (header("add.u32 %r3, %r2;"), "has operands or modifiers that are not known"),
        (header("@%r1 add.u32 %r3, %r2, 1;"), "is not a predicate register"),
        (".version 8.0\n.target sm_90\n.address_size 32\n", "only 64-bit addresses"),
    ],
)
def test_bad_ptx_is_a_located_error(text, message):
    with pytest.raises(EmulationError) as caught:
        run_ptx(text, "k", 1, 1, [None, 0])
    assert message in str(caught.value) and "line" in str(caught.value)
