"""`cutlass.cute._tvm_ffi_args_spec_converter`: how NVIDIA's compiler describes arguments to tvm-ffi.

Libraries replace functions here, so that fields of a NamedTuple that are annotated `Constexpr` count as fixed and given
as None at the call. Arguments are bound so anyway (`tilewright.arguments.binding`); nothing calls what is put here.
"""

from __future__ import annotations

from typing import Any, get_origin

from tilewright.compat.tvm_ffi_builder.spec import ConstNone
from tilewright.lang.calls.parameters import Constexpr
from tilewright.lang.numbers.numeric import BY_NAME, Numeric

NumericToTVMFFIDtype: dict[type[Numeric], str] = {}
AcceptableNumericTypesForScalar: list[type[Numeric]] = list(BY_NAME.values())


def _convert_single_arg(arg: Any, arg_name: str, arg_type: Any, ctx: Any) -> ConstNone | None:
    """`ConstNone` for a parameter that is annotated `Constexpr`; None, as others need no description."""
    return ConstNone(arg_name) if get_origin(arg_type) is Constexpr or arg_type is Constexpr else None


__all__ = [
    "BY_NAME", "ConstNone", "Constexpr", "Numeric",
]  # fmt: skip
