"""Walks a kernel and decides where each value of a tile type is computed and kept.

Values are computed late: when something needs their tiles in a circular buffer, or when they are stored. What has
several uses, or a use inside a loop that it stands before, is computed at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base.errors import PassError
from tilewright.targets.tenstorrent.passes._common import Names, evaluate, let, over_tiles, prune
from tilewright.targets.tenstorrent.passes.infer_layout import tile_element, tile_extents
from tilewright.targets.tenstorrent.passes.smem_to_cb import CB, blocks
from tilewright.targets.tenstorrent.passes.tile_values.operations import OPERATIONS, Operation
from tilewright.targets.tenstorrent.passes.tile_values.values import (
    Accumulated,
    Constant,
    Held,
    Pending,
    Post,
    Spread,
    Value,
)
from tilewright.targets.tenstorrent.tir.nodes import (
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    LetStmt,
    Place,
    PrimFunc,
    Stmt,
    Var,
    Yield,
    seq,
    statements,
)
from tilewright.targets.tenstorrent.tir.read_mlir import refusal
from tilewright.targets.tenstorrent.tir.visitors import called, used_vars, walk

_IDENTITY = {"add": 0.0, "max": -float("inf")}


def is_tile(expression: Any) -> bool:
    """True of values of tile types."""
    return str(getattr(expression, "dtype", "")).startswith("tensor<")


@dataclass(frozen=True)
class _Sum:
    """A value that a loop carries in DST: what it begins with, and where it is."""

    place: Accumulated
    start: Held | None


class Planner:
    """Plans one function. `operations` asks it for operands; `out` are the statements of the block under way."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.names = Names(func)
        self.values: dict[Var, Value] = {}
        self.out: list[Stmt] = []
        self.top: list[Stmt] = []  # constants, which the reader makes once
        self.fills: dict[tuple[Any, ...], Var] = {}
        self.live: dict[Var, Accumulated] = {}  # what is in DST now
        self.sums: dict[Var, _Sum] = {}
        self.uses = Counter(var for stmt in walk(func.body) for var in _operands(stmt))

    def body(self) -> Stmt:
        """The planned body."""
        found = self._block(prune(self.func.body))
        allocations = [item for item in (*found, *self.top) if _is_allocation(item)]
        rest = [item for item in (*self.top, *found) if not _is_allocation(item)]
        return seq([*allocations, *rest])

    # Statements.

    def _block(self, stmt: Stmt | None) -> list[Stmt]:
        outer, self.out = self.out, []
        needed = _used_below(stmt)
        for item in statements(stmt):
            self._statement(item, needed)
        if not self.sums:
            self._flush()
        made, self.out = self.out, outer
        return made

    def _statement(self, item: Stmt, below: set[Var]) -> None:
        match item:
            case LetStmt() if is_tile(item.var):
                self._define(item, called(item), below)
            case Evaluate() if (found := called(item)) is not None and found.op.name == "tt.write_from_cb":
                self._store(found)
            case For():
                self._loop(item)
            case IfThenElse():
                self._flush()
                then = seq(self._block(item.then_case))
                other = None if item.else_case is None else seq(self._block(item.else_case))
                self.out.append(IfThenElse(item.condition, then, other, item.location))
            case _:
                self.out.append(item)

    def _define(self, item: LetStmt, found: Call | None, below: set[Var]) -> None:
        assert found is not None
        if found.op.name == "tt.read_to_cb":
            self.out.append(Evaluate(replace(found, dtype=""), item.location))
            buffer: Any = found.args[0]
            self.out.append(evaluate("tt.consume", buffer, location=item.location, tiles=self._tiles(found)))
            self.values[item.var] = Held(*blocks(item.var.dtype), *self._facts(item.var), buffer=buffer)
            return
        operation = OPERATIONS.get(found.op.name)
        if operation is None:
            raise refusal(f"{found.op.name} of tiles", item.location, "docs/tenstorrent.md lists what its engines do")
        value = self._folded(item, found) or self._result(operation, found, item.var)
        if isinstance(value, Pending | Accumulated) and (self.uses[item.var] > 1 or item.var in below):
            value = self.held(value)
        if isinstance(value, Accumulated) and not self.sums:
            self.live = {var: known for var, known in self.live.items() if known.base != value.base}
            self.live[item.var] = value
        self.values[item.var] = value

    def _result(self, operation: Operation, found: Call, var: Var) -> Value:
        made = operation(self, found, [self.value(item) for item in found.args])
        element, shape = self._facts(var)
        return replace(made, element=element, shape=shape) if not isinstance(made, Held) else made

    def _facts(self, var: Var) -> tuple[str, tuple[int, ...]]:
        return tile_element(var.dtype), tile_extents(var.dtype)

    def _tiles(self, found: Call) -> int:
        return int(found.attrs["rows"]) * int(found.attrs["cols"])

    def value(self, expression: Expr) -> Value:
        """The value of an operand."""
        if isinstance(expression, FloatImm) and is_tile(expression):
            dtype = expression.dtype
            return Constant(*blocks(dtype), tile_element(dtype), tile_extents(dtype), expression.value)
        if isinstance(expression, Var) and expression in self.values:
            return self.values[expression]
        if isinstance(expression, Var) and expression in self.sums:
            raise refusal(
                "another use of a tile that a loop carries, inside the loop",
                self.sums[expression].place.location,
                "in the loop it is added to alone: acc = tile.dot(a, b, acc), acc = acc + tile.sum(x, axis)",
            )
        assert not is_tile(expression), expression
        return Value(0, 0, "", ())

    def _store(self, found: Call) -> None:
        buffer, tensor, row, col, value = found.args
        assert isinstance(buffer, Var)
        self._pack(self.value(value), buffer, found.location, held=False)
        moved = replace(found, args=(buffer, tensor, row, col))
        self.out.append(Evaluate(moved, found.location))

    # Loops, and what they carry.

    def _loop(self, item: For) -> None:
        tiles = [(var, start, result) for (var, start), result in zip(item.carried, item.results, strict=True)
                 if is_tile(var)]  # fmt: skip
        rest = [(pair, result) for pair, result in zip(item.carried, item.results, strict=True) if not is_tile(pair[0])]
        kept = tuple(pair for pair, _ in rest)
        self._flush()
        base, sums = 0, {}
        for var, start, _ in tiles:
            rows, cols = blocks(var.dtype)
            place = Accumulated(rows, cols, *self._facts(var), base=base, location=item.location)
            base += place.count
            sums[var] = _Sum(place, self._start(self.value(start), var, item))
        for carried in sums.values():
            self._begin(carried)
        self.sums |= sums
        body = self._block(_without_tiles(item))
        for var, _, result in tiles:
            self.values[result] = self.live[result] = self.sums.pop(var).place
        self.out.append(
            For(item.loop_var, item.extent, seq(body), item.kind, kept, tuple(r for _, r in rest), item.location)
        )
        for _, _, result in tiles:
            if self.uses[result] != 1:
                self.values[result] = self.held(self.values[result])

    def _start(self, value: Value, var: Var, loop: For) -> Held | None:
        """What a sum begins with, in a circular buffer; None where fresh DST tiles are that."""
        fresh = isinstance(value, Constant) and value.number == _IDENTITY.get(_fold_of(var, loop))
        return None if fresh else self.held(value)

    def _begin(self, carried: _Sum) -> None:
        """Put what a sum begins with into DST."""
        source, place = carried.start, carried.place
        if source is not None:
            self.out += over_tiles(self.names, (place.rows, place.cols), lambda row, col: [
                evaluate("tt.copy", source.buffer, source.index(row, col), place.tile(row, col))
            ])  # fmt: skip

    def _folded(self, item: LetStmt, found: Call) -> Value | None:
        """Add to a sum in DST; None where the operation is another."""
        carried = [arg for arg in found.args if isinstance(arg, Var) and arg in self.sums]
        if not carried:
            return None
        (var,) = carried[:1]
        term = self._term(found, var)
        if term is None or len(carried) > 1:
            raise refusal(
                f"{found.op.name} of a tile that a loop carries",
                item.location,
                "a loop carries sums of tile.dot and tile.sum, or maxima of tile.max",
            )
        place = self.sums[var].place
        self.out += over_tiles(self.names, (place.rows, place.cols), lambda row, col: term.emit(
            row, col, place.tile(row, col)))  # fmt: skip
        return place

    def _term(self, found: Call, var: Var) -> Pending | None:
        """What is added to the sum."""
        if found.op.name == "cute.tile_dot":
            return OPERATIONS["cute.tile_dot"].terms(self, [self.value(item) for item in found.args[:2]], found)
        fold = {"arith.addf": "add", "arith.maxnumf": "max"}.get(found.op.name)
        other = next((item for item in found.args if item is not var), None)
        value = self.value(other) if other is not None else None
        return value if isinstance(value, Pending) and fold and value.fold == fold else None

    # Where values are.

    def held(self, value: Value) -> Held:
        """The value in a circular buffer."""
        if isinstance(value, Held):
            return value
        if isinstance(value, Constant):
            return self.filled(value)
        buffer = self.names.var("cb_mid", CB)
        self._allocate(buffer, value, "intermediate")
        self._pack(value, buffer, getattr(value, "location", None), held=True)
        made = Held(value.rows, value.cols, value.element, value.shape, buffer=buffer)
        self.out.append(evaluate("tt.consume", buffer, tiles=value.count))
        return made

    def filled(self, value: Value, source: Expr | None = None) -> Held:
        """A buffer of one tile that the reader fills with one number."""
        number = value.number if isinstance(value, Constant) else None
        key = ("tile", repr(number), source, value.element)
        buffer = self._fill(key, value.element, "tt.fill", {"number": number} if source is None else {}, source)
        return Held(value.rows, value.cols, value.element, value.shape, buffer=buffer, filled=True)

    def scaler(self, element: str) -> Var:
        """The buffer of ones that a reduction multiplies with."""
        return self._fill(("scaler", element), element, "tt.fill_scaler", {"number": 1.0}, None)

    def _fill(self, key: Any, element: str, op: str, attrs: dict[str, Any], source: Expr | None) -> Var:
        if key not in self.fills:
            buffer = self.fills[key] = self.names.var("cb_one" if key[0] == "scaler" else "cb_number", CB)
            self.top.append(let(buffer, "tt.alloc_cb", format=element, tiles=1, name=buffer.name, kind="constant"))
            self.top.append(evaluate(op, buffer, *([] if source is None else [source]), **attrs))
            self.top.append(evaluate("tt.consume", buffer, tiles=1))
        return self.fills[key]

    def _allocate(self, buffer: Var, value: Value, kind: str) -> None:
        self.top.append(let(
            buffer, "tt.alloc_cb", location=getattr(value, "location", None),
            format=value.element, tiles=value.count, name=buffer.name, kind=kind,
        ))  # fmt: skip

    def _pack(self, value: Value, buffer: Var, place: Place, held: bool) -> None:
        """Compute a value into a circular buffer."""
        if self.sums:
            raise refusal(
                "tiles that are computed in a loop which carries a sum",
                place,
                "the sum holds DST: compute them in a loop before, or load them as they are needed",
            )
        if isinstance(value, Accumulated):
            self._pack_accumulated(value, buffer, place)
            return
        self._flush()
        pending = value if isinstance(value, Pending) else self._copied(value)
        post, relu = _split_relu(pending.post)
        self.out += over_tiles(self.names, (value.rows, value.cols), lambda row, col: [
            *pending.emit(row, col, IntImm(0)),
            *(step.statement(IntImm(0)) for step in post),
            _packed(IntImm(0), buffer, relu, place),
        ])  # fmt: skip

    def _pack_accumulated(self, value: Accumulated, buffer: Var, place: Place) -> None:
        post, relu = _split_relu(value.post)
        self.out += [step.statement(IntImm(value.base + n)) for n in range(value.count) for step in post]
        self.out += [_packed(IntImm(value.base + n), buffer, relu, place) for n in range(value.count)]
        self.live = {var: item for var, item in self.live.items() if item.base != value.base}
        self._flush()

    def _flush(self) -> None:
        """Take what is in DST to circular buffers."""
        while self.live:
            var, value = self.live.popitem()
            self.values[var] = self.held(self.values[var])
            self.live.pop(var, None)
            del value

    def _copied(self, value: Value) -> Pending:
        """A value that is there already, through DST."""
        if isinstance(value, Spread):
            return self.spread(value)
        source = self.held(value)

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            return [evaluate("tt.copy", source.buffer, source.index(row, col), dst)]

        return Pending(value.rows, value.cols, value.element, value.shape, emit)

    def spread(self, value: Spread) -> Pending:
        """A broadcast value, computed."""

        def emit(row: Expr, col: Expr, dst: Expr) -> Sequence[Stmt]:
            return [evaluate("tt.bcast", value.source.buffer, value.index(row, col), dst, dim=value.dim)]

        return Pending(value.rows, value.cols, value.element, value.shape, emit)

    def post(self, value: Value, step: Post) -> Value:
        """A value with a further step in DST."""
        if not isinstance(value, Pending | Accumulated):
            value = self._copied(value)
        return value.then(step)


def _packed(dst: Expr, buffer: Var, relu: bool, place: Place) -> Stmt:
    return evaluate("tt.pack", dst, buffer, location=place, **({"relu": True} if relu else {}))


def _split_relu(post: tuple[Post, ...]) -> tuple[tuple[Post, ...], bool]:
    """The steps without a relu at their end, which the packer does; it rounds too."""
    post = tuple(step for step in post if step.kind != "identity")
    last = bool(post) and post[-1].kind == "relu"
    return (post[:-1], True) if last else (post, False)


def _operands(stmt: Any) -> list[Var]:
    """The tiles that a statement itself uses."""
    if isinstance(stmt, Call):
        return [item for item in stmt.args if isinstance(item, Var) and is_tile(item)]
    if isinstance(stmt, For):
        return [start for _, start in stmt.carried if isinstance(start, Var)]
    return []


def _used_below(stmt: Stmt | None) -> set[Var]:
    """What statements inside the loops and branches of a block use."""
    found: set[Var] = set()
    for item in statements(stmt):
        if isinstance(item, For):
            found |= used_vars(item.body)
        elif isinstance(item, IfThenElse):
            found |= used_vars(item.then_case) | used_vars(item.else_case)
    return found


def _without_tiles(loop: For) -> Stmt:
    """The body of a loop, handing on no tiles."""
    *items, last = statements(loop.body) or (Yield(()),)
    if not isinstance(last, Yield):
        return loop.body
    values = [value for value, (var, _) in zip(last.values, loop.carried, strict=True) if not is_tile(var)]
    return seq([*items, Yield(tuple(values))] if values else items)


def _fold_of(var: Var, loop: For) -> str:
    """How a loop folds into a sum that it carries."""
    for item in walk(loop.body):
        if isinstance(item, Call) and var in item.args:
            return "max" if item.op.name == "arith.maxnumf" else "add"
    raise PassError(
        "a loop carries a tile that it does not use", location=loop.location, hint="keep it in a variable of its own"
    )


def _is_allocation(item: Stmt) -> bool:
    found = called(item)
    return found is not None and found.op.name == "tt.alloc_cb"
