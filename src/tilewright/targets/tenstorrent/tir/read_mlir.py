"""From MLIR at stage `cute` to functions of `tir`: kernels become `PrimFunc`s, host functions `HostFunc`s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import PassError
from tilewright.base.location import SourceLocation
from tilewright.ir import mlir
from tilewright.ir.accessors import constant_of, is_tensor, tensor_info, text_of
from tilewright.ir.locations import source_location
from tilewright.layout import ComposedLayout, Layout
from tilewright.passes.program import argument_name, arguments, host_functions, kernels, launches
from tilewright.targets.tenstorrent.tir.frozen import Frozen
from tilewright.targets.tenstorrent.tir.nodes import (
    Buffer,
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IRModule,
    LetStmt,
    Op,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    Yield,
)

if TYPE_CHECKING:
    from mlir import ir


@dataclass(frozen=True)
class Argument:
    """What a launch gives for a parameter: the host's parameter `name`, or a number known while compiling."""

    name: str = ""
    value: int | float | None = None


@dataclass(frozen=True)
class LaunchedKernel:
    """A launch of the host function."""

    kernel: str
    grid: tuple[int, int, int]
    arguments: Mapping[str, Argument]


@dataclass(frozen=True)
class HostFunc:
    """The host function: what it launches, in order."""

    name: str
    launches: tuple[LaunchedKernel, ...]


def read_module(module: ir.Operation) -> IRModule:
    """The module as functions of `tir`.

    Raises:
        PassError: something in it has no counterpart here, with the user's line.
    """
    found: dict[str, Any] = {}
    for function in host_functions(module):
        found[text_of(function, "sym_name")] = _host(function, module)
    grids = {item.kernel: item.grid for host in found.values() for item in host.launches}
    for kernel in kernels(module):
        name = text_of(kernel, "sym_name")
        made = _Reader(kernel).function()
        found[name] = made.with_attr("tt.grid", grids[name]) if name in grids else made
    return IRModule(found)


def _host(function: ir.Operation, module: ir.Operation) -> HostFunc:
    made: list[LaunchedKernel] = []
    for launch in launches(module):
        place = source_location(launch.op.location)
        grid = tuple(extent for extent in launch.grid if isinstance(extent, int))
        if len(grid) != len(launch.grid):
            raise refusal(
                "a grid whose extents are known only at run time", place, "compile with tensors of fixed shape"
            )
        taken = {identifier(name): _argument(value, name, place) for name, value in launch.arguments.items()}
        if any(item.kernel == launch.kernel for item in made):
            raise refusal(f"a second launch of kernel {launch.kernel}", place, "launch another @cute.kernel")
        made.append(LaunchedKernel(launch.kernel, grid, taken))  # type: ignore[arg-type]
    return HostFunc(text_of(function, "sym_name"), tuple(made))


def _argument(value: ir.Value, name: str, place: SourceLocation | None) -> Argument:
    number = constant_of(value)
    if number is not None:
        return Argument(value=number)
    owner = value.owner
    if getattr(owner, "name", "") == "cute.make_tensor":
        value = owner.operands[0]
    found = argument_name(value)
    if not found:
        raise refusal(
            f"argument {name} of a kernel, which host code computes", place, "pass the function's own argument"
        )
    return Argument(found)


def identifier(name: str) -> str:
    """The name of a parameter, such as `tensors.0`, as one of Python and C++."""
    return re.sub(r"\W+", "_", name).strip("_")


def refusal(what: str, place: SourceLocation | None, hint: str) -> PassError:
    """The error for a construct that this target does not have."""
    return PassError(f"the tenstorrent target does not take {what}", location=place, hint=hint)


class _Reader:
    """Reads one kernel; `values` are the expressions for values of MLIR."""

    def __init__(self, kernel: ir.Operation) -> None:
        self.kernel = kernel
        self.values: dict[ir.Value, Expr] = {}
        self.count = 0

    def function(self) -> PrimFunc:
        """The kernel."""
        params, buffers = [], {}
        place = source_location(self.kernel.location)
        for name, value in arguments(self.kernel).items():
            param = Var(identifier(name), str(value.type))
            params.append(param)
            self.values[value] = param
            if is_tensor(value):
                buffers[param] = _buffer(param.name, value, place)
        made = PrimFunc(text_of(self.kernel, "sym_name"), tuple(params), body=self._block(self.kernel.regions[0]))
        for param, buffer in buffers.items():
            made = made.with_buffer(param, buffer)
        return made

    def _block(self, region: Any, keeps_yield: bool = False) -> Stmt:
        found: list[Stmt] = []
        for op in region.blocks[0]:
            stmt = self._statement(op.operation, keeps_yield)
            if stmt is not None:
                found.append(stmt)
        return SeqStmt(tuple(found))

    def _statement(self, op: ir.Operation, keeps_yield: bool) -> Stmt | None:
        name, place = op.name, source_location(op.location)
        if name in ("gpu.return", "scf.yield"):
            return Yield(self._operands(op)) if keeps_yield and op.operands else None
        if name == "arith.constant":
            self._constant(op)
            return None
        if name == "scf.for":
            return self._loop(op, place)
        if name == "scf.if":
            if len(op.results):
                raise refusal("a value chosen by an `if` of run time", place, "use tile.where, or compute the value")
            bodies = [self._block(region) if len(region.blocks) else None for region in op.regions]
            return IfThenElse(self.values[op.operands[0]], bodies[0] or SeqStmt(), bodies[1], place)
        if len(op.regions) or len(op.results) > 1:
            raise refusal(f"{name}", place, "use the functions of tilewright.tile, loops and integers")
        attrs = Frozen({key: _attribute(op.attributes[key]) for key in op.attributes if key not in _DROPPED})
        dtype = str(op.results[0].type) if len(op.results) else ""
        made = Call(Op(name), self._operands(op), attrs, dtype, place)
        if not len(op.results):
            return Evaluate(made, place)
        return LetStmt(self._fresh(op.results[0]), made, place)

    def _operands(self, op: ir.Operation) -> tuple[Expr, ...]:
        return tuple(self.values[operand] for operand in op.operands)

    def _fresh(self, value: ir.Value, prefix: str = "v") -> Var:
        made = Var(f"{prefix}{self.count}", str(value.type))
        self.count += 1
        self.values[value] = made
        return made

    def _constant(self, op: ir.Operation) -> None:
        number, result = constant_of(op.results[0]), op.results[0]
        text = str(result.type)
        if number is None:
            raise refusal("a constant of several numbers", source_location(op.location), "fill a tile with one number")
        of_floats = isinstance(getattr(result.type, "element_type", result.type), mlir.ir.FloatType)
        is_float = of_floats or text.startswith("tensor")
        self.values[result] = FloatImm(float(number), text) if is_float else IntImm(int(number), text)

    def _loop(self, op: ir.Operation, place: SourceLocation | None) -> For:
        start, stop, step, *initial = self._operands(op)
        induction, *arguments_ = op.regions[0].blocks[0].arguments
        if start != IntImm(0, start.dtype) or step != IntImm(1, step.dtype):  # type: ignore[attr-defined]
            raise refusal("a loop that does not count from 0 by 1 when traced", place, "use range(n)")
        variable = self._fresh(induction, "i")
        carried = tuple(
            (self._fresh(argument, "c"), first) for argument, first in zip(arguments_, initial, strict=True)
        )
        body = self._block(op.regions[0], keeps_yield=True)
        results = tuple(self._fresh(result) for result in op.results)
        return For(variable, stop, body, "serial", carried, results, place)


_DROPPED = ("operandSegmentSizes", "fastmath", "overflowFlags")


def _buffer(name: str, value: ir.Value, place: SourceLocation | None) -> Buffer:
    info = tensor_info(value)
    layout = info.layout
    if isinstance(layout, ComposedLayout) or "?" in info.text:
        raise refusal(
            f"tensor {name}, whose shape or strides are known only at run time",
            place,
            "compile with arrays, or with tensors of fixed shape: f32[256,256]",
        )
    assert isinstance(layout, Layout)
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    return Buffer(name, shape, str(info.element), stride)


def _attribute(attribute: ir.Attribute) -> Any:
    kinds = mlir.ir
    if isinstance(attribute, kinds.BoolAttr | kinds.IntegerAttr | kinds.FloatAttr | kinds.StringAttr):
        return attribute.value
    return str(attribute)


__all__ = ["Argument", "HostFunc", "LaunchedKernel", "read_module", "refusal"]
