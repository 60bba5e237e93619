"""The table of forms: what nvcc and the manual write is taken, what ptxas refuses is refused."""

from __future__ import annotations

import re

import pytest

from tests.emu import kernels
from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics.forms import FORMS, check_form

GOOD = """
add.s32 add.sat.s32 add.rn.f32 add.rz.ftz.sat.f32 add.f64 add.f16x2 add.rn.ftz.sat.f16 add.rn.bf16x2 add.u16x2
add.cc.u32 add.rn.f32.f16 sub.cc.s64 mul.wide.u16 mul.lo.s64 mul.rp.f32 mad.lo.cc.u32 mad.wide.s32 mad.hi.sat.s32
mad.rn.f32 fma.rn.f32 fma.rz.ftz.sat.f32 fma.rn.relu.f16x2 fma.rn.relu.bf16 fma.rn.f32x2 fma.rn.oob.relu.f16x2
set.lt.or.f16.u64 set.eq.bf16.b16 set.num.ftz.f16.f32 cvt.f16.bf16 cvt.bf16.f16 cvt.rp.ftz.bf16.f32 div.s16
div.full.ftz.f32 div.rn.f64 min.NaN.xorsign.abs.f32 max.ftz.NaN.f16x2 min.relu.s32 max.relu.s16x2
rcp.approx.ftz.f64 rsqrt.approx.f64
ex2.approx.f16 tanh.approx.bf16x2 lop3.b32 lop3.or.b32 prmt.b32 prmt.b32.rc16 shr.b32 shr.s64 shf.l.wrap.b32
bfind.shiftamt.u64 setp.lt.and.s32 setp.neu.ftz.f32 setp.eq.b64 setp.gtu.f16x2 set.gt.f16x2.f16x2 set.le.u32.f32
slct.ftz.f32.f32 selp.f64 cvt.u32.u64 cvt.sat.s8.s32 cvt.rzi.s32.f32 cvt.rni.ftz.sat.f32.f32 cvt.rn.f32.s32
cvt.f32.f16 cvt.rn.f16.f32 cvt.rn.satfinite.relu.bf16.f32 cvt.rz.relu.satfinite.f16.f32 cvt.rna.tf32.f32
cvt.rna.satfinite.tf32.f32 cvt.rn.relu.tf32.f32 cvt.rn.f16x2.f32 cvt.rn.satfinite.e4m3x2.f32
cvt.rn.satfinite.relu.e5m2x2.f16x2 cvt.rn.f16x2.e4m3x2 cvt.f32.f16.sat cvt.pack.sat.u8.s32.b32 cvt.f64.f32
cvt.rn.ftz.f32.f64 vadd.s32.u32.s32.sat.add vset4.u32.u32.ge.add vmad.u32.u32.u32.po.shr7 vabsdiff4.u32.u32.u32.add
testp.subnormal.f64 copysign.f32 dp2a.hi.s32.u32 szext.wrap.s32 not.pred
"""
BAD = """
add.foo.s32 add.rna.f32 add.sat.s64 add.sat.bf16 add.ftz.bf16 add.rz.f16 add.ftz.f64 mul.s32 mul.rn.s32 mul.wide.s64
fma.f32 fma.rn.oob.f32 fma.rn.oob.sat.f16 fma.rz.f16 fma.rn.sat.relu.f16 mad.f32 div.f32 div.full.f64 div.rn.f16
min.NaN.s32 max.xorsign.f32 sqrt.f32 sqrt.approx.rn.f32 sin.f32 ex2.approx.f64 ex2.approx.bf16 tanh.f32
abs.u32 neg.u64 shl.u32
popc.u32 bfe.b32 prmt.b32.xyz lop3.xor.b32 setp.lo.f32 setp.lt.b32 setp.ftz.lt.f32 set.lt.pred.s32 testp.finite.f16
copysign.f16 mul24.lo.s16 cvt.f16.f32 cvt.s32.f32 cvt.rn.s32.f32 cvt.rni.f32.s32 cvt.f32.s32 set.eq.ftz.f16.s32
cvt.rna.f16.f32 cvt.rn.e4m3x2.f32 cvt.sat.bf16.f32 cvt.pack.sat.s8.s32 dp4a.u32 vadd4.u32.u32.u32.sat.add
vmad.s32.s32.s32.shr8 bfind.b32 selp.pred and.u32
"""


@pytest.mark.parametrize("opcode", GOOD.split())
def test_forms_of_the_manual_are_taken(opcode: str) -> None:
    op, *words = opcode.split(".")
    check_form(op, tuple(words))


@pytest.mark.parametrize("opcode", [*BAD.split(), "setp.lo.s32"])
def test_other_forms_are_refused(opcode: str) -> None:
    op, *words = opcode.split(".")
    with pytest.raises(EmulationError, match=re.escape(f"instruction {opcode} is not in the PTX ISA")) as caught:
        check_form(op, tuple(words))
    assert f"forms of {op}" in caught.value.values


LATER = """
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 sm_100a
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 sm_100
st.bulk.weak.shared::cta sm_100   st.async.mmio.release.gpu.global.u32 sm_100
red.async.release.gpu.global.add.u32 sm_100
cp.async.bulk.global.shared::cta.bulk_group.cp_mask sm_100   tensormap.replace.tile.swizzle_atomicity.b1024.b32 sm_100a
cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes sm_100a
ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 sm_100a   stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 sm_100a
mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32 sm_120a   cvt.rs.f16x2.f32 sm_100a
"""


@pytest.mark.parametrize(("opcode", "arch"), list(zip(LATER.split()[::2], LATER.split()[1::2], strict=True)))
def test_forms_of_later_architectures_name_theirs(opcode: str, arch: str) -> None:
    op, *words = opcode.split(".")
    with pytest.raises(EmulationError, match=re.escape(f"instruction {opcode} needs {arch};")):
        check_form(op, tuple(words))


def test_other_instructions_pass() -> None:
    check_form("ld", ("global", "u32"))


def test_every_kernel_of_the_suite_uses_known_forms() -> None:
    seen = set()
    for source in {kernel.ptx for kernel in kernels.kernels()}:
        for opcode in re.findall(
            r"(?:^|[;{}\n])\s*(?:@!?%?\w+\s+)?([a-z]\w*(?:\.\w+)+)\s+[%{\-_\w]", source.read_text()
        ):
            op, *words = opcode.split(".")
            if op in FORMS:
                check_form(op, tuple(words))
                seen.add(op)
    assert len(FORMS) - len(seen) < 8, sorted(set(FORMS) - seen)
