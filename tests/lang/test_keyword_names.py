"""CuTe's documented names of parameters: they are what the functions have, and calls by them are calls."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.documented_names import documented
from tests.lang.kernels import on_device
from tilewright import layout as algebra

ROOTS = {"cute": cute, "cutlass": cutlass}


def find(name: str):
    root, *path = name.split(".")
    return functools.reduce(getattr, path, ROOTS[root])


@pytest.mark.parametrize(("name", "parameters"), documented(), ids=[name for name, _ in documented()])
def test_signatures_show_documented_names(name, parameters):
    shown = [item for item in inspect.signature(find(name)).parameters if item != "self"]
    assert [item for item in parameters if item not in shown] == []
    order = [shown.index(item) for item in parameters]
    keyword_only = name in ("cutlass.pipeline.PipelineCpAsync.create",)  # there as in its base class
    assert order == sorted(order) or keyword_only


def L(shape, stride=None):
    return cute.make_layout(shape, stride=stride)


BY_NAME = {
    "local_tile": {"input": L((8, 8)), "tiler": (4, 4), "coord": (0, 1)},
    "local_partition": {"target": L((8, 8)), "tiler": L((2, 2)), "index": 3},
    "composition": {"lhs": L(8), "rhs": L(4)},
    "logical_product": {"block": L(4), "tiler": L(2)},
    "raked_product": {"block": L((2, 2)), "tiler": L((2, 2))},
    "coalesce": {"input": L((2, 4)), "target_profile": (1, 1)},
    "complement": {"input": L(4, 2), "cotarget": 24},
    "right_inverse": {"input": L((4, 2), (2, 1))},
    "recast_layout": {"new_type_bits": 32, "old_type_bits": 16, "src_layout": L(8)},
    "slice_": {"src": L((4, 4)), "coord": (None, 1)},
    "slice_and_offset": {"coord": (None, 1), "src": L((4, 4))},
    "dice": {"src": L((4, 4)), "dicer": (1, None)},
    "size": {"a": L((4, 3)), "mode": [1]},
    "group_modes": {"input": L((2, 3, 4)), "begin": 0, "end": 2},
    "append": {"input": L(2), "elem": L(3), "up_to_rank": 3},
    "get": {"input": L((2, 3, 4)), "mode": [1]},
    "tile_to_shape": {"atom": L((2, 2)), "trg_shape": (4, 4), "order": (1, 0)},
    "ceil_div": {"input": 7, "tiler": 2},
    "round_up": {"a": 7, "b": 2},
    "elem_less": {"lhs": (1, 1), "rhs": (2, 2)},
    "make_swizzle": {"b": 3, "m": 3, "s": 3},
    "max_common_vector": {"a": L(8), "b": L(8)},
    "is_congruent": {"a": (1, (2, 3)), "b": (4, (5, 6))},
    "product_like": {"a": ((2, 3), 4), "target_profile": (1, 1)},
    "leading_dim": {"shape": (4, 8), "stride": (8, 1)},
}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_call_by_name_is_the_call_in_order(name):
    arguments = BY_NAME[name]
    function = getattr(cute, name)
    assert str(function(**arguments)) == str(function(*arguments.values()))
    assert str(function(**dict(reversed(arguments.items())), loc=None, ip=None)) == str(function(**arguments))


@pytest.mark.parametrize("name", [name for name in BY_NAME if hasattr(algebra, name)])
def test_the_layout_algebra_has_the_same_names(name):
    arguments = BY_NAME[name]
    assert str(getattr(algebra, name)(**arguments)) == str(getattr(cute, name)(**arguments))


def test_tensors_by_name_keep_their_data():
    def body(out: cute.Tensor):
        part = cute.local_tile(input=out, tiler=(4,), coord=(1,))
        pairs = cute.zipped_divide(tiler=(2,), target=part)
        column = cute.slice_(coord=((None,), 1), src=pairs)
        flat = cute.coalesce(input=cute.flatten(a=column))
        flat[0] = 5
        moved = cute.domain_offset(coord=(3,), tensor=out)
        moved[0] = 7
        out[0] = cute.size(a=part)
        cute.autovec_copy(src=part, dst=cute.make_rmem_tensor_like(src=part))

    out = on_device(body, np.zeros(8, np.int32), block=1)
    assert out.tolist() == [4, 0, 0, 7, 0, 0, 5, 0]


def test_an_unknown_name_is_python_s_own_error():
    with pytest.raises(TypeError, match=r"zipped_divide\(\) got an unexpected keyword argument 'tyler'"):
        cute.zipped_divide(target=L((8, 8)), tyler=(4, 4))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'tiler'"):
        cute.zipped_divide(L((8, 8)))


def test_make_layout_takes_layouts_as_a_list():
    parts = [L(64), L(128, 64)]
    assert str(cute.make_layout(parts)) == str(cute.make_layout(*parts)) == "(64,128):(1,64)"
    assert str(cute.make_layout(shape=(3, 4), stride=(4, 1))) == "(3,4):(4,1)"


def test_all_of_the_layout_algebra_is_in_cute():
    here = {"Fact", "runtime_checks", "DynamicInt", "IntTuple", "divisibility", "evaluate", "add_coordinates"}
    of_layouts = {"filter_", "compact_col_major", "compact_order", "make_basis_like"}
    inner = {"local_partition_and_offset", "local_tile_and_offset"}
    assert [name for name in algebra.__all__ if not hasattr(cute, name) and name not in here | of_layouts | inner] == []
