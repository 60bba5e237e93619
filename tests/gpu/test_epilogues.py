"""Epilogues on a device: EVT's table and random ones, in the fused elementwise kernel, beside NumPy."""

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lib.epilogue.more_rows import ALL, F16, check
from tests.lib.epilogue.random_dags import BF16, case_of
from tilewright import epilogue

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

SIZES = ((1, 8, 8), (3, 488, 504), (2, 768, 768))
CHUNKS, EACH = 12, 25
MOST = 200_000


def on_device(array):
    """An array of NumPy, or a number, on the device with the same strides."""
    if not isinstance(array, np.ndarray):
        return array
    steps = [step // array.itemsize for step in array.strides]
    span = 1 + sum((extent - 1) * step for extent, step in zip(array.shape, steps, strict=True))
    flat = np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,)).copy()
    made = torch.from_numpy(flat.view(np.int16)).view(torch.bfloat16) if array.dtype == BF16 else torch.from_numpy(flat)
    return made.cuda().as_strided(array.shape, steps)


def to_host(found, template):
    """A tensor as an array of the template's type."""
    found = found.cpu()
    return found.float().numpy().astype(BF16) if template.dtype == BF16 else found.numpy()


@pytest.mark.parametrize("reduction", ["deterministic", "atomic"])
@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_row_of_the_table(row, reduction):
    for place, size in enumerate((row.size,) if row.size else SIZES):
        arrays, examples = row.arrays(*size), row.examples(*size)
        if place:
            arrays["accum"] = arrays["accum"].astype(F16)
        given = {name: on_device(value) for name, value in {**examples, **arrays}.items()}
        found = epilogue.compile(row.epilogue, given, reduction=reduction)(**given)
        check(row, {name: to_host(found[name], examples[name]) for name in found}, arrays, examples)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_epilogues(chunk):
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        case = case_of(seed, MOST)
        given = {key: on_device(value) for key, value in {**case.operands, **case.outputs}.items()}
        found = epilogue.compile(case.text, given, element_compute=getattr(cute, case.compute))(**given)
        case.check({key: to_host(found[key], case.outputs[key]) for key in found})


def test_reductions_give_the_same_bits_in_every_call():
    def sums(accum):
        rows = epilogue.sum(accum, dim=(1,))
        columns = epilogue.sum(accum, dim=(2,))
        total = epilogue.sum(accum, dim=(0, 1, 2))
        D = accum * 2.0
        return D, rows, columns, total

    accum = torch.randn(2, 3000, 2111, device="cuda")
    outputs = {
        "D": torch.empty_like(accum),
        "rows": torch.empty(2, 1, 2111, device="cuda"),
        "columns": torch.empty(2, 3000, 1, device="cuda"),
        "total": torch.empty(1, 1, 1, device="cuda"),
    }
    kernel = epilogue.compile(sums, {"accum": accum, **outputs})
    first = kernel(accum=accum)
    for _ in range(5):
        again = kernel(accum=accum)
        assert all(torch.equal(first[name], again[name]) for name in first)
    wide = accum.double()
    torch.testing.assert_close(first["rows"].double(), wide.sum(1, keepdim=True), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(first["columns"].double(), wide.sum(2, keepdim=True), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(first["total"].double().item(), wide.sum().item(), rtol=1e-5, atol=1e-2)
