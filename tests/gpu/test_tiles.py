"""Tiled copies and tensor cores on a device: the kernels of tests/lang/atoms, exact on integers."""

import pytest

import tilewright as cutlass
from tests.lang.atoms.test_gemm import Plan, ldmatrix, plain, run
from tilewright import cute
from tilewright.cute.nvgpu import warp
from tilewright.cute.runtime import from_dlpack

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")
F16, BF16, F32 = cutlass.Float16, cutlass.BFloat16, cutlass.Float32


def plans():
    """Name, plan, types of A and B, type of C, compute capability that it needs."""
    for k in (8, 16):
        permutation = (32, 32, 16) if k == 16 else (64, 64, 8)
        for dtype, acc in ((F16, F32), (F16, F16), (BF16, F32)):
            op = warp.MmaF16BF16Op(dtype, acc, (16, 8, k))
            plan = Plan(op, permutation=permutation, load_a=ldmatrix(dtype), load_b=ldmatrix(dtype))
            yield f"{dtype}-{acc}-k{k}", plan, dtype, acc, 80
    op = warp.MmaF16BF16Op(F16, F32, (16, 8, 16))
    loads = {"load_a": ldmatrix(transpose=True), "load_b": ldmatrix(transpose=True)}
    yield "transposed", Plan(op, permutation=(32, 32, 16), a_major="m", b_major="n", **loads), F16, F32, 80
    yield "swizzled pointer", Plan(op, permutation=(32, 32, 16), load_a=ldmatrix(), load_b=ldmatrix(),
                                   swizzled_pointer=True), F16, F32, 80  # fmt: skip
    load = plain(cutlass.TFloat32)
    yield "tf32", Plan(warp.MmaTF32Op((16, 8, 8)), tile=(32, 32, 32), load_a=load, load_b=load), F32, F32, 80
    load = plain(cutlass.Int8, 32)
    int8 = Plan(warp.MmaI8Op(cutlass.Int8, (16, 8, 32)), tile=(32, 32, 64), load_a=load, load_b=load)
    yield "int8", int8, cutlass.Int8, cutlass.Int32, 80
    for transpose in (False, True):
        store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(transpose, 4), F16)
        plan = Plan(op, permutation=(32, 32, 16), load_a=ldmatrix(), load_b=ldmatrix(), store=store)
        yield f"stmatrix{'.trans' if transpose else ''}", plan, F16, F16, 90
    e4m3 = cutlass.Float8E4M3FN
    load = cute.make_copy_atom(warp.LdMatrix8x16x8bOp(False, 4), e4m3)
    fp8 = Plan(warp.MmaFP8Op(e4m3, F32, (16, 8, 32)), permutation=(32, 32, 32), tile=(64, 64, 64), load_a=load,
               load_b=load)  # fmt: skip
    yield "fp8", fp8, e4m3, F32, 89


PLANS = list(plans())


def operand(rows, columns, dtype, major, device):
    values = torch.randint(-4, 5, (rows, columns), device=device).float()
    made = values.to(cutlass.torch.dtype(dtype))
    return made if major == "k" else made.t().contiguous().t()


def argument(tensor, dtype):
    made = from_dlpack(tensor.view(torch.uint8) if dtype.width == 8 and dtype.is_float else tensor, assumed_align=16)
    if made.element_type is not dtype:
        made.element_type = dtype
    return made


def check(plan, dtype, acc, target, device):
    torch.manual_seed(0)
    m, n, k = (count * extent for count, extent in zip((3, 2, 5), plan.tile, strict=True))
    a, b = operand(m, k, dtype, plan.a_major, device), operand(n, k, dtype, plan.b_major, device)
    c = torch.zeros(m, n, device=device, dtype=cutlass.torch.dtype(acc))
    arguments = [argument(tensor, kind) for tensor, kind in ((a, dtype), (b, dtype), (c, acc))]
    cute.compile(run, *arguments, plan, target=target)(*arguments)
    exact = a.double() @ b.double().t()
    assert torch.equal(c.double(), exact)


@pytest.mark.parametrize(("plan", "dtype", "acc", "needs"), [item[1:] for item in PLANS], ids=[p[0] for p in PLANS])
def test_products_are_exact_on_the_device(plan, dtype, acc, needs):
    major, minor = torch.cuda.get_device_capability()
    if 10 * major + minor < needs:
        pytest.skip(f"needs compute capability {needs}")
    check(plan, dtype, acc, "cuda", "cuda")
