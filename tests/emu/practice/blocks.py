"""Order between blocks: locks, flags, counters, clusters."""

import numpy as np

from tests.emu.practice.pairs import U32, Pair, read_only

BLOCKS = [
    Pair(
        "last block",
        """
mad.lo.u32 %r1, %b, 64, %t; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1; add.u32 %r1, %r1, 1;
st.global.u32 [%d2+4096], %r1;
<<membar.gl;||membar.cta;||race||ld.global.u32 %r5>>
<<bar.sync 0;|| ||race>>
{leader J} atom.global.inc.u32 %r2, [%y], 3; st.shared.u32 [%s], %r2;
J: <<bar.sync 0;|| ||race,uninitialised>>
ld.shared.u32 %r3, [%s]; setp.ne.u32 %p1, %r3, 3; @%p1 bra END;
<<membar.gl;|| ||race||ld.global.u32 %r5>>
mov.u32 %r4, 0; mov.u32 %r6, 0; add.u64 %d3, %c, %d38;
K: ld.global.u32 %r5, [%d3+4096]; add.u32 %r6, %r6, %r5; add.u64 %d3, %d3, 256; add.u32 %r4, %r4, 1;
  setp.lt.u32 %p2, %r4, 4; @%p2 bra K;
st.global.u32 [%d36], %r6;
""",
        grid=4,
        wanted=np.array([4 * (i + 1) + 64 * 6 for i in range(64)], U32),
    ),
    Pair(
        "last block, cta atomic",
        """
mad.lo.u32 %r1, %b, 64, %t; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1; add.u32 %r1, %r1, 1;
st.global.u32 [%d2+4096], %r1;
membar.gl;
bar.sync 0;
{leader J} <<atom.global.inc||atom.relaxed.cta.global.inc||race>>.u32 %r2, [%y], 3; st.shared.u32 [%s], %r2;
J: bar.sync 0;
ld.shared.u32 %r3, [%s]; setp.ne.u32 %p1, %r3, 3; @%p1 bra END;
membar.gl;
mov.u32 %r4, 0; mov.u32 %r6, 0; add.u64 %d3, %c, %d38;
K: ld.global.u32 %r5, [%d3+4096]; add.u32 %r6, %r6, %r5; add.u64 %d3, %d3, 256; add.u32 %r4, %r4, 1;
  setp.lt.u32 %p2, %r4, 4; @%p2 bra K;
st.global.u32 [%d36], %r6;
""",
        grid=4,
    ),
    Pair(
        "look-back",
        """
// each block: sum of its index+1; exclusive prefix by look-back one step
{leader END}
add.u32 %r1, %b, 1; mov.u32 %r2, 0; mul.wide.u32 %d1, %b, 4; add.u64 %d2, %y, %d1; add.u64 %d3, %c, %d1;
setp.eq.u32 %p1, %b, 0; @%p1 bra PUB;
W: ld.<<acquire||relaxed||race||ld.global.u32 %r2>>.gpu.global.u32 %r3, [%d2+-4]; setp.eq.u32 %p2, %r3, 0;
  @%p2 bra W;
ld.global.u32 %r2, [%d3+1020];
PUB: add.u32 %r4, %r2, %r1; st.global.u32 [%d3+1024], %r4;
st.<<release||relaxed||race||ld.global.u32 %r2>>.<<gpu||cta||race||ld.>>.global.u32 [%d2], 1;
st.global.u32 [%d3], %r2;
""",
        grid=8,
        wanted=np.array([i * (i + 1) // 2 for i in range(8)], U32),
    ),
    Pair(
        "look-back packed word",
        """
// value and flag in one 64-bit word: relaxed is enough
{leader END}
mul.wide.u32 %d1, %b, 8; add.u64 %d2, %y, %d1; mul.wide.u32 %d7, %b, 4; add.u64 %d3, %c, %d7; mov.u64 %d5, 0;
setp.eq.u32 %p1, %b, 0; @%p1 bra PUB;
W: ld.<<relaxed.gpu||cg||race||ld.>>.global.u64 %d4, [%d2+-8]; setp.eq.u64 %p2, %d4, 0; @%p2 bra W;
shr.u64 %d5, %d4, 32;
PUB: cvt.u64.u32 %d6, %b; add.u64 %d6, %d6, %d5; add.u64 %d6, %d6, 1; shl.b64 %d6, %d6, 32; or.b64 %d6, %d6, 1;
  st.<<relaxed.gpu||wb||race>>.global.u64 [%d2], %d6;
cvt.u32.u64 %r1, %d5; st.global.u32 [%d3], %r1;
""",
        grid=8,
        wanted=np.array([i * (i + 1) // 2 for i in range(8)], U32),
    ),
    Pair(
        "spin lock",
        """
{leader END}
L: atom.<<acquire||relaxed||race>>.gpu.global.cas.b32 %r1, [%y], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
ld.global.u32 %r2, [%c]; add.u32 %r2, %r2, 1; st.global.u32 [%c], %r2;
<<st.release.gpu.global.u32 [%y], 0;||st.relaxed.gpu.global.u32 [%y], 0;||race>>
""",
        grid=8,
        wanted=np.array([8], U32),
    ),
    Pair(
        "spin lock of the guide",
        """
{leader END}
L: atom.global.cas.b32 %r1, [%y], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
<<membar.gl;|| ||race>>
ld.global.u32 %r2, [%c]; add.u32 %r2, %r2, 1; st.global.u32 [%c], %r2;
<<membar.gl;|| ||race>>
<<atom.global.exch.b32 %r1, [%y], 0;||st.global.u32 [%y], 0;||race>>
""",
        grid=8,
        wanted=np.array([8], U32),
    ),
    Pair(
        "spin lock in one block by warps",
        """
{leader I} st.shared.u32 [%s], 0; st.shared.u32 [%s+4], 0; I: bar.sync 0;
setp.ne.u32 %p5, %l, 0; @%p5 bra END;
L: atom.<<acquire||relaxed||race>>.cta.shared.cas.b32 %r1, [%s], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
ld.shared.u32 %r2, [%s+4]; add.u32 %r2, %r2, 1; st.shared.u32 [%s+4], %r2;
<<st.release.cta.shared.u32 [%s], 0;||st.volatile.shared.u32 [%s], 0;||race>>
""",
        block=128,
    ),
    Pair(
        "dsmem",
        """
add.u32 %r1, %t, 1000; mad.lo.u32 %r1, %b, 64, %r1; st.shared.u32 [%r59], %r1;
<<barrier.cluster.arrive.release; barrier.cluster.wait.acquire;||bar.sync 0;||race||ld.shared::cluster>>
xor.b32 %r2, %b, 1; mapa.shared::cluster.u32 %r3, %r59, %r2; ld.shared::cluster.u32 %r4, [%r3];
mad.lo.u32 %r5, %b, 64, %t; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %c; st.global.u32 [%d1], %r4;
<<barrier.cluster.arrive.release; barrier.cluster.wait.acquire;|| ||race,cluster>>
""",
        grid=2,
        cluster=2,
        wanted=np.array([1000 + (i ^ 64) for i in range(128)], U32),
    ),
    Pair(
        "dsmem relaxed arrive",
        """
st.shared.u32 [%r59], %t;
<<fence.acq_rel.cluster;|| ||race||ld.shared::cluster>> barrier.cluster.arrive.relaxed; barrier.cluster.wait;
xor.b32 %r2, %b, 1; mapa.shared::cluster.u32 %r3, %r59, %r2; ld.shared::cluster.u32 %r4, [%r3];
mad.lo.u32 %r5, %b, 64, %t; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %c; st.global.u32 [%d1], %r4;
barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "mapa rank",
        """
mapa.shared::cluster.u32 %r3, %r59, <<1||2||cluster||mapa>>; bar.sync 0;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "readonly",
        """
st.global.u32 [<<%d36||%d37||readonly||st.global>>], %t;
  red.global.add.u32 [<<%c||%a||readonly||red.global>>+1024], 1;
""",
        args=read_only,
    ),
    Pair(
        "grid barrier",
        """
mad.lo.u32 %r1, %b, 64, %t; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1; st.global.u32 [%d2], %r1;
<<bar.sync 0;|| ||race>> {leader J} <<fence.acq_rel.gpu;|| ||race>>
atom.global.add.u32 %r2, [%y], 1;
W: ld.<<relaxed.gpu||relaxed.cta||race>>.global.u32 %r3, [%y]; setp.lt.u32 %p1, %r3, %n; @%p1 bra W;
  <<fence.acq_rel.gpu;|| ||race>>
J: <<bar.sync 0;|| ||race>>
xor.b32 %r4, %r1, 64; mul.wide.u32 %d1, %r4, 4; add.u64 %d2, %c, %d1; ld.global.u32 %r5, [%d2];
  add.u64 %d3, %c, 4096; mul.wide.u32 %d4, %r1, 4; add.u64 %d3, %d3, %d4; st.global.u32 [%d3], %r5;
""",
        grid=4,
    ),
    Pair(
        "grid barrier, volatile and membar",
        """
mad.lo.u32 %r1, %b, 64, %t; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1; st.global.u32 [%d2], %r1;
<<bar.sync 0;|| ||race>> {leader J} <<membar.gl;|| ||race>>
atom.global.add.u32 %r2, [%y], 1;
W: ld.volatile.global.u32 %r3, [%y]; setp.lt.u32 %p1, %r3, %n; @%p1 bra W; <<membar.gl;|| ||race>>
J: <<bar.sync 0;|| ||race>>
xor.b32 %r4, %r1, 64; mul.wide.u32 %d1, %r4, 4; add.u64 %d2, %c, %d1; ld.global.u32 %r5, [%d2];
  add.u64 %d3, %c, 4096; mul.wide.u32 %d4, %r1, 4; add.u64 %d3, %d3, %d4; st.global.u32 [%d3], %r5;
""",
        grid=4,
    ),
    Pair(
        "volatile flag",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 1; @%p2 bra C;
st.global.u32 [%c], 42; <<membar.gl;||membar.cta;||race||ld.global.u32 %r2>>
  st.<<volatile||wb||race>>.global.u32 [%y], 1; bra END;
C: ld.<<volatile||ca||race,deadlock,limit>>.global.u32 %r1, [%y]; setp.eq.u32 %p3, %r1, 0; @%p3 bra C;
  <<membar.gl;|| ||race||ld.global.u32 %r2>> ld.global.u32 %r2, [%c]; st.global.u32 [%c+4], %r2;
""",
        grid=2,
        wanted=np.array([42, 42], U32),
    ),
    Pair(
        "flag in one block",
        """
{leader I} st.shared.u32 [%s], 0; I: <<bar.sync 0;|| ||race,uninitialised,deadlock>>
setp.eq.u32 %p2, %w, 1; @%p2 bra C; {leader END}
st.shared.u32 [%s+4], 42; st.<<release||relaxed||race>>.cta.shared.u32 [%s], 1; bra END;
C: ld.<<acquire||relaxed||race>>.cta.shared.u32 %r1, [%s]; setp.eq.u32 %p3, %r1, 0; @%p3 bra C;
  ld.shared.u32 %r2, [%s+4]; st.global.u32 [%d36], %r2;
""",
    ),
    Pair(
        "flag before data",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 1; @%p2 bra C;
<<st.global.u32 [%c], 42; st.release.gpu.global.u32 [%y], 1;||st.release.gpu.global.u32 [%y], 1;
  st.global.u32 [%c], 42;||race>> bra END;
C: ld.acquire.gpu.global.u32 %r1, [%y]; setp.eq.u32 %p3, %r1, 0; @%p3 bra C; ld.global.u32 %r2, [%c];
  st.global.u32 [%c+4], %r2;
""",
        grid=2,
    ),
    Pair(
        "atomic beside a plain read",
        """
red.global.add.u32 [%c], 1; <<bar.sync 0;|| ||race||ld.global>> ld.global.u32 %r1, [%c];
  st.global.u32 [%d36+1024], %r1;
""",
    ),
    Pair(
        "work queue",
        """
Q: {leader J} atom.global.add.u32 %r1, [%y], 1; st.shared.u32 [%s], %r1;
J: <<bar.sync 0;|| ||race,uninitialised>> ld.shared.u32 %r2, [%s]; <<bar.sync 0;|| ||race||st.shared>>
setp.ge.u32 %p1, %r2, 5; @%p1 bra END; mad.lo.u32 %r3, %r2, 64, %t; mul.wide.u32 %d1, %r3, 4;
  add.u64 %d1, %d1, %c; st.global.u32 [%d1], %r3; bra Q;
""",
        grid=2,
        wanted=np.arange(320, dtype=U32),
    ),
    Pair(
        "semaphore",
        """
setp.eq.u32 %p1, %b, 0; @%p1 bra FIRST;
{leader J}
W: ld.acquire.gpu.global.u32 %r1, [%y]; setp.ne.u32 %p2, %r1, %b; @%p2 bra W;
J: <<bar.sync 0;|| ||race||ld.global.u32 %r2>>
ld.global.u32 %r2, [%d36]; add.u32 %r2, %r2, 1; st.global.u32 [%d36], %r2; bra R;
FIRST: st.global.u32 [%d36], %t;
R: <<bar.sync 0;|| ||race>> {leader END} red.<<release||relaxed||race>>.gpu.global.add.u32 [%y], 1;
""",
        grid=4,
        wanted=np.arange(3, 67, dtype=U32),
    ),
    Pair(
        "block ends while another writes to it",
        """
barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p1, %b, 1; @%p1 bra Z;
mov.u32 %r2, 1; mapa.shared::cluster.u32 %r3, %r59, %r2; st.shared::cluster.u32 [%r3], %t;
Z: <<barrier.cluster.arrive; barrier.cluster.wait;|| ||race,cluster>>
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "cluster barrier that one warp leaves out",
        """
<<||setp.ge.u32 %p1, %t, 32; @%p1 bra Z;||deadlock>> barrier.cluster.arrive; barrier.cluster.wait; Z: bar.sync 0;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "volatile does not order",
        """
{leader I} st.shared.u32 [%s+1024], 0; I: bar.sync 0;
setp.ge.u32 %p1, %t, 32; @%p1 bra C; st.shared.u32 [%r59], %t; <<membar.cta;|| ||race>> bar.warp.sync -1;
  setp.eq.u32 %p2, %l, 0; @%p2 st.volatile.shared.u32 [%s+1024], 1; bra Z;
C: ld.volatile.shared.u32 %r1, [%s+1024]; setp.eq.u32 %p3, %r1, 0; @%p3 bra C; <<membar.cta;|| ||race>>
  ld.shared.u32 %r2, [%r59+-128]; st.global.u32 [%d36+-128], %r2;
Z:
""",
    ),
    Pair(
        "read-only cache of what the kernel wrote",
        """
st.global.u32 [%d36], %t; bar.sync 0; xor.b32 %r1, %t, 33; mad.wide.u32 %d1, %r1, 4, %c;
  ld.global<<||.nc||race||ld.global.nc>>.u32 %r2, [%d1]; st.global.u32 [%d36+1024], %r2;
""",
    ),
    Pair(
        "read-only cache of its own write",
        """
st.global.u32 [%d36], %t; ld.global<<||.nc||race||ld.global.nc>>.u32 %r2, [%d36]; st.global.u32 [%d36+1024], %r2;
""",
    ),
    Pair(
        "double release",
        """
// two producers, one consumer waits for both flags
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 2; @%p2 bra C; mul.wide.u32 %d1, %b, 4;
  add.u64 %d2, %c, %d1; add.u64 %d3, %y, %d1;
st.global.u32 [%d2], 42; st.release.gpu.global.u32 [%d3], 1; bra END;
C: ld.acquire.gpu.global.u32 %r1, [%y]; setp.eq.u32 %p3, %r1, 0; @%p3 bra C;
D: <<ld.acquire.gpu.global.u32 %r1, [%y+4]; setp.eq.u32 %p3, %r1, 0; @%p3 bra D;|| ||race||ld.global.u32 %r3>>
  ld.global.u32 %r2, [%c]; ld.global.u32 %r3, [%c+4]; st.global.u32 [%c+8], %r3;
""",
        grid=3,
    ),
    Pair(
        "counter of arrivals",
        """
// release by red, acquire by a spin on the count
setp.eq.u32 %p2, %b, 2; @%p2 bra C; mad.lo.u32 %r1, %b, 64, %t; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1;
st.global.u32 [%d2], %r1; <<bar.sync 0;|| ||race||ld.global.u32 %r2>> {leader END}
  red.<<release||relaxed||race>>.gpu.global.add.u32 [%y], 1; bra END;
C: {leader J} W: ld.acquire.gpu.global.u32 %r1, [%y]; setp.lt.u32 %p3, %r1, 2; @%p3 bra W;
J: bar.sync 0; ld.global.u32 %r2, [%d36]; ld.global.u32 %r2, [%d36+256]; st.global.u32 [%d36+1024], %r2;
""",
        grid=3,
    ),
    Pair(
        "swap of tickets",
        """
// ticket lock
{leader END} atom.relaxed.gpu.global.add.u32 %r1, [%y], 1;
W: ld.<<acquire||relaxed||race>>.gpu.global.u32 %r2, [%y+4]; setp.ne.u32 %p1, %r1, %r2; @%p1 bra W;
ld.global.u32 %r3, [%c]; add.u32 %r3, %r3, %b; st.global.u32 [%c], %r3; add.u32 %r2, %r2, 1;
  st.<<release||relaxed||race>>.gpu.global.u32 [%y+4], %r2;
""",
        grid=8,
        wanted=np.array([28], U32),
    ),
    Pair(
        "fence.sc needs both sides",
        """
mad.lo.u32 %r1, %b, 64, %t; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1; st.global.u32 [%d2+4096], %r1;
<<fence.sc.gpu;||fence.acq_rel.gpu;||race>> bar.sync 0; {leader J} atom.relaxed.gpu.global.inc.u32 %r2, [%y], 3;
  st.shared.u32 [%s], %r2;
J: bar.sync 0; ld.shared.u32 %r3, [%s]; setp.ne.u32 %p1, %r3, 3; @%p1 bra END;
  <<fence.sc.gpu;||fence.acq_rel.gpu;||race>>
mov.u32 %r4, 0; add.u64 %d3, %c, %d38;
K: ld.global.u32 %r5, [%d3+4096]; add.u64 %d3, %d3, 256; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 4; @%p2 bra K;
""",
        grid=4,
    ),
    Pair(
        "cluster reduction",
        """
// every block writes its partial to block 0's slot, block 0 sums
mad.lo.u32 %r1, %b, 4, %s; mov.u32 %r2, 0; mapa.shared::cluster.u32 %r3, %r1, %r2; add.u32 %r4, %b, 10;
  setp.eq.u32 %p1, %t, 0;
@%p1 st.shared::cluster.u32 [%r3], %r4; <<barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;||barrier.cluster.arrive.relaxed; barrier.cluster.wait;||race>>
setp.ne.u32 %p2, %b, 0; @%p2 bra Z; @!%p1 bra Z; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%s];
  add.u32 %r5, %r5, %r6; add.u32 %r7, %r7, %r8; add.u32 %r5, %r5, %r7; st.global.u32 [%c], %r5;
Z:
""",
        grid=4,
        cluster=4,
        wanted=np.array([46], U32),
    ),
    Pair(
        "cluster atomics",
        """
setp.eq.u32 %p1, %t, 0; <<@%p1 st.shared.u32 [%s], 0;|| ||uninitialised,race>> <<barrier.cluster.arrive;
  barrier.cluster.wait;|| ||race,cluster,uninitialised>> mov.u32 %r2, 0; mapa.shared::cluster.u32 %r3, %s, %r2;
red.relaxed.<<cluster||cta||race>>.shared::cluster.add.u32 [%r3], 1; <<barrier.cluster.arrive;
  barrier.cluster.wait;|| ||race,cluster>>
setp.eq.and.u32 %p2, %b, 0, %p1; @%p2 ld.shared.u32 %r4, [%s]; @%p2 st.global.u32 [%c], %r4;
""",
        grid=2,
        cluster=2,
        wanted=np.array([128], U32),
    ),
    Pair(
        "dsmem by generic address",
        """
st.shared.u32 [%r59], %t; barrier.cluster.arrive; barrier.cluster.wait; cvt.u64.u32 %d1, %r59;
  cvta.shared.u64 %d1, %d1; xor.b32 %r2, %b, 1; mapa.u64 %d2, %d1, %r2;
ld.u32 %r3, [%d2]; <<||st.u32 [%d2+4], %r3;||race,uninitialised>> mad.lo.u32 %r5, %b, 64, %t;
  mad.wide.u32 %d3, %r5, 4, %c; st.global.u32 [%d3], %r3; barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "dsmem past the end",
        """
barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %r2, %b, 1; mapa.shared::cluster.u32 %r3, %s, %r2;
add.u32 %r3, %r3, <<8188||8192||bounds||st.shared::cluster>>; setp.eq.u32 %p1, %t, 3;
  @%p1 st.shared::cluster.u32 [%r3], %t; barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "release chain through a third block",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 1; @%p2 bra B1; setp.eq.u32 %p2, %b, 2; @%p2 bra B2;
st.global.u32 [%c], 7; st.release.gpu.global.u32 [%y], 1; bra END;
B1: ld.<<acquire||relaxed||race>>.gpu.global.u32 %r1, [%y]; setp.eq.u32 %p3, %r1, 0; @%p3 bra B1;
  st.<<release||relaxed||race>>.gpu.global.u32 [%y+4], 1; bra END;
B2: ld.acquire.gpu.global.u32 %r1, [%y+4]; setp.eq.u32 %p3, %r1, 0; @%p3 bra B2; ld.global.u32 %r2, [%c];
  st.global.u32 [%c+4], %r2;
""",
        grid=3,
        wanted=np.array([7, 7], U32),
    ),
    Pair(
        "red keeps the release",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 2; @%p2 bra B2; mad.wide.u32 %d1, %b, 4, %c;
  st.global.u32 [%d1], 7; red.<<release||relaxed||race>>.gpu.global.add.u32 [%y], 1; bra END;
B2: ld.acquire.gpu.global.u32 %r1, [%y]; setp.lt.u32 %p3, %r1, 2; @%p3 bra B2; ld.global.u32 %r2, [%c];
  ld.global.u32 %r3, [%c+4]; st.global.u32 [%c+8], %r3;
""",
        grid=3,
    ),
    Pair(
        "membar on one side only",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 1; @%p2 bra B1;
st.global.u32 [%c], 7; <<membar.gl;|| ||race>> red.global.add.u32 [%y], 1; bra END;
B1: atom.global.add.u32 %r1, [%y], 0; setp.eq.u32 %p3, %r1, 0; @%p3 bra B1; <<membar.gl;|| ||race>>
  ld.global.u32 %r2, [%c]; st.global.u32 [%c+4], %r2;
""",
        grid=2,
    ),
    Pair(
        "system scope",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 1; @%p2 bra B1;
st.global.u32 [%c], 7; st.release.sys.global.u32 [%y], 1; bra END;
B1: ld.acquire.<<sys||cta||race>>.global.u32 %r1, [%y]; setp.eq.u32 %p3, %r1, 0; @%p3 bra B1;
  ld.global.u32 %r2, [%c]; st.global.u32 [%c+4], %r2;
""",
        grid=2,
    ),
    Pair(
        "different sizes",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 1; @%p2 bra B1; st.relaxed.gpu.global.u32 [%y], 1;
  bra END;
B1: ld.relaxed.gpu.global.<<u32 %r1, [%y]||u64 %d1, [%y]||race>>; st.global.u32 [%c], 5;
""",
        grid=2,
    ),
    Pair(
        "atomic out of bounds",
        """
red.global.add.u32 [%d36+<<16128||16132||bounds||red.global||(63, 0, 0)>>], 1;
red.shared.add.u32 [%r59+<<0||8192||bounds||red.shared>>], 1;
  atom.global.add.u32 %r1, [%c+<<0||2||misaligned||atom.global>>], 1;
""",
    ),
    Pair(
        "warp aggregated atomics",
        """
and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @!%p1 bra J; activemask.b32 %r2; popc.b32 %r3, %r2;
  mov.u32 %r4, %lanemask_lt; and.b32 %r4, %r4, %r2; popc.b32 %r5, %r4; setp.eq.u32 %p2, %r5, 0;
mov.u32 %r6, 0; @%p2 atom.global.add.u32 %r6, [%y], %r3; brev.b32 %r7, %r2; clz.b32 %r7, %r7;
bfind.u32 %r8, %r2; neg.s32 %r9, %r2; and.b32 %r9, %r9, %r2; bfind.u32 %r9, %r9;
shfl.sync.idx.b32 %r6, %r6, %r9, 31, %r2; add.u32 %r6, %r6, %r5; mad.wide.u32 %d1, %r6, 4, %c;
  st.global.u32 [%d1], 1; J:
""",
        wanted=np.array([1] * 32 + [0], U32),
    ),
    Pair(
        "double-checked initialisation",
        """
// whoever comes first initialises, others wait
{leader END}
atom.acquire.gpu.global.cas.b32 %r1, [%y], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra W; st.global.u32 [%c], 77;
  <<st.release.gpu.global.u32 [%y], 2;||st.relaxed.gpu.global.u32 [%y], 2;||race>> bra R;
W: ld.acquire.gpu.global.u32 %r1, [%y]; setp.ne.u32 %p1, %r1, 2; @%p1 bra W;
R: ld.global.u32 %r2, [%c]; mad.wide.u32 %d1, %b, 4, %c; st.global.u32 [%d1+128], %r2;
""",
        grid=6,
    ),
    Pair(
        "reader and writer by a sequence number",
        """
{leader END} setp.eq.u32 %p2, %b, 1; @%p2 bra C; mov.u32 %r1, 0;
P: add.u32 %r1, %r1, 1; st.relaxed.gpu.global.u32 [%y], %r1; fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [%c], %r1; st.relaxed.gpu.global.u32 [%c+4], %r1; fence.acq_rel.gpu;
  add.u32 %r1, %r1, 1; st.relaxed.gpu.global.u32 [%y], %r1; setp.lt.u32 %p1, %r1, 8; @%p1 bra P; bra END;
C: ld.acquire.gpu.global.u32 %r2, [%y]; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 1; @%p1 bra C;
ld.relaxed.gpu.global.u32 %r4, [%c]; ld.relaxed.gpu.global.u32 %r5, [%c+4]; fence.acq_rel.gpu;
ld.relaxed.gpu.global.u32 %r6, [%y]; setp.ne.u32 %p1, %r6, %r2; @%p1 bra C; st.global.u32 [%c+64], %r4;
  st.global.u32 [%c+68], %r5;
""",
        grid=2,
    ),
    Pair(
        "two blocks share a buffer by halves",
        """
mad.lo.u32 %r1, %b, <<64||32||race>>, %t; mad.wide.u32 %d1, %r1, 4, %c; add.u32 %r2, %t, %b;
  st.global.u32 [%d1], %r2;
""",
        grid=2,
    ),
    Pair(
        "reads before the writes of another block",
        """
// in place shift by one across blocks
mad.lo.u32 %r1, %b, 64, %t; mad.wide.u32 %d1, %r1, 4, %<<c||a||race>>; mad.wide.u32 %d2, %r1, 4, %a;
  ld.global.u32 %r2, [%d2+4]; st.global.u32 [%d1], %r2;
""",
        grid=4,
    ),
    Pair(
        "look-back with aggregates",
        """
// value in c[64+b], inclusive in c[128+b], flag y[b]: 1 aggregate, 2 prefix
{leader END} add.u32 %r1, %b, 1; mad.wide.u32 %d1, %b, 4, %y; mad.wide.u32 %d2, %b, 4, %c;
st.global.u32 [%d2+256], %r1; setp.eq.u32 %p9, %b, 0; @!%p9 st.release.gpu.global.u32 [%d1], 1;
  mov.u32 %r2, 0; mov.u64 %d3, %d1; mov.u64 %d4, %d2; @%p9 bra PUB;
B: add.u64 %d3, %d3, -4; add.u64 %d4, %d4, -4;
W: ld.<<acquire||relaxed||race>>.gpu.global.u32 %r3, [%d3]; setp.eq.u32 %p1, %r3, 0; @%p1 bra W;
  setp.eq.u32 %p2, %r3, 2; @%p2 bra F; ld.global.u32 %r4, [%d4+256]; add.u32 %r2, %r2, %r4; bra B;
F: ld.global.u32 %r4, [%d4+512]; add.u32 %r2, %r2, %r4;
PUB: add.u32 %r5, %r2, %r1; st.global.u32 [%d2+512], %r5; st.<<release||relaxed||race>>.gpu.global.u32 [%d1], 2;
  st.global.u32 [%d2], %r2;
""",
        grid=12,
        wanted=np.array([i * (i + 1) // 2 for i in range(12)], U32),
    ),
    Pair(
        "dining blocks: two locks in opposite order",
        """
{leader END} and.b32 %r9, %b, 1; setp.eq.u32 %p5, %r9, 2; mov.u64 %d1, %y; add.u64 %d2, %y, 4;
  @%p5 mov.u64 %d1, %d2; @%p5 mov.u64 %d2, %y;
L: atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
M: atom.acquire.gpu.global.cas.b32 %r1, [%d2], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra M;
ld.global.u32 %r2, [%c]; add.u32 %r2, %r2, 1; st.global.u32 [%c], %r2; st.release.gpu.global.u32 [%d2], 0;
  st.release.gpu.global.u32 [%d1], 0;
""",
        grid=4,
        wanted=np.array([4], U32),
    ),
    Pair(
        "16-bit atomics side by side",
        """
shr.u32 %r1, %t, 1; mad.lo.u32 %r2, %r1, 4, %s; and.b32 %r3, %t, 1; mad.lo.u32 %r2, %r3, 2, %r2; mov.u16 %h1, 0;
st.shared.u16 [%r2], %h1; bar.sync 0; xor.b32 %r4, %r2, 2; atom.shared.cas.b16 %h2, [%r4], %h1, %h1;
  st.global.u16 [%d36], %h2;
""",
    ),
    Pair(
        "vector reductions",
        """
mad.wide.u32 %d1, %t, 8, %c; mov.f32 %f1, 0f3F800000;
  red.global.add.v2.f32 [%d1<<||+4||misaligned>>], {%f1, %f1}; st.global.u32 [%d36+1024], %t;
""",
    ),
    Pair(
        "atomic of 64 bits over two words",
        """
{leader I}st.shared.u32 [%s], 0; <<st.shared.u32 [%s+4], 0;|| ||uninitialised||st.global>> I: bar.sync 0;
mov.u64 %d1, 1; atom.shared.add.u64 %d2, [%s], %d1; bar.sync 0; ld.shared.u64 %d3, [%s];
  st.global.u64 [%c], %d3;
""",
    ),
    Pair(
        "lock-free stack by 64-bit cas",
        """
{leader END} // push node b: next[b] = head; head = b + 1 with a tag
mad.wide.u32 %d5, %b, 4, %c; cvt.u64.u32 %d6, %b; add.u64 %d6, %d6, 1; ld.relaxed.gpu.global.u64 %d1, [%y];
L: cvt.u32.u64 %r1, %d1; st.global.u32 [%d5], %r1; shr.u64 %d2, %d1, 32; add.u64 %d2, %d2, 1;
shl.b64 %d2, %d2, 32; or.b64 %d2, %d2, %d6; atom.release.gpu.global.cas.b64 %d3, [%y], %d1, %d2;
  setp.ne.u64 %p1, %d3, %d1; mov.u64 %d1, %d3; @%p1 bra L;
""",
        grid=6,
    ),
    Pair(
        "module variable across blocks",
        """
{leader END} mov.u64 %d1, g; <<red.global.add.u32 [%d1], 1;||ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1;
  st.global.u32 [%d1], %r1;||race>>
""",
        globals=".global .align 4 .u32 g = 0;",
        grid=4,
    ),
    Pair(
        "cluster wait without arrive",
        """
<<barrier.cluster.arrive;|| ||barrier||barrier.cluster.wait>> barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "cluster arrive twice",
        """
barrier.cluster.arrive; <<||barrier.cluster.arrive;||barrier||barrier.cluster.arrive>> barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "a lock by every thread of a warp",
        """
L: atom.acquire.gpu.global.cas.b32 %r1, [%y], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
ld.global.u32 %r2, [%c]; add.u32 %r2, %r2, 1; st.global.u32 [%c], %r2;
  st.<<release||relaxed||race>>.gpu.global.u32 [%y], 0;
""",
        grid=2,
        block=32,
        wanted=np.array([64], U32),
        lockstep=True,
    ),
    Pair(
        "producer lane and consumer lanes of one warp",
        """
setp.ne.u32 %p1, %l, 31; @%p1 bra C; st.global.u32 [%c], 9;
  st.<<release||relaxed||race>>.gpu.global.u32 [%y], 1; bra J;
C: ld.acquire.gpu.global.u32 %r1, [%y]; setp.eq.u32 %p2, %r1, 0; @%p2 bra C; ld.global.u32 %r2, [%c];
  st.global.u32 [%d36+64], %r2;
J: bar.warp.sync -1;
""",
        block=32,
        lockstep=True,
    ),
    Pair(
        "backoff by nanosleep",
        """
setp.ne.u32 %p1, %t, 0; @%p1 bra END; setp.eq.u32 %p2, %b, 0; @%p2 bra P; mov.u32 %r3, 8;
C: ld.acquire.gpu.global.u32 %r1, [%y]; setp.ne.u32 %p3, %r1, 0; @%p3 bra F; nanosleep.u32 %r3;
  setp.lt.u32 %p4, %r3, 256; @%p4 shl.b32 %r3, %r3, 1; bra C;
F: ld.global.u32 %r2, [%c]; st.global.u32 [%c+4], %r2; bra END;
P: mov.u32 %r5, 0; Q: add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, 3000; @%p5 bra Q; st.global.u32 [%c], 9;
  <<st.release.gpu.global.u32 [%y], 1;|| ||deadlock>>
""",
        grid=2,
        wanted=np.array([9, 9], U32),
    ),
    Pair(
        "a grid barrier used three times",
        """
mov.u32 %r9, 0; mov.u32 %r10, 0; mad.lo.u32 %r1, %b, 64, %t; mad.wide.u32 %d1, %r1, 4, %c; xor.b32 %r4, %r1, 65;
  mad.wide.u32 %d2, %r4, 4, %c;
K: add.u32 %r10, %r10, %n; mad.lo.u32 %r11, %r9, 1000, %r1; <<st.global.u32 [%d1], %r11;
bar.sync 0;||bar.sync 0; st.global.u32 [%d1], %r11;||race>> setp.ne.u32 %p1, %t, 0; @%p1 bra J;
  red.release.gpu.global.add.u32 [%y], 1;
W: ld.acquire.gpu.global.u32 %r3, [%y]; setp.lt.u32 %p2, %r3, %r10; @%p2 bra W;
J: bar.sync 0; ld.global.u32 %r5, [%d2]; <<||bra SKIP;||race>> bar.sync 0; add.u32 %r10, %r10, %n; @%p1 bra J2;
  red.release.gpu.global.add.u32 [%y], 1;
W2: ld.acquire.gpu.global.u32 %r3, [%y]; setp.lt.u32 %p2, %r3, %r10; @%p2 bra W2;
J2: bar.sync 0; SKIP: add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 3; @%p3 bra K; add.u64 %d3, %d1, 4096;
  st.global.u32 [%d3], %r5;
""",
        grid=4,
    ),
]
