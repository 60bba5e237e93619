"""How many blocks fit on a multiprocessor, and what limits them.

The model is that of CUDA's occupancy calculator (`cuda_occupancy.h`, CUDA 13.5; CUDA C++ Best Practices Guide,
"Occupancy"): registers are allocated to whole warps, each warp lives in one of four partitions of the register
file, shared memory is rounded up per block and from compute capability 8.0 on the driver adds 1 KB to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.hw.chips import MAX_REGISTERS_PER_THREAD, WARP_THREADS, Chip, chip

SM_PARTITIONS: Final = 4
"""Warp schedulers, each with a quarter of the registers."""

_UNLIMITED: Final = 2**31 - 1


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that are resident on one multiprocessor at a time.

    `limits` gives for each resource how many blocks it alone would admit; `limit` names the tightest.
    `blocks_per_sm` of 0 means that the kernel cannot be launched.
    """

    active_warps: int
    max_warps: int
    blocks_per_sm: int
    limit: str
    limits: Mapping[str, int]
    registers_per_block: int
    shared_per_block: int

    @property
    def fraction(self) -> float:
        """Active warps over the most that the multiprocessor holds, 0 to 1."""
        return self.active_warps / self.max_warps

    def __str__(self) -> str:
        return (
            f"{self.active_warps} of {self.max_warps} warps = {100 * self.fraction:.2f} % "
            f"({self.blocks_per_sm} blocks per SM, limited by {self.limit})"
        )


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _register_limit(target: Chip, registers: int, warps: int) -> tuple[int, int]:
    """Blocks that the register file admits, and the registers that one block takes."""
    if registers == 0:
        return _UNLIMITED, 0
    per_warp = _round_up(registers * WARP_THREADS, target.register_granularity)
    # The warps of a block are dealt to the partitions in turn, so the fullest one decides whether it fits.
    if per_warp * _round_up(warps, SM_PARTITIONS) > target.registers_per_block:
        return 0, per_warp * warps
    warps_per_partition = target.registers_per_sm // SM_PARTITIONS // per_warp
    return warps_per_partition * SM_PARTITIONS // warps, per_warp * warps


def _shared_limit(target: Chip, shared_bytes: int) -> tuple[int, int]:
    """Blocks that shared memory admits, and the bytes that one block takes."""
    per_block = _round_up(shared_bytes + target.shared_reserved, target.shared_granularity)
    if shared_bytes > target.shared_optin:
        return 0, per_block
    return (target.shared_per_sm // per_block if per_block else _UNLIMITED), per_block


def _barrier_limit(target: Chip, barriers: int) -> int:
    """Blocks that the hardware barriers admit; they are allocated to blocks from Hopper on."""
    if barriers == 0 or target.capability < (9, 0):
        return _UNLIMITED
    return target.barriers_per_sm // barriers


def _check(target: Chip, registers: int, shared_bytes: int, block_threads: int, barriers: int) -> None:
    if not 1 <= block_threads <= target.threads_per_block:
        raise CompileError(
            f"a block has 1 to {target.threads_per_block} threads on {target.arch}",
            values={"block": block_threads},
        )
    if not 0 <= registers <= MAX_REGISTERS_PER_THREAD:
        raise CompileError(f"a thread has 0 to {MAX_REGISTERS_PER_THREAD} registers", values={"registers": registers})
    if shared_bytes < 0 or barriers < 0:
        raise CompileError("sizes are not negative", values={"shared": shared_bytes, "barriers": barriers})


def occupancy(
    arch: str | Chip, registers: int, shared_bytes: int, block_threads: int, *, barriers: int = 1
) -> Occupancy:
    """Active warps over the most a multiprocessor holds, for one kernel and block size.

    Args:
        arch: the target, or its facts.
        registers: 32-bit registers per thread, as ptxas reports them.
        shared_bytes: static plus dynamic shared memory per block, without what the driver adds.
        block_threads: threads per block.
        barriers: named barriers that the kernel uses.

    Raises:
        CompileError: an argument is out of range. A kernel that does not fit is no error: 0 blocks.
    """
    target = arch if isinstance(arch, Chip) else chip(arch)
    _check(target, registers, shared_bytes, block_threads, barriers)
    warps = -(-block_threads // WARP_THREADS)
    by_registers, registers_per_block = _register_limit(target, registers, warps)
    by_shared, shared_per_block = _shared_limit(target, shared_bytes)
    limits = {
        "warps": target.warps_per_sm // warps,
        "registers": by_registers,
        "shared memory": by_shared,
        "blocks": target.blocks_per_sm,
        "barriers": _barrier_limit(target, barriers),
    }
    blocks = min(limits.values())
    limit = next(name for name, value in limits.items() if value == blocks)
    return Occupancy(blocks * warps, target.warps_per_sm, blocks, limit, limits, registers_per_block, shared_per_block)
