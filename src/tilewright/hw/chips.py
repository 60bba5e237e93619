"""What each NVIDIA chip has: limits per block and per multiprocessor, and the PTX version that knows it.

Sources. Limits: CUDA C++ Programming Guide, "Compute Capabilities" (table of technical specifications per
compute capability) and CUDA's own occupancy calculator (`cuda_occupancy.h` of CUDA 13.5), which also gives
allocation granularities and named barriers. Shared memory above 48 KB, the 1 KB that the driver keeps per
block from compute capability 8.0 on: the Ampere, Hopper and Blackwell tuning guides; clusters of 16: the
Hopper and Blackwell tuning guides. PTX versions: PTX ISA, "Release Notes".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError

WARP_THREADS: Final = 32
"""Threads per warp on every chip."""
SECTOR_BYTES: Final = 32
"""The piece in which global memory, L2 and L1 move data."""
CACHE_LINE_BYTES: Final = 128
"""One L1 or L2 line: four sectors."""
SHARED_BANKS: Final = 32
"""Banks of shared memory; consecutive words lie in consecutive banks."""
SHARED_BANK_BYTES: Final = 4
"""Width of one bank's word."""
MAX_BLOCK_DIM: Final = (1024, 1024, 64)
"""Largest extent of a block in x, y, z."""
MAX_GRID_DIM: Final = (2**31 - 1, 65535, 65535)
"""Largest extent of a grid in x, y, z."""
MAX_REGISTERS_PER_THREAD: Final = 255
"""32-bit registers that one thread can address."""
NAMED_BARRIERS_PER_BLOCK: Final = 16
"""Hardware barriers 0 to 15 of `bar.sync`."""
PARAMETER_BYTES: Final = 4096
"""Kernel parameters below PTX 8.1; see `parameter_bytes`."""
LARGE_PARAMETER_BYTES: Final = 32764
"""Kernel parameters from PTX 8.1 on (PTX ISA, "Kernel Function Parameters")."""

_KB: Final = 1024


@dataclass(frozen=True)
class Chip:
    """One compilation target. Sizes are in bytes, counts per multiprocessor where the name says `per_sm`.

    `suffix` is `a` for instructions of exactly this chip, `f` for those of its family, else empty.
    `shared_optin` is the largest static plus dynamic shared memory of a block after opting in, and
    `shared_reserved` what the driver adds to each block when it counts blocks per multiprocessor.
    """

    arch: str
    name: str
    capability: tuple[int, int]
    suffix: str
    ptx: str
    threads_per_block: int
    warps_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    register_granularity: int
    shared_per_sm: int
    shared_static: int
    shared_optin: int
    shared_reserved: int
    shared_granularity: int
    barriers_per_sm: int
    cluster_portable: int
    cluster_max: int
    tensor_memory_columns: int

    @property
    def threads_per_sm(self) -> int:
        return self.warps_per_sm * WARP_THREADS

    @property
    def number(self) -> int:
        """The number in the name: 90 for `sm_90a`."""
        return self.capability[0] * 10 + self.capability[1]


@dataclass(frozen=True)
class _Model:
    """One row of the table: what all targets of one compute capability share, and the PTX version of each."""

    name: str
    warps: int
    blocks: int
    shared_kb: int
    barriers_per_block_slot: int
    targets: dict[str, str]
    cluster_max: int = 0
    tensor_memory_columns: int = 0


# Targets map a suffix to the lowest PTX version that knows it.
_MODELS: Final[dict[tuple[int, int], _Model]] = {
    (7, 5): _Model("Turing", 32, 16, 64, 2, {"": "6.3"}),
    (8, 0): _Model("Ampere (A100)", 64, 32, 164, 2, {"": "7.0"}),
    (8, 6): _Model("Ampere (GeForce 30)", 48, 16, 100, 1, {"": "7.1"}),
    (8, 7): _Model("Ampere (Orin)", 48, 16, 164, 1, {"": "7.4"}),
    (8, 8): _Model("Ampere", 48, 16, 100, 1, {"": "9.0"}),
    (8, 9): _Model("Ada", 48, 24, 100, 1, {"": "7.8"}),
    (9, 0): _Model("Hopper", 64, 32, 228, 2, {"": "7.8", "a": "8.0"}, 16),
    (10, 0): _Model("Blackwell (B200)", 64, 32, 228, 2, {"": "8.6", "a": "8.6", "f": "8.8"}, 16, 512),
    (10, 3): _Model("Blackwell (B300)", 64, 32, 228, 1, {"": "8.8", "a": "8.8", "f": "8.8"}, 16, 512),
    (11, 0): _Model("Blackwell (Thor)", 48, 24, 228, 1, {"": "9.0", "a": "9.0", "f": "9.0"}, 8, 512),
    (12, 0): _Model("Blackwell (GeForce 50)", 48, 24, 100, 1, {"": "8.7", "a": "8.7", "f": "8.8"}, 8),
    (12, 1): _Model("Blackwell (GB10)", 48, 24, 100, 1, {"": "8.8", "a": "8.8", "f": "8.8"}, 8),
}

# CUDA 13 renamed compute capability 10.1 to 11.0.
_RENAMED: Final = {"101": "110"}


def _make(capability: tuple[int, int], model: _Model, suffix: str, ptx: str) -> Chip:
    major, minor = capability
    ampere = major >= 8
    return Chip(
        arch=f"sm_{major}{minor}{suffix}",
        name=model.name,
        capability=capability,
        suffix=suffix,
        ptx=ptx,
        threads_per_block=1024,
        warps_per_sm=model.warps,
        blocks_per_sm=model.blocks,
        registers_per_sm=65536,
        registers_per_block=65536,
        register_granularity=256,
        shared_per_sm=model.shared_kb * _KB,
        shared_static=48 * _KB,
        # From 8.0 on one block can have all but the kilobyte that the driver keeps.
        shared_optin=(model.shared_kb - 1) * _KB if ampere else model.shared_kb * _KB,
        shared_reserved=_KB if ampere else 0,
        shared_granularity=128 if ampere else 256,
        barriers_per_sm=model.blocks * model.barriers_per_block_slot,
        cluster_portable=8 if model.cluster_max else 1,
        cluster_max=model.cluster_max or 1,
        tensor_memory_columns=model.tensor_memory_columns,
    )


def _table() -> dict[str, Chip]:
    chips = (_make(cc, model, suffix, ptx) for cc, model in _MODELS.items() for suffix, ptx in model.targets.items())
    return {chip.arch: chip for chip in chips}


CHIPS: Final[dict[str, Chip]] = _table()
"""Every supported target by name, oldest first."""


def normalize_arch(text: str) -> str:
    """The name by which CUDA 13 knows an architecture: `sm_101a` gives `sm_110a`, `90a` gives `sm_90a`.

    Raises:
        CompileError: the architecture is not supported; the message lists those that are.
    """
    found = re.fullmatch(r"(?:sm_?|compute_?)?(\d{2,3})([af]?)", str(text).strip().lower())
    if found is not None:
        number, suffix = found.groups()
        arch = f"sm_{_RENAMED.get(number, number)}{suffix}"
        if arch in CHIPS:
            return arch
    raise CompileError(f"unknown architecture {text!r}", hint=f"supported: {', '.join(CHIPS)} (sm_101 is sm_110)")


def chip(arch: str) -> Chip:
    """The facts of an architecture, by any spelling that `normalize_arch` takes."""
    return CHIPS.get(arch) or CHIPS[normalize_arch(arch)]


def arch_of_capability(major: int, minor: int) -> str:
    """The richest target that runs on a device of this compute capability: `sm_90a` for (9, 0).

    Raises:
        CompileError: the device is older or newer than the table.
    """
    name = f"sm_{major}{minor}"
    for arch in (f"{name}a", name):
        if arch in CHIPS:
            return arch
    return normalize_arch(name)


def parameter_bytes(ptx: str) -> int:
    """Bytes that a kernel's parameters may take under a PTX version."""
    return LARGE_PARAMETER_BYTES if version_key(ptx) >= (8, 1) else PARAMETER_BYTES


def version_key(version: str) -> tuple[int, int]:
    """A PTX version as a pair that compares: `"8.6"` gives (8, 6)."""
    major, minor = version.split(".")
    return int(major), int(minor)
