"""The table of features against ptxas: each is accepted where the table says so, and nowhere else."""

import pytest

from tests.nvidia.feature_probes import PROBES, probe
from tilewright.base.errors import CompileError
from tilewright.hw.chips import CHIPS, version_key
from tilewright.hw.features import FEATURES, LLVM_PTX_VERSIONS, ptx_version
from tilewright.targets.nvidia.toolkit.assemble import assemble

EMPTY = ".version {version}\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 p) {{ ret; }}\n"


def accepted(feature: str, arch: str, version: str) -> bool:
    try:
        return bool(assemble(probe(feature, arch, version), arch).data)
    except CompileError:
        return False


def version_before(version: str) -> str:
    return LLVM_PTX_VERSIONS[LLVM_PTX_VERSIONS.index(version) - 1]


def test_every_feature_has_a_probe():
    assert set(PROBES) == set(FEATURES)


@pytest.mark.parametrize("arch", CHIPS)
def test_every_chip_assembles_in_its_first_ptx_version(arch):
    version = ptx_version(arch)
    assert assemble(EMPTY.format(version=version, arch=arch), arch).data[:4] == b"\x7fELF"
    with pytest.raises(CompileError):
        assemble(EMPTY.format(version=version_before(version), arch=arch), arch)


@pytest.mark.parametrize("feature", FEATURES)
def test_the_first_chip_that_has_it_takes_the_lowest_version(feature):
    arch = FEATURES[feature].targets()[0]
    assert assemble(probe(feature, arch, ptx_version(arch, [feature])), arch).data


@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES)
def test_all_chips_and_versions(feature):
    need = FEATURES[feature]
    wrong = []
    for arch, target in CHIPS.items():
        if not need.met_by(target):
            wrong += [f"{arch} takes it"] if accepted(feature, arch, LLVM_PTX_VERSIONS[-1]) else []
            continue
        version = ptx_version(arch, [feature])
        wrong += [] if accepted(feature, arch, version) else [f"{arch} refuses it in {version}"]
        older = version_before(version)
        if version_key(older) >= version_key(target.ptx) and accepted(feature, arch, older):
            wrong.append(f"{arch} takes it in {older}")
    assert wrong == []
