"""gemm on a GPU: dtypes x orders x sizes x batches, exact on small integers; bounds on normal numbers; graphs."""

import itertools

import numpy as np
import pytest

from tests.gpu.test_epilogues import MOST, on_device, to_host
from tests.lib.epilogue.more_rows import ALL, check
from tests.lib.epilogue.random_dags import case_of
from tests.lib.epilogue.test_gemm_rows import factors
from tilewright.lib.epilogue.authoring import from_text
from tilewright.ops import gemm

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8)
SIZES = ((1, 1, 1), (128, 256, 64), (257, 129, 515), (64, 1000, 24), (1024, 8, 4096), (300, 520, 2048), (33, 65, 0))


def numbers(shape, dtype):
    return torch.randint(-2, 3, shape, device="cuda").to(dtype)


def exact(a, b, dtype):
    return (a.double() @ b.double()).to(dtype)


@pytest.mark.parametrize("order", ["kn", "kk", "mn", "mk"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gemm_correctness(dtype, order):
    result = torch.int32 if dtype == torch.int8 else dtype
    for m, n, k in SIZES:
        a, b = numbers((m, k), dtype), numbers((k, n), dtype)
        a = a.mT.contiguous().mT if order[0] == "m" else a
        b = b.mT.contiguous().mT if order[1] == "k" else b
        assert torch.equal(gemm(a, b), exact(a, b, result)), (m, n, k)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_gemm_correctness_of_views(dtype):
    a, b = numbers((3, 200, 136), dtype), numbers((136, 264), dtype)
    for left, right in itertools.product((a, a[:, ::2], a[..., 1:][..., :135], a[:1].expand(4, -1, -1)), (b, b[:, 3:])):
        right = right[: left.shape[-1]]
        assert torch.equal(gemm(left, right), exact(left, right, dtype))
    out = torch.empty(264, 200, dtype=dtype, device="cuda").mT
    assert torch.equal(gemm(a[0], b, out=out), exact(a[0], b, dtype))


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_gemm_correctness_of_normal_numbers(dtype):
    a, b = (torch.randn(shape, device="cuda").to(dtype) for shape in ((500, 1000), (1000, 700)))
    factors = 2 * 2.0**-10 if dtype == torch.float32 else 0  # TF32 leaves out what is below 2^-10 of a factor
    size, wanted = a.double().abs() @ b.double().abs(), a.double() @ b.double()
    bound = size * (factors + 1000 * 2.0**-23) + wanted.abs() * torch.finfo(dtype).eps
    assert ((gemm(a, b).double() - wanted).abs() <= bound).all()


def test_gemm_of_few_tiles_is_the_same_each_time():
    a, b = (torch.randn(shape, device="cuda").half() for shape in ((128, 8192), (8192, 128)))
    first = gemm(a, b, out=torch.empty(128, 128, device="cuda"))
    for _ in range(20):
        assert torch.equal(gemm(a, b, out=torch.empty(128, 128, device="cuda")), first)


def test_gemm_in_a_graph():
    a, b = numbers((300, 264), torch.float16), numbers((264, 136), torch.float16)
    gemm(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = gemm(a, b)
    a.copy_(numbers(a.shape, a.dtype))
    graph.replay()
    assert torch.equal(out, exact(a, b, torch.float16))


def test_gemm_compile():
    a, b = numbers((72, 64), torch.bfloat16).requires_grad_(), numbers((64, 40), torch.bfloat16)
    compiled = torch.compile(gemm, fullgraph=True)
    out = compiled(a, b)
    assert torch.equal(out, exact(a, b, torch.bfloat16))
    out.sum().backward()
    assert torch.equal(a.grad, exact(torch.ones_like(out), b.mT, torch.bfloat16))


def test_gemm_sanitizer():
    a, b = numbers((130, 72), torch.float16), numbers((72, 88), torch.float16)
    assert torch.equal(gemm(a, b), exact(a, b, torch.float16))
    assert torch.equal(gemm(a[:, 1:], b[1:]), exact(a[:, 1:], b[1:], torch.float16))


def scaled(accum, C, alpha, bias):
    F = alpha * accum
    total = F + C
    R = max(total, dim=2)
    S = sum(total, dim=(0, 1))
    D = relu(total) + bias  # noqa: F821
    return D, F, R, S


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_gemm_with_an_epilogue(dtype):
    for shape in ((256, 512, 64), (8, 8, 128), (488, 504, 128), (300, 130, 64), (3, 768, 768, 128), (2, 33, 19, 24)):
        *batch, m, n, k = shape
        a, b = numbers((*batch, m, k), dtype), numbers((*batch, k, n), dtype)
        C, bias = numbers((m, n), dtype), numbers((n,), torch.float32)
        found = gemm(a, b, scaled, C=C, alpha=2.0, bias=bias)
        total = 2 * exact(a, b, torch.float64) + C
        assert torch.equal(found["D"], (total.relu() + bias).to(dtype)), shape
        assert torch.equal(found["F"], (total - C).to(dtype))
        assert torch.equal(found["R"], total.amax(-1, keepdim=True).float())
        assert torch.equal(found["S"].flatten(), total.reshape(-1, n).sum(0).float())


def found_by_name(found, names):
    return found if isinstance(found, dict) else {next(iter(names)): found}


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_row_of_the_table(row):
    for size in (row.size,) if row.size else ((3, 8, 8), (3, 488, 504), (3, 768, 768), (1, 130, 67)):
        a, b = factors(size, 1)
        arrays, examples = row.arrays(*size), row.examples(*size)
        arrays["accum"] = a.astype(np.float32) @ b.astype(np.float32)
        given = {name: on_device(value) for name, value in {**examples, **arrays}.items() if name != "accum"}
        found = found_by_name(gemm(on_device(a), on_device(b), row.epilogue, **given), ("D",))
        check(row, {name: to_host(found[name], examples[name]) for name in found}, arrays, examples)


@pytest.mark.parametrize("chunk", range(10))
def test_random_epilogues(chunk):
    for seed in range(chunk * 30, (chunk + 1) * 30):
        case = case_of(seed, MOST)
        if not case.whole or case.compute != "Float32":
            continue
        accum = on_device(case.operands["accum"].astype(np.float16))
        one = torch.eye(accum.shape[-1], dtype=torch.float16, device="cuda")
        given = {key: on_device(value) for key, value in {**case.operands, **case.outputs}.items() if key != "accum"}
        found = found_by_name(gemm(accum, one, from_text(case.text), **given), case.outputs)
        case.check({key: to_host(found[key], case.outputs[key]) for key in found})
