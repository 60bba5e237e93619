"""The epilogues of EVT's tests on the fused elementwise kernel, on the emulator with all checks."""

import pytest

from tests.lib.epilogue.table import F16, F32, TABLE, arrays_of, check
from tilewright import epilogue

SHAPES = ((1, 8, 8), (3, 61, 63), (2, 24, 96))


@pytest.fixture(autouse=True)
def on_the_emulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")


@pytest.mark.parametrize("name", TABLE)
def test_row(name):
    item = TABLE[name]
    for place, shape in enumerate(SHAPES):
        made = arrays_of(item, shape, F16 if place else F32, seed=place)
        kernel = epilogue.compile(item.fn, {**made.operands, **made.outputs})
        found = kernel(**made.operands, **made.outputs)
        assert list(found) == list(kernel.dag.return_names)
        assert all(found[output] is made.outputs[output] for output in found)
        check(item, made, found)
        if item.shape is not None:
            break
