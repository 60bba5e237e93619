"""Pins: in a debug build the program says, line by line, what the variables of the source hold.

While a kernel is traced, Python calls `_Frames` before each line of its functions, those under `@jit` and `@kernel`;
each variable that has got another value since the line before becomes an operation `cute.pin`, whose operands keep it
alive up to there. The target writes it as a comment of its assembly that names registers. The code differs from that of
other builds: values are computed at the line where they are assigned, and tensors of registers lie in local memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from tilewright.base import settings
from tilewright.ir import build, layout_text, mlir, types
from tilewright.lang import trace
from tilewright.lang.locations import REGION_PREFIX
from tilewright.lang.numbers.numeric import Int64, Numeric
from tilewright.lang.rewrite.rewriter import is_rewritten_code
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.swizzled_pointer import base_of
from tilewright.lang.tensors.tensor import Tensor, placed_layout
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import ComposedLayout, Layout

if TYPE_CHECKING:
    from mlir import ir

MOST_ELEMENTS = 64
"""Elements of a vector that are pinned."""
MOST_TEXT = 120
WIDTHS = (1, 8, 16, 32, 64)
"""Bits of the numbers that fit a register."""
_PLAIN = (bool, int, float, str, type(None), Layout, ComposedLayout)
Pin = tuple[str, list["ir.Value"]]


@contextmanager
def pinned() -> Iterator[None]:
    """Inside, the variables of device functions are pinned, if the setting `pin_variables` says so."""
    if not settings.get("pin_variables"):
        yield
        return
    before = sys.gettrace()
    sys.settrace(_Frames().entered)
    try:
        yield
    finally:
        sys.settrace(before)


class _Frames:
    """What the variables of each function under way held at its last line."""

    def __init__(self) -> None:
        self._held: dict[FrameType, dict[str, Any]] = {}

    def entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Python enters a function."""
        if not is_rewritten_code(frame.f_code):
            return None
        self._held[frame] = self._of_function_around(frame)
        return self._line

    def _of_function_around(self, frame: FrameType) -> dict[str, Any]:
        """The body of a region shares the variables of the function around it."""
        outer: FrameType | None = frame
        if frame.f_code.co_name.startswith(REGION_PREFIX):
            while outer is not None:
                if outer is not frame and outer in self._held:
                    return self._held[outer]
                outer = outer.f_back
        return {}

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return":
            held = self._held.pop(frame, {})
            self._pin_changes(frame, held)
        elif event == "line":
            self._pin_changes(frame, self._held.get(frame, {}))
        return self._line

    @staticmethod
    def _pin_changes(frame: FrameType, held: dict[str, Any]) -> None:
        if trace.current().side != "device":
            return
        for name, value in list(frame.f_locals.items()):
            if name == "_" or name.startswith("__") or (name in held and held[name] is value):
                continue
            held[name] = value
            for path, kind, values in pins_of(name, value):
                if all(_is_visible(item) for item in values):
                    path = f"{_function(frame.f_code)}.{path}"
                    build.cute("pin", (), (values,), name=build.string(path), kind=build.string(kind))


def _function(code: CodeType) -> str:
    """The name of the function that the source has around a line of `code`."""
    parts = code.co_qualname.split(".")
    return next((part for part in reversed(parts) if not part.startswith((REGION_PREFIX, "<"))), code.co_name)


def _is_visible(value: ir.Value) -> bool:
    """Whether a value may be used at the insertion point: a variable may hold one of a region that has ended."""
    owner = value.owner
    home = owner if isinstance(owner, mlir.ir.Block) else owner.operation.block
    block = mlir.ir.InsertionPoint.current.block
    while block != home:
        around = block.owner.operation
        if around.name == "gpu.func":
            return False
        block = around.block
    return True


def pins_of(name: str, value: Any) -> Iterator[tuple[str, str, list[ir.Value]]]:
    """Name, kind and machine values of each part of a value that a debugger can show."""
    if getattr(type(value), "__tw_undefined__", False):
        return
    if isinstance(value, Numeric):
        kind = type(value).facts.name
        if value.is_static:
            yield name, f"constant {value.value}", []
        elif type(value).width in WIDTHS:
            yield name, kind, [value.ir_value()]
    elif isinstance(value, TensorSSA) and value.dtype.width in WIDTHS:
        yield from _of_vector(name, value)
    elif isinstance(value, Tensor):
        yield from _of_tensor(name, value)
    elif isinstance(value, Pointer):
        yield name, f"pointer {value.dtype.facts.name} {value.memspace}", [base_of(value).toint().ir_value()]
    elif type(value) in (tuple, list) and len(value) <= 8 and any(_is_shown(item) for item in value):
        if all(isinstance(item, _PLAIN) for item in value):
            yield from _constant(name, value)
        else:
            for number, item in enumerate(value):
                yield from pins_of(f"{name}[{number}]", item)
    elif isinstance(value, _PLAIN):
        yield from _constant(name, value)


def _is_shown(value: Any) -> bool:
    return isinstance(value, (*_PLAIN, Numeric, Tensor, TensorSSA, Pointer, tuple, list))


def _constant(name: str, value: Any) -> Iterator[tuple[str, str, list[ir.Value]]]:
    text = repr(value) if isinstance(value, str) else str(value)
    if len(text) <= MOST_TEXT and text.isprintable() and not set(text) & set("{}|$"):
        yield name, f"constant {text}", []


def _of_vector(name: str, value: TensorSSA) -> Iterator[tuple[str, str, list[ir.Value]]]:
    kind, count = value.dtype.facts.name, min(value.size, MOST_ELEMENTS)
    element = types.parse(value.dtype.facts.mlir)
    values = [
        build.value("vector.extract", element, (value.value,), {"static_position": build.i64_array([place])})
        for place in range(count)
    ]
    yield name, f"vector {kind} {value.size}", values


def _of_tensor(name: str, value: Tensor) -> Iterator[tuple[str, str, list[ir.Value]]]:
    """The address, then the leaves of the layout that are known at run time, in the order of the text."""
    if value.is_coordinates:
        return
    text, leaves32, leaves64 = layout_text.encode(placed_layout(value))
    sources = {32: iter(leaves32), 64: iter(leaves64)}
    leaves = [Int64(next(sources[width])).ir_value() for width in layout_text.widths(text)]
    address = Int64(base_of(value._pointer("a pin")).toint()).ir_value()
    kind = f"tensor {value.element_type.facts.name} {value.memspace} {layout_text.without_facts(text)}"
    yield name, kind, [address, *leaves]
