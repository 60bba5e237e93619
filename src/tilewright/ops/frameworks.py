"""PyTorch where it is installed, and what the ops ask of a tensor whoever made it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base import settings
from tilewright.base.errors import ArgumentError

try:
    import torch
except ModuleNotFoundError:
    torch = None

FLOATS = ("float16", "bfloat16", "float32", "float64")


_TENSORS: frozenset[type] = frozenset() if torch is None else frozenset((torch.Tensor, torch.nn.Parameter))
# The element types that most calls have, as PyTorch has them: looked up, not spelled, at each call.
_KNOWN: dict[Any, frozenset[Any]] = (
    {} if torch is None else {FLOATS: frozenset(getattr(torch, name) for name in FLOATS)}
)


def is_torch(value: object) -> bool:
    """Whether `value` is a tensor of PyTorch."""
    return torch is not None and isinstance(value, torch.Tensor)


def on_emulator() -> bool:
    """Whether memory of the host goes to the kernels on the emulator: `TILEWRIGHT_TARGET=emu` is set."""
    return bool(settings.get("target") == "emu")


def dtype_name(tensor: Any) -> str:
    """The name of the element type, which PyTorch and NumPy share: float32, bfloat16."""
    return str(tensor.dtype).rpartition(".")[2]


def check_tensor(op: str, name: str, value: Any, dtypes: tuple[str, ...] = FLOATS) -> None:
    """Refuse what is no tensor of PyTorch or NumPy, or has another element type.

    Raises:
        ArgumentError: it says what was expected.
    """
    if type(value) in _TENSORS and value.dtype in _KNOWN.get(dtypes, ()):
        return
    if not is_torch(value) and not isinstance(value, np.ndarray):
        raise ArgumentError(
            f"{op}: {name} is a tensor of PyTorch or an array of NumPy, not {type(value).__name__}",
            hint="torch.as_tensor(...) or numpy.asarray(...) makes one",
        )
    check_dtype(op, name, dtype_name(value), dtypes)


def check_dtype(op: str, name: str, dtype: str, dtypes: tuple[str, ...]) -> None:
    """Refuse a tensor whose element type is none of these.

    Raises:
        ArgumentError: it says which are.
    """
    if dtype not in dtypes:
        raise ArgumentError(
            f"{op}: {name} has dtype {dtype}", values={"supported": ", ".join(dtypes)}, hint="convert it first"
        )


def check_alike(op: str, **tensors: Any) -> None:
    """Refuse tensors of several frameworks or devices; None is skipped.

    Raises:
        ArgumentError: it names each tensor's device.
    """
    there = None
    for tensor in tensors.values():
        if tensor is None:
            continue
        place = "NumPy" if type(tensor) is np.ndarray else tensor.device
        if there is None:
            there = place
        elif place != there:
            places = {name: _place(item) for name, item in tensors.items() if item is not None}
            raise ArgumentError(f"{op}: expected all tensors to be on the same device", values=places)


def _place(tensor: Any) -> Any:
    return "NumPy" if isinstance(tensor, np.ndarray) else tensor.device


def last_dim(op: str, dim: int, rank: int) -> None:
    """Refuse a `dim` that is not the last one.

    Raises:
        ArgumentError: it is out of range, or another.
    """
    if dim == -1 and rank:
        return
    if rank == 0:
        raise ArgumentError(f"{op}: a tensor without dimensions has no rows", hint="x.reshape(1)")
    if not isinstance(dim, int) or not -rank <= dim < rank:
        raise ArgumentError(
            f"{op}: Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim!r})"
        )
    if dim % rank != rank - 1:
        raise ArgumentError(
            f"{op}: dim={dim} is not the last dimension", values={"rank": rank},
            hint="move it: x.movedim(dim, -1), and the result back",
        )  # fmt: skip
