"""Instructions of architectures after sm_90: which words of an opcode need which (PTX ISA 9.1, "Target ISA Notes")."""

from __future__ import annotations

import re
from functools import lru_cache

from tilewright.base.errors import EmulationError

NEEDED = (
    (r"tcgen05\..*", "sm_100a"),
    (r"clusterlaunchcontrol\..*", "sm_100"),
    (r"st\.bulk.*", "sm_100"),
    (r"(st|red)\.async(\.mmio)?\.release\..*", "sm_100"),
    (r"cp\.async\.bulk\..*\.cp_mask", "sm_100"),
    (r"cp\.async\.bulk\..*(tile::(gather|scatter)4|im2col::w|cta_group::).*", "sm_100a"),
    (r"tensormap\.replace\.tile\.swizzle_atomicity\..*", "sm_100a"),
    (r"ldmatrix\..*\.(m16n16|m8n16)\..*", "sm_100a"),
    (r"stmatrix\..*\.m16n8\..*", "sm_100a"),
    (r"mma\..*(kind::|block_scale).*", "sm_120a"),
    (r"cvt\.rs\..*", "sm_100a"),
    (r"cvt\..*\.s2f6x2(\..*)?", "sm_100a"),
)
"""Patterns of opcodes, and the first architecture that has them."""


def check(op: str, words: tuple[str, ...]) -> None:
    """`EmulationError` if an instruction is one of those in `NEEDED`."""
    needed = _needed(op, words)
    if needed:
        raise EmulationError(
            f"instruction {'.'.join((op, *words))} needs {needed}; the emulator has those of sm_90a and below",
            hint="compile for sm_90a",
        )


@lru_cache(maxsize=4096)
def _needed(op: str, words: tuple[str, ...]) -> str:
    opcode = ".".join((op, *words))
    return next((arch for pattern, arch in NEEDED if re.fullmatch(pattern, opcode)), "")
