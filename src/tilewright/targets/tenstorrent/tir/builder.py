"""Writing small functions of `tir` by hand, as tests of passes do.

    @ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((256, 256), "float32")):
            for i, j in T.grid(256, 256):
                A[i, j] = 0.0

    Module["main"]

The body is run once: loops over `T.grid` and `T.serial` become `For`, `T.evaluate` an `Evaluate`, reading and writing
elements calls of `cute.load` and `cute.store`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import PassError
from tilewright.base.location import SourceLocation
from tilewright.targets.tenstorrent.tir import nodes
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    For,
    IntImm,
    IRModule,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    as_expr,
)

_ELEMENTS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int32": "i32"}


@dataclass(frozen=True)
class BufferType:
    """The annotation of a parameter that is a tensor."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shape[mode + 1 :]) for mode in range(len(self.shape)))

    @property
    def element(self) -> str:
        return _ELEMENTS.get(self.dtype, self.dtype)

    @property
    def mlir(self) -> str:
        shape, strides = (",".join(map(str, item)) for item in (self.shape, self.strides))
        width = 2 if self.element in ("bf16", "f16") else 4
        return f'!cute.tensor<{self.element}, "gmem", "({shape}):({strides})", {width} : i32>'


@dataclass(frozen=True)
class BufferHandle:
    """A tensor inside the body of a function that is being written."""

    var: Var
    kind: BufferType
    script: Script

    def __getitem__(self, index: Any) -> Call:
        return nodes.call("cute.load", self.var, *_indices(index), dtype=self.kind.element)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.script.emit(Evaluate(nodes.call("cute.store", as_expr(value), self.var, *_indices(index))))


def _indices(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


class Script:
    """What `T` offers."""

    i32, f32 = "i32", "f32"  # annotations of parameters that are numbers

    def __init__(self) -> None:
        self._blocks: list[list[Stmt]] = []
        self._count = 0

    def Buffer(self, shape: Sequence[int], dtype: str = "float32") -> Any:
        """The annotation of a tensor."""
        return BufferType(tuple(shape), dtype)

    def prim_func(self, function: Callable[..., Any]) -> PrimFunc:
        """Decorator: run the body, and gather what it says."""
        annotations = inspect.get_annotations(function, eval_str=True)
        params, buffers, arguments = [], {}, []
        for name in inspect.signature(function).parameters:
            kind = annotations.get(name, "i32")
            var = Var(name, kind.mlir if isinstance(kind, BufferType) else str(kind))
            params.append(var)
            arguments.append(BufferHandle(var, kind, self) if isinstance(kind, BufferType) else var)
            if isinstance(kind, BufferType):
                buffers[var] = nodes.Buffer(name, kind.shape, kind.element, kind.strides)
        self._blocks, self._count = [[]], 0
        try:
            function(*arguments)
            body = SeqStmt(tuple(self._blocks[0]))
        finally:
            self._blocks = []
        code = function.__code__
        place = SourceLocation(code.co_filename, code.co_firstlineno)
        made = PrimFunc(function.__name__, tuple(params), body=body, location=place)
        for var, buffer in buffers.items():
            made = made.with_buffer(var, buffer)
        return made

    def emit(self, stmt: Stmt) -> None:
        """Add a statement to the block under way."""
        if not self._blocks:
            raise PassError("statements are written in a function", hint="decorate it with @T.prim_func")
        self._blocks[-1].append(stmt)

    def evaluate(self, value: Any) -> None:
        """A call for its effect; a number does nothing."""
        self.emit(Evaluate(as_expr(value)))

    def let(self, value: Expr, name: str = "v") -> Var:
        """A name for a value."""
        var = Var(f"{name}{self._next()}", getattr(value, "dtype", "") or "i32")
        self.emit(nodes.LetStmt(var, value))
        return var

    def serial(self, extent: int) -> Iterator[Var]:
        """A loop."""
        for (var,) in self.grid(extent):
            yield var

    def grid(self, *extents: int) -> Iterator[tuple[Var, ...]]:
        """Nested loops, the first outermost."""
        variables = tuple(Var(f"i{self._next()}") for _ in extents)
        self._blocks.append([])
        yield variables
        stmt: Stmt = SeqStmt(tuple(self._blocks.pop()))
        for var, extent in reversed(list(zip(variables, extents, strict=True))):
            stmt = For(var, IntImm(extent), stmt)
        self.emit(stmt)

    call = staticmethod(nodes.call)
    call_extern = staticmethod(nodes.call_extern)

    def _next(self) -> int:
        self._count += 1
        return self._count - 1


def ir_module(cls: type) -> IRModule:
    """Decorator: the functions of a class as a module."""
    return IRModule({name: item for name, item in vars(cls).items() if isinstance(item, PrimFunc)})


T = Script()
