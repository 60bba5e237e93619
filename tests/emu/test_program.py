"""Parsing, module variables, the low-level launch, functions, special registers."""

import resource
import sys

import numpy as np
import pytest

from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu import Options, Program, image, launch, load
from tilewright.targets.emu.ptx import Imm, Mem, Reg, Sym, Vec, parse

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def test_the_tree_of_a_kernel():
    module = parse(
        HEAD
        + """
.global .align 8 .u32 table[4] = {1, 2, 0x10, -1};
.const .align 4 .f32 half = 0f3F000000;
.visible .entry k(.param .u64 .ptr .global .align 4 a, .param .align 8 .b8 s[24]) .maxntid 128
{ .reg .b32 %r<5>; .reg .pred %p; .loc 1 7 3
  @!%p ld.global.v2.b32 {%r1, %r2}, [%r3+-4];
  { .reg .u32 t; mov.u32 t, 5; }
  st.shared.u32 [table+8], 0b101;
L: bra.uni L;
}
.file 1 "kernel.py"
"""
    )
    kernel = module.functions["k"]
    assert [p.size for p in kernel.params] == [8, 24] and kernel.directives == {"maxntid": (128,)}
    first = kernel.body[0]
    assert first.opcode == "ld.global.v2.b32" and first.guard == Reg("%p", "pred") and first.guard_negated
    assert first.ops == (Vec((Reg("%r1", "b32"), Reg("%r2", "b32"))), Mem(Reg("%r3", "b32"), -4))
    assert (first.place.file, first.place.line, first.place.column) == ("kernel.py", 7, 3)
    assert kernel.body[1].ops == (Reg("t@1", "u32"), Imm(5))
    assert kernel.body[2].ops == (Mem(Sym("table"), 8), Imm(5))
    assert module.variables["table"].init == np.array([1, 2, 16, -1], np.int32).tobytes()
    assert module.variables["half"].init == np.float32(0.5).tobytes()


COUNTER = (
    HEAD
    + """
.global .align 4 .u32 counter = 40;
.const .align 8 .b64 pointer = generic(counter);
.visible .entry k(.param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; ld.const.b64 %d2, [pointer];
  atom.global.add.u32 %r1, [counter], 1;
  ld.u32 %r2, [%d2];
  st.global.v2.u32 [%d1], {%r1, %r2}; ret; }
"""
)


def test_module_variables_last_from_launch_to_launch():
    out = np.zeros(2, np.uint32)
    program = Program(COUNTER)
    for number in range(3):
        parameter = out.ctypes.data.to_bytes(8, "little")
        launch(program, "k", 1, 1, [parameter], buffers=[(out.ctypes.data, 8, True)])
        assert out.tolist() == [40 + number, 41 + number]
    program.reset()
    launch(program, "k", 1, 1, parameter, buffers=[(out.ctypes.data, 8, True)])
    assert out.tolist() == [40, 41]


def test_run_ptx_starts_afresh():
    for _ in range(2):
        out = np.zeros(2, np.uint32)
        run_ptx(COUNTER, "k", 1, 1, [out])
        assert out.tolist() == [40, 41]


def test_the_same_text_is_parsed_once():
    assert load(COUNTER) is load(COUNTER)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (b"", "takes 8 bytes"),
        ([b"12345678", b""], "takes 1 parameters, 2 were given"),
        ([b"123"], "has 8 bytes, 3 were given"),
    ],
)
def test_parameters_of_the_wrong_size(params, message):
    with pytest.raises(ArgumentError, match=message):
        launch(load(COUNTER), "k", 1, 1, params, options=Options())


def test_special_registers_in_three_dimensions():
    names = ["tid.x", "tid.y", "tid.z", "ntid.y", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid.z", "laneid", "warpid"]
    stores = "".join(f"mov.u32 %r1, %{name}; st.global.u32 [%d3+{4 * k}], %r1;\n" for k, name in enumerate(names))
    text = (
        HEAD
        + f"""
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<9>; .reg .b64 %d<9>;
  mov.u32 %r2, %ctaid.z; mov.u32 %r3, %nctaid.y; mov.u32 %r4, %ctaid.y; mad.lo.u32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %ntid.z; mov.u32 %r4, %tid.z; mad.lo.u32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %ntid.y; mov.u32 %r4, %tid.y; mad.lo.u32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r2, {4 * len(names)}; add.u64 %d3, %d1, %d2;
  {stores} ret; }}"""
    )
    grid, block = (3, 2, 4), (5, 4, 3)
    out = np.zeros((4, 2, 3, 3, 4, 5, len(names)), np.uint32)
    run_ptx(text, "k", grid, block, [out])
    for bz, by, bx, z, y, x in np.ndindex(out.shape[:-1]):
        linear = x + 5 * (y + 4 * z)
        wanted = [x, y, z, 4, bx, by, bz, 4, linear % 32, linear // 32]
        assert out[bz, by, bx, z, y, x].tolist() == wanted


@pytest.mark.parametrize("checks", [True, False])
def test_functions_with_structures_and_results(checks):
    text = (
        HEAD
        + """
.func (.param .b32 result) sum(.param .align 4 .b8 pair[8])
{ .reg .b32 %r<4>;
  ld.param.b32 %r1, [pair]; ld.param.b32 %r2, [pair+4]; add.s32 %r3, %r1, %r2; st.param.b32 [result], %r3; ret; }
.visible .entry k(.param .u64 out)
{ .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %d<4>;
  mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 10;
  setp.gt.u32 %p1, %r1, 5;
  mov.u32 %r3, 7;
  @%p1 bra SKIP;
  { .param .align 4 .b8 a[8]; .param .b32 r;
    st.param.b32 [a], %r1; st.param.b32 [a+4], %r2;
    call.uni (r), sum, (a);
    ld.param.b32 %r3, [r]; }
SKIP:
  ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r3; ret; }
"""
    )
    out = np.zeros(32, np.uint32)
    run_ptx(text, "k", 1, 32, [out], checks=checks)
    assert out.tolist() == [11 * t if t <= 5 else 7 for t in range(32)]


def test_blocks_and_warps_in_any_order_give_the_same_counts():
    counts = {
        run_ptx(COUNTER, "k", 50, 64, [np.zeros(2, np.uint32)], seed=s, checks=False).instructions for s in range(4)
    }
    assert len(counts) == 1


LARGE = """
.version 8.0
.target sm_80
.address_size 64
.global .b8 room[4294967295];
.global .u32 count = 5;
.visible .entry next(.param .u64 out)
{ .reg .b32 %r<3>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [out]; ld.global.u32 %r1, [count]; st.global.u32 [%d1], %r1;
  add.u32 %r1, %r1, 1; st.global.u32 [count], %r1; ret; }
"""


def test_large_variables_cost_nothing_until_they_are_touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program = Program(LARGE.replace("5];", "5] = {1, 2};"))
    program.reset()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


@pytest.mark.parametrize("mapped", [True, False])
def test_large_variables_are_zeroed_between_runs_without_their_pages(mapped, monkeypatch):
    """A kernel writes the last word of a variable; the next run reads zero there, and no page but that was used."""
    if not mapped:
        monkeypatch.setattr(image, "LARGE", 1 << 62 if sys.platform == "linux" else image.LARGE)
    size = (1 << 32) - 8 if mapped and sys.platform == "linux" else 1 << 27
    text = f"""{HEAD}
.global .align 8 .b8 room[{size}];
.global .align 4 .u32 count = 5;
.visible .entry last(.param .u64 out)
{{ .reg .b32 %r<5>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [out]; ld.global.u32 %r1, [room+{size - 8}]; ld.global.u32 %r2, [count];
  st.global.v2.u32 [%d1], {{%r1, %r2}}; mov.u32 %r3, 9; st.global.u32 [room+{size - 8}], %r3;
  st.global.u32 [count], %r3; ret; }}
"""
    program = Program(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    where = program.address("room")
    for _ in range(3):
        out = np.full(2, 77, np.uint32)
        params = [out.ctypes.data.to_bytes(8, "little")]
        launch(program, "last", 1, 1, params, buffers=[(out.ctypes.data, 8, True)], options=Options(checks=False))
        assert out.tolist() == [0, 5]
        program.reset()
    assert program.address("room") == where
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_reset_gives_variables_their_first_values():
    program = Program(LARGE.replace("4294967295", "16"))
    out = np.zeros(1, np.uint32)
    seen = []
    for number in range(4):
        if number == 2:
            program.reset()
        params = [out.ctypes.data.to_bytes(8, "little")]
        launch(program, "next", 1, 1, params, buffers=[(out.ctypes.data, 4, True)])
        seen.append(int(out[0]))
    assert seen == [5, 6, 5, 6]


def test_a_variable_that_does_not_fit_in_memory(monkeypatch):
    def fail(*given, **more):
        raise MemoryError

    monkeypatch.setattr(image.mmap, "mmap", fail)
    monkeypatch.setattr(image, "aligned_bytes", fail)
    with pytest.raises(EmulationError, match="PTX line 5: no memory for variable room"):
        Program(LARGE)


def test_a_kernel_with_too_many_parameters():
    text = HEAD + ".visible .entry k(.param .b8 large[40000]) { ret; }"
    with pytest.raises(EmulationError, match="PTX line 4: kernel k has too many parameters"):
        Program(text).image("k", True)


def test_registers_of_several_numbers():
    text = (
        HEAD
        + """.visible .entry k(.param .u64 a) {
        .reg .b64 %rd<2>;
        ld.param.u64 %rd0, [a];
        {
        .reg .v4 .s32 four;
        .reg .v2 .f32 pair, other;
        mov.s32 four.x, 1;  mov.s32 four.y, 2;  mov.s32 four.b, 3;  mov.s32 four.w, 4;
        st.v4.s32 [%rd0], four;
        ld.v2.f32 pair, [%rd0+16];
        add.f32 other.x, pair.x, pair.y;
        sub.f32 other.y, pair.r, pair.g;
        st.v2.f32 [%rd0+24], other;
        }
        ret;
    }"""
    )
    words = np.zeros(8, np.int32)
    words[4:6] = np.array([5, 3], np.float32).view(np.int32)
    run_ptx(text, "k", 1, 1, [words])
    assert words[:4].tolist() == [1, 2, 3, 4]
    assert words[6:].view(np.float32).tolist() == [8, 2]
