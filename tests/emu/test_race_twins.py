"""Correct kernels whose synchronisation is subtle, and their broken twins.

Each kernel is a piece of PTX with places in braces, `{name:right|wrong}`. With all of them right it must run without a
finding, and give the right result, for ten seeds; with any one of them wrong there must be a finding for each of the
seeds tried, which names both instructions.
"""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

SEEDS = range(10)
HOLE = re.compile(r"<<(.*?)\|(.*?)>>", re.DOTALL)
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{
  .reg .pred %p<9>; .reg .b32 %r<30>, %t, %w, %l, %b, %n, %s; .reg .b64 %d<12>, %a, %y, %c; .reg .f32 %f<5>;
  .shared .align 128 .b8 s[2048];
  ld.param.u64 %a, [a]; ld.param.u64 %y, [b]; ld.param.u64 %c, [c];
  mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31; mov.u32 %b, %ctaid.x; mov.u32 %n, %nctaid.x;
  mov.u32 %s, s; mad.lo.u32 %r29, %t, 4, %s;
  mul.wide.u32 %d10, %t, 4; add.u64 %d11, %a, %d10; add.u64 %d9, %c, %d10;
"""


@dataclass(frozen=True)
class Twin:
    """A kernel, its launch, and what `c` must be for `a` = 0, 1, 2, ... (None: not looked at)."""

    name: str
    code: str
    grid: int = 1
    block: int = 64
    cluster: int = 1
    wanted: object = None
    kinds: tuple[str, ...] = ("race",)

    @property
    def right(self):
        return HEAD + HOLE.sub(lambda m: m.group(1), self.code) + "\nEND: ret;\n}\n"

    def wrong(self):
        """The broken texts, each with one place wrong."""
        for at, hole in enumerate(HOLE.finditer(self.code)):
            count = iter(range(99))
            code = HOLE.sub(lambda m: m.group(2 if next(count) == at else 1), self.code)  # noqa: B023
            yield f"{hole.group(1).strip()} -> {hole.group(2).strip()}", HEAD + code + "\nEND: ret;\n}\n"

    def run(self, text, seed, **options):
        a = np.arange(1024, dtype=np.uint32)
        args = [a, np.zeros(64, np.uint32), np.zeros(1024, np.uint32)]
        report = run_ptx(
            text, "k", self.grid, self.block, args, cluster=self.cluster, seed=seed, limit=3_000_000, **options
        )
        return report, args


LEADER = "setp.ne.u32 %p8, %t, 0; @%p8 bra {0};"
SPIN = "{0}: ld.{1}.global.u32 %r20, [{2}]; setp.ne.u32 %p7, %r20, {3}; @%p7 bra {0};"
TRY = "{0}: mbarrier.try_wait.parity.shared.b64 %p7, [{1}], {2}; @!%p7 bra {0};"
INIT = LEADER.format("I") + "{0} I: <<bar.sync 0;|>>"
ALL = np.arange(64, dtype=np.uint32)


def chain(third):
    """Three blocks: the value goes on by a release and an acquire at each step."""
    return f"""{LEADER.format("END")}
  setp.eq.u32 %p1, %b, 0; @%p1 bra B0; setp.eq.u32 %p1, %b, 1; @%p1 bra B1; bra B2;
B0: st.global.u32 [%c], 7; <<st.release|st.relaxed>>.gpu.global.u32 [%y], 1; bra END;
B1: {SPIN.format("S1", "<<acquire|relaxed>>.gpu", "%y", 1)} {third} bra END;
B2: {SPIN.format("S2", "acquire.gpu", "%y+4", 1)} ld.global.u32 %r1, [%c]; st.global.u32 [%c+4], %r1;"""


TWINS = [
    Twin("fences and a relaxed flag", f"""{LEADER.format("END")} setp.eq.u32 %p1, %b, 1; @%p1 bra B1;
  st.global.u32 [%c], 5; <<fence.acq_rel.gpu;|fence.acq_rel.cta;>> st.relaxed.gpu.global.u32 [%y], 1; bra END;
B1: {SPIN.format("S", "relaxed.gpu", "%y", 1)} <<fence.acq_rel.gpu;|>> ld.global.u32 %r1, [%c];
  st.global.u32 [%c+4], %r1;
""", 2, wanted=[5, 5]),
    Twin("the fence behind the flag", f"""{LEADER.format("END")} setp.eq.u32 %p1, %b, 1; @%p1 bra B1;
  st.global.u32 [%c], 5; <<membar.gl; st.volatile.global.u32 [%y], 1;|st.volatile.global.u32 [%y], 1;
  membar.gl;>> bra END;
B1: {SPIN.format("S", "volatile", "%y", 1)} membar.gl; ld.global.u32 %r1, [%c]; st.global.u32 [%c+4], %r1;
""", 2, wanted=[5, 5]),
    Twin("a chain of three blocks", chain("<<st.release|st.relaxed>>.gpu.global.u32 [%y+4], 1;"), 3, wanted=[7, 7]),
    Twin("a chain by an atomic", chain("<<atom.acq_rel|atom.relaxed>>.gpu.global.exch.b32 %r3, [%y+4], 1;"), 3,
         wanted=[7, 7]),
    Twin("a release sequence", f"""{LEADER.format("END")}
  setp.eq.u32 %p1, %b, 0; @%p1 bra B0; setp.eq.u32 %p1, %b, 1; @%p1 bra B1; bra B2;
B0: st.global.u32 [%c], 7; st.release.gpu.global.u32 [%y], 1; bra END;
B1: {SPIN.format("S1", "relaxed.gpu", "%y", 1)}
  atom.relaxed.gpu.global.add.u32 %r3, [%y], 1; bra END;
B2: {SPIN.format("S2", "<<acquire|relaxed>>.gpu", "%y", 2)} ld.global.u32 %r1, [%c]; st.global.u32 [%c+4], %r1;""", 3,
         wanted=[7, 7]),
    Twin("the last block sums", f"""ld.global.u32 %r1, [%d11]; st.shared.u32 [%r29], %r1; <<bar.sync 0;|>>
  {LEADER.format("END")} mov.u32 %r2, 0; mov.u32 %r3, 0;
L: mad.lo.u32 %r4, %r2, 4, %s; ld.shared.u32 %r5, [%r4]; add.u32 %r3, %r3, %r5; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 64; @%p1 bra L;
  mul.wide.u32 %d1, %b, 4; add.u64 %d2, %c, %d1; st.global.u32 [%d2+64], %r3; <<fence.acq_rel.gpu;|>>
  sub.u32 %r6, %n, 1; atom.relaxed.gpu.global.inc.u32 %r7, [%y], %r6; setp.ne.u32 %p2, %r7, %r6; @%p2 bra END;
  <<fence.acq_rel.gpu;|>> mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u64 %d2, %c;
M: ld.global.u32 %r5, [%d2+64]; add.u64 %d2, %d2, 4; add.u32 %r3, %r3, %r5; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %n; @%p1 bra M; st.global.u32 [%c], %r3;""", 4,
         wanted=[4 * 2016]),
    Twin("the last block resets its counter", f"""{LEADER.format("END")}
  atom.relaxed.gpu.global.add.u32 %r7, [%y], 1; add.u32 %r6, %n, -1; setp.ne.u32 %p2, %r7, <<%r6|0>>; @%p2 bra END;
  st.global.u32 [%y], 0;""", 4),
    Twin("tickets", f"""{LEADER.format("END")} atom.relaxed.gpu.global.add.u32 %r1, [%y], 1;
{SPIN.format("S", "<<acquire|relaxed>>.gpu", "%y+4", "%r1")}
  ld.global.u32 %r2, [%c]; add.u32 %r2, %r2, 1; st.global.u32 [%c], %r2;
  add.u32 %r3, %r1, 1; st.<<release|relaxed>>.gpu.global.u32 [%y+4], %r3;""", 5, wanted=[5]),
    Twin("a lock", f"""{LEADER.format("END")}
S: atom.<<acquire|relaxed>>.gpu.global.cas.b32 %r1, [%y], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra S;
  ld.global.u32 %r2, [%c]; add.u32 %r2, %r2, 1; st.global.u32 [%c], %r2;
  atom.<<release|relaxed>>.gpu.global.exch.b32 %r1, [%y], 0;""", 4, wanted=[4]),
    Twin("a barrier of the grid", f"""mul.wide.u32 %d1, %b, 4; add.u64 %d2, %c, %d1;
  setp.ne.u32 %p8, %t, 1; @%p8 bra A; add.u32 %r1, %b, 10; st.global.u32 [%d2+128], %r1;
A: <<bar.sync 0;|>> {LEADER.format("J")}
  red.<<release|relaxed>>.gpu.global.add.u32 [%y], 1;
{SPIN.format("S", "<<acquire|relaxed>>.gpu", "%y", "%n")}
J: <<bar.sync 0;|>> setp.ne.u32 %p8, %t, 33; @%p8 bra END;
  add.u32 %r2, %b, 1; rem.u32 %r2, %r2, %n; mul.wide.u32 %d3, %r2, 4; add.u64 %d4, %c, %d3;
  ld.global.u32 %r3, [%d4+128]; st.global.u32 [%d2], %r3;""", 4, wanted=[11, 12, 13, 10]),
    Twin("two buffers", """mov.u32 %r1, 0; mov.u32 %r6, 0;
L: and.b32 %r2, %r1, <<1|0>>; shl.b32 %r2, %r2, 8; add.u32 %r3, %r29, %r2; add.u32 %r4, %t, %r1;
  st.shared.u32 [%r3], %r4;
  <<bar.sync 0;|>> xor.b32 %r5, %t, 32; mad.lo.u32 %r5, %r5, 4, %s; add.u32 %r5, %r5, %r2; ld.shared.u32 %r7, [%r5];
  add.u32 %r6, %r6, %r7; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra L; st.global.u32 [%d9], %r6;""",
         wanted=5 * (ALL ^ 32) + 10),
    Twin("a reduction by halves", """ld.global.u32 %r1, [%d11]; st.shared.u32 [%r29], %r1; bar.sync 0; mov.u32 %r2, 64;
L: setp.ge.u32 %p1, %t, %r2; @%p1 bra M; mad.lo.u32 %r3, %r2, 4, %r29; ld.shared.u32 %r4, [%r3];
  ld.shared.u32 %r5, [%r29];
  add.u32 %r4, %r4, %r5; st.shared.u32 [%r29], %r4;
M: <<bar.sync 0;|>> shr.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
  setp.ne.u32 %p1, %t, 0; @%p1 bra END; ld.shared.u32 %r4, [%s]; st.global.u32 [%c], %r4;""",
         block=128, wanted=[8128]),
    Twin("warps reduce, the first sums", """ld.global.u32 %r1, [%d11]; redux.sync.add.u32 %r2, %r1, -1;
  setp.ne.u32 %p1, %l, 0; mad.lo.u32 %r3, %w, 4, %s; @!%p1 st.shared.u32 [%r3], %r2; <<bar.sync 0;|>>
  setp.ne.u32 %p2, %t, 0; @%p2 bra END; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [s]; add.u32 %r4, %r4, %r5;
  add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7; st.global.u32 [%c], %r4;""", block=128, wanted=[8128],
         kinds=("race", "uninitialised")),
    Twin("atomics of a block, then a plain read", """setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [s], 0; <<bar.sync 0;|>>
  red.shared.add.u32 [s], %t; <<bar.sync 0;|>> ld.shared.u32 %r1, [s]; st.global.u32 [%d9], %r1;""",
         wanted=[2016] * 64),
    Twin("named barriers, producer and consumer", """mov.u32 %r1, 0; setp.ge.u32 %p1, %t, 32; @%p1 bra CONSUME;
P: setp.eq.u32 %p2, %r1, 0; @%p2 bra FIRST; <<bar.sync 2, 64;|bar.arrive 2, 64;>>
FIRST: add.u32 %r2, %t, %r1; st.shared.u32 [%r29], %r2; bar.arrive 1, 64; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3;
  @%p2 bra P; bra END;
CONSUME: mov.u32 %r5, 0;
C: bar.sync 1, 64; sub.u32 %r3, %r29, 128; ld.shared.u32 %r4, [%r3]; add.u32 %r5, %r5, %r4; add.u32 %r1, %r1, 1;
  setp.eq.u32 %p2, %r1, 3; @%p2 bra OUT; bar.arrive 2, 64; bra C;
OUT: st.global.u32 [%d9], %r5;"""),
    Twin("lanes of a warp", """st.shared.u32 [%r29], %t; <<bar.warp.sync -1;|>> xor.b32 %r1, %t, 1;
  mad.lo.u32 %r1, %r1, 4, %s;
  ld.shared.u32 %r2, [%r1]; <<bar.warp.sync -1;|>> st.shared.u32 [%r29], %r2; st.global.u32 [%d9], %r2;
""", wanted=ALL ^ 1),
    Twin("mbarrier phases", f"""{INIT.format("mbarrier.init.shared.b64 [s], 64;")} mov.u32 %r1, 0; mov.u32 %r6, 0;
L: and.b32 %r2, %r1, 1; mad.lo.u32 %r3, %r2, 256, %r29; add.u32 %r4, %t, %r1; st.shared.u32 [%r3+128], %r4;
  <<mbarrier.arrive.shared.b64 %d1, [s];|mbarrier.arrive.relaxed.cta.shared.b64 %d1, [s];>>
  {TRY.format("W", "s", "%r2")} xor.b32 %r5, %t, 32; mad.lo.u32 %r5, %r5, 4, %s; mad.lo.u32 %r5, %r2, 256, %r5;
  ld.shared.u32 %r7, [%r5+128]; add.u32 %r6, %r6, %r7; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra L;
  st.global.u32 [%d9], %r6;""", wanted=4 * (ALL ^ 32) + 6, kinds=("race", "mbarrier")),
    Twin("mbarrier, the wrong phase", f"""{INIT.format("mbarrier.init.shared.b64 [s], 32;")}
  setp.ge.u32 %p1, %t, 32; @%p1 bra C; st.shared.u32 [%r29+128], %t; mbarrier.arrive.shared.b64 %d1, [s]; bra END;
C: {TRY.format("W", "s", "<<0|1>>")} sub.u32 %r1, %r29, 128; ld.shared.u32 %r2, [%r1+128]; st.global.u32 [%d9], %r2;""",
         wanted=[0] * 32 + list(range(32)), kinds=("race", "mbarrier", "uninitialised")),
    Twin("groups of cp.async", """mov.u32 %r1, %r29; cp.async.ca.shared.global [%r29], [%d11], 4; cp.async.commit_group;
  cp.async.ca.shared.global [%r29+256], [%d11+256], 4; cp.async.commit_group; cp.async.wait_group <<1|2>>;
  <<bar.sync 0;|>>
  xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s; ld.shared.u32 %r3, [%r2]; cp.async.wait_group <<0|1>>;
  <<bar.sync 0;|>>
  ld.shared.u32 %r4, [%r2+256]; add.u32 %r3, %r3, %r4; st.global.u32 [%d9], %r3;""", wanted=2 * (ALL ^ 32) + 64,
         kinds=("race", "uninitialised")),
    Twin("cp.async and an mbarrier", f"""{INIT.format("mbarrier.init.shared.b64 [s], 64;")}
  cp.async.ca.shared.global [%r29+128], [%d11], 4;
  <<cp.async.mbarrier.arrive.noinc.shared.b64 [s];|mbarrier.arrive.shared.b64 %d1, [s];>>
  {TRY.format("W", "s", 0)} xor.b32 %r2, %t, 32; mad.lo.u32 %r2, %r2, 4, %s; ld.shared.u32 %r3, [%r2+128];
  st.global.u32 [%d9], %r3;""", wanted=ALL ^ 32, kinds=("race", "mbarrier", "uninitialised")),
    Twin("a bulk copy and its source", f"""{INIT.format("mbarrier.init.shared.b64 [s], 1;")} {LEADER.format("W")}
  mbarrier.arrive.expect_tx.shared.b64 %d1, [s], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+128], [%a], 256, [s];
  <<{TRY.format("W", "s", 0)}|W: bar.sync 1;>> ld.shared.u32 %r3, [%r29+128]; st.global.u32 [%d9], %r3;""", wanted=ALL,
         kinds=("race", "mbarrier", "uninitialised")),
    Twin("a bulk store reads before it is written again", f"""st.shared.u32 [%r29], %t;
  <<fence.proxy.async;|>> bar.sync 0;
  {LEADER.format("M")} cp.async.bulk.global.shared::cta.bulk_group [%c], [s], 256; cp.async.bulk.commit_group;
  <<cp.async.bulk.wait_group.read 0;|>>
M: <<bar.sync 0;|>> st.shared.u32 [%r29], 77; ld.shared.u32 %r1, [%r29];""", wanted=ALL),
    Twin("blocks of a cluster exchange", """mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;
  add.u32 %r3, %r1, 5; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [s], %r3;
  <<barrier.cluster.arrive; barrier.cluster.wait;|bar.sync 0;>> mapa.shared::cluster.u32 %r4, %s, %r2;
  ld.shared::cluster.u32 %r5, [%r4]; mul.wide.u32 %d1, %b, 4; add.u64 %d1, %c, %d1; setp.eq.u32 %p1, %t, 33;
  @%p1 st.global.u32 [%d1], %r5; <<barrier.cluster.arrive; barrier.cluster.wait;|>>""", 2, cluster=2, wanted=[6, 5],
         kinds=("race", "cluster")),
    Twin("a flag in another block's shared memory", """mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.v2.u32 [s], {0, 0}; barrier.cluster.arrive; barrier.cluster.wait;
  setp.ne.u32 %p1, %t, 0; @%p1 bra OUT; setp.eq.u32 %p1, %r1, 1; @%p1 bra WAIT; mapa.shared::cluster.u32 %r4, %s, 1;
  st.shared::cluster.u32 [%r4+4], 9; st.<<release|relaxed>>.cluster.shared::cluster.u32 [%r4], 1; bra OUT;
WAIT: ld.<<acquire|relaxed>>.cluster.shared.u32 %r2, [s]; setp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT;
  ld.shared.u32 %r3, [s+4]; st.global.u32 [%c], %r3;
OUT: barrier.cluster.arrive; barrier.cluster.wait;""", 2, cluster=2, wanted=[9]),
    Twin("an mbarrier in another block", f"""mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [s], 1; barrier.cluster.arrive; barrier.cluster.wait;
  setp.ne.u32 %p1, %t, 0; @%p1 bra OUT; setp.eq.u32 %p1, %r1, 1; @%p1 bra WAIT;
  mapa.shared::cluster.u32 %r4, %s, 1; st.shared::cluster.u32 [%r4+8], 9;
  mbarrier.arrive.<<release|relaxed>>.cluster.shared::cluster.b64 _, [%r4]; bra OUT;
WAIT: {TRY.format("W", "s", 0)} ld.shared.u32 %r3, [s+8]; st.global.u32 [%c], %r3;
OUT: barrier.cluster.arrive; barrier.cluster.wait;""", 2, cluster=2, wanted=[9], kinds=("race", "cluster")),
    Twin("a sum of a whole cluster", """mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.u32 [s], 0; barrier.cluster.arrive; barrier.cluster.wait; mapa.shared::cluster.u32 %r4, %s, 0;
  red.relaxed.<<cluster|cta>>.shared::cluster.add.u32 [%r4], %t; <<barrier.cluster.arrive; barrier.cluster.wait;|>>
  or.b32 %r5, %r1, %t; setp.ne.u32 %p1, %r5, 0; @%p1 bra END; ld.shared.u32 %r6, [s]; st.global.u32 [%c], %r6;""", 2,
         cluster=2, wanted=[4032], kinds=("race", "cluster")),
    Twin("a value handed on by a lane of a warp", f"""setp.ne.u32 %p1, %b, 0; @%p1 bra B1; setp.ge.u32 %p1, %t, 32;
  @%p1 bra END;
  st.global.u32 [%d9], %t; <<bar.warp.sync -1;|>> {LEADER.format("END")} st.release.gpu.global.u32 [%y], 1; bra END;
B1: setp.ge.u32 %p1, %t, 32; @%p1 bra END; {LEADER.format("J")} {SPIN.format("S", "acquire.gpu", "%y", 1)}
J: <<bar.warp.sync -1;|>> xor.b32 %r1, %t, 3; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %c, %d1; ld.global.u32 %r2, [%d2];
  st.global.u32 [%d9+512], %r2;""", 2),
    Twin("work from a queue", f"""{LEADER.format("M")} st.shared.u32 [s], 0; M: mov.u32 %r6, 0;
L: <<bar.sync 0;|>> {LEADER.format("N")} atom.relaxed.gpu.global.add.u32 %r1, [%y], 1; st.shared.u32 [s], %r1;
N: <<bar.sync 0;|>> ld.shared.u32 %r2, [s]; setp.ge.u32 %p1, %r2, 9; @%p1 bra END;
  mul.wide.u32 %d1, %r2, 4; add.u64 %d2, %c, %d1; setp.eq.u32 %p2, %t, 40; @%p2 st.global.u32 [%d2], %r2; bra L;""", 3,
         wanted=range(9)),
]  # fmt: skip
LOCKSTEP = {"lanes of a warp"}
WRONG = [(twin, what, text) for twin in TWINS for what, text in twin.wrong()]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_the_correct_twin_is_not_reported(twin):
    for seed in SEEDS:
        _, args = twin.run(twin.right, seed, lockstep=twin.name in LOCKSTEP)
        if twin.wanted is not None:
            np.testing.assert_array_equal(args[2][: len(twin.wanted)], np.asarray(twin.wanted))


@pytest.mark.parametrize(("twin", "what", "text"), WRONG, ids=[f"{twin.name}: {what}" for twin, what, _ in WRONG])
def test_the_broken_twin_is_reported(twin, what, text):
    for seed in (0, 1, 2, 5):
        with pytest.raises(EmulationError) as caught:
            twin.run(text, seed, lockstep=twin.name in LOCKSTEP)
        error = caught.value
        # Where the schedule lets a thread read before the other writes, what is found first is that nothing is there.
        assert error.kind in (*twin.kinds, "deadlock", "uninitialised"), error
        assert error.kind != "race" or error.values.keys() & {"other access", "block that ends"}
        assert error.kind == "deadlock" or "PTX line" in error.values or "other access" in error.values
