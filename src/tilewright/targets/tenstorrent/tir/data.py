"""Modules as JSON, and back: what an artifact keeps. Nothing but data is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.targets.tenstorrent.tir import nodes, read_mlir
from tilewright.targets.tenstorrent.tir.frozen import Frozen
from tilewright.targets.tenstorrent.tir.nodes import IRModule, Var

_CLASSES: Final[dict[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        nodes.IntImm, nodes.FloatImm, nodes.StringImm, nodes.Op, nodes.Call, nodes.Evaluate, nodes.LetStmt,
        nodes.SeqStmt, nodes.For, nodes.Yield, nodes.IfThenElse, nodes.Buffer, nodes.PrimFunc,
        read_mlir.Argument, read_mlir.LaunchedKernel, read_mlir.HostFunc, SourceLocation,
    )
}  # fmt: skip


def module_to_json(module: IRModule) -> str:
    """A module as text."""
    writer = _Writer()
    functions = [[str(name), writer.write(item)] for name, item in module.functions.items()]
    return json.dumps({"variables": writer.variables, "functions": functions})


def module_from_json(text: str) -> IRModule:
    """The module of a text that `module_to_json` wrote.

    Raises:
        CompileError: it is another text.
    """
    try:
        found = json.loads(text)
        reader = _Reader([Var(name, dtype) for name, dtype in found["variables"]])
        return IRModule({name: reader.read(item) for name, item in found["functions"]})
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CompileError(
            "the program of an artifact cannot be read",
            values={"reason": error},
            hint="compile the function again: the artifact is damaged, or of another version",
        ) from error


class _Writer:
    """A variable is written as its number in a table, so that it is one again when it is read."""

    def __init__(self) -> None:
        self.numbers: dict[Var, int] = {}
        self.variables: list[tuple[str, str]] = []

    def write(self, item: Any) -> Any:
        if isinstance(item, Var):
            if item not in self.numbers:
                self.numbers[item] = len(self.variables)
                self.variables.append((item.name, item.dtype))
            return {"var": self.numbers[item]}
        if is_dataclass(item) and not isinstance(item, type):
            return {type(item).__name__: [self.write(getattr(item, field.name)) for field in fields(item)]}
        if isinstance(item, Mapping):
            return {"map": [[self.write(key), self.write(value)] for key, value in item.items()]}
        if isinstance(item, tuple | list):
            return [self.write(part) for part in item]
        return item


class _Reader:
    def __init__(self, variables: list[Var]) -> None:
        self.variables = variables

    def read(self, item: Any) -> Any:
        if isinstance(item, list):
            return tuple(map(self.read, item))
        if not isinstance(item, dict):
            return item
        ((name, content),) = item.items()
        if name == "var":
            return self.variables[content]
        if name == "map":
            return Frozen({self.read(key): self.read(value) for key, value in content})
        cls = _CLASSES[name]
        return cls(**{field.name: self.read(part) for field, part in zip(fields(cls), content, strict=True)})
