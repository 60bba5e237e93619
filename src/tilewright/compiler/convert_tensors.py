"""Converting a tensor of the host or device to another element type, element by element, by a kernel."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.compiler.jit import jit, kernel
from tilewright.lang import arch
from tilewright.lang.tensors import algebra
from tilewright.lang.tensors.tensor import Tensor

_THREADS = 128


@kernel
def _convert_kernel(source: Tensor, target: Tensor) -> None:
    index = arch.block_idx()[0] * _THREADS + arch.thread_idx()[0]
    if index < algebra.size(source):
        target[index] = source[index].to(target.element_type)


@jit
def _convert(source: Tensor, target: Tensor) -> None:
    blocks = algebra.ceil_div(algebra.size(source), _THREADS)
    _convert_kernel(source, target).launch(grid=(blocks, 1, 1), block=(_THREADS, 1, 1))


def convert(src: Any, dst: Any) -> None:
    """Write the elements of `src` to `dst`, converted: floats round to nearest even, to integers towards zero.

    Raises:
        ArgumentError: the shapes differ.
    """
    if tuple(src.shape) != tuple(dst.shape):
        raise ArgumentError("convert takes tensors of one shape", values={"src": src.shape, "dst": dst.shape})
    _convert(src, dst)
