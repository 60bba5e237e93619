"""A program whose results say which state of each of its parts was compiled, and ways to change each part.

`out[k]` of the kernel is the value of part k. A world is two modules on disk, imported under names of its own; an edit
changes one part, in memory or in a file that is then imported anew.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.passes import OpSpec, register_op

VALUES = (1, 2, 3)
VARIABLE = "EDITS_OF_A_TEST"

HELPER = """
import dataclasses
import enum
import functools
import json
import os
from typing import NamedTuple

import mlir.ir as ir

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import passes

GAIN = {gain}

def plus_gain(v):
    return v + GAIN

def code():
    return {code}

def _deep():
    return [{nested}][0]

def nested():
    return (lambda: _deep())()

def make_scale(n):
    def scale():
        return n
    return scale

scale = make_scale({closure})

class Base:
    def inherited(self):
        return {inherited}

class Config(Base):
    width = {class_attribute}
    limits = dict(low={class_dict})

    @property
    def depth(self):
        return {property}

    @classmethod
    def made(cls):
        return {classmethod}

    @staticmethod
    def fixed():
        return {staticmethod}

    def __call__(self):
        return {call}

    def __getattr__(self, name):
        if name == "dynamic":
            return {getattr}
        raise AttributeError(name)

class Slotted:
    __slots__ = ("n",)
    def __init__(self, n):
        self.n = n

@dataclasses.dataclass
class Params:
    n: int = {field_default}
    m: int = 0

@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int = {frozen_field}

class Pair(NamedTuple):
    first: int = {named_tuple}

class Color(enum.Enum):
    RED = {enum}

config = Config()
slotted = Slotted({slot})
params = Params(m={instance})

def with_default(v={default}):
    return v

def with_keyword(*, v={keyword_default}):
    return v

TABLE = [{list}, 0]
MAP = dict(a=dict(b=[{nested_dict}]))
part = functools.partial(lambda *, n: n, n={partial})
FUNCTIONS = dict(f=lambda: {function_in_dict})

def environment():
    return int(os.environ.get("{variable}", "0"))

def from_file():
    with open(os.path.join(os.path.dirname(__file__), "number.json")) as file:
        return json.load(file)

def counted():
    return sum(x for x in range({generator} + 1)) - sum(range({generator}))

def attribute():
    return attribute.value

attribute.value = {function_attribute}

class Renumber(cutlass.Pass):
    # puts other numbers in the place of 7001, 7002 and 7003

    name = "renumber"
    stage = "cute"

    def __init__(self):
        super().__init__()
        self.n = {pass_attribute}

    def code(self):
        return {pass_code}

    def run(self, module):
        numbers = {{7001: self.n, 7002: self.code(), 7003: PASS_GLOBAL}}
        for op in passes.operations(module):
            if op.name == "arith.constant" and op.attributes["value"].type == ir.IntegerType.get_signless(32):
                number = numbers.get(ir.IntegerAttr(op.attributes["value"]).value)
                if number is not None:
                    op.attributes["value"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)

PASS_GLOBAL = {pass_global}
"""

MAIN = """
import tilewright as cutlass
import tilewright.cute as cute
import {package}.helper as helper
import {package}.sub.deep
from {package}.helper import Color, Config, Pair

LOCAL = {local_global}

@cute.jit
def inlined(v):
    return v + {inlined_jit} - 1

@cute.kernel
def kernel(out: cute.Tensor, given: cutlass.Constexpr, box: cutlass.Constexpr):
    pair = Pair()
    record = helper.Params()
    out[0] = helper.plus_gain(0)
    out[1] = helper.code()
    out[2] = helper.nested()
    out[3] = helper.scale()
    out[4] = helper.config.inherited()
    out[5] = Config.width
    out[6] = helper.config.limits["low"]
    out[7] = helper.config.depth
    out[8] = Config.made()
    out[9] = helper.Config.fixed()
    out[10] = helper.config()
    out[11] = helper.config.dynamic
    out[12] = record.n
    out[13] = helper.Frozen().n
    out[14] = pair.first
    out[15] = Color.RED.value
    out[16] = helper.slotted.n
    out[17] = helper.params.m
    out[18] = helper.with_default()
    out[19] = helper.with_keyword()
    out[20] = helper.TABLE[0]
    out[21] = helper.MAP["a"]["b"][0]
    out[22] = helper.part()
    out[23] = helper.FUNCTIONS["f"]()
    out[24] = helper.counted()
    out[25] = helper.attribute()
    out[26] = {package}.sub.deep.VALUE
    out[27] = LOCAL
    out[28] = inlined(1)
    out[29] = given
    out[30] = box.n
    out[31] = cute.ceil_div(2, 1)
    out[32] = {literal}
    i = 0
    while i < 1:
        out[33] = helper.code()
        i = i + 1
    out[37] = 7001
    out[38] = 7002
    out[39] = 7003
{optional}

@cute.jit
def run(out: cute.Tensor, given: cutlass.Constexpr, box: cutlass.Constexpr):
    kernel(out, given, box).launch(grid=1, block=1)
"""

HELPER_PARTS = (
    "gain", "code", "nested", "closure", "inherited", "class_attribute", "class_dict", "property", "classmethod",
    "staticmethod", "call", "getattr", "field_default", "frozen_field", "named_tuple", "enum", "slot", "instance",
    "default", "keyword_default", "list", "nested_dict", "partial", "function_in_dict", "generator",
    "function_attribute",
)  # fmt: skip
MAIN_PARTS = (
    "sub_module",
    "local_global",
    "inlined_jit",
    "constexpr",
    "constexpr_object",
    "toolkit_function",
    "literal",
)
PASS_PARTS = ("pass_attribute", "pass_code", "pass_global")
PARTS = (*HELPER_PARTS, *MAIN_PARTS, *PASS_PARTS)
OPTIONAL = {
    "environment": "    out[34] = helper.environment()",
    "file": "    out[35] = helper.from_file()",
    "operation": "    out[36] = helper.bump(out[36])",
}


class Box:
    """An object that is passed as a constant of compile time."""

    def __init__(self, n: int) -> None:
        self.n = n


class World:
    """The two modules, and the value that each part has now."""

    def __init__(self, folder: Path, seed: int, optional: tuple[str, ...] = ()) -> None:
        self.random = random.Random(seed)
        self.package = f"edited_{seed}_{'_'.join(optional)}"
        self.folder = folder / self.package
        self.optional = optional
        self.state = {part: self.random.choice(VALUES) for part in (*PARTS, *OPTIONAL)}
        self.saved = dict(self.state)
        self.box = Box(self.state["constexpr_object"])
        self.original = cute.ceil_div
        self.state["toolkit_function"] = 2
        self.folder.mkdir(parents=True)
        sys.path.insert(0, str(folder))
        self.import_anew()

    def close(self) -> None:
        """Put back what is not the world's own."""
        cute.ceil_div = self.original
        sys.path.remove(str(self.folder.parent))
        os.environ.pop(VARIABLE, None)
        for name in [name for name in sys.modules if name.partition(".")[0] == self.package]:
            del sys.modules[name]

    def import_anew(self) -> None:
        """Write the files and import them; what was changed in memory is as the files say."""
        values = {**self.state, "package": self.package, "variable": VARIABLE}
        values["optional"] = "\n".join(OPTIONAL[name] for name in self.optional)
        (self.folder / "sub").mkdir(exist_ok=True)
        for name in ("__init__.py", "sub/__init__.py"):
            (self.folder / name).touch()
        (self.folder / "sub" / "deep.py").write_text(f"VALUE = {self.state['sub_module']}\n")
        (self.folder / "helper.py").write_text(HELPER.format(**values))
        (self.folder / "main.py").write_text(MAIN.format(**values))
        (self.folder / "number.json").write_text(str(self.state["file"]))
        os.environ[VARIABLE] = str(self.state["environment"])
        importlib.invalidate_caches()
        self.deep, self.helper, self.main = (
            importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)
            for name in (f"{self.package}.sub.deep", f"{self.package}.helper", f"{self.package}.main")
        )
        self.renumber = self.helper.Renumber()
        if "operation" in self.optional:
            self.operation(self.state["operation"])

    def unshadowed(self, name: str) -> Any:
        """The module of helpers, where no object or class hides what a class below it has under this name."""
        for holder in (self.helper.config, self.helper.Config):
            if name in vars(holder):
                delattr(holder, name)
        return self.helper

    def another_pass(self, **changed: int) -> None:
        """A pass of a class that builds on the one of the file, with other code, or with another number."""
        state = {"n": self.state["pass_attribute"], "code": self.state["pass_code"], **changed}
        body = {"code": lambda _, n=state["code"]: n}
        self.renumber = type("Renumber", (self.helper.Renumber,), body)()
        self.renumber.n = state["n"]

    def operation(self, n: int) -> None:
        """Register the operation of the kernel, whose rule adds n."""

        def lower(op: Any, rewriter: Any) -> Any:
            (value,) = op.operands
            return rewriter.build("arith.addi", value.type, value, rewriter.constant(n, value.type))

        bump = register_op(OpSpec("edits.bump", operands=("value:i32",), results=("i32",)), lower=lower)
        self.helper.bump = lambda value: bump(value)

    def expected(self, passed: bool = True) -> np.ndarray:
        """What the kernel writes into an array of zeros, its numbers changed by the pass or not."""
        found = [self.state[part] for part in (*HELPER_PARTS, *MAIN_PARTS)] + [self.state["code"]]
        found += [self.state[name] if name in self.optional else 0 for name in OPTIONAL]
        found += [self.state[part] for part in PASS_PARTS] if passed else [7001, 7002, 7003]
        return np.array(found, np.int32)

    def arguments(self, out: Any) -> tuple[Any, ...]:
        """The arguments of a call."""
        return out, self.state["constexpr"], self.box

    def edit(self) -> str:
        """Change one part to another value; says what was done."""
        part = self.random.choice([*PARTS, *self.optional])
        value = self.random.choice([value for value in VALUES if value != self.state[part]])
        ways = [*WAYS.get(part, ()), *([] if part in NOT_IN_FILES else ["file"])]
        way = self.random.choice(ways)
        self.state[part] = value
        if way == "file":
            self.import_anew()
            return f"{part} = {value} in a file"
        way(self, value)
        return f"{part} = {value} by {getattr(way, '__name__', way)}"


Way = Callable[[World, int], Any]


def _set(path: str) -> Way:
    """Assign to a dotted name, the last part of which may be an index."""

    def way(world: World, value: int) -> None:
        *names, last = path.split(".")
        holder: Any = world
        for name in names:
            holder = getattr(holder, name)
        setattr(holder, last, value)

    way.__name__ = f"set {path}"
    return way


def _returning(value: int) -> Callable[..., int]:
    return lambda *_: value


def _code(function: str, template: str) -> Way:
    """Give a function other code."""

    def way(world: World, value: int) -> None:
        names: dict[str, Any] = {}
        exec(template.format(value), vars(world.helper), names)
        getattr(world.helper, function).__code__ = next(
            found.__code__ for found in names.values() if isinstance(found, types.FunctionType)
        )

    way.__name__ = f"other code of {function}"
    return way


WAYS: dict[str, list[Any]] = {
    "gain": [_set("helper.GAIN")],
    "code": [lambda w, v: setattr(w.helper, "code", _returning(v)), _code("code", "def code():\n    return {}")],
    "nested": [lambda w, v: setattr(w.helper, "_deep", _returning(v))],
    "closure": [
        lambda w, v: setattr(w.helper, "scale", w.helper.make_scale(v)),
        lambda w, v: setattr(w.helper.scale.__closure__[0], "cell_contents", v),
    ],
    "inherited": [
        lambda w, v: setattr(w.unshadowed("inherited").Base, "inherited", _returning(v)),
        lambda w, v: setattr(w.unshadowed("inherited").Config, "inherited", _returning(v)),
        lambda w, v: setattr(w.helper.config, "inherited", _returning(v)),
    ],
    "class_attribute": [_set("helper.Config.width"), _set("main.Config.width")],
    "class_dict": [lambda w, v: w.helper.Config.limits.update(low=v)],
    "property": [lambda w, v: setattr(w.helper.Config, "depth", property(_returning(v)))],
    "classmethod": [lambda w, v: setattr(w.helper.Config, "made", classmethod(_returning(v)))],
    "staticmethod": [lambda w, v: setattr(w.helper.Config, "fixed", staticmethod(_returning(v)))],
    "call": [lambda w, v: setattr(w.helper.Config, "__call__", _returning(v))],
    "getattr": [
        lambda w, v: setattr(w.unshadowed("dynamic").Config, "__getattr__", _returning(v)),
        _set("helper.config.dynamic"),
    ],
    "frozen_field": [],
    "slot": [_set("helper.slotted.n"), lambda w, v: setattr(w.helper, "slotted", w.helper.Slotted(v))],
    "instance": [_set("helper.params.m"), lambda w, v: setattr(w.helper, "params", w.helper.Params(m=v))],
    "default": [lambda w, v: setattr(w.helper.with_default, "__defaults__", (v,))],
    "keyword_default": [lambda w, v: w.helper.with_keyword.__kwdefaults__.update(v=v)],
    "list": [lambda w, v: w.helper.TABLE.__setitem__(0, v), lambda w, v: setattr(w.helper, "TABLE", [v])],
    "nested_dict": [
        lambda w, v: w.helper.MAP["a"]["b"].__setitem__(0, v),
        lambda w, v: w.helper.MAP["a"].update(b=[v]),
    ],
    "partial": [lambda w, v: w.helper.part.keywords.update(n=v)],
    "function_in_dict": [lambda w, v: w.helper.FUNCTIONS.update(f=_returning(v))],
    "function_attribute": [_set("helper.attribute.value")],
    "sub_module": [_set("deep.VALUE")],
    "local_global": [_set("main.LOCAL")],
    "constexpr": [lambda w, v: None],
    "constexpr_object": [_set("box.n"), lambda w, v: setattr(w, "box", Box(v))],
    "toolkit_function": [lambda w, v: setattr(cute, "ceil_div", w.original if v == 2 else _returning(v))],
    "environment": [lambda w, v: os.environ.update({VARIABLE: str(v)})],
    "file": [lambda w, v: (w.folder / "number.json").write_text(str(v))],
    "operation": [World.operation],
    "pass_attribute": [_set("renumber.n"), lambda w, v: w.another_pass(n=v)],
    "pass_code": [lambda w, v: setattr(w.helper.Renumber, "code", _returning(v)), lambda w, v: w.another_pass(code=v)],
    "pass_global": [_set("helper.PASS_GLOBAL")],
}
"""By part: functions that change it in memory, without its file."""

NOT_IN_FILES = ("constexpr", "constexpr_object", "toolkit_function", "environment", "file", "operation")
