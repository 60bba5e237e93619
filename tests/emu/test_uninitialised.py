"""Values never written: byte by byte, for what a thread reads from shared and local memory."""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
KERNEL = (
    HEAD
    + """
.visible .entry k(.param .u64 a)
{
  .reg .pred %p<4>; .reg .b16 %h<5>; .reg .b32 %r<12>, %m; .reg .b64 %d<6>; .reg .f32 %f<5>;
  .SPACE .align 16 .b8 m[256];
  ld.param.u64 %d1, [a]; mov.u32 %r9, %tid.x; mov.u32 %r8, 5; mov.u16 %h1, 0; mov.u64 %d5, 5; mov.u32 %r0, 0;
  CODE
  ret;
}
"""
)
STORE = "st.global.u32 [%d1], %r1;"
ADDRESS = "mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; ld.global.u32 %r2, [%d3];"
BRANCH = "setp.eq.u32 %p1, %r1, 99; @%p1 bra L; L:"


def found(code, space="shared", **options):
    """The messages of what is found, for one warp."""
    text = KERNEL.replace("CODE", code).replace("SPACE", space)
    report = run_ptx(text, "k", 1, 32, [np.zeros(64, np.uint32)], checks="collect", **options)
    assert not report.races
    assert all(error.kind == "uninitialised" for error in report.errors)
    return [error.message for error in report.errors]


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize(("use", "what"), [(STORE, "value stored"), (ADDRESS, "an address"), (BRANCH, "a branch")])
@pytest.mark.parametrize(("write", "clean"), [
    ("", False), ("st.S.u16 [m], %h1;", False), ("st.S.u16 [m+2], %h1;", False), ("st.S.u8 [m+1], %r0;", False),
    ("st.S.u16 [m], %h1; st.S.u8 [m+2], %r8;", False), ("st.S.u16 [m], %h1; st.S.u16 [m+2], %h1;", True),
    ("st.S.u32 [m], %r0;", True), ("st.S.u64 [m], %d5;", True), ("st.S.v4.u8 [m], {%r0, %r0, %r0, %r0};", True),
    ("st.S.u32 [m+4], %r8;", False), ("st.S.u8 [m], %r0; st.S.u8 [m+1], %r0; st.S.u8 [m+2], %r0;", False),
])  # fmt: skip
def test_each_byte_of_an_element_counts(space, use, what, write, clean):
    if space == "shared":
        write = f"setp.eq.u32 %p2, %r9, 0; {write.replace('st.S', '@%p2 st.S')} bar.sync 0;"
    code = f"{write} ld.S.u32 %r1, [m]; {use}".replace(".S.", f".{space}.").replace("%r8;", "%r0;")
    messages = found(code, space)
    assert bool(messages) != clean
    assert all("A value that was never written is used as" in m and what.split()[-1] in m for m in messages)


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize("vector", ["ld.S.v4.u32 {%r4, %r5, %r6, %r7}, [m];", "ld.v4.u32 {%r4, %r5, %r6, %r7}, [%d4];"])
@pytest.mark.parametrize(("written", "bad"), [((), 4), ((0,), 3), ((0, 1, 3), 1), ((0, 1, 2, 3), 0)])
def test_elements_of_a_vector_are_apart(space, vector, written, bad):
    writes = " ".join(f"st.S.u32 [m+{4 * k}], %r0;" for k in written)
    if space == "shared":
        writes = f"setp.ne.u32 %p2, %r9, 0; @%p2 bra J; {writes} J: bar.sync 0;"
    generic = f"cvta.{space}.u64 %d4, m;" if "%d4" in vector else ""
    uses = " ".join(f"st.global.u32 [%d1+{4 * k}], %r{4 + k};" for k in range(4))
    code = f"{generic} {writes} {vector} setp.ne.u32 %p2, %r9, 0; @%p2 bra X; {uses} X:".replace(".S.", f".{space}.")
    assert len(found(code, space)) == bad


@pytest.mark.parametrize("part", [
    "and.b32 %r1, %r1, 255;", "bfe.u32 %r1, %r1, 0, 8;", "prmt.b32 %r1, %r1, %r0, 0x4440;", "shl.b32 %r1, %r1, 16;",
    "cvt.u16.u32 %h2, %r1; cvt.u32.u16 %r1, %h2;", "mov.b32 {%h2, %h3}, %r1; cvt.u32.u16 %r1, %h2;",
    "mov.b32 %r2, %r1; and.b32 %r1, %r2, 7;",
])  # fmt: skip
def test_a_wide_load_of_which_a_part_is_used_is_no_fault(part):
    """Compilers widen loads: where a register is taken apart, only a load that found nothing at all counts."""
    half = f"setp.eq.u32 %p2, %r9, 0; @%p2 st.shared.u16 [m], %h1; bar.sync 0; ld.shared.u32 %r1, [m]; {part} {STORE}"
    assert not found(half)
    assert found(half.replace("@%p2 st.shared.u16 [m], %h1;", ""))


def test_packed_halves():
    """An arithmetic instruction uses both halves; one that takes the pair apart later does not."""
    sums = "setp.eq.u32 %p2, %r9, 0; @%p2 st.shared.u16 [m], %h1; bar.sync 0; ld.shared.b32 %r1, [m];"
    sums += "add.f16x2 %r1, %r1, %r1;"
    assert found(sums + STORE)
    assert not found(sums + "mov.b32 {%h2, %h3}, %r1; cvt.u32.u16 %r1, %h2;" + STORE)


def test_a_guarded_load_marks_the_threads_that_load():
    code = """setp.lt.u32 %p1, %r9, 7; mov.u32 %r1, 0; ld.shared.u32 %r3, [m+128];
    @%p1 ld.shared.u32 %r1, [m]; setp.ge.u32 %p2, %r9, 7; mov.u32 %r2, %r1; @%p2 st.global.u32 [%d1], %r2;"""
    assert not found(code)
    assert found(code.replace("@%p2 st", "@%p1 st"))


def test_an_atomic_of_shared_memory_writes_what_it_touches():
    code = "setp.eq.u32 %p2, %r9, 0; @%p2 st.shared.u32 [m], %r0; bar.sync 0; red.shared.add.u32 [m], 1; bar.sync 0;"
    assert not found(f"{code} ld.shared.u32 %r1, [m]; {STORE}")
    assert found(f"{code} ld.shared.u32 %r1, [m+4]; {STORE}")


@pytest.mark.parametrize(("copied", "read", "clean"), [
    (8, 0, True), (8, 4, True), (8, 8, False), (4, 0, True), (4, 4, False), (16, 12, True), ("16, 4", 12, True),
])  # fmt: skip
def test_copies_of_a_part_of_a_row(copied, read, clean):
    """`cp.async` writes its whole size (zeros beyond a source size), and no more."""
    kind = "cg" if str(copied).startswith("16") else "ca"
    code = f"""setp.ne.u32 %p2, %r9, 0; @%p2 bra J; cp.async.{kind}.shared.global [m], [%d1], {copied};
    cp.async.wait_all; J: bar.sync 0; ld.shared.u32 %r1, [m+{read}]; {STORE}"""
    assert bool(found(code)) != clean


@pytest.mark.parametrize(("size", "read", "clean"), [(32, 28, True), (32, 32, False), (48, 44, True)])
@pytest.mark.parametrize("seed", [0, 1])
def test_bulk_copies(size, read, clean, seed):
    code = f"""setp.ne.u32 %p2, %r9, 0; @%p2 bra J; mov.u32 %m, m; mbarrier.init.shared.b64 [m+128], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [m+128], {size};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [m], [%d1], {size}, [m+128]; J: bar.sync 0;
    W: mbarrier.try_wait.parity.shared.b64 %p1, [m+128], 0; @!%p1 bra W;
    ld.shared.u32 %r1, [m+{read}]; {STORE}"""
    assert bool(found(code, seed=seed)) != clean


@pytest.mark.parametrize(("written", "clean"), [(16, False), (28, False), (32, True)])
def test_a_bulk_store_sends_bytes_to_global_memory(written, clean):
    writes = " ".join(f"st.shared.u32 [m+{k}], %r0;" for k in range(0, written, 4))
    code = f"""setp.ne.u32 %p2, %r9, 0; @%p2 bra J; {writes} fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%d1], [m], 32;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; J:"""
    assert bool(found(code)) != clean


@pytest.mark.parametrize(("rows", "trans", "clean"), [(8, "", True), (7, "", False), (8, ".trans", True),
                                                      (7, ".trans", False)])  # fmt: skip
def test_ldmatrix_by_the_words_that_each_lane_gets(rows, trans, clean):
    """Lanes that get nothing of the row that is missing are not marked."""
    code = f"""setp.ge.u32 %p2, %r9, {4 * rows}; shl.b32 %r3, %r9, 2; mov.u32 %r2, m; add.u32 %r3, %r2, %r3;
    @!%p2 st.shared.u32 [%r3], %r9; bar.sync 0; and.b32 %r4, %r9, 7; shl.b32 %r4, %r4, 4; add.u32 %r4, %r2, %r4;
    ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{%r1}}, [%r4];
    setp.eq.u32 %p3, %r9, 31; shl.b32 %r5, %r9, 2; cvt.u64.u32 %d2, %r5; add.u64 %d3, %d1, %d2;"""
    assert bool(found(code + "@%p3 st.global.u32 [%d3], %r1;")) != clean
    assert not found(code + "@!%p3 st.global.u32 [%d3], %r0;")
    if not trans:
        assert not found(code.replace("%p3, %r9, 31", "%p3, %r9, 27") + "@%p3 st.global.u32 [%d3], %r1;")


def test_the_finding_is_located():
    with pytest.raises(EmulationError) as caught:
        run_ptx(KERNEL.replace("SPACE", "shared").replace("CODE", f"ld.shared.u32 %r1, [m]; {ADDRESS}"), "k", 1, 32,
                [np.zeros(64, np.uint32)])  # fmt: skip
    assert caught.value.kind == "uninitialised" and "ld.global.u32" in str(caught.value.values["PTX line"])


MOVE = "ld.S.u32 %r4, [m]; add.u32 %r4, %r4, 1; st.S.u32 [m+64], %r4; "
PICK = "setp.eq.u32 %p2, %r9, 0; @!%p2 bra J; WORK J: bar.sync 0; "


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize(("after", "bad"), [
    ("ld.S.u32 %r1, [m+64]; st.global.u32 [%d1], %r1;", True),
    ("st.S.u32 [m+64], %r8; ld.S.u32 %r1, [m+64]; st.global.u32 [%d1], %r1;", False),
    ("st.S.u16 [m+64], %h1; ld.S.u32 %r1, [m+64]; st.global.u32 [%d1], %r1;", True),
    ("st.S.u16 [m+64], %h1; ld.S.u16 %h2, [m+64]; st.global.u16 [%d1], %h2;", False),
    ("ld.S.u32 %r4, [m+64]; st.S.u32 [m+128], %r4; ld.S.u32 %r2, [m+128]; st.global.u32 [%d1], %r2;", True),
    ("ld.S.u32 %r1, [m+68]; st.global.u32 [%d1], %r1;", True),
    ("st.S.u32 [m+68], %r8; ld.S.u32 %r1, [m+68]; st.global.u32 [%d1], %r1;", False),
    ("ld.S.u32 %r1, [m+64];", False),
])  # fmt: skip
def test_a_value_is_followed_through_memory(space, after, bad):
    code = PICK.replace("WORK", MOVE + after) if space == "shared" else MOVE + after
    assert bool(found(code.replace(".S.", f".{space}."), space)) == bad


@pytest.mark.parametrize(("read", "bad"), [(0, True), (4, False), (8, True), (12, False)])
def test_elements_of_a_stored_vector_are_apart(read, bad):
    move = "ld.shared.u32 %r1, [m]; st.shared.v4.u32 [m+64], {%r1, %r8, %r1, %r0}; "
    use = f"ld.shared.u32 %r2, [m+{64 + read}]; st.global.u32 [%d1], %r2;"
    assert bool(found(PICK.replace("WORK", move + use))) == bad


def test_other_threads_read_what_was_spoilt_and_what_was_mended():
    spoil = "setp.eq.u32 %p2, %r9, 3; @!%p2 bra J; ld.shared.u32 %r1, [m]; st.shared.u32 [m+64], %r1; J: bar.sync 0;"
    mend = "setp.eq.u32 %p3, %r9, 7; @!%p3 bra K; st.shared.u32 [m+64], %r8; K: bar.sync 0;"
    use = "setp.eq.u32 %p1, %r9, 9; @!%p1 bra L; ld.shared.u32 %r2, [m+64]; st.global.u32 [%d1], %r2; L:"
    assert len(found(spoil + use)) == 1
    assert not found(spoil + mend + use)


def test_a_loop_over_shared_memory_that_is_spoilt_and_mended():
    """The same addresses in every turn, which the checks take a short way for."""
    place = "shl.b32 %r10, %r9, 2; mov.u32 %r11, m; add.u32 %r10, %r10, %r11; mov.u32 %r6, 0;"
    turn = "LOOP: st.shared.u32 [%r10], %r6; bar.sync 0; ld.shared.u32 %r2, [%r10]; bar.sync 0; add.u32 %r6, %r6, 1; "
    again = "setp.lt.u32 %p1, %r6, 9; @%p1 bra LOOP; "
    spoil = "ld.shared.u32 %r1, [%r10+128]; st.shared.u32 [%r10], %r1; bar.sync 0; ld.shared.u32 %r2, [%r10];"
    assert not found(place + turn + again + "st.global.u32 [%d1], %r8;")
    messages = found(
        place + turn + again + spoil + "bar.sync 0; setp.eq.u32 %p2, %r9, 0; @%p2 st.global.u32 [%d1], %r2;"
    )
    assert len(messages) == 1
