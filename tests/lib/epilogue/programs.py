"""Random epilogues as text: layouts, reductions, repeated and dead lines, operands of every shape."""

from __future__ import annotations

import random

import numpy as np

from tilewright.lib.epilogue.authoring import from_text
from tilewright.lib.epilogue.proxies import NAMES

TYPES = (np.float16, np.float32, np.int8, np.int32)
BINARY = (
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "maximum({}, {})",
    "minimum({}, {})",
    "({} > {})",
    "({} >= {})",
    "({} == {})",
    "({} != {})",
)
UNARY = ("relu({})", "(-{})", "abs({})", "({} * 1)", "({} - 0)", "({} / 1)", "({} + 2)", "identity({})")


class Program:
    """A random epilogue as text, with operands. Values live in arrangements of the accumulator: as it is, flipped
    (M and N), with the batch inside, or flat."""

    def __init__(self, seed: int):
        self.pick = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        extents = [1, 2, 3, 4, 6, 8]
        self.batch, self.m, self.n = self.pick.choice([1, 2, 3]), self.pick.choice(extents), self.pick.choice(extents)
        self.shapes = {
            "plain": (self.batch, self.m, self.n),
            "flipped": (self.batch, self.n, self.m),
            "inside": (self.m, self.batch, self.n),
            "flat": (self.batch * self.m, self.n),
        }
        self.arrays = {"accum": self.array(self.shapes["plain"])}
        self.values = {name: [] for name in self.shapes}
        self.values["plain"].append("accum")
        self.lines: list[str] = []
        self.outputs: list[str] = []
        for _ in range(self.pick.randrange(2, 14)):
            self.pick.choice([self.compute, self.compute, self.compute, self.operand, self.move, self.again])()
        for _ in range(self.pick.choice([0, 0, 1, 2])):
            self.reduction()
        self.last()

    def array(self, shape):
        dtype = self.pick.choice(TYPES)
        made = self.numbers.integers(-3, 4, shape).astype(dtype)
        return np.asfortranarray(made) if self.pick.random() < 0.2 else made

    def arrangement(self):
        return self.pick.choice([name for name, values in self.values.items() if values])

    def define(self, where, expression):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        self.values[where].append(name)
        return name

    def operand(self):
        """A load, as it is or rearranged, added to a value."""
        where = self.arrangement()
        shape = self.shapes[where]
        name = f"x{len(self.arrays)}"
        how = self.pick.choice(["full", "broadcast", "broadcast", "number", "permuted", "reshaped"])
        text = name
        if how == "number":
            self.arrays[name] = self.pick.randrange(-3, 4)
        elif how == "broadcast":
            kept = tuple(extent if self.pick.random() < 0.5 else 1 for extent in shape)
            self.arrays[name] = self.array(kept[self.pick.randrange(len(kept)) :])
        elif how == "permuted":
            order = list(range(len(shape)))
            self.pick.shuffle(order)
            self.arrays[name] = self.array(tuple(np.empty(shape).transpose(np.argsort(order)).shape))
            text = f"permute({name}, indices={tuple(order)})"
        elif how == "reshaped":
            self.arrays[name] = np.ascontiguousarray(self.array((int(np.prod(shape)),)))
            text = f"reshape({name}, new_shape={shape})"
        else:
            self.arrays[name] = self.array(shape)
        value = self.pick.choice(self.values[where])
        self.define(where, self.pick.choice(BINARY[:3]).format(value, text))

    def compute(self):
        where = self.arrangement()
        text = self.pick.choice(BINARY + UNARY)
        operands = [self.pick.choice(self.values[where]) for _ in range(text.count("{"))]
        self.define(where, f"minimum(maximum({text.format(*operands)}, -9), 9)")

    def again(self):
        """A line a second time, for common subexpressions, or a variable that nothing uses."""
        if self.lines:
            name, _, expression = self.pick.choice(self.lines).partition(" = ")
            where = next(where for where, values in self.values.items() if name in values)
            self.define(where, expression)

    def move(self):
        """A value in another arrangement, or back."""
        where = self.arrangement()
        value = self.pick.choice(self.values[where])
        plain = self.shapes["plain"]
        back = {
            "flipped": f"permute({value}, indices=(0, 2, 1))",
            "inside": f"permute({value}, indices=(1, 0, 2))",
            "flat": f"reshape({value}, new_shape={plain})",
        }
        if where != "plain":
            self.define("plain", back[where])
            return
        to = self.pick.choice(["flipped", "inside", "flat"])
        self.define(to, f"reshape({value}, new_shape={self.shapes['flat']})" if to == "flat" else back[to])

    def reduction(self):
        where = self.arrangement()
        rank = len(self.shapes[where])
        dims = sorted(self.pick.sample(range(rank), self.pick.randrange(1, rank + 1)))
        name = f"r{len(self.outputs)}"
        kind = self.pick.choice(["sum", "max", "min"])
        self.lines.append(f"{name} = {kind}({self.pick.choice(self.values[where])}, dim={tuple(dims)})")
        self.outputs.append(name)

    def last(self):
        for where in self.pick.sample(list(self.values), 2):
            if self.values[where] and self.pick.random() < 0.7:
                name = f"e{len(self.outputs)}"
                self.lines.append(f"{name} = {self.pick.choice(self.values[where])}")
                self.outputs.append(name)
        self.lines.append(f"D = {self.pick.choice(self.values['plain'])} + 1")
        self.outputs.append("D")

    @property
    def text(self):
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def epilogue({', '.join(self.arrays)}):\n{body}    return {', '.join(self.outputs)}\n"

    def expected(self):
        """What Python computes on arrays, in float64."""
        function = from_text(self.text)
        function.__globals__.update(NAMES)
        found = function(**{name: np.asarray(array, np.float64) for name, array in self.arrays.items()})
        return dict(zip(self.outputs, found if isinstance(found, tuple) else (found,), strict=True))


def check(outputs, expected, where):
    assert list(outputs) == list(expected)
    for name, wanted in expected.items():
        np.testing.assert_array_equal(outputs[name].astype(np.float64), wanted, err_msg=f"{name} {where}")
