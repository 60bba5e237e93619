"""Instructions of sm_90a and below in all their forms, for the comparison with ptxas and as material for the fuzz.

A row of `TABLE` is an opcode and its operands, as the syntax of PTX ISA 9.1 has them: `(a|b)` is a choice, `{.x}` may
be absent, `<name>` is a set. Among the operands, T is a register of the opcode's last type, S of the type before, W of
the last type's double width, V a vector of the last type (`.v4`), each followed by a number; `&` stands for what the
opcode asks for: a cache policy, the predicate of a Boolean operation, coordinates, im2col offsets. An indented line
goes on with the one before. Some forms are not of sm_90a, or do not exist: ptxas says which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from tilewright.targets.emu.numerics.fragments import ELEMENT_BITS, parse_shape
from tilewright.targets.emu.numerics.wmma import registers

Choices = list[str]
SETS = {
    "int": "u16|u32|u64|s16|s32|s64",
    "int8": "u8|s8|u16|s16|u32|s32|u64|s64",
    "any": "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
    "bits": "b16|b32|b64",
    "word": "u32|s32|u64|s64",
    "plain": "b16|b32|b64|u16|u32|u64|s16|s32|s64",
    "i": "u32|s32",
    "half": "f16|f16x2",
    "brain": "bf16|bf16x2",
    "float": "f16|bf16|f32|f64",
    "rnd": "rn|rz|rm|rp",
    "irnd": "rni|rzi|rmi|rpi",
    "icmp": "eq|ne|lt|le|gt|ge",
    "ucmp": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs",
    "fcmp": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
    "bool": "and|or|xor",
    "then": "add|min|max",
    "f8": "e4m3x2|e5m2x2",
    "space": "global|shared|local|const",
    "scope": "cta|cluster|gpu|sys",
    "l1": "evict_normal|evict_unchanged|evict_first|evict_last",
    "mine": "shared|shared::cta",
    "tx": "mbarrier::complete_tx::bytes",
    "red": "and|or|xor|add|inc|dec|min|max",
    "dim": "1d|2d|3d|4d|5d",
    "simd": "add|sub|avrg|absdiff|min|max",
    "uniform": "nsmid|smid|laneid|warpid|nwarpid|clock|clock_hi|globaltimer_lo|globaltimer_hi|lanemask_eq|lanemask_ge",
    "uniform2": "cluster_ctarank|cluster_nctarank|total_smem_size|aggr_smem_size|dynamic_smem_size|pm0|envreg3",
}
LETTERS = {1: "p", 8: "h", 16: "h", 32: "r", 64: "d", 128: "q"}
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}

TABLE = """
add.(<int>|u16x2|s16x2)                   T0, T1, T2
(add|sub).sat.s32                         T0, T1, T2
sub.(<int>)                               T0, T1, T2
mul.(hi|lo).(<int>)                       T0, T1, T2
mul.wide.(u16|s16|u32|s32)                W0, T1, T2
mad.(hi|lo).(<int>)                       T0, T1, T2, T3
mad.hi.sat.s32                            T0, T1, T2, T3
mad.wide.(u16|s16|u32|s32)                W0, T1, T2, W3
mul24.(hi|lo).(<i>)                       T0, T1, T2
mad24.(hi|lo).(<i>)                       T0, T1, T2, T3
mad24.hi.sat.s32                          T0, T1, T2, T3
sad.(<int>)                               T0, T1, T2, T3
(div|rem).(<int>)                         T0, T1, T2
(abs|neg).(s16|s32|s64)                   T0, T1
(min|max).(<int>|u16x2|s16x2)             T0, T1, T2
(min|max).relu.(s16x2|s32)                T0, T1, T2
(popc|clz).(b32|b64)                      r0, T1
bfind{.shiftamt}.(<word>)                 r0, T1
fns.b32                                   r0, r1, r2, r3
brev.(b32|b64)                            T0, T1
bfe.(<word>)                              T0, T1, r2, r3
bfi.(b32|b64)                             T0, T1, T4, r2, r3
szext.(clamp|wrap).(<i>)                  T0, T1, T2
bmsk.(clamp|wrap).b32                     T0, T1, T2
dp4a.(<i>).(<i>)                          r0, r1, r2, r3
dp2a.(lo|hi).(<i>).(<i>)                  r0, r1, r2, r3
(add|sub).cc.(<word>)                     T0, T1, T2
(addc|subc){.cc}.(<word>)                 T0, T1, T2
(mad.(hi|lo).cc|madc.(hi|lo){.cc}).(<word>)  T0, T1, T2, T3
(add|sub|mul){.(<rnd>)}{.ftz}{.sat}.f32   T0, T1, T2
(add|sub|mul){.(<rnd>)}.f64               T0, T1, T2
(fma|mad).(<rnd>){.ftz}{.sat}.f32         T0, T1, T2, T3
(fma|mad).(<rnd>).f64                     T0, T1, T2, T3
div.(approx|full|<rnd>){.ftz}.f32         T0, T1, T2
div.(<rnd>).f64                           T0, T1, T2
(abs|neg){.ftz}.(f32|<half>)              T0, T1
(abs|neg).(f64|<brain>)                   T0, T1
(min|max){.ftz}{.NaN}{.xorsign.abs}.(f32|<half>)  T0, T1, T2
(min|max){.NaN}{.xorsign.abs}.(<brain>)   T0, T1, T2
(min|max).f64                             T0, T1, T2
(rcp|sqrt).(approx|<rnd>){.ftz}.f32       T0, T1
(rcp|sqrt).(<rnd>).f64                    T0, T1
(rcp|rsqrt).approx.ftz.f64                T0, T1
rsqrt.approx.f64                          T0, T1
(rsqrt|sin|cos|lg2|ex2).approx{.ftz}.f32  T0, T1
tanh.approx.(f32|<half>|<brain>)          T0, T1
ex2.approx.(<half>)                       T0, T1
ex2.approx.ftz.(<brain>)                  T0, T1
testp.(finite|infinite|number|notanumber|normal|subnormal).(f32|f64)  p0, T1
copysign.(f32|f64)                        T0, T1, T2
(add|sub|mul){.rn}{.ftz}{.sat}.(<half>)   T0, T1, T2
(add|sub|mul){.rn}.(<brain>)              T0, T1, T2
fma.rn{.ftz}(|.sat|.relu).(<half>)        T0, T1, T2, T3
fma.rn{.relu}.(<brain>)                   T0, T1, T2, T3
fma.rn.oob{.relu}.(<half>|<brain>)        T0, T1, T2, T3
setp.(<icmp>){.(<bool>)}.(s16|s32|s64)    (p0|p0^p1), T1, T2&
setp.(<ucmp>){.(<bool>)}.(u16|u32|u64)    (p0|p0^p1), T1, T2&
setp.(eq|ne){.(<bool>)}.(<bits>)          (p0|p0^p1), T1, T2&
setp.(<fcmp>){.(<bool>)}{.ftz}.f32        (p0|p0^p1), T1, T2&
setp.(<fcmp>){.(<bool>)}.f64              (p0|p0^p1), T1, T2&
setp.(<fcmp>){.(<bool>)}{.ftz}.f16        p0, T1, T2&
setp.(<fcmp>){.(<bool>)}.bf16             p0, T1, T2&
setp.(<fcmp>){.(<bool>)}{.ftz}.f16x2      p0^p1, T1, T2&
setp.(<fcmp>){.(<bool>)}.bf16x2           p0^p1, T1, T2&
set.(<icmp>){.(<bool>)}.(u32|s32|f32|f16).(s16|s32|s64)  S0, T1, T2&
set.(<ucmp>){.(<bool>)}.(u32|s32|f32|f16).(u16|u32|u64)  S0, T1, T2&
set.(eq|ne){.(<bool>)}.(u32|s32|f32|f16|bf16).(<bits>)  S0, T1, T2&
set.(<fcmp>){.(<bool>)}{.ftz}.(u32|s32|f32|f16).f32  S0, T1, T2&
set.(<fcmp>){.(<bool>)}.(u32|s32|f32|f16).f64  S0, T1, T2&
set.(eq|lt|ge){.(<bool>)}.bf16.(<int>|f32|f64|bf16)  S0, T1, T2&
set.(<fcmp>){.or}{.ftz}.(f16|u16|s16|u32|s32).f16  S0, T1, T2&
set.(<fcmp>){.or}.(u16|s16|u32|s32).bf16  S0, T1, T2&
set.(<fcmp>){.xor}{.ftz}.(f16x2|u32|s32).f16x2  S0, T1, T2&
set.(<fcmp>){.xor}.(bf16x2|u32|s32).bf16x2  S0, T1, T2&
selp.(<plain>|f32|f64)                    T0, T1, T2, p0
slct.(<plain>|f32|f64).s32                S0, S1, S2, r3
slct{.ftz}.(<plain>|f32|f64).f32          S0, S1, S2, r3
(and|or|xor).(pred|<bits>)                T0, T1, T2
not.(pred|<bits>)                         T0, T1
cnot.(<bits>)                             T0, T1
lop3.b32                                  r0, r1, r2, r3, 0x3f
lop3.(or|and).b32                         (r0|_)^p0, r1, r2, r3, 0x3f, (p1|!p1)
shf.(l|r).(clamp|wrap).b32                r0, r1, r2, r3
shl.(<bits>)                              T0, T1, (r2|3)
shr.(<plain>)                             T0, T1, (r2|3)
prmt.b32{.(f4e|b4e|rc8|ecl|ecr|rc16)}     r0, r1, r2, (r3|0x3210)
mov.(pred|<plain>|f32|f64|b128)           T0, T1
mov.b32                                   (r0, {h0, h1}|{h0, h1}, r0|{h0, _}, r0)
mov.b32                                   (r0, {c0, c1, c2, c3}|{c0, c1, c2, c3}, r0)
mov.b64
    (d0, {r0, r1}|{r0, r1}, d0|d0, {h0, h1, h2, h3}|{h0, h1, h2, h3}, d0|{_, r1}, d0)
mov.b128                                  (q0, {d0, d1}|{d0, d1}, q0)
mov.b16                                   (h0, {c0, c1}|{c0, c1}, h0)
mov.pred                                  p0, %is_explicit_cluster
mov.u32                                   r0, %(<uniform>|<uniform2>)
mov.u32
    r0, %(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid).(x|z)
mov.u64                                   d0, %(gridid|clock64|globaltimer|current_graph_exec)
mov.u32                                   r0, (WARP_SZ|sh|sh+4|lc)
mov.u64                                   d0, (gl|gl+4|sh|cn|lc|fn)
ld{.(<space>|shared::cta|shared::cluster)}.(<any>|b128)  T0, [d9]
ld{.(<space>)}.(v2|v4).(<any>)   V0, [d9]
ld{.weak}{.(global|shared)}.v2.(b64|f64)  V0, [d9+16]
ld{.global}.(ca|cg|cs|lu|cv).u32          r0, [d9]
ld.global{.L1::(<l1>|no_allocate)}{.L2::cache_hint}{.L2::(64|128|256)B}{.v4}.u32  V0, [d9]&
ld.volatile{.(<space>)}{.v2}.u32          V0, [d9]
ld.(relaxed|acquire).(<scope>){.(global|shared|shared::cluster)}{.v2}.u64  V0, [d9]
ld.(relaxed|acquire).(gpu|sys).global.b128  q0, [d9]
ld.mmio.relaxed.sys{.global}.u32          r0, [d9]
ld{.global.nc}.u32                        r0, ([gl+4]|[d9+4])
ld.shared.u32                             r0, ([sh+4]|[r9+4])
ld.u32                                    r0, [d9].unified
ld.global{.(ca|cg|cs)}.nc{.L2::cache_hint}{.L2::128B}{.v4}.u32  V0, [d9]&
ld.global.nc{.L1::(evict_last|no_allocate)}{.L2::128B}.(b8|f64|b128|v2.f64|v4.u32)  V0, [d9]
ld.param{::entry}.u64                     d0, [pa]
ldu{.global}{.(v2|v4)}.u32                V0, [d9]
st{.(global|shared|local|shared::cta|shared::cluster)}.(<any>|b128)  [d9], T0
st{.(global|shared|local)}.(v2|v4).(<any>)  [d9], V0
st{.weak}{.global}.v2.f64                 [d9], V0
st.global.(wb|cg|cs|wt).u32               [d9], (r0|7)
st.global{.L1::(<l1>|no_allocate)}{.L2::cache_hint}{.v4}.u32  [d9], V0&
st.volatile{.(global|shared|local)}{.v2}.u32  [d9], V0
st.(relaxed|release).(<scope>){.(global|shared|shared::cluster)}{.v2}.u64  [d9], V0
st.(relaxed|release).(gpu|sys).global.b128  [d9], q0
st.mmio.relaxed.sys{.global}.u32          [d9], r0
st.shared.u32                             ([sh+4]|[r9+4]), r0
st.async{.(weak|cluster)}{.shared::cluster}.<tx>{.(v2|v4)}.(b32|u32|s32|f32)  [r9], V0, [r8]
st.async{.shared::cluster}.<tx>{.v2}.(b64|u64|s64|f64)  [r9], V0, [r8]
red.async.relaxed.cluster{.shared::cluster}.<tx>.((inc|dec|add|min|max).u32|(min|max|add).s32)  [r9], r0, [r8]
red.async.relaxed.cluster{.shared::cluster}.<tx>.((and|or|xor).b32|add.u64)  [r9], T0, [r8]
multimem.(ld_reduce{.weak}.global.add.f32 r0, [d9]|st{.weak}.global.f32 [d9], r0)
(alloca.u64 d0, d1|stacksave.u64 d0|stackrestore.u64 d0)
prefetch{.(global|local)}.(L1|L2)         [d9]
prefetch.global.L2::(evict_last|evict_normal)  [d9]
prefetchu.L1                              [d9]
prefetch{.(const|param)}.tensormap        [d9]
applypriority{.global}.L2::evict_normal [d9], 128
discard{.global}.L2                       [d9], 128
createpolicy.range{.global}.L2::(<l1>){.L2::(evict_first|evict_unchanged)}.b64  d0, [d9], (r0, r1|128, 256)
createpolicy.fractional.L2::(<l1>){.L2::(evict_first|evict_unchanged)}.b64  d0(|, 1.0|, r0)
createpolicy.cvt.L2.b64                   d0, d1
isspacep.(<space>|shared::cta|shared::cluster|param|param::entry)  p0, d1
cvta{.to}.(<space>|shared::cta|shared::cluster|param|param::entry).u64  d0, d1
cvta.(global.u64 d0, gl|global.u64 d0, gl+4|shared.u64 d0, sh+4|local.u64 d0, lc|const.u64 d0, cn|param.u64 d0, pa)
mapa{.shared::cluster}.(u32|u64)          T0, T1, (r2|0)
mapa.shared::cluster.u32                  r0, (sh|sh+4), r2
getctarank{.shared::cluster}.(u32|u64)    r0, T1
getctarank.shared::cluster.u32            r0, sh(|+4)
cvt{.sat}.(<int8>).(<int8>)               S0, T1
cvt.(<irnd>){.ftz}{.sat}.(<int8>).(<float>)  S0, T1
cvt.(<rnd>){.ftz}{.sat}.(<float>).(<int8>)  S0, T1
cvt{.(rni|rzi|<rnd>)}{.ftz}{.sat}.(<float>).(<float>)  S0, T1
cvt.(rn|rz){.relu}{.satfinite}.(f16|bf16).f32  S0, T1
cvt.(rn|rz){.relu}{.satfinite}.(f16x2|bf16x2).f32  r0, r1, r2
cvt.rna{.satfinite}.tf32.f32              r0, r1
cvt.(rn|rz){.relu}.tf32.f32               r0, r1
cvt.rn.satfinite{.relu}.(<f8>).f32        h0, r1, r2
cvt.rn.satfinite{.relu}.(<f8>).(f16x2|bf16x2)  h0, r1
cvt.rn{.relu}.f16x2.(<f8>)                r0, h1
cvt.pack.sat.(u16|s16).s32                r0, r1, r2
cvt.pack.sat.(u8|s8|u4|s4|u2|s2).s32.b32  r0, r1, r2, r3
shfl.sync.(up|down|bfly|idx).b32          (r0|r0^p0), r1, (r2|1), (r3|31), (r4|-1)
vote.sync.(all|any|uni).pred              p0, (p1|!p1), (r1|-1)
vote.sync.ballot.b32                      r0, (p1|!p1), -1
match.any.sync.(b32|b64)                  r0, T1, (r2|-1)
match.all.sync.(b32|b64)                  (r0|r0^p0), T1, -1
activemask.b32                            r0
redux.sync.((add|min|max).(<i>)|(<bool>).b32)  r0, r1, (r2|-1)
griddepcontrol.(launch_dependents|wait)
elect.sync                                (r0|_)^p0, (r1|-1)
(barrier{.cta}.sync{.aligned}|bar{.cta}.sync)  (0|r1)(|, 64|, r2)
(barrier{.cta}.arrive{.aligned}|bar{.cta}.arrive)  (1|r1), (64|r2)
(barrier{.cta}.red.popc{.aligned}|bar{.cta}.red.popc).u32  r0, 1(|, 64), (p1|!p1)
(barrier{.cta}.red.(and|or){.aligned}|bar{.cta}.red.(and|or)).pred  p0, 1(|, 64), (p1|!p1)
bar.warp.sync                             (-1|r1)
barrier.cluster.(arrive{.(release|relaxed)}|wait{.acquire}){.aligned}
fence{.(sc|acq_rel|acquire|release)}.(<scope>)
fence{.proxy.async::generic}.(acquire.sync_restrict::shared::cluster|release.sync_restrict::shared::cta).cluster
fence.mbarrier_init.release.cluster
(fence|membar).proxy.(alias|async)
fence.proxy.async.(global|shared::cta|shared::cluster)
fence.proxy.tensormap::generic.release.(<scope>)
fence.proxy.tensormap::generic.acquire.(<scope>)  [d9], 128
membar.(cta|gl|sys)
(atom{.(relaxed|acquire|release|acq_rel)}{.(<scope>)}{.(global|shared::cluster)}.add).u32  r0, [d9], r1
(red{.(relaxed|release)}{.(<scope>)}{.(global|shared::cluster)}.add).u32  [d9], r1
atom{.(global|<mine>|shared::cluster)}.((<bool>|exch).(b32|b64)|(add|min|max).(u32|s32|u64))  T0, [d9], T1
red{.(global|<mine>|shared::cluster)}.((<bool>).(b32|b64)|(add|min|max).(u32|s32|u64))  [d9], T1
atom{.(global|<mine>|shared::cluster)}.((min|max).s64|add.(f32|f64)|(inc|dec).u32)  T0, [d9], T1
red{.(global|<mine>|shared::cluster)}.((min|max).s64|add.(f32|f64)|(inc|dec).u32)  [d9], T1
atom{.(global|<mine>|shared::cluster)}.cas.(b16|b32|b64)  T0, [d9], T1, T2
atom{.(global|shared)}.(exch.b128 q0, [d9], q1|cas.b128 q0, [d9], q1, q2)
atom{.(global|<mine>|shared::cluster)}.add.noftz.(<half>|<brain>)  T0, [d9], T1
red{.(global|<mine>|shared::cluster)}.add.noftz.(<half>|<brain>)  [d9], T1
atom.global.(exch.L2::cache_hint.(b32|b128)|add.L2::cache_hint.u32|add.noftz.L2::cache_hint.f16x2)
    T0, [d9], T1&
atom{.relaxed.gpu}.global.add.(v2|v4).f32  V0, [d9], V0
red{.relaxed.gpu}.global.add.(v2|v4).f32  [d9], V0
atom.global.(add|min|max).noftz{.L2::cache_hint}.((v2|v4|v8).(f16|bf16)|(v2|v4).(f16x2|bf16x2))  V0, [d9], V0&
red.global.(add|min|max).noftz{.L2::cache_hint}.((v2|v4|v8).(f16|bf16)|(v2|v4).(f16x2|bf16x2))  [d9], V0&
mbarrier.init{.(<mine>)}.b64              ([d9]|[sh]), (r1|4)
mbarrier.inval{.(<mine>)}.b64             [d9]
mbarrier.(expect_tx|complete_tx){.relaxed.(cta|cluster)}{.(<mine>|shared::cluster)}.b64  [d9], (r1|16)
mbarrier.(arrive|arrive_drop){.(release|relaxed).(cta|cluster)}{.(<mine>)}.b64  (d0|_), [d9](|, r1|, 2)
mbarrier.(arrive|arrive_drop){.(release|relaxed).cluster}.shared::cluster.b64  _, [r9](|, r1)
mbarrier.(arrive|arrive_drop).expect_tx{.(release.cta|relaxed.cluster)}{.(<mine>)}.b64  (d0|_), [d9], (r1|16)
mbarrier.(arrive|arrive_drop).expect_tx{.release.cluster}.shared::cluster.b64  _, [r9], r1
mbarrier.(arrive|arrive_drop).noComplete{.release.cta}{.(<mine>)}.b64  d0, [d9], (r1|1)
mbarrier.test_wait{.(acquire.cta|acquire.cluster|relaxed.cta)}{.(<mine>)}.b64  p0, [d9], d1
mbarrier.test_wait.parity{.(acquire.cta|relaxed.cluster)}{.(<mine>)}.b64  p0, [d9], (r1|0)
mbarrier.try_wait{.(acquire.cta|acquire.cluster|relaxed.cta)}{.(<mine>)}.b64  p0, [d9], d1(|, r2|, 1000)
mbarrier.try_wait.parity{.(acquire.cta|relaxed.cluster)}{.(<mine>)}.b64  p0, [d9], (r1|0)(|, r2)
mbarrier.pending_count.b64                r0, d1
cp.async.mbarrier.arrive{.noinc}{.(<mine>)}.b64  [d9]
cp.async.ca.(<mine>).global{.L2::cache_hint}{.L2::(64|128|256)B}  [r9], [d8], (4|8|16)(|, r1|, p1)&
cp.async.cg.(<mine>).global{.L2::cache_hint}{.L2::(64|128|256)B}  [r9], [d8], 16(|, r1|, p1)&
cp.async.(commit_group|wait_group 2|wait_all)
cp.async.bulk.(shared::cta|shared::cluster).global.<tx>{.L2::cache_hint}  [r9], [d8], (r1|64), [r7]&
cp.async.bulk.shared::cluster.global.<tx>.multicast::cluster{.L2::cache_hint}  [r9], [d8], r1, [r7], h1&
cp.async.bulk.shared::cluster.shared::cta.<tx>  [r9], [r8], r1, [r7]
cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}  [d9], [r8], r1&
cp.reduce.async.bulk.shared::cluster.shared::cta.<tx>.(<red>).(b32|u32|s32|u64)  [r9], [r8], r1, [r7]
cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.(<red>).(<bits>|<word>|f16|bf16|f32|f64)
    [d9], [r8], r1&
cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz.(f16|bf16)  [d9], [r8], r1&
cp.async.bulk.prefetch.L2.global{.L2::cache_hint}  [d8], r1&
cp.async.bulk.(commit_group|wait_group{.read} 1)
cp.async.bulk.tensor.(<dim>).(shared::cta|shared::cluster).global(|.tile|.im2col).<tx>{.L2::cache_hint}
    [r9], [d8, &C], [r7]&
cp.async.bulk.tensor.(<dim>).shared::cluster.global(|.tile|.im2col).<tx>.multicast::cluster{.L2::cache_hint}
    [r9], [d8, &C], [r7]&
cp.async.bulk.tensor.(<dim>).global.shared::cta(|.tile|.im2col_no_offs).bulk_group{.L2::cache_hint}
    [d8, &C], [r9]&
cp.reduce.async.bulk.tensor.(<dim>).global.shared::cta.(<red>)(|.tile|.im2col_no_offs).bulk_group{.L2::cache_hint}
    [d8, &C], [r9]&
cp.async.bulk.prefetch.tensor.(<dim>).L2.global(|.tile|.im2col){.L2::cache_hint}  [d8, &C]&
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.(<scope>).sync.aligned  [d9], [d8], 128
tensormap.replace.tile.global_address{.(global|shared::cta)}.b1024.b64  [d9], d1
tensormap.replace.tile.rank{.(global|shared::cta)}.b1024.b32  [d9], (r1|2)
tensormap.replace.tile.(box_dim|global_dim|element_stride){.(global|shared::cta)}.b1024.b32
    [d9], (0|4), (r1|8)
tensormap.replace.tile.global_stride{.(global|shared::cta)}.b1024.b64  [d9], (0|3), (d1|64)
tensormap.replace.tile.(elemtype|interleave_layout|swizzle_mode|fill_mode){.(global|shared::cta)}.b1024.b32
    [d9], (0|1|12)
ldmatrix.sync.aligned.m8n8.x1{.trans}{.(<mine>)}.b16  {r0}, [d9]
ldmatrix.sync.aligned.m8n8.x2{.trans}{.(<mine>)}.b16  {r0, r1}, [d9]
ldmatrix.sync.aligned.m8n8.x4{.trans}{.(<mine>)}.b16  {r0, r1, r2, r3}, [d9]
stmatrix.sync.aligned.m8n8.x1{.trans}{.(<mine>)}.b16  [d9], {r0}
stmatrix.sync.aligned.m8n8.x2{.trans}{.(<mine>)}.b16  [d9], {r0, r1}
stmatrix.sync.aligned.m8n8.x4{.trans}{.(<mine>)}.b16  [d9], {r0, r1, r2, r3}
movmatrix.sync.aligned.m8n8.trans.b16     r0, r1
wgmma.(fence|commit_group|wait_group).sync.aligned  (|0|3)
(brkpt|trap|exit|ret{.uni}|nanosleep.u32 r0|pmevent 7|pmevent.mask 0x0f00)
setmaxnreg.(inc|dec).sync.aligned.u32     64
(vadd|vsub|vabsdiff|vmin|vmax).(<i>).(<i>).(<i>){.sat}  (r0, r1(|.b2|.h1), r2|r0.h1, r1, r2, r3)
(vadd|vsub|vabsdiff|vmin|vmax).(<i>).(<i>).(<i>){.sat}.(<then>)  r0, r1, r2.b1, r3
(vshl|vshr).(<i>).(<i>).u32{.sat}.(clamp|wrap)  r0, r1, r2
(vshl|vshr).(<i>).(<i>).u32{.sat}.(clamp|wrap).(<then>)  r0, r1, r2, r3
vmad.(<i>).(<i>).(<i>){.po}{.sat}{.(shr7|shr15)}  r0, (r1|-r1), r2, r3
vset.(<i>).(<i>).(<icmp>)                 r0, r1, r2
vset.(<i>).(<i>).(<icmp>).(<then>)        r0, r1, r2, r3
v(<simd>)(2|4).(<i>).(<i>).(<i>)(|.sat|.add)  r0, r1, r2, r3
vset(2|4).(<i>).(<i>).(<icmp>){.add}      r0, r1, r2, r3
"""
PRODUCTS = """
m8n8k4 row.row|row.col|col.row|col.col f16 f16|f32   m16n8k8|m16n8k16 row.col f16 f16|f32
m16n8k4|m16n8k8 row.col tf32 f32                     m16n8k8|m16n8k16 row.col bf16 f32
m16n8k16|m16n8k32 row.col e4m3|e5m2 f16|f32          m8n8k4|m16n8k4|m16n8k8|m16n8k16 row.col f64 f64
m8n8k16|m16n8k16|m16n8k32 row.col s8|u8 s32          m8n8k32|m16n8k32|m16n8k64 row.col s4|u4 s32
m8n8k128|m16n8k128|m16n8k256 row.col b1 s32
"""
SPARSE = """
m16n8k16|m16n8k32 row.col f16 f16|f32   m16n8k16|m16n8k32 row.col bf16 f32   m16n8k8|m16n8k16 row.col tf32 f32
m16n8k64 row.col e4m3|e5m2 f32          m16n8k32|m16n8k64 row.col s8|u8 s32  m16n8k64|m16n8k128 row.col s4|u4 s32
"""
WMMA = """
m16n16k16|m8n32k16|m32n8k16 f16 f16|f32   m16n16k16|m8n32k16|m32n8k16 bf16 f32   m16n16k8 tf32 f32   m8n8k4 f64 f64
m16n16k16|m8n32k16|m32n8k16 s8|u8 s32     m8n8k32 s4|u4 s32                      m8n8k128 b1 s32
"""
WGMMA = {"f16": ("f16|f32", 16), "bf16": ("f32", 16), "tf32": ("f32", 8), "e4m3": ("f16|f32", 32), "e5m2": ("f32", 32),
         "s8": ("s32", 32), "u8": ("s32", 32), "b1": ("s32", 256)}  # fmt: skip
COLUMNS = (8, 16, 24, 32, 64, 96, 128, 192, 256)


# ---- expansion ----------------------------------------------------------------------------------------------------


def expand(text: str) -> Choices:
    """All texts that a pattern stands for."""
    for name, choice in SETS.items():
        text = text.replace(f"<{name}>", choice)
    found = _choices(re.sub(r"\{(\.[^{}]*|::[^{}]*)\}", r"(|\1)", text) if "{." in text or "{:" in text else text)
    return list(dict.fromkeys(found))


def _choices(text: str) -> Choices:
    found = re.search(r"\(([^()]*)\)", text)
    if found is None:
        return [text]
    parts = re.split(r"\|", found[1])
    return [whole for part in parts for whole in _choices(text[: found.start()] + part + text[found.end() :])]


def width(type: str) -> int:
    """Bits of a register of a type."""
    if type == "pred":
        return 1
    found = re.search(r"(\d+)(?:x(\d))?$", type)
    assert found is not None, type
    return int(found[1]) * int(found[2] or 1)


def filled(opcode: str, operands: str) -> str:
    """The operands with their registers."""
    words = [w for w in opcode.split(".") if re.fullmatch(r"pred|([usbf]|bf)(8|16|32|64|128)(x2)?", w)]
    lanes = next((int(w[1:]) for w in opcode.split(".") if w in ("v2", "v4", "v8")), 1)
    for letter, type in (("T", words[-1:]), ("S", words[-2:-1]), ("W", [WIDE.get(w, w) for w in words[-1:]])):
        if type:
            operands = re.sub(rf"\b{letter}(\d)", rf"{LETTERS[width(type[0])]}\1", operands)
    if words:
        some = [f"{LETTERS[width(words[-1])]}{k}" for k in range(lanes)]
        operands = operands.replace("V0", some[0] if lanes == 1 else "{" + ", ".join(some) + "}")
    return operands.replace("&C", coordinates(opcode)).replace("&", asked_for(opcode)).replace("^", "|")


def coordinates(opcode: str) -> str:
    """The coordinates of a tensor copy."""
    count = next((int(w[0]) for w in opcode.split(".") if re.fullmatch(r"\dd", w)), 0)
    return "{" + ", ".join(f"r{10 + k}" for k in range(count)) + "}"


def asked_for(opcode: str) -> str:
    """The operands that an opcode asks for by its modifiers."""
    words = opcode.split(".")
    text = ""
    if words[0] in ("set", "setp") and {"and", "or", "xor"} & set(words):
        text = ", !p3"
    if "tensor" in words and "im2col" in words:
        offsets = max(coordinates(opcode).count(",") - 1, 1)
        text += ", {" + ", ".join(f"h{k}" for k in range(offsets)) + "}"
    if "tensor" in words and "multicast::cluster" in words:
        text += ", h1"
    return text + (", d6" if "L2::cache_hint" in words else "")


def rows() -> Iterator[str]:
    """The instructions of the table."""
    for line in re.sub(r"\n +", "  ", TABLE.strip()).splitlines():
        opcode, _, operands = line.partition("  ")
        for pattern in expand(opcode.strip()):
            for given in expand(operands.strip()):
                yield f"{pattern} {filled(pattern, given)}".strip() + ";"


def vector(letter: str, count: int, start: int) -> str:
    """Some registers in braces."""
    return "{" + ", ".join(f"{letter}{start + k}" for k in range(count)) + "}"


def groups(text: str, size: int) -> Iterator[list[Choices]]:
    """The entries of one of the product tables, each a list of choices."""
    words = text.split()
    for k in range(0, len(words), size):
        yield [word.split("|") for word in words[k : k + size]]


def same_family(a: str, b: str) -> bool:
    """Whether A and B of a product may have these types."""
    return a == b or {a, b} in ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})


def products(text: str, variant: str) -> Iterator[str]:
    """`mma.sync`, or `mma.sp` with metadata."""
    for shapes, layouts, inputs, sums in groups(text, 4):
        for shape, layout, a, b, c, d in product(shapes, layouts, inputs, inputs, sums, sums):
            if same_family(a, b):
                m, n, k = parse_shape(shape)
                quad = shape == "m8n8k4" and a == "f16"
                counts = [m * n * ELEMENT_BITS[d], m * k * ELEMENT_BITS[a] // (2 if variant else 1),
                          n * k * ELEMENT_BITS[b], m * n * ELEMENT_BITS[c]]  # fmt: skip
                unit = 256 if quad else 2048 if a == "f64" else 1024
                letter = "d" if a == "f64" else "r"
                parts = [vector(letter, max(x // unit, 1), 10 * j) for j, x in enumerate(counts)]
                tail = ", r50, 0" if variant else ""
                for before, after in _extras(a, d):
                    yield (
                        f"mma{variant}.sync.aligned.{shape}.{layout}{before}.{d}.{a}.{b}.{c}{after} "
                        f"{', '.join(parts)}{tail};"
                    )


def _extras(a: str, d: str) -> list[tuple[str, str]]:
    """Modifiers of a product before and after its types."""
    if a == "b1":
        return [("", ".xor.popc"), ("", ".and.popc")]
    if a == "f64":
        return [(x, "") for x in ("", ".rn", ".rz", ".rm", ".rp")]
    return [("", ""), (".satfinite", "")] if d == "s32" else [("", "")]


def wmma() -> Iterator[str]:
    """Loads, products and stores of `wmma`."""
    for shapes, inputs, sums in groups(WMMA, 3):
        for shape, a, layout in product(shapes, inputs, ("row", "col")):
            size = parse_shape(shape)
            for matrix, types in (("a", [a]), ("b", [a]), ("c", sums)):
                for type in types:
                    some = vector("d" if type == "f64" else "r", registers(matrix, size, type), 0)
                    for space, stride in product(("", ".global", ".shared", ".shared::cta"), ("", ", r40")):
                        yield f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}{space}.{type} {some}, [d9]{stride};"
                        if matrix == "c":
                            yield f"wmma.store.d.sync.aligned.{layout}.{shape}{space}.{type} [d9], {some}{stride};"
            yield from wmma_products(shape, a, layout, sums)


def wmma_products(shape: str, a: str, layout: str, sums: Choices) -> Iterator[str]:
    size = parse_shape(shape)
    narrow = a in ("s4", "u4", "b1")
    for other, c, d in product(("row", "col"), sums, sums):
        if narrow and (layout, other) != ("row", "col"):
            continue
        letter = "d" if a == "f64" else "r"
        kinds = (("c", d), ("a", a), ("b", a), ("c", c))
        parts = [vector(letter, registers(m, size, t), 10 * j) for j, (m, t) in enumerate(kinds)]
        types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{a}.{c}"
        for before, after in _extras(a, d):
            front, back, rounding = (after, "", "") if a == "b1" else ("", before, "")
            if a == "f64":
                back, rounding = "", before
            yield (f"wmma.mma{front}.sync.aligned.{layout}.{other}.{shape}{rounding}.{types}{back} {', '.join(parts)};")


def wgmma() -> Iterator[str]:
    """`wgmma.mma_async` and its sparse form, A from shared memory and from registers."""
    for a, (sums, depth) in WGMMA.items():
        for b, d, n, sparse, held in product(WGMMA, sums.split("|"), COLUMNS, ("", ".sp"), (False, True)):
            if not same_family(a, b) or (a == "b1" and sparse):
                continue
            count = n // 2 // (2 if d == "f16" else 1)
            first = vector("r", 4, 200) if held else "d1"
            meta = ", r250, 0" if sparse else ""
            signs = "" if d == "s32" else ", 1, -1" + (", 1" if held else ", 0, 1") * (a in ("f16", "bf16"))
            op = ".and.popc" if a == "b1" else ""
            yield (
                f"wgmma.mma_async{sparse}.sync.aligned.m64n{n}k{depth * (1 + bool(sparse))}.{d}.{a}.{b}{op} "
                f"{vector('r', count, 0)}, {first}, d2{meta}, p0{signs};"
            )


def forms() -> list[str]:
    """All instructions, each once."""
    every = [*rows(), *products(PRODUCTS, ""), *wmma(), *wgmma()]
    every += [x for variant in (".sp", ".sp::ordered_metadata") for x in products(SPARSE, variant)]
    return list(dict.fromkeys(every))


# ---- modules ------------------------------------------------------------------------------------------------------

HEAD = """.version 8.8
.target sm_90a
.address_size 64
.global .align 128 .b8 gl[256];
.const .align 16 .b8 cn[256];
.func fn() { ret; }
"""
DECLARED = """  .reg .pred p<8>;
  .reg .b8 c<8>;
  .reg .b16 h<80>;
  .reg .b32 r<300>;
  .reg .b64 d<80>;
  .reg .b128 q<8>;
  .shared .align 1024 .b8 sh[2048];
  .local .align 16 .b8 lc[256];
"""


def kernel(name: str, body: str) -> str:
    """A kernel with all the registers and variables that the forms use."""
    return f".visible .entry {name}(.param .align 64 .b8 pa[256])\n{{\n{DECLARED}{body}\n}}\n"
