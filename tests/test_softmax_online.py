"""softmax_online: values on the emulator, gradients, PyTorch's machinery, errors. tests/gpu has the sizes of a GPU."""

import dataclasses

import numpy as np
import pytest

from tests.op_cases import CASES, DTYPES, close, normal, on_emulator, wide
from tilewright import ops
from tilewright.base.errors import ArgumentError
from tilewright.kernels.plans import RowPlan, row_plan
from tilewright.kernels.softmax_online import softmax_online as forward_kernel
from tilewright.kernels.softmax_online import softmax_online_backward as backward_kernel
from tilewright.ops.softmax_online import FORWARD


def softmax(x):
    powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def slope(grad, y):
    return wide(y) * (wide(grad) - (wide(grad) * wide(y)).sum(-1, keepdims=True))


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def backend():
    yield ops.set_softmax_online_backend
    ops.set_softmax_online_backend(None)


@pytest.mark.parametrize(("dtype", "shape"), CASES, ids=str)
def test_softmax_online_correctness(dtype, shape):
    x = normal(0, shape, dtype, scale=3)
    with on_emulator():
        close(ops.softmax_online(x), softmax(x), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", (1, 33, 1000, 2048))
def test_softmax_online_backward_correctness(columns, dtype):
    y, grad = softmax(normal(1, (3, columns), dtype)).astype(DTYPES[dtype]), normal(2, (3, columns), dtype)
    dx = np.empty_like(y)
    backward_kernel(dx, grad, y)
    close(dx, slope(grad, y), dtype, absolute=1e-16 if dtype == "float64" else 1e-7)


PLANS = {
    "a thread a row": RowPlan(0, 1, 128, 4, 8),
    "a block a row": row_plan(250, 2, 4, threads=64),
    "a cluster a row": row_plan(4096, 4, 4, threads=128, cluster=4),
    "a cluster, guarded": row_plan(3000, 4, 4, threads=64, cluster=8),
    "a warp of each block": row_plan(1000, 4, 4, threads=32, cluster=2),
    "staged": row_plan(2048, 4, 4, threads=64, staged=True),
    "staged, guarded, several rows": row_plan(1000, 4, 4, threads=32, staged=True),
    "staged over a cluster": row_plan(4000, 4, 4, threads=64, cluster=4, staged=True),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_softmax_online_correctness_of_plans(plan):
    columns = plan.columns or plan.tile * plan.cluster - plan.vector  # the last access of the last thread is outside
    x, grad = normal(3, (5, columns), "float32"), normal(4, (5, columns), "float32")
    y, dx = np.empty_like(x), np.empty_like(x)
    forward_kernel(y, x, plan=plan)
    close(y, softmax(x), "float32")
    backward_kernel(dx, grad, y, plan=dataclasses.replace(plan, resident=0))
    close(dx, slope(grad, y), "float32", absolute=1e-8)


def test_softmax_online_correctness_of_special_values():
    inf, nan, most = np.inf, np.nan, np.finfo(np.float32).max
    rows = [
        [-inf, 0.0, 1.0],
        [-inf, -inf, -inf],
        [inf, 0.0, 1.0],
        [nan, 0.0, 1.0],
        [-most, -most, -most],
        [most, 0.0, 0.0],
    ]
    x = np.concatenate([np.full((6, 61), -inf), rows], 1).astype(np.float32)
    x[4] = -most
    with on_emulator():
        y = ops.softmax_online(x)
    np.testing.assert_allclose(y[0, -3:], [0, 1 / (1 + np.e), np.e / (1 + np.e)], rtol=1e-6)
    assert (y[0, :-3] == 0).all()
    assert np.isnan(y[1:4]).all()
    np.testing.assert_allclose(y[4], 1 / 64, rtol=1e-6)
    assert y[5, -3] == 1 and y[5].sum() == 1


@pytest.mark.parametrize("columns", (64, 1000, 1001))
def test_softmax_online_correctness_of_strides(columns):
    whole = normal(5, (6, 2 * columns + 3), "float32")
    views = {
        "rows apart": whole[:, :columns],
        "odd start": whole[:, 1 : columns + 1],
        "every second row": whole[::2, :columns],
        "columns apart": whole[:, : 2 * columns : 2],
        "rank 3": whole[:, : 2 * columns].reshape(6, 2, columns)[:, ::2],
        "reversed": whole[::-1, :columns],
    }
    with on_emulator():
        for name, view in views.items():
            y = ops.softmax_online(view)
            assert y.flags.c_contiguous, name
            close(y, softmax(view), "float32")


def test_softmax_online_correctness_of_empty_tensors(torch):
    with on_emulator():
        for shape in ((0, 5), (5, 0), (2, 0, 3), (0,)):
            assert ops.softmax_online(np.empty(shape, np.float32)).shape == shape
            assert ops.softmax_online(torch.empty(shape)).shape == shape


def test_softmax_online_gives_the_same_bits_again():
    x = normal(6, (3, 5000), "float32")
    with on_emulator():
        first, second = ops.softmax_online(x), ops.softmax_online(x)
    np.testing.assert_array_equal(first, second)


def test_the_reference_in_numpy_and_in_pytorch(torch):
    x = normal(7, (3, 50), "float64")
    close(ops.softmax_online(x), softmax(x), "float64")
    close(ops.softmax_online(torch.from_numpy(x)).numpy(), softmax(x), "float64")


def test_softmax_online_backends(torch, backend, monkeypatch):
    """An explicit kernel uses the emulator for memory of the host; gradients follow."""
    called = []
    monkeypatch.setattr(FORWARD, "kernel", lambda *args: called.append(forward_kernel(*args)))
    x = torch.randn(3, 40)
    ops.softmax_online(x)
    assert not called
    assert backend("kernel") is None
    close(ops.softmax_online(x).numpy(), softmax(x.numpy()), "float32")
    assert len(called) == 1
    assert backend("ref") == "kernel"
    with on_emulator():
        ops.softmax_online(x)
    assert len(called) == 1
    with pytest.raises(ValueError, match="softmax_online has no backend 'cudnn'") as raised:
        backend("cudnn")
    assert "ref, kernel" in str(raised.value)


def test_softmax_online_gradients(torch):
    x = torch.randn(3, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ops.softmax_online, (x,))
    assert torch.autograd.gradgradcheck(ops.softmax_online, (x,))
    with on_emulator():
        assert torch.autograd.gradcheck(ops.softmax_online, (x[:2],))


def test_softmax_online_compile(torch):
    """Traced whole, with its backward; the operators pass PyTorch's own checks."""
    x = torch.randn(4, 24)
    compiled = torch.compile(ops.softmax_online, fullgraph=True, backend="aot_eager")
    grads = []
    for function in (compiled, lambda x: torch.softmax(x, -1)):
        own = x.clone().requires_grad_()
        function(own).square().sum().backward()
        grads.append(own.grad)
    torch.testing.assert_close(*grads)
    forward, backward = (
        torch.ops.tilewright._softmax_online.default,
        torch.ops.tilewright._softmax_online_backward.default,
    )
    assert set(torch.library.opcheck(forward, (torch.empty(4, 24), x)).values()) == {"SUCCESS"}
    assert set(torch.library.opcheck(backward, (torch.empty(4, 24), x, x.softmax(-1))).values()) == {"SUCCESS"}


def test_the_operator_writes_any_strides(torch):
    x = torch.randn(5, 8)
    out = torch.zeros(8, 10)[:, ::2].t()
    torch.ops.tilewright._softmax_online(out, x)
    torch.testing.assert_close(out, x.softmax(-1))


def test_softmax_online_vmap(torch):
    x = torch.randn(3, 4, 5)
    for dim in range(3):
        wanted = torch.vmap(lambda x: x.softmax(-1), in_dims=dim)(x)
        torch.testing.assert_close(torch.vmap(ops.softmax_online, in_dims=dim)(x), wanted)
    grads = [
        torch.vmap(torch.func.grad(lambda x, f=f: f(x).square().sum()))(x)
        for f in (ops.softmax_online, lambda x: x.softmax(-1))
    ]
    torch.testing.assert_close(*grads)


def test_vmap_does_not_write_many_results_into_one_tensor(torch):
    def written(out, x):
        torch.ops.tilewright._softmax_online(out, x)
        return out

    x, out = torch.randn(3, 2, 8), torch.zeros(2, 8)
    with pytest.raises(ValueError, match="maps over inputs, but not over tensors that it writes"):
        torch.vmap(written, in_dims=(None, 0))(out, x)
    assert not out.any()
    torch.testing.assert_close(torch.vmap(written)(torch.zeros(3, 2, 8), x), x.softmax(-1))


def test_softmax_online_errors(torch):
    x = torch.randn(2, 3, 4)
    for dim, text in (
        (0, "dim=0 is not the last dimension"),
        (3, r"range of \[-3, 2\], but got 3"),
        ("n", "but got 'n'"),
    ):
        with pytest.raises(ValueError, match=text):
            ops.softmax_online(x, dim)
    assert ops.softmax_online(x, 2).shape == x.shape
    with pytest.raises(ValueError, match="a tensor without dimensions has no rows"):
        ops.softmax_online(torch.tensor(1.0))
    with pytest.raises(ArgumentError, match="x has dtype int64") as raised:
        ops.softmax_online(x.long())
    assert "supported  float16, bfloat16, float32, float64" in str(raised.value)
    with pytest.raises(TypeError, match="a tensor of PyTorch or an array of NumPy, not list"):
        ops.softmax_online([1.0])
