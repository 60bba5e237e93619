"""Peers in Triton, as its tutorials would write them: one program a row, or a tile.

A row of up to `ONE_BLOCK` elements is held whole; a longer one is read twice, block by block.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

ONE_BLOCK = 65536
PART = 8192
TILE = 64


@triton.jit
def _softmax(x, y, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    held = tl.load(x + row + at, mask=at < n, other=-float("inf")).to(tl.float32)
    powers = tl.exp(held - tl.max(held, 0))
    tl.store(y + row + at, (powers / tl.sum(powers, 0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def _softmax_in_parts(x, y, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    most = tl.full((block,), -float("inf"), tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        held = tl.load(x + row + start + at, mask=start + at < n, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(tl.maximum(most, held), -3.0e38)  # -inf - -inf would be no number
        total = total * tl.exp(most - higher) + tl.exp(held - higher)
        most = higher
    highest = tl.max(most, 0)
    whole = tl.sum(total * tl.exp(most - highest), 0)
    for start in range(0, n, block):
        held = tl.load(x + row + start + at, mask=start + at < n, other=0.0).to(tl.float32)
        tl.store(y + row + start + at, (tl.exp(held - highest) / whole).to(y.dtype.element_ty), mask=start + at < n)


@triton.jit
def _softmax_backward(grad, y, dx, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    total = 0.0
    for start in range(0, n, block):
        g = tl.load(grad + row + start + at, mask=start + at < n, other=0.0).to(tl.float32)
        p = tl.load(y + row + start + at, mask=start + at < n, other=0.0).to(tl.float32)
        total += tl.sum(g * p, 0)
    for start in range(0, n, block):
        g = tl.load(grad + row + start + at, mask=start + at < n, other=0.0).to(tl.float32)
        p = tl.load(y + row + start + at, mask=start + at < n, other=0.0).to(tl.float32)
        tl.store(dx + row + start + at, (p * (g - total)).to(dx.dtype.element_ty), mask=start + at < n)


@triton.jit
def _norm(x, y, weight, bias, n, eps, centred: tl.constexpr, biased: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    held = tl.load(x + row + at, mask=at < n, other=0.0).to(tl.float32)
    if centred:
        held = tl.where(at < n, held - tl.sum(held, 0) / n, 0.0)
    held = (
        held * tl.rsqrt(tl.sum(held * held, 0) / n + eps) * tl.load(weight + at, mask=at < n, other=0.0).to(tl.float32)
    )
    if biased:
        held = held + tl.load(bias + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row + at, held.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def _row_sum(x, y, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        total += tl.load(x + row + start + at, mask=start + at < n, other=0.0).to(tl.float32)
    tl.store(y + tl.program_id(0), tl.sum(total, 0).to(y.dtype.element_ty))


@triton.jit
def _transpose(x, y, m, n, tile: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
    j = tl.program_id(1).to(tl.int64) * tile + tl.arange(0, tile)
    held = tl.load(x + i[:, None] * n + j[None, :], mask=(i[:, None] < m) & (j[None, :] < n))
    tl.store(y + j[:, None] * m + i[None, :], tl.trans(held), mask=(j[:, None] < n) & (i[None, :] < m))


@triton.jit
def _cross_entropy(x, target, loss, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    most = tl.full((block,), -float("inf"), tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        held = tl.load(x + row * n + start + at, mask=start + at < n, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(tl.maximum(most, held), -3.0e38)
        total = total * tl.exp(most - higher) + tl.exp(held - higher)
        most = higher
    highest = tl.max(most, 0)
    whole = tl.sum(total * tl.exp(most - highest), 0)
    chosen = tl.load(x + row * n + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, highest + tl.log(whole) - chosen)


@triton.jit
def _cross_entropy_backward(grad, x, target, lse, dx, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    held = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    hits = tl.where(at == tl.load(target + row), 1.0, 0.0)
    slopes = (tl.exp(held - tl.load(lse + row)) - hits) * tl.load(grad + row)
    tl.store(dx + row * n + at, slopes.to(dx.dtype.element_ty), mask=at < n)


@triton.jit
def _norm_backward(
    grad, x, weight, means, rstds, dx, weights, biases, rows, n, centred: tl.constexpr, block: tl.constexpr
):
    first, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    at = tl.arange(0, block)
    mask = at < n
    scale = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    of_weight = tl.zeros((block,), tl.float32)
    of_bias = tl.zeros((block,), tl.float32)
    for row in range(first, rows, programs):
        g = tl.load(grad + row * n + at, mask=mask, other=0.0).to(tl.float32)
        held = tl.load(x + row * n + at, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstds + row)
        if centred:
            held = tl.where(mask, held - tl.load(means + row), 0.0)
        normal = held * rstd
        of_weight += g * normal
        of_bias += g
        slope = g * scale
        about = slope - normal * (tl.sum(slope * normal, 0) / n)
        if centred:
            about = about - tl.sum(slope, 0) / n
        tl.store(dx + row * n + at, (about * rstd).to(dx.dtype.element_ty), mask=mask)
    tl.store(weights + first * n + at, of_weight, mask=mask)
    if centred:
        tl.store(biases + first * n + at, of_bias, mask=mask)


@triton.jit
def _column_sum(x, y, m, n, tile_m: tl.constexpr, tile_n: tl.constexpr):
    j = tl.program_id(0).to(tl.int64) * tile_n + tl.arange(0, tile_n)
    total = tl.zeros((tile_m, tile_n), tl.float32)
    for start in range(0, m, tile_m):
        i = start + tl.arange(0, tile_m)
        mask = (i[:, None] < m) & (j[None, :] < n)
        total += tl.load(x + i[:, None].to(tl.int64) * n + j[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(y + j, tl.sum(total, 0).to(y.dtype.element_ty), mask=j < n)


@triton.jit
def _argmax(x, y, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    most = tl.full((block,), -float("inf"), tl.float32)
    place = tl.zeros((block,), tl.int64)
    for start in range(0, n, block):
        held = tl.load(x + row + start + at, mask=start + at < n, other=-float("inf")).to(tl.float32)
        place = tl.where(held > most, start + at, place)
        most = tl.maximum(most, held)
    highest = tl.max(most, 0)
    tl.store(y + tl.program_id(0), tl.min(tl.where(most == highest, place, n), 0))


@triton.jit
def _gelu(a, c, n, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    held = tl.load(a + at, mask=at < n, other=0.0).to(tl.float32)
    result = 0.5 * held * (1.0 + tl.erf(held * 0.7071067811865476))
    tl.store(c + at, result.to(c.dtype.element_ty), mask=at < n)


@triton.jit
def _fma(x, y, z, out, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    mask = column < n
    a = tl.load(x + row * n + column, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(y + column, mask=mask, other=0.0).to(tl.float32)
    result = a * b + tl.load(z + row).to(tl.float32)
    tl.store(out + row * n + column, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _add(a, b, c, n, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    mask = at < n
    tl.store(c + at, tl.load(a + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)


@triton.jit
def _epilogue(x, c, a, b, bias, d, e, f, n, columns, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    mask = at < n
    shifted = tl.load(x + at, mask=mask).to(tl.float32) + tl.load(bias + at % columns, mask=mask).to(tl.float32)
    first = tl.maximum(shifted, 0.0)
    second = first * tl.load(a + at, mask=mask).to(tl.float32) + tl.load(c + at, mask=mask).to(tl.float32)
    third = second * tl.load(b + at, mask=mask).to(tl.float32)
    tl.store(d + at, third.to(d.dtype.element_ty), mask=mask)
    tl.store(e + at, second.to(e.dtype.element_ty), mask=mask)
    tl.store(f + at, first.to(f.dtype.element_ty), mask=mask)


def _warps(block: int) -> int:
    return 4 if block <= 1024 else 8 if block <= 4096 else 16 if block <= 16384 else 32


def softmax(x: Any) -> Any:
    """Softmax of the rows of a matrix."""
    (rows, n), y = x.shape, torch.empty_like(x)
    block = triton.next_power_of_2(n)
    if block > ONE_BLOCK:
        _softmax_in_parts[(rows,)](x, y, n, block=PART, num_warps=16)
    else:
        _softmax[(rows,)](x, y, n, block=block, num_warps=_warps(block))
    return y


def softmax_backward(grad: Any, y: Any) -> Any:
    """The gradient of softmax's input."""
    (rows, n), dx = y.shape, torch.empty_like(y)
    block = min(triton.next_power_of_2(n), PART)
    _softmax_backward[(rows,)](grad, y, dx, n, block=block, num_warps=_warps(block))
    return dx


def norm(x: Any, weight: Any, bias: Any, eps: float, centred: bool) -> Any:
    """RMSNorm, or LayerNorm if `centred`, of the rows of a matrix of up to `ONE_BLOCK` columns."""
    (rows, n), y = x.shape, torch.empty_like(x)
    block = triton.next_power_of_2(n)
    given = bias if bias is not None else weight
    _norm[(rows,)](
        x, y, weight, given, n, eps, centred=centred, biased=bias is not None, block=block, num_warps=_warps(block)
    )
    return y


def row_sum(x: Any) -> Any:
    """The sums of a matrix's rows."""
    (rows, n), y = x.shape, torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
    block = min(triton.next_power_of_2(n), 4096)
    _row_sum[(rows,)](x, y, n, block=block, num_warps=8)
    return y


def transpose(x: Any) -> Any:
    """The transpose of a matrix, as new memory."""
    (m, n), y = x.shape, torch.empty(x.shape[1], x.shape[0], device=x.device, dtype=x.dtype)
    _transpose[(triton.cdiv(m, TILE), triton.cdiv(n, TILE))](x, y, m, n, tile=TILE, num_warps=8)
    return y


def cross_entropy(x: Any, target: Any) -> Any:
    """The loss of each row, in float32."""
    (rows, n), loss = x.shape, torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
    block = min(triton.next_power_of_2(n), PART)
    _cross_entropy[(rows,)](x, target, loss, n, block=block, num_warps=_warps(block))
    return loss


def add(a: Any, b: Any) -> Any:
    """The sum of two tensors of one shape."""
    c = torch.empty_like(a)
    _add[(triton.cdiv(c.numel(), 4096),)](a, b, c, c.numel(), block=4096, num_warps=8)
    return c


def gelu(a: Any) -> Any:
    """GELU by the error function."""
    c = torch.empty_like(a)
    _gelu[(triton.cdiv(c.numel(), 4096),)](a, c, c.numel(), block=4096, num_warps=8)
    return c


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of a matrix, a row and a column."""
    (rows, n), out = a.shape, torch.empty_like(a)
    _fma[(rows, triton.cdiv(n, 4096))](a, b, c, out, n, block=4096, num_warps=8)
    return out


def column_sum(x: Any) -> Any:
    """The sums of a matrix's columns."""
    (m, n), y = x.shape, torch.empty(x.shape[1], device=x.device, dtype=x.dtype)
    _column_sum[(triton.cdiv(n, TILE),)](x, y, m, n, tile_m=128, tile_n=TILE, num_warps=8)
    return y


def argmax(x: Any) -> Any:
    """The column of each row's greatest number."""
    (rows, n), y = x.shape, torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
    block = min(triton.next_power_of_2(n), 4096)
    _argmax[(rows,)](x, y, n, block=block, num_warps=8)
    return y


def cross_entropy_backward(grad: Any, x: Any, target: Any, lse: Any) -> Any:
    """The gradient of the logits."""
    (rows, n), dx = x.shape, torch.empty_like(x)
    block = min(triton.next_power_of_2(n), PART)
    grid = rows, triton.cdiv(n, block)
    _cross_entropy_backward[grid](grad, x, target, lse, dx, n, block=block, num_warps=_warps(block))
    return dx


def norm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> tuple[Any, ...]:
    """The gradients of x and weight, and of the bias where there is a `mean`: of rows that a program holds whole."""
    (rows, n), dx = x.shape, torch.empty_like(x)
    programs, block = min(rows, 264), triton.next_power_of_2(n)
    centred, given = mean is not None, rstd if mean is None else mean
    weights, biases = (torch.empty(programs, n, device=x.device, dtype=torch.float32) for _ in range(2))
    _norm_backward[(programs,)](
        grad, x, weight, given, rstd, dx, weights, biases, rows, n, centred=centred, block=block,
        num_warps=_warps(block),
    )  # fmt: skip
    sums = (weights, biases) if centred else (weights,)
    return dx, *(each.sum(0).to(weight.dtype) for each in sums)


def epilogue(x: Any, c: Any, a: Any, b: Any, bias: Any) -> Any:
    """relu(x + bias), that times a plus c, and that times b, the last first; bias is a row."""
    d, e, f = (torch.empty_like(x) for _ in range(3))
    n, columns = x.numel(), x.shape[-1]
    _epilogue[(triton.cdiv(n, 1024),)](x, c, a, b, bias, d, e, f, n, columns, block=1024, num_warps=8)
    return d, e, f
