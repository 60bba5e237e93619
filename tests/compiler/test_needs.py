"""What instructions need of a chip, from their text and from nvvm operations."""

from __future__ import annotations

import pytest

from tests.nvidia.feature_probes import PROBES
from tilewright.hw.chips import CHIPS, version_key
from tilewright.hw.features import FEATURES
from tilewright.targets.nvidia.lowering.inline_asm import find_fault
from tilewright.targets.nvidia.needs import (
    _NVVM,
    _PTX,
    features_of_llvm,
    features_of_operation,
    features_of_ptx,
    opcodes,
)

# Every chip has the first; the second differs from `min` only in the number of its operands.
NOT_BY_NAME = {"atom.add.f64", "min.f32.3"}


@pytest.mark.parametrize("feature", sorted(PROBES.keys() - NOT_BY_NAME))
def test_instructions_are_recognised(feature):
    """The features found in a probe demand exactly the chips and PTX versions that the probe's own feature does."""
    found = [FEATURES[name] for name in features_of_ptx(PROBES[feature])]
    wanted = FEATURES[feature]
    for arch, target in CHIPS.items():
        assert all(need.met_by(target) for need in found) == wanted.met_by(target), arch
        if wanted.met_by(target):
            versions = [need.ptx_on(target) for need in found]
            assert max(versions, key=version_key) == wanted.ptx_on(target), (arch, features_of_ptx(PROBES[feature]))


def test_tables_name_known_features():
    assert set(_PTX) <= set(FEATURES)
    assert {name for names in _NVVM.values() for name in names} <= set(FEATURES)
    assert set(FEATURES) - set(_PTX) <= {*NOT_BY_NAME, "cluster", "cvt.f16x2.f8x2", "red.v4.bf16x2"}


def test_opcodes_of_text():
    text = """
    {  // a comment; with a semicolon
        .reg .pred p, q;   /* more;
        comments */
    LOOP: @!p bra LOOP;
        @%p1 elect.sync _|q, 0xffffffff; mov.u32 $0, %tid.x;
    }
    ld.global.b32
       %r1, [%rd1];
    """
    assert list(opcodes(text)) == ["bra", "elect.sync", "mov.u32", "ld.global.b32", "%r1,"]
    assert features_of_ptx(text) == {"elect.sync"}
    assert features_of_ptx("mov.u32 $0, %cluster_ctarank;") == {"cluster"}
    assert features_of_ptx("add.f32 a, b, c; st.global.f32 [x], a;") == set()
    assert features_of_ptx("") == set()


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("nvvm.elect.sync", ("elect.sync",)),
        ("nvvm.wgmma.mma_async", ("wgmma",)),
        ("nvvm.cp.async.bulk.tensor.shared.cluster.global", ("cp.async.bulk.tensor",)),
        ("nvvm.cp.async.shared.global", ("cp.async",)),
        ("nvvm.mbarrier.init", ("mbarrier",)),
        ("nvvm.mbarrier.try_wait.parity", ("mbarrier.try_wait",)),
        ("nvvm.read.ptx.sreg.tid.x", ()),
        ("nvvm.read.ptx.sreg.cluster.ctarank", ("cluster",)),
        ("nvvm.barrier0", ()),
        ("nvvm.vote.sync", ()),
        ("nvvm.st.bulk", None),
        ("nvvm.something.new", None),
    ],
)
def test_operations(name, wanted):
    assert features_of_operation(name) == wanted


def test_llvm_text():
    text = """
      %1 = call {i32, i1} @llvm.nvvm.elect.sync(i32 -1)
      call void @llvm.nvvm.barrier.cluster.arrive()
      %2 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
      %3 = call i32 asm sideeffect "mov.u32 $0, 1;\\0A\\09stmatrix.sync.aligned.x4.shared.b16 [$1], {a};", "=r,l"(i64 0)
      call void asm "wgmma.fence.sync.aligned;", ""()
    """
    assert features_of_llvm(text) == {"elect.sync", "barrier.cluster", "stmatrix", "wgmma"}
    assert features_of_llvm("define void @k() { ret void }") == set()


@pytest.mark.parametrize(
    "text, constraints, results, operands, fault",
    [
        ("mov.b32 $0, $1;", "=r,r", [32], [32], ""),
        ("mov.b32 $0, $1;", "=&r,r,~{memory}", [32], [32], ""),
        ("mov.b32 $0, ${1};", "=r,r", [32], [16], ""),
        ("mov.b64 $0, {$1, $2};", "=l,r,r", [64], [32, 32], ""),
        ("mov.b32 $0, $1;", "=f,r", [32], [32], ""),
        ("add.s32 $0, $0, $1;", "=r,0,n", [32], [32, 32], ""),
        ("st.global.b32 [$0], $1;", "l,r", [], [0, 32], ""),
        ("mov.b32 $0, %smid; // 5$$", "=r", [32], [], ""),
        ("mov.b32 $0, $1;", "=r,r", [32], [64], "constraint 'r' is a register of 32 bits, its operand has 64"),
        ("mov.b32 $0, $1;", "=r,0", [32], [64], "constraint 'r' is a register of 32 bits, its operand has 64"),
        ("mov.b32 $0, $1;", "=h,r", [32], [32], "constraint 'h' is a register of 16 bits, its operand has 32"),
        ("x $0, $1, $2;", "=r,=f,r", [32], [32], "2 output constraints for 1 results"),
        ("x $0;", "r", [], [], "1 input constraints for 0 operands"),
        ("x $0;", "", [], [], "`$0` names no operand"),
        ("x ${3:w};", "=r,r", [32], [32], "`${3:w}` is used, but the last operand is $1"),
        ("x $;", "r", [], [32], "`$;` names no operand; a dollar sign is written `$$`"),
        ("x;", "%$", [], [32], "there is no constraint '%$'"),
    ],
)
def test_inline_assembly(text, constraints, results, operands, fault):
    assert find_fault(text, constraints, results, operands) == fault
