"""`gemm`: values on the emulator, plans, gradients, PyTorch's machinery, errors.

Small integers are exact in every type and in every order of adding. Normal numbers are compared with float64, under the
bounds of `bound`.
"""

import contextlib
import functools
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases import on_emulator, wide
from tilewright import cute, ops
from tilewright.base import settings
from tilewright.base.errors import EpilogueError
from tilewright.emulate import observe
from tilewright.kernels import gemm as kernels
from tilewright.kernels import gemm_sm90_calls
from tilewright.kernels.gemm_fusion import fitting
from tilewright.kernels.gemm_operands import Operand
from tilewright.kernels.gemm_plans import GemmPlan, gemm_plan
from tilewright.lib.epilogue.bits import Bits
from tilewright.lib.epilogue.trace import trace
from tilewright.ops.gemm_fused import key_of

BF16 = ml_dtypes.bfloat16
TYPES = (np.float16, BF16, np.float32, np.float64, np.int8)


def name(dtype):
    return np.dtype(dtype).name if isinstance(dtype, type) else str(dtype)


def whole(seed, shape, dtype):
    """Small integers."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def turned(matrix):
    """The same elements with the other mode contiguous."""
    return np.ascontiguousarray(matrix.swapaxes(-1, -2)).swapaxes(-1, -2)


def check(a, b, out=None, **options):
    with on_emulator():
        found = ops.gemm(a, b, out=out) if not options else kernels.gemm(out, a, b, **options) or out
    np.testing.assert_array_equal(wide(found), wide(a) @ wide(b))
    return found


@pytest.mark.parametrize("order", ["kn", "kk", "mn", "mk"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8], ids=name)
def test_gemm_correctness(dtype, order):
    a, b = whole(0, (72, 80), dtype), whole(1, (80, 48), dtype)
    found = check(turned(a) if order[0] == "m" else a, turned(b) if order[1] == "k" else b)
    assert found.dtype == (np.int32 if dtype is np.int8 else dtype) and found.flags.c_contiguous


@pytest.mark.parametrize(
    ("dtype", "m", "n", "k"),
    [
        (BF16, 33, 19, 17),
        (np.float16, 1, 65, 130),
        (np.float32, 67, 1, 5),
        (np.int8, 30, 34, 66),
        (np.float64, 3, 3, 3),
    ],
    ids=name,
)
def test_gemm_correctness_of_sizes(dtype, m, n, k):
    check(whole(0, (m, k), dtype), whole(1, (k, n), dtype))


def test_gemm_correctness_of_several_tiles():
    check(whole(0, (136, 72), np.float16), whole(1, (72, 200), np.float16))


@pytest.mark.parametrize("dtype", [np.float32, np.int8], ids=name)
def test_gemm_of_nothing(dtype):
    for m, n, k in ((0, 3, 2), (3, 0, 2), (2, 3, 0)):
        found = check(whole(0, (m, k), dtype), whole(1, (k, n), dtype))
        assert found.shape == (m, n)


def test_gemm_correctness_of_batches():
    for batch_a, batch_b in (((3,), (3,)), ((2, 1), (3,)), ((), (2,)), ((2, 3), ())):
        check(whole(0, (*batch_a, 16, 24), BF16), whole(1, (*batch_b, 24, 32), BF16))
    repeated = np.broadcast_to(whole(2, (16, 24), BF16), (4, 16, 24))
    check(repeated, whole(1, (4, 24, 32), BF16))
    crossed = whole(3, (3, 16, 2, 24), BF16).transpose(2, 0, 1, 3)  # (2, 3, 16, 24), no single stride for the batch
    check(crossed, whole(4, (2, 3, 24, 32), BF16))


def test_gemm_correctness_of_views():
    a, b = whole(0, (48, 96), np.float16), whole(1, (96, 80), np.float16)
    check(a[:, ::2], b[::2])
    check(a[::3, 4:], b[4:, 3:60])
    check(a[::-1], b)
    for out in (
        np.empty((80, 48), np.float16).T,
        np.empty((48, 160), np.float32)[:, ::2],
        np.empty((48, 88), BF16)[:, 3:83],
    ):
        assert check(a, b, out=out) is out


@pytest.mark.parametrize(
    ("dtype", "out"),
    [(np.float16, np.float32), (np.float32, BF16), (np.int8, np.float32), (BF16, np.float16)],
    ids=name,
)
def test_gemm_correctness_of_results(dtype, out):
    a, b = whole(0, (40, 24), dtype), whole(1, (24, 40), dtype)
    check(a, b, out=np.empty((40, 40), out))


def bound(a, b, dtype):
    """How far a product may be from the exact one.

    Products of 16-bit floats are exact in float32, and TF32 leaves out what is below 2^-10 of a factor. Adding K
    products in float32 costs at most K roundings of 2^-24 each (2^-23, as tensor cores cut off); rounding the result to
    16 bits costs 2^-11 or 2^-8 of it.
    """
    size, k = np.abs(wide(a)) @ np.abs(wide(b)), a.shape[-1]
    if dtype is np.float64:
        return size * k * 2.0**-52
    factors = 2 * 2.0**-10 if dtype is np.float32 else 0
    result = {np.float16: 2.0**-11, BF16: 2.0**-8, np.float32: 2.0**-24}[dtype]
    return size * (factors + k * 2.0**-23) + np.abs(wide(a) @ wide(b)) * result


@pytest.mark.parametrize("dtype", TYPES[:4], ids=name)
def test_gemm_correctness_of_normal_numbers(dtype):
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((40, 200)).astype(dtype), generator.standard_normal((200, 48)).astype(dtype)
    with on_emulator():
        found = ops.gemm(a, b)
    assert (np.abs(wide(found) - wide(a) @ wide(b)) <= bound(a, b, dtype)).all()


F16 = cute.Float16


@pytest.mark.parametrize(
    ("tile", "warps", "stages"),
    [((64, 64, 32), (2, 2), 2), ((64, 128, 32), (1, 4), 5), ((128, 64, 64), (4, 1), 3)],
    ids=str,
)
def test_gemm_correctness_of_plans(tile, warps, stages):
    a, b = whole(0, (130, 200), np.float16), whole(1, (200, 72), np.float16)
    plan = GemmPlan(Operand(F16, True, 8), Operand(F16, False, 8), tile, warps, stages, group=2)
    check(a, b, out=np.empty((130, 72), np.float16), plan=plan)


def test_gemm_correctness_of_shared_products():
    splits = 5
    a, b = whole(0, (2, 70, 200), np.float16), whole(1, (2, 200, 72), np.float16)
    plan = GemmPlan(
        Operand(F16, True, 8), Operand(F16, False, 8), (64, 64, 32), (2, 2), 3, splits
    )  # fmt: skip
    check(a, b, out=np.empty((2, 70, 72), np.float16), plan=plan)


def test_shared_products_are_added_in_one_order():
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((64, 512), (512, 64)))
    plan = GemmPlan(
        Operand(F16, True, 8), Operand(F16, False, 8), (64, 64, 32), (2, 2), 3, 4
    )  # fmt: skip
    results = [np.empty((64, 64), np.float32) for _ in range(2)]
    for out in results:
        kernels.gemm(out, a, b, plan=plan)
    np.testing.assert_array_equal(*results)
    assert (np.abs(results[0] - wide(a) @ wide(b)) <= bound(a, b, np.float32)).all()


# Tiles are 16 elements long along K: in the last case rows of B have 64 bytes. 8 threads, with the 128 bytes of a
# wavefront, copy two of these, and `cp.async` takes a wavefront for each line of global memory.
@pytest.mark.parametrize(
    ("dtype", "order", "conflicts"), [(np.float16, "kn", 0), (np.float32, "mk", 64 * 64 * 4 // 128)], ids=name
)
def test_each_sector_is_moved_once_and_no_bank_is_waited_for(dtype, order, conflicts):
    a, b = whole(0, (64, 64), dtype), whole(1, (64, 64), dtype)
    a, b = turned(a) if order[0] == "m" else a, turned(b) if order[1] == "k" else b
    with settings.scope(arch="sm_80"), observe(counters=True) as reports:
        kernels.gemm(np.empty((64, 64), dtype), a, b)
    (report,) = reports
    assert report.sectors == report.sectors_ideal == 3 * 64 * 64 * np.dtype(dtype).itemsize // 32  # of A, B and D
    assert report.bank_conflicts == conflicts


def plan_for(m, n, k, batch=1):
    return gemm_plan(Operand(F16, True, 8), Operand(F16, False, 8), (m, n, k, batch), False, 132)


def test_large_products_have_the_largest_tile_and_small_ones_one_for_each_multiprocessor():
    assert plan_for(4096, 4096, 4096).tile == (128, 256, 64)
    assert plan_for(64, 64, 64, batch=4096).tile == (64, 64, 64)
    small = plan_for(1024, 1024, 1024)
    assert 100 <= 1024 * 1024 // (small.tile[0] * small.tile[1]) * small.splits <= 264
    assert plan_for(1024, 1024, 1024).splits == 1


def test_few_tiles_share_their_products():
    plan = plan_for(128, 128, 16384)
    assert plan.splits > 4
    assert plan_for(128, 128, 64).splits == 1


def test_a_kernel_is_kept_for_all_sizes_of_a_kind():
    with on_emulator():
        ops.gemm(whole(0, (40, 64), np.float16), whole(1, (64, 40), np.float16))
        before = kernels._executor.cache_info().currsize, gemm_sm90_calls._executor.cache_info().currsize
        ops.gemm(whole(0, (56, 32), np.float16), whole(1, (32, 48), np.float16))
        assert (kernels._executor.cache_info().currsize, gemm_sm90_calls._executor.cache_info().currsize) == before


def test_bytes_in_another_order_are_moved_first():
    a, b = whole(0, (64, 64), np.int8), whole(1, (64, 64), np.int8)
    with on_emulator(), observe() as reports:
        ops.gemm(a, b)
    assert [report.kernel for report in reports] == ["copy_transpose_kernel", "gemm_sm90_kernel"]


# PyTorch


def test_gemm_gradients():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    b = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ops.gemm, (a, b))
    assert torch.autograd.gradgradcheck(ops.gemm, (a, b))
    with on_emulator():
        found = torch.autograd.grad(ops.gemm(a, b).pow(2).sum(), (a, b))
    torch.testing.assert_close(found, torch.autograd.grad((a @ b).pow(2).sum(), (a, b)))


def test_gemm_compile():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b = torch.randn(3, 5, requires_grad=True), torch.randn(2, 5, 4, requires_grad=True)
    compiled = torch.compile(ops.gemm, fullgraph=True, backend="aot_eager")
    grads = [torch.autograd.grad(function(a, b).pow(2).sum(), (a, b)) for function in (compiled, torch.matmul)]
    torch.testing.assert_close(*grads)
    arguments = torch.empty(3, 4), a.detach(), b.detach()[0]
    results = torch.library.opcheck(torch.ops.tilewright._gemm.default, arguments)
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (1, 2)], ids=str)
def test_gemm_vmap(dims):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b = torch.randn(3, 5), torch.randn(5, 4)
    a = a if dims[0] is None else torch.stack([a, a + 1, a * 2], dims[0])
    b = b if dims[1] is None else torch.stack([b, b + 1, b * 2], dims[1])
    wanted = torch.vmap(torch.matmul, in_dims=dims)(a, b)
    torch.testing.assert_close(torch.vmap(ops.gemm, in_dims=dims)(a, b), wanted)


def test_gemm_on_the_emulator_takes_tensors():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b = torch.randint(-2, 3, (40, 24)).bfloat16(), torch.randint(-2, 3, (24, 16)).bfloat16()
    with on_emulator():
        found = ops.gemm(a, b)
    assert torch.equal(found, (a.double() @ b.double()).bfloat16())


def test_gemm_errors():
    x = np.ones((2, 3), np.float32)
    for arguments, message in (
        ((x, x), r"a needs as many columns as b has rows[\s\S]*\(\.\.\., M, K\)"),
        ((x, x.T.astype(np.float16)), "a and b have different dtypes"),
        ((x.astype(np.int64), x), "a has dtype int64"),
        ((x[0], x), "a needs at least two dimensions"),
        ((np.ones((2, 1, 1)), np.ones((3, 1, 1))), "the batches do not broadcast"),
        ((x, x.T, None, np.ones((3, 3), np.float32)), r"out has another shape than a · b[\s\S]*leave out="),
        ((x, x.T, None, np.ones((2, 2), np.int32)), "out has dtype int32"),
    ):
        with pytest.raises(ValueError, match=f"gemm: {message}"):
            ops.gemm(*arguments)
    with pytest.raises(ValueError, match="gemm: there is no argument bias"):
        ops.gemm(x, x.T, bias=x)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(ValueError, match="expected all tensors to be on the same device"):
        ops.gemm(torch.ones(2, 3), x.T)
    a = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(ValueError, match="a result in out= has no gradient"):
        ops.gemm(a, a.T, out=torch.empty(2, 2))


# Epilogues; tests/lib/epilogue/test_gemm_rows.py has those of EVT's tests


def scaled(accum, C, alpha, bias):
    F = alpha * accum
    total = F + C
    peak = max(total, dim=2)
    D = relu(total) + bias  # noqa: F821
    return D, F, peak


def check_scaled(found, a, b, C, alpha, bias, torch):
    total = alpha * (a.double() @ b.double()) + C
    assert torch.equal(found["D"], (total.relu() + bias).to(a.dtype))
    assert torch.equal(found["F"], (total - C).to(a.dtype))
    assert torch.equal(found["peak"], total.amax(1, keepdim=True).float())
    assert list(found) == ["D", "F", "peak"]


def tensors(torch, m=40, n=24, k=16):
    shapes = ((m, k), (k, n), (m, n))
    return *(torch.randint(-2, 3, shape).half() for shape in shapes), torch.randint(-2, 3, (n,)).float()


def test_gemm_with_an_epilogue_correctness():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b, C, bias = tensors(torch)
    check_scaled(ops.gemm(a, b, scaled, C=C, alpha=2.0, bias=bias), a, b, C, 2.0, bias, torch)  # the reference
    with on_emulator():
        check_scaled(ops.gemm(a, b, scaled, C=C, alpha=2.0, bias=bias), a, b, C, 2.0, bias, torch)
        out = torch.empty(40, 24)
        assert ops.gemm(a, b, lambda accum, bias: accum + bias, out=out, bias=bias) is out
        assert torch.equal(out.double(), a.double() @ b.double() + bias)
        arrays = ops.gemm(a.numpy(), b.numpy(), lambda accum: accum * 0.5)
        np.testing.assert_array_equal(arrays, (a.double() @ b.double() / 2).half().numpy())


def test_gemm_with_an_epilogue_compile():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def call(a, b, C, bias, factor):
        return ops.gemm(a, b, scaled, C=C, alpha=factor, bias=bias)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    for m in (40, 48, 56):  # from the second on with symbols for sizes
        a, b, C, bias = tensors(torch, m)
        check_scaled(compiled(a, b, C, bias, 2.0), a, b, C, 2.0, bias, torch)

    def into(a, b, out):
        ops.gemm(a, b, lambda accum: accum + 1.0, out=out)
        return out * 2

    out = torch.empty(40, 24)
    a, b, _, _ = tensors(torch)
    found = torch.compile(into, fullgraph=True, backend="aot_eager")(a, b, out)
    assert torch.equal(out.double(), a.double() @ b.double() + 1) and torch.equal(found, 2 * out)
    names = ([], [], [], [], [])
    arguments = (a, b, *names, key_of(lambda accum: accum * 2.0))
    assert set(torch.library.opcheck(torch.ops.tilewright._gemm_fused.default, arguments).values()) == {"SUCCESS"}


def with_mask(accum, C, kept):
    F, mask = relu(accum + C, with_mask=True)  # noqa: F821
    return {"D": F * kept, "mask": mask}


@pytest.mark.parametrize("emulated", [False, True])
def test_masks_of_bits_behind_a_product_compile(emulated):
    """Masks of bits as operands and outputs, made inside of what is compiled and given to it."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def call(a, b, C, kept, mask):
        return ops.gemm(a, b, with_mask, C=C, kept=kept, mask=Bits(mask, C.shape[-1]))["D"]

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    with on_emulator() if emulated else contextlib.nullcontext():
        for m, n in ((40, 24), (48, 40), (56, 33)):  # from the second on with symbols for sizes
            a, b, C, _ = tensors(torch, m, n)
            chosen = np.random.default_rng(m).integers(0, 2, (m, n)).astype(bool)
            kept = Bits(torch.from_numpy(np.packbits(chosen, axis=-1, bitorder="little")), n)
            mask = torch.full((m, -(-n // 8)), 255, dtype=torch.uint8)
            found = compiled(a, b, C, kept, mask)
            exact = a.double() @ b.double() + C.double()
            np.testing.assert_array_equal(found.double().numpy(), np.maximum(exact.numpy(), 0) * chosen)
            np.testing.assert_array_equal(np.asarray(Bits(mask, n)), exact.numpy() > 0)


def test_an_epilogue_is_known_by_its_code_and_what_it_captures():
    def make(factor):
        return lambda accum: accum * factor

    assert key_of(make(2.0)) == key_of(make(2.0)) != key_of(make(3.0))
    x = np.eye(8, dtype=np.float32)
    for factor in (2.0, 3.0):
        np.testing.assert_array_equal(ops.gemm(x, x, make(factor)), factor * x)
        partial = functools.partial(lambda accum, by: accum * by, by=factor)
        np.testing.assert_array_equal(ops.gemm(x, x, partial), factor * x)
        np.testing.assert_array_equal(ops.gemm(x, x, f"lambda accum: accum * {factor}"), factor * x)


def test_an_epilogue_takes_no_more_shared_memory_than_there_is():
    def columns(accum):
        made = {"D": accum}
        for place in range(12):
            made[f"sum_{place}"] = sum(accum * float(place + 2), dim=1)
        return made

    a = np.ones((512, 512), np.float16)
    given = {"D": a, **{f"sum_{place}": np.ones((1, 512), np.float32) for place in range(12)}}
    dag = trace(columns, {"accum": np.ones((512, 512), np.float32), **given})
    plans = [replace(plan_for(4096, 4096, 4096), stages=stages) for stages in (3, 2)]
    starts = dict.fromkeys(given, 0)
    plan, fusion = fitting(dag, starts, plans, 227 << 10)
    assert plan.stages == 2 and fusion.shared_bytes <= 227 << 10
    message = "The epilogue consumes too much shared memory. No valid tile description is found in the generator."
    with pytest.raises(EpilogueError, match=message):
        fitting(dag, starts, plans, 163 << 10)


def test_quantised_and_narrow_outputs():
    a, b = whole(0, (40, 32), np.int8), whole(1, (32, 48), np.int8)
    exact = a.astype(np.int32) @ b.astype(np.int32)
    narrow, scaled_down = np.empty((40, 48), np.int8), np.empty((40, 48), ml_dtypes.float8_e4m3fn)
    with on_emulator():
        ops.gemm(a, b, lambda accum, scale: quantize(accum, scale, "int8"), out=narrow, scale=20.0)  # noqa: F821
        ops.gemm(a, b, lambda accum, scale: accum * scale, out=scaled_down, scale=0.5)
    np.testing.assert_array_equal(narrow, np.clip(exact * 20, -128, 127))
    np.testing.assert_array_equal(
        scaled_down.astype(np.float32), (exact / 2).astype(scaled_down.dtype).astype(np.float32)
    )


def test_top_k_with_softmax_needs_whole_rows():
    a, b = whole(0, (24, 16), np.float32), whole(1, (16, 120), np.float32)
    with on_emulator():
        found = ops.gemm(a, b, lambda accum: topk_softmax(accum, 3))  # noqa: F821
        with pytest.raises(EpilogueError, match="A function of whole rows does not fit the tiles of a product"):
            ops.gemm(a, whole(1, (16, 300), np.float32), lambda accum: topk_softmax(accum, 3))  # noqa: F821
    exact = wide(a) @ wide(b)
    kept = np.argsort(np.argsort(-exact, axis=-1, kind="stable"), axis=-1, kind="stable") < 3
    powers = np.where(kept, np.exp(exact - exact.max(-1, keepdims=True)), 0)
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), rtol=1e-5)


def test_an_epilogue_is_known_by_what_its_helpers_capture():
    def scaling(factor):
        def act(x):
            return x * factor

        return lambda accum: act(accum)

    def totalling(table):
        def total(n):
            return table[1000 + n] + total(n - 1) if n else table[1000]

        return lambda accum: accum * float(total(2))

    x = np.eye(8, dtype=np.float32)
    tables = [np.where(np.arange(3000) == 1001, factor, 0.0) for factor in (0.5, 0.25)]
    assert repr(tables[0]) == repr(tables[1])  # NumPy's text leaves out what differs
    for factor, table in zip((0.5, 0.25), tables, strict=True):
        np.testing.assert_array_equal(ops.gemm(x, x, scaling(factor)), factor * x)
        np.testing.assert_array_equal(ops.gemm(x, x, totalling(table)), factor * x)
        assert key_of(totalling(table)) == key_of(totalling(table.copy()))


def test_an_epilogue_is_known_by_the_tensors_that_it_captures():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def picking(table):
        return lambda accum: accum * float(table[1000])

    for dtype in (torch.float32, torch.bfloat16):
        zeros = torch.zeros(3000, dtype=dtype)
        ones = zeros.clone().index_fill_(0, torch.tensor([1000]), 1)
        assert repr(zeros) == repr(ones)
        assert key_of(picking(zeros)) != key_of(picking(ones)) == key_of(picking(ones.clone()))


def test_gemm_with_an_epilogue_errors():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="gemm: with an epilogue, the batch has one dimension"):
        ops.gemm(np.ones((2, 2, 2, 3)), np.ones((3, 2)), lambda accum: accum)
    with pytest.raises(EpilogueError, match="Example input for bias is not provided"):
        ops.gemm(x, x.T, lambda accum, bias: accum + bias)
    with pytest.raises(EpilogueError, match="Dimension mismatch"):
        ops.gemm(x, x.T, lambda accum, bias: accum + bias, bias=np.ones(3, np.float32))
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(ValueError, match=r"gemm: operand bias lies elsewhere than a[\s\S]*where a and b lie"):
        ops.gemm(torch.ones(2, 3), torch.ones(3, 2), lambda accum, bias: accum + bias, bias=x[0, :2])
    a = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(ValueError, match="gemm: an epilogue has no gradient"):
        ops.gemm(a, a.T, lambda accum: accum * 2.0)
