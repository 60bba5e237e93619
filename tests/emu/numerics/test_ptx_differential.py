"""The emulator against a GPU: every kernel of tests/emu/data/cuda and written, from the same PTX and operands.

reference.npz holds what `scripts/record_emu_reference.py` recorded. Results agree bit for bit, approximate functions
within twice the error that the PTX ISA allows them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emu import kernels
from tilewright.targets.emu import Options, Program, launch, load

KERNELS = kernels.kernels()
REFERENCE = kernels.FOLDER / "reference.npz"


@cache
def program(file: Path) -> Program:
    return load(file.read_text())


@cache
def reference() -> dict[str, Any]:
    with np.load(REFERENCE) as recorded:
        return dict(recorded)


def emulate(kernel: kernels.Kernel, **options: Any) -> Any:
    """The output of a kernel; any finding of the checks is an error."""
    arrays = [*kernels.operands(kernel), kernels.output(kernel)]
    parameters = [np.uint64(array.ctypes.data).tobytes() for array in arrays] + [np.int32(kernel.threads).tobytes()]
    buffers = [(array.ctypes.data, array.nbytes, array is arrays[-1]) for array in arrays]
    loaded = program(kernel.ptx)
    loaded.reset()
    launch(
        loaded,
        kernel.name,
        kernel.grid,
        kernel.block,
        parameters,
        cluster=kernel.cluster,
        smem=kernel.smem,
        buffers=buffers,
        options=Options(**options),
    )
    return arrays[-1]


IDS = [kernel.name for kernel in KERNELS]


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_agrees_with_the_gpu(kernel: kernels.Kernel) -> None:
    assert not kernels.disagreement(kernel, emulate(kernel), reference()[kernel.name])


def test_every_kernel_is_recorded() -> None:
    """Of those of CUDA C++ and those written by hand; scripts/record_emu_reference.py --missing records new ones."""
    assert {kernel.name for kernel in KERNELS} == set(reference()) - {"card"}
    assert [sum(kernel.folder == folder for kernel in KERNELS) for folder in (kernels.FOLDER, kernels.WRITTEN)] == [
        147,
        66,
    ]


@pytest.mark.parametrize("name", ["bit_wide_fields", "video_scalars"])
def test_what_is_left_out_is_little_and_differs(name: str) -> None:
    """Otherwise the bounds of `Kernel.within` have become too tight, or needless."""
    (kernel,) = (row for row in KERNELS if row.name == name)
    wanted = reference()[kernel.name]
    taken, differs = kernels.comparable(kernel), emulate(kernel) != wanted
    assert taken.mean() > 0.75
    assert not differs[taken].any()
    for result in kernel.within:
        mine = np.s_[int(result) * kernel.threads : (int(result) + 1) * kernel.threads]
        assert differs[mine].any()


def test_only_these_are_left_out() -> None:
    assert {kernel.name for kernel in KERNELS if kernel.within} == {"bit_wide_fields", "video_scalars"}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_agrees_in_any_order_of_warps(kernel: kernels.Kernel) -> None:
    for seed in (1, 2, 3):
        assert not kernels.disagreement(kernel, emulate(kernel, seed=seed), reference()[kernel.name])


def test_recording_is_small_and_names_its_card() -> None:
    assert REFERENCE.stat().st_size <= 4_000_000
    assert str(reference()["card"])
