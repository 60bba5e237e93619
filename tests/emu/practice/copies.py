"""Pipelines of asynchronous copies, mbarriers, wgmma."""

import numpy as np

from tests.emu.practice.pairs import U32, Pair


def ring(stages: int) -> Pair:
    """A producer warp copies 7 times 256 bytes through a ring of stages to two consumer warps, which add them up."""
    counts = [f"mbarrier.init.shared.b64 [%s+{4096 + 8 * n}], 1; mbarrier.init.shared.b64 [%s+{4160 + 8 * n}], 2;"
              for n in range(stages)]  # fmt: skip
    begin = "\n".join(["{leader I}", *counts, "fence.mbarrier_init.release.cluster;\n"])
    wanted = np.array([7 * i + 64 * 21 for i in range(64)], U32)
    return Pair(
        f"ring of {stages}", begin + RING.replace("STAGES", str(stages)), block=96, lockstep=True, wanted=wanted
    )


RING = """
I: bar.sync 0; setp.lt.u32 %p1, %t, 64; @%p1 bra CONS;
setp.ne.u32 %p2, %t, 64; @%p2 bra END; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, <<1||0||deadlock>>;
  mov.u64 %d1, %a;
P: mad.lo.u32 %r4, %r2, 8, %s; PE: mbarrier.try_wait.parity.shared.b64 %p2, [%r4+4160], %r3; @!%p2 bra PE;
mbarrier.arrive.expect_tx.shared.b64 _, [%r4+4096], 256; mad.lo.u32 %r5, %r2, 256, %s;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1], 256, [%r4+4096];
  add.u64 %d1, %d1, 256;
add.u32 %r2, %r2, 1; setp.eq.u32 %p3, %r2, STAGES; @%p3 xor.b32 %r3, %r3, 1; @%p3 mov.u32 %r2, 0;
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 7; @%p3 bra P; bra END;
CONS: mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r10, 0;
C: mad.lo.u32 %r4, %r2, 8, %s; CF: mbarrier.try_wait.parity.shared.b64 %p2, [%r4+4096], %r3; @!%p2 bra CF;
mad.lo.u32 %r5, %r2, 256, %r59; ld.shared.u32 %r8, [%r5]; add.u32 %r10, %r10, %r8;
<<bar.warp.sync -1;|| ||race>> setp.eq.u32 %p4, %l, 0; @%p4 mbarrier.arrive.shared.b64 _, [%r4+4160];
add.u32 %r2, %r2, 1; setp.eq.u32 %p3, %r2, STAGES; <<@%p3 xor.b32 %r3, %r3, 1;|| ||race,deadlock,mbarrier>>
  @%p3 mov.u32 %r2, 0;
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 7; @%p3 bra C; st.global.u32 [%d36], %r10;
"""


COPIES = [
    Pair(
        "cp.async double buffer",
        """
// 4 tiles of 64 words, neighbours read each other's word
mul.wide.u32 %d1, %t, 4; add.u64 %d1, %a, %d1;
cp.async.ca.shared.global [%r59], [%d1], 4; cp.async.commit_group;
mov.u32 %r1, 0; mov.u32 %r2, 0; // tile, sum
LOOP:
add.u32 %r3, %r1, 1; setp.ge.u32 %p1, %r3, 4; @%p1 bra NOMORE;
and.b32 %r4, %r3, 1; shl.b32 %r4, %r4, 8; add.u32 %r4, %r59, %r4;
add.u64 %d1, %d1, 256; cp.async.ca.shared.global [%r4], [%d1], 4;
NOMORE:
cp.async.commit_group;
<<cp.async.wait_group 1;||cp.async.wait_group 2;||race||ld.shared>>
<<bar.sync 0;|| ||race||ld.shared>>
and.b32 %r5, %r1, 1; shl.b32 %r5, %r5, 8; xor.b32 %r6, %t, 33; shl.b32 %r6, %r6, 2; add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %s;
ld.shared.u32 %r7, [%r5]; add.u32 %r2, %r2, %r7;
<<bar.sync 0;|| ||race||cp.async.ca>>
add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 4; @%p2 bra LOOP;
st.global.u32 [%d36], %r2;
""",
        wanted=np.array([4 * (i ^ 33) + 64 * 6 for i in range(64)], U32),
    ),
    Pair(
        "mbarrier ring",
        """
// s: 2 slots of 128 bytes; full at s+1024, +8; empty at s+1040, +8
{leader I}
mbarrier.init.shared.b64 [%s+1024], 32; mbarrier.init.shared.b64 [%s+1032], 32;
mbarrier.init.shared.b64 [%s+1040], <<32||16||mbarrier,deadlock,race>>; mbarrier.init.shared.b64 [%s+1048], 32;
I: <<bar.sync 0;|| ||race,mbarrier>>
setp.ge.u32 %p1, %t, 32; @%p1 bra CONS;
mov.u32 %r1, 0;
P: and.b32 %r2, %r1, 1; shr.u32 %r3, %r1, 1; and.b32 %r3, %r3, 1; xor.b32 %r3, %r3, <<1||0||deadlock,race>>;
shl.b32 %r4, %r2, 3; add.u32 %r4, %r4, %s; shl.b32 %r5, %r2, 7; add.u32 %r5, %r5, %s;
<<PE: mbarrier.try_wait.parity.shared.b64 %p2, [%r4+1040], %r3; @!%p2 bra PE;|| ||race,deadlock>>
shl.b32 %r6, %l, 2; add.u32 %r6, %r6, %r5; mul.lo.u32 %r7, %r1, 100; add.u32 %r7, %r7, %l;
st.shared.u32 [%r6], %r7;
mbarrier.arrive.shared.b64 _, [%r4+1024];
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 6; @%p3 bra P; bra END;
CONS: mov.u32 %r1, 0; mov.u32 %r10, 0;
C: and.b32 %r2, %r1, 1; shr.u32 %r3, %r1, 1; and.b32 %r3, %r3, 1;
  <<||xor.b32 %r3, %r3, 1;||race,deadlock,uninitialised>>
shl.b32 %r4, %r2, 3; add.u32 %r4, %r4, %s; shl.b32 %r5, %r2, 7; add.u32 %r5, %r5, %s;
<<CF: mbarrier.try_wait.parity.shared.b64 %p2, [%r4+1024], %r3; @!%p2 bra CF;|| ||race,deadlock||ld.shared>>
xor.b32 %r6, %l, 5; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r5; ld.shared.u32 %r8, [%r6]; add.u32 %r10, %r10, %r8;
<<mbarrier.arrive.shared.b64 _, [%r4+1040];|| ||deadlock>>
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 6; @%p3 bra C;
st.global.u32 [%d36], %r10;
""",
    ),
    Pair(
        "warp specialised",
        """
{leader I}
mbarrier.init.shared.b64 [%s+4096], 1; mbarrier.init.shared.b64 [%s+4104], 128;
  fence.mbarrier_init.release.cluster;
I: bar.sync 0;
setp.ge.u32 %p1, %t, 128; @%p1 bra CONS;
setmaxnreg.dec.sync.aligned.u32 24;
setp.ne.u32 %p2, %t, 0; @%p2 bra END;
mov.u32 %r1, 0; mov.u64 %d1, %a;
P: and.b32 %r3, %r1, 1; xor.b32 %r3, %r3, 1;
<<PE: mbarrier.try_wait.parity.shared.b64 %p2, [%s+4104], %r3; @!%p2 bra PE;|| ||race,mbarrier>>
mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], <<512||1024||deadlock,mbarrier>>;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%d1], 512, [%s+4096];
add.u64 %d1, %d1, 512;
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 4; @%p3 bra P; bra END;
CONS: setmaxnreg.inc.sync.aligned.u32 240;
mov.u32 %r1, 0; mov.u32 %r10, 0;
C: and.b32 %r3, %r1, 1;
<<CF: mbarrier.try_wait.parity.shared.b64 %p2, [%s+4096], %r3;
  @!%p2 bra CF;|| ||race,mbarrier,deadlock||ld.shared>>
ld.shared.u32 %r8, [%r59+-512]; add.u32 %r10, %r10, %r8;
<<mbarrier.arrive.shared.b64 _, [%s+4104];|| ||deadlock>>
add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 4; @%p3 bra C;
st.global.u32 [%d36+-512], %r10;
""",
        block=256,
        wanted=np.array([4 * i + 128 * 6 for i in range(128)], U32),
    ),
    Pair(
        "st.async",
        """
{leader I} mbarrier.init.shared.b64 [%s+1024], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [%s+1024], <<256||252||race,mbarrier,deadlock>>;
  fence.mbarrier_init.release.cluster;
I: <<barrier.cluster.arrive; barrier.cluster.wait;|| ||mbarrier,race>>
xor.b32 %r2, %b, 1; mapa.shared::cluster.u32 %r3, %r59, %r2; mapa.shared::cluster.u32 %r4, %s, %r2;
add.u32 %r5, %t, 7;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r5, [%r4+1024];
<<W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+1024], 0;
  @!%p1 bra W;|| ||race,uninitialised||ld.shared>>
xor.b32 %r6, %t, 32; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %s;
ld.shared.u32 %r7, [%r6]; mad.lo.u32 %r5, %b, 64, %t; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %c;
  st.global.u32 [%d1], %r7;
barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "bulk store",
        """
st.shared.u32 [%r59], %t; <<fence.proxy.async.shared::cta;|| ||race||cp.async.bulk>>
  <<bar.sync 0;|| ||race,uninitialised||cp.async.bulk>>
{leader J}
cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 256; <<cp.async.bulk.commit_group;|| ||race||st.shared>>
  <<cp.async.bulk.wait_group.read 0;||cp.async.bulk.wait_group.read 1;||race||st.shared>>
J: bar.sync 0; st.shared.u32 [%r59], 5;
{leader END} cp.async.bulk.wait_group 0;
""",
        wanted=np.arange(64, dtype=U32),
    ),
    Pair(
        "bulk store, then read",
        """
st.shared.u32 [%r59], %t; fence.proxy.async.shared::cta; bar.sync 0;
{leader J}
cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 256; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group<<||.read||race||ld.global.u32 %r1>> 0;
J: bar.sync 0; ld.global.u32 %r1, [%d36]; st.global.u32 [%d36+1024], %r1;
""",
    ),
    Pair(
        "bulk reduce, then read",
        """
st.shared.u32 [%r59], %t; fence.proxy.async.shared::cta; bar.sync 0;
{leader J}
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%c], [%s], 256; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group<<||.read||race||ld.global.u32 %r1>> 0;
J: <<bar.sync 0;|| ||race||ld.global.u32 %r1>> ld.global.u32 %r1, [%d36]; st.global.u32 [%d36+1024], %r1;
""",
    ),
    Pair(
        "mbarrier reinitialised",
        """
{leader I} mbarrier.init.shared.b64 [%s], 64; I: bar.sync 0;
mbarrier.arrive.shared.b64 %d1, [%s]; W: mbarrier.test_wait.shared.b64 %p1, [%s], %d1; @!%p1 bra W;
<<bar.sync 0;|| ||race||mbarrier>> {leader K} mbarrier.inval.shared.b64 [%s]; st.shared.u32 [%s], 7;
  K: bar.sync 0; ld.shared.u32 %r1, [%s]; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "wgmma",
        """
mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0;
F: mad.lo.u32 %r3, %r2, 512, %r59; st.shared.u32 [%r3], %r1; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, <<4||3||uninitialised||st.global>>; @%p1 bra F;
setp.ge.u32 %p2, %t, 64; setp.ge.u32 %p3, %t, 128; <<@!%p2||@%p3||uninitialised||st.global>>
  st.shared.u32 [%r59+2048], %r1;
<<fence.proxy.async;|| ||race||wgmma.mma_async>> <<bar.sync 0;|| ||race,uninitialised>>
cvt.u64.u32 %d1, %s; shr.u64 %d1, %d1, 4; and.b64 %d1, %d1, 16383; or.b64 %d1, %d1, 68720001024;
add.u32 %r5, %s, 2048; cvt.u64.u32 %d2, %r5; shr.u64 %d2, %d2, 4; and.b64 %d2, %d2, 16383;
  or.b64 %d2, %d2, 68720001024;
mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
<<wgmma.fence.sync.aligned;|| ||wgmma||wgmma.mma_async>>
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
<<wgmma.commit_group.sync.aligned;|| ||wgmma,race>>
<<wgmma.wait_group.sync.aligned 0;||wgmma.wait_group.sync.aligned 1;||wgmma||st.global>>
mad.wide.u32 %d3, %t, 16, %c; st.global.v4.f32 [%d3], {%f1, %f2, %f3, %f4};
""",
        block=128,
        wanted=np.full(512, 0x41800000, U32),
    ),
    Pair(
        "wgmma, source reused",
        """
mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0;
F: mad.lo.u32 %r3, %r2, 512, %r59; st.shared.u32 [%r3], %r1; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, <<4||3||uninitialised||st.global>>; @%p1 bra F;
setp.ge.u32 %p2, %t, 64; setp.ge.u32 %p3, %t, 128; <<@!%p2||@%p3||uninitialised||st.global>>
  st.shared.u32 [%r59+2048], %r1;
<<fence.proxy.async;|| ||race||wgmma.mma_async>> <<bar.sync 0;|| ||race,uninitialised>>
cvt.u64.u32 %d1, %s; shr.u64 %d1, %d1, 4; and.b64 %d1, %d1, 16383; or.b64 %d1, %d1, 68720001024;
add.u32 %r5, %s, 2048; cvt.u64.u32 %d2, %r5; shr.u64 %d2, %d2, 4; and.b64 %d2, %d2, 16383;
  or.b64 %d2, %d2, 68720001024;
mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
<<wgmma.fence.sync.aligned;|| ||wgmma||wgmma.mma_async>>
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
<<wgmma.commit_group.sync.aligned;|| ||wgmma,race>>
<<wgmma.wait_group.sync.aligned 0; bar.sync 0; st.shared.u32 [%r59], 7;||bar.sync 0; st.shared.u32 [%r59], 7;
  wgmma.wait_group.sync.aligned 0;||race||st.shared>>
mad.wide.u32 %d3, %t, 16, %c; st.global.v4.f32 [%d3], {%f1, %f2, %f3, %f4};
""",
        block=128,
    ),
    Pair(
        "wgmma accumulators read early",
        """
mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0;
F: mad.lo.u32 %r3, %r2, 512, %r59; st.shared.u32 [%r3], %r1; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, <<4||3||uninitialised||st.global>>; @%p1 bra F;
setp.ge.u32 %p2, %t, 64; setp.ge.u32 %p3, %t, 128; <<@!%p2||@%p3||uninitialised||st.global>>
  st.shared.u32 [%r59+2048], %r1;
<<fence.proxy.async;|| ||race||wgmma.mma_async>> <<bar.sync 0;|| ||race,uninitialised>>
cvt.u64.u32 %d1, %s; shr.u64 %d1, %d1, 4; and.b64 %d1, %d1, 16383; or.b64 %d1, %d1, 68720001024;
add.u32 %r5, %s, 2048; cvt.u64.u32 %d2, %r5; shr.u64 %d2, %d2, 4; and.b64 %d2, %d2, 16383;
  or.b64 %d2, %d2, 68720001024;
mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
<<wgmma.fence.sync.aligned;|| ||wgmma||wgmma.mma_async>>
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
<<wgmma.commit_group.sync.aligned;|| ||wgmma,race>>
<<wgmma.wait_group.sync.aligned 0; add.f32 %f1, %f1, %f1;||add.f32 %f1, %f1, %f1;
  wgmma.wait_group.sync.aligned 0;||wgmma||add.f32>>
mad.wide.u32 %d3, %t, 16, %c; st.global.v4.f32 [%d3], {%f1, %f2, %f3, %f4};
""",
        block=128,
    ),
    Pair(
        "wgmma A register overwritten in flight",
        """
mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0;
F: mad.lo.u32 %r3, %r2, 512, %r59; st.shared.u32 [%r3], %r1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 4;
  @%p1 bra F;
setp.ge.u32 %p2, %t, 64; setp.ge.u32 %p3, %t, 128; @!%p2 st.shared.u32 [%r59+2048], %r1;
fence.proxy.async; bar.sync 0; add.u32 %r5, %s, 2048; cvt.u64.u32 %d2, %r5; shr.u64 %d2, %d2, 4;
  and.b64 %d2, %d2, 16383; or.b64 %d2, %d2, 68720001024;
mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
mov.u32 %r11, %r1; mov.u32 %r12, %r1; mov.u32 %r13, %r1; mov.u32 %r14, %r1;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r11, %r12, %r13, %r14}, %d2, 1, 1, 1, 0;
wgmma.commit_group.sync.aligned; <<||add.u32 %r11, %r11, %t;||wgmma||add.u32>> wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %d3, %t, 16, %c; st.global.v4.f32 [%d3], {%f1, %f2, %f3, %f4};
""",
        block=128,
    ),
    Pair(
        "wgmma half a warpgroup",
        """
mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0;
F: mad.lo.u32 %r3, %r2, 512, %r59; st.shared.u32 [%r3], %r1; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, <<4||3||uninitialised||st.global>>; @%p1 bra F;
setp.ge.u32 %p2, %t, 64; setp.ge.u32 %p3, %t, 128; <<@!%p2||@%p3||uninitialised||st.global>>
  st.shared.u32 [%r59+2048], %r1;
<<fence.proxy.async;|| ||race||wgmma.mma_async>> <<bar.sync 0;|| ||race,uninitialised>>
cvt.u64.u32 %d1, %s; shr.u64 %d1, %d1, 4; and.b64 %d1, %d1, 16383; or.b64 %d1, %d1, 68720001024;
add.u32 %r5, %s, 2048; cvt.u64.u32 %d2, %r5; shr.u64 %d2, %d2, 4; and.b64 %d2, %d2, 16383;
  or.b64 %d2, %d2, 68720001024;
<<||setp.ge.u32 %p9, %t, 96; @%p9 bra END;||diverged,deadlock||wgmma>> mov.f32 %f1, 0f00000000;
  mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
<<wgmma.fence.sync.aligned;|| ||wgmma||wgmma.mma_async>>
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
<<wgmma.commit_group.sync.aligned;|| ||wgmma,race>>
<<wgmma.wait_group.sync.aligned 0;||wgmma.wait_group.sync.aligned 1;||wgmma||st.global>>
mad.wide.u32 %d3, %t, 16, %c; st.global.v4.f32 [%d3], {%f1, %f2, %f3, %f4};
""",
        block=128,
    ),
    Pair(
        "bulk copy between blocks",
        """
st.shared.u32 [%r59], %t;
<<fence.proxy.async;|| ||race||cp.async.bulk>>
{leader I} mbarrier.init.shared.b64 [%s+4096], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 256;
  fence.mbarrier_init.release.cluster;
I: <<barrier.cluster.arrive; barrier.cluster.wait;|| ||mbarrier,race>>
{leader J} xor.b32 %r2, %b, 1; add.u32 %r5, %s, 1024; mapa.shared::cluster.u32 %r3, %r5, %r2;
  mapa.shared::cluster.u32 %r4, %s, %r2;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [%s<<||+16||uninitialised
  ||st.global||(60, 0, 0)>>], 256, [%r4+4096];
J: <<W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+4096], 0;
  @!%p1 bra W;|| ||race,uninitialised||ld.shared>>
ld.shared.u32 %r7, [%r59+1024]; mad.lo.u32 %r5, %b, 64, %t; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %c;
  st.global.u32 [%d1], %r7;
barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
        wanted=np.concatenate([np.arange(64, dtype=U32)] * 2),
    ),
    Pair(
        "remote arrival",
        """
// block 1 waits for 64 arrivals of block 0's threads at block 1's mbarrier, which guard a remote store
{leader I} mbarrier.init.shared.b64 [%s+1024], 64; fence.mbarrier_init.release.cluster;
I: <<barrier.cluster.arrive.relaxed; barrier.cluster.wait;|| ||mbarrier,race>>
mov.u32 %r2, 1; setp.eq.u32 %p1, %b, 1; @%p1 bra C;
mapa.shared::cluster.u32 %r3, %r59, %r2; mapa.shared::cluster.u32 %r4, %s, %r2; st.shared::cluster.u32 [%r3], %t;
mbarrier.arrive.<<release||relaxed||race||ld.shared>>.cluster.shared::cluster.b64 _, [%r4+1024]; bra Z;
C: <<W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+1024], 0;
  @!%p1 bra W;|| ||race,uninitialised>>
xor.b32 %r6, %t, 5; mad.lo.u32 %r6, %r6, 4, %s; ld.shared.u32 %r7, [%r6]; st.global.u32 [%d36], %r7;
Z: barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "cp.async arrives at an mbarrier",
        """
{leader I} mbarrier.init.shared.b64 [%s+1024], 64; I: bar.sync 0;
cp.async.ca.shared.global [%r59], [%d37], 4;
<<cp.async.mbarrier.arrive.noinc.shared.b64 [%s+1024];||mbarrier.arrive.shared.b64 _, [%s+1024];||race
  ||ld.shared>>
W: mbarrier.try_wait.parity.shared.b64 %p1, [%s+1024], 0; @!%p1 bra W;
xor.b32 %r1, %t, 33; mad.lo.u32 %r1, %r1, 4, %s; ld.shared.u32 %r2, [%r1]; st.global.u32 [%d36], %r2;
""",
        wanted=np.array([i ^ 33 for i in range(64)], U32),
    ),
    Pair(
        "bulk copy sizes",
        """
{leader END} mbarrier.init.shared.b64 [%s+4096], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 64;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+<<0||8||misaligned||cp.async.bulk>>],
  [%a+<<0||16336||bounds||cp.async.bulk>>], <<64||60||misaligned||cp.async.bulk>>, [%s+4096];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%s+4096], 0; @!%p1 bra W;
ld.shared.u32 %r1, [%s]; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "bulk store, other threads write",
        """
st.shared.u32 [%r59], %t; fence.proxy.async.shared::cta; bar.sync 0;
{leader J} cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 256; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
J: <<bar.sync 0;|| ||race||st.shared||>> st.shared.u32 [%r59], 5; {leader END} cp.async.bulk.wait_group 0;
""",
    ),
    Pair(
        "waited for by another thread",
        """
st.shared.u32 [%r59], %t; fence.proxy.async.shared::cta; bar.sync 0;
{leader J} cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 256; cp.async.bulk.commit_group;
J: setp.eq.u32 %p1, %t, <<0||32||race||st.shared>>; @%p1 cp.async.bulk.wait_group.read 0;
bar.sync 0; st.shared.u32 [%r59], 5;
""",
    ),
    Pair(
        "cp.async waited for by another warp",
        """
setp.lt.u32 %p1, %t, 32; @%p1 cp.async.ca.shared.global [%r59], [%d37], 4; @%p1 cp.async.commit_group;
  <<@%p1||@!%p1||race||ld.shared>> cp.async.wait_group 0;
bar.sync 0; and.b32 %r1, %t, 31; mad.lo.u32 %r1, %r1, 4, %s; ld.shared.u32 %r2, [%r1]; st.global.u32 [%d36], %r2;
""",
    ),
    Pair(
        "proxy fence after a named barrier",
        """
setp.ge.u32 %p1, %t, 64; @%p1 bra END; st.shared.u32 [%r59], %t; bar.sync 1, 64; {leader END}
<<fence.proxy.async;|| ||race||cp.async.bulk>> cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
""",
        block=128,
        wanted=np.arange(64, dtype=U32),
    ),
    Pair(
        "proxy fence after a warp barrier",
        """
setp.ge.u32 %p1, %t, 32; @%p1 bra END; st.shared.u32 [%r59], %t; <<bar.warp.sync -1;|| ||race||cp.async.bulk>>
  {leader END}
<<fence.proxy.async;|| ||race||cp.async.bulk>> cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 128;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
""",
        block=128,
        wanted=np.arange(32, dtype=U32),
        lockstep=True,
    ),
    Pair(
        "proxy fence after an mbarrier",
        """
{leader I} mbarrier.init.shared.b64 [%s+1024], 32; I: bar.sync 0; setp.lt.u32 %p1, %t, 32; @%p1 bra C;
st.shared.u32 [%r59+-128], %t; <<mbarrier.arrive.shared.b64 _, [%s+1024];
  ||mbarrier.arrive.relaxed.cta.shared.b64 _, [%s+1024];||race||cp.async.bulk>> bra END;
C: {wait W %s+1024 0} {leader END} <<fence.proxy.async;|| ||race||cp.async.bulk>>
cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 128; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
""",
        wanted=np.arange(32, 64, dtype=U32),
    ),
    Pair(
        "mbarrier alignment",
        """
{leader END} mbarrier.init.shared.b64 [%s+<<8||4||misaligned||mbarrier.init>>], 1;
""",
    ),
    Pair(
        "too many arrivals",
        """
{leader I} mbarrier.init.shared.b64 [%s], 64; I: bar.sync 0; setp.lt.u32 %p1, %t, 48;
@%p1 mbarrier.arrive.shared.b64 %d1, [%s], 1; setp.ge.u32 %p1, %t, 48;
  @%p1 mbarrier.arrive.shared.b64 _, [%s], 1;
""",
    ),
    Pair(
        "fence of initialised mbarriers left out",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], 1; <<fence.mbarrier_init.release.cluster;|| ||race||>>
I: barrier.cluster.arrive.relaxed; barrier.cluster.wait; xor.b32 %r2, %b, 1;
  mapa.shared::cluster.u32 %r4, %s, %r2; {leader J}
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4+4096];
J: W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+4096], 0; @!%p1 bra W;
barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "bulk loads and an mbarrier that was just initialised",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%a], 256, [%s+4096];
I: <<bar.sync 0;|| ||mbarrier,race||mbarrier.try_wait>> {wait W %s+4096 0} ld.shared.u32 %r1, [%r59];
  st.global.u32 [%d36], %r1;
""",
        wanted=np.arange(64, dtype=U32),
    ),
    Pair(
        "source of a bulk load written in the kernel",
        """
st.global.u32 [%d36], %t; <<bar.sync 0;|| ||race||cp.async.bulk>> {leader I}
mbarrier.init.shared.b64 [%s+4096], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 256;
fence.proxy.async; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%c], 256, [%s+4096];
I: bar.sync 0; {wait W %s+4096 0} ld.shared.u32 %r1, [%r59]; st.global.u32 [%d36+1024], %r1;
""",
    ),
    *map(ring, (1, 2, 3)),
    Pair(
        "two store buffers",
        """
mov.u32 %r1, 0; mov.u64 %d1, %c;
K: and.b32 %r2, %r1, 1; mad.lo.u32 %r3, %r2, 256, %r59;
setp.eq.u32 %p2, %t, 0; @%p2 cp.async.bulk.wait_group.read <<1||2||race||st.shared>>;
  <<bar.sync 0;|| ||race||st.shared>>
add.u32 %r4, %t, %r1; st.shared.u32 [%r3], %r4; <<fence.proxy.async;|| ||race||cp.async.bulk.global>>
  <<bar.sync 1;|| ||race,uninitialised||cp.async.bulk.global>>
mad.lo.u32 %r5, %r2, 256, %s; @%p2 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r5], 256;
  @%p2 cp.async.bulk.commit_group; add.u64 %d1, %d1, 256;
add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra K; @%p2 cp.async.bulk.wait_group 0;
""",
        wanted=np.concatenate([np.arange(64) + k for k in range(5)]).astype(U32),
    ),
    Pair(
        "mbarrier as a plain barrier in a loop",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], <<64||63||mbarrier,race,deadlock>>; I: bar.sync 0; mov.u32 %r1, 0;
K: and.b32 %r2, %r1, 1; mad.lo.u32 %r3, %r2, 256, %r59; st.shared.u32 [%r3], %r1;
mbarrier.arrive.shared.b64 %d1, [%s+4096];
W: mbarrier.try_wait.<<shared.b64 %p1, [%s+4096], %d1||parity.shared.b64 %p1, [%s+4096], 1
  ||race,deadlock,mbarrier>>; @!%p1 bra W;
xor.b32 %r4, %t, 63; mad.lo.u32 %r5, %r4, 4, %s; mad.lo.u32 %r5, %r2, 256, %r5; ld.shared.u32 %r6, [%r5];
  add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 6; @%p2 bra K; st.global.u32 [%d36], %r6;
""",
        wanted=np.full(64, 5, U32),
    ),
    Pair(
        "arrive_drop",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], 64; I: bar.sync 0; st.shared.u32 [%r59], %t;
setp.ge.u32 %p1, %t, 32; @%p1 bra D; mbarrier.arrive.shared.b64 _, [%s+4096]; {wait W %s+4096 0}
ld.shared.u32 %r1, [%r59+128]; st.global.u32 [%d36], %r1; mbarrier.arrive.shared.b64 _, [%s+4096];
  {wait V %s+4096 1} bra END;
D: <<mbarrier.arrive_drop||mbarrier.arrive||deadlock>>.shared.b64 _, [%s+4096];
""",
        wanted=np.arange(32, 64, dtype=U32),
    ),
    Pair(
        "cp.async of a row that ends early",
        """
setp.lt.u32 %p1, %t, 50; selp.u32 %r1, 4, 0, %p1;
cp.async.ca.shared.global [%r59], [%d37+<<0||16256||bounds||cp.async>>], 4, %r1; cp.async.commit_group;
cp.async.wait_group 0; <<bar.sync 0;|| ||race>> xor.b32 %r2, %t, 63; mad.lo.u32 %r3, %r2, 4, %s;
  ld.shared.u32 %r4, [%r3]; st.global.u32 [%d36], %r4;
""",
        wanted=np.array([63 - i if 63 - i < 50 else 0 for i in range(64)], U32),
    ),
    Pair(
        "mbarrier wait for a phase too far",
        """
{leader I} mbarrier.init.shared.b64 [%s], 64; I: bar.sync 0; mbarrier.arrive.shared.b64 _, [%s]; {wait W %s 0}
  mbarrier.arrive.shared.b64 _, [%s]; {wait V %s 1}
""",
    ),
    Pair(
        "expect_tx by two threads",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], <<2||1||mbarrier,race>>; fence.mbarrier_init.release.cluster;
I: bar.sync 0; setp.ge.u32 %p1, %t, 2; @%p1 bra C; mad.lo.u32 %r1, %t, 128, %s; mad.wide.u32 %d1, %t, 128, %a;
  mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 128, [%s+4096];
  C: {wait W %s+4096 0} ld.shared.u32 %r2, [%r59]; st.global.u32 [%d36], %r2;
""",
        wanted=np.arange(64, dtype=U32),
    ),
    Pair(
        "consumer releases before it reads",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], 1; mbarrier.init.shared.b64 [%s+4104], 64;
fence.mbarrier_init.release.cluster; I: bar.sync 0; setp.ge.u32 %p1, %t, 64; @%p1 bra P; mov.u32 %r1, 0;
  mov.u32 %r9, 0;
C: and.b32 %r2, %r1, 1; CW: mbarrier.try_wait.parity.shared.b64 %p2, [%s+4096], %r2; @!%p2 bra CW;
<<ld.shared.u32 %r3, [%r59]; mbarrier.arrive.shared.b64 _, [%s+4104];||mbarrier.arrive.shared.b64 _,
[%s+4104]; ld.shared.u32 %r3, [%r59];||race>> add.u32 %r9, %r9, %r3; add.u32 %r1, %r1, 1;
  setp.lt.u32 %p3, %r1, 4; @%p3 bra C; st.global.u32 [%d36], %r9; bra END;
P: setp.ne.u32 %p4, %t, 64; @%p4 bra END; mov.u32 %r1, 0; mov.u64 %d1, %a;
Q: mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%d1], 256, [%s+4096];
add.u64 %d1, %d1, 256; and.b32 %r2, %r1, 1; PW: mbarrier.try_wait.parity.shared.b64 %p2, [%s+4104], %r2;
  @!%p2 bra PW; add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 4; @%p3 bra Q;
""",
        block=96,
        wanted=np.array([4 * i + 64 * 6 for i in range(64)], U32),
    ),
    Pair(
        "multicast",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%s+4096], 256;
fence.mbarrier_init.release.cluster; I: <<barrier.cluster.arrive;
  barrier.cluster.wait;||bar.sync 0;||race,mbarrier,cluster>>
setp.eq.u32 %p1, %b, 0; setp.eq.and.u32 %p1, %t, 0, %p1; mov.u16 %h1, <<3||1||deadlock,limit,uninitialised>>;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%a], 256,
  [%s+4096], %h1;
{wait W %s+4096 0} ld.shared.u32 %r1, [%r59]; mad.lo.u32 %r5, %b, 64, %t; mad.wide.u32 %d1, %r5, 4, %c;
  st.global.u32 [%d1], %r1; barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
        wanted=np.array([i % 64 for i in range(128)], U32),
    ),
    Pair(
        "mbarrier waits with a bounded number of tries",
        """
{leader I} mbarrier.init.shared.b64 [%s+4096], 32; I: bar.sync 0; setp.lt.u32 %p1, %t, 32; @%p1 bra P;
  mov.u32 %r1, 0;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%s+4096], 0, 1000; @%p2 bra D; add.u32 %r1, %r1, 1;
  setp.gt.u32 %p3, %r1, 2000; @%p3 trap; bra W;
D: ld.shared.u32 %r2, [%r59+-128]; st.global.u32 [%d36+-128], %r2; bra END;
P: mov.u32 %r5, 0; Q: add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, 300; @%p5 bra Q; st.shared.u32 [%r59], %t;
  <<mbarrier.arrive.shared.b64 _, [%s+4096];|| ||trap,deadlock>>
""",
        wanted=np.arange(32, dtype=U32),
    ),
]
