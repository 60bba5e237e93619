"""What the tests of the ops share: element types with the tolerances of their results, inputs, where ops run.

Inputs are exact in their type, and the expected values are computed from them in float64: what is tolerated is the
rounding of the result to its type (half a unit in the last place: 2^-9 of bfloat16, 2^-12 of float16, 2^-25 of float32,
twice to four times that are allowed) and, in float32, that of sums and of approximate instructions, 2 units at most.
"""

from __future__ import annotations

import contextlib

import ml_dtypes
import numpy as np

from tilewright.base import settings

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
RELATIVE = {"float16": 2**-10, "bfloat16": 2**-8, "float32": 4e-6, "float64": 1e-13}
SMALLEST = {"float16": 2**-24, "bfloat16": 1e-30, "float32": 1e-30, "float64": 0.0}  # denormals are less exact, or 0
# One column; less than an access of 16 bytes; odd; a warp; guarded and exact; a block; several accesses of a block.
SHAPES = ((3, 1), (5, 7), (2, 3, 33), (9, 64), (3, 1000), (2, 1024), (2, 1001), (2, 4096))
FEW_SHAPES = ((3, 1), (2, 3, 33), (3, 500))
CASES = [(dtype, shape) for dtype in DTYPES for shape in (SHAPES if dtype in ("float32", "bfloat16") else FEW_SHAPES)]


@contextlib.contextmanager
def on_emulator():
    """Ops on memory of the host run their kernels."""
    with settings.scope(target="emu"):
        yield


def normal(seed: int, shape, dtype: str, scale: float = 1.0, shift: float = 0.0):
    """Normal random numbers in `dtype`."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale + shift).astype(DTYPES[dtype])


def wide(array):
    """An array in float64."""
    return array.astype(np.float64)


def close(found, wanted, dtype: str, absolute: float = 0.0):
    """Assert that a result in `dtype` is near what it should be; `absolute` is for results that cancel."""
    assert found.dtype == DTYPES[dtype]
    np.testing.assert_allclose(wide(found), wanted, rtol=RELATIVE[dtype], atol=max(absolute, SMALLEST[dtype]))


def accuracy(dtype: str) -> float:
    """The rounding of one operation of the kernels, for numbers near 1."""
    return 1e-15 if dtype == "float64" else 1e-6
