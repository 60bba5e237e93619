"""Values never written, through atomics: what combines with memory that no one has written leaves it unwritten."""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"

HISTOGRAM = (
    HEAD
    + """
.visible .entry histogram(.param .u64 data, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %d<8>;
  .shared .align 4 .b8 bins[256];
  ld.param.u64 %d1, [data]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, bins; shl.b32 %r4, %r2, 2; add.u32 %r5, %r3, %r4; mov.u32 %r10, 0;
  setp.ge.u32 %p1, %r2, 64;
  @!%p1 st.shared.u32 [%r5], %r10; // clear
  bar.sync 0;
  mov.u32 %r6, %r2;
LOOP:
  setp.ge.u32 %p2, %r6, %r1; @%p2 bra DONE;
  mul.wide.u32 %d3, %r6, 4; add.u64 %d3, %d1, %d3; ld.global.u32 %r7, [%d3];
  and.b32 %r7, %r7, 63; shl.b32 %r7, %r7, 2; add.u32 %r7, %r3, %r7;
  ATOMIC
  add.u32 %r6, %r6, 96; bra LOOP;
DONE:
  bar.sync 0;
  @%p1 ret;
  ld.shared.u32 %r8, [%r5];
  mul.wide.u32 %d4, %r2, 4; add.u64 %d4, %d2, %d4;
  red.global.add.u32 [%d4], %r8;
  ret;
}
"""
)
ADDS = ["red.shared.add.u32 [%r7], 1;", "atom.shared.add.u32 %r9, [%r7], 1;", "atom.shared.inc.u32 _, [%r7], 9999;",
        "cvt.u64.u32 %d5, %r7; cvta.shared.u64 %d5, %d5; red.add.u32 [%d5], 1;",
        "red.relaxed.cta.shared::cta.add.u32 [%r7], 1;"]  # fmt: skip


def histogram(text, seed):
    data = np.random.default_rng(seed).integers(0, 64, 500).astype(np.uint32)
    out = np.zeros(64, np.uint32)
    run_ptx(text, "histogram", 3, 96, [data, out, 500], seed=seed)
    assert np.array_equal(out, 3 * np.bincount(data, minlength=64))


@pytest.mark.parametrize("atomic", ADDS)
def test_a_histogram_is_clean(atomic):
    for seed in range(10):
        histogram(HISTOGRAM.replace("ATOMIC", atomic), seed)


@pytest.mark.parametrize("atomic", ADDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_histogram_that_is_not_cleared(atomic, seed):
    text = HISTOGRAM.replace("ATOMIC", atomic).replace("@!%p1 st.shared.u32 [%r5], %r10; // clear", "")
    with pytest.raises(EmulationError, match="never written is used as an operand of an atomic on global") as caught:
        histogram(text, seed)
    assert caught.value.kind == "uninitialised" and "red.global.add.u32 [%d4], %r8" in caught.value.values["PTX line"]


KERNEL = (
    HEAD
    + """
.visible .entry k(.param .u64 a)
{
  .reg .pred %p<5>; .reg .b16 %h<5>; .reg .b32 %r<14>; .reg .b64 %d<9>; .reg .f32 %f<5>; .reg .f64 %e<5>;
  .shared .align 16 .b8 m[256]; .local .align 16 .b8 l[256];
  ld.param.u64 %d1, [a]; mov.u32 %r9, %tid.x; mov.u32 %r8, 5; mov.u32 %r0, 0; mov.u64 %d5, 5; mov.u64 %d6, 0;
  cvta.shared.u64 %d7, m; cvta.local.u64 %d8, l;
  CODE
  ret;
}
"""
)
ONE = "setp.eq.u32 %p2, %r9, 0; @!%p2 bra J; WORK J: bar.sync 0;"
STORE = "ld.shared.u32 %r1, [m]; st.global.u32 [%d1], %r1;"
STORE64 = "ld.shared.u64 %d2, [m]; st.global.u64 [%d1], %d2;"


def found(code, threads=32, seed=0):
    """The messages of what is found."""
    text = KERNEL.replace("CODE", code)
    report = run_ptx(text, "k", 1, threads, [np.zeros(64, np.uint32)], checks="collect", seed=seed)
    assert not report.races
    assert all(error.kind == "uninitialised" for error in report.errors)
    return [error.message for error in report.errors]


@pytest.mark.parametrize("space", [".shared", "", ".relaxed.gpu.shared"])
@pytest.mark.parametrize("op", ["add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "inc.u32", "dec.u32",
                                "add.f32", "add.noftz.f16x2", "add.noftz.bf16x2"])  # fmt: skip
def test_what_combines_leaves_memory_unwritten(op, space):
    place = "[%d7]" if not space else "[m]"
    combine = f"atom{space}.{op} %r2, {place}, %r8; red{space}.{op} {place}, %r8; bar.sync 0;"
    combine = combine.replace("%r8", "%f1").replace("%r2", "%f2") if op == "add.f32" else combine
    clear = ONE.replace("WORK", "st.shared.u32 [m], %r0;")
    assert found(combine + ONE.replace("WORK", STORE).replace("J", "K"))
    assert not found(clear + combine + ONE.replace("WORK", STORE).replace("J", "K"))
    assert not found(combine)


@pytest.mark.parametrize("op", ["add.u64", "min.s64", "xor.b64", "add.f64"])
@pytest.mark.parametrize(("written", "bad"), [("", True), ("st.shared.u32 [m], %r0;", True),
                                              ("st.shared.u64 [m], %d6;", False)])  # fmt: skip
def test_words_of_64_bits(op, written, bad):
    combine = f"red.shared.{op} [m], {'%e1' if op == 'add.f64' else '%d5'};"
    work = written + combine + "ld.shared.u32 %r1, [m]; ld.shared.u32 %r2, [m+4];"
    low = ONE.replace("WORK", work + "st.global.u32 [%d1], %r1;")
    high = ONE.replace("WORK", work + "st.global.u32 [%d1], %r2;")
    assert bool(found(high)) == bad
    assert bool(found(low)) == (bad and not (op == "xor.b64" and written))  # bits do not mix, sums carry


@pytest.mark.parametrize(("half", "bad"), [(0, False), (2, True)])
def test_halves_are_combined_apart(half, bad):
    work = (
        f"mov.u16 %h1, 0; st.shared.u16 [m], %h1; red.shared.add.noftz.f16x2 [m], %r8; ld.shared.u16 %h2, [m+{half}];"
    )
    assert bool(found(ONE.replace("WORK", work + "st.global.u16 [%d1], %h2;"))) == bad


@pytest.mark.parametrize(("op", "store"), [
    ("exch.b32 %r2, [m], %r8", STORE), ("exch.b64 %d2, [m], %d5", STORE64), ("cas.b32 %r2, [m], 0, %r8", STORE),
    ("cas.b64 %d2, [m], 0, %d5", STORE64),
    ("cas.b16 %h2, [m], %h1, %h1", "ld.shared.u16 %h3, [m]; st.global.u16 [%d1], %h3;"),
])  # fmt: skip
def test_an_exchange_writes(op, store):
    work = f"mov.u16 %h1, 0; atom.shared.{op}; {store}"
    assert not found(ONE.replace("WORK", work))


def test_a_compare_and_swap_that_fails_writes_nothing():
    assert found(ONE.replace("WORK", f"atom.shared.cas.b32 %r2, [m], 7, %r8; {STORE}"))


BRANCH = "setp.eq.u32 %p1, %r1, 99; @%p1 bra L; L:"
ADDRESS = "mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; ld.global.u32 %r2, [%d3];"


@pytest.mark.parametrize(("use", "what"), [
    (BRANCH, "a branch"), (ADDRESS, "an address"), ("st.global.u32 [%d1], %r1;", "stored to global memory"),
    ("red.global.add.u32 [%d1], %r1;", "an atomic on global memory"), ("red.add.u32 [%d1], %r1;", "atomic on global"),
])  # fmt: skip
@pytest.mark.parametrize("op", ["add.u32 %r1, [m], 1", "exch.b32 %r1, [m], 1", "cas.b32 %r1, [m], 0, 1",
                                "or.b32 %r1, [%d7], 1"])  # fmt: skip
def test_results_from_memory_never_written(op, use, what):
    atom = f"atom{'' if '%d7' in op else '.shared'}.{op};"
    assert [what in m for m in found(ONE.replace("WORK", atom + use))] == [True]
    assert not found(ONE.replace("WORK", "st.shared.u32 [m], %r0;" + atom + use))
    assert not found(ONE.replace("WORK", atom))


def test_threads_of_one_instruction_take_turns():
    """The first exchange gets what was there, the others what threads before them wrote."""
    swap = "atom.shared.exch.b32 %r1, [m], %r9; setp.eq.u32 %p1, %r9, THREAD; @%p1 st.global.u32 [%d1], %r1;"
    assert found(swap.replace("THREAD", "0"))
    assert not found(swap.replace("THREAD", "1")) and not found(swap.replace("THREAD", "31"))
    add = "atom.shared.add.u32 %r1, [m], %r9; setp.eq.u32 %p1, %r9, 31; @%p1 st.global.u32 [%d1], %r1;"
    assert found(add)


@pytest.mark.parametrize(("operand", "bad"), [("%r1", True), ("%r8", False)])
@pytest.mark.parametrize("op", ["exch.b32 %r2, [m], X", "add.u32 %r2, [m], X", "cas.b32 %r2, [m], 0, X"])
def test_an_operand_never_written_spoils(op, operand, bad):
    work = f"st.shared.u32 [m], %r0; ld.shared.u32 %r1, [m+64]; atom.shared.{op.replace('X', operand)}; {STORE}"
    assert bool(found(ONE.replace("WORK", work))) == bad


def test_a_store_mends_what_an_atomic_left():
    work = f"red.shared.add.u32 [m], 1; st.shared.u32 [m], %r0; red.shared.add.u32 [m], 1; {STORE}"
    assert not found(ONE.replace("WORK", work))
    strong = f"red.shared.add.u32 [m], 1; st.volatile.shared.u32 [m], %r0; {STORE}"
    assert not found(ONE.replace("WORK", strong))


@pytest.mark.parametrize("seed", range(3))
def test_a_loop_of_compare_and_swap(seed):
    """A maximum of floats: the first value comes from memory, and reaches the branch of the loop."""
    loop = """ld.shared.u32 %r1, [m]; LOOP: max.u32 %r2, %r1, %r9; atom.shared.cas.b32 %r3, [m], %r1, %r2;
    setp.ne.u32 %p1, %r3, %r1; mov.u32 %r1, %r3; @%p1 bra LOOP; bar.sync 0;"""
    loop = loop.replace("ld.shared", "ld.volatile.shared")
    clear = ONE.replace("WORK", "st.shared.u32 [m], %r0;")
    assert not found(clear + loop + ONE.replace("WORK", STORE).replace("J", "K"), 96, seed)
    assert any("a branch" in m for m in found(loop, 96, seed))


@pytest.mark.parametrize("width", [1, 2])
def test_a_narrow_atomic_by_its_word(width):
    """Bytes are counted by compare-and-swap on their word, of which the rest is never written: it is not looked at."""
    store = {1: "st.shared.u8 [m+1], %r0;", 2: "mov.u16 %h1, 0; st.shared.u16 [m+2], %h1;"}[width]
    shift, bits = {1: (8, 255), 2: (16, 65535)}[width]
    loop = f"""ld.shared.u32 %r1, [m]; LOOP: shr.u32 %r2, %r1, {shift}; add.u32 %r2, %r2, 1; and.b32 %r2, %r2, {bits};
    shl.b32 %r2, %r2, {shift}; and.b32 %r4, %r1, {~(bits << shift) & 0xFFFFFFFF}; or.b32 %r2, %r2, %r4;
    atom.shared.cas.b32 %r3, [m], %r1, %r2; setp.ne.u32 %p1, %r3, %r1; mov.u32 %r1, %r3; @%p1 bra LOOP;
    ld.shared.u8 %r5, [m+{shift // 8}]; st.global.u32 [%d1], %r5;"""
    assert not found(ONE.replace("WORK", store + loop))
    assert found(ONE.replace("WORK", loop))


# Generic addresses.


@pytest.mark.parametrize("place", ["%d7", "%d8"])
def test_a_store_by_a_generic_address_is_followed(place):
    move = f"ld.u32 %r1, [{place}]; st.u32 [{place}+64], %r1;"
    use = f"ld.u32 %r2, [{place}+64]; st.global.u32 [%d1], %r2;"
    assert not found(ONE.replace("WORK", move))
    assert found(ONE.replace("WORK", move + use))
    assert not found(ONE.replace("WORK", f"st.u32 [{place}], %r0;" + move + use))
    assert not found(ONE.replace("WORK", move + f"st.u32 [{place}+64], %r0;" + use))


def test_a_generic_store_to_global_memory():
    move = "setp.eq.u32 %p1, %r9, THREAD; selp.b64 %d2, %d1, %d7, %p1; ld.local.u32 %r1, [l]; st.u32 [%d2+64], %r1;"
    for thread in (0, 7):
        code = move.replace("THREAD", str(thread))
        code = "setp.eq.u32 %p3, %r9, 7; setp.eq.u32 %p4, %r9, 0; or.pred %p3, %p3, %p4; @!%p3 bra X; " + code + "X:"
        text = KERNEL.replace("CODE", code)
        with pytest.raises(EmulationError, match="stored to global memory") as caught:
            run_ptx(text, "k", 1, 32, [np.zeros(64, np.uint32)])
        assert caught.value.values["thread"] == (thread, 0, 0) and "also" not in caught.value.values


def test_vectors_by_generic_address():
    move = "ld.u32 %r1, [%d7]; st.v2.u32 [%d7+64], {%r1, %r8}; ld.u32 %r2, [%d7+PLACE]; st.global.u32 [%d1], %r2;"
    assert found(ONE.replace("WORK", move.replace("PLACE", "64")))
    assert not found(ONE.replace("WORK", move.replace("PLACE", "68")))


def test_addresses_of_several_spaces_in_one_atomic():
    """Thread 0 adds to shared, thread 1 to local, thread 2 to global memory."""
    code = """setp.eq.u32 %p1, %r9, 0; setp.eq.u32 %p2, %r9, 1; setp.gt.u32 %p3, %r9, 2; @%p3 bra X;
    selp.b64 %d2, %d8, %d1, %p2; selp.b64 %d2, %d7, %d2, %p1; WRITE atom.add.u32 %r1, [%d2], 1;
    setp.eq.u32 %p4, %r9, THREAD; @%p4 st.global.u32 [%d1+8], %r1; X:"""
    for thread, bad in enumerate((True, True, False)):
        one = code.replace("THREAD", str(thread))
        assert bool(found(one.replace("WRITE", ""))) == bad
        assert not found(one.replace("WRITE", "st.u32 [%d2], %r0;"))


@pytest.mark.parametrize("words", ["{%d2, %d3}", "{%d5, %d6}"])
def test_words_of_128_bits(words):
    swap = f"""{{ .reg .b128 %q<4>; mov.b128 %q1, {{%d5, %d6}}; atom.shared.exch.b128 %q2, [m], %q1;
    mov.b128 {{%d2, %d3}}, %q2; st.global.u64 [%d1], {words[1:4]}; }}"""
    bad = "%d2" in words
    assert bool(found(ONE.replace("WORK", swap))) == bad
    assert not found(ONE.replace("WORK", "st.shared.v2.u64 [m], {%d5, %d6};" + swap))
    after = swap.replace(f"st.global.u64 [%d1], {words[1:4]};", STORE64)
    assert not found(ONE.replace("WORK", after))
