"""Row-wise kernels as functions of tensors: views as rows, the choice of a plan, compiled kernels by configuration."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base import settings
from tilewright.compiler.target_choice import choose_arch
from tilewright.hw.chips import chip
from tilewright.kernels.plans import ACCESS_BYTES, RowPlan, reading_plan, row_plan
from tilewright.kernels.tuned_plans import tuned_plan
from tilewright.targets.host import router

ROWS, RESULT, PARTS, COLUMNS, NUMBERS, SCALAR, CONSTANT = (
    "rows", "result", "parts", "columns", "numbers", "scalar", "constant",
)  # fmt: skip
"""What a kernel takes: (..., N) that it reads; (..., N) that it writes; (parts, N) that it writes; (N) that all rows
share; a number for each row (...); a number; what is compiled in."""
_TENSORS = (ROWS, RESULT, PARTS, COLUMNS, NUMBERS)
_MATRICES = (ROWS, RESULT, PARTS)
_ROUTED = {
    ROWS: router.MATRIX, RESULT: router.MATRIX, PARTS: router.FREE_MATRIX, COLUMNS: router.COLUMNS,
    NUMBERS: router.STRIDED, SCALAR: router.NUMBER, CONSTANT: router.CONSTANT,
}  # fmt: skip

_DTYPES = {
    "float16": cute.Float16, "bfloat16": cute.BFloat16, "float32": cute.Float32, "float64": cute.Float64,
    "int32": cute.Int32, "int64": cute.Int64,
}  # fmt: skip
Plans = Callable[..., RowPlan]  # see `row_plan`


class RowKernel:
    """Calls `launch(*arguments, plan)`, whose arguments are of these `kinds`; a tensor may be None.

    Tensors are those of NumPy, PyTorch, or any library with their `shape`, `dtype` and `reshape`; the last dimension of
    rows is contiguous. Those of a GPU run there, others on the emulator. A kernel is compiled when a configuration of
    types and plan is first called; on a GPU, later calls find it without Python (`router`).
    """

    def __init__(self, launch: Any, kinds: Sequence[str], plans: Plans = row_plan, tuned_as: str = "") -> None:
        """`plans` chooses where no tuned plan is known, under `tuned_as` or the kernel's own name."""
        self.name = tuned_as or launch.function.__name__.removeprefix("launch_")
        self._launch = launch
        self._kinds = tuple(kinds)
        self._places = [(place, kind) for place, kind in enumerate(kinds) if kind is not SCALAR]
        self._plans = plans
        self._compiled: dict[Any, Any] = {}
        self._chosen: dict[Any, _Call] = {}
        self.router = router.Router([_ROUTED[kind] for kind in kinds])

    def __call__(self, *arguments: Any, plan: RowPlan | None = None, usual: RowPlan | None = None) -> None:
        """Run on these arguments; `plan` overrides the choice, `usual` is the choice where the caller knows it."""
        if plan is not None or not self.quick(*arguments):
            self._run(arguments, plan or usual, plan is None)

    def quick(self, *arguments: Any) -> bool:
        """Run on these arguments by native code alone; False where that was not possible, and nothing is done."""
        try:
            return not self.router.call(*arguments)
        except Exception:  # noqa: BLE001  (tvm-ffi raises whatever class an error names)
            return False  # the other way says what is wrong

    def _run(self, arguments: Sequence[Any], plan: RowPlan | None, routes: bool) -> None:
        values = list(arguments)
        facts: list[Any] = [plan]
        for place, kind in self._places:
            value = values[place]
            if value is None or kind is CONSTANT:
                facts.append(value)
                continue
            if kind not in _MATRICES:
                value = values[place] = value if value.ndim == 1 else value.reshape(-1)
                facts += value.dtype, address_of(value) % ACCESS_BYTES
                continue
            if 0 in value.shape:
                return
            value = values[place] = as_matrix(value)
            if type(value) is np.ndarray:
                facts += value.dtype, value.shape[1], value.strides[0], address_of(value) % ACCESS_BYTES
            else:
                step, address = value.stride(0), value.data_ptr() % ACCESS_BYTES
                facts += value.is_cuda, value.dtype, value.shape[1], step, address
        key = tuple(facts)
        call = self._chosen.get(key)
        if call is None:
            call = self._chosen[key] = self._choose(values, plan, routes)
        call(values)

    def plan_for(self, *arguments: Any) -> RowPlan:
        """The plan that a call with these arguments takes."""
        pairs = [
            (kind, as_matrix(value) if kind in _MATRICES and value is not None else value)
            for kind, value in zip(self._kinds, arguments, strict=True)
            if kind is not PARTS  # they are made for the plan
        ]
        read = [value for kind, value in pairs if kind is ROWS and value is not None]
        columns, vector, size = read[0].shape[1], widest(pairs), min(dtype_of(item).width for item in read) // 8
        target = "cuda" if on_gpu(read[0]) else "emu"
        most = most_blocks(target)
        if vector * size < ACCESS_BYTES and self._plans in (row_plan, reading_plan) and begin_alike(pairs):
            plan = row_plan(columns, ACCESS_BYTES // size, size, held=len(read), most_blocks=most)
            if plan.threads >= 2 * plan.vector:  # its first threads have the elements outside whole vectors
                return replace(plan, columns=0, shifted=True)
        tuned = tuned_plan(_arch(target), self.name, columns, size, len(read), vector)
        return tuned or self._plans(columns, vector, size, held=len(read), most_blocks=most)

    def _choose(self, values: Sequence[Any], plan: RowPlan | None, routes: bool) -> _Call:
        pairs = list(zip(self._kinds, values, strict=True))
        plan = plan or self.plan_for(*values)
        first = next(value for kind, value in pairs if kind is ROWS and value is not None)
        target = "cuda" if on_gpu(first) else "emu"
        key = (tuple(_configuration(kind, value) for kind, value in pairs), plan, target)
        if key not in self._compiled:
            fakes = [_fake(kind, value, plan) for kind, value in pairs]
            self._compiled[key] = cute.compile(self._launch, *fakes, plan, target=target)
        executor = self._compiled[key]
        if target == "cuda" and routes:
            self.router.add(executor.device.host, values)
        places = [place for place, (kind, value) in enumerate(pairs) if value is not None and kind is not CONSTANT]
        return _Call(executor, places)


class _Call:
    """A compiled kernel, and the places of the arguments that it takes."""

    def __init__(self, executor: Any, places: Sequence[int]) -> None:
        self._executor = executor
        self._native = executor.native if executor.target == "cuda" else executor
        self._pick = operator.itemgetter(*places)

    def __call__(self, values: Sequence[Any]) -> None:
        taken = self._pick(values)
        try:
            self._native(*taken)
        except Exception:
            if self._native is self._executor:
                raise
            self._executor(*taken)  # which says what is wrong


def most_blocks(target: str) -> int:
    """The most blocks of a cluster on the chip that is compiled for."""
    return chip(_arch(target)).cluster_max


def _arch(target: str) -> str:
    return choose_arch(settings.get("arch"), target)


def _configuration(kind: str, value: Any) -> Any:
    """What of an argument is compiled in."""
    return dtype_of(value) if kind in _TENSORS and value is not None else None if kind is SCALAR else value


def _fake(kind: str, value: Any, plan: RowPlan) -> Any:
    """What a kernel with this plan is compiled for in the place of `value`."""
    if value is None or kind not in _TENSORS:
        return value
    dtype = dtype_of(value)
    if kind is NUMBERS:
        return cute.runtime.make_fake_tensor(dtype, (cute.sym_int64(),), stride=(cute.sym_int64(),))
    vector = 1 if plan.shifted else plan.vector
    columns = plan.columns or cute.sym_int64(divisibility=vector)
    alignment = min(vector * dtype.width // 8, ACCESS_BYTES)
    if kind is COLUMNS:
        return cute.runtime.make_fake_tensor(dtype, (columns,), stride=(1,), assumed_align=alignment)
    step = cute.sym_int64(divisibility=vector)
    return cute.runtime.make_fake_tensor(dtype, (cute.sym_int64(), columns), stride=(step, 1), assumed_align=alignment)


def widest(pairs: Sequence[tuple[str, Any]]) -> int:
    """The elements of an access for which all rows and columns are aligned: 16 bytes of the narrowest at most."""
    tensors = [value for kind, value in pairs if kind in (*_MATRICES, COLUMNS) and value is not None]
    vector: int = ACCESS_BYTES // min(dtype_of(item).width // 8 for item in tensors)
    while vector > 1 and not all(_fits(item, vector) for item in tensors):
        vector //= 2
    return vector


def begin_alike(pairs: Sequence[tuple[str, Any]]) -> bool:
    """Whether each row begins as far from a multiple of 16 bytes in one matrix as in all others, of one element size.

    It does not in tensors that all rows share: those are better read in the order of their elements.
    """
    if any(kind is COLUMNS and value is not None for kind, value in pairs):
        return False
    matrices = [value for kind, value in pairs if kind in _MATRICES and value is not None]
    places = {
        (width := dtype_of(item).width // 8, address_of(item) % ACCESS_BYTES, stride_of(item) * width % ACCESS_BYTES)
        for item in matrices
    }  # fmt: skip
    return len(places) == 1


def _fits(tensor: Any, vector: int) -> bool:
    bytes_ = min(vector * dtype_of(tensor).width // 8, ACCESS_BYTES)
    steps = tensor.shape[-1] % vector == 0 and (tensor.ndim == 1 or stride_of(tensor) % vector == 0)
    return bool(steps and address_of(tensor) % bytes_ == 0)


def as_matrix(tensor: Any) -> Any:
    """(..., N) as (rows, N) with contiguous rows: a view where strides allow it, else a copy."""
    matrix = tensor if tensor.ndim == 2 else tensor.reshape(-1, tensor.shape[-1])
    if type(matrix) is np.ndarray:
        return matrix if matrix.strides[1] == matrix.itemsize else np.ascontiguousarray(matrix)
    return matrix if matrix.stride(1) == 1 else matrix.contiguous()


def stride_of(matrix: Any) -> int:
    """Elements from a row to the next; of a single row, its length."""
    if matrix.shape[0] == 1:
        return int(matrix.shape[1])
    return int(matrix.strides[0] // matrix.itemsize if isinstance(matrix, np.ndarray) else matrix.stride(0))


def address_of(tensor: Any) -> int:
    """The address of the first element."""
    return int(tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr())


def dtype_of(tensor: Any) -> Any:
    """The language's type of a tensor's elements."""
    return _DTYPES[str(tensor.dtype).rpartition(".")[2]]


def on_gpu(tensor: Any) -> bool:
    """Whether a tensor lies in a GPU's memory."""
    return bool(getattr(tensor, "is_cuda", False))
