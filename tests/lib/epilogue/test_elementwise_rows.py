"""The epilogues of EVT's tests, and more, on the fused elementwise kernel, on the emulator with all checks."""

import pytest

from tests.lib.epilogue.more_rows import ALL, F16, F32, check
from tilewright import epilogue

SIZE, MORE_SIZES = (3, 61, 56), ((2, 24, 63), (1, 8, 8))


@pytest.fixture(autouse=True)
def on_the_emulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_a_row_on_the_emulator(row):
    run(row, row.size or SIZE)


@pytest.mark.slow
@pytest.mark.parametrize("size", MORE_SIZES)
@pytest.mark.parametrize("row", [row for row in ALL if not row.size], ids=lambda row: row.name)
def test_a_row_of_another_size_and_type(row, size):
    run(row, size, F16)


def run(row, size, dtype=F32):
    arrays, examples = row.arrays(*size), row.examples(*size)
    arrays["accum"] = arrays["accum"].astype(dtype)
    given = {**examples, **arrays}
    found = epilogue.compile(row.epilogue, given)(**given)
    assert all(found[name] is examples[name] for name in found)
    check(row, found, arrays, examples)


@pytest.mark.parametrize(
    "row", [row for row in ALL if "reduce" in row.name or row.name == "sums"], ids=lambda row: row.name
)
def test_a_row_with_atomic_reductions(row):
    arrays, examples = row.arrays(2, 70, 40), row.examples(2, 70, 40)
    given = {**examples, **arrays}
    check(row, epilogue.compile(row.epilogue, given, reduction="atomic")(**given), arrays, examples)
