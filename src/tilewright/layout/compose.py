"""Composition of layouts: `R(c) = A(B(c))` for every coordinate `c` of `B`, or a refusal.

Each mode of `B` is split where `A` is not linear; `linear` has the arithmetic, and says why nothing is refused that
has an answer. Run-time extents go to `compose_symbolic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.basis import Path, ScaledBasis, basis_get
from tilewright.layout.compose_symbolic import compose_symbolic
from tilewright.layout.inttuple import IntTuple, flat, is_flat_static
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, as_layout, is_static, require_plain, trusted
from tilewright.layout.linear import Linear, NotLinear, Run
from tilewright.layout.simplify import by_mode, int_modes

_LeafPair = tuple[IntTuple, IntTuple]
"""Shape and stride of what stands for one leaf of the right layout."""


def composition(lhs: Any, rhs: Any) -> Any:
    """The layout `R` with `R(c) = lhs(rhs(c))` whose shape refines that of `rhs` mode by mode.

    `rhs` may be a tiler: an int `n` counts as `n:1`, a tuple acts mode by mode on `lhs` and drops further modes,
    as in C++ CuTe, `None` keeps a mode. With basis strides `rhs` addresses the modes of `lhs`. Indices past the end of
    `lhs` run on in its last mode. A swizzle or composed layout on the left, or a composed layout on the right, gives a
    composed layout.

    Raises:
        LayoutError: no such layout exists; or, with run-time extents, a fact is missing that would prove it.
    """
    if type(lhs) is Layout and type(rhs) is Layout:
        return compose(lhs, rhs)
    if rhs is None:
        return lhs
    if isinstance(lhs, ComposedLayout):
        return lhs.with_outer(composition(lhs.outer, rhs))
    if isinstance(lhs, Swizzle):
        return ComposedLayout(lhs, 0, as_layout(rhs))
    require_plain(lhs, "composition")
    if isinstance(rhs, tuple | list):
        return by_mode(lhs, rhs, composition, "composition", rest=False)
    if isinstance(rhs, ComposedLayout):
        return ComposedLayout(lhs, 0, rhs)
    if isinstance(rhs, Swizzle):
        raise LayoutError("a swizzle has no shape to compose with", values={"lhs": lhs, "rhs": rhs})
    return compose(lhs, as_layout(rhs))


def compose(lhs: Layout, rhs: Layout, *, past_unit_modes: bool = True) -> Layout:
    """`composition` of two layouts.

    Without `past_unit_modes`, indices past the end run on in the last mode of `lhs` with more than one element.
    """
    left, right = int_modes(lhs), int_modes(rhs)
    if left is not None and right is not None:
        extents, strides = left
        if extents and extents[-1] == 1 and (not past_unit_modes or _stays_below(extents, *right)):
            drop_trailing_units(extents, strides)
        return assemble(rhs.shape, leaves(Linear(extents, strides), *right, lhs, rhs))
    if any(isinstance(step, ScaledBasis) for step in flat(rhs.stride)):
        return _compose_by_basis(lhs, rhs, past_unit_modes)
    if is_static(lhs) and is_static(rhs):
        return _compose_coordinates(lhs, rhs, past_unit_modes)
    return compose_symbolic(lhs, rhs, past_unit_modes=past_unit_modes)


def assemble(profile: IntTuple, found: Sequence[_LeafPair]) -> Layout:
    """The layout of the nesting of `profile` with shape and stride of each leaf in turn."""
    if type(profile) is int:
        return trusted(*found[0])
    if is_flat_static(profile):
        return trusted(*zip(*found, strict=True))
    return trusted(*_nested(profile, iter(found)))


def _nested(profile: IntTuple, found: Any) -> _LeafPair:
    if not isinstance(profile, tuple):
        leaf: _LeafPair = next(found)
        return leaf
    parts = [_nested(item, found) for item in profile]
    return tuple([part[0] for part in parts]), tuple([part[1] for part in parts])


def _stays_below(extents: list[int], counts: list[int], steps: list[int]) -> bool:
    """Whether all indices are in the domain of the left layout."""
    size = 1
    for extent in extents:
        size *= extent
    low = high = 0
    for n, d in zip(counts, steps, strict=True):
        if d < 0:
            low += (n - 1) * d
        else:
            high += (n - 1) * d
    return low >= 0 and high < size


def drop_trailing_units(extents: list[int], strides: list[Any]) -> None:
    """Take modes of extent 1 off the end, so that indices past the end run on in a mode of more than one element."""
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
        strides.pop()


def leaves(linear: Linear, counts: list[int], steps: list[int], lhs: Layout, rhs: object) -> list[_LeafPair]:
    """What stands for each leaf of the right layout: one run, or a tuple of them. `lhs` and `rhs` are for errors."""
    jumps = linear.jumps
    if not jumps:
        first = linear.first
        return [(n, d * first) for n, d in zip(counts, steps, strict=True)]
    if jumps[-1][0] == 0 and 0 in counts:
        return [(n, d * linear.first) for n, d in zip(counts, steps, strict=True)]
    if jumps[-1][0] == 0:
        raise LayoutError("composition: the left layout is empty", values={"lhs": lhs, "rhs": rhs})
    found: list[_LeafPair] = []
    loads = [0] * len(jumps)
    runs: list[Run] = []
    n = d = 0
    try:
        for n, d in zip(counts, steps, strict=True):
            value = linear.first * d
            last = n - 1
            split = None
            for place, (q, jump, _) in enumerate(jumps):
                value += jump * (d // q)
                load = d % q * last
                if load >= q:
                    split = linear.runs(n, d)
                    break
                loads[place] += load
            if split is None:
                found.append((n, value if last else linear.unit_stride(d)))
                runs.append((n, d))
            else:
                found.append((tuple([m for m, _ in split]), tuple([linear(step) for _, step in split])))
                runs += split
                for before in range(place):
                    loads[before] -= d % jumps[before][0] * last
                for place, (q, _, _) in enumerate(jumps):
                    for m, step in split:
                        loads[place] += step % q * (m - 1)
    except NotLinear as fault:
        raise _refusal(fault, f"stride {d} of the right layout's mode {n}:{d}", lhs, rhs) from None
    for load, (q, _, _) in zip(loads, jumps, strict=True):
        if load >= q:
            _require_additive(linear, runs, counts, steps, lhs, rhs)
            break
    return found


def _require_additive(
    linear: Linear, runs: list[Run], counts: list[int], steps: list[int], lhs: Layout, rhs: object
) -> None:
    try:
        linear.require_additive(runs)
    except NotLinear as fault:
        raise _refused_sum(fault, counts, steps, lhs, rhs) from None


def _refusal(fault: NotLinear, mode: str, lhs: Layout, rhs: object) -> LayoutError:
    if fault.jump is None:
        return LayoutError("composition: too long to decide", values={"lhs": lhs, "rhs": rhs})
    return LayoutError(
        f"composition: extent {fault.jump[2]} (mode {_mode_at(lhs, fault.jump[0])}) of the left layout and {mode} "
        "do not divide",
        values={"lhs": lhs, "rhs": rhs},
        hint="no layout has this function; choose a tile whose extent and stride divide the modes it crosses",
    )


def _refused_sum(fault: NotLinear, counts: list[int], steps: list[int], lhs: Layout, rhs: object) -> LayoutError:
    assert fault.jump is not None
    q, _, extent = fault.jump
    modes = " and ".join(f"{n}:{d}" for n, d in zip(counts, steps, strict=True) if n > 1 and d % q)
    return LayoutError(
        f"composition: modes {modes} of the right layout together run over extent {extent} "
        f"(mode {_mode_at(lhs, q)}) of the left layout",
        values={"lhs": lhs, "rhs": rhs},
        hint="no layout has this function; let each mode of the tile stay within one mode, or cover it whole",
    )


def _mode_at(layout: Layout, end: int) -> int:
    """The flat mode of `layout` that is complete at the index `end`."""
    q = 1
    for index, extent in enumerate(flat(layout.shape)):
        q *= extent
        if q == end:
            return index
    return 0


def _compose_by_basis(lhs: Layout, rhs: Layout, past_unit_modes: bool) -> Layout:
    """Each basis path of `rhs` composes with the mode of `lhs` it leads to."""
    extents, strides = flat(rhs.shape), flat(rhs.stride)
    places: dict[Path, list[int]] = {}
    for index, step in enumerate(strides):
        if isinstance(step, ScaledBasis):
            places.setdefault(step.mode, []).append(index)
        elif type(step) is not int or step != 0:
            raise LayoutError("offsets and coordinates are mixed in the strides", values={"rhs": rhs})
    _require_separate(places, rhs)
    result: list[_LeafPair] = [(extent, 0) for extent in extents]
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


_LANE = 192
"""Bits for each coordinate when the strides of a layout with basis strides are packed into one int."""


def _compose_coordinates(lhs: Layout, rhs: Layout, past_unit_modes: bool) -> Layout:
    """Static composition whose values are coordinates: all modes of a coordinate travel in one wide int."""
    extents, strides = flat(lhs.shape), flat(lhs.stride)
    paths = sorted({step.mode for step in strides if isinstance(step, ScaledBasis)})
    packed = [_pack(step, paths, lhs) for step in strides]
    if not past_unit_modes or _stays_below(extents, flat(rhs.shape), flat(rhs.stride)):
        drop_trailing_units(extents, packed)
    found = leaves(Linear(extents, packed), flat(rhs.shape), flat(rhs.stride), lhs, rhs)
    return assemble(rhs.shape, [(shape, _unpack(stride, paths, lhs)) for shape, stride in found])


def _pack(step: Any, paths: list[Path], lhs: Layout) -> int:
    if isinstance(step, ScaledBasis):
        return int(step.value) << (_LANE * paths.index(step.mode))
    if step != 0:
        raise LayoutError("offsets and coordinates are mixed in the strides", values={"lhs": lhs})
    return 0


def _unpack(value: IntTuple, paths: list[Path], lhs: Layout) -> IntTuple:
    """The stride in the balanced digits of `value`, all but one of which must be 0."""
    if isinstance(value, tuple):
        return tuple(_unpack(item, paths, lhs) for item in value)
    half = 1 << (_LANE - 1)
    parts = []
    for path in paths:
        digit = ((value + half) & (2 * half - 1)) - half
        value = (value - digit) >> _LANE
        if digit:
            parts.append(ScaledBasis(digit, path))
    if len(parts) > 1:
        raise LayoutError(
            "composition: a stride would lead along two modes at once", values={"lhs": lhs, "stride": parts}
        )
    return parts[0] if parts else 0
