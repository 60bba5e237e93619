"""Tensors and views: strides, checked against what NumPy makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.epilogue import Tensor
from tilewright.lib.epilogue.views import Broadcast, Permute, Reshape, normalised

shapes = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4).map(tuple)


@st.composite
def permutations(draw, rank):
    return tuple(draw(st.permutations(range(rank))))


@st.composite
def factored(draw, size):
    """A shape of `size` elements."""
    shape = []
    while size > 1 and len(shape) < 4:
        factor = draw(st.sampled_from([f for f in range(1, size + 1) if size % f == 0]))
        shape.append(factor)
        size //= factor
    return (*shape, size)


@st.composite
def view_lists(draw):
    """An array's shape, and views that fit one after the other."""
    first = shape = draw(shapes)
    views = []
    for _ in range(draw(st.integers(0, 5))):
        view = draw(
            st.one_of(permutations(len(shape)).map(Permute), factored(math.prod(shape)).map(Reshape), st.just(None))
        )
        if view is None:
            view = Broadcast((2, *(extent if extent > 1 else draw(st.sampled_from([1, 3])) for extent in shape)))
        if math.prod(view.on_shape(shape)) > 2000 or len(view.on_shape(shape)) > 6:
            continue
        views.append(view)
        shape = view.on_shape(shape)
    return first, tuple(views)


def applied(views, thing, method):
    for view in views:
        thing = getattr(view, method)(thing)
    return thing


@given(view_lists())
def test_views_of_strides_are_views_of_arrays(case):
    shape, views = case
    array = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    wanted = applied(views, array, "on_array")
    try:
        tensor = applied(views, Tensor.of(np.int32, shape), "on_tensor")
    except ValueError:
        return  # strides cannot say it; the test below shows where they must
    assert tensor.shape == wanted.shape == applied(views, shape, "on_shape")
    np.testing.assert_array_equal(tensor.view(array).reshape(tensor.shape), wanted)


@given(view_lists())
def test_normalised_views_do_the_same(case):
    shape, views = case
    array = np.arange(math.prod(shape)).reshape(shape)
    short = normalised(views, shape)
    np.testing.assert_array_equal(applied(short, array, "on_array"), applied(views, array, "on_array"))
    assert len(short) <= len(views)


@given(view_lists())
def test_views_and_their_inverses_vanish(case):
    shape, views = case
    there = [view for view in views if not isinstance(view, Broadcast)]
    place, back = shape, []
    kept = []
    for view in there:
        try:
            after = view.on_shape(place)
        except (ValueError, IndexError):
            break
        kept.append(view)
        back.insert(0, view.inverse(place))
        place = after
    assert normalised((*kept, *back), shape) == ()


@given(shapes, st.data())
def test_a_compact_tensor_has_every_reshape(shape, data):
    wanted = data.draw(factored(math.prod(shape)))
    tensor = Tensor.of(np.float32, shape).reshape(wanted)
    assert tensor.is_plain and tensor.shape == wanted


def test_modes_that_one_stride_does_not_go_through():
    flipped = Tensor.of(np.float32, (16, 32)).permute((1, 0))
    joined = flipped.reshape((512, 1))
    assert (joined.shape, joined.stride, joined.is_plain) == ((512, 1), ((1, 32), 0), False)
    assert str(joined.layout) == "((16,32),1):((32,1),0)"
    assert joined.reshape((32, 16)).modes == flipped.modes


@pytest.mark.parametrize("shape", [(4, 6), (8, 3)])
def test_what_strides_cannot_cut(shape):
    with pytest.raises(ValueError):
        Tensor.of(np.float32, (6, 4), (10, 1)).reshape(shape)
    assert Tensor.of(np.float32, (6, 4), (10, 1)).reshape((3, 2, 4)).stride == (20, 10, 1)


def test_broadcasts():
    row = Tensor.of(np.float16, (8,))
    assert row.broadcast((2, 16, 8)).stride == (0, 0, 1)
    assert row.broadcast((2, 16, 8)).broadcast_modes == (0, 1)
    for shape in ((16,), (1,), ()):
        with pytest.raises(ValueError):
            row.broadcast(shape)


def test_examples():
    array = np.zeros((4, 6), np.float16)[::2, 1:3]
    tensor = Tensor.like("x", array)
    assert (tensor.shape, tensor.stride, str(tensor.element), tensor.value) == ((2, 2), (12, 1), "Float16", None)
    assert Tensor.like("x", tensor) is tensor
    number = Tensor.like("x", 2)
    assert (number.shape, number.value, str(number.element), number.is_scalar) == ((), 2, "Float32", True)
    assert str(Tensor.like("x", np.int8(2)).element) == "Int8"
    assert str(tensor) == "Float16(2, 2):(12, 1)"


@pytest.mark.parametrize(
    "view, shape",
    [(Permute((0, 0)), (2, 3)), (Permute((0, 1)), (2, 3, 4)), (Reshape((5,)), (2, 3)), (Reshape((-1, -1)), (2, 3)),
     (Reshape((-1, 4)), (2, 3)), (Broadcast((2, 2)), (2, 3))],
)  # fmt: skip
def test_views_that_do_not_fit(view, shape):
    with pytest.raises(ValueError):
        view.on_shape(shape)
