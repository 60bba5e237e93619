"""The notation of `--arg`."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.base.errors import ArgumentError
from tilewright.tools.arguments import DTYPES, parse_argument, values


def data(text, seed=0):
    return values([parse_argument(text)], seed)[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-7", -7),
        ("0x10", 16),
        ("2.5", 2.5),
        ("1e-3", 1e-3),
        ("none", None),
        ("true", True),
        ("False", False),
    ],
)
def test_plain_values(text, value):
    result = data(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type(name):
    array = data(f"{name}[3,5]")
    assert array.shape == (3, 5)
    assert array.dtype == DTYPES[name]


def test_random_tensors_repeat_and_differ_from_each_other():
    first = values([parse_argument("f32[64]"), parse_argument("f32[64]")])
    again = values([parse_argument("f32[64]"), parse_argument("f32[64]")])
    assert np.array_equal(first[0], again[0]) and np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], data("f32[64]", seed=1))


def test_random_floats_are_standard_normal():
    sample = data("f32[100000]")
    assert abs(float(sample.mean())) < 0.02
    assert abs(float(sample.std()) - 1) < 0.02


def test_random_integers_stay_small():
    assert set(np.unique(data("i32[10000]"))) == set(range(-8, 8))
    assert set(np.unique(data("u8[10000]"))) == set(range(16))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zeros:f32[4]", np.zeros(4, np.float32)),
        ("f32[4]=ones", np.ones(4, np.float32)),
        ("i32[2,3]=arange", np.array([[0, 1, 2], [3, 4, 5]], np.int32)),
        ("arange:bf16[4]", np.arange(4).astype(ml_dtypes.bfloat16)),
        ("2.5:f16[3]", np.full(3, 2.5, np.float16)),
        ("i64[2]=-3", np.full(2, -3, np.int64)),
        ("7:i32[]", np.array(7, np.int32)),
        ("zeros:f32[0,4]", np.zeros((0, 4), np.float32)),
    ],
)
def test_fillings(text, expected):
    array = data(text)
    assert array.dtype == expected.dtype
    assert np.array_equal(array, expected) and array.shape == expected.shape


def test_runtime_extents():
    marked = parse_argument("f32[?1024, 32]")
    assert marked.shape == (1024, 32)
    assert marked.dynamic == {0}
    assert marked.data(np.random.default_rng(0)).shape == (1024, 32)


def test_runtime_extent_without_data_compiles_but_does_not_run():
    marked = parse_argument("f32[?,32]")
    assert marked.shape == (None, 32)
    with pytest.raises(ArgumentError, match="running needs every extent") as error:
        values([marked])
    assert "f32[?1024]" in str(error.value)


def test_file(tmp_path):
    path = tmp_path / "x.npy"
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.save(path, array)
    argument = parse_argument(f"@{path}")
    assert (argument.dtype_name, argument.shape) == ("i16", (2, 3))
    copy = values([argument])[0]
    copy[:] = 0
    assert np.array_equal(values([argument])[0], array)


def test_file_in_column_order_becomes_row_major(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)))
    array = data(f"@{path}")
    assert array.flags.c_contiguous
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f32", "'f32' is not an argument"),
        ("f32[", "is not an argument"),
        ("float[4]", "unknown element type 'float'"),
        ("f32[4,]", "'' is not an extent"),
        ("f32[-4]", "'-4' is not an extent"),
        ("f32[n]", "'n' is not an extent"),
        ("sevens:f32[4]", "unknown filling 'sevens'"),
        ("zeros:f32[4]=ones", "says twice how to fill"),
        ("@nowhere.npy", "nowhere.npy cannot be read as a NumPy array"),
    ],
)
def test_errors_say_what_is_wrong(text, message):
    with pytest.raises(ArgumentError) as error:
        parse_argument(text)
    assert message in str(error.value)
    assert "hint: " in str(error.value)


def test_complex_file_is_refused(tmp_path):
    np.save(tmp_path / "c.npy", np.zeros(3, complex))
    with pytest.raises(ArgumentError, match="no element type for NumPy's complex128"):
        parse_argument(f"@{tmp_path / 'c.npy'}")
