"""Sizes of a chip's memories."""

from __future__ import annotations

from tilewright.hw.chips import chip, normalize_arch


def get_smem_capacity_in_bytes(compute_capability: str = "sm_80") -> int:
    """The most shared memory a block may have on a chip, in bytes.

    Raises:
        CompileError: the chip is unknown.
    """
    return chip(normalize_arch(compute_capability)).shared_optin
