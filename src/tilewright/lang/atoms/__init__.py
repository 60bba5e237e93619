"""Copy and MMA atoms, and their tilings over threads: independent of the target."""

from tilewright.lang.atoms.copy_atom import CopyAtom, CopyOp, CopyTraits, CopyUniversalOp, make_copy_atom
from tilewright.lang.atoms.copying import autovec_copy, basic_copy, basic_copy_if, copy, copy_atom_call
from tilewright.lang.atoms.gemm import gemm, mma_atom_call
from tilewright.lang.atoms.mma_atom import MmaAtom, MmaOp, MmaTraits, MmaUniversalOp, make_mma_atom
from tilewright.lang.atoms.tiled_copy import (
    ThrCopy,
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
)
from tilewright.lang.atoms.tiled_mma import ThrMma, TiledMma, make_tiled_mma

__all__ = [
    "CopyAtom",
    "CopyOp",
    "CopyTraits",
    "CopyUniversalOp",
    "MmaAtom",
    "MmaOp",
    "MmaTraits",
    "MmaUniversalOp",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
    "autovec_copy",
    "basic_copy",
    "basic_copy_if",
    "copy",
    "copy_atom_call",
    "gemm",
    "make_copy_atom",
    "make_cotiled_copy",
    "make_mma_atom",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_C_atom",
    "make_tiled_copy_D",
    "make_tiled_copy_S",
    "make_tiled_copy_tv",
    "make_tiled_mma",
    "mma_atom_call",
]
