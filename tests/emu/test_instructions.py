"""Single instructions in whole kernels, against plain Python integers; and what is refused, with the reason."""

import re
import struct

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"
DECLARED = (
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; .shared .align 16 .b8 sh[64]; "
    ".local .align 8 .b8 lc[16];"
)


def run(body, *inputs, extra="", out=None, block=32, **options):
    """Run `body` in one block: thread n finds `inputs[k][n]` in %r{k+1} and leaves its result in %r0."""
    params = ", ".join(f".param .u64 a{k}" for k in range(len(inputs) + 1))
    loads = "".join(
        f"ld.param.u64 %d1, [a{k}]; mad.wide.u32 %d1, %r19, 4, %d1; ld.global.b32 %r{k + 1}, [%d1];\n"
        for k in range(len(inputs))
    )
    text = f"""{HEAD}{extra}
.visible .entry k({params})
{{ {DECLARED}
  mov.u32 %r19, %tid.x;
  {loads} {body}
  ld.param.u64 %d1, [a{len(inputs)}]; mad.wide.u32 %d1, %r19, 4, %d1; st.global.b32 [%d1], %r0; ret;
}}
"""
    out = np.zeros(block, np.uint32) if out is None else out
    run_ptx(text, "k", 1, block, [*inputs, out], **options)
    return out


def words(seed, *special):
    """32 words, the special ones first."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 2**32, 32, dtype=np.uint32)
    found[: len(special)] = special
    return found


def signed(x):
    return x - (1 << 32) if x >> 31 else x


def by_thread(function, *inputs):
    return np.array([function(*(int(x) for x in row)) & 0xFFFFFFFF for row in zip(*inputs, strict=True)], np.uint32)


def digits(*registers):
    """Registers as the digits of %r0."""
    return "mov.u32 %r0, 0;" + "".join(f" mad.lo.u32 %r0, %r0, 10, %r{r};" for r in registers)


def check(body, function, *inputs):
    np.testing.assert_array_equal(run(body, *inputs), by_thread(function, *inputs))


def nth_set_bit(mask, base, offset):
    """`fns`, as the manual's pseudo-code says it."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    positions = range(base, 32) if offset > 0 else range(base, -1, -1)
    hits = [p for p in positions if mask >> p & 1]
    return hits[abs(offset) - 1] if len(hits) >= abs(offset) else 0xFFFFFFFF


SMALL = words(3) % 40
A, B, C = words(0, 0, 0xFFFFFFFF, 1, 1 << 31), words(1, 0, 1), words(2)


def table(bits):
    return lambda a, b, c: sum(
        (bits >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | (c >> n & 1)) & 1) << n for n in range(32)
    )


def mask_of(a, b, wrap):
    start, count = (a & 31, b & 31) if wrap else (min(a, 32), min(b, 32))
    return ((1 << count) - 1) << start


def extended(a, b, wrap, sign):
    """`szext`: the low bits of a word, extended."""
    count = b & 31 if wrap else min(b, 32)
    low = a & ((1 << count) - 1)
    return low - (1 << count) if sign and count and low >> (count - 1) else low


def octet(x):
    """A signed word as a byte, saturated."""
    return max(-128, min(127, signed(x))) & 255


def dot2(a, b, c, high):
    halves = [a & 0xFFFF, a >> 16]
    halves = [h - (1 << 16) if h >> 15 else h for h in halves]
    octets = [b >> 8 * n & 255 for n in ((2, 3) if high else (0, 1))]
    return c + sum(x * y for x, y in zip(halves, octets, strict=True))


CASES = {
    "lop3": ("lop3.b32 %r0, %r1, %r2, %r3, 0x5b;", table(0x5B), (A, B, C)),
    "bmsk.clamp": ("bmsk.clamp.b32 %r0, %r1, %r2;", lambda a, b: mask_of(a, b, False), (SMALL, words(4) % 40)),
    "bmsk.wrap": ("bmsk.wrap.b32 %r0, %r1, %r2;", lambda a, b: mask_of(a, b, True), (SMALL, words(4) % 40)),
    "szext.clamp": ("szext.clamp.s32 %r0, %r1, %r2;", lambda a, b: extended(a, b, False, True), (A, SMALL)),
    "szext.wrap": ("szext.wrap.u32 %r0, %r1, %r2;", lambda a, b: extended(a, b, True, False), (A, SMALL)),
    "dp2a.lo": ("dp2a.lo.s32.u32 %r0, %r1, %r2, %r3;", lambda a, b, c: dot2(a, b, c, False), (A, B, C)),
    "dp2a.hi": ("dp2a.hi.s32.u32 %r0, %r1, %r2, %r3;", lambda a, b, c: dot2(a, b, c, True), (A, B, C)),
    "fns": ("fns.b32 %r0, %r1, %r2, %r3;", lambda a, b, c: nth_set_bit(a, b, signed(c)),
            (A, words(5) % 32, np.random.default_rng(6).integers(-5, 6, 32).astype(np.uint32))),
    "bfind.shiftamt": ("bfind.shiftamt.u32 %r0, %r1;", lambda a: 32 - a.bit_length() if a else 0xFFFFFFFF, (A,)),
    "prmt.ecl": ("prmt.b32.ecl %r0, %r1, %r2, %r3;",
                 lambda a, b, c: sum((a >> 8 * max(n, c & 3) & 255) << 8 * n for n in range(4)), (A, B, C)),
    "slct": ("slct.u32.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: a if c < 1 << 31 else b, (A, B, C)),
    "cvt.pack": ("cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3;",
                 lambda a, b, c: c << 16 | octet(a) << 8 | octet(b),
                 ((A % 400) - 200, (B % 400) - 200, C)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_integer_instructions(name):
    body, function, inputs = CASES[name]
    check(body, function, *inputs)


@pytest.mark.parametrize(("join", "combine"), [("or", lambda x, q: x or q), ("and", lambda x, q: x and q)])
def test_lop3_with_a_predicate(join, combine):
    body = f"setp.lt.s32 %p2, %r3, 0; lop3.{join}.b32 %r4|%p1, %r1, %r2, %r3, 0x80, !%p2; selp.b32 %r0, %r4, 7, %p1;"
    a, b, c = (x.copy() for x in (A, B, C))
    a[5:20:3] = 0

    def wanted(x, y, z):
        value = x & y & z
        return value if combine(value != 0, z < 1 << 31) else 7

    check(body, wanted, a, b, c)


def test_slct_by_a_float():
    """The sign of zero and NaN: -0 is not below zero, NaN is not at or above it; .ftz takes a denormal for zero."""
    keys = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -1e-40, 1e-40, np.inf] * 4, np.float32).view(np.uint32)
    for flush in (False, True):
        taken = [True, True, True, False, False, flush, True, True] * 4
        got = run(f"slct{'.ftz' if flush else ''}.u32.f32 %r0, %r1, %r2, %r3;", A, B, keys)
        np.testing.assert_array_equal(got, np.where(taken, A, B))


def halves(*values):
    return np.resize(np.array(values, np.float16).view(np.uint32), 32).astype(np.uint32)


def test_packed_set_joins_both_halves_with_the_predicate():
    a, b = halves(1, 2, 3, 3, -1, np.nan), halves(2, 2, 1, 5, -1, 0)
    q = np.arange(32, dtype=np.uint32) % 2
    first, second = (x.view(np.float16).reshape(32, 2) for x in (a, b))
    for join, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        body = f"setp.ne.u32 %p1, %r3, 0; set.lt.{join}.f16x2.f16x2 %r0, %r1, %r2, %p1;"
        wanted = function(first < second, (q != 0)[:, None]).astype(np.float16)
        np.testing.assert_array_equal(run(body, a, b, q).view(np.float16).reshape(32, 2), wanted)


def test_guarded_results_have_the_type_of_their_register():
    """Odd threads keep what they had; the store and its race check see 32-bit words."""
    a, b = halves(1, 2, 3, 0), halves(2, 2, 1, 0)
    first, second = (x.view(np.float16).reshape(32, 2) for x in (a, b))
    sides = np.where(first >= second, 0xFFFF, 0).astype(np.uint32)
    guard = "and.b32 %r3, %r19, 1; setp.eq.u32 %p1, %r3, 0; mov.u32 %r0, 7;"
    wanted = np.where(np.arange(32) % 2, 7, sides[:, 0] | sides[:, 1] << 16)
    np.testing.assert_array_equal(run(f"{guard} @%p1 set.ge.s32.f16x2 %r0, %r1, %r2;", a, b), wanted)
    small = np.arange(32, dtype=np.uint32)
    wanted = np.where(np.arange(32) % 2, 7, small * small + small + 1)
    text = f"{guard} @%p1 vmad.s32.u32.u32.po.sat %r0, %r1, %r2, %r1;"
    np.testing.assert_array_equal(run(text, small, small), wanted)


@pytest.mark.parametrize(("to", "one"), [("f16", 0x3C00), ("bf16", 0x3F80)])
def test_set_gives_a_half_for_every_type(to, one):
    a, b = words(8), words(9)
    a[::3] = b[::3]
    body = "setp.ne.u32 %p1, %r3, 0; {} cvt.u32.u16 %r0, %h0;"
    q = np.arange(32, dtype=np.uint32) % 2
    text = f"set.le.xor.{to}.s32 %h0, %r1, %r2, !%p1;"
    wanted = (a.view(np.int32) <= b.view(np.int32)) ^ (q == 0)
    np.testing.assert_array_equal(run(body.format(text), a, b, q), wanted * one)
    text = f"set.eq.{to}.b32 %h0, %r1, %r2;"
    np.testing.assert_array_equal(run(body.format(text), a, b, q), (a == b) * one)
    text = f"set.neu.{to}.f32 %h0, %r1, %r2;"
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(body.format(text), a, b, q), (a.view(np.float32) != b.view(np.float32)) * one)


def test_fma_takes_the_fill_value_for_zero():
    """As an H100 does: NaN 0x7ff7 of either sign, in a factor; in the summand it is a NaN as any other."""
    fill, nan = 0x7FF7, 0x7E00
    a = halves(2, -3, 1, 1, 0, 65504)
    b, c = halves(3, 3, 1, -2, 5, 2), halves(1, -1, 0, 0.5, 1, 0)
    a[3], b[4], c[5] = fill << 16 | 0x3C00, 0x3C00 << 16 | fill | 0x8000, fill | nan << 16
    a[6], b[7], a[8] = 0x7FFF, 0x7FF6 << 16, c[5]
    c[8] = 0x7FFF7FFF
    x, y, z = (v.view(np.float16).reshape(32, 2) for v in (a, b, c))
    filled = np.logical_or(*(v.view(np.uint16).reshape(32, 2) & 0x7FFF == fill for v in (a, b)))
    assert filled.sum() == 3
    for relu in (False, True):
        with np.errstate(all="ignore"):
            wanted = (x.astype(np.float64) * y + z).astype(np.float16)
        wanted = np.where(filled, 0, np.where(relu & (wanted < 0), 0, wanted))
        got = run(f"fma.rn.oob{'.relu' if relu else ''}.f16x2 %r0, %r1, %r2, %r3;", a, b, c)
        np.testing.assert_array_equal(got.view(np.float16).reshape(32, 2), wanted)
    got = run("cvt.u16.u32 %h1, %r1; mov.b16 %h2, 0x3f80; fma.rn.oob.bf16 %h0, %h1, %h2, %h2; cvt.u32.u16 %r0, %h0;",
              np.resize(np.array([fill, 0x3F80, 0xFFF7, 0x7FFF], np.uint32), 32))  # fmt: skip
    np.testing.assert_array_equal(got, [0, 0x4000, 0, 0x7FFF] * 8)


SPACES = """
  mov.u64 %d2, sh; cvta.shared.u64 %d2, %d2;   mov.u64 %d3, lc; cvta.local.u64 %d3, %d3;
  cvta.const.u64 %d4, cn;   cvta.global.u64 %d5, gl+4;   cvta.param.u64 %d6, a0;
  mov.u32 %r0, 0;
"""


def test_isspacep_of_every_space():
    """Bit k of the result is what `isspacep` says of the k-th address: shared, local, const, global, param."""
    bits = "".join(
        f"isspacep.{{space}} %p1, %d{n + 2}; selp.u32 %r1, {1 << n}, 0, %p1; or.b32 %r0, %r0, %r1;" for n in range(5)
    )
    extra = ".const .align 4 .b8 cn[16]; .global .align 4 .b8 gl[16];"
    wanted = {"shared": 1, "shared::cta": 1, "shared::cluster": 1, "local": 2, "const": 4, "global": 8 | 16}
    wanted |= {"param": 16, "param::entry": 16}
    for space, value in wanted.items():
        assert run(SPACES + bits.replace("{space}", space), extra=extra)[0] == value, space


def test_cvta_there_and_back():
    body = """mov.u64 %d2, sh; add.u64 %d2, %d2, 8; cvta.shared.u64 %d3, %d2; mov.u32 %r1, 77; st.u32 [%d3], %r1;
      cvta.to.shared.u64 %d4, %d3; ld.shared.u32 %r2, [%d4]; sub.u64 %d5, %d4, %d2; cvt.u32.u64 %r3, %d5;
      add.u32 %r0, %r2, %r3;"""
    assert (run(body) == 77).all()


CLUSTER = f"""{HEAD}
.visible .entry k(.param .u64 out)
{{ {DECLARED}
  mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; st.shared.u32 [sh+4], %r1;
  barrier.cluster.arrive; barrier.cluster.wait;
  mapa.shared::cluster.u32 %r3, sh+4, %r2;   ld.shared::cluster.u32 %r4, [%r3];
  mov.u32 %r5, sh; mapa.shared::cluster.u32 %r6, %r5, 0;   ld.shared::cluster.u32 %r7, [%r6+4];
  mov.u64 %d2, sh; cvta.shared.u64 %d2, %d2; mapa.u64 %d3, %d2, %r2;   ld.u32 %r8, [%d3+4];
  getctarank.shared::cluster.u32 %r9, %r3; getctarank.u64 %r10, %d3;
  {digits(4, 7, 8, 9, 10)}
  barrier.cluster.arrive; barrier.cluster.wait;
  ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r1, 4, %d1; st.global.u32 [%d1], %r0; ret;
}}
"""


def test_mapa_of_addresses_variables_and_generic_addresses():
    """The digits: the other block's rank, rank 0, the other's again; then the ranks of the addresses."""
    out = np.zeros(2, np.uint32)
    run_ptx(CLUSTER, "k", 2, 1, [out], cluster=2)
    assert out.tolist() == [10111, 0]


def test_a_block_that_ends_while_several_read_it():
    early = re.sub(r"(\n  mov.u32 %r0, 0;.*)\n  barrier.*", r"\1", CLUSTER)
    assert early.count("barrier") == CLUSTER.count("barrier") - 2
    with pytest.raises(EmulationError, match="the block ends while in use"):
        run_ptx(early, "k", 2, 1, [np.zeros(2, np.uint32)], cluster=2)


def test_hints_have_no_effect():
    body = """ld.param.u64 %d2, [a0]; createpolicy.fractional.L2::evict_last.b64 %d3, 0.5;
      createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d4, [%d2], 128, 256;
      createpolicy.cvt.L2.b64 %d5, %d4;
      prefetch.global.L2 [%d2]; prefetchu.L1 [%d2]; applypriority.global.L2::evict_normal [%d2], 128;
      prefetch.global.L2::evict_last [%d2]; griddepcontrol.wait; griddepcontrol.launch_dependents;
      ld.global.L1::no_allocate.L2::cache_hint.L2::128B.u32 %r0, [%d2], %d3; ld.u32 %r3, [%d2].unified;
      add.u32 %r0, %r0, %r3;"""
    assert (run(body, np.full(64, 21, np.uint32)) == 42).all()


def test_sizes_of_shared_memory():
    body = "mov.u32 %r1, %total_smem_size; mov.u32 %r2, %aggr_smem_size; sub.u32 %r3, %r2, %r1;"
    assert run(f"{body} shl.b32 %r3, %r3, 8; or.b32 %r0, %r3, %r1;")[0] == 1024 << 8 | 64
    assert run("mov.u64 %d2, %current_graph_exec; cvt.u32.u64 %r0, %d2;")[0] == 0


BARRIER = """mbarrier.init.shared.b64 [sh], 3;
  mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %d2, [sh], 2;
  mbarrier.pending_count.b64 %r1, %d2;
  mbarrier.arrive_drop.shared.b64 %d3, [sh]; mbarrier.pending_count.b64 %r2, %d3;
  mbarrier.test_wait.acquire.cta.shared.b64 %p1, [sh], %d3; selp.u32 %r3, 1, 0, %p1;
  mbarrier.expect_tx.relaxed.cta.shared.b64 [sh], 16; mbarrier.arrive.shared.b64 %d4, [sh], 2;
  mbarrier.try_wait.shared.b64 %p2, [sh], %d4, 1000; selp.u32 %r4, 1, 0, %p2;
  mbarrier.complete_tx.relaxed.cta.shared.b64 [sh], 16;
  mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p3, [sh], 1, 20; selp.u32 %r5, 1, 0, %p3;
  """
BARRIER += digits(1, 2, 3, 4, 5)


def test_mbarrier_forms():
    """Three are expected, then two; the digits are pending counts before arrivals and outcomes of tests."""
    assert run(BARRIER, block=1)[0] == 31101


def test_an_arrival_that_must_not_complete():
    with pytest.raises(EmulationError, match=r"An arrival with \.noComplete ends the phase"):
        run(BARRIER.replace("[sh], 3", "[sh], 2"), block=1)


REFUSED = {
    "multimem.red.release.sys.global.add.u32 [%d1], %r0;": "it needs a multicast address",
    "multimem.ld_reduce.relaxed.gpu.global.add.f32 %r0, [%d1];": "an emulated launch is on one device",
    "tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [t, {%r5, %r6}];": "the emulator has no textures",
    "suld.b.1d.b32.trap %r1, [s, {%r2}];": "the emulator has no surfaces",
    "alloca.u64 %d2, %d3;": "stack frames have a fixed size",
    "st.bulk.weak.shared::cta [%d2], 64, 0;": "needs sm_100;",
    "tcgen05.fence::before_thread_sync;": "needs sm_100a;",
    "atom.global.and.f32 %r1, [%d1], %r2;": "there is no atomic .and of .f32",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.f16 [%d1], [%r2], %r3;": "there is no atomic .xor of .f16",
    "mov.u32 %r0, %reserved_smem_offset_begin;": "%reserved_smem_offset_begin is not emulated",
    "frobnicate.u32 %r0, %r1;": "instruction frobnicate.u32 is not emulated",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_why_and_where(text):
    with pytest.raises(EmulationError, match=re.escape(REFUSED[text])) as caught:
        run(text)
    assert "PTX line" in caught.value.values and text.split()[0].rstrip(";") in str(caught.value)


def test_literals_of_policies_are_floats():
    """A fraction is a 32-bit float; the policy itself is opaque."""
    fraction = struct.unpack("<I", struct.pack("<f", 0.25))[0]
    assert run(f"createpolicy.fractional.L2::evict_first.b64 %d3, 0f{fraction:08X}; mov.u32 %r0, 1;")[0] == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("checks", [True, False])
def test_every_pair_of_warps_has_a_barrier_of_its_own(seed, checks):
    """The number is computed: threads of one instruction wait at different barriers."""
    body = """shr.u32 %r1, %r19, 6; add.u32 %r1, %r1, 1; mul.lo.u32 %r2, %r19, 4; mov.u32 %r3, buf;
      add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r19; barrier.cta.sync %r1, 64;
      xor.b32 %r5, %r2, 252; add.u32 %r5, %r3, %r5;
      ld.shared.u32 %r6, [%r5]; setp.lt.u32 %p1, %r19, 100; barrier.cta.red.popc.u32 %r7, %r1, 64, %p1;
      mad.lo.u32 %r0, %r6, 100, %r7;"""
    out = run(body, extra=".shared .align 4 .b8 buf[1024];", block=256, seed=seed, checks=checks, limit=10_000)
    thread = np.arange(256)
    wanted = (thread ^ 63) * 100 + np.clip(100 - thread // 64 * 64, 0, 64)
    np.testing.assert_array_equal(out, wanted)


def test_threads_of_a_warp_at_different_barriers_wait_for_ever():
    with pytest.raises(EmulationError, match="Deadlock"):
        run("and.b32 %r1, %r19, 3; barrier.cta.sync %r1; mov.u32 %r0, 1;", block=64)


def test_atomics_on_global_memory_flush_subnormals_whatever_their_address_is_called():
    """f32 sums in global memory flush, by a generic address too; those in shared memory do not."""
    text = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .b64 %d<4>; .reg .f32 %f<4>; .shared .align 4 .f32 s;
  ld.param.u64 %d1, [a]; mov.f32 %f1, 0f00000001;
  red.global.add.f32 [%d1], %f1; red.add.f32 [%d1+4], %f1;
  st.shared.f32 [s], %f1; mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; red.add.f32 [%d2], %f1;
  ld.shared.f32 %f2, [s]; st.global.f32 [%d1+8], %f2;
  ret;
}
"""
    words = np.array([3, 3, 0], np.uint32)
    run_ptx(text, "k", 1, 1, [words])
    assert words.tolist() == [0, 0, 2]


def test_comparisons_of_uniform_pairs_branch_for_all_threads_or_none():
    """f16x2 comparisons of constants give each predicate as one value, which branches and selections take."""
    body = """
      mov.b32 %r2, 0x3C000000; mov.b32 %r3, 0x00000000; mov.u32 %r0, 0;
      setp.lt.f16x2 %p1|%p2, %r3, %r2;
      @%p1 bra $first;
      add.u32 %r0, %r0, 1;
    $first:
      @!%p2 bra $second;
      setp.lt.u32 %p3, %r19, 7;
      @%p3 bra $second;
      selp.b32 %r4, 2, 4, %p2;
      add.u32 %r0, %r0, %r4;
    $second: selp.b32 %r5, 0, 8, %p1; add.u32 %r0, %r0, %r5;
    """
    np.testing.assert_array_equal(run(body), [9] * 7 + [11] * 25)


def test_a_uniform_product_is_added_to_each_thread():
    """The sum of a uniform product and a subnormal number of the thread's own is rounded once."""
    subnormals = np.arange(32, dtype=np.uint32)
    body = "mov.b32 %r2, 0; mov.b32 %r3, 0; fma.rn.f32 %r0, %r2, %r3, %r1;"
    np.testing.assert_array_equal(run(body, subnormals), subnormals)
