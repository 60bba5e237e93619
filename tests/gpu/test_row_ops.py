"""The row-wise ops on a device: all types and lengths, forward and backward, and what PyTorch does around them."""

import importlib

import pytest

from tests.op_cases import RELATIVE
from tilewright import ops

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")
functional = torch.nn.functional

DTYPES = ("float16", "bfloat16", "float32", "float64")
COLUMNS = (1, 2, 7, 8, 31, 64, 100, 257, 1000, 1024, 4096, 5000, 16384, 50257, 65536, 100_000, 262_144)
# What float32 arithmetic leaves of results that cancel, and of those below the least normal float16.
RESULTS = {"softmax_online": 2**-24, "rmsnorm": 2e-5, "layernorm": 2e-5, "cross_entropy": 2e-5}
SLOPES = {"rmsnorm": 2e-5, "layernorm": 2e-5, "cross_entropy": 2e-7}
# The gradient of softmax comes from its result, which is rounded: so much of the greatest gradient.
ROUNDED = {"float16": 2**-9, "bfloat16": 2**-6, "float32": 1e-5, "float64": 1e-12}


def softmax_online(x, w, b):
    return ops.softmax_online(x), torch.softmax(x.double(), -1)


def rmsnorm(x, w, b):
    wide = x.double()
    normed = wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    return ops.rmsnorm(x, w, b), normed * w.double() + b.double()


def layernorm(x, w, b):
    wanted = functional.layer_norm(x.double(), x.shape[-1:], w.double(), b.double(), 1e-5)
    return ops.layernorm(x, w, b), wanted


def cross_entropy(x, w, b):
    target = torch.arange(x.shape[0], device=x.device) * 7919 % x.shape[1]
    found = ops.cross_entropy(x, target, reduction="none", label_smoothing=0.1)
    return found, functional.cross_entropy(x.double(), target, reduction="none", label_smoothing=0.1)


OPS = (softmax_online, rmsnorm, layernorm, cross_entropy)


def inputs(rows, columns, dtype):
    generator = torch.Generator("cuda").manual_seed(columns)
    kind = getattr(torch, dtype)
    shapes = ((rows, columns), (columns,), (columns,))
    return [torch.randn(shape, device="cuda", dtype=kind, generator=generator).requires_grad_() for shape in shapes]


def absolute_of(table, op, dtype):
    return table[op.__name__] * (1e-7 if dtype == "float64" else 1)


def conditions_of(op, x):
    """By how much LayerNorm of these rows enlarges the rounding of their means, in results and in gradients.

    The distance from a mean is known to half a unit in the last place of the mean, whatever the distance is; dividing
    by a small deviation enlarges that. Rows of two near numbers show it.
    """
    if op is not layernorm:
        return 1.0, 1.0
    wide = x.detach().double()
    rstd = (wide.var(-1, unbiased=False) + 1e-5).rsqrt()
    condition = 1 + (wide.abs().amax(-1) * rstd).max().item() / 16
    return condition, condition * max(rstd.max().item(), 1)


def close(op, found, wanted, dtype, condition=1.0):
    kind = "float32" if op is cross_entropy and dtype != "float64" else dtype  # of the result
    torch.testing.assert_close(
        found.double(), wanted, rtol=RELATIVE[kind], atol=condition * absolute_of(RESULTS, op, dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_row_ops_correctness(op, columns, dtype):
    """Results and gradients against float64."""
    arguments = inputs(37, columns, dtype)
    found, wanted = op(*arguments)
    conditions = conditions_of(op, arguments[0])
    close(op, found, wanted, dtype, conditions[0])
    grad = torch.randn_like(wanted)
    used = arguments if op in (rmsnorm, layernorm) else arguments[:1]
    slopes = torch.autograd.grad(found, used, grad.to(found.dtype))
    exact = torch.autograd.grad(wanted, used, grad.to(found.dtype).double())
    for slope, other in zip(slopes, exact, strict=True):
        greatest = other.abs().max().item()
        absolute = (
            ROUNDED[dtype] * greatest
            if op is softmax_online
            else conditions[1] * absolute_of(SLOPES, op, dtype) * max(greatest, 1)
        )
        torch.testing.assert_close(slope.double(), other.double(), rtol=4 * RELATIVE[dtype], atol=absolute)


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_row_ops_correctness_of_unaligned_rows(op, dtype):
    """Rows that begin at odd elements, lie apart, or have columns apart."""
    whole, w, b = inputs(33, 4200, dtype)
    for view in (whole[:, 1:4097], whole[::2, :4095], whole[:, ::2], whole[:, 3:1000].reshape(3, 11, 997)[:, 1]):
        found, wanted = op(view, w[: view.shape[1]].contiguous(), b[: view.shape[1]].contiguous())
        close(op, found, wanted, dtype)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_row_ops_correctness_beyond_31_bits(op):
    """2^31 elements and more: the last rows are right."""
    rows, columns = (1 << 16) + 3, 1 << 15
    if torch.cuda.get_device_properties(0).total_memory < 24 << 30:
        pytest.skip("the device has less than 24 GB")
    x = torch.empty(rows, columns, device="cuda", dtype=torch.bfloat16)
    x[-2:] = torch.randn(2, columns, device="cuda")
    x[:-2] = 0.5
    w, b = (torch.randn(columns, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    with torch.no_grad():
        calls = {
            softmax_online: lambda: ops.softmax_online(x), rmsnorm: lambda: ops.rmsnorm(x, w, b),
            layernorm: lambda: ops.layernorm(x, w, b),
            cross_entropy: lambda: ops.cross_entropy(
                x, torch.arange(rows, device="cuda") * 7919 % columns, reduction="none"
            ),
        }  # fmt: skip
        found = calls[op]()[-2:]
        if op is cross_entropy:
            target = torch.arange(rows, device="cuda")[-2:] * 7919 % columns
            wanted = functional.cross_entropy(x[-2:].double(), target, reduction="none")
        else:
            wanted = op(x[-2:], w, b)[1]
    close(op, found, wanted, "bfloat16")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_row_ops_same_bits_again(op):
    arguments = inputs(300, 16384, "bfloat16")
    results = []
    for _ in range(3):
        found = op(*arguments)[0]
        used = arguments if op in (rmsnorm, layernorm) else arguments[:1]
        results.append([found, *torch.autograd.grad(found, used, torch.ones_like(found))])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_row_ops_compile():
    """By inductor, with gradients, as one graph."""
    x, w, b = inputs(64, 1000, "float32")

    def model(x, w, b):
        return ops.softmax_online(ops.layernorm(ops.rmsnorm(x * 2, w), w, b)).square().sum()

    def plain(x, w, b):
        normed = functional.layer_norm(functional.rms_norm(x * 2, (1000,), w, 1e-6), (1000,), w, b, 1e-5)
        return torch.softmax(normed, -1).square().sum()

    grads = [torch.autograd.grad(f(x, w, b), (x, w, b)) for f in (torch.compile(model, fullgraph=True), plain)]
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-5)


SHAPES = ((8, 1024), (2, 4, 1024), (1024,), (1, 1024), (3, 5, 7, 96), (2, 3, 1001), (5, 1), (0, 8))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_second_call_goes_by_native_code_and_is_as_right(shape):
    """Tensors of any rank, slices, and views that are no matrices; each call twice, the second on other numbers."""
    generator = torch.Generator("cuda").manual_seed(1)
    views = [lambda x: x, lambda x: x[..., 1:], lambda x: x.expand(2, *x.shape), lambda x: x.transpose(0, -2)]
    for view in views if len(shape) > 1 else views[:-1]:
        for _ in range(2):
            x = view(torch.randn(shape, device="cuda", generator=generator))
            w = torch.randn(x.shape[-1], device="cuda", generator=generator)
            wide = x.double()
            torch.testing.assert_close(ops.softmax_online(x), torch.softmax(wide, -1).float())
            normed = wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w.double()
            torch.testing.assert_close(ops.rmsnorm(x, w), normed.float(), rtol=1e-5, atol=1e-5)
            if x.numel():
                target = torch.arange(x.shape[:-1].numel(), device="cuda").reshape(x.shape[:-1]) % x.shape[-1]
                wanted = wide.logsumexp(-1) - wide.gather(-1, target[..., None])[..., 0]
                found = ops.cross_entropy(x, target, reduction="none")
                torch.testing.assert_close(found, wanted.float(), rtol=1e-5, atol=1e-5)


def test_native_code_finds_kernels_on_a_device():
    x = torch.randn(2, 4, 1000, device="cuda")
    ops.softmax_online(x)
    out = torch.empty_like(x)
    assert importlib.import_module("tilewright.ops.softmax_online").FORWARD.quick(out, x)
    torch.testing.assert_close(out, torch.softmax(x, -1))
    for wrong in (lambda: ops.rmsnorm(x, x[0, 0, :999]), lambda: ops.rmsnorm(x, None, None, x[:1])):
        for _ in range(2):
            with pytest.raises(ValueError):
                wrong()


def test_row_ops_in_a_cuda_graph():
    x, w, b = (item.detach() for item in inputs(64, 20000, "bfloat16"))
    target = torch.arange(64, device="cuda")

    def step():
        return ops.softmax_online(x), ops.layernorm(x, w, b), ops.cross_entropy(x, target, reduction="none")

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(captured, step(), rtol=0, atol=0)


def test_row_ops_on_another_stream():
    x = torch.zeros(64, 20000, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.fill_(1.0)
        y = ops.softmax_online(x)
    stream.synchronize()
    torch.testing.assert_close(y, torch.full_like(y, 1 / 20000))


def test_row_ops_under_autocast():
    """What PyTorch's own ops give: float32 for 16-bit floats."""
    x, w, b = inputs(8, 1000, "bfloat16")
    with torch.autocast("cuda", torch.bfloat16):
        for op in (softmax_online, rmsnorm, layernorm, cross_entropy):
            found, wanted = op(x, w, b)
            assert found.dtype == torch.float32
            torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
        assert torch.softmax(x, -1).dtype == torch.float32
    (slope,) = torch.autograd.grad(ops.softmax_online(x).sum(), x)
    assert slope.dtype == torch.bfloat16


def test_tensors_of_several_devices_are_refused():
    x = torch.zeros(4, 8, device="cuda")
    with pytest.raises(ValueError, match="expected all tensors to be on the same device") as raised:
        ops.rmsnorm(x, torch.zeros(8))
    assert "cuda:0" in str(raised.value) and "cpu" in str(raised.value)
