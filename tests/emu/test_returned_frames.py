"""Pointers to local memory of functions that have returned: reported where they are used, others are let be."""

import numpy as np
import pytest

from tests.emu.test_instructions import HEAD
from tilewright.emulate import EmulationError, run_ptx

FUNCTIONS = """
.func (.param .b64 ret) local(.param .b32 v) { // returns a pointer into its own array
  .local .align 8 .b8 a[32]; .reg .b64 %d<3>; .reg .b32 %r<2>;
  mov.u64 %d1, a; cvta.local.u64 %d2, %d1; ld.param.u32 %r1, [v]; st.local.u32 [a+16], %r1;
  add.u64 %d2, %d2, 16; st.param.b64 [ret], %d2; ret; }
.func (.param .b64 ret) outer(.param .b32 v) { // and so does what it calls
  .reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u32 %r1, [v];
  { .param .b32 p; .param .b64 r; st.param.b32 [p], %r1; call (r), local, (p); ld.param.b64 %d1, [r]; }
  st.param.b64 [ret], %d1; ret; }
.func (.param .b32 ret) load(.param .b64 p) {
  .reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u64 %d1, [p]; ld.u32 %r1, [%d1]; st.param.b32 [ret], %r1; ret; }
.func fill(.param .b64 p, .param .b32 v) {
  .reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u64 %d1, [p]; ld.param.u32 %r1, [v]; st.u32 [%d1], %r1; ret; }
"""
CALL = "{{ .param .b32 p; .param .b64 r; st.param.b32 [p], %r1; call (r), {}, (p); ld.param.b64 %d2, [r]; }}\n"
LOAD = "{ .param .b64 p; .param .b32 r; st.param.b64 [p], %d2; call (r), load, (p); ld.param.b32 %r3, [r]; }\n"
FILL = "{ .param .b64 p; .param .b32 v; st.param.b64 [p], %d2; st.param.b32 [v], %r1; call fill, (p, v); }\n"
OWN = "mov.u64 %d2, own; cvta.local.u64 %d2, %d2; add.u64 %d2, %d2, 8;\n"


def run(body, **options):
    text = f"""{HEAD}{FUNCTIONS}
.visible .entry k(.param .u64 out)
{{ .reg .b64 %d<6>; .reg .b32 %r<6>; .local .align 8 .b8 own[16];
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
  {body}
  st.global.u32 [%d1], %r3; ret; }}
"""
    out = np.zeros(32, np.uint32)
    return run_ptx(text, "k", 1, 32, [out], **options), out


@pytest.mark.parametrize(
    "body, at",
    [
        (CALL.format("local") + "ld.u32 %r3, [%d2];", "ld.u32 %r3, [%d2]"),
        (CALL.format("local") + "cvta.to.local.u64 %d3, %d2; ld.local.u32 %r3, [%d3];", "ld.local.u32 %r3, [%d3]"),
        (CALL.format("outer") + "ld.u32 %r3, [%d2];", "ld.u32 %r3, [%d2]"),
        (CALL.format("local") + "mov.u32 %r3, 0; st.u32 [%d2], %r1;", "st.u32 [%d2], %r1"),
        (CALL.format("local") + "add.u64 %d2, %d2, -8; ld.v2.u32 {%r3, %r4}, [%d2];", "ld.v2.u32 {%r3, %r4}, [%d2]"),
        (CALL.format("outer") + LOAD, "ld.u32 %r1, [%d1]"),
    ],
)
def test_local_memory_ends_with_its_function(body, at):
    with pytest.raises(EmulationError) as caught:
        run(body)
    error = caught.value
    assert error.kind == "bounds" and error.message == "Access to local memory of a function that has returned"
    assert error.values["PTX line"].endswith(at) and "31 other threads" in error.values["also"]
    assert error.hint == "a local array ends with its function: return its values, or let the caller pass the array"
    report, _ = run(body, checks="collect")
    assert [e.kind for e in report.errors][:1] == ["bounds"]


@pytest.mark.parametrize("body", [OWN + FILL + LOAD, OWN + FILL + CALL.format("outer") + OWN + "ld.u32 %r3, [%d2];"])
def test_local_memory_of_a_caller_is_there(body):
    report, out = run(body)
    assert report.ok and (out == np.arange(32)).all()


def test_beyond_all_frames_is_out_of_bounds():
    with pytest.raises(EmulationError, match="Out-of-bounds access to local memory"):
        run("ld.local.u32 %r3, [own+4096];")
    with pytest.raises(EmulationError, match="Out-of-bounds access to local memory"):
        run(CALL.format("local") + "add.u64 %d2, %d2, 4096; ld.u32 %r3, [%d2];")
