"""Composition where some extents or strides are known only at run time.

Each step needs a divisibility: a stride that covers a mode whole, an extent that a stride divides, a rest that
goes on into the next mode. What divisibility does not prove goes to `facts.require`.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.assumptions import Fact, checking, proving, require
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.dynamic import (
    DynamicInt,
    Leaf,
    add,
    at_most,
    ceil_div_leaf,
    divisibility,
    exact_div,
    is_int,
    is_multiple,
    mul,
    same,
    sub,
)
from tilewright.layout.inttuple import IntTuple, flat, product
from tilewright.layout.layout import Layout, trusted
from tilewright.layout.simplify import coalesced_modes, is_unit, is_zero

Modes = list[tuple[Leaf, Leaf]]


def compose_symbolic(lhs: Layout, rhs: Layout, *, past_unit_modes: bool = True) -> Layout:
    """The composition, or a `LayoutError` that states the fact that is missing.

    Indices past the end of `lhs` run on in its last mode, without `past_unit_modes` in its last mode that is not
    known to have one element. Modes of `lhs` that are known to go on where the one before ends are joined only where
    the answer needs it: CuTe prints them apart.
    """
    modes = coalesced_modes(lhs)
    unit = _unit_at_end(lhs) if past_unit_modes else None
    if unit is None or _goes_on(mul(*modes[-1]), unit[1]):
        return _compose_joining(modes, lhs, rhs)
    if is_unit(modes[-1][0]):
        return _compose_joining([unit], lhs, rhs)
    with proving():
        for trial in (_compose_inside, _compose_joining):
            try:
                return trial(modes if trial is _compose_inside else [*modes, unit], lhs, rhs)
            except LayoutError:
                continue
    return _compose_inside(modes, lhs, rhs)


def _unit_at_end(layout: Layout) -> tuple[Leaf, Leaf] | None:
    """The last mode, if it is known to have one element."""
    extents = flat(layout.shape)
    return (1, flat(layout.stride)[-1]) if extents and is_unit(extents[-1]) else None


def _compose_inside(modes: Modes, lhs: Layout, rhs: Layout) -> Layout:
    """The composition if all indices are in the domain of `lhs`, so that its last mode does not matter."""
    runs = list(zip(flat(rhs.shape), flat(rhs.stride), strict=True))
    for n, d in runs:
        if not is_unit(n) and _is_negative(d):
            raise _below_start(n, d, lhs, rhs)
    _require_room(product(lhs.shape), runs, lhs, rhs)
    return _compose_joining(modes, lhs, rhs)


def _compose_joining(modes: Modes, lhs: Layout, rhs: Layout) -> Layout:
    joined = _joined(modes)
    if len(joined) < len(modes):
        with proving():
            try:
                return _compose(modes, lhs, rhs)
            except LayoutError:
                modes = joined
    return _compose(modes, lhs, rhs)


def _joined(modes: Modes) -> Modes:
    joined = modes[:1]
    for extent, step in modes[1:]:
        before, under = joined[-1]
        if _goes_on(mul(before, under), step):
            joined[-1] = mul(before, extent), under
        else:
            joined.append((extent, step))
    return joined


def _goes_on(end: Leaf, step: Leaf) -> bool:
    """True if both are known to be the same number."""
    if not (is_int(end) and is_int(step)):
        return False
    if same(end, step):
        return True
    ratio = step.quotient(end) if isinstance(end, DynamicInt) and isinstance(step, DynamicInt) else None
    return type(ratio) is int and ratio == 1


def _compose(modes: Modes, lhs: Layout, rhs: Layout) -> Layout:
    used: list[Modes] = [[] for _ in modes[:-1]]

    def leaf(extent: Leaf, step: Leaf) -> tuple[IntTuple, IntTuple]:
        if type(step) is int and step == 0:
            return extent, 0
        runs = _runs(modes, extent, step, used, lhs, rhs)
        if len(runs) == 1:
            return runs[0]
        return tuple(n for n, _ in runs), tuple(d for _, d in runs)

    def build(shape: IntTuple, stride: IntTuple) -> tuple[IntTuple, IntTuple]:
        if not isinstance(shape, tuple):
            return leaf(shape, stride)
        parts = [build(s, d) for s, d in zip(shape, stride, strict=True)]
        return tuple(part[0] for part in parts), tuple(part[1] for part in parts)

    result = trusted(*build(rhs.shape, rhs.stride))
    for (extent, _), inside in zip(modes, used, strict=False):
        if len(inside) > 1:  # they must not carry out of the mode together
            _require_room(extent, inside, lhs, rhs)
    return result


def _runs(modes: Modes, n: Leaf, d: Leaf, used: list[Modes], lhs: Layout, rhs: Layout) -> Modes:
    """The runs of A that make up the mode `n:d`; where each falls inside a mode is noted in `used`."""
    runs: Modes = []
    for (extent, step), inside in zip(modes[:-1], used, strict=True):
        if is_unit(n):
            break
        if is_multiple(d, extent):
            d = exact_div(d, extent)
            continue
        if _is_negative(d):
            raise _below_start(n, d, lhs, rhs)
        if _stays_inside(n, d, extent):
            return _noted(runs, inside, n, d, step)
        if not is_multiple(extent, d):
            require(Fact("multiple", extent, d), "composition", lhs=lhs, rhs=rhs)
        room = exact_div(extent, d)
        if at_most(n, room):
            return _noted(runs, inside, n, d, step)
        if not is_multiple(n, room):
            if type(n) is int and not checking():
                require(Fact("at most", n, room), "composition", lhs=lhs, rhs=rhs)
                return _noted(runs, inside, n, d, step)
            room = _filled(n, room, lhs, rhs)
        _noted(runs, inside, room, d, step)
        n, d = exact_div(n, room), 1
    if not runs or not is_unit(n):
        runs.append((n, _times(d, modes[-1][1]) if not is_unit(n) else 0))
    return runs


def _is_negative(step: Leaf) -> bool:
    return type(step) is int and step < 0


def _below_start(n: Leaf, d: Leaf, lhs: Layout, rhs: Layout) -> LayoutError:
    return LayoutError(
        f"composition: mode {n}:{d} of the right layout leads below the start of a mode whose extent is known only at "
        "run time",
        values={"lhs": lhs, "rhs": rhs},
        hint="compose with the positive stride, and move the start to the other end",
    )


def _filled(n: Leaf, room: Leaf, lhs: Layout, rhs: Layout) -> Leaf:
    """The lesser of `n` and `room`, if one is known by the run to be a multiple of the other or to fit in it."""
    if not checking():
        require(Fact("multiple", n, room), "composition", lhs=lhs, rhs=rhs)
    rest = ceil_div_leaf(n, room)
    first = exact_div(n, rest)
    require(Fact("multiple", n, first), "composition", lhs=lhs, rhs=rhs)
    over = sub(rest, 1)  # 0 where n fits; else every run but the last must fill its room
    require(Fact("at most", mul(over, room), mul(over, first)), "composition", lhs=lhs, rhs=rhs)
    return first


def _noted(runs: Modes, inside: Modes, n: Leaf, d: Leaf, step: Leaf) -> Modes:
    inside.append((n, d))
    runs.append((n, _times(d, step)))
    return runs


def _times(factor: Leaf, step: Leaf) -> Any:
    return step.scaled(factor) if isinstance(step, ScaledBasis) else mul(factor, step)


def _stays_inside(n: Leaf, d: Leaf, extent: Leaf) -> bool:
    """True if `n:d` is known to end before `extent`."""
    return type(n) is int and type(d) is int and (n - 1) * d < divisibility(extent)


def _require_room(extent: Leaf, inside: Modes, lhs: Layout, rhs: Layout) -> None:
    """All sums of the runs must be below `extent`."""
    inside = [(n, d) for n, d in inside if not (is_unit(n) or is_zero(d))]
    if not inside:
        return
    if len(inside) <= 4 and any(_nests(extent, order) for order in permutations(inside)):
        return
    reach: Leaf = 1
    for n, d in inside:
        reach = add(reach, mul(sub(n, 1), d))
    if not (type(reach) is int and reach <= divisibility(extent)):
        require(Fact("at most", reach, extent), "composition", lhs=lhs, rhs=rhs)


def _nests(extent: Leaf, runs: tuple[tuple[Leaf, Leaf], ...]) -> bool:
    """True if each run is known to end where the next begins to step, and the last ends within `extent`."""
    steps = [d for _, d in runs[1:]] + [extent]
    return all(_holds(step, n, d) for (n, d), step in zip(runs, steps, strict=True))


def _holds(step: Leaf, n: Leaf, d: Leaf) -> bool:
    """True if `step` is known to be a multiple of `n*d`."""
    if is_multiple(step, mul(n, d)):
        return True
    return is_multiple(step, d) and is_multiple(exact_div(step, d), n)
