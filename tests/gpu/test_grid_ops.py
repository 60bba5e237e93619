"""copy_transpose, reduce, reduce_sum and elementwise on a GPU: dtypes x shapes x strides, large tensors, graphs.

Values are small integers wherever sums are to be exact; `-k sanitizer` is the subset that compute-sanitizer is run on.
"""

import itertools

import pytest

from tilewright.ops import copy_transpose, elementwise, reduce, reduce_sum
from tilewright.ops.reduce_sum import VARIANTS

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
OTHERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)
LENGTHS = (1, 2, 3, 7, 33, 255, 1024, 4096, 5001, 16384, 65536, 262144)


def numbers(shape, dtype, most=3):
    return torch.randint(0, most, shape, device="cuda").to(dtype)


def views(x):
    """The tensor under other strides and offsets."""
    yield x
    yield x.mT.contiguous().mT
    yield x.repeat_interleave(2, -1)[..., ::2]
    yield torch.cat([x[..., :1], x], -1)[..., 1:]
    yield x[..., :1, :].expand(x.shape)


@pytest.mark.parametrize("dtype", [*FLOATS, *OTHERS], ids=str)
def test_copy_transpose_correctness(dtype):
    for shape in ((1, 1), (64, 128), (1000, 777), (4096, 520), (3, 100003), (2, 3, 65, 31), (2048, 3000)):
        for x in views(numbers(shape, dtype, 120)):
            assert torch.equal(copy_transpose(x), x.mT)
    for tile_size in (16, 32, 64, 128):
        x = numbers((513, 640), dtype, 120)
        assert torch.equal(copy_transpose(x, tile_size=tile_size), x.mT)


CASES = [(dtype, op) for dtype in (*FLOATS, *OTHERS) for op in ("sum", "argmax")]
CASES += [(dtype, op) for dtype in (torch.float32, torch.bfloat16) for op in ("mean", "max", "min")]


@pytest.mark.parametrize(("dtype", "op"), CASES, ids=str)
def test_reduce_correctness(dtype, op):
    for n in LENGTHS if dtype in FLOATS[:2] else LENGTHS[3::3]:
        for rows in (1, 5, 300):
            if rows * n > 1 << 23:
                continue
            x = numbers((rows, n), dtype)
            for view, dim in itertools.product(views(x), (0, 1)):
                check(view, op, dim)


def check(x, op, dim):
    out = reduce(x, op, dim)
    wide = x.double()
    if op == "argmax":
        assert torch.equal(out, wide.argmax(dim))
        return
    exact = {"max": torch.amax, "min": torch.amin}.get(op, getattr(torch, op))(wide, dim)
    if op == "mean" and x.dtype != torch.float64:
        # The host divides: a GPU's torch multiplies by the reciprocal of a number, which rounds twice.
        exact = (wide.sum(dim).cpu() / x.shape[dim]).float().cuda()
    assert torch.equal(out, exact.to(out.dtype)), (x.shape, x.stride(), dim)


@pytest.mark.parametrize("variant", VARIANTS)
def test_reduce_sum_correctness(variant):
    for dtype, n in itertools.product((torch.float32, torch.bfloat16, torch.int8), LENGTHS):
        x = numbers((7, n), dtype)
        out = reduce_sum(x, variant=variant)
        assert torch.equal(out, x.double().sum(-1).to(out.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32], ids=str)
def test_elementwise_correctness(dtype):
    for shapes in (
        ((1000, 777), (777,)),
        ((512, 2048), (512, 1)),
        ((3, 1, 5000), (4, 1)),
        ((100003,), ()),
        ((64, 64, 64),) * 2,
    ):
        a, b = (numbers(shape, dtype, 9) for shape in shapes)
        assert torch.equal(elementwise("add", a, b), a + b)
    for x in views(numbers((300, 520), dtype)):
        assert torch.equal(elementwise("copy", x), x)


@pytest.mark.parametrize("op", ["sum", "max", "prod", "mean"])
def test_normal_numbers_are_within_the_bound_of_their_type(op):
    for dtype, shape in itertools.product((torch.float32, torch.bfloat16, torch.float16), ((512, 4097), (8, 262144))):
        x = torch.randn(shape, device="cuda").to(dtype)
        x = x.abs().clamp(0.5, 1.5) ** 0.001 if op == "prod" else x
        wide = x.double()
        exact = wide.amax(-1) if op == "max" else getattr(wide, op)(-1)
        # Any order of n additions is off by less than n 2^-24 of the magnitudes' sum; of n products, of the product.
        magnitude = exact.abs() if op == "prod" else wide.abs().sum(-1) / (shape[-1] if op == "mean" else 1)
        rounding = exact.abs() * torch.finfo(dtype).eps + 2.0**-24
        bound = 0 if op == "max" else shape[-1] * 2.0**-24 * magnitude
        assert ((reduce(x, op, -1).double() - exact).abs() <= bound + rounding).all()


def test_more_than_2_to_the_31_elements():
    x = torch.zeros((1 << 16) + 8, 1 << 15, dtype=torch.int8, device="cuda")
    x[-1, -1], x[0, 1], x[-1, 0] = 5, 3, 7
    out = copy_transpose(x)
    assert out[-1, -1] == 5 and out[1, 0] == 3 and out[0, -1] == 7
    del out
    assert reduce(x) == 15
    assert reduce(x, "argmax") == ((1 << 16) + 7) * (1 << 15)
    assert reduce(x, "max", 0)[0] == 7 and reduce(x, "argmax", 0)[0] == (1 << 16) + 7
    assert elementwise("neg", x)[-1, -1] == -5


def test_results_are_the_same_bits_in_every_run():
    x = torch.randn(64, 100000, device="cuda")
    for dim in (None, 0, 1):
        first = reduce(x, "sum", dim)
        assert all(torch.equal(first, reduce(x, "sum", dim)) for _ in range(5))


def test_graphs_replay_the_ops():
    x, row = torch.ones(256, 512, device="cuda"), torch.ones(512, device="cuda")

    def work():
        return reduce(copy_transpose(elementwise("mul", x, row)), "sum", 0), reduce(x)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sums, total = work()
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert (sums == 3 * 512).all() and total == 3 * 512 * 256


def test_compile():
    x = torch.randn(128, 256, device="cuda", requires_grad=True)
    weight = torch.randn(128, device="cuda")

    def eager(x):
        return reduce(elementwise("mul", copy_transpose(x), weight), "max", -1).sum()

    compiled = torch.compile(eager, fullgraph=True)
    torch.testing.assert_close(compiled(x), eager(x))
    (expected,) = torch.autograd.grad(eager(x), x)
    (found,) = torch.autograd.grad(compiled(x), x)
    torch.testing.assert_close(found, expected)


def test_autocast_has_sums_in_float32():
    x = torch.ones(4, 300, dtype=torch.bfloat16, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        expected = {op: getattr(torch, op)(x, -1).dtype for op in ("sum", "prod", "mean")}
        assert {op: reduce(x, op, -1).dtype for op in expected} == expected


def test_tensors_of_other_devices_are_refused():
    with pytest.raises(ValueError, match="same device"):
        elementwise("add", torch.ones(3, device="cuda"), torch.ones(3))


def test_sanitizer_subset():
    """Edges of tiles, heads and tails of rows, second passes: what compute-sanitizer is run on."""
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        x = numbers((70, 133), dtype)
        assert torch.equal(copy_transpose(x), x.T)
        for op, dim in itertools.product(("sum", "argmax"), (0, 1)):
            check(x, op, dim)
        check(numbers((1, 300001), dtype), "sum", 1)
        check(numbers((30001, 8), dtype), "argmax", 0)
        assert torch.equal(elementwise("add", x, x[:, :1]), x + x[:, :1])
