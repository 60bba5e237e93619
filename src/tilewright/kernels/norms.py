"""What RMSNorm and LayerNorm share: device code over a tile of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright.cute as cute
from tilewright.kernels import rows
from tilewright.kernels.rows import RowTile


def entered(tile: RowTile, x: Any, residual: Any, total: Any) -> list[Any]:
    """The thread's part of x + residual, which is written to `total`; residual and total may be None."""
    first, second = tile.load(x), tile.load(residual) if residual is not None else []
    held = rows.computed(first, x.element_type)
    if residual is not None:
        held = [a + b for a, b in zip(held, rows.computed(second, x.element_type), strict=True)]
    if total is not None:
        tile.store(total, held)
    return tile.filled(held, 0.0)


def inverse_rms(tile: RowTile, held: Sequence[Any], columns: Any, eps: Any) -> Any:
    """1 / sqrt(mean(x²) + eps) of the row."""
    (squares,) = tile.sums([rows.tree(rows.elements([item * item for item in held]), rows.add)])
    return inverse_root(squares, columns, eps)


def inverse_root(squares: Any, columns: Any, eps: Any) -> Any:
    """1 / sqrt(squares / columns + eps)."""
    kind = type(squares)
    return cute.math.rsqrt(squares / kind(columns) + kind(eps))


def moments(tile: RowTile, held: Sequence[Any], columns: Any, eps: Any) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(variance + eps) of the row.

    A warp sums its elements, then the squares of their distance from its own mean; the warps of a row exchange both.
    The squares of all are those of each about its mean, and count * (its mean - the row's mean)² (Chan, Golub and
    LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
    """
    plan = tile.plan
    total = rows.tree(rows.elements(held), rows.add)
    kind = type(total)
    total = cute.arch.warp_reduction_sum(total, threads_in_group=plan.lanes)
    count = kind(tile.warp_count())
    mean = total / count
    spread = tile.filled([item - mean for item in held], 0.0)
    squares = rows.tree(rows.elements([item * item for item in spread]), rows.add)
    squares = cute.arch.warp_reduction_sum(squares, threads_in_group=plan.lanes)
    if plan.partials == 1:
        return mean, inverse_root(squares, columns, eps)
    totals, counts, parts = tile.gathered([total, count, squares])
    row_mean = _sum(tile, totals) / kind(columns)
    about = [
        part + number * (sum_ / number - row_mean) * (sum_ / number - row_mean)
        for part, number, sum_ in zip(parts, counts, totals, strict=True)
    ]
    return row_mean, inverse_root(_sum(tile, about), columns, eps)


def _sum(tile: RowTile, parts: Sequence[Any]) -> Any:
    return cute.arch.warp_reduction_sum(rows.tree(parts, rows.add), threads_in_group=tile.plan.group)


def scaled(tile: RowTile, vectors: Sequence[Any], weight: Any, bias: Any, dtype: Any) -> list[Any]:
    """The vectors times `weight` plus `bias`, tensors (columns) or None."""
    factors = rows.computed(tile.load_columns(weight), dtype) if weight is not None else []
    offsets = rows.computed(tile.load_columns(bias), dtype) if bias is not None else []
    found = list(vectors)
    if factors:
        found = [item * factor for item, factor in zip(found, factors, strict=True)]
    if offsets:
        found = [item + offset for item, offset in zip(found, offsets, strict=True)]
    return found
