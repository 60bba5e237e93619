"""Inputs on which MLIR, LLVM or the processor would end the process, one after the other; each prints its error.

Run as a program by test_process_lives.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import assembly, double, floats, launched
from tilewright.ir import mlir

Int32 = cutlass.Int32


@cutlass.dsl_user_op
def nvvm_op(name, result=None, loc=None, ip=None):
    results = [mlir.ir.Type.parse(result)] if result else []
    made = mlir.ir.Operation.create(f"nvvm.{name}", results=results, loc=loc, ip=ip)
    return made.results[0] if result else None


@cutlass.dsl_user_op
def intrinsic(name, *operands, loc=None, ip=None):
    i32 = mlir.ir.IntegerType.get_signless(32)
    return mlir.llvm.call_intrinsic(i32, name, [o.ir_value() for o in operands], [], [], loc=loc, ip=ip)


@cutlass.dsl_user_op
def raw_op(name, loc=None, ip=None):
    mlir.ir.Operation.create(name, loc=loc, ip=ip)


def kernel_with(body, **given):
    cute.compile(launched(body), np.zeros(64, np.int32), **given)


def host_with(body, *values):
    cute.compile(cute.jit(body), *values)(*values)


def replaced(stage, old, new, **given):
    text = cute.compile(double, *floats()).stages[stage]
    assert old in text
    cute.compile(double, *floats(), override={stage: text.replace(old, new, 1)}, **given)


def false_assertion(n: Int32):
    cute.testing.assert_(n < 3, "n is large")


def division(out: cute.Tensor, n: Int32):
    out[0] = out[1] // n


def remainder(out: cute.Tensor, n: Int32):
    out[0] = out[1] % n


def device_operation_on_host(n: Int32):
    nvvm_op("barrier0")


DEADLY = {
    "constraint": lambda: kernel_with(lambda out: assembly("mov.u32 $0, 1;", "=Q")),
    "constraint count": lambda: kernel_with(lambda out: assembly("mov.u32 $0, $1;", "=r,r,r", Int32(1))),
    "operand number": lambda: kernel_with(lambda out: assembly("mov.u32 $0, $7;", "=r,r", Int32(1))),
    "dollar": lambda: kernel_with(lambda out: assembly("mov.u32 $0, $ 1;", "=r")),
    "elect": lambda: kernel_with(lambda out: nvvm_op("elect.sync", "i1"), arch="sm_80"),
    "cluster": lambda: kernel_with(lambda out: nvvm_op("cluster.wait"), arch="sm_86"),
    "wgmma": lambda: kernel_with(lambda out: nvvm_op("wgmma.fence.aligned"), arch="sm_100a"),
    "cluster rank": lambda: kernel_with(lambda out: cute.arch.block_idx_in_cluster(), arch="sm_75"),
    "no dialect": lambda: kernel_with(lambda out: raw_op("custom.my_op")),
    "no operation": lambda: kernel_with(lambda out: raw_op("nvvm.no_such_op")),
    "not lowered": lambda: kernel_with(lambda out: raw_op("gpu.no_such_op")),
    "no intrinsic": lambda: kernel_with(lambda out: intrinsic("llvm.nvvm.no.such")),
    "intrinsic type": lambda: kernel_with(lambda out: intrinsic("llvm.nvvm.mapa.shared.cluster", Int32(1), Int32(1))),
    "intrinsic on chip": lambda: kernel_with(lambda out: intrinsic("llvm.nvvm.elect.sync", Int32(1)), arch="sm_80"),
    "device on host": lambda: host_with(device_operation_on_host, 1),
    "host assertion": lambda: host_with(false_assertion, 5),
    "division": lambda: host_with(division, np.ones(2, np.int32), 0),
    "remainder": lambda: host_with(remainder, np.ones(2, np.int64), 0),
    "nvvm text": lambda: replaced("nvvm", "llvm.return", "llvm.retern"),
    "llvm text": lambda: replaced("llvm", "ret void", "ret banana"),
    "llvm intrinsic": lambda: replaced(
        "llvm", "ret void", "call void @llvm.nvvm.barrier.cluster.wait()\n ret void", arch="sm_80"
    ),
    "ptx text": lambda: replaced("ptx", "ret;", "retern;"),
    "block": lambda: host_with(lambda n: None, 1) or cute.compile(launched(lambda out: None, block=2000), np.zeros(1)),
    "out of bounds": lambda: host_with(launched(lambda out: out.__setitem__(10**6, 1)).function, np.zeros(4, np.int32)),
}  # fmt: skip


def main() -> None:
    for name, act in DEADLY.items():
        try:
            act()
            print(f"{name}: nothing", flush=True)
        except cutlass.TilewrightError as error:
            print(f"{name}: {type(error).__name__}: {error.message.splitlines()[0]}", flush=True)
    x, out = floats()
    double(x, out)
    print("alive:", bool((out == 2 * x).all()), flush=True)


if __name__ == "__main__":
    main()
