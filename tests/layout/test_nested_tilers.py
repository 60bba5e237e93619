"""Divides by tilers of tuples in tuples, with None and short ones, of nested layouts, point by point."""

import random

import pytest

from tests.layout import oracle
from tests.layout.test_divide import without_trailing_units
from tilewright.base.errors import LayoutError
from tilewright.layout import (
    Layout,
    composition,
    evaluate,
    flat_divide,
    logical_divide,
    sym_int,
    tiled_divide,
    zipped_divide,
)
from tilewright.layout.dynamic import mul


def nested(rng, modes, depth=2):
    """Leaf modes `(extent, stride)` as a nested pair of shape and stride."""
    if len(modes) == 1 and (depth == 0 or rng.random() < 0.8):
        return modes[0]
    parts, start = [], 0
    while start < len(modes):
        count = rng.randint(1, len(modes) - start)
        part = modes[start : start + count]
        parts.append(part[0] if count == 1 or depth == 0 else nested(rng, part, depth - 1))
        if count > 1 and depth == 0:
            parts[-1:] = part
        start += count
    return tuple(shape for shape, _ in parts), tuple(stride for _, stride in parts)


def some_layout(rng, extents):
    count = rng.randint(1, 4)
    shape = [rng.choice(extents) for _ in range(count)]
    stride, below = [0] * count, 1
    for place in rng.sample(range(count), count):
        stride[place] = -below if rng.random() < 0.1 and isinstance(below, int) else below
        below = mul(shape[place], mul(below, rng.choice([1, 1, 1, 2])))
    return Layout(*nested(rng, list(zip(shape, stride, strict=True))))


def some_tile(rng):
    return rng.choice(
        [
            1,
            2,
            3,
            4,
            8,
            Layout(2, 2),
            Layout(4, 1),
            Layout((2, 2), (1, 4)),
            Layout((2, 3), (3, 1)),
            Layout((2, 2), (2, 1)),
        ]
    )


def some_tiler(rng, shape, depth=2):
    if not isinstance(shape, tuple) or rng.random() < 0.2:
        return some_tile(rng)
    kinds = [rng.random() for _ in shape[: rng.randint(0, len(shape))]]
    return tuple(
        None if kind < 0.3 else some_tile(rng) if kind < 0.6 or not depth else some_tiler(rng, shape[mode], depth - 1)
        for mode, kind in enumerate(kinds)
    )


def check(a, tiler, r):
    """`r` holds the elements of `a`, tile after tile, in each mode that `tiler` names; the others are as they were."""
    if tiler is None:
        assert (r.shape, r.stride) == (a.shape, a.stride)
    elif isinstance(tiler, tuple):
        modes = [a[mode] for mode in range(len(a))]
        assert len(r) == len(modes)
        for mode, part in enumerate(modes):
            check(part, tiler[mode] if mode < len(tiler) else None, r[mode])
    else:
        check_whole(without_trailing_units(a), tiler if isinstance(tiler, Layout) else Layout(tiler), r)


def check_whole(a, tile, r):
    count, inside = oracle.size(a), oracle.values(tile)
    covered, starts = set(), []
    for x in range(count):
        if x not in covered:
            starts.append(x)
            covered |= {x + y for y in inside}
    places = [start + y for start in starts for y in inside]
    found = oracle.values(r)
    assert len(r) == 2
    assert oracle.refines(tile.shape, r.shape[0])
    assert len(found) >= len(places)
    for value, x in zip(found, places, strict=False):
        assert x >= count or value == oracle.value(a.shape, a.stride, x)


def check_arrangements(a, tiler):
    """Zipped, tiled and flat divide are one another's modes."""
    z, t, f = (divide(a, tiler) for divide in (zipped_divide, tiled_divide, flat_divide))
    rest = z[1].shape if isinstance(z[1].shape, tuple) else (z[1].shape,)
    tile = z[0].shape if isinstance(z[0].shape, tuple) else (z[0].shape,)
    assert t.shape == (z[0].shape, *rest)
    assert f.shape == (*tile, *rest)
    assert oracle.flat(z.stride) == oracle.flat(t.stride) == oracle.flat(f.stride)


def test_static_layouts():
    rng = random.Random(31)
    answers = 0
    for _ in range(3_000):
        a = some_layout(rng, [1, 2, 3, 4, 6, 8])
        tiler = some_tiler(rng, a.shape)
        try:
            r = logical_divide(a, tiler)
        except LayoutError:
            continue
        answers += 1
        check(a, tiler, r)
        check_arrangements(a, tiler)
    assert answers > 2_000


def instance(layout, env):
    return Layout(evaluate(layout.shape, env), evaluate(layout.stride, env))


def test_extents_of_run_time():
    rng = random.Random(37)
    symbols = [sym_int(name="n"), sym_int(4, name="m"), sym_int(8, name="k")]
    answers = 0
    for _ in range(1_000):
        a = some_layout(rng, [2, 4, 8, *symbols])
        tiler = some_tiler(rng, a.shape)
        try:
            r = logical_divide(a, tiler)
        except LayoutError:
            continue
        answers += 1
        for _ in range(3):
            env = {"n": rng.randint(1, 6), "m": 4 * rng.randint(1, 4), "k": 8 * rng.randint(1, 3)}
            left = instance(a, env)
            if oracle.size(left) < 3_000:
                check(left, tiler, instance(r, env))
    assert answers > 600


@pytest.mark.parametrize("tiler", [((2, None), 4), ((None, 2),), (((2,), 3), None), ((2, 3), (2, (2,)))])
def test_composition_by_nested_tilers(tiler):
    a = Layout(((4, 6), (4, (2, 3))), ((1, 100), (4, (700, 1400))))

    def expect(mode, part):
        if part is None:
            return oracle.values(mode)
        if isinstance(part, tuple):
            points = [0]
            for index in range(len(part)):  # modes beyond the tiler's are dropped
                step = expect(mode[index], part[index])
                points = [base + x for x in step for base in points]
            return points
        return [oracle.value(mode.shape, mode.stride, x) for x in range(part)]

    assert oracle.values(composition(a, tiler)) == expect(a, tiler)
