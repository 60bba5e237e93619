"""Peak rates agree with what a multiprocessor does in a clock, and cards are found by their names."""

import pytest

from tilewright.base.errors import ArgumentError
from tilewright.hw.chips import chip
from tilewright.hw.peaks import PEAKS, peak

LANES = {"A100 80GB": 64, "A100 40GB": 64}
TENSOR_PER_CLOCK = {"A100 80GB": 2048, "RTX 4090": 512, "H100 SXM": 4096}


@pytest.mark.parametrize("card", PEAKS.values(), ids=lambda card: card.name)
def test_f32_is_what_the_lanes_do(card):
    """128 lanes (64 on A100) of multiply-adds at the boost clock, to a percent."""
    assert card.f32 == pytest.approx(2 * LANES.get(card.name, 128) * card.multiprocessors * card.clock, rel=0.01)
    assert chip(card.arch).arch == card.arch


@pytest.mark.parametrize("name", TENSOR_PER_CLOCK)
def test_tensor_cores(name):
    """A multiprocessor's operations a clock are a power of two; tensor cores of H100 run at 1.83 GHz."""
    card = PEAKS[name]
    clock = 1.83e9 if name == "H100 SXM" else card.clock
    assert card.tensor["f16"] == pytest.approx(TENSOR_PER_CLOCK[name] * 2 / 2 * card.multiprocessors * clock, rel=0.01)
    assert card.tensor["f16"] == pytest.approx(2 * card.tensor["tf32"], rel=0.001)


@pytest.mark.parametrize(("said", "name"), [
    ("H100", "H100 SXM"), ("NVIDIA H100 80GB HBM3", "H100 SXM"), ("NVIDIA H100 PCIe", "H100 PCIe"),
    ("sm_90a", "H100 SXM"), ("sm_80", "A100 80GB"), ("A100 40GB", "A100 40GB"), ("4090", "RTX 4090"),
    ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("l40", "L40"), ("B200", "B200"), ("NVIDIA H200", "H200"),
])  # fmt: skip
def test_cards_by_name(said, name):
    assert peak(said).name == name


@pytest.mark.parametrize("said", ["80GB", "RTX", "", "sm_75", "GB200X"])
def test_unknown_cards(said):
    with pytest.raises(ArgumentError, match="are not known") as caught:
        peak(said)
    assert "H100 SXM" in str(caught.value)
