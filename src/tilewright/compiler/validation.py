"""`cute.compile(..., validate=inputs)`: the program before and after each pass of the user, on the emulator.

The program before all of them gives what is right. Then the list is compiled with the first pass, with the first two,
and so on; each result must be the same, element by element: equal bits, or NaN twice. All are
compiled without contraction of sums and products. The inputs are as they were afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.arguments.dlpack import HostView, view
from tilewright.arguments.runtime_tensor import RuntimeTensor, is_tensor
from tilewright.base import dlpack_types
from tilewright.base.errors import ArgumentError, PassError, TilewrightError
from tilewright.base.signature import Param, PointerParam, TensorParam, TupleParam
from tilewright.compiler.executor import Executor
from tilewright.hw.narrow_floats import decode, is_narrow
from tilewright.passes.pipeline import Pass, PassManager, UpstreamPass


def check_passes(
    pipeline: PassManager, standard: PassManager, build: Callable[[PassManager], Executor], inputs: Sequence[Any]
) -> None:
    """Run the program of `build(list)` for growing lists; `standard` are the passes that every list has.

    Raises:
        PassError: the first pass whose result differs, with the first element that does; or with which the program
            fails.
        ArgumentError: there is an argument whose memory cannot be kept, such as a bare pointer.
    """
    known = {_kind(item) for item in standard}
    chosen = [number for number, item in enumerate(pipeline) if _kind(item) not in known]
    right: list[_Result] = []
    for count in range(len(chosen) + 1):
        left_out = set(chosen[count:])
        part = PassManager([item for number, item in enumerate(pipeline) if number not in left_out])
        executor = build(part)
        last = pipeline.passes[chosen[count - 1]] if count else None
        try:
            found = _results(executor, inputs)
        except TilewrightError as error:
            if last is None or isinstance(error, ArgumentError):
                raise
            raise _fails(executor.name, last, error) from error
        if last is None:
            right = found
        else:
            _compare(executor.name, last, right, found)


def _kind(item: Pass) -> object:
    return str(item) if isinstance(item, UpstreamPass) else type(item)


@dataclass(frozen=True)
class _Result:
    """A tensor after a run: its name, element type, and the bits of its elements."""

    name: str
    dtype: str
    bits: np.ndarray[Any, Any]


def _results(executor: Executor, inputs: Sequence[Any]) -> list[_Result]:
    """Run, and give what the tensors then hold."""
    values = executor.ordered(tuple(inputs), {})
    params = [param for param in executor.signature.params if not getattr(param, "env", False)]
    tensors = list(_tensors(params, values))
    with _kept([found for _, found in tensors]):
        executor.run(values)
        return [_Result(name, found.dtype, _elements(found).copy()) for name, found in tensors]


def _tensors(params: Sequence[Param], values: Sequence[Any]) -> Iterator[tuple[str, HostView]]:
    for param, value in zip(params, values, strict=True):
        if isinstance(param, TupleParam) and isinstance(value, tuple | list):
            named = [(f"{param.name}.{name}", found) for name, found in _tensors(param.items, value)]
            yield from named
        elif isinstance(param, TensorParam) and (isinstance(value, RuntimeTensor) or is_tensor(value)):
            found = value.view if isinstance(value, RuntimeTensor) else view(value)
            if found.device != dlpack_types.CPU:
                raise ArgumentError(
                    f"validate: {param.name} is not in host memory",
                    hint="the emulator runs on NumPy arrays and the like",
                )
            yield param.name, found
        elif isinstance(param, PointerParam | TupleParam):
            raise ArgumentError(
                f"validate: how much memory lies behind {param.name} is not known", hint="pass tensors, not pointers"
            )


@contextmanager
def _kept(found: Sequence[HostView]) -> Iterator[None]:
    """What the tensors hold before the block is there again after it."""
    before = [(*item.extent(), ctypes.string_at(*item.extent())) for item in found if item.writable]
    try:
        yield
    finally:
        for address, size, data in before:
            ctypes.memmove(address, data, size)


def _elements(found: HostView) -> np.ndarray[Any, Any]:
    """The bits of a tensor's elements, as they lie there; bytes where several elements share one."""
    low, size = found.extent()
    memory = memoryview((ctypes.c_uint8 * size).from_address(low))
    width = dlpack_types.DTYPES[found.dtype][1] // 8
    if not width or not size:
        return np.frombuffer(memory, np.uint8)
    strides = [step * width for step in found.stride]
    return np.ndarray(found.shape, f"u{width}", memory, found.data - low, strides)


def _compare(name: str, item: Pass, right: list[_Result], found: list[_Result]) -> None:
    for before, after in zip(right, found, strict=True):
        differ = (before.bits != after.bits) & ~(_is_nan(before) & _is_nan(after))
        if not differ.any():
            continue
        place = tuple(int(index) for index in np.argwhere(differ)[0])
        place_text = ", ".join(map(str, place))
        raise PassError(
            f"pass {item.name} changes what {name} computes",
            values={
                "first element that differs": f"{before.name}[{place_text}]" if place else before.name,
                "without the pass": _shown(before, place),
                "with it": _shown(after, place),
                "elements that differ": f"{int(differ.sum())} of {differ.size}",
            },
            hint="after_pass=lambda item, module: print(item, module) prints the program after each pass",
        )


def _fails(name: str, item: Pass, error: TilewrightError) -> PassError:
    return PassError(
        f"{name} fails with pass {item.name}, and runs without it",
        location=error.location,
        values={"reason": error.message, **error.values},
        hint=error.hint,
    )


def _is_nan(result: _Result) -> np.ndarray[Any, Any]:
    bits, dtype = result.bits, result.dtype
    if dtype in ("f16", "f32", "f64"):
        return np.isnan(bits.view(f"f{bits.itemsize}"))
    if dtype == "bf16":
        return (bits & 0x7FFF) > 0x7F80
    if is_narrow(dtype):
        table = np.array([np.isnan(decode(code, dtype)) for code in range(256)])
        return np.asarray(table[bits])
    return np.zeros(bits.shape, bool)


def _shown(result: _Result, place: tuple[int, ...]) -> object:
    """An element as a number of its type."""
    bits, dtype = result.bits[place], result.dtype
    if dtype in ("f16", "f32", "f64"):
        return str(bits.view(f"f{bits.itemsize}"))
    if dtype == "bf16":
        return str((np.uint32(bits) << np.uint32(16)).view(np.float32))
    if is_narrow(dtype):
        return decode(int(bits), dtype)
    if dtype == "bool":
        return str(bool(bits))
    return str(bits.view(f"i{bits.itemsize}")) if dtype in ("i8", "i16", "i32", "i64") else str(bits)
