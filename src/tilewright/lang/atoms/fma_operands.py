"""Operands of products of single numbers: without the mode of an instruction's values, and from any memory.

As CuTe's own `gemm` has them: (M) x (N) is an outer product, (M,K) x (N,K) a product of matrices, and operands that lie
in shared or global memory are read into registers step by step of K.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.lang.atoms.copying import autovec_copy
from tilewright.lang.tensors.algebra import prepend_ones
from tilewright.lang.tensors.allocation import make_rmem_tensor_like
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import rank, size

Operands = tuple[Tensor, Tensor, Tensor, Tensor]


def with_values(d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Operands:
    """D, A, B, C with a mode of one value in front, where D is (M,N)."""
    if int(rank(d)) != 2:
        return d, a, b, c
    d, a, b, c = (prepend_ones(tensor, int(rank(tensor)) + 1) for tensor in (d, a, b, c))
    return d, a, b, c


def lie_in_memory(*operands: Tensor) -> bool:
    """Whether one of the operands lies in shared or global memory."""
    return any(not tensor.is_coordinates and tensor.memspace is not AddressSpace.rmem for tensor in operands)


def steps_in_registers(d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Iterator[Operands]:
    """D, A, B, C of each step of K, A and B copied to registers."""
    if int(rank(a)) != 3:
        yield d, _loaded(a), _loaded(b), c
        return
    for step in range(int(size(a, mode=[2]))):
        yield d, _loaded(a[None, None, step]), _loaded(b[None, None, step]), c if step == 0 else d


def _loaded(tensor: Tensor) -> Tensor:
    if not lie_in_memory(tensor):
        return tensor
    fragment = make_rmem_tensor_like(tensor)
    autovec_copy(tensor, fragment)
    return fragment
