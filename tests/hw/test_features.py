"""PTX versions, and the refusal of operations that a chip lacks. Against ptxas itself: tests/nvidia."""

import pytest

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.hw.chips import CHIPS, version_key
from tilewright.hw.features import (
    FEATURES,
    LLVM_PTX_VERSIONS,
    ptx_version,
    require,
    supports,
)


@pytest.mark.parametrize(
    ("arch", "features", "wanted"),
    [
        ("sm_80", (), "7.0"),
        ("sm_90", (), "7.8"),
        ("sm_90a", (), "8.0"),
        ("sm_90", ("cluster",), "7.8"),
        ("sm_90", ("elect.sync",), "8.0"),
        ("sm_90a", ("wgmma", "setmaxnreg", "st.async"), "8.1"),
        ("sm_90a", ("cp.async.bulk.shared::cta",), "8.6"),
        ("sm_80", ("ldmatrix", "ld.L2::cache_hint"), "7.4"),
        ("sm_89", ("cvt.f8x2",), "8.1"),
        ("sm_90", ("cvt.f8x2",), "7.8"),
        ("sm_100a", ("tcgen05",), "8.6"),
        ("sm_103a", (), "8.8"),
        ("sm_110a", (), "9.0"),
        ("sm_101a", (), "9.0"),
        ("sm_120", (), "8.7"),
    ],
)
def test_the_lowest_version_that_chip_and_features_need(arch, features, wanted):
    assert ptx_version(arch, features) == wanted


def test_every_version_that_can_come_out_is_known_to_llvm():
    for arch, target in CHIPS.items():
        needed = {target.ptx} | {need.ptx_on(target) for need in FEATURES.values() if need.met_by(target)}
        assert needed <= set(LLVM_PTX_VERSIONS), arch


@pytest.mark.parametrize(
    ("feature", "has", "lacks"),
    [
        ("elect.sync", "sm_90 sm_100a sm_120", "sm_75 sm_80 sm_89"),
        ("setmaxnreg", "sm_90a sm_100a sm_120a", "sm_80 sm_90 sm_100 sm_120"),
        ("cp.async.bulk.tensor", "sm_90 sm_90a sm_103", "sm_80 sm_86 sm_89"),
        ("wgmma", "sm_90a", "sm_90 sm_100a sm_120a"),
        ("tcgen05", "sm_100a sm_103a sm_110a sm_101a sm_100f", "sm_90a sm_100 sm_120a"),
        ("cvt.f8x2", "sm_89 sm_90", "sm_80 sm_86 sm_87"),
        ("redux.sync", "sm_80 sm_90", "sm_75"),
    ],
)
def test_which_chips_have_it(feature, has, lacks):
    assert [arch for arch in has.split() if not supports(feature, arch)] == []
    assert [arch for arch in lacks.split() if supports(feature, arch)] == []


def test_a_refusal_names_operation_chip_and_remedy():
    place = SourceLocation("kernel.py", 12)
    with pytest.raises(CompileError) as error:
        require("setmaxnreg", "sm_80", operation="cute.arch.setmaxregister_increase", location=place)
    text = str(error.value)
    assert "cute.arch.setmaxregister_increase is not available on sm_80 (Ampere (A100))" in text
    assert "kernel.py:12" in text
    assert "sm_90a" in error.value.hint and "sm_120a" in error.value.hint
    assert error.value.location == place


def test_a_refusal_of_a_general_feature_names_the_first_chip():
    with pytest.raises(CompileError, match=r"elect\.sync is not available on sm_86") as error:
        require("elect.sync", "sm_86")
    assert "sm_90 or newer" in error.value.hint


def test_a_version_for_a_feature_that_the_chip_lacks_is_refused():
    with pytest.raises(CompileError, match="wgmma is not available on sm_100a"):
        ptx_version("sm_100a", ["wgmma"])


def test_an_unknown_feature_lists_the_known_ones():
    with pytest.raises(CompileError, match="unknown hardware feature 'wgmmma'") as error:
        supports("wgmmma", "sm_90a")
    assert "wgmma" in error.value.hint


def test_require_accepts_what_the_chip_has():
    assert require("cp.async", "sm_80") is None
    assert version_key(FEATURES["cp.async"].ptx) == (7, 0)
