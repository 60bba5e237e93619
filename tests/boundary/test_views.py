"""R1 of the cases and its kind: views with offsets, steps, negative steps, transposed, of one or no element."""

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright.base.errors import CompileError


@cute.kernel
def double_kernel(y: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    if i < cute.size(y):
        y[i] = y[i] * 2


@cute.jit
def double(y: cute.Tensor):
    double_kernel(y).launch(grid=1, block=64)


@cute.jit
def double_on_host(y: cute.Tensor):
    for i in range(cute.size(y)):
        y[i] = y[i] * 2


@cute.jit
def double_at_once(y: cute.Tensor):
    y.store(y.load() * 2)


VIEWS = {
    "offset": lambda x: x[5:9],
    "step": lambda x: x[1::3],
    "reversed": lambda x: x[::-1][:7],
    "step back": lambda x: x[20:4:-3],
    "part of a matrix": lambda x: x.reshape(6, 8)[1:4, 2:7],
    "transposed": lambda x: x.reshape(6, 8)[1:4, 2:7].T,
    "rows reversed": lambda x: x.reshape(6, 8)[::-1, 1:5],
    "both reversed": lambda x: x.reshape(6, 8)[4::-2, ::-1],
    "a mode of 1": lambda x: x.reshape(2, 1, 24)[1:, :, 3:9],
    "one element": lambda x: x[7:8],
    "new axis": lambda x: x[3:7][None],
    "diagonal": lambda x: np.lib.stride_tricks.as_strided(x[2:], (6,), (7 * x.itemsize,)),
    "empty": lambda x: x[7:7],
}
WRAPS = {
    "direct": lambda y: y,
    "static": cute.runtime.from_dlpack,
    "dynamic": lambda y: cute.runtime.from_dlpack(y).mark_layout_dynamic(),
}
CALLS = {
    "direct": lambda function, y: function(y),
    "compiled": lambda function, y: cute.compile(function, y, target="emu")(y),
    "tvm-ffi": lambda function, y: cute.compile(function, y, options="--enable-tvm-ffi", target="emu")(y),
}


def doubled(view, dtype=np.int32):
    """What x = 0..47 becomes when `view` of it is doubled."""
    x = np.arange(48, dtype=dtype)
    x[np.isin(x, view(np.arange(48, dtype=dtype)))] *= 2
    return x


@pytest.mark.parametrize("function", [double, double_on_host], ids=["kernel", "host"])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_doubled_in_place(view, wrap, function):
    for call in CALLS.values():
        x = np.arange(48, dtype=np.int32)
        call(function, WRAPS[wrap](VIEWS[view](x)))
        assert (x == doubled(VIEWS[view])).all()


@pytest.mark.parametrize("view", [name for name in VIEWS if name != "empty"])
def test_all_elements_of_a_view_at_once(view):
    x = np.arange(48, dtype=np.int32)
    double_at_once(cute.runtime.from_dlpack(VIEWS[view](x)))
    assert (x == doubled(VIEWS[view])).all()


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64])
@pytest.mark.parametrize("view", ["offset", "step back", "transposed"])
def test_views_of_other_element_sizes(view, dtype):
    x = np.arange(48, dtype=dtype)
    double(VIEWS[view](x))
    assert (x == doubled(VIEWS[view], dtype)).all()


def test_bounds_checks_follow_negative_strides():
    for view in ("reversed", "both reversed", "step"):
        x = np.arange(48, dtype=np.int32)
        y = VIEWS[view](x)
        cute.compile(double, y, options="--enable-assertions", target="emu")(y)
        assert (x == doubled(VIEWS[view])).all()


def test_no_element_is_loaded_from_none():
    with pytest.raises(CompileError, match="none to load"):
        double_at_once(cute.runtime.from_dlpack(np.zeros((0, 4), np.int32)))


def test_registers_do_not_begin_below_their_memory():
    @cute.jit
    def backwards(x: cute.Tensor):
        cute.make_rmem_tensor(cute.make_layout(4, stride=-1), x.element_type)

    with pytest.raises(CompileError, match="begins before its memory"):
        backwards(np.zeros(4, np.int32))
