"""Kernels that the tests of the cache compile, here and in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.compiler import build
from tilewright.compiler.cache import lookup

ROOT = Path(__file__).resolve().parents[3]


@cute.kernel
def scale_kernel(x: cute.Tensor, factor: cutlass.Constexpr):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * factor


@cute.jit
def scale(x: cute.Tensor, factor: cutlass.Constexpr):
    scale_kernel(x, factor).launch(grid=1, block=cute.size(x))


def numbers() -> np.ndarray:
    """Eight numbers."""
    return np.arange(8, dtype=np.int32)


def compiled(factor: int, **options: Any) -> Any:
    """`scale` compiled for a factor, and right."""
    made = cute.compile(scale, numbers(), factor, **options)
    x = numbers()
    made(x)
    assert x.tolist() == [factor * n for n in range(8)]
    return made


def forget() -> None:
    """As in a new process: only the disk knows."""
    lookup.forget()
    build._cache.clear()


def run(script: str, **variables: str) -> str:
    """What a process of its own prints; `variables` go into its environment."""
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")))
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "TILEWRIGHT_TARGET": "emu",
        "TILEWRIGHT_ARCH": "sm_90a",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
