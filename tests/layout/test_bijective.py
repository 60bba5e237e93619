"""`is_bijective` of composed layouts: by reasoning where they are long, tried where they are short, else refused."""

import random
import time

import pytest

from tilewright.base.errors import LayoutError
from tilewright.layout import ComposedLayout, Layout, Swizzle, bijective, is_bijective, size

LONG = 1 << 40


@pytest.mark.parametrize(
    ("layout", "answer"),
    [
        (ComposedLayout(Swizzle(3, 3, 3), 1, Layout(LONG)), False),
        (ComposedLayout(Swizzle(3, 3, 3), 0, Layout(LONG)), True),
        (ComposedLayout(Swizzle(3, 3, -3), 8, Layout((LONG, 2), (2, 1))), False),
        (ComposedLayout(Swizzle(3, 3, -3), 0, Layout((LONG, 2), (2, 1))), True),
        (ComposedLayout(Swizzle(3, 4, 3), LONG - 1, Layout(LONG, -1)), True),
        (ComposedLayout(Swizzle(3, 4, 3), LONG, Layout(LONG, -1)), False),
        (ComposedLayout(Swizzle(3, 4, 3), 0, Layout(LONG, -1)), False),
        (ComposedLayout(Swizzle(2, 50, 4), 3, Layout(LONG)), False),
        (ComposedLayout(Swizzle(2, 50, 4), 0, Layout(LONG)), True),
        (ComposedLayout(Swizzle(3, 3, 3), 0, Layout(LONG + 32)), True),
        (ComposedLayout(Swizzle(3, 3, 3), 0, Layout(LONG + 64 + 8)), False),
        (ComposedLayout(Swizzle(3, 3, 3), 0, Layout((LONG, 3), (3, 1))), True),
        (ComposedLayout(Swizzle(3, 3, 3), 0, Layout((LONG, 3), (4, 1))), False),
        (ComposedLayout(Layout(LONG), 0, Layout(LONG)), True),
        (ComposedLayout(Layout((1 << 20, 1 << 20), (1 << 20, 1)), 0, Layout((1 << 20, 1 << 20))), True),
        (ComposedLayout(Layout((1 << 20, 1 << 20), (1 << 20, 2)), 0, Layout((1 << 20, 1 << 20))), False),
        (ComposedLayout(Swizzle(3, 3, 3), 0, ComposedLayout(Swizzle(2, 3, 3), 0, Layout(LONG))), True),
        (ComposedLayout(Swizzle(3, 3, 3), 0, ComposedLayout(Swizzle(2, 3, 3), 8, Layout(LONG))), False),
        (Layout((1 << 20, LONG), (LONG, 1)), True),
        (Layout((1 << 20, LONG), (LONG, -1)), False),
        (Layout((LONG, 2), (0, 1)), False),
    ],
    ids=str,
)
def test_long_layouts_are_answered_at_once(layout, answer):
    begin = time.monotonic()
    assert is_bijective(layout) is answer
    assert time.monotonic() - begin < 2


@pytest.mark.parametrize(
    "layout",
    [
        ComposedLayout(lambda x: x, 0, Layout(LONG)),
        ComposedLayout(Layout((1 << 20, 1 << 20), (1 << 20, 1)), 7, Layout((1 << 10, 1 << 30), (1 << 30, 1))),
        ComposedLayout(Swizzle(1, 40, -1), 0, Layout((LONG, 2), (1, 3 * LONG))),
        ComposedLayout(Swizzle(3, 3, 3), 1, ComposedLayout(Swizzle(2, 3, 3), 0, Layout(LONG))),
    ],
    ids=["function", "offset", "below one block", "nested"],
)
def test_what_would_have_to_be_tried_is_refused(layout):
    with pytest.raises(LayoutError, match=f"a layout of {size(layout)} elements is too large to try each index"):
        is_bijective(layout)


def random_composed(rng):
    bits = rng.randint(0, 3)
    swizzle = Swizzle(bits, rng.randint(0, 3), rng.choice([1, -1]) * rng.randint(bits, 4))
    extents = [rng.choice([1, 2, 3, 4, 5, 8, 16]) for _ in range(rng.randint(1, 4))]
    strides, reach = [0] * len(extents), 1
    for place in rng.sample(range(len(extents)), len(extents)):
        strides[place] = reach * rng.choice([1, 1, 1, 1, -1, 3])
        reach *= extents[place]
    below = sum((n - 1) * d for n, d in zip(extents, strides, strict=True) if d < 0)
    inner = rng.choice([swizzle, swizzle, Layout((4, 64), (64, 1)), Layout(1000)])
    made = ComposedLayout(inner, rng.choice([0, 0, 0, 1, 4]) - below, Layout(tuple(extents), tuple(strides)))
    return ComposedLayout(swizzle, 0, made) if rng.random() < 0.2 else made


def test_reasoning_agrees_with_trying(monkeypatch):
    seen = {True: 0, False: 0}
    for number in range(1000):
        rng = random.Random(number)
        layout = random_composed(rng)
        monkeypatch.setattr(bijective, "MOST_POINTS", rng.choice([0, 1, 2, 8]))
        try:
            answer = is_bijective(layout)
        except LayoutError:
            continue
        count = size(layout)
        assert answer == (sorted(map(layout, range(count))) == list(range(count))), layout
        seen[answer] += 1
    assert min(seen.values()) > 100
