"""Every epilogue of EVT's own tests, and others, on NumPy: the graph as written, and after all passes."""

import numpy as np
import pytest

from tests.lib.epilogue.more_rows import ALL, check
from tests.lib.epilogue.rows import SIZES, float64
from tilewright import epilogue

CASES = [
    pytest.param(row, size, cc, id=f"{row.name}-{'x'.join(map(str, size))}-{cc}")
    for row in ALL
    for size, cc in (((row.size, 80), (row.size, 90)) if row.size else zip(SIZES, (80, 90, 90), strict=True))
]


@pytest.mark.parametrize("row, size, cc", CASES)
def test_a_row_evaluates_to_what_numpy_says(row, size, cc):
    arrays, examples = row.arrays(*size), row.examples(*size)
    written = epilogue.parse(row.epilogue, examples, cc)
    check(row, written.evaluate(**arrays), arrays, examples)
    traced = epilogue.trace(row.epilogue, examples, cc)
    check(row, traced.evaluate(**arrays), arrays, examples)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_after_the_passes_every_tensor_has_the_accumulator_s_shape_and_an_implementation(row):
    size = row.size or (3, 16, 24)
    dag = epilogue.trace(row.epilogue, row.examples(*size))
    assert all(meta.tensor.shape == size and meta.underlying_impl for meta in dag.nodes_meta)
    assert not any(meta.op == "layout" for meta in dag.nodes_meta)
    assert all(meta.is_output for meta in dag.nodes_meta if meta.op == "store")


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_the_epilogue_itself_is_its_reference(row):
    """Called with arrays, it computes at once: what it returns is what the graph stores."""
    size = row.size or (2, 16, 24)
    arrays = row.arrays(*size)
    found = row.epilogue(**{name: np.asarray(array, np.float32) for name, array in arrays.items()})
    found = found if isinstance(found, tuple) else (found,)
    for (name, wanted), got in zip(row.expected(float64(arrays)).items(), found, strict=True):
        np.testing.assert_allclose(np.asarray(got, np.float64).reshape(wanted.shape), wanted, rtol=1e-5, err_msg=name)
