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

from tests.emu import kernels, tensor_copies
from tilewright.targets.emu import Options, Program, Report, launch, load, tensormap
from tilewright.targets.emu.fidelity import recorded_forms
from tilewright.targets.emu.image import aligned_bytes

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
    return emulated(kernel, **options)[1]


def emulated(kernel: kernels.Kernel, **options: Any) -> tuple[Report, Any]:
    """The report and the output of a kernel."""
    arrays = [placed(array) for array in (*kernels.operands(kernel), kernels.output(kernel))]
    parameters = [np.uint64(array.ctypes.data).tobytes() for array in arrays] + [np.int32(kernel.threads).tobytes()]
    parameters += [map_of(made, arrays) for made in kernel.maps]
    buffers = [(array.ctypes.data, array.nbytes, array is arrays[-1]) for array in arrays]
    loaded = program(kernel.ptx)
    loaded.reset()
    report = launch(
        loaded,
        kernel.function,
        kernel.grid,
        kernel.block,
        parameters,
        cluster=kernel.cluster,
        smem=kernel.smem,
        buffers=buffers,
        options=Options(**options),
    )
    return report, arrays[-1]


def placed(array: Any) -> Any:
    """An array as device memory has it: at a multiple of 256."""
    room = aligned_bytes(array.nbytes, 256).view(array.dtype)
    room[:] = array
    return room


def map_of(made: tensor_copies.Map, arrays: list[Any]) -> bytes:
    """A tensor map for the emulator."""
    address = arrays[-1 if made.of == "out" else int(made.of)].ctypes.data
    sizes = (made.type, address, made.extents, made.all_strides)
    options = {
        "element_strides": made.all_steps,
        "swizzle": made.swizzle,
        "fill_nan": made.nan,
        "interleave": made.interleave,
    }
    if made.lower:
        return tensormap.encode_im2col(*sizes, made.lower, made.upper, *made.box, **options)
    return tensormap.encode(*sizes, made.box, **options)


RECORDED = [kernel for kernel in KERNELS if kernel.name in reference()]
WAITING = [kernel for kernel in KERNELS if kernel.name not in reference()]
IDS = [kernel.name for kernel in RECORDED]


@pytest.mark.parametrize("kernel", RECORDED, ids=IDS)
def test_agrees_with_the_gpu(kernel: kernels.Kernel) -> None:
    report, output = emulated(kernel)
    assert not kernels.disagreement(kernel, output, reference()[kernel.name])
    # What it executes is in the table of forms, as what it is compared by.
    levels = {form: recorded_forms().get(form) for form in report.by_form}
    assert None not in levels.values() or kernel.within, levels
    if not kernel.compare and not kernel.within:
        assert set(levels.values()) == {"recorded"}, levels


def test_only_kernels_of_copies_and_sparse_products_wait_for_a_recording() -> None:
    """scripts/record_emu_reference.py --missing records them."""
    assert not set(reference()) - {"card"} - {kernel.name for kernel in KERNELS}
    assert {kernel.file for kernel in WAITING} <= {"tensors", "bulk_reductions", "sparse"}
    assert len(RECORDED) >= 213


@pytest.mark.parametrize("kernel", WAITING, ids=[kernel.name for kernel in WAITING])
def test_kernels_to_be_recorded_run_without_a_finding(kernel: kernels.Kernel) -> None:
    """And give the same results however late copies land, so that a GPU's can be compared with them."""
    first = emulate(kernel)
    assert first.tobytes() == emulate(kernel, seed=1).tobytes()
    assert first.tobytes() != kernels.output(kernel).tobytes()


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
@pytest.mark.parametrize("kernel", RECORDED, ids=IDS)
def test_agrees_in_any_order_of_warps(kernel: kernels.Kernel) -> None:
    for seed in (1, 2, 3):
        assert not kernels.disagreement(kernel, emulate(kernel, seed=seed), reference()[kernel.name])


def test_recording_is_small_and_names_its_card() -> None:
    assert REFERENCE.stat().st_size <= 4_000_000
    assert str(reference()["card"])
