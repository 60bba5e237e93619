"""Random epilogues: source text, operands, templates of outputs, and what NumPy says that the outputs are.

On whole numbers every value stays exact in the type in which it is held, and kernels must give the same numbers. On
others the reference is computed in float64, with a bound of the error of each element that is carried along with it:
each operation passes on the errors of its operands, and adds `ROUNDING` units in the last place of float32 (of float64
where the epilogue computes in that) for its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

LIMIT = 500  # of whole numbers, which are exact in float16; beyond 256 none are stored in bfloat16
CLAMP = 8
LARGE = 50_000  # elements of epilogues for devices
ROUNDING = 6  # units in the last place that a function of the kernel may be off
BF16, F16, F32, F64 = (np.dtype(item) for item in (ml_dtypes.bfloat16, np.float16, np.float32, np.float64))
I8, I32 = np.dtype(np.int8), np.dtype(np.int32)
_BITS = {BF16: 8, F16: 11, F32: 24, F64: 53}
_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass
class Known:
    """A value: what it is in float64, by how much a kernel may be off, the greatest whole number that it may have."""

    name: str
    exact: np.ndarray
    error: np.ndarray
    bound: int


@dataclass
class Case:
    """An epilogue with its operands and outputs."""

    seed: int
    whole: bool
    compute: str
    text: str = ""
    operands: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    expected: dict[str, Known] = field(default_factory=dict)
    nodes: int = 0

    def check(self, found: dict[str, Any]) -> None:
        """Compare the outputs of a kernel, arrays by name."""
        assert list(found) == list(self.outputs), f"seed {self.seed}: outputs {list(found)}"
        for name, wanted in self.expected.items():
            got = np.asarray(found[name])
            values = got.astype(np.float64)
            assert got.shape == wanted.exact.shape, (self.seed, name, got.shape, wanted.exact.shape)
            off = np.abs(values - wanted.exact)
            allowed = np.zeros_like(wanted.exact) if self.whole else wanted.error + _of_storing(wanted, got.dtype)
            if not np.all(off <= allowed):
                place = np.unravel_index(np.argmax(off - allowed), off.shape)
                raise AssertionError(
                    f"seed {self.seed}: {name}{[int(k) for k in place]} is {values[place]}, expected "
                    f"{wanted.exact[place]} within {allowed[place]}\n{self.text}"
                )


def _of_storing(wanted: Known, dtype: np.dtype) -> np.ndarray:
    """Half a unit in the last place of the stored type; of the least normal number where that is more."""
    if dtype not in _BITS:
        return np.full_like(wanted.exact, 0.5)
    return 2.0 ** -(_BITS[dtype]) * (np.abs(wanted.exact) + wanted.error) + (2.0**-25 if dtype == F16 else 0.0)


@dataclass(frozen=True)
class Op:
    """A function: its text, its value in float64, how it passes on errors, and the bound of whole numbers (or None)."""

    text: str
    value: Callable[..., np.ndarray]
    error: Callable[..., np.ndarray]
    bound: Callable[..., int] | None


def _a(x: Known) -> np.ndarray:
    return np.abs(x.exact)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _divided(a: Known, b: Known, u: float) -> np.ndarray:
    quotient = np.abs(a.exact / b.exact)
    return (a.error + quotient * b.error) / np.maximum(_a(b) - b.error, 1e-3) + u * quotient


OPS = (
    Op(
        "({0} + {1})",
        lambda a, b: a + b,
        lambda a, b, u: a.error + b.error + u * np.abs(a.exact + b.exact),
        lambda a, b: a + b,
    ),
    Op(
        "({0} - {1})",
        lambda a, b: a - b,
        lambda a, b, u: a.error + b.error + u * np.abs(a.exact - b.exact),
        lambda a, b: a + b,
    ),
    Op(
        "({0} * {1})",
        lambda a, b: a * b,
        lambda a, b, u: _a(a) * b.error + _a(b) * a.error + a.error * b.error + u * np.abs(a.exact * b.exact),
        lambda a, b: a * b,
    ),
    Op("maximum({0}, {1})", np.maximum, lambda a, b, u: np.maximum(a.error, b.error), max),
    Op("minimum({0}, {1})", np.minimum, lambda a, b, u: np.maximum(a.error, b.error), max),
    Op("relu({0})", lambda a: np.maximum(a, 0), lambda a, u: a.error, lambda a: a),
    Op("(-{0})", np.negative, lambda a, u: a.error, lambda a: a),
    Op("abs({0})", np.abs, lambda a, u: a.error, lambda a: a),
    Op(
        "({0} * 2.0 - 1.0)",
        lambda a: a * 2 - 1,
        lambda a, u: 2 * a.error + 2 * u * (2 * _a(a) + 1),
        lambda a: 2 * a + 1,
    ),
    Op(
        "multiply_add({0}, {1}, {2})",
        lambda a, b, c: a * b + c,
        lambda a, b, c, u: (
            _a(a) * b.error + _a(b) * a.error + a.error * b.error + c.error + u * (np.abs(a.exact * b.exact) + _a(c))
        ),
        lambda a, b, c: a * b + c,
    ),
    Op("tanh({0})", np.tanh, lambda a, u: a.error + u, None),
    Op("sigmoid({0})", _sigmoid, lambda a, u: a.error / 4 + u, None),
    Op("silu({0})", lambda a: a * _sigmoid(a), lambda a, u: 1.1 * a.error + u * (1 + _a(a)), None),
    Op(
        "gelu({0})",
        lambda a: 0.5 * a * (1 + _erf(a * math.sqrt(0.5))),
        lambda a, u: 1.13 * a.error + u * (1 + _a(a)),
        None,
    ),
    Op(
        "hardswish({0})",
        lambda a: a * np.minimum(np.maximum(a + 3, 0), 6) / 6,
        lambda a, u: 1.5 * a.error + u * (1 + _a(a)),
        None,
    ),
    Op(
        "exp(minimum({0}, 2.0))",
        lambda a: np.exp(np.minimum(a, 2)),
        lambda a, u: 7.4 * np.expm1(np.minimum(a.error, 50)) + u * 7.4,
        None,
    ),
    Op(
        "({0} / (abs({1}) + 1.0))",
        lambda a, b: a / (np.abs(b) + 1),
        lambda a, b, u: _divided(a, Known("", np.abs(b.exact) + 1, b.error + u * (_a(b) + 1), 0), u),
        None,
    ),
)

REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min}


class Generator:
    """Makes the case of a seed; `most` is the number of elements of its space at most."""

    def __init__(self, seed: int, most: int = 6000) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        whole = self.random.random() < 0.6
        compute = self.random.choice(["Float32"] * 8 + ["Float64"] + (["Int32"] if whole else ["Float64"]))
        self.case = Case(seed, whole, compute)
        self.unit = ROUNDING * (2.0**-53 if compute == "Float64" else 2.0**-24)
        self.shape = self._shape(most)
        self.values: list[Known] = []
        self.lines: list[str] = []
        self.count = 0

    def make(self) -> Case:
        """The case."""
        pick = self.random
        accum = self._operand("accum", self.shape, whole_shape=True)
        self.values.append(accum)
        for number in range(pick.randrange(0, 5)):
            self._load(f"x{number}")
        steps = pick.randrange(1, 13)
        stores = {pick.randrange(steps) for _ in range(pick.randrange(0, 3))}
        reductions = [pick.randrange(steps) for _ in range(pick.choice([0, 0, 1, 1, 2, 3]))]
        for step in range(steps):
            self._compute()
            if step in stores:
                self._store(f"E{step}")
            for number in range(reductions.count(step)):
                self._reduce(f"R{step}_{number}")
        self._last()
        names = [*self.case.outputs]
        arguments = ", ".join(self.case.operands)
        body = "\n".join(f"    {line}" for line in self.lines)
        self.case.text = f"def epilogue({arguments}):\n{body}\n    return {', '.join(names)}\n"
        self.case.nodes = len(self.case.operands) + len(self.lines) + len(names)
        return self.case

    def _shape(self, most: int) -> tuple[int, int, int]:
        extents = [1, 2, 3, 5, 8, 12, 16, 24, 31, 32, 61, 64, 96, 130, 200]
        extents += [333, 512, 1024, 2049] if most > LARGE else []
        while True:
            batch = self.random.choice([1, 1, 2, 3])
            m, n = self.random.choice(extents), self.random.choice(extents)
            if batch * m * n <= most:
                return batch, m, n

    # Operands

    def _load(self, name: str) -> None:
        pick, (batch, m, n) = self.random, self.shape
        kind = pick.choice(
            ["full", "full", "flat", "row", "column", "scalar", "number", "rows", "columns", "batch", "permuted"]
        )
        shapes = {
            "full": (batch, m, n),
            "flat": (m, n),
            "row": (n,),
            "column": (m, 1),
            "scalar": (1, 1),
            "rows": (batch, 1, n),
            "columns": (batch, m, 1),
            "batch": (batch, 1, 1),
            "permuted": (batch, n, m),
            "number": (),
        }
        made = self._operand(name, shapes[kind])
        if kind == "permuted":
            self.lines.append(f"{name}_t = permute({name}, (0, 2, 1))")
            made = Known(f"{name}_t", made.exact.transpose(0, 2, 1), made.error.transpose(0, 2, 1), made.bound)
        self.values.append(made)

    def _operand(self, name: str, shape: tuple[int, ...], whole_shape: bool = False) -> Known:
        pick = self.random
        whole, integers = self.case.whole, self.case.compute == "Int32"
        dtype = pick.choice(
            [I8, I32] if integers else [F32, F32, F16, BF16, F64, I8, I32] if whole else [F32, F32, F16, BF16]
        )
        if shape == ():
            value: Any = pick.randrange(-3, 4) if whole else pick.uniform(-2, 2)
            self.case.operands[name] = int(value) if integers else float(value)
            exact = np.asarray(float(np.float32(value)))
            return Known(name, exact, np.zeros_like(exact), 3)
        array = self._array(shape, dtype)
        self.case.operands[name] = array
        exact = array.astype(np.float64)
        error = np.abs(exact) * (2.0**-24 if dtype is F64 and self.case.compute == "Float32" and not whole else 0.0)
        return Known(name, exact, error, 4)

    def _array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Dense, or with padded rows, or every second element, or the last modes the other way round, or misaligned."""
        how = self.random.choice(["dense"] * 5 + ["padded", "steps", "crossed", "shifted"])
        wide = list(shape)
        if how == "padded":
            wide[-1] += self.random.choice([1, 4, 8])
        if how == "steps":
            wide[-1] *= 2
        if how == "crossed" and len(shape) > 1:
            wide[-1], wide[-2] = wide[-2], wide[-1]
        count = math.prod(wide)
        flat = self.numbers.integers(-4, 5, count + 1) if self.case.whole else self.numbers.uniform(-2, 2, count + 1)
        flat = flat.astype(dtype)
        array = (flat[1:] if how == "shifted" else flat[:-1]).reshape(wide)
        if how == "crossed" and len(shape) > 1:
            return array.swapaxes(-1, -2)
        return array[..., : shape[-1]] if how == "padded" else array[..., ::2] if how == "steps" else array

    # Statements

    def _compute(self) -> None:
        pick = self.random
        for _ in range(50):
            op = pick.choice(OPS)
            if self.case.whole and op.bound is None:
                continue
            count = op.text.count("{")
            recent = self.values[-4:] if pick.random() < 0.7 else self.values
            operands = [pick.choice(recent if k == 0 else self.values) for k in range(count)]
            bound = 0 if op.bound is None else op.bound(*(x.bound for x in operands))
            if self.case.whole and bound > LIMIT:
                continue
            if all(x.exact.shape == () for x in operands):
                continue
            break
        else:
            return
        text = op.text.replace(".0", "") if self.case.compute == "Int32" else op.text
        name = f"t{self.count}"
        self.count += 1
        exact = op.value(*(x.exact for x in operands))
        error = np.broadcast_to(op.error(*operands, self.unit), exact.shape)
        self.lines.append(f"{name} = {text.format(*(x.name for x in operands))}")
        made = Known(name, exact, error, bound)
        if not self.case.whole and float(np.max(np.abs(exact))) > 100:
            made = self._clamped(made)
        self.values.append(made)

    def _clamped(self, value: Known) -> Known:
        name = f"{value.name}_c"
        self.lines.append(f"{name} = minimum(maximum({value.name}, -{CLAMP}.0), {CLAMP}.0)")
        return Known(name, np.clip(value.exact, -CLAMP, CLAMP), value.error, CLAMP)

    def _whole_shape(self) -> list[Known]:
        return [value for value in self.values if value.exact.shape == self.shape and value.name != "accum"] or [
            value for value in self.values if value.exact.shape == self.shape
        ]

    def _store(self, name: str) -> None:
        total = self._with_accum(name, self.random.choice(self._whole_shape()))
        self.values.append(total)
        self._output(name, total)

    def _with_accum(self, name: str, value: Known) -> Known:
        accum = self.values[0]
        self.lines.append(f"{name} = {value.name} + accum")
        exact = value.exact + accum.exact
        error = value.error + accum.error + self.unit * np.abs(exact)
        return Known(name, exact, error, value.bound + accum.bound)

    def _reduce(self, name: str) -> None:
        pick, value = self.random, self.random.choice(self._whole_shape())
        dims = pick.choice([(1,), (2,), (1, 2), (0, 1), (0, 2), (0, 1, 2), (0,)])
        kind = pick.choice(["sum", "max", "min"])
        exact = REDUCTIONS[kind](value.exact, axis=dims, keepdims=True)
        if kind == "sum":
            count = math.prod(self.shape[dim] for dim in dims)
            sizes = np.sum(np.abs(value.exact) + value.error, axis=dims, keepdims=True)
            error = np.sum(value.error, axis=dims, keepdims=True) + self.unit * sizes * max(math.log2(count), 1) * 2
            bound = value.bound * count
        else:
            error, bound = np.max(value.error, axis=dims, keepdims=True), value.bound
        self.lines.append(f"{name} = {kind}({value.name}, dim={dims})")
        self._output(
            name, Known(name, exact, error, bound), (I32,) if self.case.compute == "Int32" else (F32, F32, F64)
        )

    def _any(self, name: str) -> None:
        """An output of any value, of any shape, as it is, turned, or its greatest element."""
        value = self.random.choice(self.values[1:] or self.values)
        exact, error, text = value.exact, np.broadcast_to(value.error, value.exact.shape), f"identity({value.name})"
        how = self.random.choice(["as it is", "turned", "greatest"])
        if how == "turned" and exact.ndim == 3:
            exact, error, text = exact.transpose(0, 2, 1), error.transpose(0, 2, 1), f"permute({value.name}, (0, 2, 1))"
        if how == "greatest" and exact.ndim:
            exact, error, text = exact.max(keepdims=True), error.max(keepdims=True), f"max({value.name})"
        if not exact.ndim:
            exact, error = exact.reshape(1), error.reshape(1)
        self.lines.append(f"{name} = {text}")
        self._output(name, Known(name, exact, error, value.bound))

    def _last(self) -> None:
        for number in range(self.random.choice([0, 0, 0, 1, 2])):
            self._any(f"V{number}")
        value = self.random.choice(self._whole_shape())
        if self.random.random() < 0.15 and self.case.compute != "Int32":
            total = self._with_accum("p", value)
            self.lines.append("P = permute(p, (0, 2, 1))")
            self._output("P", Known("P", total.exact.transpose(0, 2, 1), total.error.transpose(0, 2, 1), total.bound))
        self.lines.append(f"D = {value.name} + 1" if self.case.compute == "Int32" else f"D = {value.name} + 1.0")
        error = value.error + self.unit * (np.abs(value.exact) + 1)
        self._output("D", Known("D", value.exact + 1, error, value.bound + 1))

    def _output(self, name: str, value: Known, dtypes: tuple[np.dtype, ...] | None = None) -> None:
        fitting = [F32, F32, F64]
        if value.bound <= 2000:
            fitting.append(F16)
        if not self.case.whole or value.bound <= 256:
            fitting.append(BF16)
        if self.case.whole:
            fitting.append(I32)
            if value.bound <= 127:
                fitting.append(I8)
        if self.case.compute == "Int32":
            fitting = [I32, I32, *([I8] if value.bound <= 127 else [])]
        dtype = self.random.choice(dtypes or fitting)
        template = self._array(value.exact.shape, dtype)
        template[...] = 0
        self.case.outputs[name] = template
        self.case.expected[name] = value


def case_of(seed: int, most: int = 6000) -> Case:
    """The random epilogue of a seed."""
    return Generator(seed, most).make()
