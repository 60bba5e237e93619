"""Rates of functions on a GPU that take turns, on a card that is warm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from bench.runner import Row
from tilewright.ops.frameworks import torch
from tilewright.tools.benching.timing import interleaved

WARM_SECONDS = 3.0
CALLS = 50


def products(
    calls: Mapping[str, Callable[[], object]], shape: tuple[int, int, int], base: str, quick: bool
) -> Iterator[Row]:
    """TFLOP/s of matrix products of a shape (M, N, K), and how long each takes beside `base`, one of them."""
    m, n, k = shape
    _warm(calls[base], 0.1 if quick else WARM_SECONDS)
    count = 5 if quick else CALLS
    found = {name: spread.p50_us for name, spread in interleaved(calls, 3, count, lambda: None).items()}
    for name, microseconds in found.items():
        rate = 2 * m * n * k / microseconds * 1e-6
        note = f"{microseconds:.1f} us, {microseconds / found[base]:.3f} of the time of {base}"
        yield Row(f"{name} {m}x{n}x{k}", rate, "TFLOP/s", count, better="higher", note=note)


def _warm(call: Callable[[], object], seconds: float) -> None:
    """Keep the card busy until its clock has settled."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        torch.cuda.synchronize()
