"""How an H100's tensor cores sum: the published model of their rounding, on float64 matrices.

One fused step takes C and all products of K: every term is aligned to the greatest exponent among them, cut off
towards zero after 25 fractional bits (13 for fp8 in wgmma), and added exactly; the sum is then cut off to float32
or rounded to nearest to f16. Source: P. Xie, Y. Wang, F. Yang, M. Yang, "MMA-Sim: Bit-Accurate Reference Model of
Tensor Cores and Matrix Cores", arXiv:2511.10909. ptxas builds two forms that sm_90 lacks from others: fp8 `mma.sync`
(two f16 steps from zero, elements 0 and 1 of each four, then 2 and 3; C is added last) and m8n8k4 of f16 (a chain of
float32 fused multiply-adds from zero; C is added last). Recorded on an H100: the same bits where sums are not exact
(kernels mma_inexact_*, wgmma_inexact_* of the differential suite).
"""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.numerics import exact, floats
from tilewright.targets.emu.numerics.formats import FORMATS, Array, some

FRACTION, FRACTION_FP8 = 25, 13
ZERO_EXPONENT = -126  # what a zero counts as when the greatest exponent is sought
FP8 = ("e4m3", "e5m2")
ABSENT = -(1 << 20)  # the exponent of an element that is not there: never the greatest
CHUNK = 1 << 16  # products in flight at once


def fused(
    a: Array,
    b: Array,
    c: Array,
    types: tuple[str, str, str],
    d_type: str,
    fraction: int = FRACTION,
    taken: Array | None = None,
) -> Array:
    """a @ b + c in one fused step, as float32 or float16.

    `a` is float64 (..., M, K), `b` (..., K, N), `c` (..., M, N); `types` are their element types. With the short
    fraction of fp8 a float32 result keeps as many fractional bits. `taken`, booleans of the shape of `a`, says which
    elements of a sparse A there are: the others have no products, not even with an infinity or a NaN of B.
    """
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (np.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in (a, b, c))
    total = np.empty(c.shape)
    exponents = [_exponents(x, type) for x, type in zip((a, b, c), types, strict=True)]
    finite = _finite(a) and _finite(b) and _finite(c)
    plain = total if finite else _plain(a, b, taken, lead) + c
    if taken is not None:
        exponents[0] = np.where(np.broadcast_to(taken, (*lead, *a.shape[-2:])).reshape(a.shape), exponents[0], ABSENT)
        b = b if finite else np.where(np.isfinite(b), b, 0.0)
    for batch, rows in _parts(a.shape, b.shape[-1]):
        total[batch, rows] = _sum(
            (a[batch, rows], b[batch], c[batch, rows]),
            (exponents[0][batch, rows], exponents[1][batch], exponents[2][batch, rows]),
            fraction,
        )
    if not finite:
        total = np.where(np.isfinite(plain), total, plain)
    return _rounded(total, d_type, fraction).reshape(*lead, *c.shape[-2:])


def _plain(a: Array, b: Array, taken: Array | None, lead: tuple[int, ...]) -> Array:
    """The products' sum as float64 has it, to tell which results are infinite or NaN."""
    if taken is None:
        return np.asarray(np.matmul(a, b))
    there = np.broadcast_to(taken, (*lead, *a.shape[-2:])).reshape(a.shape)
    total = np.zeros((*a.shape[:-1], b.shape[-1]))
    for k in range(a.shape[-1]):
        total += np.where(there[..., k, None], a[..., k, None] * b[..., None, k, :], 0.0)
    return total


def _parts(shape: tuple[int, ...], columns: int) -> list[tuple[slice, slice]]:
    """Slices of batch and rows with at most about `CHUNK` products each."""
    count, m, k = shape
    rows = max(1, min(m, CHUNK // (k * columns)))
    batch = max(1, CHUNK // (m * k * columns))
    return [
        (slice(start, start + batch), slice(row, row + rows))
        for start in range(0, count, batch)
        for row in range(0, m, rows)
    ]


def _exponents(x: Array, type: str) -> Array:
    """Exponents of values as the multiplier sees them: a subnormal has that of the least normal value."""
    _, exponent = np.frexp(x)
    return np.where(x == 0, np.int32(ZERO_EXPONENT), np.maximum(exponent - 1, 1 - FORMATS[type].bias))


def _sum(values: tuple[Array, ...], exponents: tuple[Array, ...], fraction: int) -> Array:
    """The aligned and cut terms' sum; K is the leading axis of the products, which NumPy reduces fastest."""
    (a, b, c), (ea, eb, ec) = values, exponents
    left, right = (np.ascontiguousarray(np.moveaxis(x, -1, 0))[..., None] for x in (ea, a))
    above, below = (np.ascontiguousarray(np.moveaxis(x, -2, 0))[..., None, :] for x in (eb, b))
    top = np.maximum(np.maximum.reduce(left + above, axis=0), ec)
    scale = np.ldexp(1.0, fraction - top)
    terms = right * below
    terms *= scale
    np.trunc(terms, out=terms)
    whole = np.add.reduce(terms, axis=0) + np.trunc(c * scale)
    return np.asarray(np.ldexp(whole, top - fraction) + 0.0)  # a zero sum is +0


def _finite(x: Array) -> bool:
    return bool(some(np.isfinite(x)) == x.size)


def _rounded(total: Array, d_type: str, fraction: int) -> Array:
    if d_type == "f16":
        return floats.canonical(total.astype(np.float16), "f16")
    r = exact.narrow(total, np.float32, "rz")
    if fraction < FORMATS["f32"].mantissa:
        kept = np.uint32(0xFFFFFFFF << (FORMATS["f32"].mantissa - fraction) & 0xFFFFFFFF)
        r = np.where(np.isfinite(r), (r.view(np.uint32) & kept).view(np.float32), r)
    r = np.where(np.abs(total) >= 2.0**128, np.copysign(np.float32(np.inf), r), r)
    return floats.canonical(r, "f32")


def by_halves(a: Array, b: Array, c: Array, d_type: str) -> Array:
    """fp8 `mma.sync`: two fused steps of f16 from zero, then C."""
    types = ("f16", "f16", d_type)
    first = np.arange(a.shape[-1]) % 4 < 2
    total = np.zeros(c.shape)
    for chosen in (first, ~first):
        step = fused(a[..., :, chosen], b[..., chosen, :], total, types, d_type)
        total = step.astype(np.float64)
    dtype = np.float16 if d_type == "f16" else np.float32
    return floats.add(total.astype(dtype), c.astype(dtype), type=d_type)


def by_chain(a: Array, b: Array, c: Array, d_type: str) -> Array:
    """m8n8k4 of f16: a chain of float32 fused multiply-adds from zero, then C, then rounding to `d_type`."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    total = np.zeros(c.shape, np.float32)
    for k in range(a.shape[-1]):
        x, y = np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :])
        total = floats.fma(x, y, total)
    total = floats.add(total, c.astype(np.float32))
    return total if d_type == "f32" else floats.canonical(total.astype(np.float16), "f16")
