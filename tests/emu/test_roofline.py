"""Estimates worked out by hand from the counters of small launches and the peak rates of the cards."""

import numpy as np
import pytest

from tests.emu import faults
from tests.emu.test_counters import kernel
from tilewright.base.errors import ArgumentError
from tilewright.emulate import run_ptx
from tilewright.targets.emu.ptx import parse
from tilewright.targets.emu.work import unit_of


def limits(report, card):
    return {limit.name: limit for limit in report.roofline(card).limits}


def test_a_stream_of_loads_is_bound_by_memory():
    n = 256 * 64
    report = run_ptx(kernel("global", 1, "v4.b32").replace("%tid.x", "%ctaid.x", 0), "k", 1, 64,
                     [np.zeros(n, np.uint8)], counters=True)  # fmt: skip
    found = limits(report, "H100")
    assert report.distinct_sectors == 64 * 16 // 32
    assert found["global memory"].amount == 64 * 16
    assert found["global memory"].seconds == pytest.approx(1024 / 3.35e12)
    # One block: one multiprocessor of 132. It issues 128 thread-instructions a clock of 1.98 GHz.
    assert found["instruction issue"].seconds == pytest.approx(report.instructions / (128 * 1.98e9))
    assert found["L1 and shared memory"].seconds == pytest.approx(1024 / (128 * 1.98e9))


def test_bank_conflicts_take_time():
    report = run_ptx(kernel("shared", 32), "k", 3, 64, [np.zeros(16, np.uint8)], counters=True)
    found = limits(report, "A100 40GB")["L1 and shared memory"]
    # 64 wavefronts a block, three blocks on three multiprocessors, a wavefront a clock of 1.41 GHz.
    assert report.wavefronts == 3 * 64 and found.seconds == pytest.approx(64 / 1.41e9)
    assert report.roofline("A100 40GB").binding is not None
    assert report.roofline("A100 40GB").binding.name == "L1 and shared memory"


@pytest.mark.parametrize(("name", "work"), [
    ("warp_product", {"tensor f16": 2 * 16 * 8 * 16}),
    ("group_product", {"tensor f16": 2 * 64 * 8 * 16}),
])  # fmt: skip
def test_products_count_the_operations_of_their_shape(name, work):
    case = next(case for case in faults.CASES if case.name == name)
    args, _ = case.make()
    report = run_ptx(faults.PTX, name, case.grid, case.block, args, counters=True)
    assert {unit: n for unit, n in report.work.items() if unit.startswith("tensor")} == work
    found = limits(report, "sm_90a")["tensor f16"]
    assert found.seconds == pytest.approx(work["tensor f16"] / (989.4e12 / 132))


def test_a_sector_that_many_touch_crosses_once():
    report = run_ptx(kernel("global", 0), "k", 5, 64, [np.zeros(64, np.uint8)], counters=True)
    assert (report.sectors, report.distinct_sectors) == (5 * 2, 1)
    assert limits(report, "B200")["global memory"].amount == 32


def test_bulk_copies_count():
    case = next(case for case in faults.CASES if case.name == "bulk_ring")
    args, _ = case.make()
    report = run_ptx(faults.PTX, case.name, case.grid, case.block, args, counters=True)
    assert report.distinct_sectors == 2 * args[0].nbytes // 32


@pytest.mark.parametrize(("text", "unit", "amount"), [
    ("fma.rn.f32 %f1, %f2, %f3, %f4;", "f32", 2),
    ("add.f64 %d1, %d2, %d3;", "f64", 1),
    ("ex2.approx.ftz.f32 %f1, %f2;", "special", 1),
    ("add.s32 %r1, %r2, %r3;", "", 0),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {}, {}, {}, {};", "tensor f16", 2 * 16 * 8 * 16 / 32),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {}, {}, {}, {};", "tensor tf32", 2 * 16 * 8 * 8 / 32),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {}, {}, {}, {};", "tensor f16", 16 * 8 * 32 / 32),
    ("wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e5m2 {}, %d1, %d2;", "tensor f8", 2 * 64 * 128 * 32 / 128),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.u8.s32 {}, {}, {}, {};", "tensor i8", 256),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.tf32.tf32 {}, %d1, %d2;", "tensor tf32", 64 * 8 * 16 / 128),
    ("wgmma.fence.sync.aligned;", "", 0),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {}, {}, {}, {};", "tensor f16", 2 * 16**3 / 32),
    ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {}, [%d1];", "", 0),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {}, {}, {}, {};", "tensor i8", 2 * 16**3 / 32),
])  # fmt: skip
def test_work_of_an_instruction(text, unit, amount):
    regs = ".reg .f32 %f<5>; .reg .b32 %r<5>; .reg .b64 %d<5>;"
    text = text.replace("{}", "{%r1, %r2}")
    module = parse(f".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{{ {regs} {text} ret; }}\n")
    assert unit_of(module.functions["k"].body[0]) == (unit, amount)


def test_it_says_that_it_is_an_estimate():
    report = run_ptx(kernel("global", 1), "k", 1, 64, [np.zeros(256, np.uint8)], counters=True)
    text = str(report.roofline("L40"))
    assert text.splitlines()[0].startswith("k on L40: ") and "an estimate" in text and "not a measurement" in text
    assert [limit.seconds for limit in report.roofline("L40").limits] == sorted(
        (limit.seconds for limit in report.roofline("L40").limits), reverse=True
    )


def test_what_cannot_be_estimated():
    plain = run_ptx(kernel("global", 1), "k", 1, 64, [np.zeros(256, np.uint8)])
    with pytest.raises(ArgumentError, match="counted no memory traffic") as caught:
        plain.roofline("H100")
    assert "counters=True" in str(caught.value)
    counted = run_ptx(kernel("global", 1), "k", 1, 64, [np.zeros(256, np.uint8)], counters=True)
    with pytest.raises(ArgumentError, match="'TPU'") as caught:
        counted.roofline("TPU")
    assert "H100 SXM" in str(caught.value)
    counted.work["tensor f8"] = 1.0
    with pytest.raises(ArgumentError, match="A100 80GB has no rate for tensor f8"):
        counted.roofline("A100")
