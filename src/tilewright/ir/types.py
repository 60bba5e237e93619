"""MLIR types by name, cached per context (`Type.parse` costs 20 µs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.context import current

if TYPE_CHECKING:
    from mlir import ir

# Short dtype name to MLIR type. MLIR integers carry no sign; the languages' types do.
ELEMENT = {
    "bool": "i1",
    **{f"{sign}{width}": f"i{width}" for sign in "iu" for width in (4, 8, 16, 32, 64, 128)},
    "f16": "f16",
    "bf16": "bf16",
    "tf32": "f32",  # MLIR's tf32 has 19 bits; here it is a float32 whose low bits are 0
    "f32": "f32",
    "f64": "f64",
    "f8e4m3": "f8E4M3",
    "f8e5m2": "f8E5M2",
    "f8e4m3fn": "f8E4M3FN",
    "f8e4m3b11fnuz": "f8E4M3B11FNUZ",
    "f8e8m0fnu": "f8E8M0FNU",
    "f6e3m2fn": "f6E3M2FN",
    "f6e2m3fn": "f6E2M3FN",
    "f4e2m1fn": "f4E2M1FN",
}


def parse(text: str) -> ir.Type:
    """The type written `text`."""
    return current().cached(("type", text), lambda: mlir.ir.Type.parse(text))


def element(dtype: str) -> ir.Type:
    """The MLIR type of a short dtype name."""
    return parse(ELEMENT[dtype])


def ptr(dtype: str, space: str, align: int) -> ir.Type:
    """`!cute.ptr`; align in bytes."""
    return parse(f'!cute.ptr<{ELEMENT[dtype]}, "{space}", {align} : i32>')


def tensor(dtype: str, space: str, layout: str, align: int) -> ir.Type:
    """`!cute.tensor`; layout in CuTe notation with `?` leaves."""
    return parse(f'!cute.tensor<{ELEMENT[dtype]}, "{space}", "{layout}", {align} : i32>')


def vector(count: int, dtype: str) -> ir.Type:
    """`vector<count x element>`."""
    return parse(f"vector<{count}x{ELEMENT[dtype]}>")


def is_cute(type_: ir.Type) -> bool:
    """True for types of the `cute` dialect."""
    return bool(current().cached(("is_cute", type_), lambda: str(type_).startswith("!cute.")))
