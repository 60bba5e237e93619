"""The last look at a kernel in the nvvm dialect: what LLVM would end the process on is refused here.

It also gathers the features that the kernel uses, from which its PTX version follows.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError, PassError
from tilewright.hw.features import require
from tilewright.ir.accessors import text_of
from tilewright.ir.locations import source_location
from tilewright.targets.nvidia.lowering.inline_asm import check_inline_asm
from tilewright.targets.nvidia.lowering.intrinsics import NEEDS, WHOLE
from tilewright.targets.nvidia.needs import features_of_intrinsic, features_of_operation, features_of_ptx

if TYPE_CHECKING:
    from mlir import ir


@dataclass
class Findings:
    """The features that a kernel uses, and whether it has nvvm operations of which no needs are known."""

    features: set[str] = field(default_factory=set)
    unknown: bool = False


def check_nvvm(found: Sequence[ir.Operation], arch: str) -> Findings:
    """Look at the operations of a `gpu.module` that is about to become LLVM IR.

    Raises:
        PassError: an operation is left that LLVM IR has no form for.
        CompileError: an operation that `arch` lacks, inline assembly that cannot be right, or `multimem`: multicast
            objects can take GPUs that others share out of service.
    """
    findings = Findings()
    for op in found:
        name = op.name
        if name == "llvm.inline_asm":
            check_inline_asm(op)
            _require(features_of_ptx(text_of(op, "asm_string")), op, arch, findings, "inline assembly with ")
        elif name == "llvm.call_intrinsic":
            intrinsic = text_of(op, "intrin")
            needed, known = _of_intrinsic(intrinsic)
            findings.unknown |= not known
            if needed:
                _require(needed, op, arch, findings, f"{intrinsic}, ")
        elif name.startswith("nvvm."):
            features = features_of_operation(name)
            findings.unknown |= features is None
            _require(features or (), op, arch, findings, "")
        elif not name.startswith("llvm.") and name != "gpu.module":
            raise PassError(
                f"operation {name!r} is left in a kernel at the end of stage nvvm",
                location=source_location(op.location),
                hint="a pass must lower it to the llvm or nvvm dialect",
            )
    return findings


@functools.cache
def _of_intrinsic(intrinsic: str) -> tuple[frozenset[str], bool]:
    """The features that an intrinsic of LLVM needs, and whether it is one whose needs are known."""
    known = intrinsic in NEEDS or intrinsic in WHOLE or intrinsic.startswith("llvm.nvvm.read.ptx.sreg.")
    needed = {NEEDS[intrinsic]} if intrinsic in NEEDS else features_of_intrinsic(intrinsic)
    return frozenset(needed), known


def _require(features: Collection[str], op: ir.Operation, arch: str, findings: Findings, what: str) -> None:
    if "multimem" in features:
        raise CompileError(
            "multimem instructions are not compiled: they take a multicast address, and none is ever made",
            location=source_location(op.location),
            hint="write to each rank's memory, or read from each and combine, as tilewright.dist does",
        )
    for feature in sorted(features):
        operation = f"{what}{feature}" if what else op.name
        require(feature, arch, operation=operation, location=source_location(op.location))
    findings.features.update(features)
