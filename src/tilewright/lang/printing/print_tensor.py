"""`print_tensor`: tensors printed by the running program, in CuTe's form.

    tensor(raw_ptr(0x00007f5f81200400: f32, gmem, align<4>) o (4,3):(3,1), data=
           [[-0.690547, -0.274619, -1.659539, ],
            [-1.843524, -1.648711,  1.163431, ],
            ...

Mode 0 runs down, mode 1 across, further modes make blocks; a tensor of rank 1 is a column. A nested mode is one axis,
indexed linearly. Small static tensors print with a few calls, each of whole lines; others by loops of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir import build, mlir, types
from tilewright.lang import trace
from tilewright.lang.diagnostics.argument_checks import instance, takes
from tilewright.lang.numbers.numeric import Int32, Int64, as_numeric
from tilewright.lang.printing.runtime_print import number_conversion, structured
from tilewright.lang.tensors.allocation import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import size

_INDENT = 7
_MOST_UNROLLED = 256  # elements
_MOST_ARGUMENTS = 28  # vprintf takes 32


@takes(instance("a tensor or a TensorSSA", Tensor, TensorSSA))
def print_tensor(tensor: Any, *, verbose: bool = False, loc: object = None, ip: object = None) -> None:
    """Print a tensor in any memory, a tensor of coordinates, or a TensorSSA, when the program runs.

    With `verbose` each element has a line with its coordinate.
    """
    trace.current()
    if isinstance(tensor, TensorSSA):
        tensor = _in_registers(tensor)
    extents = [size(extent) for extent in _modes(tensor)]
    static = [extent for extent in extents if isinstance(extent, int)]
    unrolled = len(static) == len(extents) and _product(static) <= _MOST_UNROLLED
    writer = _Writer(tensor, extents, unrolled)
    if verbose:
        writer.verbose()
    else:
        writer.blocks()


def _in_registers(source: TensorSSA) -> Tensor:
    copy = make_rmem_tensor(source.shape, source.dtype)
    copy.store(source)
    return copy


def _modes(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape if isinstance(tensor.shape, tuple) else (tensor.shape,)


def _product(numbers: list[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


class _Writer:
    """Collects text and operands, and prints them when the line is full or control flow begins."""

    def __init__(self, tensor: Tensor, extents: list[Any], unrolled: bool) -> None:
        self.tensor = tensor
        self.extents = extents
        self.unrolled = unrolled
        self.text = ""
        self.operands: list[Any] = []

    def blocks(self) -> None:
        """The data between brackets."""
        self._header("data=\n" + " " * _INDENT)
        rank = len(self.extents)
        if rank == 1:
            self._loop(self.extents[0], lambda i: self._row((i,), 1, ",\n" + " " * _INDENT, i))
        else:
            self._block(rank, ())
        self._add(")\n")
        self._flush()

    def _block(self, level: int, outer: tuple[Any, ...]) -> None:
        """All elements whose modes from `level` on are `outer`: rows at level 2, else blocks of the level below."""
        rank = len(self.extents)
        self._add("[")
        if level == 2:
            separator = ",\n" + " " * (_INDENT + rank - 1)
            self._loop(self.extents[0], lambda i: self._row((i, *outer), self.extents[1], separator, i))
        else:
            separator = "," + "\n" * (level - 1) + " " * (_INDENT + rank - level + 1)

            def inner(i: Any) -> None:
                self._between(i, separator)
                self._block(level - 1, (i, *outer))

            self._loop(self.extents[level - 1], inner)
        self._add("]")

    def _row(self, coord: tuple[Any, ...], extent: Any, separator: str, number: Any) -> None:
        self._between(number, separator)
        self._add("[")
        if len(self.extents) == 1:
            self._element(coord)
        else:
            self._loop(extent, lambda j: self._element((coord[0], j, *coord[1:])))
        self._add("]")

    def _element(self, coord: tuple[Any, ...]) -> None:
        if self._full():
            self._flush()
        self._value(coord, "% ")
        self._add(", ")

    def verbose(self) -> None:
        """One line for each element, the last mode fastest."""
        self._header("data= (\n")
        self._lines(())
        self._add(")\n")
        self._flush()

    def _lines(self, coord: tuple[Any, ...]) -> None:
        if len(coord) < len(self.extents):
            self._loop(self.extents[len(coord)], lambda i: self._lines((*coord, i)))
            return
        if self._full():
            self._flush()
        self._add("\t" + structured(coord, self.operands) + "= ")
        self._value(coord, "%")
        self._add("\n")

    def _header(self, rest: str) -> None:
        tensor = self.tensor
        start = structured(tensor.iterator, self.operands) if tensor.is_coordinates else self._pointer(tensor.iterator)
        self._add(f"tensor({start} o {structured(tensor.layout, self.operands)}, {rest}")

    def _pointer(self, pointer: Pointer) -> str:
        self.operands.append(Int64(pointer.toint()).ir_value())
        element = pointer.dtype.facts.mlir
        return f"raw_ptr(0x%016llx: {element}, {pointer.space_text}, align<{pointer.alignment}>)"

    def _value(self, coord: tuple[Any, ...], mark: str) -> None:
        value = self.tensor[coord if len(coord) > 1 else coord[0]]
        if self.tensor.is_coordinates:
            self._add(structured(value, self.operands))
            return
        self._add(number_conversion(as_numeric(value), mark, self.operands))

    def _loop(self, extent: Any, body: Callable[[Any], None]) -> None:
        if self.unrolled:
            for index in range(extent):
                body(index)
            return
        self._flush()
        i32 = types.parse("i32")
        bounds = [build.constant(0, i32), Int32(as_numeric(extent)).ir_value(), build.constant(1, i32)]
        loop = build.emit("scf.for", (), bounds, regions=1)
        block = loop.regions[0].blocks.append(i32, arg_locs=[loop.location])
        with mlir.ir.InsertionPoint(block):
            body(Int32.from_ir(block.arguments[0]))
            self._flush()
            build.emit("scf.yield")

    def _between(self, index: Any, text: str) -> None:
        """`text` before all but the first."""
        if isinstance(index, int):
            self._add(text if index else "")
            return
        self._flush()
        guard = build.emit("scf.if", (), ((index != 0).ir_value(),), regions=2)
        with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
            self._add(text)
            self._flush()
            build.emit("scf.yield")

    def _add(self, text: str) -> None:
        self.text += text

    def _full(self) -> bool:
        return len(self.operands) > _MOST_ARGUMENTS - 2 * len(self.extents)

    def _flush(self) -> None:
        if self.text:
            build.emit("gpu.printf", (), self.operands, {"format": build.string(self.text)})
        self.text, self.operands = "", []
