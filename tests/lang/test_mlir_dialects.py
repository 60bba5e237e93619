"""`cutlass._mlir.dialects` as public kernels use it: atomics, extremes, PTX, vectors; what is not there says so."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError
from tilewright.compat.dialects import dialect
from tilewright.lang.mlir_types import T

nvvm, llvm, vector, arith = (dialect(name) for name in ("nvvm", "llvm", "vector", "arith"))
KIND = nvvm.AtomicOpKind
START = {np.int32: 12, np.uint32: 12, np.int64: 2**40, np.uint64: 2**40}
FOLDS = {
    "ADD": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor, "MAX": np.maximum,
    "MIN": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("dtype", START, ids=lambda dtype: dtype.__name__)
def test_integer_atomics(dtype):
    unsigned = np.dtype(dtype).kind == "u"
    values = np.random.default_rng(1).integers(-50 if not unsigned else 0, 50, 32).astype(dtype)
    start = np.full(len(FOLDS), START[dtype], dtype)

    def body(x: cute.Tensor, out: cute.Tensor):
        value = x[cute.arch.lane_idx()].ir_value()
        for i, name in enumerate(FOLDS):
            kind = KIND["U" + name if unsigned and name in ("MAX", "MIN") else name]
            nvvm.atomicrmw(op=kind, ptr=(out.iterator + i).llvm_ptr, a=value)

    out = on_device(body, values, start.copy())[1]
    assert out.tolist() == [fold.reduce(values, initial=start[0]) for fold in FOLDS.values()]


def test_unsigned_comparison_of_signed_values():
    def body(out: cute.Tensor):
        nvvm.atomicrmw(op=KIND.UMAX, ptr=out.iterator.llvm_ptr, a=cutlass.Int32(-1).ir_value())
        nvvm.atomicrmw(op=KIND.UMIN, ptr=(out.iterator + 1).llvm_ptr, a=cutlass.Int32(-1).ir_value())
        nvvm.atomicrmw(op=KIND.MIN, ptr=(out.iterator + 2).llvm_ptr, a=cutlass.Int32(-1).ir_value())

    assert on_device(body, np.full(3, 5, np.int32), block=1).tolist() == [-1, 5, -1]


def test_float_atomics_and_old_values():
    def body(out: cute.Tensor, old: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        nvvm.atomicrmw(op=KIND.FADD, ptr=out.iterator.llvm_ptr, a=cutlass.Float32(i).ir_value())
        nvvm.atomicrmw(T.f32(), KIND.FMAX, (out.iterator + 1).llvm_ptr, cutlass.Float32(i).ir_value())
        nvvm.atomicrmw(KIND.FMIN, (out.iterator + 2).llvm_ptr, a=(-cutlass.Float32(i)).ir_value())
        if i == 0:
            before = nvvm.atomicrmw(
                res=T.f32(), op=KIND.EXCH, ptr=(out.iterator + 3).llvm_ptr, a=cutlass.Float32(8.0).ir_value()
            )
            old[0] = cutlass.Float32(before)

    out, old = on_device(body, np.array([1, 2, 3, 4], np.float32), np.zeros(1, np.float32))
    assert out.tolist() == [497, 31, -31, 8] and old[0] == 4


def test_orders_scopes_and_counters():
    def body(out: cute.Tensor):
        nvvm.atomicrmw(
            op=KIND.INC, ptr=out.iterator.llvm_ptr, a=cutlass.Uint32(20).ir_value(),
            mem_order=nvvm.MemOrderKind.RELEASE, syncscope=nvvm.MemScopeKind.CTA,
        )  # fmt: skip
        nvvm.atomicrmw(op=KIND.DEC, ptr=(out.iterator + 1).llvm_ptr, a=cutlass.Uint32(20).ir_value())

    out = on_device(body, np.array([0, 40], np.uint32))
    expected = [0, 40]
    for _ in range(32):
        expected = [0 if expected[0] >= 20 else expected[0] + 1, 20 if not 0 < expected[1] <= 20 else expected[1] - 1]
    assert out.tolist() == expected


def test_in_shared_memory():
    def body(out: cute.Tensor):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, 1)
        shared[0] = 0
        cute.arch.sync_threads()
        nvvm.atomicrmw(op=KIND.ADD, ptr=shared.iterator.llvm_ptr, a=cutlass.Int32(2).ir_value())
        cute.arch.sync_threads()
        out[0] = shared[0]

    assert on_device(body, np.zeros(1, np.int32))[0] == 64


def test_extremes():
    def body(x: cute.Tensor, out: cute.Tensor):
        a, b, c = (x[i].ir_value() for i in range(3))
        out[0] = cutlass.Float32(nvvm.fmax(a, b))
        out[1] = cutlass.Float32(nvvm.fmax(T.f32(), a, b, c=c))
        out[2] = cutlass.Float32(nvvm.fmin(a, b, c=c, loc=None, ip=None))
        out[3] = cutlass.Float32(arith.maxnumf(a, b))
        out[4] = cutlass.Float32(arith.minimumf(a, b))

    out = on_device(body, np.array([1, -2, 5], np.float32), np.zeros(5, np.float32), block=1)[1]
    assert out.tolist() == [1, 5, -2, 1, -2]


def test_assembly_and_vectors():
    def body(x: cute.Tensor, out: cute.Tensor):
        a, b = x[0].ir_value(), x[1].ir_value()
        pair = llvm.StructType.get_literal([T.i32(), T.i32()])
        both = llvm.inline_asm(
            pair, [a, b], "{ add.s32 $0, $2, $3; sub.s32 $1, $2, $3; }", "=r,=r,r,r", has_side_effects=False,
            is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT,
        )  # fmt: skip
        out[0] = cutlass.Int32(llvm.extractvalue(T.i32(), both, [0]))
        out[1] = cutlass.Int32(llvm.extractvalue(T.i32(), both, [1]))
        four = vector.from_elements(T.vector(2, T.i32()), [a, b])
        halves = vector.bitcast(T.vector(4, T.i16()), four)
        low = vector.extract(halves, dynamic_position=[], static_position=[2])
        out[2] = cutlass.Int32(cutlass.Int16(low))
        clock = cutlass.Int64(nvvm.read_ptx_sreg_clock64(T.i64()))
        out[3] = cutlass.Int32(clock >= 0)

    x = np.array([70000, 70003], np.int32)
    out = on_device(body, x, np.zeros(4, np.int32), block=1)[1]
    assert out.tolist() == [140003, -3, int(np.int16(70003 & 0xFFFF)), 1]


def test_a_timed_wait():
    def body(out: cute.Tensor):
        barrier = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
        cute.arch.mbarrier_init(barrier, 1)
        ticks = cutlass.Int32(1000).ir_value()
        phase = cutlass.Int32(0).ir_value()
        out[0] = cutlass.Int32(cutlass.Boolean(nvvm.mbarrier_try_wait_parity_timelimit(barrier.llvm_ptr, phase, ticks)))
        cute.arch.mbarrier_arrive(barrier)
        out[1] = cutlass.Int32(cutlass.Boolean(nvvm.mbarrier_try_wait_parity_timelimit(barrier.llvm_ptr, phase, ticks)))

    assert on_device(body, np.full(2, 7, np.int32), block=1).tolist() == [0, 1]


def refused(body, match):
    with pytest.raises(CompileError, match=match):
        on_device(body, np.zeros(2, np.int32), block=1)


def test_what_atomicrmw_refuses():
    def call(**arguments):
        return lambda out: nvvm.atomicrmw(
            **{"op": KIND.ADD, "ptr": out.iterator.llvm_ptr, "a": cutlass.Int32(1).ir_value()} | arguments
        )

    refused(lambda out: nvvm.atomicrmw(op=KIND.ADD, ptr=out.iterator.llvm_ptr), "nvvm.atomicrmw takes op=, ptr= and a=")
    refused(call(op="add"), "nvvm.atomicrmw takes op=, ptr= and a=")
    refused(call(op=KIND.FADD), "nvvm.atomicrmw FADD of a Int32")
    refused(call(op=KIND.CAS), "nvvm.atomicrmw CAS is not built")
    refused(call(mem_order="strong"), "strong")


DROP_IN = """
    from cutlass._mlir.dialects import llvm, nvvm, scf, math
    import cutlass._mlir.dialects.llvm as again
    from cutlass._mlir import ir
    from cutlass._mlir.extras import types as T
    from cutlass._mlir_helpers import math as helpers
    from cutlass._mlir_helpers.arith import bitcast
    import cutlass.cute as cute

    assert llvm is again and nvvm.AtomicOpKind.ADD and ir.Value and helpers.rcp is cute.math.rcp
    for code in %r:
        try:
            exec(code)
        except (ImportError, AttributeError) as error:
            print(type(error).__name__, error)
        else:
            raise SystemExit(code)
"""
ABSENT = {
    "from cutlass._mlir.dialects.nvvm import tensormap_replace": "NotBuiltImportError "
    "cutlass._mlir.dialects.nvvm.tensormap_replace is not among MLIR's own operations, and not built here: "
    "cute.arch has the operations of the chip, and llvm.inline_asm takes any PTX",
    "from cutlass.base_dsl.dsl import debug_print_mlir_values": "NotBuiltImportError "
    "cutlass.base_dsl.dsl.debug_print_mlir_values is a part of NVIDIA's compiler that has no counterpart here",
}


def test_names_through_the_drop_in(tmp_path):
    script = tmp_path / "names.py"
    script.write_text(textwrap.dedent(DROP_IN % list(ABSENT)))
    done = subprocess.run([sys.executable, "-m", "tilewright.dropin", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(ABSENT.values())
