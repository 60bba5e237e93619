"""Values of tile types while the pass tensorize runs: where their 32 x 32 tiles are, or how they would be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.targets.tenstorrent.passes._common import add, evaluate, mul
from tilewright.targets.tenstorrent.tir.nodes import Expr, IntImm, Place, Stmt, Var

Emit = Callable[[Expr, Expr, Expr], Sequence[Stmt]]
"""Statements that compute the tile at (row, column) into the DST tile of the third argument."""


@dataclass(frozen=True)
class Value:
    """A value of `rows` x `cols` tiles; `element` is the type of its numbers, `shape` as the user sees it."""

    rows: int
    cols: int
    element: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Tiles."""
        return self.rows * self.cols


@dataclass(frozen=True)
class Held(Value):
    """In a circular buffer, row by row. One tile stands for all where `filled`."""

    buffer: Var = field(default_factory=lambda: Var("none"))
    filled: bool = False

    def index(self, row: Expr, col: Expr) -> Expr:
        """The place of a tile in the buffer."""
        return IntImm(0) if self.filled else add(mul(row, self.cols), col)


@dataclass(frozen=True)
class Constant(Value):
    """One number for all elements, known while compiling."""

    number: float = 0.0


@dataclass(frozen=True)
class Spread(Value):
    """A column, a row or an element that is broadcast to the shape; `dim` is cols, rows or scalar."""

    source: Held = field(default_factory=lambda: Held(1, 1, "f32", ()))
    dim: str = "none"

    def index(self, row: Expr, col: Expr) -> Expr:
        """The tile of the source that the tile at (row, col) repeats."""
        zero = IntImm(0)
        return (
            self.source.index(zero if self.dim == "rows" else row, zero if self.dim == "cols" else col)
            if (self.dim != "scalar")
            else zero
        )


@dataclass(frozen=True)
class Post:
    """A step that works on a DST tile in place: `exp`, `relu`, or `max` with a parameter."""

    kind: str
    parameter: float | None = None
    location: Place = None

    def statement(self, dst: Expr) -> Stmt:
        """The step on a DST tile."""
        extra = {} if self.parameter is None else {"parameter": self.parameter}
        return evaluate("tt.sfpu.unary", dst, location=self.location, kind=self.kind, **extra)


@dataclass(frozen=True)
class Pending(Value):
    """Not computed yet. `fold` says how further tiles of the kind add to DST: `add`, `max`, or not at all."""

    emit: Emit = lambda row, col, dst: []
    fold: str = ""
    post: tuple[Post, ...] = ()
    location: Place = None

    def then(self, step: Post) -> Pending:
        """The value with a further step; it no longer folds."""
        return replace(self, post=(*self.post, step), fold="")


@dataclass(frozen=True)
class Accumulated(Value):
    """In the DST tiles from `base` on."""

    base: int = 0
    post: tuple[Post, ...] = ()
    location: Place = None

    def then(self, step: Post) -> Accumulated:
        """The value with a further step."""
        return replace(self, post=(*self.post, step))

    def tile(self, row: Expr, col: Expr) -> Expr:
        """The DST tile at (row, col)."""
        return add(IntImm(self.base), add(mul(row, self.cols), col))
