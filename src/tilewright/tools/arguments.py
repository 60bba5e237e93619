"""The notation of `--arg`: what a kernel is compiled for or run on, in one word.

    f32[1024]            float32, 1024 standard normal numbers, the same in every run
    i32[64,32]           int32, 64 x 32, row-major, uniform in -8 to 7 (unsigned: 0 to 15)
    zeros:f32[1024]      also ones:, arange:, or a number: 3.5:f32[1024]
    i32[16]=arange       the same, written behind
    f32[?1024,32]        the first extent is a runtime value of the compiled code, here 1024
    f32[?,32]            the same without data: enough to compile, not to run
    @x.npy               the array in a file
    3   2.5   true       numbers
    none                 Python's None

Numbers and `none` are passed to the function as they are; the arrays are NumPy arrays in C order.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.base.errors import ArgumentError

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    **{f"i{width}": np.dtype(f"int{width}") for width in (8, 16, 32, 64)},
    **{f"u{width}": np.dtype(f"uint{width}") for width in (8, 16, 32, 64)},
    **{f"f{width}": np.dtype(f"float{width}") for width in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e8m0fnu": np.dtype(ml_dtypes.float8_e8m0fnu),
}
"""Tilewright's short names of the element types that NumPy can hold."""

TENSOR = re.compile(r"(?:(?P<before>[^:\[]+):)?(?P<dtype>\w+)\[(?P<dims>[^\]]*)\](?:=(?P<after>.+))?")
DIM = re.compile(r"(?P<dynamic>\?)?(?P<extent>[0-9]{1,18})?")
WORDS = {"none": None, "true": True, "false": False}
HINT = "write f32[1024], zeros:f32[64,32], f32[?1024], i32[16]=arange, @file.npy, 3, 2.5, true or none"


SMALLER = "emulate on fewer elements"


def memory() -> int:
    """The bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class TensorArgument:
    """A tensor: element type, extents (None where only the compiled code's caller knows), and its data's maker.

    `dynamic` holds the modes whose extent the compiled code takes at run time.
    """

    text: str
    dtype: np.dtype[Any]
    dtype_name: str
    shape: tuple[int | None, ...]
    dynamic: frozenset[int]
    make: Callable[[tuple[int, ...], np.random.Generator], np.ndarray]

    def data(self, generator: np.random.Generator) -> np.ndarray:
        """A fresh array. Raises ArgumentError when an extent is not given."""
        shape = tuple(extent for extent in self.shape if extent is not None)
        if len(shape) != len(self.shape):
            raise ArgumentError(f"{self.text}: running needs every extent", hint="write f32[?1024] in place of f32[?]")
        wanted = math.prod(shape) * self.dtype.itemsize
        if wanted > (there := memory()):
            raise ArgumentError(
                f"{self.text} takes {wanted:,} bytes",
                values={"this machine's memory": f"{there:,} bytes"},
                hint=SMALLER,
            )
        try:
            return self.make(shape, generator)
        except (MemoryError, ValueError) as error:
            raise ArgumentError(f"{self.text} cannot be made: {error}", hint=SMALLER) from error


@dataclass(frozen=True)
class ValueArgument:
    """A number, a Boolean or None."""

    text: str
    value: Any


Argument = TensorArgument | ValueArgument


def parse_argument(text: str) -> Argument:
    """Read one `--arg`. Raises ArgumentError that quotes the text and shows the notation."""
    word = text.strip()
    if word.lower() in WORDS:
        return ValueArgument(text, WORDS[word.lower()])
    if word.startswith("@"):
        return _from_file(text, Path(word[1:]))
    number = _number(word)
    if number is not None:
        return ValueArgument(text, number)
    match = TENSOR.fullmatch(word)
    if match is None:
        raise ArgumentError(f"{text!r} is not an argument", hint=HINT)
    return _tensor(text, match)


def values(arguments: Iterable[Argument], seed: int = 0) -> list[Any]:
    """Arrays and numbers to run on, in order; the same `seed` gives the same numbers."""
    generator = np.random.default_rng(seed)
    return [item.data(generator) if isinstance(item, TensorArgument) else item.value for item in arguments]


def _number(word: str) -> int | float | None:
    for kind in (_integer, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return None


def _integer(word: str) -> int:
    return int(word, 0)


def _tensor(text: str, match: re.Match[str]) -> TensorArgument:
    name, before, after = match["dtype"], match["before"], match["after"]
    if name not in DTYPES:
        raise ArgumentError(f"{text!r}: unknown element type {name!r}", hint=f"element types: {' '.join(DTYPES)}")
    if before and after:
        raise ArgumentError(f"{text!r} says twice how to fill the tensor", hint="keep one of the two")
    shape, dynamic = _dims(text, match["dims"])
    fill = _fill(text, before or after, DTYPES[name])
    return TensorArgument(text, DTYPES[name], name, shape, dynamic, fill)


def _dims(text: str, dims: str) -> tuple[tuple[int | None, ...], frozenset[int]]:
    """Extents and the modes marked with `?`; `[]` is a tensor of rank 0."""
    shape: list[int | None] = []
    dynamic = set()
    for mode, part in enumerate(dims.split(",") if dims.strip() else ()):
        match = DIM.fullmatch(part.strip())
        if match is None or match[0] == "":
            raise ArgumentError(f"{text!r}: {part.strip()!r} is not an extent", hint="write 1024, ?1024 or ?")
        shape.append(int(match["extent"]) if match["extent"] else None)
        if match["dynamic"]:
            dynamic.add(mode)
    return tuple(shape), frozenset(dynamic)


def _fill(
    text: str, how: str | None, dtype: np.dtype[Any]
) -> Callable[[tuple[int, ...], np.random.Generator], np.ndarray]:
    if how is None:
        return lambda shape, generator: _random(shape, dtype, generator)
    if how == "arange":
        return lambda shape, _: np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    constant = {"zeros": 0, "ones": 1}.get(how, _number(how))
    if constant is None:
        raise ArgumentError(f"{text!r}: unknown filling {how!r}", hint="fillings: zeros, ones, arange, or a number")
    return lambda shape, _: np.full(shape, constant).astype(dtype)


def _random(shape: tuple[int, ...], dtype: np.dtype[Any], generator: np.random.Generator) -> np.ndarray:
    """Standard normal numbers; small integers, so that sums of many stay exact; fair coins."""
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low = -8 if dtype.kind == "i" else 0
        return generator.integers(low, low + 16, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def _from_file(text: str, path: Path) -> TensorArgument:
    try:
        array = np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise ArgumentError(f"{text!r}: {path} cannot be read as a NumPy array", values={"reason": error},
                            hint="save the array with numpy.save") from error  # fmt: skip
    names = [name for name, dtype in DTYPES.items() if dtype == array.dtype]
    if not names:
        raise ArgumentError(f"{text!r}: no element type for NumPy's {array.dtype}", hint=f"types: {' '.join(DTYPES)}")
    contiguous = np.ascontiguousarray(array)
    return TensorArgument(text, array.dtype, names[0], array.shape, frozenset(), lambda shape, _: contiguous.copy())
