"""The remarks of `executor.report()`: why an access is not wider, at the line of the kernel that has it."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.passes import remarks
from tilewright.passes.remarks import Remark

ROWS = 32


@cute.kernel
def copy_rows_kernel(a: cute.Tensor, b: cute.Tensor, columns: cutlass.Constexpr, rows: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    first = thread if cutlass.const_expr(rows == 1) else 0
    row = cute.local_tile(a, (rows, columns), (first, 0)).load()  # LOAD
    cute.local_tile(b, (rows, columns), (first, 0)).store(row)  # STORE


@cute.jit
def copy_rows(a: cute.Tensor, b: cute.Tensor, columns: cutlass.Constexpr, rows: cutlass.Constexpr = 1):
    copy_rows_kernel(a, b, columns, rows).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def line_of(mark):
    """The number of the line that ends in a comment of this name."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# {mark}"))


def said(executor):
    """The texts of the remarks by the mark of their line."""
    marks = {line_of(mark): mark for mark in ("LOAD", "STORE", "ELEMENT", "COPY", "TABLE")}
    (kernel,) = executor.report().kernels
    assert all(item.file in ("", __file__) for item in kernel.remarks)
    return {marks.get(item.line, ""): item.text for item in kernel.remarks}


def array(columns=4, dtype=np.float32):
    return np.arange(ROWS * columns).reshape(ROWS, columns).astype(dtype)


def aligned(columns=4, dtype=np.float32):
    return from_dlpack(array(columns, dtype), assumed_align=16)


def test_wide_accesses_have_no_remark():
    executor = cute.compile(copy_rows, aligned(), aligned(), 4, target="emu")
    assert said(executor) == {} and executor.report().kernels[0].vector_bits == (128,)
    assert "remark" not in str(executor.report())


def aligned_columns(divisibility):
    """A matrix of any number of columns, a multiple of `divisibility`."""
    return aligned(12).mark_compact_shape_dynamic(mode=1, stride_order=(0, 1), divisibility=divisibility)


@pytest.mark.parametrize(
    ("make", "columns", "bits", "reason"),
    [
        (lambda: from_dlpack(array()), 4, 32, "its address is known to be a multiple of 4 bytes, not of 8"),
        (lambda: from_dlpack(array(), assumed_align=8), 4, 64, "its address is known to be a multiple of 8 bytes, not"),
        (lambda: aligned(5), 4, 32, "its address is known to be a multiple of 4 bytes, not of 8"),
        (lambda: aligned(6), 6, 64, "its 6 elements are no multiple of 4"),
        (lambda: from_dlpack(np.asfortranarray(array()), assumed_align=16), 4, 32, "its elements lie 32 apart"),
        (lambda: array().T.copy().T, 4, 32, "the stride of its first mode is known only at run time"),
        (lambda: aligned_columns(1), 4, 32, "its address is known to be a multiple of 4 bytes, not of 8"),
        (lambda: aligned_columns(2), 4, 64, "its address is known to be a multiple of 8 bytes, not of 16"),
    ],
)  # fmt: skip
def test_reasons_of_narrow_accesses(make, columns, bits, reason):
    executor = cute.compile(copy_rows, make(), aligned(columns), columns, target="emu")
    assert said(executor)["LOAD"].startswith(f"each load from gmem moves {bits} of up to 128 bits: {reason}")
    loads = [line.split()[0] for line in executor.stages["ptx"].splitlines() if "ld.global" in line]
    assert {".v2.b32" in load or load.endswith("b64") for load in loads} == {bits == 64}


@pytest.mark.parametrize(("divisibility", "bits"), [(1, 32), (2, 64)])
def test_columns_at_strides_that_divide_too_little(divisibility, bits):
    columns = from_dlpack(np.asfortranarray(array(12)[:12]), assumed_align=16)
    columns = columns.mark_compact_shape_dynamic(mode=0, stride_order=(1, 0), divisibility=divisibility)
    executor = cute.compile(copy_rows, columns, aligned(), 2, 4, target="emu")
    reason = f"a stride is not known to be a multiple of {2 * divisibility}"
    assert said(executor)["LOAD"].startswith(f"each load from gmem moves {bits} of up to 128 bits: {reason}")


def test_divisible_columns_are_wide():
    executor = cute.compile(copy_rows, aligned_columns(4), aligned_columns(4), 4, target="emu")
    assert said(executor) == {}


def test_the_report_shows_the_line():
    executor = cute.compile(copy_rows, from_dlpack(array()), aligned(), 4, target="emu")
    text = str(executor.report())
    assert "remark        each load from gmem moves 32 of up to 128 bits: its address" in text
    assert (
        f"{__file__}:{line_of('LOAD')}   row = cute.local_tile(a, (rows, columns), (first, 0)).load()  # LOAD" in text
    )


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    b[thread, 0] = a[thread, 0] + a[thread, 1]  # ELEMENT


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor):
    add_kernel(a, b).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def test_single_elements():
    executor = cute.compile(add, array(), array(), target="emu")
    assert said(executor)["ELEMENT"].startswith(
        "2 loads of 32 bits, 1 store of 32 bits: a thread that takes neighbouring"
    )


@cute.kernel
def copy_kernel(a: cute.Tensor, b: cute.Tensor, bits: cutlass.Constexpr, masked: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), a.element_type, num_bits_per_copy=bits)
    row, out = (cute.group_modes(cute.local_tile(side, (1, 4), (thread, 0)), 0, 2) for side in (a, b))
    inside = cute.make_rmem_tensor((4,), cutlass.Boolean)
    inside.fill(thread > 0)
    cute.copy(atom, row, out, pred=inside if cutlass.const_expr(masked) else None)  # COPY


@cute.jit
def copy(a: cute.Tensor, b: cute.Tensor, bits: cutlass.Constexpr, masked: cutlass.Constexpr):
    copy_kernel(a, b, bits, masked).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def test_copies_by_an_atom():
    assert said(cute.compile(copy, aligned(), aligned(), 128, False, target="emu")) == {}
    narrow = cute.compile(copy, aligned(), aligned(), 64, False, target="emu")
    assert said(narrow) == {"COPY": "each store to gmem moves 64 bits, as num_bits_per_copy says"}
    assert {item.text.split()[1] for item in narrow.report().kernels[0].remarks} == {"load", "store"}


@cute.kernel
def picked_kernel(a: cute.Tensor, b: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    held = cute.make_rmem_tensor((64,), cutlass.Float32)  # TABLE
    for i in range(cute.size(a, mode=[1])):
        held[(i * thread) % 64] = a[thread, i]
    for i in range(cute.size(a, mode=[1])):
        b[thread, i] = held[(i + thread) % 64]


@cute.jit
def picked(a: cute.Tensor, b: cute.Tensor):
    picked_kernel(a, b).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def test_registers_that_lie_in_memory():
    executor = cute.compile(picked, array(), array(), target="emu")
    assert executor.kernels["picked_kernel"].info.stack_bytes >= 256
    assert said(executor)["TABLE"].startswith(
        "this register tensor may lie in local memory: an index of it is known only"
    )
    assert "TABLE" not in said(cute.compile(copy_rows, array(), array(), 4, target="emu"))


@cute.kernel
def hungry_kernel(a: cute.Tensor, b: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    held = cute.make_rmem_tensor((64,), cutlass.Float32)
    for i in cutlass.range_constexpr(64):
        held[i] = a[thread, i]
    total = cutlass.Float32(0.0)
    for i in cutlass.range_constexpr(64):
        total = total + held[i]
    for i in cutlass.range_constexpr(64):
        b[thread, i] = held[i] * total


@cute.jit
def hungry(a: cute.Tensor, b: cute.Tensor):
    hungry_kernel(a, b).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def test_spills():
    options = "--ptxas-options=--maxrregcount=24"
    report = cute.compile(hungry, array(64), array(64), options=options, target="emu").report()
    (kernel,) = report.kernels
    spilled = kernel.spill_stores + kernel.spill_loads
    assert spilled > 0 and f"{spilled} bytes of instructions spill registers" in str(report)


def test_remarks_are_written_and_read():
    kept = [Remark("a", "file.py", 3), Remark("b", kind="memory"), Remark("a", "file.py", 3)]
    assert remarks.read(remarks.written(kept)) == kept[:2]
    assert [str(item) for item in kept[:2]] == ["file.py:3: a", "b"]
