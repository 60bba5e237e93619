"""layernorm: values on the emulator, gradients, PyTorch's machinery, errors. tests/gpu has the sizes of a GPU."""

import numpy as np
import pytest

from tests.norm_cases import BACKWARD, NormCases
from tests.op_cases import CASES, DTYPES, close, normal, wide
from tilewright import ops
from tilewright.kernels.layernorm import layernorm as forward_kernel
from tilewright.kernels.layernorm import layernorm_backward
from tilewright.kernels.plans import gathering_plan, row_plan


class TestLayerNorm(NormCases):
    op = staticmethod(ops.layernorm)
    kernel = staticmethod(layernorm_backward)
    centred = True
    eps = 1e-5


cases = TestLayerNorm()


@pytest.mark.parametrize(("dtype", "shape"), CASES, ids=str)
def test_layernorm_correctness(dtype, shape):
    cases.check_values(dtype, shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layernorm_correctness_with_a_residual(dtype):
    cases.check_residual(dtype)


@pytest.mark.parametrize(("dtype", "columns"), BACKWARD)
def test_layernorm_backward_correctness(dtype, columns):
    cases.check_backward(dtype, columns)


PLANS = {
    "a block a row": row_plan(1000, 4, 4, threads=64), "a cluster a row": row_plan(2000, 4, 4, threads=64, cluster=4),
    "staged": row_plan(1000, 4, 4, threads=64, staged=True),
    "staged over a cluster": row_plan(4000, 4, 4, threads=64, cluster=4, staged=True),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_layernorm_correctness_of_plans(plan):
    columns = plan.columns or plan.tile * plan.cluster - plan.vector
    x, weight = normal(20, (3, columns), "float32", shift=5), normal(21, (columns,), "float32")
    out, *stats = np.empty_like(x), *(np.empty(3, np.float32) for _ in range(1 + cases.centred))
    forward_kernel(out, None, *stats, x, weight, None, None, cases.eps, plan=plan)
    close(out, cases.expected(wide(x), weight), "float32", absolute=1e-5)
    for found, wanted in zip(reversed(stats), reversed(cases.moments(wide(x))), strict=False):
        close(found, wanted[:, 0], "float32")


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_warps_outside_a_short_row_count_nothing(dtype):
    """Half of the cluster's blocks, and warps of others, hold nothing of the row, whose mean is large."""
    x = normal(22, (3, 1000), dtype, shift=50)
    size = x.itemsize
    out = np.empty_like(x)
    plan = row_plan(1000, 16 // size, size, threads=64 * size // 4, cluster=8)
    assert plan.tile * 4 > 1000
    forward_kernel(out, None, None, None, x, None, None, None, cases.eps, plan=plan)
    # The rounding of the mean, against a deviation of 1.
    close(out, cases.expected(wide(x)), dtype, absolute=2e-5 if dtype == "float32" else 1e-12)


def test_layernorm_backward_correctness_over_a_cluster():
    cases.check_backward("float32", 1000, gathering_plan(1000, 4, 4, held=2, threads=32, cluster=4), more=True)
    cases.check_backward("bfloat16", 512, gathering_plan(512, 8, 2, held=2, threads=32, cluster=2))


def test_layernorm_compile():
    """Traced whole, with its backward; the operators pass PyTorch's own checks."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, weight, bias = torch.randn(4, 24), torch.randn(24), torch.randn(24)

    def theirs(x, weight, bias):
        return torch.nn.functional.layer_norm(x, (24,), weight, bias, 1e-5)

    grads = []
    for function in (torch.compile(ops.layernorm, fullgraph=True, backend="aot_eager"), theirs):
        own = [item.clone().requires_grad_() for item in (x, weight, bias)]
        function(*own).square().sum().backward()
        grads.append([item.grad for item in own])
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
    empty, stats = (
        torch.empty(4, 24),
        (
            torch.zeros(4),
            torch.rand(4),
        ),
    )
    forward, backward = torch.ops.tilewright._layernorm.default, torch.ops.tilewright._layernorm_backward.default
    arguments = empty, empty.clone(), *(item.clone() for item in stats), x, weight, bias, x, 1e-5
    assert set(torch.library.opcheck(forward, arguments).values()) == {"SUCCESS"}
    arguments = empty, torch.empty(24), torch.empty(24), x, None, x, weight, *stats
    assert set(torch.library.opcheck(backward, arguments).values()) == {"SUCCESS"}
