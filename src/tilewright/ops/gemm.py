"""`gemm`: the matrix product on tensor cores."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import gemm as kernels
from tilewright.kernels.elementwise import broadcast_shape
from tilewright.kernels.gemm_mixed import NARROW, WIDE, gemm_mixed
from tilewright.ops import gemm_fused
from tilewright.ops.frameworks import check_alike, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.ref import gemm as ref
from tilewright.ops.registration import define, direct


def _kernel(out: Any, a: Any, b: Any, batch_invariant: bool = False) -> None:
    if a.dtype == b.dtype:
        kernels.gemm(out, a, b, splits=not batch_invariant)
    else:
        gemm_mixed(out, a, b, splits=not batch_invariant)


FORWARD = define(
    "_gemm(Tensor(a!) out, Tensor a, Tensor b, bool batch_invariant=False) -> ()",
    kernel=_kernel,
    reference=ref.gemm,
    numpy_reference=ref.numpy_gemm,
    rows=(0, 1, 2),
)

_FLOATS = ("float16", "bfloat16", "float32")
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_RESULTS = {
    **dict.fromkeys((*_FLOATS, *_FLOAT8), _FLOATS), "float64": ("float64",), "int8": ("int32", "float32"),
}  # fmt: skip


def gemm(
    a: Any, b: Any, epilogue: Any = None, out: Any = None, *, batch_invariant: bool = False, **operands: Any
) -> Any:
    """a · b, a matrix product on tensor cores, for each matrix of a batch, and a function of it.

    Products of floats of 8 and 16 bits are added in float32, those of int8 in int32. Of float32 the kernel multiplies
    the 11 leading bits, as TF32 has them; the reference all. 8-bit floats need sm_90, whose tensor cores add their
    products with fewer bits than float32 has; scales go into an epilogue.

    Args:
        a: (..., M, K), of any strides, of PyTorch or NumPy: float16, bfloat16, float32, float64,
            int8, float8_e4m3fn or float8_e5m2.
        b: (..., K, N) of the same dtype, whose batch broadcasts with that of `a`. One of the two may have 8 bits where
            the other is float16 or bfloat16: it is converted on its way to the tensor cores, and has no gradient.
        epilogue: a function, or its source text, of `accum`, the product in the type in which it was added, and of
            `operands`, which runs in the same kernel (docs/epilogues.md). The batch then has one dimension at most.
        out: where the result goes: (..., M, N) of any strides; float16, bfloat16 or float32 for these types and 8-bit
            floats, int32 or float32 for int8, float64 for float64. With an epilogue its output D, of any type. It has
            no gradient.
        batch_invariant: whether each row of the result has the same bits whatever other rows and matrices there are, as
            long as types, orders and alignments stay: blocks do not share products along K. Not with an epilogue.
        operands: the epilogue's tensors and numbers by name, and tensors for its outputs, which else are new. Masks of
            bits are `tilewright.epilogue.Bits` of a tensor.

    Returns:
        `out`, or a new contiguous tensor of the dtype of `a`, the wider one where they differ, int32 for int8, bfloat16
        for 8-bit floats. With an epilogue that has several outputs, a dict of them by name; they have the dtype of `a`,
        float32 where they are reduced or `a` has 8 bits.

    Raises:
        ArgumentError: (a ValueError) types, shapes or devices do not go together.
        EpilogueError: (a RuntimeError) the epilogue is wrong.
    """
    if epilogue is not None:
        if batch_invariant:
            raise ArgumentError("gemm: batch_invariant=True has no epilogue", hint="run it on the result")
        if a.dtype != b.dtype:
            raise ArgumentError("gemm: operands of different dtypes have no epilogue", hint="run it on the result")
        return _with_epilogue(a, b, epilogue, out, operands)
    if operands:
        raise ArgumentError(
            f"gemm: there is no argument {next(iter(operands))}", hint="operands go with an epilogue: epilogue=..."
        )
    shape = _check(a, b, out)
    if not is_torch(a):
        out = np.empty(shape, _numpy_dtype(_wider(a, b))) if out is None else out
        FORWARD.run(out, a, b, batch_invariant)
        return out
    if direct(a, b, out):
        out = torch.empty(shape, dtype=_dtype(_wider(a, b)), device=a.device) if out is None else out
        FORWARD.run(out, a, b, batch_invariant)
        return out
    if out is not None:
        check_no_gradient("gemm", "a result in out= has no gradient", a, b, out)
        FORWARD.dispatched(out, *_of_one_rank(a, b, len(shape)), batch_invariant)
        return out
    return _Gemm.apply(*_of_one_rank(a, b, len(shape)), batch_invariant)


def _with_epilogue(a: Any, b: Any, epilogue: Any, out: Any, operands: dict[str, Any]) -> Any:
    shape = _check(a, b, None)
    if len(shape) > 3:
        raise ArgumentError(
            "gemm: with an epilogue, the batch has one dimension", values={"a": tuple(a.shape), "b": tuple(b.shape)},
            hint="flatten it: a.reshape(-1, M, K)",
        )  # fmt: skip
    given = operands if out is None else {**operands, "D": out}
    gemm_fused.check_operands(given, a)
    key = gemm_fused.key_of(epilogue)
    if not is_torch(a) or direct(a, b, *gemm_fused.tensors_of(given)):
        found = gemm_fused.fused(key, a, b, given)
    else:
        check_no_gradient("gemm", "an epilogue has no gradient", a, b, *gemm_fused.tensors_of(given))
        found = gemm_fused.dispatched(key, a, b, given)
    return found if len(found) > 1 else next(iter(found.values()))


def _check(a: Any, b: Any, out: Any) -> tuple[int, ...]:
    """The shape of the result."""
    for name, value in (("a", a), ("b", b)):
        check_tensor("gemm", name, value, kernels.DTYPES)
        if value.ndim < 2:
            raise ArgumentError(
                f"gemm: {name} needs at least two dimensions", values={"shape": tuple(value.shape)},
                hint="a vector as a matrix of one row is x[None]",
            )  # fmt: skip
    check_alike("gemm", a=a, b=b, out=out)
    if a.dtype != b.dtype and not _mixed(a, b):
        raise ArgumentError(
            "gemm: a and b have different dtypes", values={"a": dtype_name(a), "b": dtype_name(b)},
            hint="convert one of them first; float16 and bfloat16 go with 8 bits",
        )  # fmt: skip
    batch = broadcast_shape([tuple(a.shape[:-2]), tuple(b.shape[:-2])])
    if a.shape[-1] != b.shape[-2] or batch is None:
        wrong = "the batches do not broadcast" if batch is None else "a needs as many columns as b has rows"
        raise ArgumentError(
            f"gemm: {wrong}", values={"a": tuple(a.shape), "b": tuple(b.shape)},
            hint="shapes are (..., M, K) and (..., K, N), whose batches broadcast as NumPy's do",
        )  # fmt: skip
    shape = (*batch, a.shape[-2], b.shape[-1])
    if out is not None:
        check_tensor("gemm", "out", out, _RESULTS[dtype_name(_wider(a, b))])
        if tuple(out.shape) != shape:
            raise ArgumentError(
                "gemm: out has another shape than a · b", values={"out": tuple(out.shape), "expected": shape},
                hint="leave out= away, and a new tensor is returned",
            )  # fmt: skip
    return shape


def check_no_gradient(op: str, why: str, *tensors: Any) -> None:
    """Refuse tensors that require a gradient, while gradients are recorded.

    Raises:
        ArgumentError: it says `why`.
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise ArgumentError(
            f"{op}: {why}, and a tensor requires one",
            hint="call it under torch.no_grad(), or leave it out and write what it does in PyTorch",
        )


def _mixed(a: Any, b: Any) -> bool:
    """Whether one has 8 bits and the other 16."""
    names = {dtype_name(a), dtype_name(b)}
    return len(names & set(NARROW)) == 1 and len(names & set(WIDE)) == 1


def _wider(a: Any, b: Any) -> Any:
    return a if a.dtype.itemsize >= b.dtype.itemsize else b


def _dtype(a: Any) -> Any:
    if a.dtype == torch.int8:
        return torch.int32
    return torch.bfloat16 if dtype_name(a) in _FLOAT8 else a.dtype


def _numpy_dtype(a: Any) -> Any:
    if dtype_name(a) in _FLOAT8:
        return ml_dtypes.bfloat16
    return np.int32 if a.dtype == np.int8 else a.dtype


def _of_one_rank(a: Any, b: Any, rank: int) -> tuple[Any, Any]:
    """Both with so many dimensions, so that a vmap can put another in front."""
    return a[(None,) * (rank - a.ndim)], b[(None,) * (rank - b.ndim)]


if torch is not None:

    class _Gemm(torch.autograd.Function):
        @staticmethod
        def forward(a: Any, b: Any, batch_invariant: bool) -> Any:
            batch = broadcast_shape([tuple(a.shape[:-2]), tuple(b.shape[:-2])]) or ()
            out = a.new_empty((*batch, a.shape[-2], b.shape[-1]), dtype=_dtype(_wider(a, b)))
            FORWARD.dispatched(out, a, b, batch_invariant)
            return out

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            *saved, ctx.batch_invariant = inputs
            ctx.save_for_backward(*saved)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            same = {"batch_invariant": ctx.batch_invariant}
            da = gemm(grad, b.mT, **same).sum_to_size(a.shape) if ctx.needs_input_grad[0] else None
            db = gemm(a.mT, grad, **same).sum_to_size(b.shape) if ctx.needs_input_grad[1] else None
            return da, db, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, a: Any, b: Any, batch_invariant: bool) -> Any:
            in_dims = in_dims[:2]
            rank = max(item.ndim - (dim is not None) for item, dim in zip((a, b), in_dims, strict=True))
            lined_up = (
                item[(None,) * (rank + 1 - item.ndim)] if dim is None else _batch_first(item.movedim(dim, 0), rank)
                for item, dim in zip((a, b), in_dims, strict=True)
            )
            return _Gemm.apply(*lined_up, batch_invariant), 0


def _batch_first(item: Any, rank: int) -> Any:
    """(batch, ...) as (batch, 1, ..., ...) of rank + 1."""
    return item.reshape(item.shape[0], *(1,) * (rank + 1 - item.ndim), *item.shape[1:])
