"""Products of 16-bit floats as a library of an H100 gives them: tensor cores, float32 sums along K in steps of 16.

Each step adds 16 products and the sum so far in one go: the terms are cut off towards zero at 25 bits below the
greatest exponent among them, added exactly, and cut off to float32 (P. Xie et al., "MMA-Sim: Bit-Accurate Reference
Model of Tensor Cores and Matrix Cores", arXiv:2511.10909). The emulator has a model of its own, whose bits were
recorded on an H100 (`tests/emu`); this one shares nothing with it. Subnormals and infinities are not modelled.
"""

from __future__ import annotations

import torch

STEP = 16  # K of one instruction on 16-bit operands
FRACTION = 25  # bits kept below the greatest exponent
_AT_ONCE = 1 << 18  # products in memory at once


def product(equation: str, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`einsum(equation, left, right)` of two 16-bit operands, summed as above and rounded once to their type.

    Letters of the equation that only one operand has must be in the result, as in every matrix product.
    """
    operands, _, result = equation.replace(" ", "").partition("->")
    first, second = operands.split(",")
    batch = [letter for letter in first if letter in second and letter in result]
    summed = [letter for letter in first if letter in second and letter not in result]
    rows, columns = ([x for x in letters if x not in batch + summed] for letters in (first, second))
    extents = dict(zip(first, left.shape, strict=True)) | dict(zip(second, right.shape, strict=True))
    a, b = (
        _grouped(operand.double(), letters, (batch, own, summed))
        for operand, letters, own in ((left, first, rows), (right, second, columns))
    )
    order = [*batch, *rows, *columns]
    full = _batched(a, b).reshape([extents[letter] for letter in order])
    return full.permute([order.index(letter) for letter in result]).to(left.dtype)


def _grouped(operand: torch.Tensor, letters: str, groups: tuple[list[str], ...]) -> torch.Tensor:
    """The operand as (batch, rows, K)."""
    moved = operand.permute([letters.index(letter) for group in groups for letter in group])
    sizes, at = [], 0
    for group in groups:
        sizes.append(int(torch.tensor(moved.shape[at : at + len(group)]).prod()))
        at += len(group)
    return moved.reshape(sizes)


def _batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """float64 (L, M, K) times (L, N, K): the float32 sums, as float64 (L, M, N)."""
    total = torch.empty(a.shape[0], a.shape[1], b.shape[1], dtype=torch.float64)
    rows = max(1, _AT_ONCE // (STEP * b.shape[1]))
    for item in range(a.shape[0]):
        for row in range(0, a.shape[1], rows):
            total[item, row : row + rows] = _block(a[item, row : row + rows], b[item])
    return total


def _block(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float64)
    for start in range(0, a.shape[1], STEP):
        total = _step(a[:, start : start + STEP].T, b[:, start : start + STEP].T, total)
    return total


def _step(a: torch.Tensor, b: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """One instruction on (K, M) and (K, N): exponents are those of the factors added, not of the product."""
    above = torch.maximum((_exponent(a)[:, :, None] + _exponent(b)[:, None, :]).amax(0), _exponent(total))
    unit = torch.ldexp(torch.ones_like(total), above - FRACTION)
    terms = (a[:, :, None] * b[:, None, :]).div_(unit).trunc_().sum(0) + torch.trunc(total / unit)
    return _cut(terms * unit)


def _exponent(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, -126, torch.frexp(x).exponent - 1)


def _cut(x: torch.Tensor) -> torch.Tensor:
    """Towards zero to the 24 bits of a float32."""
    unit = torch.ldexp(torch.ones_like(x), _exponent(x) - 23)
    return torch.trunc(x / unit) * unit
