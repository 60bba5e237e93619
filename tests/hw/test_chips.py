"""The table of chips: spellings, versions, and values known from the published specifications."""

import pytest

from tilewright.base.errors import CompileError
from tilewright.hw.chips import CHIPS, arch_of_capability, chip, normalize_arch, parameter_bytes, version_key

SUPPORTED = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_110",
    "sm_110a", "sm_120", "sm_120a", "sm_121",
)  # fmt: skip


@pytest.mark.parametrize("arch", SUPPORTED)
def test_a_supported_name_is_its_own_normal_form(arch):
    assert normalize_arch(arch) == arch
    assert chip(arch).arch == arch


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("sm_101a", "sm_110a"),
        ("sm_101", "sm_110"),
        ("SM_90A", "sm_90a"),
        ("90a", "sm_90a"),
        ("sm90", "sm_90"),
        ("compute_100f", "sm_100f"),
        (" sm_80 ", "sm_80"),
    ],
)
def test_other_spellings(given, wanted):
    assert normalize_arch(given) == wanted


@pytest.mark.parametrize("given", ["sm_999", "", "sm_80a", "hopper", "sm_70", "sm_90aa", "gfx942"])
def test_an_unknown_architecture_lists_the_known_ones(given):
    with pytest.raises(CompileError, match=r"unknown architecture") as error:
        normalize_arch(given)
    assert repr(given) in str(error.value)
    assert "sm_90a" in error.value.hint and "sm_120" in error.value.hint


def test_published_limits():
    """H100 and A100 as their white papers and tuning guides have them, GeForce 40 as the programming guide has it."""
    hopper, ampere, ada = chip("sm_90a"), chip("sm_80"), chip("sm_89")
    assert (hopper.threads_per_sm, hopper.blocks_per_sm, hopper.registers_per_sm) == (2048, 32, 65536)
    assert (hopper.shared_per_sm, hopper.shared_optin, hopper.shared_static) == (233472, 232448, 49152)
    assert (hopper.cluster_portable, hopper.cluster_max) == (8, 16)
    assert (ampere.threads_per_sm, ampere.shared_per_sm, ampere.shared_optin) == (2048, 167936, 166912)
    assert (ada.threads_per_sm, ada.blocks_per_sm, ada.shared_optin) == (1536, 24, 101376)
    assert ampere.cluster_max == 1 and ampere.tensor_memory_columns == 0
    assert chip("sm_100a").tensor_memory_columns == 512


def test_variants_of_one_chip_share_its_limits():
    base, variant = chip("sm_90"), chip("sm_90a")
    assert {key for key in vars(base) if getattr(base, key) != getattr(variant, key)} == {"arch", "suffix", "ptx"}


def test_a_device_runs_its_richest_target():
    assert arch_of_capability(9, 0) == "sm_90a"
    assert arch_of_capability(8, 6) == "sm_86"
    assert arch_of_capability(12, 0) == "sm_120a"
    with pytest.raises(CompileError, match="unknown architecture"):
        arch_of_capability(6, 1)


def test_versions_compare_as_numbers():
    assert version_key("8.10") > version_key("8.9") > version_key("7.8")
    assert (parameter_bytes("8.0"), parameter_bytes("8.1"), parameter_bytes("9.0")) == (4096, 32764, 32764)


def test_names_and_facts_are_consistent():
    for arch, target in CHIPS.items():
        assert arch == f"sm_{target.number}{target.suffix}"
        assert target.shared_static <= target.shared_optin <= target.shared_per_sm
        assert target.shared_optin + target.shared_reserved <= target.shared_per_sm
        assert target.warps_per_sm * 32 == target.threads_per_sm >= target.threads_per_block
