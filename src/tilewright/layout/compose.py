"""Composition of layouts: `R(c) = A(B(c))` for every coordinate `c` of `B`, or a refusal.

A flat layout `A` with extents `a0, a1, ...` and strides `s0, s1, ...` has at index `x` the value

    A(x) = s0*x + Σ_k jump_k * floor(x / q_k),      q_k = a0*...*ak,   jump_k = s_(k+1) - ak*sk

Each mode `n:d` of `B` becomes the fewest *runs* on which `A` is linear: the first run ends at the first multiple
of `d` at which a floor does not grow in step, that is at `ceil(q_k / (d mod q_k))` for the least k; its length
must divide `n`, and the rest is a mode `n/m : d*m`. A layout splits this way if and only if it exists, so
nothing is refused that has an answer. At last, the runs of all modes must add up without a carry: the sum of
`(m-1) * (D mod q_k)` over runs `m:D` must stay below each `q_k`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as grid
from typing import Any, NoReturn

from tilewright.base.errors import LayoutError
from tilewright.layout.basis import Path, ScaledBasis, basis_get
from tilewright.layout.compose_symbolic import compose_symbolic
from tilewright.layout.dynamic import mul
from tilewright.layout.inttuple import IntTuple, flat
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, as_layout, is_static, trusted
from tilewright.layout.simplify import by_mode

Run = tuple[int, int]
"""Extent and stride of a run in the domain of A."""

Jump = tuple[int, int, int]
"""`(q, jump, extent)`: A's slope changes at multiples of `q`, which completes the mode of that extent."""

_SEARCH_LIMIT = 1 << 18


def composition(lhs: Any, rhs: Any) -> Any:
    """The layout `R` with `R(c) = lhs(rhs(c))` whose shape refines that of `rhs` mode by mode.

    `rhs` may be a tiler: an int `n` counts as `n:1`, a tuple acts mode by mode on `lhs` (further modes stay as they
    are), `None` keeps a mode. With basis strides `rhs` addresses the modes of `lhs`. Indices past the end of `lhs`
    run on in its last mode. A swizzle or composed layout on the left, or a composed layout on the right, gives a
    composed layout.

    Raises:
        LayoutError: no such layout exists; or, with run-time extents, a fact is missing that would prove it.
    """
    if rhs is None:
        return lhs
    if isinstance(lhs, ComposedLayout):
        return lhs.with_outer(composition(lhs.outer, rhs))
    if isinstance(lhs, Swizzle):
        return ComposedLayout(lhs, 0, as_layout(rhs))
    if isinstance(rhs, tuple):
        return by_mode(lhs, rhs, composition, "composition")
    if isinstance(rhs, ComposedLayout):
        return ComposedLayout(lhs, 0, rhs)
    if isinstance(rhs, Swizzle):
        raise LayoutError("a swizzle has no shape to compose with", values={"lhs": lhs, "rhs": rhs})
    return compose(lhs, as_layout(rhs))


def compose(lhs: Layout, rhs: Layout, *, past_unit_modes: bool = True) -> Layout:
    """`composition` of two layouts.

    Without `past_unit_modes`, indices past the end run on in the last mode of `lhs` with more than one element.
    """
    if any(isinstance(step, ScaledBasis) for step in flat(rhs.stride)):
        return _compose_by_basis(lhs, rhs, past_unit_modes)
    if is_static(lhs) and is_static(rhs):
        return _compose_static(lhs, rhs, past_unit_modes)
    return compose_symbolic(lhs, rhs)


def _compose_by_basis(lhs: Layout, rhs: Layout, past_unit_modes: bool) -> Layout:
    """Each basis path of `rhs` composes with the mode of `lhs` it leads to."""
    extents, strides = flat(rhs.shape), flat(rhs.stride)
    places: dict[Path, list[int]] = {}
    for index, step in enumerate(strides):
        if isinstance(step, ScaledBasis):
            places.setdefault(step.mode, []).append(index)
        elif step != 0:
            raise LayoutError("offsets and coordinates are mixed in the strides", values={"rhs": rhs})
    _require_separate(places, rhs)
    result: list[tuple[IntTuple, IntTuple]] = [(extent, 0) for extent in extents]
    for indices in places.values():
        mode = trusted(basis_get(strides[indices[0]], lhs.shape), basis_get(strides[indices[0]], lhs.stride))
        part = trusted(tuple(extents[i] for i in indices), tuple(strides[i].value for i in indices))
        composed = compose(mode, part, past_unit_modes=past_unit_modes)
        for index, shape, stride in zip(indices, composed.shape, composed.stride, strict=True):
            result[index] = shape, stride
    return assemble(rhs.shape, result)


def _require_separate(places: dict[Path, list[int]], rhs: Layout) -> None:
    for path in places:
        for other in places:
            if path != other and other[: len(path)] == path:
                raise LayoutError("strides address a mode and a part of it", values={"rhs": rhs})


def assemble(profile: IntTuple, leaves: Sequence[tuple[IntTuple, IntTuple]]) -> Layout:
    """The layout of the nesting of `profile` with shape and stride of each leaf in turn."""
    remaining = iter(leaves)

    def build(shape: IntTuple) -> tuple[IntTuple, IntTuple]:
        if not isinstance(shape, tuple):
            return next(remaining)
        parts = [build(item) for item in shape]
        return tuple([part[0] for part in parts]), tuple([part[1] for part in parts])

    return trusted(*build(profile))


class _Linear:
    """A static layout as `first*x + Σ jump*(x // q)`, with basis strides packed into one integer."""

    __slots__ = ("first", "jumps", "layout", "paths")
    first: int

    def __init__(self, layout: Layout, past_unit_modes: bool) -> None:
        self.layout = layout
        extents, strides = flat(layout.shape), flat(layout.stride)
        self.paths: list[Path] | None = None
        if any(isinstance(step, ScaledBasis) for step in strides):
            self.paths = sorted({step.mode for step in strides if isinstance(step, ScaledBasis)})
            strides = [self._pack(step) for step in strides]
        if not past_unit_modes:
            while len(extents) > 1 and extents[-1] == 1:
                extents, strides = extents[:-1], strides[:-1]
        if not extents:
            extents, strides = [1], [0]
        last = len(extents) - 1
        self.jumps: list[Jump] = []
        q = 1
        before: tuple[int, int] | None = None
        for index, extent in enumerate(extents):
            if extent == 1 and index != last:
                continue
            step = strides[index]
            if before is None:
                self.first = step
            else:
                q *= before[0]
                jump = step - before[0] * before[1]
                if jump:
                    self.jumps.append((q, jump, before[0]))
            before = extent, step

    def _pack(self, step: Any) -> int:
        if not isinstance(step, ScaledBasis):
            if step != 0:
                raise LayoutError("offsets and coordinates are mixed in the strides", values={"layout": self.layout})
            return 0
        assert self.paths is not None
        return int(step.value) << (_LANE * self.paths.index(step.mode))

    def stride(self, x: int) -> Any:
        """The value at `x`, as a stride."""
        value = self.first * x
        for q, jump, _ in self.jumps:
            value += jump * (x // q)
        return value if self.paths is None else self._unpack(value, x)

    def _unpack(self, value: int, x: int) -> Any:
        """Balanced digits of `value` in base 2**_LANE; all but one must be 0."""
        assert self.paths is not None
        found: Any = 0
        for path in self.paths:
            digit = (value + (1 << (_LANE - 1)) & (1 << _LANE) - 1) - (1 << (_LANE - 1))
            value = (value - digit) >> _LANE
            if digit:
                if found != 0:
                    raise LayoutError(
                        "composition: a stride would lead along two modes at once",
                        values={"lhs": self.layout, "index": x},
                    )
                found = ScaledBasis(digit, path)
        return found


_LANE = 192


def _compose_static(lhs: Layout, rhs: Layout, past_unit_modes: bool) -> Layout:
    extents, strides = flat(rhs.shape), flat(rhs.stride)
    if past_unit_modes and isinstance(lhs.shape, tuple):
        past_unit_modes = _reaches_past(lhs, extents, strides)
    linear = _Linear(lhs, past_unit_modes)
    if linear.jumps and linear.jumps[-1][0] == 0:
        raise LayoutError("composition: the left layout is empty", values={"lhs": lhs, "rhs": rhs})
    if not linear.jumps:
        first = linear.stride(1) if linear.paths else linear.first
        if type(first) is int:
            return _scaled(rhs, first)
        return assemble(rhs.shape, [(s, mul(d, first) if d else 0) for s, d in zip(extents, strides, strict=True)])
    runs = [_runs(linear, n, d, rhs) for n, d in zip(extents, strides, strict=True)]
    if len(runs) > 1 or (runs and len(runs[0]) > 1):
        _require_additive(linear, [run for leaf in runs for run in leaf], rhs)
    leaves: list[tuple[IntTuple, IntTuple]] = []
    for leaf in runs:
        if len(leaf) == 1:
            n, d = leaf[0]
            leaves.append((n, linear.stride(d) if n != 1 else _unit_stride(linear, d)))
        else:
            leaves.append((tuple([n for n, _ in leaf]), tuple([linear.stride(d) for _, d in leaf])))
    return assemble(rhs.shape, leaves)


def _scaled(rhs: Layout, factor: int) -> Layout:
    def scale(stride: IntTuple) -> IntTuple:
        return tuple([scale(item) for item in stride]) if isinstance(stride, tuple) else stride * factor

    return trusted(rhs.shape, scale(rhs.stride))


def _reaches_past(lhs: Layout, extents: list[int], strides: list[int]) -> bool:
    size = 1
    for extent in flat(lhs.shape):
        size *= extent
    low = high = 0
    for n, d in zip(extents, strides, strict=True):
        if d < 0:
            low += (n - 1) * d
        else:
            high += (n - 1) * d
    return low < 0 or high >= size


def _unit_stride(linear: _Linear, d: int) -> Any:
    """The stride CuTe prints for an extent of 1: `d` divided by each extent of A, rounded up, in its last mode."""
    if d == 0 or linear.paths is not None:
        return 0
    below = 1
    step = linear.first
    for q, jump, _ in linear.jumps:
        extent = q // below
        d = -(-d // extent)
        step = jump + extent * step
        below = q
    return d * step


def _runs(linear: _Linear, n: int, d: int, rhs: Layout) -> list[Run]:
    """The fewest runs `m:D` that make up `n:d`, on each of which A is linear."""
    runs: list[Run] = []
    rest, step = n, d
    while True:
        length, at, tied = rest, None, False
        for jump in linear.jumps:
            residue = step % jump[0]
            if residue:
                crossing = -(-jump[0] // residue)
                if crossing < length:
                    length, at, tied = crossing, jump, False
                elif crossing == length < rest:
                    tied = True
        if tied:
            length, at = _search_run(linear, rest, step, at)
        if at is not None and rest % length:
            _refuse(linear, n, d, at, rhs)
        runs.append((length, step))
        rest = rest // length if length else 1
        if rest <= 1:
            return runs
        step *= length


def _search_run(linear: _Linear, n: int, d: int, first: Jump | None) -> tuple[int, Jump | None]:
    """The length of the first run where several jumps meet and may cancel."""
    slope = _value(linear, d)
    for count in range(2, min(n, _SEARCH_LIMIT)):
        if _value(linear, count * d) != count * slope:
            return count, first
    if n > _SEARCH_LIMIT:
        raise LayoutError("composition: too long to decide", values={"lhs": linear.layout, "extent": n, "stride": d})
    return n, None


def _value(linear: _Linear, x: int) -> int:
    value = linear.first * x
    for q, jump, _ in linear.jumps:
        value += jump * (x // q)
    return value


def _require_additive(linear: _Linear, runs: list[Run], rhs: Layout) -> None:
    """The value at a sum of runs is the sum of the values."""
    carried: list[Jump] = []
    for jump in linear.jumps:
        q = jump[0]
        load = 0
        for m, step in runs:
            load += (m - 1) * (step % q)
        if load >= q:
            carried.append(jump)
    if not carried:
        return
    if len(carried) > 1 and _adds_up(linear, runs):
        return
    _refuse_carry(linear, carried[0], rhs)


def _adds_up(linear: _Linear, runs: list[Run]) -> bool:
    """Whether carries at several jumps cancel everywhere; tried point by point."""
    points = 1
    for m, _ in runs:
        points *= m
    if points > _SEARCH_LIMIT:
        return False
    slopes = [_value(linear, d) for _, d in runs]
    for coord in grid(*(range(m) for m, _ in runs)):
        x = sum(c * d for c, (_, d) in zip(coord, runs, strict=True))
        if _value(linear, x) != sum(c * s for c, s in zip(coord, slopes, strict=True)):
            return False
    return True


def _refuse(linear: _Linear, n: int, d: int, jump: Jump, rhs: Layout) -> NoReturn:
    mode = _mode_at(linear.layout, jump)
    raise LayoutError(
        f"composition: extent {jump[2]} (mode {mode}) of the left layout and stride {d} "
        f"of the right layout's mode {n}:{d} do not divide",
        values={"lhs": linear.layout, "rhs": rhs},
        hint="no layout has this function; choose a tile whose extent and stride divide the modes it crosses",
    )


def _refuse_carry(linear: _Linear, jump: Jump, rhs: Layout) -> NoReturn:
    modes = " and ".join(
        f"{n}:{d}" for n, d in zip(flat(rhs.shape), flat(rhs.stride), strict=True) if n > 1 and d % jump[0]
    )
    raise LayoutError(
        f"composition: modes {modes} of the right layout together run over extent {jump[2]} "
        f"(mode {_mode_at(linear.layout, jump)}) of the left layout",
        values={"lhs": linear.layout, "rhs": rhs},
        hint="no layout has this function; let each mode of the tile stay within one mode, or cover it whole",
    )


def _mode_at(layout: Layout, jump: Jump) -> int:
    """The flat mode of `layout` that is complete at the jump."""
    q = 1
    for index, extent in enumerate(flat(layout.shape)):
        q *= extent
        if q == jump[0]:
            return index
    return 0
