"""gemm on a GPU: dtypes x orders x sizes x batches, exact on small integers; bounds on normal numbers; graphs."""

import pytest

from tilewright.ops import gemm

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

F16, BF16, F32, F64, I8 = torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8
SIZES = ((528, 272, 1040), (1, 16, 16), (520, 272, 16))  # of one kind, which one kernel or two compute
ODD = ((257, 129, 515), (1, 1, 1), (33, 65, 0))


def numbers(shape, dtype):
    return torch.randint(-2, 3, shape, device="cuda").to(dtype)


def exact(a, b, dtype):
    return (a.double() @ b.double()).to(dtype)


@pytest.mark.parametrize(
    ("dtype", "order"),
    [
        *((F16, order) for order in ("kn", "kk", "mn", "mk")),
        (BF16, "mn"),
        (F32, "kk"),
        (F32, "mn"),
        (F64, "kn"),
        (I8, "kn"),
    ],
    ids=str,
)
def test_gemm_correctness(dtype, order):
    result = torch.int32 if dtype == I8 else dtype
    for m, n, k in SIZES:
        a, b = numbers((m, k), dtype), numbers((k, n), dtype)
        a = a.mT.contiguous().mT if order[0] == "m" else a
        b = b.mT.contiguous().mT if order[1] == "k" else b
        assert torch.equal(gemm(a, b), exact(a, b, result)), (m, n, k)


@pytest.mark.parametrize("dtype", [F16, F32, I8], ids=str)
def test_gemm_correctness_of_odd_sizes(dtype):
    for m, n, k in ODD:
        a, b = numbers((m, k), dtype), numbers((k, n), dtype)
        assert torch.equal(gemm(a, b), exact(a, b, torch.int32 if dtype == I8 else dtype)), (m, n, k)


def test_gemm_correctness_of_large_matrices():
    a, b = numbers((4096, 2048), F16), numbers((2048, 4096), F16)
    assert torch.equal(gemm(a, b), exact(a, b, F16))
    out = torch.empty(4096, 4096, device="cuda", dtype=F16).mT
    assert torch.equal(gemm(a, b, out=out), exact(a, b, F16))


def test_gemm_correctness_of_views():
    a, b = numbers((3, 200, 136), BF16), numbers((136, 264), BF16)
    for left, right in ((a, b), (a[:1].expand(4, -1, -1), b), (a[:, ::2, 8:], b[:-8, 3:])):
        assert torch.equal(gemm(left, right), exact(left, right, BF16))


@pytest.mark.parametrize("dtype", [F16, F32], ids=str)
def test_gemm_correctness_of_normal_numbers(dtype):
    a, b = (torch.randn(shape, device="cuda").to(dtype) for shape in ((528, 1040), (1040, 272)))
    factors = 2 * 2.0**-10 if dtype == F32 else 0  # TF32 leaves out what is below 2^-10 of a factor
    size, wanted = a.double().abs() @ b.double().abs(), a.double() @ b.double()
    bound = size * (factors + 1040 * 2.0**-23) + wanted.abs() * torch.finfo(dtype).eps
    assert ((gemm(a, b).double() - wanted).abs() <= bound).all()


def test_gemm_of_few_tiles_is_the_same_each_time():
    a, b = (torch.randn(shape, device="cuda").half() for shape in ((128, 8192), (8192, 128)))
    first = gemm(a, b, out=torch.empty(128, 128, device="cuda"))
    for _ in range(20):
        assert torch.equal(gemm(a, b, out=torch.empty(128, 128, device="cuda")), first)
    wanted = a.double() @ b.double()
    assert ((first - wanted).abs() <= (a.double().abs() @ b.double().abs()) * 8192 * 2.0**-23).all()


def test_gemm_in_a_graph():
    a, b = numbers((300, 264), F16), numbers((264, 136), F16)
    gemm(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = gemm(a, b)
    a.copy_(numbers(a.shape, a.dtype))
    graph.replay()
    assert torch.equal(out, exact(a, b, F16))


def test_gemm_compile():
    a, b = numbers((72, 64), BF16).requires_grad_(), numbers((64, 40), BF16)
    out = torch.compile(gemm, fullgraph=True)(a, b)
    assert torch.equal(out, exact(a, b, BF16))
    out.sum().backward()
    assert torch.equal(a.grad, exact(torch.ones_like(out), b.mT, BF16))


def test_gemm_sanitizer():
    a, b = numbers((130, 72), F16), numbers((72, 88), F16)
    assert torch.equal(gemm(a, b), exact(a, b, F16))
    assert torch.equal(gemm(a[:, 1:], b[1:]), exact(a[:, 1:], b[1:], F16))


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_rows_do_not_depend_on_the_batch_where_it_is_asked_for(dtype):
    """Bit for bit, over tiles and schedules that the rule chooses for few and for many rows."""
    a, b = torch.randn(4096, 4096, device="cuda").to(dtype), torch.randn(1024, 4096, device="cuda").to(dtype).mT
    whole = gemm(a, b, batch_invariant=True)
    for rows in (1, 16, 63, 128, 200, 1000, 2048):
        assert torch.equal(gemm(a[:rows], b, batch_invariant=True), whole[:rows]), rows
    pairs = gemm(a.view(2, 2048, 4096), b, batch_invariant=True)
    assert torch.equal(pairs.view(4096, 1024), whole)


@pytest.mark.skipif(torch.cuda.is_available() and torch.cuda.get_device_capability() != (9, 0), reason="not sm_90")
def test_products_of_8_bit_floats():
    for m, n, k in ((528, 272, 1040), (33, 65, 17)):
        a, b = numbers((m, k), torch.float8_e4m3fn), numbers((k, n), torch.float8_e4m3fn)
        assert torch.equal(gemm(a, b), exact(a.float(), b.float(), BF16)), (m, n, k)
        out = torch.empty(m, n, device="cuda")
        gemm(a, b, lambda accum, scale: accum * scale, out=out, scale=0.5)
        assert torch.equal(out, exact(a.float(), b.float(), F32) / 2)


def test_products_that_are_worth_a_copy_of_their_operands():
    a, b = numbers((1999, 2001), F16), numbers((2001, 2003), F16)
    assert torch.equal(gemm(a, b), exact(a, b, F16))


@pytest.mark.parametrize("extents", [(128, 128, 8192), (64, 1024, 4096), (1024, 1024, 1024)], ids=str)
def test_products_that_blocks_share(extents):
    m, n, k = extents
    for seed in range(3):
        torch.manual_seed(seed)
        a, b = numbers((m, k), BF16), numbers((n, k), BF16).mT
        out = torch.empty(m, n, device="cuda")
        assert torch.equal(gemm(a, b, out=out), exact(a, b, F32))
