"""What the engines of a Tensix core do with tiles: one class for each operation of stage `cute`.

The matrix engine (FPU) takes operands from circular buffers: sums, differences, products, also with a broadcast second
operand, matrix products, reductions. The vector engine (SFPU) works on DST: functions of one tile, quotients, maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.passes._common import add, evaluate, over_tiles
from tilewright.targets.tenstorrent.passes.tile_values.values import (
    Accumulated,
    Constant,
    Held,
    Pending,
    Post,
    Spread,
    Value,
)
from tilewright.targets.tenstorrent.tir.nodes import Call, Expr, IntImm, PrimFunc, Stmt, Var
from tilewright.targets.tenstorrent.tir.read_mlir import refusal


class Values(Protocol):
    """What an operation asks of the planner."""

    names: Any
    func: PrimFunc

    def held(self, value: Value) -> Held: ...
    def filled(self, value: Value, source: Expr | None = None) -> Held: ...
    def scaler(self, element: str) -> Var: ...
    def spread(self, value: Spread) -> Pending: ...
    def post(self, value: Value, step: Post) -> Value: ...


class Operation:
    """Computes the value of a call from those of its operands."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        raise NotImplementedError

    def terms(self, plan: Values, operands: Sequence[Value], found: Call) -> Pending:
        """What folds into DST."""
        raise NotImplementedError


class Convert(Operation):
    """Between bf16 and f32. The packer rounds; what a circular buffer has in bf16 is unpacked as it is."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        (value,) = operands
        target = found.dtype.rpartition("x")[2].rstrip(">")
        if target not in ("bf16", "f32"):
            raise refusal(f"tiles of {target}", found.location, "use BFloat16 or Float32")
        if isinstance(value, Held) and target == "bf16" and found.op.name == "arith.truncf":
            return plan.post(value, Post("identity", location=found.location))
        return value


class Binary(Operation):
    """A sum, difference or product, by the matrix engine."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        left, right = operands
        if isinstance(left, Spread | Constant) and self.kind != "sub":
            left, right = right, left
        if isinstance(left, Spread):
            left = plan.held(plan.spread(left))
        first = plan.held(left)
        second: Held | Spread = right if isinstance(right, Spread) else plan.held(right)
        bcast = second.dim if isinstance(second, Spread) else "none"
        buffer = second.source.buffer if isinstance(second, Spread) else second.buffer

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            return [
                evaluate(f"tt.fpu.{self.kind}", first.buffer, buffer, first.index(row, col), second.index(row, col),
                         dst, location=found.location, bcast=bcast)
            ]  # fmt: skip

        return Pending(right.rows, right.cols, "", (), emit, location=found.location)


class Quotient(Operation):
    """A quotient: by a broadcast divisor as a product with its reciprocals, else by the vector engine."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        left, right = operands
        product = Binary("mul")
        if isinstance(right, Constant):
            inverse = Constant(right.rows, right.cols, right.element, right.shape, 1.0 / right.number)
            return product(plan, found, (left, inverse))
        if isinstance(right, Spread):
            source = plan.held(plan.post(right.source, Post("recip", location=found.location)))
            spread = Spread(right.rows, right.cols, right.element, right.shape, source, right.dim)
            return product(plan, found, (left, spread))
        return Pair("div")(plan, found, operands)


class Pair(Operation):
    """An operation of the vector engine on two tiles of DST."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        first, second = (
            plan.held(plan.spread(item)) if isinstance(item, Spread) else plan.held(item) for item in operands
        )

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            other = add(dst, IntImm(1))
            place = found.location
            return [
                evaluate("tt.copy", first.buffer, first.index(row, col), dst, location=place),
                evaluate("tt.copy", second.buffer, second.index(row, col), other, location=place),
                evaluate("tt.sfpu.binary", dst, other, dst, location=place, kind=self.kind),
            ]

        return Pending(operands[0].rows, operands[0].cols, "", (), emit, location=found.location)


class Extreme(Operation):
    """The greater or lesser of two tiles, or of a tile and a number."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        left, right = operands
        if isinstance(left, Constant):
            left, right = right, left
        if not isinstance(right, Constant):
            return Pair(self.kind)(plan, found, operands)
        if self.kind == "max" and right.number == 0:
            return plan.post(left, Post("relu", location=found.location))
        return plan.post(left, Post(self.kind, right.number, found.location))


class Unary(Operation):
    """A function of one tile, by the vector engine."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        return plan.post(operands[0], Post(self.kind, location=found.location))


class Fill(Operation):
    """A tile of a number that is an argument of the kernel."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        source = found.args[0]
        if source not in plan.func.params:
            raise refusal("a tile of a number that the kernel computes", found.location, "pass it as an argument")
        extents = _blocks(found.dtype)
        return plan.filled(Value(*extents, found.dtype.rpartition("x")[2].rstrip(">"), ()), source)


class Broadcast(Operation):
    """A tile repeated along modes of extent 1."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        (value,) = operands
        if isinstance(value, Constant):
            return Constant(*_blocks(found.dtype), value.element, (), value.number)
        rows, cols = value.shape
        dim = "scalar" if rows == cols == 1 else "cols" if cols == 1 else "rows"
        source = plan.held(value)
        if source.filled:
            return Held(*_blocks(found.dtype), source.element, source.shape, buffer=source.buffer, filled=True)
        return Spread(*_blocks(found.dtype), value.element, (), source, dim)


class Reduce(Operation):
    """The sum or maximum over an axis, by the matrix engine."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        return self.terms(plan, operands, found)

    def terms(self, plan: Values, operands: Sequence[Value], found: Call) -> Pending:
        (value,) = operands
        if isinstance(value, Spread):
            value = plan.spread(value)
        source = plan.held(value)
        scaler = plan.scaler(source.element)
        kind, along = found.attrs["kind"].rstrip("fiu"), int(found.attrs["axis"])
        extents = (1, source.cols) if along else (source.rows, 1)

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            def one(inner_row: Expr, inner_col: Expr) -> list[Stmt]:
                index = source.index(row, inner_col) if along else source.index(inner_row, col)
                return [
                    evaluate("tt.reduce", source.buffer, scaler, index, 0, dst, location=found.location,
                             kind=kind, dim="row" if along else "col")
                ]  # fmt: skip

            return over_tiles(plan.names, extents, one)

        left = (source.rows, 1) if along else (1, source.cols)
        return Pending(*left, "", (), emit, fold=kind, location=found.location)


class Dot(Operation):
    """A matrix product, by the matrix engine, which adds to what DST holds."""

    def __call__(self, plan: Values, found: Call, operands: Sequence[Value]) -> Value:
        a, b, c = operands
        terms = self.terms(plan, (a, b), found)
        if isinstance(c, Constant) and c.number == 0:
            return terms
        if isinstance(c, Accumulated):
            c = plan.held(c)
        start = plan.held(plan.spread(c) if isinstance(c, Spread) else c)

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            first = evaluate("tt.copy", start.buffer, start.index(row, col), dst, location=found.location)
            return [first, *terms.emit(row, col, dst)]

        return Pending(terms.rows, terms.cols, "", (), emit, location=found.location)

    def terms(self, plan: Values, operands: Sequence[Value], found: Call) -> Pending:
        left, right = (plan.held(plan.spread(item) if isinstance(item, Spread) else item) for item in operands)

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            def one(inner: Expr) -> list[Stmt]:
                return [
                    evaluate("tt.mm.mma", left.buffer, right.buffer, left.index(row, inner), right.index(inner, col),
                             dst, location=found.location)
                ]  # fmt: skip

            return over_tiles(plan.names, (left.cols,), one)

        return Pending(left.rows, right.cols, "", (), emit, fold="add", location=found.location)


def _blocks(dtype: str) -> tuple[int, int]:
    *extents, _ = dtype.removeprefix("tensor<").split("x")
    if len(extents) != 2:
        raise PassError(f"a tile of {len(extents)} modes", hint="this target computes with matrices")
    return max(int(extents[0]) // 32, 1), max(int(extents[1]) // 32, 1)


OPERATIONS: dict[str, Operation] = {
    "arith.extf": Convert(),
    "arith.truncf": Convert(),
    "arith.addf": Binary("add"),
    "arith.subf": Binary("sub"),
    "arith.mulf": Binary("mul"),
    "arith.divf": Quotient(),
    "arith.maxnumf": Extreme("max"),
    "arith.minnumf": Extreme("min"),
    "arith.negf": Unary("negative"),
    "math.absf": Unary("abs"),
    "math.exp": Unary("exp"),
    "math.exp2": Unary("exp2"),
    "math.log": Unary("log"),
    "math.sqrt": Unary("sqrt"),
    "math.rsqrt": Unary("rsqrt"),
    "math.tanh": Unary("tanh"),
    "math.erf": Unary("erf"),
    "math.sin": Unary("sin"),
    "math.cos": Unary("cos"),
    "cute.tile_full": Fill(),
    "cute.tile_broadcast": Broadcast(),
    "cute.tile_reduce": Reduce(),
    "cute.tile_dot": Dot(),
}
"""By the name of the operation; all others of tiles are refused."""
