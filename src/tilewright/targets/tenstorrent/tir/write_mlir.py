"""Functions of `tir` as MLIR: the text of stage `tt`. Operations stand in MLIR's generic form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IRModule,
    LetStmt,
    PrimFunc,
    Stmt,
    StringImm,
    Var,
    Yield,
    statements,
)

_WIDE = ("predicate",)
_LEFT_OUT = ("tt.cpp",)
_SPECIAL = {"inf": "0x7FF0000000000000", "-inf": "0xFFF0000000000000", "nan": "0x7FF8000000000000"}


def module_text(mod: IRModule) -> str:
    """The functions of a module; host functions are not among them."""
    functions = "\n".join(_Writer(item).text() for item in mod.prim_funcs)
    return f"module {{\n{functions}\n}}\n"


def attribute_text(value: Any, name: str = "") -> str:
    """A value as an attribute."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : {'i64' if name in _WIDE else 'i32'}"
    if isinstance(value, float):
        text = repr(value)
        return f"{_SPECIAL.get(text) or (text if '.' in text else f'{value:e}')} : f64"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {attribute_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(attribute_text, value)) + "]"
    text = str(value)
    return text if text.startswith("#") else json.dumps(text, ensure_ascii=False)


def _key(name: Any) -> str:
    return str(name) if str(name).replace(".", "_").isidentifier() else json.dumps(str(name))


class _Writer:
    """Writes one function."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.count = 0
        self.lines: list[str] = []
        self.constants: dict[tuple[str, str], str] = {}

    def text(self) -> str:
        """The function."""
        params = ", ".join(f"%{item.name}: {item.dtype}" for item in self.func.params)
        attributes = {key: item for key, item in self.func.attrs.items() if key not in _LEFT_OUT}
        buffers = {item.name: item.attrs for item in self.func.buffer_map.values() if item.attrs}
        if buffers:
            attributes["tt.buffers"] = buffers
        noted = f" attributes {attribute_text(attributes)}" if attributes else ""
        self._block(self.func.body, 2)
        body = "\n".join([*(f"    {line}" for line in self._constant_lines()), *self.lines, "    return"])
        return f"  func.func @{self.func.name}({params}){noted} {{\n{body}\n  }}"

    def _constant_lines(self) -> list[str]:
        return [f"{name} = arith.constant {text} : {dtype}" for (text, dtype), name in self.constants.items()]

    def _emit(self, text: str, depth: int) -> None:
        self.lines.append("  " * depth + text)

    def _block(self, stmt: Stmt | None, depth: int) -> None:
        for item in statements(stmt):
            self._statement(item, depth)

    def _statement(self, item: Stmt, depth: int) -> None:
        match item:
            case LetStmt(value=Call() as found):
                self._call(found, depth, f"%{item.var.name} = ", item.var.dtype)
            case LetStmt():
                raise PassError(f"{item} names a constant", hint="use the constant itself")
            case Evaluate(value=Call() as found):
                self._call(found, depth, "", "")
            case Evaluate():
                return
            case For():
                self._loop(item, depth)
            case IfThenElse():
                self._branch(item, depth)
            case Yield():
                values = [self.operand(value, depth) for value in item.values]
                types = ", ".join(kind for _, kind in values)
                self._emit(f'"scf.yield"({", ".join(name for name, _ in values)}) : ({types}) -> ()', depth)

    def _loop(self, item: For, depth: int) -> None:
        bounds = [self.operand(bound, depth) for bound in (IntImm(0), item.extent, IntImm(1))]
        starts = [self.operand(start, depth) for _, start in item.carried]
        results = ", ".join(f"%{var.name}" for var in item.results)
        operands = ", ".join(name for name, _ in (*bounds, *starts))
        arguments = ", ".join(f"%{var.name}: {var.dtype}" for var in (item.loop_var, *(var for var, _ in item.carried)))
        self._emit(f'{results + " = " if results else ""}"scf.for"({operands}) ({{', depth)
        self._emit(f"^bb0({arguments}):", depth)
        self._block(item.body, depth + 1)
        if not item.carried:
            self._emit('"scf.yield"() : () -> ()', depth + 1)
        types = ", ".join(kind for _, kind in (*bounds, *starts))
        made = ", ".join(var.dtype for var in item.results)
        self._emit(f'}}) {{tt.kind = "{item.kind}"}} : ({types}) -> ({made})', depth)

    def _branch(self, item: IfThenElse, depth: int) -> None:
        name, kind = self.operand(item.condition, depth)
        self._emit(f'"scf.if"({name}) ({{', depth)
        self._block(item.then_case, depth + 1)
        self._emit('"scf.yield"() : () -> ()', depth + 1)
        self._emit("}, {", depth)
        if item.else_case is not None:
            self._block(item.else_case, depth + 1)
            self._emit('"scf.yield"() : () -> ()', depth + 1)
        self._emit(f"}}) : ({kind}) -> ()", depth)

    def _call(self, found: Call, depth: int, target: str, dtype: str) -> None:
        attributes = dict(found.attrs)
        name = found.op.name
        if attributes.pop("extern", False):
            attributes["callee"], name = name, "tt.call_extern"
        operands = []
        for number, item in enumerate(found.args):
            if isinstance(item, StringImm):
                attributes[f"text{number}"] = item.value
            else:
                operands.append(self.operand(item, depth))
        noted = ""
        if attributes:
            listed = ", ".join(f"{_key(key)} = {attribute_text(value, key)}" for key, value in attributes.items())
            noted = f" {{{listed}}}"
        types = ", ".join(kind for _, kind in operands)
        names = ", ".join(value for value, _ in operands)
        name = "tt." + name.removeprefix("tt.").replace(".", "_") if name.startswith("tt.") else name
        self._emit(f'{target}"{name}"({names}){noted} : ({types}) -> {dtype or "()"}', depth)

    def operand(self, item: Expr, depth: int) -> tuple[str, str]:
        """The name and type of the value of an expression; its operations are written before."""
        if isinstance(item, Var):
            return f"%{item.name}", item.dtype
        if isinstance(item, IntImm | FloatImm):
            return self._constant(item), item.dtype
        if isinstance(item, Call):
            name = f"%$x{self.count}"
            self.count += 1
            self._call(item, depth, f"{name} = ", item.dtype)
            return name, item.dtype
        raise PassError(f"{item} is no operand")

    def _constant(self, item: IntImm | FloatImm) -> str:
        number = attribute_text(float(item.value)).partition(" ")[0] if isinstance(item, FloatImm) else str(item.value)
        if item.dtype == "i1":
            number = "true" if item.value else "false"
        text = f"dense<{number}>" if item.dtype.startswith("tensor") else number
        return self.constants.setdefault((text, item.dtype), f"%$k{len(self.constants)}")
