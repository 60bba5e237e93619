"""expand-views: compute where the views of tensors begin, and turn whole tensors into addresses and runtime leaves.

before: `%t = cute.view %x, %i {algebra = "local_tile", arguments = "(128);(?)"}`, tensors among the arguments of
        kernels and the values that regions carry
after:  `%p = cute.ptr_offset %address, %offset` and `%t = cute.make_tensor %p` for the tensors that are accessed;
        kernels and regions take each tensor as its address, then its leaves of 32 bits, then those of 64

Operations of users are lowered first, by their own rules. Arithmetic that several views of a block share is done once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.ir import build, layout_text, mlir, types
from tilewright.ir.accessors import number_of, parameters, ptr_info, tensor_layout_text, text_of
from tilewright.ir.context import current, located
from tilewright.ir.int_value import IntValue, materialize, whole_groups, widen
from tilewright.layout import ComposedLayout, Layout, runtime_checks, transform_leaf, views
from tilewright.layout.dynamic import add
from tilewright.passes.lowering import TensorView, read_arguments, read_layout
from tilewright.passes.pass_errors import locate_error
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.program import functions
from tilewright.passes.rules import packed
from tilewright.passes.split_tensors import split_tensors
from tilewright.passes.user_ops import lower_user_ops

if TYPE_CHECKING:
    from mlir import ir


@register
class ExpandViews(Pass):
    """See the module."""

    name = "expand-views"

    def run(self, module: ir.Operation) -> None:
        lower_user_ops(module)
        for function in functions(module):
            split_tensors(function)
            with _sharing():
                _Expansion().block(function.regions[0].blocks[0])


@contextmanager
def _sharing() -> Iterator[None]:
    """Find equal operations of a block again: a block is walked from its beginning to its end."""
    session = current()
    before, session.appending = session.appending, True
    session.pure.clear()
    try:
        yield
    finally:  # of this session: after an interrupt it may run when there is none, or the next
        session.appending = before
        session.pure.clear()


class _Expansion:
    """The tensors of a function met so far, as addresses and layouts."""

    def __init__(self) -> None:
        self.tensors: dict[ir.Value, TensorView] = {}

    def block(self, block: ir.Block) -> None:
        dead = []
        for op in [op.operation for op in block.operations]:
            step = _STEPS.get(op.name)
            if step is not None:
                location = op.location
                try:
                    with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
                        step(self, op)
                except Exception as error:
                    locate_error(error, op, location)
                    raise
                dead.append(op)
            for region in op.regions:
                for inner in region:
                    self.block(inner)
        for op in reversed(dead):
            if not any(True for _ in op.results[0].uses):
                op.erase()

    def make_tensor(self, op: ir.Operation) -> None:
        (ptr,), leaves32, leaves64 = build.groups(op)
        result = op.results[0]
        layout = read_layout(tensor_layout_text(result.type), leaves32, leaves64)
        self.tensors[result] = TensorView(ptr, layout, ptr_info(result.type))

    def iterator(self, op: ir.Operation) -> None:
        op.results[0].replace_all_uses_with(self.tensors[op.operands[0]].ptr)

    def leaf(self, op: ir.Operation) -> None:
        index = int(mlir.ir.IntegerAttr(op.attributes["index"]).value)
        found = layout_text.leaves(self.tensors[op.operands[0]].layout)[index]
        op.results[0].replace_all_uses_with(materialize(found, op.results[0].type.width))

    def view(self, op: ir.Operation) -> None:
        source = self.tensors[op.operands[0]]
        result = op.results[0]
        found = expanded(op, source)
        self.tensors[result] = found
        if all(use.owner.name in ("cute.view", "cute.leaf", "cute.iterator") for use in result.uses):
            return
        _, leaves32, leaves64 = layout_text.encode(found.layout)
        groups = ((found.ptr,), [leaf.value for leaf in leaves32], [leaf.value for leaf in leaves64])
        made = build.cute("make_tensor", (result.type,), groups).results[0]
        self.tensors[made] = found
        result.replace_all_uses_with(made)


_STEPS = {
    "cute.make_tensor": _Expansion.make_tensor,
    "cute.view": _Expansion.view,
    "cute.iterator": _Expansion.iterator,
    "cute.leaf": _Expansion.leaf,
}


def expanded(op: ir.Operation, source: TensorView) -> TensorView:
    """The tensor that a `cute.view` of `source` gives; its arithmetic is built at the insertion point."""
    _, arguments32, arguments64, leaves32, leaves64 = build.groups(op)
    arguments = read_arguments(text_of(op, "arguments"), arguments32, arguments64)
    if number_of(op, "width") == 64:  # the offset may not fit 31 bits, so no product on the way to it may
        source = replace(source, layout=_with_wide_strides(source.layout))
    with runtime_checks(lambda fact: None):  # they were asked for when the view was made
        cut = views.cut(source.layout, text_of(op, "algebra"), arguments)
        start = cut.start
    info = ptr_info(op.results[0].type)
    inner, offset_text, outer = _layout_parts(tensor_layout_text(op.results[0].type))
    layout: Layout | ComposedLayout = read_layout(outer, leaves32, leaves64)
    ptr = _recast(source, op.results[0].type)
    moves = text_of(op, "moves")
    if inner:
        offset = cut.layout.offset if isinstance(cut.layout, ComposedLayout) else source.layout.offset  # type: ignore[union-attr]
        if moves == "swizzle":
            offset = add(offset, start)
        swizzle = layout_text.decode_swizzle(inner)
        layout = ComposedLayout(swizzle, _as_written(offset, offset_text), layout)
    if moves == "pointer":
        ptr = _moved(ptr, start, op.results[0].type)
    return TensorView(ptr, layout, info)


def _with_wide_strides(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    if isinstance(layout, ComposedLayout):
        return layout
    return Layout(layout.shape, transform_leaf(widen, layout.stride))


def _layout_parts(text: str) -> tuple[str, str, str]:
    """Swizzle, offset and outer layout of a layout's text; "" for a swizzle that is not there."""
    inner, _, rest = text.rpartition(" o ")
    swizzle, _, offset = inner.partition(" o ")
    return swizzle, offset, rest


def _as_written(offset: Any, text: str) -> Any:
    """The offset with the width and divisor that the type says."""
    if not text.startswith("?"):
        return int(text)
    (width,) = layout_text.widths(text)
    known = layout_text.decode_coord(text, lambda _, divisibility: divisibility)
    return IntValue(materialize(offset, width), known)


def _recast(source: TensorView, type_: ir.Type) -> ir.Value:
    """The address of `source` as one of elements of the tensor type `type_`."""
    element, space, *_ = parameters(type_)
    if types.parse(element) == source.info.element:
        return source.ptr
    pointer = types.parse(f'!cute.ptr<{element}, "{space}", {source.info.align} : i32>')
    return build.cute("ptr_cast", (pointer,), ((source.ptr,),)).results[0]


def _moved(ptr: ir.Value, offset: Any, type_: ir.Type) -> ir.Value:
    """The address `offset` elements on, as aligned as the tensor type `type_` says."""
    if isinstance(offset, int) and offset == 0:
        return ptr
    element, space, *_, align = parameters(type_)
    bits = packed.bits_of(ptr_info(ptr.type).element) or 8
    index = materialize(whole_groups(offset, bits), 64 if isinstance(offset, int) else offset.width)
    pointer = types.parse(f'!cute.ptr<{element}, "{space}", {align}>')
    return build.cute("ptr_offset", (pointer,), ((ptr,), (index,))).results[0]
