"""Row-wise kernels as functions of tensors: views as rows, the choice of a plan, compiled kernels by configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.kernels.plans import RowPlan, row_plan
from tilewright.kernels.rows import ACCESS_BYTES

_DTYPES = {
    "float16": cute.Float16, "bfloat16": cute.BFloat16, "float32": cute.Float32, "float64": cute.Float64,
    "int8": cute.Int8, "int16": cute.Int16, "int32": cute.Int32, "int64": cute.Int64, "uint8": cute.Uint8,
    "uint16": cute.Uint16, "uint32": cute.Uint32, "uint64": cute.Uint64, "bool": cute.Boolean,
}  # fmt: skip
Plans = Callable[[int, int], RowPlan]  # (columns, elements of an access) -> plan


class RowKernel:
    """Calls a kernel `launch(*tensors, plan)` on tensors (..., N) whose last dimension is contiguous.

    Tensors are those of NumPy, PyTorch, or any library with their `shape`, `dtype` and `reshape`; those of a GPU run
    there, others on the emulator. A kernel is compiled when a configuration of types and plan is first called.
    """

    def __init__(self, launch: Any, plans: Plans = row_plan) -> None:
        self._launch = launch
        self._plans = plans
        self._compiled: dict[Any, Any] = {}
        self._chosen: dict[Any, Any] = {}

    def __call__(self, *tensors: Any, plan: RowPlan | None = None) -> None:
        """Run on these tensors; `plan` overrides the choice."""
        matrices = [as_matrix(tensor) for tensor in tensors]
        columns = matrices[0].shape[1]
        if not columns or not matrices[0].shape[0]:
            return
        facts = tuple((item.dtype, stride_of(item), address_of(item) % ACCESS_BYTES) for item in matrices)
        key = (columns, facts, plan)
        executor = self._chosen.get(key)
        if executor is None:
            executor = self._chosen[key] = self._choose(columns, matrices, plan)
        executor(*matrices)

    def _choose(self, columns: int, matrices: Sequence[Any], plan: RowPlan | None) -> Any:
        dtypes = tuple(dtype_of(item) for item in matrices)
        plan = plan or self._plans(columns, widest(columns, matrices))
        target = "cuda" if on_gpu(matrices[0]) else "emu"
        key = (dtypes, plan, target)
        if key not in self._compiled:
            fakes = [fake_rows(dtype, plan) for dtype in dtypes]
            self._compiled[key] = cute.compile(self._launch, *fakes, plan, target=target)
        return self._compiled[key]


def fake_rows(dtype: Any, plan: RowPlan) -> Any:
    """What a kernel with this plan is compiled for: rows of `dtype`, any number of them, any stride between them."""
    columns = plan.columns or cute.sym_int64(divisibility=plan.vector)
    alignment = min(plan.vector * dtype.width // 8, ACCESS_BYTES)
    return cute.runtime.make_fake_tensor(
        dtype, (cute.sym_int64(), columns), stride=(cute.sym_int64(divisibility=plan.vector), 1), assumed_align=alignment
    )


def widest(columns: int, matrices: Sequence[Any]) -> int:
    """The elements of an access for which all rows of all tensors are aligned."""
    vector = ACCESS_BYTES // min(dtype_of(item).width // 8 for item in matrices)
    while vector > 1 and not all(_fits(item, columns, vector) for item in matrices):
        vector //= 2
    return vector


def _fits(matrix: Any, columns: int, vector: int) -> bool:
    bytes_ = min(vector * dtype_of(matrix).width // 8, ACCESS_BYTES)
    return columns % vector == 0 and stride_of(matrix) % vector == 0 and address_of(matrix) % bytes_ == 0


def as_matrix(tensor: Any) -> Any:
    """(..., N) as (rows, N)."""
    return tensor if tensor.ndim == 2 else tensor.reshape(-1, tensor.shape[-1])


def stride_of(matrix: Any) -> int:
    """Elements from a row to the next."""
    return matrix.strides[0] // matrix.itemsize if isinstance(matrix, np.ndarray) else matrix.stride(0)


def address_of(tensor: Any) -> int:
    """The address of the first element."""
    return tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr()


def dtype_of(tensor: Any) -> Any:
    """The language's type of a tensor's elements."""
    return _DTYPES[str(tensor.dtype).rpartition(".")[2]]


def on_gpu(tensor: Any) -> bool:
    """Whether a tensor lies in a GPU's memory."""
    return bool(getattr(tensor, "is_cuda", False))
