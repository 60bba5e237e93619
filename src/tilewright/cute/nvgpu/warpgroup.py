"""`cute.nvgpu.warpgroup`: products of a warpgroup (wgmma)."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.nvgpu.warpgroup import (
    Field,
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    commit_group,
    fence,
    make_smem_layout_atom,
    wait_group,
)

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "Field", "MmaF16BF16Op", "MmaF8Op", "MmaI8Op", "MmaTF32Op", "OperandMajorMode", "OperandSource",
    "SmemLayoutAtomKind", "commit_group", "fence", "make_smem_layout_atom", "wait_group",
]  # fmt: skip
