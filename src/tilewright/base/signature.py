"""What a compiled function takes: pure data shared by tracing, host code and argument checks.

A parameter that the user passes (a tensor, a number) reaches native code as *leaves*: a pointer and the
extents and strides known only at run time. `leaves()` fixes their order once for all who need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tilewright.base.dtypes import TABLE

Space = Literal["generic", "gmem", "smem", "dsmem", "rmem", "tmem"]


@dataclass(frozen=True)
class Dim:
    """One extent or stride, in elements.

    `value` is None when known only at run time; then it travels in `width` bits (32 or 64), is a multiple
    of `divisibility`, and equals every other `Dim` of the same `symbol` in the signature.
    """

    value: int | None = None
    width: int = 32
    divisibility: int = 1
    symbol: str | None = None

    def __str__(self) -> str:
        if self.value is not None:
            return str(self.value)
        facts = ["i64"] if self.width == 64 else []
        facts += [f"div={self.divisibility}"] if self.divisibility > 1 else []
        return f"?{{{' '.join(facts)}}}" if facts else "?"


@dataclass(frozen=True)
class Leaf:
    """One machine value of a parameter.

    `type` is its MLIR/LLVM spelling (`ptr`, `i32`, `i64`, `f32`, `i1`, ...). `role` is `data`, `shape`,
    `stride`, `scalar` or `stream`; `mode` the tensor mode of a shape or stride.
    """

    name: str
    type: str
    role: Literal["data", "shape", "stride", "scalar", "stream"]
    mode: int = 0


@dataclass(frozen=True)
class TensorParam:
    """A tensor with a flat shape. `dtype` is Tilewright's short name (`f32`, `bf16`, `i32`, `u8`, `f8e4m3fn`);
    `align` the alignment of its data in bytes. `implicit` marks a framework's tensor passed as it is."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    align: int
    space: Space = "gmem"
    implicit: bool = False

    def leaves(self) -> Iterator[Leaf]:
        yield Leaf(self.name, "ptr", "data")
        for role, dims in (("shape", self.shape), ("stride", self.stride)):
            for mode, dim in enumerate(dims):
                if dim.value is None:
                    yield Leaf(f"{self.name}.{role}{mode}", f"i{dim.width}", role, mode)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ScalarParam:
    """A number; `dtype` is a short name, `bool` for Boolean."""

    name: str
    dtype: str

    def leaves(self) -> Iterator[Leaf]:
        yield Leaf(self.name, TABLE[self.dtype].llvm, "scalar")


@dataclass(frozen=True)
class PointerParam:
    """An address; `align` in bytes."""

    name: str
    dtype: str
    align: int
    space: Space = "gmem"

    def leaves(self) -> Iterator[Leaf]:
        yield Leaf(self.name, "ptr", "data")


@dataclass(frozen=True)
class StreamParam:
    """A CUDA stream. With `env` it is not passed: the framework's current stream is taken at each call."""

    name: str
    env: bool = False

    def leaves(self) -> Iterator[Leaf]:
        yield Leaf(self.name, "ptr", "stream")


@dataclass(frozen=True)
class TupleParam:
    """A Python tuple (or NamedTuple) of parameters."""

    name: str
    items: tuple[Param, ...]

    def leaves(self) -> Iterator[Leaf]:
        for item in self.items:
            yield from item.leaves()


Param = TensorParam | ScalarParam | PointerParam | StreamParam | TupleParam


@dataclass(frozen=True)
class Signature:
    """The parameters of a compiled function in call order; compile-time parameters are absent."""

    name: str
    params: tuple[Param, ...]

    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaf for param in self.params for leaf in param.leaves())
