"""epilogue: a fused function of four tensors and a row, with three results, by `tilewright.epilogue.compile`."""

from __future__ import annotations

import functools
from typing import Any

from tilewright import epilogue
from tilewright.cute import Float32, Float64
from tilewright.ops.frameworks import torch
from tilewright.tools.benching.subjects.subject import Inputs, Subject, in_triton, narrowed

NAMES = ("accum", "C", "A", "B", "bias")


def _inputs(make: Inputs) -> tuple[Any, ...]:
    shape = make.case.shape
    return (*(make.normal(*shape) for _ in range(4)), make.normal(shape[-1]))


def _epilogue(accum: Any, C: Any, A: Any, B: Any, bias: Any) -> Any:
    F = epilogue.relu(accum + bias)
    E = epilogue.multiply_add(F, A, C)
    D = E * B
    return {"D": D, "E": E, "F": F}


def _formula(x: Any, c: Any, a: Any, b: Any, bias: Any) -> Any:
    f = torch.relu(x + bias)
    e = f * a + c
    return e * b, e, f


@functools.cache
def _compiled(dtype: Any, rank: int) -> Any:
    """The kernel for tensors of a type, of any size."""
    examples = {name: torch.empty((8,) * (1 if name == "bias" else rank), dtype=dtype) for name in (*NAMES, *"DEF")}
    compute = Float64 if dtype == torch.float64 else Float32
    return epilogue.compile(_epilogue, examples, element_compute=compute)


def _kernel(*inputs: Any) -> Any:
    found = _compiled(inputs[0].dtype, inputs[0].ndim)(**dict(zip(NAMES, inputs, strict=True)))
    return tuple(found.values())


SUBJECTS = {
    "epilogue": Subject(
        inputs=_inputs,
        kernel=_kernel,
        ref=narrowed(_formula),
        exact=_formula,
        torch=narrowed(_formula),
        peers={"triton": in_triton("epilogue")},
    ),
}
