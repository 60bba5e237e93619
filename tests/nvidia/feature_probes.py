"""One PTX instruction (or two) for each hardware feature, to ask ptxas what it accepts."""

# ruff: noqa: E501  one instruction a line

HEAD = """.version {version}
.target {arch}
.address_size 64
.visible .entry probe(.param .u64 buffer)
{{
    .reg .b16 h1, h2;
    .reg .b32 r1, r2, r3, r4, r5, r6;
    .reg .b64 q;
    .reg .f32 f1, f2, f3, f4;
    .reg .f64 d1, d2;
    .reg .pred p1;
    .shared .align 128 .b8 s[1024];
    ld.param.u64 q, [buffer];
    {body}
    ret;
}}
"""

PROBES = {
    "activemask": "activemask.b32 r1;",
    "match.sync": "match.any.sync.b32 r1, r2, 0xffffffff;",
    "shfl.sync": "shfl.sync.bfly.b32 r1, r2, 1, 0x1f, 0xffffffff;",
    "nanosleep": "nanosleep.u32 32;",
    "f16.fma": "fma.rn.f16x2 r1, r2, r3, r4;",
    "dp4a": "dp4a.s32.s32 r1, r2, r3, r4;",
    "ld.acquire": "ld.acquire.gpu.global.b32 r1, [q];",
    "atom.add.f16x2": "atom.global.add.noftz.f16x2 r1, [q], r2;",
    "atom.add.f64": "atom.global.add.f64 d1, [q], d2;",
    "atom.cas.b16": "atom.global.cas.b16 h1, [q], h1, h2;",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r1,r2,r3,r4}, [s];",
    "mma.m16n8k8.f16": "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f1,f2,f3,f4},{r1,r2},{r3},{f1,f2,f3,f4};",
    "tanh.approx.f32": "tanh.approx.f32 f1, f2;",
    "tanh.approx.f16x2": "tanh.approx.f16x2 r1, r2;",
    "ex2.approx.f16x2": "ex2.approx.f16x2 r1, r2;",
    "alloca": "alloca.u64 q, 16;",
    "ld.L1::evict_last": "ld.global.L1::evict_last.b32 r1, [q];",
    "ld.L1::no_allocate": "ld.global.L1::no_allocate.b32 r1, [q];",
    "ld.L2::128B": "ld.global.L2::128B.b32 r1, [q];",
    "fence.proxy.alias": "fence.proxy.alias;",
    "szext": "szext.wrap.s32 r1, r2, r3;",
    "bmsk": "bmsk.clamp.b32 r1, r2, r3;",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 r1, r2;",
    "ld.b128": "{.reg .b128 x; ld.relaxed.gpu.global.b128 x, [q];}",
    "cp.async": "cp.async.ca.shared.global [s], [q], 16;",
    "cp.async.mbarrier": "cp.async.mbarrier.arrive.noinc.shared.b64 [s];",
    "mbarrier": "mbarrier.init.shared.b64 [s], 1;",
    "redux.sync": "redux.sync.add.s32 r1, r2, 0xffffffff;",
    "mma.m16n8k16.f16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f1,f2,f3,f4},{r1,r2,r3,r4},{r5,r6},{f1,f2,f3,f4};",
    "mma.bf16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {f1,f2,f3,f4},{r1,r2,r3,r4},{r5,r6},{f1,f2,f3,f4};",
    "mma.tf32": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {f1,f2,f3,f4},{r1,r2,r3,r4},{r5,r6},{f1,f2,f3,f4};",
    "mma.s8": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {r1,r2,r3,r4},{r1,r2,r3,r4},{r5,r6},{r1,r2,r3,r4};",
    "mma.f64": "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d1,d2},{d1},{d2},{d1,d2};",
    "cvt.bf16": "cvt.rn.bf16.f32 h1, f1;",
    "cvt.bf16x2": "cvt.rn.bf16x2.f32 r1, f1, f2;",
    "cvt.f16x2": "cvt.rn.f16x2.f32 r1, f1, f2;",
    "cvt.satfinite.f16x2": "cvt.rn.satfinite.f16x2.f32 r1, f1, f2;",
    "cvt.tf32": "cvt.rna.tf32.f32 r1, f1;",
    "bf16.fma": "fma.rn.bf16x2 r1, r2, r3, r4;",
    "bf16.min": "min.bf16x2 r1, r2, r3;",
    "f16.min": "min.f16x2 r1, r2, r3;",
    "min.NaN": "min.NaN.f32 f1, f2, f3;",
    "mbarrier.test_wait.parity": "mbarrier.test_wait.parity.shared.b64 p1, [s], r1;",
    "mma.sp": "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f1,f2,f3,f4},{r1,r2},{r3,r4},{f1,f2,f3,f4}, r5, 0;",
    "cvt.f32.bf16": "cvt.f32.bf16 f1, h1;",
    "ld.L2::cache_hint": "ld.global.L2::cache_hint.b32 r1, [q], q;",
    "createpolicy": "createpolicy.fractional.L2::evict_last.b64 q, 1.0;",
    "applypriority": "applypriority.global.L2::evict_normal [q], 128;",
    "discard": "discard.global.L2 [q], 128;",
    "min.xorsign": "min.xorsign.abs.f32 f1, f2, f3;",
    "cvt.f8x2": "cvt.rn.satfinite.e4m3x2.f32 h1, f1, f2;",
    "cvt.f16x2.f8x2": "cvt.rn.f16x2.e4m3x2 r1, h1;",
    "mma.f8": "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {f1,f2,f3,f4},{r1,r2,r3,r4},{r5,r6},{f1,f2,f3,f4};",
    "cluster": "mov.u32 r1, %cluster_ctarank;",
    "barrier.cluster": "barrier.cluster.arrive; barrier.cluster.wait;",
    "mapa": "mapa.shared::cluster.u32 r1, r2, r3;",
    "getctarank": "getctarank.shared::cluster.u32 r1, r2;",
    "ld.shared::cluster": "ld.shared::cluster.u32 r1, [r2];",
    "isspacep.shared::cluster": "isspacep.shared::cluster p1, q;",
    "fence.cluster": "fence.acq_rel.cluster;",
    "mbarrier.try_wait": "mbarrier.try_wait.shared.b64 p1, [s], q;",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], {r1,r2,r3,r4};",
    "bf16.add": "add.rn.bf16x2 r1, r2, r3;",
    "tanh.approx.bf16x2": "tanh.approx.bf16x2 r1, r2;",
    "ex2.approx.bf16x2": "ex2.approx.ftz.bf16x2 r1, r2;",
    "griddepcontrol": "griddepcontrol.wait; griddepcontrol.launch_dependents;",
    "atom.add.bf16x2": "atom.global.add.noftz.bf16x2 r1, [q], r2;",
    "elect.sync": "elect.sync r1|p1, 0xffffffff;",
    "barrier.cluster.relaxed": "barrier.cluster.arrive.relaxed;",
    "mbarrier.expect_tx": "mbarrier.arrive.expect_tx.shared.b64 q, [s], r1;",
    "mbarrier.remote_arrive": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r1];",
    "fence.proxy.async": "fence.proxy.async;",
    "fence.mbarrier_init": "fence.mbarrier_init.release.cluster;",
    "fence.sync_restrict": "fence.acquire.sync_restrict::shared::cluster.cluster;",
    "cp.async.bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [q], 16, [s+64];",
    "cp.async.bulk.prefetch": "cp.async.bulk.prefetch.L2.global [q], 16;",
    "cp.reduce.async.bulk": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [q], [s], 16;",
    "cp.async.bulk.tensor": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [q, {r1, r2}], [s+64];",
    "cp.async.bulk.tensor.multicast": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [q, {r1, r2}], [s+64], h1;",
    "cp.reduce.async.bulk.tensor": "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [q, {r1, r2}], [s];",
    "prefetch.tensormap": "prefetch.tensormap [q];",
    "st.async": "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [r1], r2, [r3];",
    "red.async": "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r1], r2, [r3];",
    "multimem": "multimem.ld_reduce.relaxed.sys.global.add.f32 f1, [q];",
    "red.v4.f32": "red.global.add.v4.f32 [q], {f1,f2,f3,f4};",
    "red.v4.bf16x2": "red.global.add.noftz.v4.bf16x2 [q], {r1,r2,r3,r4};",
    "tensormap.cp_fenceproxy": "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [q], [s], 128;",
    "fence.proxy.tensormap": "fence.proxy.tensormap::generic.release.gpu;",
    "atom.b128": "{.reg .b128 x; mov.b128 x, {q, q}; atom.global.cas.b128 x, [q], x, x;}",
    "cp.async.bulk.shared::cta": "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [q], 16, [s+64];",
    "cp.async.bulk.tensor.shared::cta": "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [s], [q, {r1, r2}], [s+64];",
    "f32x2": "fma.rn.f32x2 q, q, q, q;",
    "cp.async.bulk.tensor.gather4": "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [s], [q, {r1, r2, r3, r4, r5}], [s+64];",
    "clusterlaunchcontrol": "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s], [s+64];",
    "min.f32.3": "min.f32 f1, f2, f3, f4;",
    "ld.v8.b32": "ld.global.v8.b32 {r1,r2,r3,r4,r5,r6,r1,r2}, [q];",
    "wgmma": "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    "wgmma.sp": "{.reg .pred t; setp.eq.u32 t, r1, r2; "
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {f1,f2,f3,f4}, q, q, r1, 0, t, 1, 1, 0, 0;}",
    "wgmma.s8.u8": "{.reg .pred t; setp.eq.u32 t, r1, r2; "
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {r1,r2,r3,r4}, q, q, t;}",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 64;",
    "tensormap.replace": "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], q;",
    "ldmatrix.b8": "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r1,r2}, [s];",
    "stmatrix.b8": "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [s], {r1};",
    "cvt.f4x2": "{.reg .b8 b1; cvt.rn.satfinite.e2m1x2.f32 b1, f1, f2;}",
    "cvt.f6x2": "cvt.rn.satfinite.e2m3x2.f32 h1, f1, f2;",
    "cvt.ue8m0x2": "cvt.rz.ue8m0x2.f32 h1, f1, f2;",
    "tcgen05": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;",
    "tcgen05.mma": "tcgen05.mma.cta_group::1.kind::f16 [r1], q, q, r2, p1;",
    "tcgen05.ld": "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [r2];",
    "cp.async.bulk.tensor.cta_group": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [s], [q, {r1, r2}], [s+64];",
    "redux.sync.f32": "redux.sync.min.f32 f1, f2, 0xffffffff;",
    "cvt.rs": "cvt.rs.f16x2.f32 r1, f1, f2, r2;",
    "tcgen05.mma.i8": "tcgen05.mma.cta_group::1.kind::i8 [r1], q, q, r2, p1;",
    "tcgen05.mma.mxf4": "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [r1], q, q, r2, [r3], [r4], p1;",
    "mma.f8f6f4": "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 {f1,f2,f3,f4},{r1,r2,r3,r4},{r5,r6},{f1,f2,f3,f4};",
    "mma.block_scale": "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 {f1,f2,f3,f4},{r1,r2,r3,r4},{r5,r6},{f1,f2,f3,f4}, r1,{0,0}, r2,{0,0};",
}


def probe(feature: str, arch: str, version: str) -> str:
    """A kernel that uses the feature."""
    return HEAD.format(version=version, arch=arch, body=PROBES[feature])
