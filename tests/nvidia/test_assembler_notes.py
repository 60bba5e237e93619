"""What the assembler does to products of warpgroups is told at the user's line; our own kernels give it no reason."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.test_gemm_sm90 import plan_like
from tilewright import Float16, Float32
from tilewright.cute.nvgpu import warpgroup
from tilewright.kernels import gemm as gemm_kernels
from tilewright.kernels.gemm_sm90_plans import Sm90Plan
from tilewright.targets.nvidia.backend.assembler_notes import assembler_notes
from tilewright.targets.nvidia.toolkit.assemble import assemble
from tilewright.utils import LayoutEnum, sm90

arch = cute.arch
FILE = Path(__file__)


@cute.kernel
def products(d: cute.Tensor, mma: cute.TiledMma, slip: cutlass.Constexpr):
    layout = sm90.make_smem_layout(Float16, LayoutEnum.ROW_MAJOR, (64, 64))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, layout.inner)
    part = mma.get_slice(arch.thread_idx()[0])
    sums = cute.make_rmem_tensor(mma.partition_shape_C((64, 64)), Float32)
    left, right = mma.make_fragment_A(part.partition_A(tile)), mma.make_fragment_B(part.partition_B(tile))
    mma.set(warpgroup.Field.ACCUMULATE, False)
    warpgroup.fence()
    for k in cutlass.range_constexpr(4):
        cute.gemm(mma, sums, left[None, None, k], right[None, None, k], sums)  # prints
        mma.set(warpgroup.Field.ACCUMULATE, True)
        if cutlass.const_expr(slip == "prints"):
            cute.printf("%d", arch.thread_idx()[0])  # prints
    warpgroup.commit_group()  # prints
    warpgroup.wait_group(0)
    cute.autovec_copy(sums, part.partition_C(d))


@cute.jit
def launch(d: cute.Tensor, slip: cutlass.Constexpr):
    op = warpgroup.MmaF16BF16Op(Float16, Float32, (64, 64, 16))
    products(d, cute.make_tiled_mma(op), slip).launch(grid=1, block=128)


def _report(slip):
    d = cute.runtime.from_dlpack(np.zeros((64, 64), np.float32))
    return cute.compile(launch, d, slip, target="emu").report()


def test_products_that_the_assembler_serialises_are_a_warning():
    report = _report("prints")
    (warning,) = report.kernels[0].warnings
    assert "wgmma.mma_async instructions are serialized" in warning.text and "C75" in warning.text
    lines = FILE.read_text().splitlines()
    assert warning.file == str(FILE) and lines[warning.line - 1].endswith("# prints"), warning
    assert f"warning       {warning.text}" in str(report)


def test_products_side_by_side_give_none():
    assert _report("").kernels[0].warnings == ()


PTX = """.file 1 "kernels.py"
.loc 1 7 0
add
.loc 1 9 0
wgmma
"""
INJECTED = "(C7517) wgmma.wait_group is injected in around line 5 by compiler to allow use of registers in function 'k'"
IGNORED = "(C7508) 'setmaxnreg' ignored; unable to determine register count at entry."


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (f"ptxas info    : {INJECTED}", [("kernels.py", 9, "put warpgroup.wait_group before the line that uses")]),
        (f"ptxas info    : {INJECTED}\nptxas info    : {INJECTED}", [("kernels.py", 9, "wait_group is injected")]),
        (f"ptxas info    : {INJECTED.replace('line 5', 'line 0')}", [("", 0, "wait_group is injected")]),
        (
            f"ptxas info    : {INJECTED.replace('(C7517) wgmma.wait_group is', '(C7599) a thing')}",
            [("kernels.py", 9, "leave the sums")],
        ),
        (f"ptxas info    : {INJECTED.replace(chr(39) + 'k', chr(39) + 'other')}", []),
        (f"ptxas info    : {IGNORED}", [("", 0, "min_blocks_per_mp=1) says how many registers")]),
        ("ptxas info    : Used 58 registers, 0 bytes spill stores\n(C7001) something else", []),
        ("", []),
    ],
)
def test_notes_of_a_log(log, found):
    notes = list(assembler_notes(log, "k", PTX))
    assert [(note.file, note.line) for note in notes] == [(file, line) for file, line, _ in found]
    assert all(words in note.text for note, (_, _, words) in zip(notes, found, strict=True))


@cute.kernel
def gives_up(d: cute.Tensor):
    if arch.warp_idx() < 4:
        arch.setmaxregister_decrease(40)
    else:
        arch.setmaxregister_increase(232)
    d[arch.thread_idx()[0], 0] = Float32(1)


@cute.jit
def launch_gives_up(d: cute.Tensor):
    gives_up(d).launch(grid=1, block=256, min_blocks_per_mp=1)


@pytest.mark.parametrize("tool", ["nvJitLink", "ptxas"])
def test_registers_move_between_warpgroups(tool):
    """By default ptxas assembles, which keeps `setmaxnreg`; nvJitLink does not, and that is told."""
    d = cute.runtime.from_dlpack(np.zeros((256, 1), np.float32))
    executor = cute.compile(launch_gives_up, d, target="emu")
    if tool == "ptxas":
        assert executor.stages["sass"].count("USETMAXREG") == 2
        assert executor.report().kernels[0].warnings == ()
        return
    log = assemble(executor.stages["ptx"], "sm_90a", use_ptxas=False).log
    (note,) = assembler_notes(log, "gives_up", executor.stages["ptx"])
    assert "'setmaxnreg' ignored" in note.text and "drop setmaxnreg" in note.text


BF16 = Sm90Plan(cute.BFloat16, (True, False), cute.BFloat16, True, (128, 128, 64))
F8 = Sm90Plan(cute.Float8E4M3FN, (True, True), cute.Float32, True, (128, 128, 128))
KINDS = {
    "bf16": BF16, "f8": F8, "f32": Sm90Plan(cute.Float32, (True, True), cute.Float32, True, (128, 128, 32)),
    "i8": Sm90Plan(cute.Int8, (True, True), cute.Int32, False, (128, 128, 128)),
    "turned": Sm90Plan(cute.Float16, (False, True), cute.Float16, False, (128, 128, 64)),
}  # fmt: skip
PLANS = [
    {"tile": (128, 128), "pingpong": True, "cluster": (2, 1), "stages": 4}, {"tile": (128, 256), "stages": 4},
    {"tile": (256, 128), "stages": 3, "cluster": (1, 2)}, {"tile": (64, 64), "pingpong": True, "splits": 2},
    {"tile": (64, 256), "pingpong": True}, {"tile": (128, 64)}, {"tile": (256, 96)},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kernel_of_gemm_gives_one(kind, plan):
    executor = gemm_kernels.gemm_sm90_calls.compiled(plan_like(KINDS[kind], **plan), None, 2, "emu", "")
    assert [kernel.warnings for kernel in executor.report().kernels] == [()]
