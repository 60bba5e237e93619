"""cross_entropy: values on the emulator, gradients, PyTorch's machinery, errors. tests/gpu has the sizes of a GPU."""

import numpy as np
import pytest

from tests.op_cases import CASES, DTYPES, close, normal, on_emulator, wide
from tilewright import ops
from tilewright.kernels.cross_entropy import cross_entropy as forward_kernel
from tilewright.kernels.cross_entropy import cross_entropy_backward as backward_kernel
from tilewright.kernels.plans import row_plan, streaming_plan

IGNORED = -100


def targets(shape, columns):
    found = np.random.default_rng(9).integers(0, columns, shape)
    found.flat[0] = IGNORED
    return found


def exact(x, target, smoothing=0.0):
    """Losses, lse and the gradients of the losses, in float64."""
    logits = wide(x)
    top = logits.max(-1, keepdims=True)
    lse = np.log(np.exp(logits - top).sum(-1)) + top[..., 0]
    hit = np.arange(x.shape[-1]) == target[..., None]
    wanted = (1 - smoothing) * hit + smoothing / x.shape[-1]
    counts = target != IGNORED
    return (
        (lse - (wanted * logits).sum(-1)) * counts,
        lse,
        (np.exp(logits - lse[..., None]) - wanted) * counts[..., None],
    )


def result(dtype):
    return "float64" if dtype == "float64" else "float32"


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize(("dtype", "shape"), CASES, ids=str)
def test_cross_entropy_correctness(dtype, shape):
    x, target = normal(0, shape, dtype, scale=3), targets(shape[:-1], shape[-1])
    with on_emulator():
        loss = ops.cross_entropy(x, target, reduction="none")
    close(loss, exact(x, target)[0], result(dtype), absolute=1e-14 if dtype == "float64" else 2e-6)


@pytest.mark.parametrize("smoothing", (0.0, 0.1))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", (7, 1000))
def test_cross_entropy_backward_correctness(columns, dtype, smoothing):
    x, target = normal(1, (3, columns), dtype), targets((3,), columns)
    grad = normal(2, (3,), result(dtype))
    _, lse, slopes = exact(x, target, smoothing)
    dx = np.empty_like(x)
    backward_kernel(dx, grad, x, target, lse.astype(grad.dtype), IGNORED, smoothing)
    close(dx, slopes * wide(grad)[:, None], dtype, absolute=1e-15 if dtype == "float64" else 1e-6)


PLANS = {
    "a block a row": row_plan(1000, 4, 4, threads=64), "a cluster a row": row_plan(2048, 4, 4, threads=64, cluster=4),
    "staged over a cluster": row_plan(4000, 4, 4, threads=64, cluster=4, staged=True),
    "streamed": streaming_plan(2048, 4, 64, 2), "streamed, guarded": streaming_plan(1300, 4, 64, 2),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_cross_entropy_correctness_of_plans(plan):
    columns = plan.columns or (1300 if plan.turns > 1 else plan.tile * plan.cluster - plan.vector)
    x, target = normal(3, (3, columns), "float32"), targets((3,), columns)
    loss, lse = np.empty(3, np.float32), np.empty(3, np.float32)
    forward_kernel(loss, lse, x, target, IGNORED, 0.1, True, plan=plan)
    wanted = exact(x, target, 0.1)
    close(loss, wanted[0], "float32", absolute=2e-6)
    close(lse, wanted[1], "float32")


@pytest.mark.parametrize("first", (-np.inf, -3e38, 80.0))
def test_a_streamed_row_whose_turns_differ_by_much(first):
    """Of the turns of a row the first has one value alone, which is far below or above all others, or -inf."""
    plan = streaming_plan(1024, 4, 64, 1)
    x, target = normal(4, (2, 1024), "float32"), np.array([1000, 700])
    x[:, :256] = first
    loss, lse = np.empty(2, np.float32), np.empty(2, np.float32)
    forward_kernel(loss, lse, x, target, IGNORED, 0.0, False, plan=plan)
    wanted = np.logaddexp.reduce(x.astype(np.float64), axis=1)
    close(lse, wanted, "float32")
    close(loss, wanted - x[np.arange(2), target], "float32", absolute=2e-6)


def test_long_rows_are_streamed_and_short_ones_held():
    for columns, size, streams in ((20480, 2, False), (32768, 2, True), (65536, 4, False), (131072, 4, True)):
        x = np.zeros((1, columns), {2: np.float16, 4: np.float32}[size])
        numbers = np.zeros(1, np.float32)
        plan = forward_kernel.plan_for(numbers, numbers, x, np.zeros(1, np.int64), IGNORED, 0.0, False)
        assert (plan.turns > 1) == streams and plan.tile * plan.turns * plan.cluster >= columns


def test_cross_entropy_correctness_of_options(torch):
    """As PyTorch's function has them, in float64."""
    x, target = torch.randn(6, 40, dtype=torch.float64), torch.randint(0, 40, (6,))
    target[2] = IGNORED
    calls = (
        {}, {"reduction": "sum"}, {"reduction": "none", "label_smoothing": 0.3}, {"label_smoothing": 1.0},
        {"ignore_index": int(target[0])},
    )  # fmt: skip
    for options in calls:
        columns = target.clamp(min=0) if "ignore_index" in options else target
        wanted = torch.nn.functional.cross_entropy(x, columns, **options)
        torch.testing.assert_close(ops.cross_entropy(x, columns, **options), wanted)
        with on_emulator():
            torch.testing.assert_close(ops.cross_entropy(x, columns.int(), **options), wanted)
            found = ops.cross_entropy(x.numpy(), columns.numpy(), **options)
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_cross_entropy_correctness_of_totals(torch, reduction):
    """More rows than the block that adds them up has threads; sums of float32 are within 2^-20 of the exact ones."""
    for dtype, rows in ((torch.float32, 1500), (torch.bfloat16, 5)):
        x, target = torch.randn(rows, 8).to(dtype), torch.randint(0, 8, (rows,))
        target[::3] = IGNORED
        own, other = x.clone().requires_grad_(), x.double().requires_grad_()
        wanted = torch.nn.functional.cross_entropy(other, target, reduction=reduction, label_smoothing=0.1)
        (3 * wanted).backward()
        with on_emulator():
            found = ops.cross_entropy(x, target, reduction=reduction, label_smoothing=0.1)
            recorded = ops.cross_entropy(own, target, reduction=reduction, label_smoothing=0.1)
            (3 * recorded).backward()
        assert found.shape == () and found.dtype is torch.float32 and torch.equal(found, recorded.detach())
        torch.testing.assert_close(found.double(), wanted.detach(), rtol=2**-20, atol=0)
        torch.testing.assert_close(own.grad.double(), other.grad, rtol=2**-7, atol=2**-20)


def test_the_mean_of_no_rows_is_nan(torch):
    x, target = torch.randn(3, 8), torch.full((3,), IGNORED)
    with on_emulator():
        assert ops.cross_entropy(x, target).isnan()
        assert ops.cross_entropy(x, target, reduction="sum") == 0
        assert ops.cross_entropy(x[:0], target[:0]).isnan()


def test_a_target_that_names_no_column_gives_nan(torch):
    x = torch.randn(3, 8)
    target = torch.tensor([8, 1, -1])
    for where in (on_emulator(), pytest.MonkeyPatch.context()):
        with where:
            assert ops.cross_entropy(x, target, reduction="none").isnan().tolist() == [True, False, True]


def test_cross_entropy_gradients(torch):
    x = torch.randn(3, 12, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([3, IGNORED, 11])

    def loss(x):
        return ops.cross_entropy(x, target, label_smoothing=0.1)

    assert torch.autograd.gradcheck(loss, (x,))
    assert torch.autograd.gradgradcheck(loss, (x,))
    with on_emulator():
        assert torch.autograd.gradcheck(loss, (x,))


def test_cross_entropy_compile(torch):
    x, target = torch.randn(4, 24), torch.tensor([1, 2, IGNORED, 3])
    grads = []
    compiled = torch.compile(ops.cross_entropy, fullgraph=True, backend="aot_eager")
    for function in (compiled, torch.nn.functional.cross_entropy):
        own = x.clone().requires_grad_()
        function(own, target).backward()
        grads.append(own.grad)
    torch.testing.assert_close(*grads)
    numbers, tilewright = torch.ones(4), torch.ops.tilewright
    forward = numbers.clone(), numbers.clone(), x, target, IGNORED, 0.1, True
    backward = torch.empty(4, 24), numbers, x, target, x.logsumexp(-1), IGNORED, 0.1
    assert set(torch.library.opcheck(tilewright._cross_entropy.default, forward).values()) == {"SUCCESS"}
    assert set(torch.library.opcheck(tilewright._cross_entropy_backward.default, backward).values()) == {"SUCCESS"}


def test_cross_entropy_vmap(torch):
    x, target = torch.randn(3, 4, 5), torch.randint(0, 5, (3, 4))
    found = torch.vmap(ops.cross_entropy)(x, target)
    torch.testing.assert_close(found, torch.vmap(torch.nn.functional.cross_entropy)(x, target))
    grads = [torch.vmap(torch.func.grad(f))(x, target) for f in (ops.cross_entropy, torch.nn.functional.cross_entropy)]
    torch.testing.assert_close(*grads)


def test_cross_entropy_errors(torch):
    x, target = torch.randn(3, 4), torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="target has one column for each row of x") as raised:
        ops.cross_entropy(x, target[:2])
    assert "(3, 4)" in str(raised.value) and "(2,)" in str(raised.value)
    with pytest.raises(ValueError, match="target has dtype float32"):
        ops.cross_entropy(x, x[:, 0])
    with pytest.raises(ValueError, match="reduction is one of mean, sum, none, not 'max'"):
        ops.cross_entropy(x, target, reduction="max")
    with pytest.raises(ValueError, match=r"label_smoothing is from 0 to 1, not 1\.5"):
        ops.cross_entropy(x, target, label_smoothing=1.5)
    with pytest.raises(ValueError, match="expected all tensors to be on the same device") as raised:
        ops.cross_entropy(x, target.numpy())
    assert "NumPy" in str(raised.value)
