"""Every epilogue of EVT's own tests, on NumPy: the graph as written, and after all passes."""

import numpy as np
import pytest

from tests.lib.epilogue.rows import ROWS, SIZES, float64
from tilewright import epilogue

CASES = [
    pytest.param(row, size, cc, id=f"{row.name}-{'x'.join(map(str, size))}-{cc}")
    for row in ROWS
    for size, cc in (((row.size, 80), (row.size, 90)) if row.size else zip(SIZES, (80, 90, 90), strict=True))
]


def check(row, outputs, arrays, examples):
    expected = row.expected(float64(arrays))
    assert list(outputs) == list(expected)
    for name, wanted in expected.items():
        assert outputs[name].dtype == examples[name].dtype and outputs[name].shape == examples[name].shape
        got = outputs[name].astype(np.float64)
        if row.exact:
            np.testing.assert_array_equal(got, wanted.astype(examples[name].dtype).astype(np.float64), err_msg=name)
        else:
            np.testing.assert_allclose(got, wanted, rtol=2**-10, atol=2**-24, err_msg=name)


@pytest.mark.parametrize("row, size, cc", CASES)
def test_a_row_evaluates_to_what_numpy_says(row, size, cc):
    arrays, examples = row.arrays(*size), row.examples(*size)
    written = epilogue.parse(row.epilogue, examples, cc)
    check(row, written.evaluate(**arrays), arrays, examples)
    traced = epilogue.trace(row.epilogue, examples, cc)
    check(row, traced.evaluate(**arrays), arrays, examples)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_after_the_passes_every_tensor_has_the_accumulator_s_shape_and_an_implementation(row):
    size = row.size or (3, 16, 24)
    dag = epilogue.trace(row.epilogue, row.examples(*size))
    assert all(meta.tensor.shape == size and meta.underlying_impl for meta in dag.nodes_meta)
    assert not any(meta.op == "layout" for meta in dag.nodes_meta)
    assert all(meta.is_output for meta in dag.nodes_meta if meta.op == "store")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_epilogue_itself_is_its_reference(row):
    """Called with arrays, it computes at once: what it returns is what the graph stores."""
    size = row.size or (2, 16, 24)
    arrays = row.arrays(*size)
    found = row.epilogue(**{name: np.asarray(array, np.float32) for name, array in arrays.items()})
    found = found if isinstance(found, tuple) else (found,)
    for (name, wanted), got in zip(row.expected(float64(arrays)).items(), found, strict=True):
        np.testing.assert_allclose(np.asarray(got, np.float64).reshape(wanted.shape), wanted, rtol=1e-5, err_msg=name)
