"""Cycles until a warp can use what an instruction gives, for estimates of what warps wait for.

Memory: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking"
(arXiv:2402.13499), table of memory latencies of RTX 4090, A100 and H100 PCIe, rounded. Arithmetic: Jia et al.,
"Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv:1804.06826): 4 cycles for most instructions
of fixed latency since Volta. Tensor cores: the former, `mma.sync` of m16n8k16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.hw.chips import chip


@dataclass(frozen=True)
class Latencies:
    """Cycles from issue to use: memory beyond L2, L2, L1, shared memory, arithmetic, a product of tensor cores."""

    memory: int
    l2: int
    l1: int
    shared: int
    arithmetic: int = 4
    tensor: int = 33


_AMPERE: Final = Latencies(memory=466, l2=262, l1=38, shared=29)
_ADA: Final = Latencies(memory=542, l2=273, l1=43, shared=30)
_HOPPER: Final = Latencies(memory=479, l2=263, l1=41, shared=29)


def latencies(arch: str) -> Latencies:
    """Those of the chip; of chips that nobody has measured those of Hopper.

    Raises:
        CompileError: there is no such chip.
    """
    major, minor = chip(arch).capability
    if (major, minor) == (8, 9):
        return _ADA
    return _AMPERE if major == 8 else _HOPPER
