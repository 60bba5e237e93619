"""Peak rates of some cards, for estimates: memory bandwidth, arithmetic, tensor cores, shared memory.

Sources, all of NVIDIA, all without sparsity. A100: "A100 Tensor Core GPU Architecture" (2020), table 1 and the
datasheet of the 80 GB card. H100: "H100 Tensor Core GPU Architecture", tables 1 and 2, and datasheet. H200: datasheet.
B200: datasheet of HGX B200, figures of one card. L40: datasheet. RTX 4090: "Ada GPU Architecture",
appendix A. Rates for each clock of a multiprocessor: CUDA C++ Programming Guide, "Arithmetic Instructions" (special
functions) and "Shared Memory" (32 banks of 4 bytes); four schedulers issue one instruction of a warp each.
Sizes of the L2 caches: the same papers and data sheets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tilewright.base.errors import ArgumentError
from tilewright.hw.chips import SHARED_BANK_BYTES, SHARED_BANKS, WARP_THREADS

ISSUE_PER_SM: Final = 4
"""Instructions of warps that a multiprocessor issues in one clock."""
SPECIAL_PER_SM: Final = 16
"""Results of special functions (reciprocal, exponential, sine, ...) of a multiprocessor in one clock."""
L1_BYTES_PER_SM: Final = SHARED_BANKS * SHARED_BANK_BYTES
"""Bytes that L1 and shared memory of a multiprocessor, which are one memory, deliver in one clock."""


@dataclass(frozen=True)
class Peak:
    """One card. `clock` in Hz (boost); `memory` in bytes a second; `f32`, `f64` and `tensor` in operations a second, a
    multiply-add being two; `tensor` by operand type: f16 (bf16 too), tf32, f8, i8, f64, with sums in 32 bits."""

    name: str
    arch: str
    multiprocessors: int
    clock: float
    memory: float
    f32: float
    f64: float
    tensor: Mapping[str, float]

    @property
    def thread_issue(self) -> float:
        """Thread-instructions a second of one multiprocessor, with full warps."""
        return ISSUE_PER_SM * WARP_THREADS * self.clock

    @property
    def l2(self) -> int:
        """Bytes of the L2 cache."""
        return _L2_MIB[self.name.split()[0] if self.name.startswith(("A100", "H100")) else self.name] << 20

    @property
    def l1(self) -> float:
        """Bytes a second of one multiprocessor's L1 and shared memory."""
        return L1_BYTES_PER_SM * self.clock


_L2_MIB: Final = {"A100": 40, "RTX 4090": 72, "L40": 96, "H100": 50, "H200": 50, "B200": 126}


def _peak(
    name: str, arch: str, sms: int, mhz: int, gbs: float, single: float, double: float, **tensor: float
) -> Peak:  # rates in 10^12 a second
    rates = MappingProxyType({kind: rate * 1e12 for kind, rate in tensor.items()})
    return Peak(name, arch, sms, mhz * 1e6, gbs * 1e9, single * 1e12, double * 1e12, rates)


_HOPPER: Final = {"f16": 989.4, "tf32": 494.7, "f8": 1978.9, "i8": 1978.9, "f64": 66.9}
_AMPERE: Final = {"f16": 312.0, "tf32": 156.0, "i8": 624.0, "f64": 19.5}

PEAKS: Final[Mapping[str, Peak]] = MappingProxyType(
    {
        peak.name: peak
        for peak in (
            _peak("A100 80GB", "sm_80", 108, 1410, 2039, 19.5, 9.7, **_AMPERE),
            _peak("A100 40GB", "sm_80", 108, 1410, 1555, 19.5, 9.7, **_AMPERE),
            _peak("RTX 4090", "sm_89", 128, 2520, 1008, 82.6, 1.29, f16=165.2, tf32=82.6, f8=330.3, i8=660.6),
            _peak("L40", "sm_89", 142, 2490, 864, 90.5, 1.41, f16=181.0, tf32=90.5, f8=362.0, i8=362.0),
            _peak("H100 SXM", "sm_90", 132, 1980, 3350, 66.9, 33.5, **_HOPPER),
            _peak(
                "H100 PCIe", "sm_90", 114, 1755, 2000, 51.2, 25.6, f16=756.0, tf32=378.0, f8=1513.0, i8=1513.0, f64=51.2
            ),
            _peak("H200", "sm_90", 132, 1980, 4800, 66.9, 33.5, **_HOPPER),
            _peak("B200", "sm_100", 148, 1965, 7700, 75.0, 37.0, f16=2250, tf32=1100, f8=4500, i8=4500, f64=37.0),
        )
    }
)
"""The cards by name; the first of an architecture stands for it."""


def peak(chip: str) -> Peak:
    """The card of a name or an architecture: "H100", "NVIDIA H100 80GB HBM3", "4090" and "sm_90a" are understood.

    Raises:
        ArgumentError: no such card; the message lists those that are known.
    """
    wanted = chip.strip().lower()
    if wanted.startswith("sm_"):
        arch = wanted.rstrip("af")
        found = next((p for p in PEAKS.values() if p.arch == arch), None)
    else:
        found = _by_words(set(re.findall(r"[a-z0-9]+", wanted)))
    if found is None:
        raise ArgumentError(f"the peak rates of {chip!r} are not known", hint=f"known: {', '.join(PEAKS)}")
    return found


def _by_words(words: set[str]) -> Peak | None:
    """The card whose model is among the words, and of several the one with most of its words."""
    scored = [(len(words & set(_words(card))), card) for card in PEAKS.values() if _model(card) in words]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def _words(card: Peak) -> list[str]:
    return card.name.lower().split()


def _model(card: Peak) -> str:
    """The word of a card's name that tells it from other models: h100, l40, 4090."""
    return next(word for word in _words(card) if re.search(r"\d\d", word))
