"""Whether a result is right, before it is timed.

Two bounds hold against the result in float64, by the dtype of the op: the norm of the error over the norm of the
result, and the largest error over the largest result. They are wide enough for any sound order of float32 sums, with
intermediate values of the op's own dtype, and narrow enough that a row gone wrong, or a sum in 16 bits, shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ops.frameworks import torch

NORM = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-12}
"""About twice the unit roundoff of 16-bit types; for wide types what summing 2¹⁸ numbers in any order may lose."""
LARGEST = 4.0
"""How much more the largest single error may be."""


class WrongResult(Exception):
    """A backend's result is not the op's."""


def check(results: tuple[Any, ...], exact: tuple[Any, ...], dtype: str) -> None:
    """Compare results with those in float64.

    Raises:
        WrongResult: it says which result, and by how much.
    """
    if len(results) != len(exact):
        raise WrongResult(f"{len(results)} results instead of {len(exact)}")
    for number, (found, wanted) in enumerate(zip(results, exact, strict=True)):
        if tuple(found.shape) != tuple(wanted.shape):
            raise WrongResult(f"result {number} has shape {tuple(found.shape)} instead of {tuple(wanted.shape)}")
        if not wanted.is_floating_point():
            if not torch.equal(found.to(wanted.dtype), wanted):
                raise WrongResult(f"result {number} differs")
            continue
        _check_floats(number, found, wanted, dtype)


def _check_floats(number: int, found: Any, wanted: Any, dtype: str) -> None:
    error = found.double() - wanted
    norm = float(torch.linalg.vector_norm(error)) / max(float(torch.linalg.vector_norm(wanted)), 1e-300)
    if not norm <= NORM[dtype]:  # not a number is wrong too
        raise WrongResult(f"result {number}: its error has norm {norm:.2e} of the result's, allowed {NORM[dtype]:.0e}")
    largest = float(error.abs().max()) / max(float(wanted.abs().max()), 1e-300)
    if not largest <= LARGEST * NORM[dtype]:
        allowed = LARGEST * NORM[dtype]
        raise WrongResult(
            f"result {number}: its largest error is {largest:.2e} of the largest value, allowed {allowed:.0e}"
        )


def spoil(shapes: Sequence[tuple[tuple[int, ...], Any]], device: str) -> None:
    """Fill freed memory with what is no result, so that a kernel that writes nothing is caught.

    PyTorch gives memory of these (shape, dtype) again to the next one who asks for as much.
    """
    spoiled = [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in shapes]
    for item in spoiled:
        item.fill_(float("nan") if item.is_floating_point() else 77)
