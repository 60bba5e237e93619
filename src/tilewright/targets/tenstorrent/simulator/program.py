"""A kernel as a generator of Python: it yields where it waits for a circular buffer.

`(circular buffer, way, tiles)` is what it yields: `room` for a producer, `tiles` for a consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewright.base.errors import PassError
from tilewright.base.location import SourceLocation
from tilewright.targets.tenstorrent.tir.frozen import Frozen
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    Stmt,
    Var,
    Yield,
    statements,
)

_COMPARE = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">=", 6: "<", 7: "<=", 8: ">", 9: ">="}
_OPERATORS = {
    "arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.divui": "//", "arith.remui": "%",
    "arith.floordivsi": "//", "arith.andi": "&", "arith.ori": "|", "arith.xori": "^", "arith.shli": "<<",
    "arith.shrui": ">>", "arith.shrsi": ">>",
}  # fmt: skip
_FUNCTIONS = {
    "arith.minsi": "min", "arith.minui": "min", "arith.maxsi": "max", "arith.maxui": "max",
    "arith.divsi": "quotient", "arith.remsi": "remainder",
}  # fmt: skip
_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")


def quotient(a: int, b: int) -> int:
    """Division towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    """What division towards zero leaves."""
    return a - quotient(a, b) * b


def expression(item: Expr) -> str:
    """An expression of integers in Python."""
    match item:
        case IntImm(value=value) | FloatImm(value=value):
            return f"({value!r})"
        case Var(name=name):
            return name
        case Call():
            return _call(item)
    raise PassError(f"{item} is no number")


def _call(item: Call) -> str:
    name, args = item.op.name, [expression(arg) for arg in item.args]
    if name in _OPERATORS:
        return f"({args[0]} {_OPERATORS[name]} {args[1]})"
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({args[0]}, {args[1]})"
    if name == "arith.cmpi":
        return f"({args[0]} {_COMPARE[int(item.attrs['predicate'])]} {args[1]})"
    if name == "arith.select":
        return f"({args[1]} if {args[0]} else {args[2]})"
    if name in _SAME:
        return args[0]
    raise PassError(
        f"the tenstorrent target does not take {name} in an index",
        location=item.location,
        hint="indices are integers: + - * // % and comparisons",
    )


@dataclass
class Program:
    """A kernel ready to run: `start(core, arguments)` gives its generator."""

    func: PrimFunc
    most_trips: int | None = None
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.role = str(self.func.attrs.get("tt.kernel_role", self.func.name))
        lines = ["def kernel(core, arguments):", "    if False: yield", *self._block(self.func.body)]
        scope: dict[str, Any] = {"quotient": quotient, "remainder": remainder, "attrs": self._attrs}
        exec(compile("\n".join(lines), f"<{self.func.name}>", "exec"), scope)
        self.start: Callable[[Any, dict[str, Any]], Iterator[Any]] = scope["kernel"]

    def location(self, at: int) -> SourceLocation | None:
        """The user's line of the call of that number."""
        return self.calls[at].location if 0 <= at < len(self.calls) else None

    def _attrs(self, at: int) -> Frozen:
        return self.calls[at].attrs

    def _block(self, stmt: Stmt | None) -> list[str]:
        lines = [f"    {line}" for item in statements(stmt) for line in self._lines(item)]
        return lines or ["    pass"]

    def _lines(self, item: Stmt) -> list[str]:
        match item:
            case For():
                return self._loop(item)
            case IfThenElse():
                other = ["else:", *self._block(item.else_case)] if item.else_case is not None else []
                return [f"if {expression(item.condition)}:", *self._block(item.then_case), *other]
            case LetStmt(value=Call() as found) if found.op.name.startswith("tt."):
                return self._operation(found, f"{item.var.name} = ")
            case LetStmt():
                return [f"{item.var.name} = {expression(item.value)}"]
            case Evaluate(value=Call() as found):
                return self._operation(found, "")
            case Evaluate():
                return []
        raise PassError(f"a {type(item).__name__} cannot be run")

    def _loop(self, item: For) -> list[str]:
        stop = expression(item.extent)
        if self.most_trips is not None and item.kind == "serial":
            stop = f"min({stop}, {self.most_trips})"
        *body, last = statements(item.body) or (None,)
        handed: list[str] = []
        inner = item.body
        if isinstance(last, Yield):
            names = ", ".join(var.name for var, _ in item.carried)
            handed = [f"    {names}, = {', '.join(map(expression, last.values))},"]
            inner = type(item.body)(tuple(body)) if hasattr(item.body, "seq") else item.body  # type: ignore[call-arg]
        before = [f"{var.name} = {expression(first)}" for var, first in item.carried]
        after = [f"{out.name} = {var.name}" for out, (var, _) in zip(item.results, item.carried, strict=True)]
        return [*before, f"for {item.loop_var.name} in range({stop}):", *self._block(inner), *handed, *after]

    def _operation(self, found: Call, target: str) -> list[str]:
        at = len(self.calls)
        self.calls.append(found)
        if found.attrs.get("extern"):
            return [f"{target}core.extern({at})"]
        if not found.op.name.startswith("tt."):
            raise PassError(
                f"{found.op.name} is no operation of a kernel",
                location=found.location,
                hint="kernels have operations of tt, integer arithmetic, and call_extern of C++ functions",
            )
        name = found.op.name.removeprefix("tt.").replace(".", "_")
        if name == "runtime_arg":
            return [f"{target}arguments[{found.attrs['name']!r}]"]
        args = [expression(arg) if not _is_tensor(arg) else repr(str(arg)) for arg in found.args]
        waits = {"cb_reserve_back": "room", "cb_wait_front": "tiles"}.get(name)
        asked = f"core.{name}({', '.join([str(at), *args])})"
        if waits is None:
            return [f"{target}{asked}"]
        buffer, count = args
        return [f"core.{name}_asked({at}, {buffer}, {count})",
                f"while not {buffer}.has_{waits}({count}): yield {buffer}, {waits!r}, {count}",
                asked]  # fmt: skip


def _is_tensor(item: Expr) -> bool:
    return isinstance(item, Var) and item.dtype.startswith("!cute.tensor")
