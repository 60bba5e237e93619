"""Epilogues behind matrix products on a GPU: EVT's rows and random ones, beside NumPy."""

import numpy as np
import pytest

from tests.gpu.test_epilogues import on_device, to_host
from tests.lib.epilogue.more_rows import ALL, check
from tests.lib.epilogue.random_dags import case_of
from tests.lib.epilogue.test_gemm_rows import factors
from tilewright.lib.epilogue.authoring import from_text
from tilewright.ops import gemm

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

MOST = 60_000


def found_by_name(found, names):
    return found if isinstance(found, dict) else {next(iter(names)): found}


def run(row, size):
    a, b = factors(size, 1)
    arrays, examples = row.arrays(*size), row.examples(*size)
    arrays["accum"] = a.astype(np.float32) @ b.astype(np.float32)
    given = {name: on_device(value) for name, value in {**examples, **arrays}.items() if name != "accum"}
    found = found_by_name(gemm(on_device(a), on_device(b), row.epilogue, **given), ("D",))
    check(row, {name: to_host(found[name], examples[name]) for name in found}, arrays, examples)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_row_of_the_table(row):
    run(row, row.size or (3, 488, 504))


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ALL if not row.size], ids=lambda row: row.name)
def test_row_of_the_table_at_every_size(row):
    for size in ((3, 8, 8), (3, 768, 768), (1, 130, 67)):
        run(row, size)


def check_seed(seed):
    """Whether a random epilogue is one of whole numbers in float32: then it is checked behind accum · 1."""
    case = case_of(seed, MOST)
    if not case.whole or case.compute != "Float32":
        return False
    accum = on_device(case.operands["accum"].astype(np.float16))
    one = torch.eye(accum.shape[-1], dtype=torch.float16, device="cuda")
    given = {key: on_device(value) for key, value in {**case.operands, **case.outputs}.items() if key != "accum"}
    found = found_by_name(gemm(accum, one, from_text(case.text), **given), case.outputs)
    case.check({key: to_host(found[key], case.outputs[key]) for key in found})
    return True


@pytest.mark.parametrize(
    "seeds", [range(12), *(pytest.param(range(i, i + 32), marks=pytest.mark.slow) for i in range(12, 300, 32))], ids=str
)
def test_random_epilogues(seeds):
    assert sum(check_seed(seed) for seed in seeds) > 0
