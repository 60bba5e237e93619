"""`gemm_sm90` on the emulator, with all checks: types, orders, schedules, clusters, shared products, epilogues, rule.

Small integers are exact in every type and in every order of adding.
"""

import time

import ml_dtypes
import numpy as np
import pytest

from tests.op_cases import on_emulator, wide
from tilewright import Float8E4M3FN, cute, ops
from tilewright.base import settings
from tilewright.emulate import observe
from tilewright.kernels import gemm as kernels
from tilewright.kernels import gemm_moves, gemm_sm90_plans, views
from tilewright.kernels.gemm_fusion import plain
from tilewright.kernels.gemm_sm90_plans import Kind, Sm90Plan, sm90_plans
from tilewright.ops import gemm_fused

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
F16 = Kind(cute.Float16, (True, True), cute.Float16, True)
SHARED_BYTES = 227 << 10


def whole(seed, shape, dtype):
    """Small integers."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


def turned(matrix):
    """The same elements with the other mode contiguous."""
    return np.ascontiguousarray(matrix.swapaxes(-1, -2)).swapaxes(-1, -2)


def check(a, b, out, plan):
    """The product by a plan; what it is like, its types and orders, is taken from the rule's."""
    chosen = kernels.plan_of(out, a, b)
    assert isinstance(chosen, Sm90Plan)
    kernels.gemm(out, a, b, plan=plan_like(chosen, **plan))
    np.testing.assert_array_equal(wide(out), wide((wide(a) @ wide(b)).astype(out.dtype)))


def plan_like(chosen, tile, **options):
    k = 1024 // chosen.dtype.width
    given = {"cluster": (1, 1), "stages": 3, "pingpong": False, "splits": 1, "group": 2, **options}
    return Sm90Plan(chosen.dtype, chosen.k_major, chosen.result, chosen.n_major, (*tile, k), **given)


@pytest.mark.parametrize(
    "plan",
    [
        {"tile": (128, 64)},
        {"tile": (64, 128), "pingpong": True, "stages": 2},
        {"tile": (128, 192), "cluster": (1, 2)},
        {"tile": (64, 64), "pingpong": True, "cluster": (1, 2), "stages": 5},
        {"tile": (128, 64), "cluster": (2, 2)},
        {"tile": (256, 64)},
        {"tile": (64, 64), "pingpong": True, "splits": 3},
        {"tile": (128, 64), "splits": 2, "cluster": (2, 1)},
    ],
    ids=str,
)
def test_gemm_sm90_correctness_of_plans(plan):
    check(whole(0, (200, 328), np.float16), whole(1, (328, 136), np.float16), np.empty((200, 136), np.float16), plan)


@pytest.mark.parametrize("pingpong", [False, True])
def test_gemm_sm90_correctness_of_a_block_with_many_tiles(pingpong, monkeypatch):
    """Two clusters go through six tiles each, so that buffers are used again across tiles and batches."""
    monkeypatch.setattr(kernels.gemm_sm90_calls, "resident_clusters", lambda gpu, size: 2)
    a, b = whole(0, (2, 256, 136), np.float16), whole(1, (2, 136, 192), np.float16)
    tile = (64, 64) if pingpong else (128, 64)
    check(a, b, np.empty((2, 256, 192), np.float16), {"tile": tile, "pingpong": pingpong})


@pytest.mark.parametrize("order", ["kn", "mk", "mn"])
@pytest.mark.parametrize("result", ["n", "m"])
def test_gemm_sm90_correctness_of_orders(order, result):
    a, b = whole(0, (72, 80), BF16), whole(1, (80, 48), BF16)
    out = np.empty((72, 48), BF16)
    a, b = turned(a) if order[0] == "m" else a, turned(b) if order[1] == "k" else b
    check(a, b, turned(out) if result == "m" else out, {"tile": (64, 64), "pingpong": True})


@pytest.mark.parametrize(
    ("dtype", "result"),
    [(BF16, np.float32), (np.float32, np.float32), (np.float32, BF16), (np.int8, np.int32), (E4M3, BF16)],
    ids=lambda dtype: np.dtype(dtype).name,
)
def test_gemm_sm90_correctness_of_types(dtype, result):
    a, b = whole(0, (72, 80), dtype), whole(1, (48, 80), dtype).T
    check(a, b, np.empty((72, 48), result), {"tile": (64, 64), "pingpong": True})


def test_gemm_sm90_correctness_of_a_matrix_that_a_batch_shares():
    a, b = whole(0, (72, 80), np.float16), whole(1, (3, 80, 48), np.float16)
    check(a, b, np.empty((3, 72, 48), np.float16), {"tile": (64, 64), "pingpong": True})


@pytest.mark.parametrize("dtype", [E4M3, ml_dtypes.float8_e5m2], ids=lambda dtype: np.dtype(dtype).name)
def test_products_of_8_bit_floats_of_any_strides(dtype):
    """They have no other kernel: what the copy engine does not take is copied."""
    a, b = whole(0, (33, 35), dtype), whole(1, (35, 20), dtype)
    with on_emulator():
        found = ops.gemm(a, b)
        scaled = ops.gemm(a, b, lambda accum, scale: accum * scale, scale=0.5)
    assert found.dtype == BF16 and scaled.dtype == np.float32
    np.testing.assert_array_equal(wide(found), wide(a) @ wide(b))
    np.testing.assert_array_equal(wide(scaled), wide(a) @ wide(b) / 2)
    np.testing.assert_array_equal(wide(ops.gemm(a, b)), wide(a) @ wide(b))  # the reference


def test_8_bit_floats_need_wgmma():
    a = whole(0, (16, 16), E4M3)
    with (
        on_emulator(),
        settings.scope(arch="sm_80"),
        pytest.raises(ValueError, match="8-bit floats need wgmma of sm_90"),
    ):
        ops.gemm(a, a.T)


def test_long_products_are_worth_a_copy_of_their_operands(monkeypatch):
    monkeypatch.setattr(gemm_moves, "_PAYS", 0)
    a, b = whole(0, (40, 67), np.float16), turned(whole(1, (67, 51), np.float16))
    out = np.empty((40, 51), np.float16)  # whose rows TMA cannot store
    with on_emulator(), observe() as reports:
        ops.gemm(a, b, out=out)
    assert reports[-1].kernel == "gemm_sm90_kernel" and len(reports) == 3
    np.testing.assert_array_equal(wide(out), wide(a) @ wide(b))


@pytest.mark.parametrize("offset", [1, 8], ids=["an odd address", "strides of 8 bytes"])
def test_what_the_copy_engine_cannot_take_goes_to_mma_sync(offset):
    a = whole(0, (40, 68), np.float16)[:, :64] if offset == 8 else whole(0, (40, 72), np.float16)[:, 1:65]
    b = whole(1, (64, 48), np.float16)
    with on_emulator(), observe() as reports:
        found = ops.gemm(a, b)
    assert [report.kernel for report in reports] == ["gemm_sm80_kernel"]
    np.testing.assert_array_equal(wide(found), wide(a) @ wide(b))


def test_other_chips_take_mma_sync():
    a, b = whole(0, (64, 64), np.float16), whole(1, (64, 64), np.float16)
    assert isinstance(kernels.plan_of(a, a, b), Sm90Plan)
    with settings.scope(arch="sm_80"):
        assert not isinstance(kernels.plan_of(a, a, b), Sm90Plan)


@pytest.mark.slow
def test_a_product_with_all_checks_takes_seconds():
    """Time of the processor, which other work changes little; `python -m bench emulator` measures seconds."""
    a, b = whole(0, (512, 256), np.float16), whole(1, (256, 512), np.float16)
    out = np.empty((512, 512), np.float16)
    with on_emulator():
        ops.gemm(a, b, out=out)
        start = time.process_time()
        ops.gemm(a, b, out=out)
        assert time.process_time() - start < 6
    np.testing.assert_array_equal(wide(out), wide(a) @ wide(b))


# Parts along K


@pytest.mark.parametrize(
    ("dtype", "result"),
    [(BF16, BF16), (np.float16, np.float32), (np.int8, np.int32), (E4M3, BF16), (np.float32, np.float32)],
    ids=lambda dtype: np.dtype(dtype).name,
)
@pytest.mark.parametrize("parts", [4, 16])
def test_gemm_sm90_correctness_of_parts_that_a_second_kernel_adds(dtype, result, parts):
    """The last step of a part is half empty: it ends where the next part begins."""
    deep = parts * 160
    a, b = whole(0, (72, deep), dtype), whole(1, (40, deep), dtype).T
    out = np.empty((72, 56), result)[:, :40]
    with observe() as reports:
        check(a, b, out, {"tile": (64, 64), "pingpong": True, "parts": parts})
    assert [report.kernel for report in reports][-2:] == ["gemm_sm90_kernel", "add_parts_kernel"]


@pytest.mark.parametrize("order", ["kn", "mn", "mk"])
def test_gemm_sm90_correctness_of_parts_of_orders(order):
    a, b = whole(0, (64, 640), BF16), whole(1, (640, 48), BF16)
    a, b = turned(a) if order[0] == "m" else a, turned(b) if order[1] == "k" else b
    check(a, b, np.empty((64, 48), BF16), {"tile": (128, 64), "parts": 4})


def test_parts_are_in_one_order_and_need_whole_vectors():
    plans = sm90_plans(F16, (128, 128, 16384, 1), 132, SHARED_BYTES)
    assert {plan.parts for plan in plans} == {1, 4, 8, 16, 32, 64}
    for extents in ((128, 130, 16384, 1), (128, 128, 16384, 2), (128, 128, 16388, 1)):
        assert {plan.parts for plan in sm90_plans(F16, extents, 132, SHARED_BYTES)} == {1}


# Epilogues


def statistics(accum, C, bias):
    F = accum + C
    peak = max(F, dim=2)
    total = sum(F, dim=1)
    D = relu(F) + bias  # noqa: F821
    return D, F, peak, total


@pytest.mark.parametrize(
    "plan",
    [
        {"tile": (128, 64), "cluster": (2, 1)},
        {"tile": (128, 128), "pingpong": True},
        {"tile": (64, 64), "pingpong": True, "splits": 2},
        {"tile": (128, 192)},
    ],
    ids=str,
)
def test_an_epilogue_behind_gemm_sm90_correctness(plan, monkeypatch):
    a, b = whole(0, (264, 136), np.float16), whole(1, (136, 200), np.float16)
    C, bias = whole(2, (264, 200), np.float16), whole(3, (200,), np.float16)
    monkeypatch.setattr(gemm_fused, "_known", {})
    usual = kernels.fused_plans_of
    monkeypatch.setattr(
        kernels, "fused_plans_of", lambda *given: [plan_like(usual(*given)[0], **plan)]
    )  # fmt: skip
    with on_emulator(), observe() as reports:
        found = ops.gemm(a, b, statistics, C=C, bias=bias)
    assert reports[0].kernel == "gemm_sm90_kernel"
    total = wide(a) @ wide(b) + wide(C)
    np.testing.assert_array_equal(wide(found["D"]), np.maximum(total, 0) + wide(bias))
    np.testing.assert_array_equal(wide(found["F"]), total)
    np.testing.assert_array_equal(wide(found["peak"]).ravel(), total.max(1))
    np.testing.assert_array_equal(wide(found["total"]).ravel(), total.sum(0))


# One order of adding


def test_rows_do_not_depend_on_the_batch_where_it_is_asked_for(monkeypatch):
    """Bit for bit, where few rows would else share their products along K."""
    monkeypatch.setattr(gemm_sm90_plans, "_START", 0)
    monkeypatch.setattr(gemm_sm90_plans, "_EXCHANGE", 0)
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((128, 512)).astype(BF16), generator.standard_normal((512, 64)).astype(BF16)
    assert kernels.plan_of(np.empty((64, 64), np.float32), a[:64], b).splits > 1
    with on_emulator():
        alone, among = np.empty((64, 64), np.float32), np.empty((128, 64), np.float32)
        ops.gemm(a[:64], b, out=alone, batch_invariant=True)
        ops.gemm(a, b, out=among, batch_invariant=True)
    np.testing.assert_array_equal(alone, among[:64])


# The rule


def best(m, n, k, batch=1, **options):
    return sm90_plans(F16, (m, n, k, batch), 132, SHARED_BYTES, **options)[0]


def test_large_products_take_turns_at_large_tiles():
    plan = best(8192, 8192, 8192)
    assert plan.pingpong and plan.tile[0] * plan.tile[1] >= 128 * 128 and plan.splits == 1


def test_few_tiles_share_their_products_unless_rows_must_not_depend_on_that():
    assert best(128, 128, 16384).parts >= 16
    assert best(128, 128, 16384 + 8).splits >= 4  # K has no such parts
    alone = best(128, 128, 16384, splits=False)
    assert (alone.splits, alone.parts) == (1, 1)
    assert (best(128, 128, 64).splits, best(128, 128, 64).parts) == (1, 1)


@pytest.mark.parametrize("kind", [F16, Kind(Float8E4M3FN, (True, True), cute.Float32, True)], ids=str)
def test_every_plan_fits_the_chip(kind):
    for plan in sm90_plans(kind, (512, 512, 4096, 1), 132, SHARED_BYTES):
        assert plan.stages >= 2 and plan.shared_bytes <= SHARED_BYTES
        assert plan.rows % 64 == 0 and plan.rows * plan.tile[1] // 128 <= 192  # sums of a thread


@pytest.mark.parametrize(
    "plan", [{"tile": (128, 128), "pingpong": True, "cluster": (2, 1), "stages": 6}, {"tile": (128, 256), "stages": 4}],
    ids=str,
)  # fmt: skip
def test_the_assembler_neither_serialises_nor_spills(plan, capfd):
    chosen = Sm90Plan(cute.BFloat16, (True, False), cute.BFloat16, True, (128, 128, 64))
    executor = kernels.gemm_sm90_calls.compiled(plan_like(chosen, **plan), None, 2, "emu", "--ptxas-options -v")
    executor.report()
    text = "".join(capfd.readouterr())
    assert "Used" in text and "C75" not in text and "serializ" not in text and "arning" not in text
    assert "0 bytes spill stores, 0 bytes spill loads" in text


@pytest.mark.parametrize("tile", [(128, 192), (128, 128)], ids=str)
def test_epilogues_of_large_tiles_do_not_spill(tile):
    """192 sums of a thread leave no room, unless the warp that copies gives up its registers."""
    plan = plan_like(Sm90Plan(cute.BFloat16, (True, True), None, True, (128, 128, 64)), tile, pingpong=True, stages=4)
    fused = plain(plan, views.Strided((256, 256), (256, 1)), cute.BFloat16, 0)
    report = kernels.gemm_sm90_calls.compiled(plan, fused, 2, "emu").report().kernels[0]
    assert (report.spill_stores, report.spill_loads) == (0, 0) and not report.warnings


def test_the_fastest_of_the_first_plans_is_taken_from_then_on(monkeypatch):
    """`cute.testing.tune` times on the device's clock; here the third plan is declared the fastest."""
    monkeypatch.setattr(
        kernels.testing, "tune", lambda run, params: run(params["plan"][2])() or {"plan": params["plan"][2]}
    )
    a, b = whole(0, (48, 64), np.float16), whole(1, (64, 48), np.float16)
    out = np.empty((48, 48), np.float16)
    best = kernels.tune(out, a, b)
    assert best == kernels.plans_of(out, a, b)[2] != kernels.plan_of(out, a, b)
    monkeypatch.setattr(kernels, "plans_of", None)  # nobody asks the rule again
    out[...] = 0
    kernels.gemm(out, a, b)
    np.testing.assert_array_equal(wide(out), wide(a) @ wide(b))
