"""Calling an operation of the user's from a kernel or host function: numbers, vectors, tensors and pointers go in, and
come out as they are in the language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types, user_ops
from tilewright.ir.user_ops import UserOp
from tilewright.lang import leaves
from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, from_mlir_type
from tilewright.lang.tensors.tensor_ssa import TensorSSA

if TYPE_CHECKING:
    from mlir import ir


def call(op: UserOp, operands: Sequence[Any], results: Any, attributes: dict[str, Any]) -> Any:
    """Make the operation; its result, a tuple of several, None for none.

    A result whose kind leaves the type open has that of the first operand, unless `results` says otherwise: a type of
    the language or of MLIR, or a list of them.

    Raises:
        CompileError: an operand or attribute is missing, too many, or of another kind.
    """
    spec = op.spec
    _check_names(op, operands, attributes)
    first = next((item for item in operands if not leaves.is_literal(item) and not isinstance(item, list)), None)
    like = extract_mlir_values(first)[0].type if first is not None else None
    groups = [_group(op, text, item, like) for text, item in zip(spec.operands, operands, strict=False)]
    asked = list(results) if isinstance(results, Sequence) else [results] * len(spec.results)
    if len(asked) != len(spec.results):
        raise _wrong(op, f"{len(asked)} types of results are given", {"results": " ".join(spec.results) or "none"})
    made_types = [_result_type(op, kind, wanted, like) for kind, wanted in zip(spec.results, asked, strict=True)]
    made = build.operation(spec.name, made_types, groups, attributes)
    found = tuple(_in_the_language(value, wanted, operands) for value, wanted in zip(made.results, asked, strict=True))
    return found if len(found) > 1 else found[0] if found else None


def _check_names(op: UserOp, operands: Sequence[Any], attributes: dict[str, Any]) -> None:
    spec = op.spec
    least = sum(not text.endswith("*") for text in spec.operands)
    if not least <= len(operands) <= len(spec.operands):
        raise _wrong(op, f"{len(operands)} operands are given", {"operands": " ".join(spec.operands) or "none"})
    if set(attributes) != set(spec.attributes):
        values = {"given": ", ".join(attributes) or "none", "attributes": ", ".join(spec.attributes) or "none"}
        raise _wrong(op, "the attributes are others", values)


def _group(op: UserOp, text: str, item: Any, like: ir.Type | None) -> Any:
    name, _, kind = text.partition(":")
    if not kind.endswith("*"):
        return _operand(op, name, kind, item, like)
    return [_operand(op, name, kind[:-1], part, like) for part in (item if isinstance(item, list | tuple) else [item])]


def _operand(op: UserOp, name: str, kind: str, item: Any, like: ir.Type | None) -> ir.Value:
    if leaves.is_literal(item):
        type_ = types.parse(kind) if kind in user_ops.NUMBERS else like
        if type_ is None or types.is_cute(type_):
            raise _wrong(op, f"operand {name} is a number without a type", {name: item}, "write cutlass.Float32(2)")
        _check_kind(op, name, kind, type_)
        return build.splat(item, type_) if isinstance(type_, mlir.ir.VectorType) else build.constant(item, type_)
    values = [item] if isinstance(item, mlir.ir.Value) else extract_mlir_values(item)
    if isinstance(item, Numeric) and not values:
        values = [item.ir_value()]
    if len(values) != 1:
        raise _wrong(op, f"operand {name} is no value of run time", {name: type(item).__name__})
    _check_kind(op, name, kind, values[0].type)
    return values[0]


def _check_kind(op: UserOp, name: str, kind: str, type_: ir.Type) -> None:
    if not user_ops.fits(kind, type_):
        raise _wrong(op, f"operand {name} is of another kind", {"wanted": kind, "got": str(type_)})


def _result_type(op: UserOp, kind: str, wanted: Any, like: ir.Type | None) -> ir.Type:
    if isinstance(wanted, type) and issubclass(wanted, Numeric):
        found = wanted.mlir_type
    elif wanted is not None:
        found = wanted
    else:
        found = types.parse(kind) if kind in user_ops.NUMBERS else like
    if found is None or not user_ops.fits(kind, found):
        raise _wrong(op, "the type of the result is not known", {"kind": kind}, "say results=cutlass.Float32")
    return found


def _in_the_language(value: ir.Value, wanted: Any, operands: Sequence[Any]) -> Any:
    if isinstance(wanted, type) and issubclass(wanted, Numeric):
        return wanted.from_ir(value)
    for item in operands:
        if isinstance(item, list | mlir.ir.Value) or leaves.is_literal(item):
            continue
        own = extract_mlir_values(item)
        if len(own) == 1 and own[0].type == value.type:
            return new_from_mlir_values(item, [value])
    if isinstance(value.type, mlir.ir.VectorType):
        vector = mlir.ir.VectorType(value.type)
        return TensorSSA(value, tuple(vector.shape), from_mlir_type(vector.element_type))
    return value if types.is_cute(value.type) else from_mlir_type(value.type).from_ir(value)


def _wrong(op: UserOp, what: str, values: Mapping[str, object], hint: str | None = None) -> CompileError:
    return CompileError(f"{op.spec.name}: {what}", location=user_location(), values=values, hint=hint)
