"""Warp operations, barriers, bounds, calls."""

import numpy as np

from tests.emu.practice.pairs import U32, Pair

FACTORIAL = """.visible .func (.param .b32 out) fact(.param .b32 x) {
  .reg .b32 %r<8>; .reg .pred %p<2>; .param .b32 p; .param .b32 q; ld.param.u32 %r1, [x];
  setp.le.u32 %p1, %r1, 1; @%p1 bra L;
  sub.u32 %r2, %r1, 1; st.param.b32 [p], %r2; call (q), fact, (p); ld.param.u32 %r3, [q];
  mul.lo.u32 %r4, %r3, %r1; st.param.b32 [out], %r4; ret;
L: st.param.b32 [out], 1; ret;
}"""

ADDING = """.visible .func (.param .b32 o) {}(.param .b32 x) {{
  .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r1, %r1, {}; st.param.b32 [o], %r1; ret;
}}
"""

WARPS = [
    Pair(
        "named barrier counts",
        """
setp.ge.u32 %p1, %t, 64; @%p1 bra B;
st.shared.u32 [%r59], %t; bar.arrive 1, <<128||96||barrier,deadlock,race>>; bra END;
B: bar.sync 1, <<128||64||race,barrier,deadlock>>; ld.shared.u32 %r1, [%r59+-256]; st.global.u32 [%d36+-256], %r1;
""",
        block=128,
        wanted=np.arange(64, dtype=U32),
    ),
    Pair(
        "barrier ids",
        """
setp.ge.u32 %p1, %t, 32; @%p1 bra B; st.shared.u32 [%r59], %t; bar.sync 1, 64; bra END;
B: bar.sync <<1||2||deadlock||bar.sync>>, 64; ld.shared.u32 %r1, [%r59+-128]; st.global.u32 [%d36+-128], %r1;
""",
        wanted=np.arange(32, dtype=U32),
    ),
    Pair(
        "barrier count no multiple of 32",
        """
bar.sync 1, <<64||60||barrier||bar.sync>>;
""",
    ),
    Pair(
        "ldmatrix",
        """
st.shared.u32 [%r59], %t; st.shared.u32 [%r59+256], %t; bar.sync 0; setp.ge.u32 %p1, %t, 32; @%p1 bra END;
and.b32 %r1, %l, 31; shl.b32 %r1, %r1, 4; add.u32 %r1, %r1, %s;
  <<||add.u32 %r1, %r1, 16;||bounds||ldmatrix||(31, 0, 0)>>
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];
mad.wide.u32 %d1, %l, 16, %c; st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5};
""",
        shared=".shared .align 16 .b8 s[512];",
    ),
    Pair(
        "ldmatrix diverged",
        """
st.shared.u32 [%r59], %t; bar.sync 0; <<||setp.ge.u32 %p1, %l, 16; @%p1 bra END;||diverged,deadlock||ldmatrix>>
and.b32 %r1, %l, 15; shl.b32 %r1, %r1, 4; add.u32 %r1, %r1, %s;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2, %r3}, [%r1];
st.global.u32 [%d36], %r2;
""",
        shared=".shared .align 16 .b8 s[512];",
    ),
    Pair(
        "vector alignment",
        """
add.u32 %r1, %s, <<16||8||misaligned||ld.shared.v4>>; st.shared.u32 [%r59], %t; bar.sync 0;
ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
add.u64 %d1, %a, <<16||4||misaligned||ld.global.v4>>; ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d1];
add.u64 %d1, %c, <<8||4||misaligned||st.global.v2>>; st.global.v2.u32 [%d1], {%r2, %r6};
""",
        block=64,
    ),
    Pair(
        "bounds global",
        """
ld.global.u32 %r1, [%d37+<<0||16129||misaligned||ld.global>>];
  ld.global.u32 %r1, [%d37+<<16128||16132||bounds||ld.global.u32 %r1||(63, 0, 0)>>];
ld.global.u32 %r1, [%d37+<<0||-4||bounds||ld.global||(0, 0, 0)>>];
setp.eq.u32 %p1, %t, 37; @%p1 st.global.u32 [%d36+<<0||16384||bounds||st.global||(37, 0, 0)>>], %r1;
ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%a+<<16368||16384||bounds||v4>>];
""",
    ),
    Pair(
        "null",
        """
mov.u64 %d1, <<%a||0||bounds||ld.global>>; ld.global.u32 %r1, [%d1]; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "shfl",
        """
<<||setp.ge.u32 %p1, %l, 16; @%p1 bra J;||deadlock||shfl>>
shfl.sync.bfly.b32 %r1, %t, 1, 31, 0xffffffff; st.global.u32 [%d36], %r1; J: bar.sync 0;
""",
        wanted=np.array([i ^ 1 for i in range(64)], U32),
    ),
    Pair(
        "shfl from a lane outside the mask",
        """
setp.ge.u32 %p1, %l, 16; @%p1 bra J;
shfl.sync.<<bfly.b32 %r1, %t, 1||bfly.b32 %r1, %t, 16||diverged,uninitialised,operand||shfl>>, 31, 0xffff;
  st.global.u32 [%d36], %r1; J: bar.sync 0;
""",
    ),
    Pair(
        "shfl by a thread that its mask lacks",
        """
shfl.sync.bfly.b32 %r1, %t, 1, 31, <<0xffffffff||0xffff||diverged,operand||shfl>>; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "vote by a thread that its mask lacks",
        """
setp.eq.u32 %p1, %l, 3; vote.sync.ballot.b32 %r1, %p1, <<0xffffffff||0x0000ffff||diverged,operand||vote>>;
  st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "vote with an exited lane is no fault",
        """
setp.eq.u32 %p2, %l, 31; @%p2 bra END;
setp.eq.u32 %p1, %l, 3; vote.sync.ballot.b32 %r1, %p1, 0xffffffff; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "match by a thread that its mask lacks",
        """
match.any.sync.b32 %r1, %l, <<0xffffffff||0x0000ffff||diverged,operand||match>>; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "redux with two masks",
        """
setp.lt.u32 %p1, %l, 16; selp.b32 %r2, 0xffff, 0xffff0000, %p1;
  <<||mov.u32 %r2, 0xffff;||diverged,operand||redux>>
redux.sync.add.u32 %r1, %l, %r2; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "bar.warp.sync mask",
        """
setp.ge.u32 %p1, %l, 16; @%p1 bra J;
bar.warp.sync <<0xffff||0x1ffff||deadlock,diverged||bar.warp.sync>>; J: bar.sync 0; st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "elect",
        """
elect.sync %r1|%p1, <<0xffffffff||0x7fffffff||diverged,operand||elect>>; @%p1 st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "warp synchronous",
        """
st.shared.u32 [%r59], %t; st.shared.u32 [%r59+128], %t; <<bar.warp.sync -1;|| ||race>>
ld.shared.u32 %r1, [%r59+64]; <<bar.warp.sync -1;|| ||race||st.shared>> add.u32 %r1, %r1, 5;
  st.shared.u32 [%r59], %r1;
<<bar.warp.sync -1;|| ||race||ld.shared>>
xor.b32 %r3, %t, 1; mad.lo.u32 %r3, %r3, 4, %s; ld.shared.u32 %r2, [%r3]; st.global.u32 [%d36], %r2;
""",
        block=32,
        lockstep=True,
        shared=".shared .align 16 .b8 s[512]; ",
    ),
    Pair(
        "dynamic shared",
        """
mov.u32 %r1, dyn; mad.lo.u32 %r1, %t, <<4||8||bounds||st.shared||(32, 0, 0)>>, %r1; st.shared.u32 [%r1], %t;
  ld.shared.u32 %r2, [%r1]; st.global.u32 [%d36], %r2;
""",
        globals=".extern .shared .align 16 .b8 dyn[];",
        smem=256,
        shared=".shared .align 16 .b8 s[16];",
    ),
    Pair(
        "dynamic shared not passed",
        """
mov.u32 %r1, dyn; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1<<||+256||bounds||st.shared>>], %t;
""",
        globals=".extern .shared .align 16 .b8 dyn[];",
        smem=256,
        shared=".shared .align 16 .b8 s[16];",
    ),
    Pair(
        "static array next to another",
        """
st.shared.u32 [%r59<<||+256||bounds||st.shared>>], %t;
""",
        shared=".shared .align 16 .b8 s[256];",
    ),
    Pair(
        "local array",
        """
.local .align 4 .b8 loc[64]; mov.u32 %r1, 0;
K: mov.u32 %r2, loc; mad.lo.u32 %r2, %r1, 4, %r2; st.local.u32 [%r2], %r1; add.u32 %r1, %r1, 1;
  setp.le.u32 %p1, %r1, <<15||16||bounds||st.local>>; @%p1 bra K;
and.b32 %r3, %t, 15; mad.lo.u32 %r2, %r3, 4, <<0||4||bounds||ld.local||(15, 0, 0)>>; ld.local.u32 %r4, [%r2];
  st.global.u32 [%d36], %r4;
""",
        wanted=np.array([i & 15 for i in range(64)], U32),
    ),
    Pair(
        "early return before a counted barrier",
        """
setp.ge.u32 %p1, %t, <<64||32||deadlock,barrier||bar.sync>>; @%p1 bra END; st.shared.u32 [%r59], %t;
bar.sync 1, 64; xor.b32 %r1, %t, 32; mad.lo.u32 %r1, %r1, 4, %s; ld.shared.u32 %r2, [%r1];
  st.global.u32 [%d36], %r2;
""",
        wanted=np.array([i ^ 32 for i in range(64)], U32),
        block=96,
    ),
    Pair(
        "early return before a whole barrier is no fault",
        """
setp.ge.u32 %p1, %t, 64; @%p1 bra END; st.shared.u32 [%r59], %t; <<bar.sync 0;|| ||race>> xor.b32 %r1, %t, 32;
  mad.lo.u32 %r1, %r1, 4, %s; ld.shared.u32 %r2, [%r1]; st.global.u32 [%d36], %r2;
""",
        wanted=np.array([i ^ 32 for i in range(64)], U32),
        block=96,
    ),
    Pair(
        "barrier in half a block",
        """
setp.ge.u32 %p1, %t, 32; <<||@%p1 bra J;||deadlock,barrier,race||bar.sync>> bar.sync 0; J: bar.sync 1;
""",
    ),
    Pair(
        "atomics of cta scope across blocks",
        """
red.relaxed.<<gpu||cta||race||red>>.global.add.u32 [%c], 1;
""",
        grid=4,
    ),
    Pair(
        "histogram read without a barrier",
        """
{leader I} st.shared.u32 [%s], 0; I: <<bar.sync 0;|| ||race,uninitialised>> red.shared.add.u32 [%s], 1;
  <<bar.sync 0;|| ||race>> ld.shared.u32 %r1, [%s]; st.global.u32 [%d36], %r1;
""",
        wanted=np.full(64, 64, U32),
    ),
    Pair(
        "one barrier in a loop of two buffers",
        """
mov.u32 %r1, 0;
K: and.b32 %r2, %r1, <<1||0||race>>; shl.b32 %r2, %r2, 8; add.u32 %r3, %r59, %r2; st.shared.u32 [%r3], %r1;
  bar.sync 0;
xor.b32 %r4, %t, 63; mad.lo.u32 %r4, %r4, 4, %s; add.u32 %r4, %r4, %r2; ld.shared.u32 %r5, [%r4];
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra K;
st.global.u32 [%d36], %r5;
""",
    ),
    Pair(
        "shared memory of two uses",
        """
st.shared.u32 [%r59], %t; bar.sync 0; xor.b32 %r1, %t, 33; mad.lo.u32 %r1, %r1, 4, %s; ld.shared.u32 %r2, [%r1];
<<bar.sync 0;|| ||race||st.shared.f32>> mov.f32 %f1, 0f3F800000; st.shared.f32 [%r59], %f1; bar.sync 0;
xor.b32 %r1, %t, 34; mad.lo.u32 %r1, %r1, 4, %s; ld.shared.f32 %f2, [%r1]; cvt.rzi.u32.f32 %r3, %f2;
  add.u32 %r3, %r3, %r2; st.global.u32 [%d36], %r3;
""",
    ),
    Pair(
        "brx.idx",
        """
and.b32 %r1, %t, <<1||3||branch||brx||(2, 0, 0)>>;
T: .branchtargets L0, L1;
brx.idx %r1, T; L0: st.global.u32 [%d36], 1; bra END; L1: st.global.u32 [%d36], 2;
""",
        wanted=np.array([1, 2] * 32, U32),
    ),
    Pair(
        "device heap",
        """
.param .b64 p; .param .b64 q; .param .b64 n; mov.u64 %d1, 16; st.param.b64 [n], %d1; call (q), malloc, (n);
  ld.param.u64 %d2, [q];
st.u32 [%d2+<<12||16||bounds||st.u32>>], %t; ld.u32 %r1, [%d2+12]; st.global.u32 [%d36], %r1;
st.param.b64 [p], %d2; call free, (p); <<||ld.u32 %r1, [%d2]; st.global.u32 [%d36], %r1;||bounds||ld.u32>>
""",
        globals=""".extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);""",
    ),
    Pair(
        "bytes side by side",
        """
cvt.u64.u32 %d1, %t; add.u64 %d1, %d1, %c; st.global.u8 [%d1], %t; add.u32 %r1, %s, %t; st.shared.u8 [%r1], %t;
  <<bar.sync 0;|| ||race>>
and.b32 %r2, %t, 15; mad.lo.u32 %r2, %r2, 4, %s; ld.shared.u32 %r3, [%r2]; st.global.u32 [%d36+256], %r3;
""",
    ),
    Pair(
        "half a word is another's",
        """
shr.u32 %r1, %t, 1; mad.lo.u32 %r1, %r1, 4, %s; and.b32 %r2, %t, 1; mad.lo.u32 %r1, %r2, 2, %r1;
  cvt.u16.u32 %h1, %t; st.shared.u16 [%r1], %h1;
bar.sync 0; ld.shared.u16 %h2, [%r1]; st.global.u16 [%d36], %h2;
""",
    ),
    Pair(
        "two groups at one named barrier",
        """
setp.ge.u32 %p1, %t, 64; selp.u32 %r1, 2, 1, %p1;
st.shared.u32 [%r59], %t; bar.sync %r1, 64; xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s;
  ld.shared.u32 %r3, [%r2]; st.global.u32 [%d36], %r3;
""",
        block=128,
        wanted=np.array([i ^ 32 for i in range(128)], U32),
    ),
    Pair(
        "barrier in both arms of a divergent branch",
        """
setp.lt.u32 %p1, %l, 16; <<setp.lt.u32 %p1, %t, 32;|| ||diverged,barrier||bar>> @%p1 bra A; bar.sync 0; bra J;
  A: bar.sync 0; J: st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "unaligned barrier in both arms",
        """
setp.lt.u32 %p1, %l, 16; @%p1 bra A; barrier.sync<<||.aligned||diverged,barrier||bar>> 0; bra J;
  A: barrier.sync 0; J: st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "a barrier that some lanes of a warp skip",
        """
setp.lt.u32 %p1, %l, 16; <<||@%p1 bra J;||deadlock,diverged,barrier||bar>> bar.sync 0; J: bar.sync 1;
  st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "named barrier by half a warp",
        """
setp.lt.u32 %p1, %l, <<32||16||diverged,barrier,deadlock||bar>>; @!%p1 bra J; bar.sync 1, 64;
  J: st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "reduction in a warp with volatile",
        """
st.volatile.shared.u32 [%r59], %t; st.volatile.shared.u32 [%r59+128], %t; bar.warp.sync -1;
ld.volatile.shared.u32 %r1, [%r59]; ld.volatile.shared.u32 %r2, [%r59+64]; bar.warp.sync -1;
  add.u32 %r1, %r1, %r2; st.volatile.shared.u32 [%r59], %r1; bar.warp.sync -1;
ld.shared.u32 %r1, [%r59]; st.global.u32 [%d36], %r1;
""",
        block=32,
    ),
    Pair(
        "ping-pong",
        """
// group 0 (warps 0-1) and group 1 (warps 2-3) take turns to update s
shr.u32 %r1, %t, 6; and.b32 %r2, %t, 63; mad.lo.u32 %r3, %r2, 4, %s; mov.u32 %r4, 0; add.u32 %r5, %r1, 1;
  xor.b32 %r6, %r1, 1; add.u32 %r6, %r6, 1;
setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r3], 0; setp.eq.u32 %p2, %r1, 1; @%p2 bar.arrive 1, 128;
K: <<bar.sync %r5, 128;|| ||race,barrier,deadlock,uninitialised>> ld.shared.u32 %r7, [%r3];
add.u32 %r7, %r7, %r5; st.shared.u32 [%r3], %r7; setp.eq.u32 %p3, %r4, 2; setp.eq.and.u32 %p4, %r1, 1, %p3;
  @!%p4 bar.arrive %r6, 128;
add.u32 %r4, %r4, 1; setp.lt.u32 %p5, %r4, 3; @%p5 bra K; @!%p2 bra END; mad.wide.u32 %d1, %r2, 4, %c;
  ld.shared.u32 %r8, [%r3]; st.global.u32 [%d1], %r8;
""",
        block=128,
        wanted=np.full(64, 9, U32),
    ),
    Pair(
        "bar arrive early, sync late",
        """
setp.ge.u32 %p1, %t, 32; @%p1 bra B; st.shared.u32 [%r59], %t; <<bar.arrive 1, 64;
  ||bar.arrive 2, 64;||deadlock,race>> bra END;
B: mov.u32 %r1, 5; bar.sync 1, 64; ld.shared.u32 %r2, [%r59+-128]; st.global.u32 [%d36+-128], %r2;
""",
        wanted=np.arange(32, dtype=U32),
    ),
    Pair(
        "store before its arrival",
        """
setp.ge.u32 %p1, %t, 32; @%p1 bra B; <<st.shared.u32 [%r59], %t; bar.arrive 1, 64;||bar.arrive 1, 64;
  st.shared.u32 [%r59], %t;||race,uninitialised>> bra END;
B: bar.sync 1, 64; ld.shared.u32 %r2, [%r59+-128]; st.global.u32 [%d36+-128], %r2;
""",
    ),
    Pair(
        "divergent loop with a barrier",
        """
mov.u32 %r1, 0;
K: <<bar.sync 0;||setp.ge.u32 %p1, %r1, %w; @%p1 bar.sync 0;||deadlock,barrier>> add.u32 %r1, %r1, 1;
  setp.lt.u32 %p2, %r1, 3; @%p2 bra K; bar.sync 1; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "barrier count by thread",
        """
add.u32 %r1, %w, 2; shl.b32 %r1, %r1, 5; <<mov.u32 %r1, 64;|| ||barrier||bar.sync>> bar.sync 1, %r1;
""",
    ),
    Pair(
        "barrier number",
        """
mov.u32 %r1, <<15||16||barrier||bar.sync>>; bar.sync %r1, 64;
""",
    ),
    Pair(
        "bar.red",
        """
setp.lt.u32 %p1, %t, 5; st.shared.u32 [%r59], %t; bar.red.popc.u32 %r1, 0, %p1; bar.sync 0;
  st.global.u32 [%d36], %r1;
""",
        wanted=np.full(64, 5, U32),
    ),
    Pair(
        "stack of calls",
        """
.param .b32 p; .param .b32 q; and.b32 %r1, %t, 7; st.param.b32 [p], %r1; call (q), fact, (p);
  ld.param.u32 %r2, [q]; st.global.u32 [%d36], %r2;
""",
        globals=FACTORIAL,
        wanted=np.array([1, 1, 2, 6, 24, 120, 720, 5040] * 8, U32),
    ),
    Pair(
        "trap",
        """
setp.eq.u32 %p1, %t, <<64||5||trap||trap||(5, 0, 0)>>; @%p1 trap;
""",
    ),
    Pair(
        "threads in two dimensions",
        """
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r3, %r2, 8, %r1; mad.wide.u32 %d1, %r3, 4, %c;
setp.eq.u32 %p1, %r3, 21; @%p1 add.u64 %d1, %d1, <<0||99999||misaligned,bounds||st.global||(5, 2, 0)>>;
  st.global.u32 [%d1], %r3;
""",
        block=(8, 4),
    ),
    Pair(
        "cooperative groups tiled reduce by shfl_down with 16 lanes",
        """
mov.u32 %r1, %t;  shfl.sync.down.b32 %r2, %r1, 8, 0x100f, 0xffffffff; add.u32 %r1, %r1, %r2;
  shfl.sync.down.b32 %r2, %r1, 4, 0x100f, 0xffffffff; add.u32 %r1, %r1, %r2; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "activemask",
        """
setp.ge.u32 %p1, %l, 20; @%p1 bra J; activemask.b32 %r1;
  shfl.sync.idx.b32 %r2, %t, <<0||25||uninitialised>>, 31, %r1; st.global.u32 [%d36], %r2; J:
""",
    ),
    Pair(
        "match groups",
        """
and.b32 %r1, %l, 3; match.any.sync.b32 %r2, %r1, 0xffffffff; redux.sync.add.u32 %r3, %l, %r2;
  st.global.u32 [%d36], %r3;
""",
        wanted=np.array([112 + 8 * (i % 4) for i in range(64)], U32),
    ),
    Pair(
        "match groups of half",
        """
and.b32 %r1, %l, 3; setp.lt.u32 %p1, %r1, 2; @!%p1 bra J;
match.any.sync.b32 %r2, %r1, <<0x33333333||0xffffffff||deadlock,diverged||match>>;
  redux.sync.max.u32 %r3, %l, %r2; st.global.u32 [%d36], %r3; J: bar.sync 0;
""",
    ),
    Pair(
        "block reduction by one atomic a warp",
        """
{leader I} st.shared.u32 [%s], 0; I: <<bar.sync 0;|| ||race,uninitialised>>
redux.sync.add.u32 %r1, %t, 0xffffffff; setp.eq.u32 %p1, %l, 0; @%p1 red.shared.add.u32 [%s], %r1;
  <<bar.sync 0;|| ||race>> ld.shared.u32 %r2, [%s]; st.global.u32 [%d36], %r2;
""",
        wanted=np.full(64, 2016, U32),
    ),
    Pair(
        "halo cells",
        """
// 66 cells, the two outermost by thread 0 and 63
setp.lt.u32 %p9, %t, 0; st.shared.u32 [%r59+4], %t; setp.eq.u32 %p1, %t, 0;
<<@%p1||@%p9||uninitialised||st.global||(0, 0, 0)>> st.shared.u32 [%s], 0; setp.eq.u32 %p2, %t, 63;
  @%p2 st.shared.u32 [%s+260], 0; <<bar.sync 0;|| ||race,uninitialised>>
ld.shared.u32 %r1, [%r59]; ld.shared.u32 %r2, [%r59+8]; add.u32 %r1, %r1, %r2; st.global.u32 [%d36], %r1;
""",
    ),
    Pair(
        "maximum with a neutral element behind the guard",
        """
setp.lt.u32 %p1, %t, 50; mov.f32 %f1, 0fFF800000; @%p1 cvt.rn.f32.u32 %f1, %t; st.shared.f32 [%r59], %f1;
  bar.sync 0; mov.f32 %f2, 0fFF800000; mov.u32 %r1, 0;
K: mad.lo.u32 %r2, %r1, 4, %s; ld.shared.f32 %f3, [%r2]; max.f32 %f2, %f2, %f3; add.u32 %r1, %r1, 1;
  setp.lt.u32 %p2, %r1, <<64||65||uninitialised,bounds>>; @%p2 bra K; st.global.f32 [%d36], %f2;
""",
        shared=".shared .align 16 .b8 s[512];",
    ),
    Pair(
        "three buffers, one barrier",
        """
mov.u32 %r1, 0; mov.u32 %r2, 0;
K: mad.lo.u32 %r3, %r2, 256, %r59; st.shared.u32 [%r3], %r1; bar.sync 0; xor.b32 %r4, %t, 63;
mad.lo.u32 %r5, %r4, 4, %s; mad.lo.u32 %r5, %r2, 256, %r5; ld.shared.u32 %r6, [%r5]; add.u32 %r2, %r2, 1;
setp.eq.u32 %p1, %r2, <<3||1||race>>; @%p1 mov.u32 %r2, 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 9;
  @%p2 bra K; st.global.u32 [%d36], %r6;
""",
    ),
    Pair(
        "named barriers by warp pair",
        """
shr.u32 %r1, %t, 6; add.u32 %r1, %r1, 1; st.shared.u32 [%r59], %t; bar.sync %r1, 64;
xor.b32 %r2, %t, <<32||64||race,uninitialised>>; mad.lo.u32 %r3, %r2, 4, %s; ld.shared.u32 %r4, [%r3];
  st.global.u32 [%d36], %r4;
""",
        block=128,
        wanted=np.array([i ^ 32 for i in range(128)], U32),
    ),
    Pair(
        "float atomics",
        """
{leader I}mov.f32 %f1, 0f00000000; st.shared.f32 [%s], %f1; I: <<bar.sync 0;|| ||race,uninitialised>>
mov.f32 %f2, 0f3F800000; red.shared.add.f32 [%s], %f2; <<bar.sync 0;|| ||race>> ld.shared.f32 %f3, [%s];
  st.global.f32 [%d36], %f3;
""",
        wanted=np.full(64, 0x42800000, U32),
    ),
    Pair(
        "const memory",
        """
mov.u64 %d1, tab; ld.const.u32 %r1, [tab+<<12||16||bounds||ld.const>>]; st.global.u32 [%d36], %r1;
""",
        globals=".const .align 4 .u32 tab[4] = {1, 2, 3, 4};",
        wanted=np.full(64, 4, U32),
    ),
    Pair(
        "write to const memory",
        """
mov.u64 %d1, tab; cvta.const.u64 %d1, %d1; ld.u32 %r1, [%d1]; <<||st.u32 [%d1], %r1;||readonly||st.u32>>
  st.global.u32 [%d36], %r1;
""",
        globals=".const .align 4 .u32 tab[4] = {1, 2, 3, 4};",
    ),
    Pair(
        "write to a parameter",
        """
mov.b64 %d20, a; <<||cvta.param.u64 %d20, %d20; st.u32 [%d20], %t;||readonly||st.u32>> st.global.u32 [%d36], %t;
""",
    ),
    Pair(
        "stack overflow of a local index below zero",
        """
.local .align 4 .b8 loc[16]; mov.u32 %r1, loc; add.u32 %r1, %r1, <<0||-4||bounds||st.local>>;
  st.local.u32 [%r1], %t; ld.local.u32 %r2, [%r1]; st.global.u32 [%d36], %r2;
""",
    ),
    Pair(
        "index wraps around",
        """
add.u32 %r1, %t, <<0||-1||bounds||st.global||(0, 0, 0)>>; mad.wide.u32 %d1, %r1, 4, %c; st.global.u32 [%d1], %t;
""",
    ),
    Pair(
        "signed index",
        """
add.s32 %r1, %t, <<0||-1||bounds||st.global||(0, 0, 0)>>; mad.wide.s32 %d1, %r1, 4, %c; st.global.u32 [%d1], %t;
""",
    ),
    Pair(
        "two barriers swapped between warps",
        """
setp.ge.u32 %p1, %t, 32; @%p1 bra B; bar.sync 1, 64; bar.sync 2, 64; bra END; B: <<bar.sync 1, 64;
  bar.sync 2, 64;||bar.sync 2, 64; bar.sync 1, 64;||deadlock||bar.sync>>
""",
    ),
    Pair(
        "NaN-safe select keeps the mark",
        """
ld.shared.f32 %f1, [%r59]; <<mov.f32 %f1, 0f3F800000;|| ||uninitialised||st.global>>
  mul.f32 %f2, %f1, 0f00000000; st.global.f32 [%d36], %f2;
""",
    ),
    Pair(
        "prmt of written bytes",
        """
st.shared.u8 [%r59], %t; ld.shared.u32 %r1, [%r59]; prmt.b32 %r2, %r1, 0, 0x4440; st.global.u32 [%d36], %r2;
""",
        wanted=np.arange(64, dtype=U32),
    ),
    Pair(
        "function pointers by thread",
        """
.param .b32 p; .param .b32 q; mov.u64 %d1, f1; mov.u64 %d2, f2; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
selp.b64 %d3, %d1, %d2, %p1; <<||setp.eq.u32 %p2, %t, 9; @%p2 add.u64 %d3, %d3, 1;||call||call||(9, 0, 0)>>
  st.param.b32 [p], %t;
call (q), %d3, (p), proto; ld.param.u32 %r2, [q]; st.global.u32 [%d36], %r2;
""",
        globals="".join(ADDING.format(*pair) for pair in (("f1", 100), ("f2", 200))),
        wanted=np.array([i + 100 if i % 2 == 0 else i + 200 for i in range(64)], U32),
    ),
    Pair(
        "barriers in a function that warps call from different places",
        """
setp.lt.u32 %p1, %t, 32; @%p1 bra A; st.shared.u32 [%r59], %t; call meet; bra J; A: st.shared.u32 [%r59], %t;
<<call meet;|| ||deadlock,race>> J: xor.b32 %r1, %t, 32; mad.lo.u32 %r1, %r1, 4, %s; ld.shared.u32 %r2, [%r1];
  bar.sync 1; st.global.u32 [%d36], %r2;
""",
        globals=".visible .func meet() { bar.sync 0; ret; }",
        wanted=np.array([i ^ 32 for i in range(64)], U32),
    ),
    Pair(
        "setmaxnreg",
        """
setmaxnreg.dec.sync.aligned.u32 <<40||41||program,operand>>; <<||setp.lt.u32 %p1, %t, 64;
  @%p1 bra END;||diverged,deadlock>> bar.sync 0; setmaxnreg.inc.sync.aligned.u32 <<232||264||program,operand>>;
""",
        block=128,
    ),
    Pair(
        "a producer warp of its own",
        """
setp.ge.u32 %p1, %t, 128; @%p1 bra P; setmaxnreg.inc.sync.aligned.u32 240; bra J;
  P: setmaxnreg.dec.sync.aligned.u32 40; J: bar.sync 0;
""",
        block=160,
    ),
]
