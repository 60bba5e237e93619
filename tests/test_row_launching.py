"""Calling row-wise kernels: rows that begin anywhere in memory, and the way to a kernel by native code alone."""

from dataclasses import replace

import numpy as np
import pytest

from tests.op_cases import close, normal, on_emulator, wide
from tilewright import ops
from tilewright.base.errors import ArgumentError
from tilewright.emulate import observe
from tilewright.kernels import cross_entropy, rmsnorm, softmax_online
from tilewright.kernels.launching import RESULT, ROWS, RowKernel
from tilewright.kernels.plans import row_plan
from tilewright.ops.reduce_sum import VARIANTS
from tilewright.targets.host.function import HostFunction

ACCESS = 16


def placed(values, offset):
    """A copy whose first element is `offset` elements behind a multiple of 16 bytes, and the memory around it."""
    memory = np.zeros(values.size + 2 * ACCESS, values.dtype)
    start = -memory.ctypes.data // values.itemsize % (ACCESS // values.itemsize) + offset
    view = memory[start : start + values.size].reshape(values.shape)
    view[...] = values
    return view, memory


def exact_softmax(x):
    powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("offset", (0, 1, 3))
@pytest.mark.parametrize("columns", (257, 1001, 1023, 2049, 5003))
@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "float64"))
def test_rows_that_begin_anywhere_are_read_in_vectors_correctness(dtype, columns, offset):
    x, _ = placed(normal(offset, (3, columns), dtype, scale=3), offset)
    out, memory = placed(np.zeros_like(x), offset)
    plan = softmax_online.softmax_online.plan_for(out, x)
    assert plan.shifted and plan.vector * x.itemsize == ACCESS
    softmax_online.softmax_online(out, x)
    close(out, exact_softmax(x), dtype)
    assert np.count_nonzero(memory) == np.count_nonzero(out)  # nothing beside it was written


@pytest.mark.parametrize("shape", ((4, 1025), (9, 300)))
def test_every_row_wise_kernel_takes_rows_that_begin_anywhere_correctness(shape):
    x, target = normal(1, shape, "float32"), np.arange(shape[0]) * 7 % shape[1]
    numbers, rows = wide(x), np.arange(shape[0])
    lse = np.log(np.exp(numbers).sum(-1))
    variance = numbers.var(-1, keepdims=True)
    with on_emulator():
        close(ops.rmsnorm(x), numbers / np.sqrt((numbers**2).mean(-1, keepdims=True) + 1e-6), "float32")
        centred = numbers - numbers.mean(-1, keepdims=True)
        close(ops.layernorm(x), centred / np.sqrt(variance + 1e-5), "float32", absolute=1e-6)
        close(ops.cross_entropy(x, target, reduction="none"), lse - numbers[rows, target], "float32", absolute=2e-6)
    dx, grad = np.empty_like(x), np.ones(shape[0], np.float32)
    cross_entropy.cross_entropy_backward(dx, grad, x, target, lse.astype(np.float32), -100, 0.0)
    wanted = np.exp(numbers - lse[:, None])
    wanted[rows, target] -= 1
    close(dx, wanted, "float32", absolute=1e-6)
    softmax_online.softmax_online_backward(dx, x, x)
    close(dx, numbers * (numbers - (numbers * numbers).sum(-1, keepdims=True)), "float32", absolute=1e-3)


@pytest.mark.parametrize("cluster", (1, 4))
def test_long_rows_that_begin_anywhere_in_shared_memory_correctness(cluster):
    x, _ = placed(normal(2, (2, 9001), "bfloat16"), 5)
    out, _ = placed(np.zeros_like(x), 5)
    plan = replace(row_plan(9001, 8, 2, threads=128, cluster=cluster, staged=True), columns=0, shifted=True)
    assert plan.stages
    softmax_online.softmax_online(out, x, plan=plan)
    close(out, exact_softmax(x), "bfloat16")


def test_rows_that_begin_differently_are_read_one_element_at_a_time():
    x, _ = placed(normal(3, (3, 1001), "float32"), 1)
    out, _ = placed(np.zeros_like(x), 0)
    assert not softmax_online.softmax_online.plan_for(out, x).shifted
    softmax_online.softmax_online(out, x)
    close(out, exact_softmax(x), "float32")
    weight = np.ones(1001, np.float32)
    assert not rmsnorm.rmsnorm.plan_for(x, None, None, x, weight, None, None, 1e-6).shifted


def test_aligned_rows_are_read_as_before():
    x = placed(normal(4, (3, 1024), "float32"), 0)[0]
    assert not softmax_online.softmax_online.plan_for(x, x).shifted
    assert softmax_online.softmax_online.plan_for(x, x).columns == 1024


@pytest.fixture
def routed():
    """softmax_online as it is on a GPU after its first call; launches are noted, not done: (kernel, grids)."""
    kernel, grids = RowKernel(softmax_online.launch_softmax_online, (RESULT, ROWS)), []
    x = normal(5, (8, 1000), "float32")
    kernel(np.empty_like(x), x)
    assert not kernel.quick(np.empty_like(x), x)
    (executor,) = kernel._compiled.values()
    host = executor.device.host
    function = HostFunction(
        host.object_bytes, host.signature, kernels=1, launch=lambda config, *_: grids.append(config.grid)
    )
    assert kernel.router.add(function, (np.empty_like(x), x))
    return kernel, grids


@pytest.mark.parametrize("shape", ((8, 1000), (16, 1000), (1000,), (2, 4, 1000)))
def test_native_code_finds_the_kernel(routed, shape):
    kernel, grids = routed
    x = normal(6, shape, "float32")
    plan = kernel.plan_for(np.empty_like(x), x)
    assert kernel.quick(np.empty_like(x), x)
    kernel(np.empty_like(x), x)
    assert grids == [(-(-x.size // 1000 // plan.rows), 1, 1)] * 2


def test_what_native_code_cannot_tell_goes_the_long_way_correctness(routed):
    kernel, grids = routed
    for x in (normal(7, (3, 999), "float32"), normal(7, (3, 1000), "float64"), normal(7, (1000, 3), "float32").T):
        out = np.empty(x.shape, x.dtype)
        assert not kernel.quick(out, x) and not kernel.quick(out, x[:2])
        kernel(out, x)
        close(out, exact_softmax(x), str(x.dtype))
    empty = np.empty((0, 1000), np.float32)
    assert not kernel.quick(empty, empty)
    kernel(empty, empty)
    assert not grids


def test_a_plan_that_is_given_is_taken_correctness(routed):
    kernel, grids = routed
    x = normal(8, (3, 1000), "float32")
    out = np.empty_like(x)
    kernel(out, x, plan=row_plan(1000, 4, 4, threads=64))
    close(out, exact_softmax(x), "float32")
    assert not grids


def test_public_functions_check_what_native_code_does_not():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.randn(4, 64)
    for wrong in (
        lambda: ops.rmsnorm(x, torch.ones(63)),
        lambda: ops.rmsnorm(x, None, None, x[:1]),
        lambda: ops.rmsnorm(x, torch.ones(64, dtype=torch.int32)),
        lambda: ops.layernorm(x, torch.ones(2, 64)),
        lambda: ops.cross_entropy(x, torch.zeros(3, dtype=torch.int64)),
        lambda: ops.cross_entropy(x, torch.zeros(4)),
        lambda: ops.cross_entropy(x, torch.zeros(4, dtype=torch.int64), reduction="all"),
        lambda: ops.cross_entropy(x, torch.zeros(4, dtype=torch.int64), label_smoothing=2.0),
        lambda: ops.softmax_online(x.int()),
        lambda: ops.softmax_online(torch.tensor(1.0)),
        lambda: ops.softmax_online(x, 0),
    ):
        for _ in range(2):
            with pytest.raises(ArgumentError):
                wrong()


WIDE = np.ones((40, 64), np.float32)


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("copy_transpose", lambda: ops.copy_transpose(WIDE)),
        ("copy_transpose", lambda: ops.copy_transpose(WIDE[:4])),
        ("reduce", lambda: ops.reduce(WIDE, "max", 0)),
        *(("reduce_sum", lambda variant=variant: ops.reduce_sum(WIDE, variant=variant)) for variant in VARIANTS),
        ("reduce_sum", lambda: ops.reduce_sum(WIDE, 0)),
        ("softmax_online", lambda: ops.softmax_online(WIDE)),
        ("rmsnorm", lambda: ops.rmsnorm(WIDE)),
        ("layernorm", lambda: ops.layernorm(WIDE)),
        ("cross_entropy", lambda: ops.cross_entropy(WIDE, np.zeros(40, np.int64))),
        ("elementwise", lambda: ops.elementwise("add", WIDE, WIDE)),
    ],
)
def test_names_of_kernels_contain_the_ops(op, call):
    with on_emulator(), observe() as reports:
        call()
    assert reports and all(op in report.kernel for report in reports)
