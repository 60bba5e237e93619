"""Products of other kinds on a GPU: groups, scales, mixed types, parts along K, and the steps of docs/gemm.md."""

import importlib

import pytest

from tilewright import cute
from tilewright.kernels import gemm as kernels
from tilewright.ops import gemm, gemm_grouped, gemm_scaled

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

from scripts import gemm_tutorial as tutorial  # noqa: E402

BF16, F32, E4M3 = torch.bfloat16, torch.float32, torch.float8_e4m3fn


def numbers(shape, dtype=BF16):
    return torch.randint(-2, 3, shape, device="cuda").to(dtype)


def powers(*shape):
    return torch.randint(-1, 2, shape, device="cuda").float().exp2()


@pytest.mark.parametrize("rows", [(1000, 1000, 3001, 7), (1, 2, 4093, 0), (0, 0, 0, 5)], ids=str)
def test_groups_correctness(rows):
    ends = torch.tensor(rows, device="cuda").cumsum(0).int()
    a, b = numbers((int(ends[-1]) + 3, 1000)), numbers((len(rows), 1000, 776))
    for _ in range(20):  # races show now and then
        found, start = gemm_grouped(a, b, ends), 0
        for group, end in enumerate(ends.tolist()):
            wanted = (a[start:end].double() @ b[group].double()).to(BF16)
            assert torch.equal(found[start:end], wanted), group
            start = end
        assert not found[start:].any()


@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (200, 264, 400), (5, 300, 512)], ids=str)
def test_scales_of_blocks_correctness(shape):
    m, n, k = shape
    a, b = numbers((m, k), E4M3), numbers((n, k), E4M3).T
    scale_a, scale_b = powers(m, -(-k // 128)), powers(-(-k // 128), -(-n // 128))
    left = a.double() * scale_a.repeat_interleave(128, 1)[:, :k]
    right = b.double() * scale_b.repeat_interleave(128, 0).repeat_interleave(128, 1)[:k, :n]
    assert torch.equal(gemm_scaled(a, b, scale_a, scale_b, dtype="float32"), (left @ right).float())


def test_scales_of_rows_and_columns_correctness():
    a, b, rows, columns = numbers((1000, 512), E4M3), numbers((776, 512), E4M3).T, powers(1000, 1), powers(776)
    wanted = (a.double() @ b.double()) * rows * columns
    assert torch.equal(gemm_scaled(a, b, rows, columns, dtype="float32"), wanted.float())


@pytest.mark.parametrize("narrow", [torch.int8, E4M3, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("shape", [(4096, 1024, 2048), (64, 776, 528), (1, 16, 16)], ids=str)
def test_mixed_types_correctness(narrow, shape):
    m, n, k = shape
    a, b = numbers((m, k)), numbers((n, k), narrow).T
    wanted = a.double() @ b.double()
    for _ in range(20):
        assert torch.equal(gemm(a, b), wanted.to(BF16))
    assert torch.equal(gemm(b.T, a.T), wanted.T.to(BF16))


def test_parts_correctness():
    a, b = numbers((128, 16384)), numbers((128, 16384)).T
    out = torch.empty(128, 128, device="cuda", dtype=F32)
    for parts in (4, 32, 64):
        plan = next(plan for plan in kernels.plans_of(out, a, b) if getattr(plan, "parts", 1) == parts)
        kernels.gemm(out, a, b, plan=plan)
        assert torch.equal(out, (a.double() @ b.double()).float()), parts


@pytest.mark.parametrize("name", tutorial.STEPS)
def test_the_steps_of_the_tutorial_correctness(name):
    step = tutorial.step(name)
    a, b, c = numbers((1024, 512)), numbers((1024, 512)), torch.empty(1024, 1024, device="cuda", dtype=BF16)
    tensors = importlib.import_module("harness").as_tensors(a, b, c)
    cute.compile(step.gemm, *tensors, target="cuda")(*tensors)
    assert torch.equal(c, (a.double() @ b.double().T).to(BF16))
