"""Operand groups, kinds of types and attributes, as the table of the dialect lists them.

The dialect's IRDL has the same rules; MLIR says them without the operation's name and the group's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.dialect import OpSpec
from tilewright.passes.verify.operation import Invalid

if TYPE_CHECKING:
    from mlir import ir

_SEGMENTS = "operandSegmentSizes"


def grouped(
    spec: OpSpec, operands: Sequence[ir.Type], results: Sequence[ir.Type], attributes: Mapping[str, ir.Attribute]
) -> list[Sequence[ir.Type]]:
    """The types of the operands by group, all of the kinds that `spec` lists."""
    missing = [name for name in spec.attributes if name not in attributes]
    if missing:
        raise Invalid(f"attribute {missing[0]} is missing")
    kinds = spec.results
    if kinds and kinds[0].endswith("*"):
        kinds = (kinds[0].rstrip("*"),) * len(results)
    if len(results) != len(kinds):
        raise Invalid(f"it has {len(kinds)} results, not {len(results)}")
    for kind, type_ in zip(kinds, results, strict=True):
        _check_kind("the result", kind, type_)
    groups: list[Sequence[ir.Type]] = []
    start = 0
    for text, size in zip(spec.operands, _sizes(spec, len(operands), attributes), strict=True):
        name, kind = text.split(":")
        groups.append(operands[start : start + size])
        for type_ in groups[-1]:
            _check_kind(f"operand {name}", kind.rstrip("*"), type_)
            if type_ != groups[-1][0]:
                raise Invalid(f"the operands {name} have one type", got=[str(item) for item in groups[-1]])
        start += size
    return groups


def _sizes(spec: OpSpec, count: int, attributes: Mapping[str, ir.Attribute]) -> list[int]:
    single = [not text.endswith("*") for text in spec.operands]
    names = ", ".join(text.partition(":")[0] for text in spec.operands) or "none"
    if single.count(False) < 2:
        rest = count - single.count(True)
        if rest < 0 or (rest and all(single)):
            raise Invalid(f"it has {count} operands", f"its operands: {names}", expected=single.count(True))
        return [1 if one else rest for one in single]
    given = attributes.get(_SEGMENTS)
    sizes = list(given) if isinstance(given, mlir.ir.DenseI32ArrayAttr) else []
    wrong = len(sizes) != len(single) or min(sizes) < 0 or sum(sizes) != count
    if wrong or any(one and size != 1 for one, size in zip(single, sizes, strict=True)):
        raise Invalid(
            f"{_SEGMENTS} do not divide {count} operands into their groups",
            f"its operands: {names}; build.cute writes the sizes",
            sizes=given,
        )
    return sizes


def _check_kind(what: str, kind: str, type_: ir.Type) -> None:
    text = str(type_)
    if kind == "tile":
        fits = text.startswith("tensor<")
    else:
        fits = (
            kind == "any" or text.startswith(f"!cute.{kind}<")
            if kind in ("any", "ptr", "tensor", "tensor_map")
            else text == kind
        )
    if not fits:
        raise Invalid(f"{what} is {'an' if kind[0] == 'i' else 'a'} {kind}", got=type_)
