"""How long a kernel computes, roughly: what communication is weighed against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import mlir
from tilewright.ir.accessors import constant_of
from tilewright.ir.dialect import COLLECTIVES
from tilewright.ir.walk import operations
from tilewright.passes.collectives import KernelFacts, around

if TYPE_CHECKING:
    from mlir import ir

_SCHEDULED = 128  # threads of which a multiprocessor begins an instruction in a cycle
_CYCLE = 0.55  # ns
_LATENCY = 4  # cycles of arithmetic
_FAR = {"cute.load": 500.0, "cute.load_tensor": 500.0, "cute.copy": 500.0, "cute.copy_value": 500.0}  # ns, once
_NEXT = 20.0  # ns, each further access
_STORES = ("cute.store", "cute.store_tensor", "cute.fill", "cute.atomic")
_PRODUCTS = ("cute.gemm", "cute.gemm_value")
_PRODUCT = 64  # cycles
_TRIPS = 8  # of a loop whose count comes at run time


def computing_time(found: KernelFacts) -> float:
    """Nanoseconds of a kernel's arithmetic and memory, of one wave of blocks: loads are in flight together, loops
    count."""
    cycles, accesses, first = 0.0, 0.0, 0.0
    issue = max(_LATENCY, -(-found.threads // _SCHEDULED))
    for op in operations(found.kernel):
        name = op.name
        if name in COLLECTIVES:
            continue
        weight = _trips(op)
        if name in _FAR:
            first, accesses = _FAR[name], accesses + weight
        elif name in _STORES:
            accesses += weight
        elif name in _PRODUCTS:
            cycles += weight * _PRODUCT
        elif name.startswith(("arith.", "math.")) and name != "arith.constant":
            cycles += weight * issue * _elements(op)
    return cycles * _CYCLE + first + accesses * _NEXT


def _elements(op: ir.Operation) -> int:
    kind = op.results[0].type
    return int(kind.shape[0]) if isinstance(kind, mlir.ir.VectorType) else 1


def _trips(op: ir.Operation) -> float:
    """How often an operation runs."""
    count = 1.0
    for outer in around(op) if op.parent is not None else ():
        if outer.name == "scf.for":
            low, high, step = (constant_of(value) for value in list(outer.operands)[:3])
            known = low is not None and high is not None and bool(step)
            count *= max((high - low) / step, 0) if known else _TRIPS  # type: ignore[operator]
        elif outer.name == "scf.while":
            count *= _TRIPS
    return count
