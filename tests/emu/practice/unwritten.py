"""Values never written, and where they go."""

import numpy as np

from tests.emu.practice.pairs import U32, Pair

UNWRITTEN = [
    Pair(
        "shfl reads an exited lane",
        """
setp.ge.u32 %p2, %l, 16; @%p2 bra END;
shfl.sync.down.b32 %r1, %t, 8, <<15||31||uninitialised||st.global||(8, 0, 0)>>, 0xffffffff;
  st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "partial warp reduction",
        """
mov.u32 %r1, %t; shfl.sync.down.b32 %r2, %r1, 8, <<0x0f||0x1f||uninitialised>>, 0xffffffff;
  add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %l, 16; @%p1 st.global.u32 [%d36], %r1;
""",
        block=48,
    ),
    Pair(
        "local array by generic address",
        """
.local .align 4 .b8 loc[64]; cvta.local.u64 %d1, loc; mov.u32 %r9, 9;
st.u32 [%d1+<<60||64||bounds||st.u32>>], %r9; ld.u32 %r4, [%d1+<<60||56||uninitialised>>];
  st.global.u32 [%d36], %r4;
""",
    ),
    Pair(
        "mma: padding that is not stored",
        """
// A 16x16 f16 in s (row major 32 bytes a row): rows 0..7 written; B by registers; D rows 8.. not stored
setp.ge.u32 %p1, %t, 32; @%p1 bra END;
mov.u32 %r1, 0x3c003c00; shl.b32 %r2, %l, 3; add.u32 %r2, %r2, %s; st.shared.v2.u32 [%r2], {%r1, %r1};
  bar.warp.sync -1;
and.b32 %r3, %l, 15; shl.b32 %r3, %r3, 5; shr.u32 %r4, %l, 4; shl.b32 %r4, %r4, 4; add.u32 %r3, %r3, %r4;
  add.u32 %r3, %r3, %s;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r3];
mov.f32 %f1, 0f00000000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r5, %r6, %r7, %r8}, {%r1, %r1}, {%f1,
  %f1, %f1, %f1};
mad.wide.u32 %d1, %l, 8, %c; st.global.v2.f32 [%d1], {<<%f2, %f3||%f4, %f5||uninitialised||st.global>>};
""",
        wanted=np.full(64, 0x41800000, U32),
        block=32,
    ),
    Pair(
        "mma: columns of B that are not stored",
        """
// B 8 columns (n) x 16 k: s + 32 n: columns 0..3 written (lanes 0..15 write 8 bytes each)
mov.u32 %r1, 0x3c003c00; shl.b32 %r2, %l, 3; add.u32 %r2, %r2, %s; setp.lt.u32 %p1, %l, 16;
  @%p1 st.shared.v2.u32 [%r2], {%r1, %r1}; bar.warp.sync -1;
and.b32 %r3, %l, 7; shl.b32 %r3, %r3, 5; bfe.u32 %r4, %l, 3, 1; shl.b32 %r4, %r4, 4; add.u32 %r3, %r3, %r4;
  add.u32 %r3, %r3, %s;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r5, %r6}, [%r3];
mov.f32 %f1, 0f00000000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r1, %r1, %r1, %r1}, {%r5, %r6}, {%f1,
  %f1, %f1, %f1};
and.b32 %r9, %l, 3; setp.lt.u32 %p2, %r9, <<2||3||uninitialised||st.global||(2, 0, 0)>>;
  mad.wide.u32 %d1, %l, 8, %c; @%p2 st.global.v2.f32 [%d1], {%f2, %f3};
""",
        block=32,
    ),
    Pair(
        "stmatrix of something unwritten",
        """
mov.u32 %r1, 5; ld.shared.u32 %r2, [%r59+1024]; <<mov.u32 %r2, %r1;|| ||uninitialised||st.global>>
and.b32 %r3, %l, 7; shl.b32 %r3, %r3, 4; add.u32 %r3, %r3, %s;
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r2}; bar.sync 0;
ld.shared.u32 %r4, [%r59]; st.global.u32 [%d36], %r4;
""",
        block=32,
    ),
    Pair(
        "wmma store of something unwritten",
        """
ld.shared.f32 %f9, [%r59+4096]; mov.f32 %f1, 0f00000000; <<mov.f32 %f9, %f1;|| ||uninitialised||st.global>>
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%s], {%f1, %f1, %f1, %f9, %f1, %f1, %f1, %f1}, 16; bar.sync 0;
mov.u32 %r1, 0;
K: mad.lo.u32 %r2, %r1, 128, %r59; ld.shared.u32 %r4, [%r2]; mad.wide.u32 %d1, %r1, 128, %d36;
  st.global.u32 [%d1], %r4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra K;
""",
        block=32,
    ),
    Pair(
        "redux of something unwritten",
        """
ld.shared.u32 %r1, [%r59]; setp.lt.u32 %p1, %l, 31; <<||@%p1||uninitialised||st.global||(0, 0, 0)>>
mov.u32 %r1, %t; redux.sync.add.u32 %r2, %r1, 0xffffffff; setp.eq.u32 %p2, %l, 0;
  @%p2 st.global.u32 [%d36], %r2;
""",
        block=32,
    ),
    Pair(
        "vote of something unwritten",
        """
ld.shared.u32 %r1, [%r59]; setp.lt.u32 %p1, %l, 31; <<||@%p1||uninitialised||bra||(0, 0, 0)>> mov.u32 %r1, 0;
  setp.ne.u32 %p3, %r1, 9; vote.sync.all.pred %p4, %p3, 0xffffffff; @%p4 bra J; J: st.global.u32 [%d36], %t;
""",
        block=32,
    ),
    Pair(
        "vote that one lane decides",
        """
ld.shared.u32 %r1, [%r59]; setp.lt.u32 %p1, %l, 31; @%p1 mov.u32 %r1, 0; setp.eq.u32 %p3, %r1, 0;
  vote.sync.<<any||all||uninitialised||bra>>.pred %p4, %p3, 0xffffffff; @%p4 bra J; J: st.global.u32 [%d36], %t;
""",
        block=32,
    ),
    Pair(
        "a condition that a bound decides",
        """
ld.shared.u32 %r1, [%r59]; setp.gt.u32 %p1, %r1, 5;
setp.ge.u32 %p2, %t, <<64||32||uninitialised||bra||(32, 0, 0)>>; and.pred %p3, %p1, %p2; @%p3 bra J;
  st.global.u32 [%d36], %t; J:
""",
    ),
    Pair(
        "a guard from something unwritten",
        """
ld.shared.u32 %r1, [%r59]; <<mov.u32 %r1, %t;|| ||uninitialised||st.global>> setp.gt.u32 %p1, %r1, 5;
  @%p1 st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "setp and select",
        """
ld.shared.u32 %r1, [%r59]; setp.lt.u32 %p1, %t, <<0||1||uninitialised||st.global||(0, 0, 0)>>;
  selp.u32 %r2, %r1, 7, %p1; st.global.u32 [%d36], %r2;
""",
    ),
    Pair(
        "through a call",
        """
.param .b32 p; .param .b32 q; ld.shared.u32 %r1, [%r59]; <<mov.u32 %r1, %t;|| ||uninitialised||st.global>>
st.param.b32 [p], %r1; call (q), twice, (p); ld.param.u32 %r2, [q]; st.global.u32 [%d36], %r2;
""",
        globals=""".visible .func (.param .b32 out) twice(.param .b32 x)
{ .reg .b32 %r<5>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }""",
        wanted=2 * np.arange(64, dtype=U32),
    ),
    Pair(
        "argument not stored",
        """
.param .b32 p; .param .b32 q; ld.shared.u32 %r1, [%r59]; mov.u32 %r1, %t;
<<st.param.b32 [p], %r1;|| ||uninitialised||st.global>> call (q), twice, (p); ld.param.u32 %r2, [q];
  st.global.u32 [%d36], %r2;
""",
        globals=""".visible .func (.param .b32 out) twice(.param .b32 x)
{ .reg .b32 %r<5>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }""",
    ),
    Pair(
        "st.async of something unwritten",
        """
{leader I} mbarrier.init.shared.b64 [%s+1024], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%s+1024], 256;
  fence.mbarrier_init.release.cluster;
I: barrier.cluster.arrive; barrier.cluster.wait;
xor.b32 %r2, %b, 1; mapa.shared::cluster.u32 %r3, %r59, %r2; mapa.shared::cluster.u32 %r4, %s, %r2;
  ld.shared.u32 %r5, [%r59+2048];
<<add.u32 %r5, %t, 7;|| ||uninitialised||st.global>>
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r5, [%r4+1024];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+1024], 0; @!%p1 bra W;
ld.shared.u32 %r7, [%r59]; mad.lo.u32 %r5, %b, 64, %t; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %c;
  st.global.u32 [%d1], %r7;
barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
    ),
    Pair(
        "red.async on something unwritten",
        """
{leader I} <<st.shared.u32 [%s], 0;|| ||uninitialised||st.global>> mbarrier.init.shared.b64 [%s+1024], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [%s+1024], 256; fence.mbarrier_init.release.cluster;
I: barrier.cluster.arrive; barrier.cluster.wait;
xor.b32 %r2, %b, 1; mapa.shared::cluster.u32 %r4, %s, %r2;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %t, [%r4+1024];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%s+1024], 0; @!%p1 bra W;
ld.shared.u32 %r7, [%s]; mad.lo.u32 %r5, %b, 64, %t; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d1, %c;
  st.global.u32 [%d1], %r7;
barrier.cluster.arrive; barrier.cluster.wait;
""",
        grid=2,
        cluster=2,
        wanted=np.full(128, 2016, U32),
    ),
    Pair(
        "brx.idx on something unwritten",
        """
ld.shared.u32 %r1, [%r59]; <<and.b32 %r1, %t, 1;|| ||uninitialised||brx>>
T: .branchtargets L0, L1;
brx.idx %r1, T; L0: st.global.u32 [%d36], 1; bra END; L1: st.global.u32 [%d36], 2;
""",
    ),
    Pair(
        "tma store of part of a tile",
        """
<<st.shared.u32 [%r59], %t;||setp.ne.u32 %p1, %t, 9;
  @%p1 st.shared.u32 [%r59], %t;||uninitialised||cp.async.bulk>> fence.proxy.async; bar.sync 0; {leader END}
cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 256; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
""",
    ),
    Pair(
        "transposed tile with the wrong padding",
        """
and.b32 %r1, %t, 7; shr.u32 %r2, %t, 3; mad.lo.u32 %r3, %r2, <<9||10||uninitialised||st.global>>, %r1;
mad.lo.u32 %r3, %r3, 4, %s; st.shared.u32 [%r3], %t; bar.sync 0; mad.lo.u32 %r4, %r1, 9, %r2;
  mad.lo.u32 %r4, %r4, 4, %s; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d36], %r5;
""",
    ),
    Pair(
        "padded load of a tail",
        """
// 50 valid elements: the rest of the tile is loaded with a guard and masked by select
setp.lt.u32 %p1, %t, 50; @%p1 ld.global.u32 %r1, [%d37]; @%p1 st.shared.u32 [%r59], %r1; bar.sync 0;
xor.b32 %r2, %t, 63; mad.lo.u32 %r3, %r2, 4, %s; ld.shared.u32 %r4, [%r3];
setp.lt.u32 %p2, %r2, <<50||51||uninitialised||st.global||(13, 0, 0)>>; selp.u32 %r5, %r4, 0, %p2;
  st.global.u32 [%d36], %r5;
""",
    ),
    Pair(
        "struct with padding through a call by generic address",
        """
.local .align 8 .b8 v[16]; .local .align 8 .b8 u[16]; cvta.local.u64 %d1, v; cvta.local.u64 %d2, u;
st.u8 [%d1], %t; st.u32 [%d1+4], %t; ld.u64 %d3, [%d1]; st.u64 [%d2], %d3; ld.u8 %h1, [%d2];
  ld.u32 %r2, [%d2+4]; st.global.u16 [%d36], %h1; st.global.u32 [%d36+512], %r2;
""",
    ),
]
