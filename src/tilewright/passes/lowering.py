"""Lowering the `cute` dialect: a table of rules, walked once.

A rule takes an operation and the context, builds its replacement before it, and returns the values that stand for its
results. Rules see operands already lowered: pointers are `!llvm.ptr`, numbers are as they were; a tensor operand is
looked up with `context.tensor(value)`, which gives its address and its layout with runtime leaves filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, layout_text, mlir, types
from tilewright.ir.accessors import PtrInfo, ptr_info
from tilewright.ir.context import located
from tilewright.ir.int_value import IntValue
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.layout import ComposedLayout, Layout
from tilewright.passes.pass_errors import locate_error
from tilewright.passes.remarks import Kind, Remark

if TYPE_CHECKING:
    from mlir import ir

Rule = Callable[["ir.Operation", "LoweringContext"], "Sequence[ir.Value] | None"]
"""None: the operation stays until all are lowered, as others look up what it stands for. `KEEP`: it stays for good."""

KEEP: Sequence[Any] = []


class Rules:
    """A table from operation name to rule. Tables add up: `memory + warp`; the right one wins."""

    def __init__(self, table: dict[str, Rule] | None = None) -> None:
        self.table = table or {}

    def lowers(self, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: the function lowers `cute.<name>`; a name with a dot is that of another dialect's operation."""

        def add(rule: Rule) -> Rule:
            self.table.update({name if "." in name else f"cute.{name}": rule for name in names})
            return rule

        return add

    def __add__(self, other: Rules) -> Rules:
        return Rules({**self.table, **other.table})


@dataclass(frozen=True)
class TensorView:
    """A lowered tensor: its address and its layout, whose leaves are ints and `IntValue`s."""

    ptr: ir.Value
    layout: Layout | ComposedLayout
    info: PtrInfo


@dataclass
class LoweringContext:
    """State of one lowering. `address_space` gives the LLVM address space of a CuTe space."""

    address_space: dict[str, int]
    facts: dict[str, Any] = field(default_factory=dict)
    tensors: dict[Any, TensorView] = field(default_factory=dict)
    fragments: dict[Any, Any] = field(default_factory=dict)  # vectors as their parts, see `rules.fragments`
    remarks: list[Remark] = field(default_factory=list)

    def tensor(self, value: ir.Value) -> TensorView:
        return self.tensors[value]

    def remark(self, op: ir.Operation, text: str | None, kind: Kind = "access") -> None:
        """Keep a remark on the line of an operation; None is none."""
        if text:
            self.remarks.append(Remark.at(op, text, kind))

    def taken_apart(self) -> list[ir.Operation]:
        """The operations whose vectors were read by their parts: nobody may need the whole."""
        return [fragment.maker for fragment in self.fragments.values() if fragment.maker is not None]

    def llvm_ptr(self, space: str) -> ir.Type:
        number = self.address_space[space]
        return types.parse(f"!llvm.ptr<{number}>" if number else "!llvm.ptr")


def lower(function: ir.Operation, rules: Rules, context: LoweringContext) -> None:
    """Rewrite every `cute` operation of `function`, and others that have a rule, in place."""
    named = [(op, op.name) for op in operations(function)]
    if "arg_attrs" in function.attributes:  # the names of arguments, for passes of stage `cute`
        del function.attributes["arg_attrs"]
    _lower_pointer_types(function, [op for op, name in named if not name.startswith("cute.")], context)
    chosen = [(op, name) for op, name in named if name.startswith("cute.") or name in rules.table]
    dead = _apply_all(chosen, rules, context)
    for op in reversed(dead):
        op.erase()
    for op in context.taken_apart():
        if not any(True for result in op.results for _ in result.uses):
            op.erase()


def _apply_all(named: Iterable[tuple[ir.Operation, str]], rules: Rules, context: LoweringContext) -> list[ir.Operation]:
    """Lower operations, given with their names, in their order; gives those that stay until all are lowered."""
    dead = []
    for op, name in named:
        results = _apply(_rule(rules, op, name), op, context)
        if results is None:
            dead.append(op)
            continue
        if results is KEEP:
            continue
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
    return dead


def _apply(rule: Rule, op: ir.Operation, context: LoweringContext) -> Sequence[ir.Value] | None:
    """What the rule gives; an error that names no line gets that of the operation."""
    location = op.location
    try:
        with mlir.ir.InsertionPoint(op), located(lambda: location):
            return rule(op, context)
    except Exception as error:
        locate_error(error, op, location)
        raise


def _rule(rules: Rules, op: ir.Operation, name: str) -> Rule:
    rule = rules.table.get(name)
    if rule is None:
        raise CompileError(
            f"{name} has no lowering for this target",
            location=source_location(op.location),
            hint="add a rule for it, or lower it in a pass before this one",
        )
    return rule


def _lower_pointer_types(function: ir.Operation, others: Iterable[ir.Operation], context: LoweringContext) -> None:
    """Values that pass through regions and signatures carry `!cute.ptr`; make them `!llvm.ptr` where they stand.

    A tensor map is the address of its bytes. `others` are the operations of `function` that are not of the `cute`
    dialect, which alone have regions.
    """
    for op in others:
        _set_types(op.results, context)
        for region in op.regions:
            for block in region:
                _set_types(block.arguments, context)
    if "function_type" in function.attributes:
        _set_function_type(function, context)


def _set_types(values: Iterable[ir.Value], context: LoweringContext) -> None:
    for value in values:
        if types.is_tensor_map(value.type):
            value.set_type(context.llvm_ptr("generic"))
        elif types.is_cute(value.type):
            value.set_type(context.llvm_ptr(ptr_info(value.type).space))


def _set_function_type(function: ir.Operation, context: LoweringContext) -> None:
    arguments = [argument.type for argument in function.regions[0].blocks[0].arguments]
    results = mlir.ir.FunctionType(mlir.ir.TypeAttr(function.attributes["function_type"]).value).results
    function.attributes["function_type"] = mlir.ir.TypeAttr.get(mlir.ir.FunctionType.get(arguments, results))


def read_layout(text: str, leaves32: Sequence[ir.Value], leaves64: Sequence[ir.Value]) -> Layout | ComposedLayout:
    """The layout written `text` over runtime leaves."""
    return layout_text.decode_layout(text, _leaf_source(leaves32, leaves64))


def read_coord(text: str, leaves32: Sequence[ir.Value], leaves64: Sequence[ir.Value]) -> Any:
    """The coordinate written `text` over runtime leaves."""
    return layout_text.decode_coord(text, _leaf_source(leaves32, leaves64))


def read_arguments(text: str, leaves32: Sequence[ir.Value], leaves64: Sequence[ir.Value]) -> tuple[Any, ...]:
    """The arguments of a view written `text` over runtime leaves."""
    return layout_text.decode_arguments(text, _leaf_source(leaves32, leaves64))


def _leaf_source(leaves32: Sequence[ir.Value], leaves64: Sequence[ir.Value]) -> Callable[[int, int], IntValue]:
    sources = {32: iter(leaves32), 64: iter(leaves64)}
    return lambda width, divisibility: IntValue(next(sources[width]), divisibility)


def gep(ptr: ir.Value, index: ir.Value, element: ir.Type) -> ir.Value:
    """`ptr` moved by `index` elements of an LLVM-compatible type."""
    return build.value(
        "llvm.getelementptr",
        ptr.type,
        (ptr, index),
        {
            "rawConstantIndices": build.i32_array([-2147483648]),  # kDynamicIndex
            "elem_type": mlir.ir.TypeAttr.get(element),
            "noWrapFlags": build.attribute("0 : i32"),
        },
    )


def gep_constant(ptr: ir.Value, index: int, element: ir.Type) -> ir.Value:
    """`ptr` moved by a constant number of elements."""
    if index == 0:
        return ptr
    return gep(ptr, build.constant(index, types.parse("i64")), element)
