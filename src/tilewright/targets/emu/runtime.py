"""Functions that generated code calls: selection, guarded effects, special registers, warp operations, atomics."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tilewright.targets.emu import sync
from tilewright.targets.emu.cohort import Pending
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.register_pool import registers_gate

NAMESPACE: dict[str, Any] = {
    "Pending": Pending,
    "FULL": sync.FULL,
    "TRUE": np.bool_(True),
    "FALSE": np.bool_(False),
    "warp_gate": sync.warp_gate,
    "warpgroup_gate": sync.warpgroup_gate,
    "registers_gate": registers_gate,
    "barrier_gate": sync.barrier_gate,
    "barrier_arrive": sync.barrier_arrive,
    "where": np.where,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "q": np.dtype("u8"),
    **{f"{k}{n}": np.dtype(f"{k}{n}") for k in "ui" for n in (1, 2, 4, 8)},
    **{f"f{n}": np.dtype(f"f{n}") for n in (2, 4, 8)},
}
"""What generated code sees; modules add their functions with `provide`."""

BUILTINS: dict[str, str] = {}
"""Device functions that the machine serves itself: PTX name to the name of the Python function."""


def provide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function visible to generated code, under its own name."""
    assert function.__name__ not in NAMESPACE, function.__name__
    NAMESPACE[function.__name__] = function
    return function


def builtin(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the Python function behind a device function such as `vprintf`."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        BUILTINS[name] = function.__name__
        NAMESPACE[function.__name__] = function
        return function

    return register


def provide_numeric(name: str, function: Callable[..., Any]) -> None:
    """Make a function of `numerics` visible; uniform operands give a uniform result."""

    @wraps(function)
    def call(*args: Any, **modifiers: Any) -> Any:
        result = function(*args, **modifiers)
        if result.__class__ is not np.ndarray:
            return result
        if result.ndim == 0:
            return result[()]
        if len(result) == 1 and not any(a.__class__ is np.ndarray for a in args):
            return result[0]
        return result

    NAMESPACE[name] = call


# Selection and guards.


@provide
def sel(guard: Any, new: Any, old: Any) -> Any:
    """`new` where the guard holds, else `old`."""
    if guard.__class__ is not np.ndarray:
        return new if guard else old
    if new.__class__ is np.ndarray and new.ndim > 1:
        return np.where(guard[:, None], new, old)
    return np.where(guard, new, old)


def pick(value: Any, at: Array) -> Any:
    """The values of some threads."""
    return value[at] if value.__class__ is np.ndarray else value


@provide
def masked(guard: Any, L: Lanes, call: Callable[..., Any], args: tuple[Any, ...], olds: tuple[Any, ...], n: int) -> Any:
    """Run an effect for the threads whose guard holds; the others keep the old values of its results."""
    if guard.__class__ is not np.ndarray:
        if guard:
            return call(L, *args)
        return olds[0] if n == 1 else olds
    at = np.flatnonzero(guard)
    if len(at) == L.n:
        return call(L, *args)
    if len(at) == 0:
        return olds[0] if n == 1 else olds
    some = L.subset(at)
    try:
        out = call(some, *(pick(a, at) for a in args))
    except Fault as fault:
        raise fault.of(some) from None
    if n == 0:
        return None
    if n == 1:
        return scatter(out, olds[0], at, L.n)
    return [scatter(value, old, at, L.n) for value, old in zip(out, olds, strict=True)]


def scatter(new: Any, old: Any, at: Array, n: int) -> Array:
    """An array that holds `new` at positions `at` and `old` elsewhere."""
    shape = (n, *new.shape[1:]) if new.__class__ is np.ndarray and new.ndim > 1 else (n,)
    out = np.empty(shape, new.dtype)
    out[:] = old
    out[at] = new
    return out


@provide
def with_taint(S: Any, value: Any, exact: tuple[bool, ...]) -> Any:
    """Loaded values, and behind them for each which threads found memory that was never written.

    Where `exact`, one byte that is missing counts, else all must be.
    """
    count = len(exact)
    values = [value] if count == 1 else value
    missing = S.unwritten
    if missing.__class__ is not np.ndarray:
        return [*values, *(missing,) * count]
    if missing.shape[1] < count:
        missing = np.repeat(missing, count // missing.shape[1], axis=1)
    parts = missing.reshape(len(missing), count, -1)
    return [*values, *(parts[:, k].any(axis=1) if exact[k] else parts[:, k].all(axis=1) for k in range(count))]


@provide
def full(value: Any, n: int) -> Array:
    """A value as an array by thread."""
    return value if value.__class__ is np.ndarray else np.full(n, value)


# Special registers.

_BY_LANE = {"laneid", "warpid", "smid", "cluster_ctarank", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
            "lanemask_ge"}  # fmt: skip
_BY_AXIS = {"tid", "ctaid", "clusterid", "cluster_ctaid"}
_UNIFORM = {"nwarpid", "nsmid", "cluster_nctarank", *(f"{h}.{a}" for h in ("ntid", "nctaid", "nclusterid",
            "cluster_nctaid") for a in "xyz")}  # fmt: skip
RESERVED_SHARED = 1024
"""Bytes of shared memory that the system keeps of each block (CUDA C++ Programming Guide, compute capability 9.0)."""
_CLOCKS = {"clock": "u4", "clock_hi": "u4", "clock64": "u8", "globaltimer": "u8", "globaltimer_lo": "u4",
           "globaltimer_hi": "u4"}  # fmt: skip


def special_register(name: str, left: int) -> tuple[str, str]:
    """(NumPy type, expression) of a special register; an empty expression if it is not known.

    `left` is how many instructions of the block follow from the one that reads it on.
    """
    head, _, axis = name.partition(".")
    if name in _BY_LANE or (head in _BY_AXIS and axis in ("x", "y", "z")):
        return "u4", f"L.special({name!r})"
    if name in _UNIFORM:
        return "u4", f"S.constants[{name!r}]"
    if name == "is_explicit_cluster":
        return "p", f"S.constants[{name!r}]"
    if name == "gridid":
        return "u8", f"S.constants[{name!r}]"
    if name in _CLOCKS:
        return _CLOCKS[name], f"S.clock({name!r}, C, {left})"
    if name == "dynamic_smem_size":
        return "u4", "u4.type(S.launch.dynamic_shared)"
    if name == "total_smem_size":
        return "u4", "u4.type(S.launch.shared_size)"
    if name == "aggr_smem_size":
        return "u4", f"u4.type(S.launch.shared_size + {RESERVED_SHARED})"
    if name == "current_graph_exec":
        return "u8", "u8.type(0)"
    if name.startswith(("envreg", "pm")):
        return "u4", f"S.constants.get({name!r}, u4.type(0))"
    return "", ""
