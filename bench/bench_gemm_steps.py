"""The steps of docs/gemm.md: rates beside the library's and cuBLAS on a GPU, else what the emulator counts.

`python scripts/gemm_tutorial.py FILE` brings the rates of a record into the page. The first steps are left out of the
large product, which would take seconds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import tilewright.cute as cute
from bench.on_device import products
from bench.runner import Row
from scripts.gemm_tutorial import LIBRARY, PEER, STEPS, counted, step
from tilewright import ops
from tilewright.ops.frameworks import torch
from tilewright.targets.nvidia.devices import driver as cuda

SHAPES = (4096, 4096, 4096), (8192, 8192, 8192)
SLOW = "step1_naive", "step2_shared_tile", "step3_register_tile"
_MOST_ERROR = 8e-3
_COUNTS = "instructions of threads", "sectors", "wavefronts", "bank conflicts"


def rows(quick: bool) -> Iterator[Row]:
    """On a GPU the rates, checked first; else the counts for 1,000 products."""
    if torch is None or not cuda.available():
        for name, counts in counted().items():
            for what, count in zip(_COUNTS, counts, strict=True):
                yield Row(f"{name}: {what}", count, "a thousand products", note="emulator")
        return
    for shape in ((1024, 1024, 1024),) if quick else SHAPES:
        yield from products(_calls(shape), shape, PEER, quick)


def _calls(shape: tuple[int, int, int]) -> dict[str, Callable[[], object]]:
    """The steps, the library and cuBLAS on normal random numbers; each was right on some rows."""
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").bfloat16() for rows in (m, n))
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    as_tensors = importlib.import_module(step(next(iter(STEPS))).main.__module__).as_tensors
    calls: dict[str, Callable[[], object]] = {}
    for name in STEPS:
        if name not in SLOW or shape == SHAPES[0]:
            tensors = as_tensors(a, b, c)
            calls[name] = _bound(cute.compile(step(name).gemm, *tensors, target="cuda"), tensors)
    calls[LIBRARY] = lambda: ops.gemm(a, b.T, out=c)
    calls[PEER] = lambda: torch.mm(a, b.T, out=c)
    exact = a[:64].double() @ b.double().T
    for name, call in calls.items():
        c.fill_(float("nan"))
        call()
        error = float((c[:64].double() - exact).norm() / exact.norm())
        if not error < _MOST_ERROR:
            raise AssertionError(f"{name} is wrong: its relative error is {error:.1e}")
    return calls


def _bound(compiled: Any, tensors: Any) -> Callable[[], object]:
    return lambda: compiled(*tensors)
