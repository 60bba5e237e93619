"""Every epilogue of EVT's own tests, on NumPy: the graph as written, and after all passes."""

import numpy as np
import pytest

from tests.lib.epilogue.table import TABLE, arrays_of, check
from tilewright import epilogue

CASES = [
    (name, item.shape or shape, cc)
    for name, item in TABLE.items()
    for shape, cc in (((3, 8, 8), 80), ((3, 488, 504), 90), ((1, 8, 768), 90))
]


@pytest.mark.parametrize("name, shape, cc", CASES)
def test_a_row_evaluates_to_what_numpy_says(name, shape, cc):
    item = TABLE[name]
    made = arrays_of(item, shape)
    examples = {**made.operands, **made.outputs}
    written = epilogue.parse(item.fn, examples, cc)
    check(item, made, written.evaluate(**made.operands))
    check(item, made, epilogue.trace(item.fn, examples, cc).evaluate(**made.operands))


@pytest.mark.parametrize("name", TABLE)
def test_after_the_passes_every_tensor_has_the_accumulator_s_shape_and_an_implementation(name):
    shape = TABLE[name].shape or (3, 16, 24)
    made = arrays_of(TABLE[name], shape)
    dag = epilogue.trace(TABLE[name].fn, {**made.operands, **made.outputs})
    assert all(meta.tensor.shape == shape and meta.underlying_impl for meta in dag.nodes_meta)
    assert not any(meta.op == "layout" for meta in dag.nodes_meta)
    assert all(meta.is_output for meta in dag.nodes_meta if meta.op == "store")


@pytest.mark.parametrize("name", TABLE)
def test_the_epilogue_itself_is_its_reference(name):
    """Called with arrays, it computes at once: what it returns is what the graph stores."""
    made = arrays_of(TABLE[name], (2, 16, 24))
    found = TABLE[name].fn(**{operand: np.asarray(array, np.float32) for operand, array in made.operands.items()})
    found = found if isinstance(found, tuple) else (found,)
    names = epilogue.parse(TABLE[name].fn, {**made.operands, **made.outputs}).return_names
    for output, got in zip(names, found, strict=True):
        wanted = made.expected[output]
        values = np.asarray(got, np.float64).reshape(wanted.shape)
        np.testing.assert_allclose(values, np.asarray(wanted, np.float64), rtol=1e-5, atol=1e-6, err_msg=output)
