"""Sectors and wavefronts of known access patterns, worked out by hand."""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx


def kernel(access, stride, size="b32"):
    """Each thread accesses element `tid * stride` of global or shared memory."""
    registers = {"b32": "%r5", "b64": "%d5", "v4.b32": "{%r5, %r6, %r7, %r8}"}[size]
    width = {"b32": 4, "b64": 8, "v4.b32": 16}[size]
    body = {
        "global": f"ld.global.{size} {registers}, [%d3];",
        "shared": f"st.shared.{size} [%r4], {registers};",
    }[access]
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{{
  .reg .b32 %r<9>; .reg .b64 %d<9>;
  .shared .align 16 .b8 s[32768];
  ld.param.u64 %d1, [a];
  mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, {stride * width}; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;
  cvt.u64.u32 %d2, %r2; add.u64 %d3, %d1, %d2;
  mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0; mov.u64 %d5, 0;
  {body}
  ret;
}}
"""


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(
    ("stride", "size", "sectors", "ideal"),
    [
        (1, "b32", 2 * 4, 2 * 4),
        (2, "b32", 2 * 8, 2 * 4),
        (8, "b32", 2 * 32, 2 * 4),
        (0, "b32", 2 * 1, 2 * 1),
        (1, "b64", 2 * 8, 2 * 8),
        (1, "v4.b32", 2 * 16, 2 * 16),
        (2, "v4.b32", 2 * 32, 2 * 16),
    ],
)
def test_global_sectors(stride, size, sectors, ideal, checks):
    a = np.zeros(1 << 16, np.uint8)
    report = run_ptx(kernel("global", stride, size), "k", 1, 64, [a], checks=checks, counters=True)
    assert (report.sectors, report.sectors_ideal, report.wavefronts) == (sectors, ideal, 0)


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(
    ("stride", "size", "wavefronts", "conflicts"),
    [
        (1, "b32", 2, 0),
        (2, "b32", 4, 2),
        (32, "b32", 64, 62),
        (33, "b32", 2, 0),
        (1, "b64", 4, 0),
        (1, "v4.b32", 8, 0),
        (2, "v4.b32", 16, 8),
    ],
)
def test_shared_wavefronts(stride, size, wavefronts, conflicts, checks):
    a = np.zeros(16, np.uint8)
    report = run_ptx(kernel("shared", stride, size), "k", 1, 64, [a], checks=checks, counters=True)
    assert (report.wavefronts, report.bank_conflicts) == (wavefronts, conflicts)
    (line,) = report.traffic
    assert line.space == "shared" and line.requests == 2 and line.instruction.startswith("st.shared")


def test_counts_are_none_unless_asked_for():
    report = run_ptx(kernel("global", 1), "k", 1, 64, [np.zeros(1 << 12, np.uint8)])
    assert report.sectors is None and report.bank_conflicts is None and report.traffic is None


def test_instructions_by_class_and_line():
    report = run_ptx(kernel("global", 1), "k", 2, 64, [np.zeros(1 << 12, np.uint8)])
    assert report.by_class["mov"] == 7 * 128 and report.by_class["ld"] == 2 * 128
    assert sum(report.by_class.values()) == sum(report.by_line.values()) == report.instructions


@pytest.mark.parametrize("address", ["0", "-8", "0x7ffffffffffffff8", "0x1000000000000000"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_wild_address_is_out_of_bounds_with_counters_too(address, space):
    body = f"mov.u64 %d1, {address}; cvt.u64.u32 %d2, %r1; shl.b64 %d2, %d2, 33; add.u64 %d1, %d1, %d2;"
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {{ .reg .b32 %r<3>; .reg .b64 %d<3>;
  mov.u32 %r1, %tid.x; {body} ld.{space}.u32 %r2, [%d1]; ret; }}
"""
    for checks in (True, False):
        with pytest.raises(EmulationError, match=rf"Out-of-bounds (read of|access to) {space} memory"):
            run_ptx(text, "k", 1, 64, [], counters=True, checks=checks)


ASYNC = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 kept)
{
  .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p;
  .shared .align 16 .b8 s[16384];
  ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [kept]; mov.u32 %r1, %tid.x;
  mul.lo.u32 %r2, %r1, 16; cvt.u64.u32 %rd2, %r2; add.u64 %rd3, %rd1, %rd2;
  mul.lo.u32 %r4, %r1, STEP; mov.u32 %r3, s; add.u32 %r4, %r3, %r4;
  setp.lt.u32 %p, %r1, 32; selp.u32 %r6, %r5, 0, %p;
  cp.async.cg.shared.global [%r4], [%rd3], 16, %r6;
  cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
  ret;
}
"""


@pytest.mark.parametrize(("kept", "sectors"), [(16, 16), (0, 0)])
@pytest.mark.parametrize(("step", "wavefronts"), [(16, 8), (128, 64)])
def test_asynchronous_copies_read_sectors_and_write_wavefronts(kept, sectors, step, wavefronts):
    # Two warps; the second one only writes zeros. A row of 16 bytes each 128 bytes: all 32 lanes meet in four banks.
    text = ASYNC.replace("STEP", str(step))
    report = run_ptx(text, "k", 1, 64, [np.zeros(1024, np.uint8), kept], counters=True)
    assert (report.sectors, report.sectors_ideal) == (sectors, sectors)
    assert (report.wavefronts, report.wavefronts_ideal) == (wavefronts, 8)


@pytest.mark.parametrize(("row", "wavefronts"), [(32, 16), (64, 8), (128, 4), (512, 4)])
def test_asynchronous_copies_write_once_for_each_line_of_global_memory(row, wavefronts):
    # One warp copies rows of so many bytes, each row in 128 bytes of its own where it is shorter; the four phases of
    # the request write 128 bytes each, without conflicts. An H200 counts 8 for rows of 64 bytes.
    apart = f"div.u32 %r2, %r1, {row // 16}; rem.u32 %r3, %r1, {row // 16}; mul.lo.u32 %r2, %r2, {max(row, 128)};"
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a) {{
  .reg .b64 %rd<4>; .reg .b32 %r<8>;
  .shared .align 16 .b8 s[512];
  ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; {apart} shl.b32 %r3, %r3, 4; add.u32 %r2, %r2, %r3;
  cvt.u64.u32 %rd2, %r2; add.u64 %rd3, %rd1, %rd2; mov.u32 %r4, s; mul.lo.u32 %r5, %r1, 16; add.u32 %r4, %r4, %r5;
  cp.async.cg.shared.global [%r4], [%rd3], 16; cp.async.commit_group; cp.async.wait_group 0; ret;
}}
"""
    report = run_ptx(text, "k", 1, 32, [np.zeros(2048, np.uint8)], counters=True)
    assert (report.wavefronts, report.wavefronts_ideal) == (wavefronts, 4)
