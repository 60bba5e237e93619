"""The nodes of a function: expressions, statements, buffers, functions, modules. None of them can be changed.

A `Var` is itself and no other, whatever its name. Everything else is compared by what it says; where it stands in the
user's source (`location`) does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.base.location import SourceLocation
from tilewright.targets.tenstorrent.tir.frozen import Frozen

Place = SourceLocation | None


class Expr:
    """Base of expressions."""


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A value with a name: a parameter, the variable of a loop, what a `LetStmt` defines. `dtype` is its MLIR type."""

    name: str
    dtype: str = "i32"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class IntImm(Expr):
    """An integer."""

    value: int
    dtype: str = "i32"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class FloatImm(Expr):
    """A float; of a tensor type it is every element of a tile."""

    value: float
    dtype: str = "f32"

    def __str__(self) -> str:
        return f"{self.value!r}: {self.dtype}" if self.dtype.startswith("tensor") else repr(self.value)


@dataclass(frozen=True)
class StringImm(Expr):
    """A text."""

    value: str
    dtype: str = "string"

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Op:
    """What is called: `tt.cb.push_back`, `arith.addi`, or the name of a function that C++ has."""

    name: str


@dataclass(frozen=True)
class Call(Expr):
    """An operation with its operands and attributes; `dtype` is the MLIR type of its result, "" for none."""

    op: Op
    args: tuple[Expr, ...] = ()
    attrs: Frozen = field(default_factory=Frozen)
    dtype: str = ""
    location: Place = field(default=None, compare=False)

    def __str__(self) -> str:
        attrs = (f"{key}={value!r}" for key, value in self.attrs.items() if key != "extern")
        parts = [*map(str, self.args), *attrs]
        return f"{self.op.name}({', '.join(parts)})"

    def with_args(self, args: Iterable[Expr]) -> Call:
        """The same operation of other operands."""
        return replace(self, args=tuple(args))


class Stmt:
    """Base of statements."""

    def lines(self) -> list[str]:
        """The statement as lines of text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _short(value: Any, most: int = 100) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _indented(stmt: Stmt | None) -> list[str]:
    return [f"    {line}" for line in stmt.lines()] if stmt is not None else []


@dataclass(frozen=True)
class Evaluate(Stmt):
    """An operation for its effect."""

    value: Expr
    location: Place = field(default=None, compare=False)

    def lines(self) -> list[str]:
        return [str(self.value)]


@dataclass(frozen=True)
class LetStmt(Stmt):
    """From here on in its sequence `var` is `value`."""

    var: Var
    value: Expr
    location: Place = field(default=None, compare=False)

    def lines(self) -> list[str]:
        return [f"{self.var} = {self.value}"]


@dataclass(frozen=True)
class SeqStmt(Stmt):
    """Statements one after the other."""

    seq: tuple[Stmt, ...] = ()

    def lines(self) -> list[str]:
        return [line for item in self.seq for line in item.lines()]


@dataclass(frozen=True)
class For(Stmt):
    """`loop_var` from 0 to `extent`, not included.

    `kind` is `serial` for the user's loops, `work` for the loop over a core's blocks, `tiles` for one over the tiles of
    a block. `carried` are values that an iteration hands to the next: the body's variable and what it begins with; the
    body ends with a `Yield` of as many, and `results` are the variables for what is left after the loop.
    """

    loop_var: Var
    extent: Expr
    body: Stmt
    kind: str = "serial"
    carried: tuple[tuple[Var, Expr], ...] = ()
    results: tuple[Var, ...] = ()
    location: Place = field(default=None, compare=False)

    @property
    def min(self) -> IntImm:
        return IntImm(0)

    def lines(self) -> list[str]:
        notes = [] if self.kind == "serial" else [self.kind]
        notes += [f"{var} from {start}" for var, start in self.carried]
        notes += [f"gives {', '.join(map(str, self.results))}"] if self.results else []
        note = f"  # {'; '.join(notes)}" if notes else ""
        return [f"for {self.loop_var} in range({self.extent}):{note}", *(_indented(self.body) or ["    pass"])]


@dataclass(frozen=True)
class Yield(Stmt):
    """What an iteration hands on."""

    values: tuple[Expr, ...]

    def lines(self) -> list[str]:
        return [f"yield {', '.join(map(str, self.values))}"]


@dataclass(frozen=True)
class IfThenElse(Stmt):
    """A branch."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None
    location: Place = field(default=None, compare=False)

    def lines(self) -> list[str]:
        other = ["else:", *_indented(self.else_case)] if self.else_case is not None else []
        return [f"if {self.condition}:", *(_indented(self.then_case) or ["    pass"]), *other]


@dataclass(frozen=True)
class Buffer:
    """A tensor in the machine's memory that a function gets: strides in elements."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()
    attrs: Frozen = field(default_factory=Frozen)

    def with_attr(self, key: str, value: Any) -> Buffer:
        """The buffer with one more attribute."""
        return replace(self, attrs=self.attrs.updated({key: value}))


_MAP_HINT = "make a new function: func = func.with_buffer(param, buffer)"


@dataclass(frozen=True, eq=False)
class PrimFunc:
    """A function: parameters, the buffers of those that are tensors, attributes, a body.

    Nothing of it can be changed. `with_...` make a new one.
    """

    name: str
    params: tuple[Var, ...] = ()
    buffer_map: Mapping[Var, Buffer] = field(default_factory=lambda: Frozen(hint=_MAP_HINT))
    attrs: Frozen = field(default_factory=Frozen)
    body: Stmt = field(default_factory=SeqStmt)
    location: Place = None

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> PrimFunc:
        """The function with one more attribute, or several from a mapping."""
        return replace(self, attrs=self.attrs.updated(key if isinstance(key, Mapping) else {key: value}))

    def without_attr(self, key: str) -> PrimFunc:
        """The function without an attribute."""
        return replace(self, attrs=Frozen({name: item for name, item in self.attrs.items() if name != key}))

    def with_body(self, body: Stmt) -> PrimFunc:
        """The function with another body."""
        return replace(self, body=body)

    def with_buffer(self, param: Var, buffer: Buffer) -> PrimFunc:
        """The function with another buffer for a parameter."""
        return replace(self, buffer_map=Frozen({**self.buffer_map, param: buffer}, hint=_MAP_HINT))

    def with_name(self, name: str) -> PrimFunc:
        """The function under another name."""
        return replace(self, name=name)

    def buffer(self, name: str) -> Buffer | None:
        """The buffer of that name, if there is one."""
        return next((item for item in self.buffer_map.values() if item.name == name), None)

    def script(self) -> str:
        """The function as text."""
        params = ", ".join(f"{param.name}: {self._param_text(param)}" for param in self.params)
        lines = [f"    # {key} = {_short(value)}" for key, value in self.attrs.items()]
        for buffer in self.buffer_map.values():
            lines += [f"    # {buffer.name}: {key} = {_short(value)}" for key, value in buffer.attrs.items()]
        lines += [f"    {line}" for line in self.body.lines()] or ["    pass"]
        return "\n".join([f"def {self.name}({params}):", *lines])

    __str__ = script

    def _param_text(self, param: Var) -> str:
        buffer = self.buffer_map.get(param)
        return param.dtype if buffer is None else f"Buffer({buffer.shape}, {buffer.dtype!r})"


class GlobalVar(str):
    """The name of a function of a module."""

    __slots__ = ()

    @property
    def name_hint(self) -> str:
        return str(self)


class IRModule:
    """Functions by name; what is no `PrimFunc` (host code) goes through passes as it is."""

    def __init__(self, functions: Mapping[Any, Any], attrs: Mapping[str, Any] | None = None) -> None:
        self.functions: Mapping[GlobalVar, Any] = Frozen(
            {GlobalVar(name): item for name, item in functions.items()}, hint="make a new module: IRModule({...})"
        )
        self.attrs = attrs if isinstance(attrs, Frozen) else Frozen(attrs)

    def __getitem__(self, name: str) -> Any:
        return self.functions[GlobalVar(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    @property
    def prim_funcs(self) -> list[PrimFunc]:
        """The functions that passes over functions see."""
        return [item for item in self.functions.values() if isinstance(item, PrimFunc)]

    def with_functions(self, functions: Mapping[Any, Any]) -> IRModule:
        """A module of other functions with this one's attributes."""
        return IRModule(functions, self.attrs)

    def script(self) -> str:
        """The functions as text."""
        return "\n\n".join(item.script() for item in self.prim_funcs) + "\n"

    __str__ = script


def call(op: str, /, *args: Expr | int | float | str, dtype: str = "", location: Place = None, **attrs: Any) -> Call:
    """A call of operation `op`; Python's numbers and texts become immediates."""
    return Call(Op(op), tuple(map(as_expr, args)), Frozen(attrs), dtype, location)


def as_expr(item: Any) -> Expr:
    """A Python number or text as an expression; an expression as it is."""
    if isinstance(item, Expr):
        return item
    if isinstance(item, bool | int):
        return IntImm(int(item))
    return FloatImm(item) if isinstance(item, float) else StringImm(str(item))


def call_extern(dtype: str, name: str, *args: Any) -> Call:
    """A call of a C++ function by its name; `dtype` is `void` or the type of what it gives."""
    return Call(Op(name), tuple(map(as_expr, args)), Frozen({"extern": True}), "" if dtype == "void" else dtype)


def statements(stmt: Stmt | None) -> tuple[Stmt, ...]:
    """A statement as a list of statements."""
    if stmt is None:
        return ()
    return stmt.seq if isinstance(stmt, SeqStmt) else (stmt,)


def seq(items: Sequence[Stmt]) -> SeqStmt:
    """Statements as one, nested sequences flattened."""
    flat: list[Stmt] = []
    for item in items:
        flat += statements(item)
    return SeqStmt(tuple(flat))
