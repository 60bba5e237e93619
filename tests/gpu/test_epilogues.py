"""Epilogues on a device: EVT's table and random ones, in the fused elementwise kernel, beside NumPy."""

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lib.epilogue.more_rows import ALL, F16, F32, check
from tests.lib.epilogue.random_dags import BF16, case_of
from tilewright import epilogue

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

SIZES = ((3, 488, 504), (1, 8, 8), (2, 768, 768))
CHUNKS, FAST_CHUNKS, EACH = 12, 2, 25
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


def run_row(row, size, dtype=F32, **options):
    arrays, examples = row.arrays(*size), row.examples(*size)
    arrays["accum"] = arrays["accum"].astype(dtype)
    given = {name: on_device(value) for name, value in {**examples, **arrays}.items()}
    found = epilogue.compile(row.epilogue, given, **options)(**given)
    check(row, {name: to_host(found[name], examples[name]) for name in found}, arrays, examples)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_row_of_the_table(row):
    run_row(row, row.size or SIZES[0])


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("row", [row for row in ALL if not row.size], ids=lambda row: row.name)
def test_row_of_other_sizes(row, size):
    run_row(row, size, F16)


@pytest.mark.parametrize("row", [row for row in ALL if "reduce" in row.name], ids=lambda row: row.name)
def test_row_with_atomic_reductions(row):
    run_row(row, SIZES[0], reduction="atomic")


@pytest.mark.parametrize(
    "chunk",
    [*range(FAST_CHUNKS), *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(FAST_CHUNKS, CHUNKS))],
)
def test_random_epilogues(chunk):
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        case = case_of(seed, MOST)
        given = {key: on_device(value) for key, value in {**case.operands, **case.outputs}.items()}
        found = epilogue.compile(case.text, given, element_compute=getattr(cute, case.compute))(**given)
        case.check({key: to_host(found[key], case.outputs[key]) for key in found})


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8"])
def test_tensors_that_lie_across(name):
    def across(accum, C):
        F = accum + epilogue.permute(C, (0, 2, 1))
        sums = epilogue.sum(F, dim=(2,))
        E = epilogue.permute(F, (0, 2, 1))
        D = F + 0.0
        return D, E, sums

    dtype = getattr(torch, name)
    for m, n in ((1024, 512), (1000, 333)):
        accum, C = (torch.randint(-4, 5, shape, device="cuda", dtype=dtype) for shape in ((2, m, n), (2, n, m)))
        outputs = {
            "D": torch.empty(2, m, n, device="cuda"),
            "E": torch.empty_like(C),
            "sums": torch.empty(2, m, 1, device="cuda"),
        }
        found = epilogue.compile(across, {"accum": accum, "C": C, **outputs})(accum=accum, C=C)
        wide = accum.float() + C.float().transpose(1, 2)
        assert torch.equal(found["D"], wide) and torch.equal(found["sums"], wide.sum(2, keepdim=True))
        assert torch.equal(found["E"].float(), wide.transpose(1, 2))


@pytest.mark.parametrize("columns", [512, 333])
def test_masks_of_bits(columns):
    def masked(accum, C):
        D, mask = epilogue.relu(accum + C, with_mask=True)
        return D, mask

    accum, C = (torch.randint(-4, 5, (2, 257, columns), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    mask = epilogue.Bits(torch.empty(2, 257, -(-columns // 8), device="cuda", dtype=torch.uint8), columns)
    found = epilogue.compile(masked, {"accum": accum, "C": C, "D": torch.empty_like(accum), "mask": mask})(
        accum=accum, C=C
    )
    wanted = (accum + C > 0).cpu().numpy()
    np.testing.assert_array_equal(np.asarray(found["mask"]), wanted)
    assert torch.equal(found["D"], torch.relu(accum + C))


def test_top_k_with_softmax():
    accum = torch.randn(3, 40, 5000, device="cuda")
    found = epilogue.compile(
        lambda accum: epilogue.topk_softmax(accum, 3), {"accum": accum, "D": torch.empty_like(accum)}
    )(accum=accum)["D"]
    values, places = accum.double().topk(3)
    wanted = torch.zeros_like(accum).double().scatter(2, places, values.softmax(2))
    torch.testing.assert_close(found.double(), wanted, rtol=2e-6, atol=0)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "int8"])
def test_quantised_outputs(name):
    dtype = getattr(torch, name)
    limits = (torch.iinfo if name == "int8" else torch.finfo)(dtype)

    def quantised(accum, scale):
        most = epilogue.amax(accum, dim=(0, 1, 2))
        D = epilogue.quantize(accum, scale, dtype)
        return D, most

    accum = torch.randn(2, 300, 512, device="cuda") * 300
    outputs = {"D": torch.empty(2, 300, 512, device="cuda", dtype=dtype), "most": torch.empty(1, 1, 1, device="cuda")}
    found = epilogue.compile(quantised, {"accum": accum, "scale": 0.5, **outputs})(accum=accum, scale=0.5)
    scaled = (accum * 0.5).clamp(limits.min, limits.max)
    assert torch.equal(found["D"].float(), (scaled.round() if name == "int8" else scaled).to(dtype).float())
    assert found["most"].item() == accum.abs().max().item()


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
