"""place-tensor-maps: tensor maps become parameters of 128 bytes, by value.

before: `llvm.func @k(%0: !llvm.ptr, ...) attributes {tilewright.tensor_maps = array<i32: 0>}`
after:  `llvm.func @k(%0: !llvm.ptr {llvm.byval = ..., nvvm.grid_constant, llvm.align = 64}, ...)`

MLIR's conversion of kernels to the llvm dialect drops what is said of pointers passed by value, so it is said after it.
A parameter that is constant for the grid is read where the launch put it: no thread copies it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.passes.pipeline import Pass, register

if TYPE_CHECKING:
    from mlir import ir

MAPS = "tilewright.tensor_maps"
_BY_VALUE = "{llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}"


def note_tensor_maps(kernel: ir.Operation) -> None:
    """Note on a kernel of stage `cute` which of its parameters are tensor maps."""
    arguments = kernel.regions[0].blocks[0].arguments
    places = [place for place, argument in enumerate(arguments) if types.is_tensor_map(argument.type)]
    if places:
        kernel.attributes[MAPS] = build.i32_array(places)


@register
class PlaceTensorMaps(Pass):
    """See the module."""

    name = "place-tensor-maps"
    in_cute = False

    def run(self, module: ir.Operation) -> None:
        for function in _functions(module):
            if MAPS in function.attributes:
                places = set(mlir.ir.DenseI32ArrayAttr(function.attributes[MAPS]))
                count = len(function.regions[0].blocks[0].arguments)
                attributes = ", ".join(_BY_VALUE if place in places else "{}" for place in range(count))
                function.attributes["arg_attrs"] = build.attribute(f"[{attributes}]")
                del function.attributes[MAPS]


def _functions(module: ir.Operation) -> list[ir.Operation]:
    beside = [op.operation for op in module.regions[0].blocks[0]]
    return [op.operation for part in beside if part.name == "gpu.module" for op in part.regions[0].blocks[0]]
