"""LLVM's intrinsics of instructions that move and multiply tiles: their names, and what each needs of the chip."""

from __future__ import annotations

import itertools
from typing import Final

from tilewright.hw.atoms import matrix_copy, mma_sync
from tilewright.hw.atoms.async_copy import CP_ASYNC_BYTES


def mma(form: mma_sync.MmaSync) -> str:
    """The intrinsic of a form of `mma.sync`, named by the types that tell the forms apart."""
    m, n, k = form.shape
    if form.a_type in ("e4m3", "e5m2"):
        suffix = f"{form.c_type}.{form.a_type}.{form.b_type}.{form.c_type}"
    elif form.a_type == "f16":
        suffix = f"{form.c_type}.{form.c_type}"
    else:
        suffix = form.a_type if form.a_type == form.b_type else f"{form.a_type}.{form.b_type}"
    return f"llvm.nvvm.mma.m{m}n{n}k{k}.row.col.{suffix}"


def matrix(instruction: str, count: int, transpose: bool) -> str:
    """The intrinsic of `ldmatrix` or `stmatrix` of 8x8 matrices of 16 bits in shared memory."""
    transposed = ".trans" if transpose else ""
    return f"llvm.nvvm.{instruction}.sync.aligned.m8n8.x{count}{transposed}.b16.p3"


def cp_async(cache: str, size: int, *, masked: bool = False) -> str:
    """The intrinsic of `cp.async` of `size` bytes; a masked one takes the number of bytes that it reads."""
    return f"llvm.nvvm.cp.async.{cache}.shared.global.{size}{'.s' if masked else ''}"


def _needs() -> dict[str, str]:
    needs = {mma(form): form.feature for form in mma_sync.FORMS.values()}
    for instruction, count, transpose in itertools.product(
        ("ldmatrix", "stmatrix"), matrix_copy.MATRICES, (False, True)
    ):
        needs[matrix(instruction, count, transpose)] = instruction
    for cache, sizes in CP_ASYNC_BYTES.items():
        for size, masked in itertools.product(sizes, (False, True)):
            needs[cp_async(cache, size, masked=masked)] = "cp.async"
    return needs


WHOLE: Final = frozenset(f"llvm.nvvm.{source}2{target}.rz" for source in "fd" for target in ("i", "ui", "ll", "ull"))
"""`cvt.rzi` from float32 (f) and float64 (d), which every chip has."""

NEEDS: Final[dict[str, str]] = _needs()
"""The feature of `hw.features` that each of these intrinsics needs."""
