"""Hints of copies: they are in the PTX, the values are the same, and where PTX has no place for one it is said."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError
from tilewright.base import notices
from tilewright.base.notices import IgnoredOptionWarning

PRIORITY = cute.nvgpu.CacheEvictionPriority
PREFETCH = cute.nvgpu.L2PrefetchSize
ROWS, COLUMNS = 32, 64
DTYPES = {
    np.int8: cutlass.Int8, np.float16: cutlass.Float16, np.float32: cutlass.Float32, np.float64: cutlass.Float64,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(notices, "_said", set())


@cute.kernel
def through_registers_kernel(a: cute.Tensor, b: cute.Tensor, bits: cutlass.Constexpr, hints: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), a.element_type, num_bits_per_copy=bits, **dict(hints))
    values = bits // a.element_type.width
    row, out = (cute.group_modes(cute.local_tile(side, (1, values), (thread, 0)), 0, 2) for side in (a, b))
    held = cute.make_rmem_tensor_like(row)
    cute.copy(atom, row, held)
    cute.copy(atom, held, out)


@cute.jit
def through_registers(a: cute.Tensor, b: cute.Tensor, bits: cutlass.Constexpr, hints: cutlass.Constexpr):
    through_registers_kernel(a, b, bits, hints).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def accesses(executor):
    """The loads and stores of global memory in the PTX."""
    return re.findall(r"^\s*((?:ld|st)\.global\S*)", executor.stages["ptx"], re.MULTILINE)


def run(dtype, bits, **hints):
    a = np.random.default_rng(0).integers(-100, 100, (ROWS, COLUMNS)).astype(dtype)
    b = np.zeros_like(a)
    chosen = tuple(sorted(hints.items()))
    args = cute.runtime.from_dlpack(a, assumed_align=16), cute.runtime.from_dlpack(b, assumed_align=16)
    executor = cute.compile(through_registers, *args, bits, chosen, target="emu", arch="sm_90a")
    executor(*args)
    values = bits // (8 * a.itemsize)
    assert np.array_equal(b[:, :values], a[:, :values]) and not b[:, values:].any()
    return executor


END = {8: ".b8", 16: ".b16", 32: ".b32", 64: ".b64", 128: ".v2.b64"}


@pytest.mark.parametrize("priority", [item for item in PRIORITY if item is not PRIORITY.EVICT_NORMAL])
@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(np.int8, 8), (np.int8, 32), (np.float16, 16), (np.float16, 128), (np.float32, 32), (np.float32, 64),
     (np.float32, 128), (np.float64, 64), (np.float64, 128)],
)  # fmt: skip
def test_priorities_of_loads_and_stores(dtype, bits, priority):
    executor = run(dtype, bits, l1c_evict_priority=priority)
    assert accesses(executor) == [f"{way}.global.L1::{priority.value}{END[bits]}" for way in ("ld", "st")]
    assert executor.stages["cubin"].startswith(b"\x7fELF")


@pytest.mark.parametrize("size", [PREFETCH.SIZE_64B, PREFETCH.SIZE_128B, PREFETCH.SIZE_256B])
def test_bytes_to_prefetch(size):
    with pytest.warns(IgnoredOptionWarning, match="l2_prefetch_size has no effect"):  # on the store
        executor = run(np.float32, 128, l2_prefetch_size=size)
    load, _store = accesses(executor)
    assert load == f"ld.global.L2::{size.value}B.v2.b64"
    assert executor.stages["cubin"].startswith(b"\x7fELF")


def test_invariant_loads_use_the_read_only_cache():
    with pytest.warns(IgnoredOptionWarning, match="invariant has no effect"):
        executor = run(np.float32, 64, invariant=True, l1c_evict_priority="evict_last", l2_prefetch_size=128)
    assert accesses(executor) == ["ld.global.nc.L1::evict_last.L2::128B.b64", "st.global.L1::evict_last.b64"]
    assert "CONSTANT" in executor.stages["sass"]


@pytest.mark.parametrize(
    "hints", [{}, {"l1c_evict_priority": PRIORITY.EVICT_NORMAL}, {"l2_prefetch_size": PREFETCH.NONE}]
)
def test_no_hint_changes_nothing(hints):
    assert run(np.float32, 128, **hints).stages["ptx"] == run(np.float32, 128).stages["ptx"]


@cute.kernel
def guarded_kernel(a: cute.Tensor, b: cute.Tensor, hint: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, out = (cute.local_tile(side, (1, 4), (thread, 0)) for side in (a, b))
    held = cute.make_rmem_tensor_like(row)
    held.fill(-1.0)
    inside = cute.make_rmem_tensor((1,), cutlass.Boolean)
    inside[0] = thread % 2 == 0
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), a.element_type, num_bits_per_copy=128)
    cute.copy(atom, cute.group_modes(row, 0, 2), cute.group_modes(held, 0, 2), pred=inside, l1c_evict_priority=hint)
    cute.autovec_copy(held, out, l1c_evict_priority=hint)


@cute.jit
def guarded(a: cute.Tensor, b: cute.Tensor, hint: cutlass.Constexpr):
    guarded_kernel(a, b, hint).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def test_hints_of_a_call_under_a_predicate():
    a = np.random.default_rng(0).standard_normal((ROWS, 4), dtype=np.float32)
    b = np.zeros_like(a)
    args = cute.runtime.from_dlpack(a, assumed_align=16), cute.runtime.from_dlpack(b, assumed_align=16)
    executor = cute.compile(guarded, *args, "no_allocate", target="emu", arch="sm_90a")
    executor(*args)
    expected = np.where(np.arange(ROWS)[:, None] % 2 == 0, a, -1)
    assert np.array_equal(b, expected)
    assert accesses(executor) == ["ld.global.L1::no_allocate.v2.b64", "st.global.L1::no_allocate.v2.b64"]


@cute.kernel
def staged_kernel(a: cute.Tensor, b: cute.Tensor, masked: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    layout = cute.make_layout((ROWS, 4), stride=(4, 1))
    shared = cutlass.utils.SmemAllocator().allocate_tensor(a.element_type, layout, byte_alignment=16)
    op = cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL)
    atom = cute.make_copy_atom(op, a.element_type, num_bits_per_copy=128, l2_prefetch_size=PREFETCH.SIZE_128B,
                               l1c_evict_priority="evict_first")  # fmt: skip
    row = cute.group_modes(cute.local_tile(a, (1, 4), (thread, 0)), 0, 2)
    mine = cute.group_modes(cute.local_tile(shared, (1, 4), (thread, 0)), 0, 2)
    inside = cute.make_rmem_tensor((1,), cutlass.Boolean)
    inside[0] = thread % 2 == 0
    cute.copy(atom, row, mine, pred=inside if cutlass.const_expr(masked) else None)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.autovec_copy(mine, cute.group_modes(cute.local_tile(b, (1, 4), (thread, 0)), 0, 2))


@cute.jit
def staged(a: cute.Tensor, b: cute.Tensor, masked: cutlass.Constexpr):
    staged_kernel(a, b, masked).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


@pytest.mark.parametrize("masked", [False, True])
def test_asynchronous_copies_prefetch(masked):
    a = np.random.default_rng(0).standard_normal((ROWS, 4), dtype=np.float32)
    b = np.full_like(a, 9)
    args = cute.runtime.from_dlpack(a, assumed_align=16), cute.runtime.from_dlpack(b, assumed_align=16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            executor = cute.compile(staged, *args, masked, target="emu", arch="sm_90a")
    executor(*args)
    assert np.array_equal(b, np.where(np.arange(ROWS)[:, None] % 2 == 0, a, 0) if masked else a)
    assert "cp.async.cg.shared.global.L2::128B [" in executor.stages["ptx"] and executor.stages["cubin"]
    (said,) = [item for item in caught if item.category is IgnoredOptionWarning]
    assert str(said.message) == (
        "l1c_evict_priority has no effect on a copy by cp.async from gmem to smem: PTX has no place for it"
    )
    assert said.filename == __file__


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        (
            {"l1c_evict_priority": "evict_never"},
            "l1c_evict_priority is a CacheEvictionPriority, or one of evict_normal",
        ),
        ({"l2_prefetch_size": 32}, "l2_prefetch_size is a L2PrefetchSize, or 64, 128 or 256 bytes"),
        ({"l3": 1}, "make_copy_atom has no option 'l3'"),
    ],
)
def test_hints_that_cannot_be(hints, message):
    with pytest.raises(CompileError, match=message):
        run(np.float32, 32, **hints)


def test_tiled_copies_keep_the_hints_of_their_atom():
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, l1c_evict_priority="evict_first")
    plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8)), cute.make_layout((1, 4)))
    assert tiled.hints == tiled.atom.hints == tiled.get_slice(0).hints == atom.hints != plain.hints
    assert atom != plain and atom == tiled.atom
