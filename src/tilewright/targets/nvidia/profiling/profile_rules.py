"""Rules for timed regions: the first thread of each warp writes clock64 into the kernel's record.

Where a warp stands in its record is a counter in local memory, which LLVM makes a register. `profile_ptx` has the
instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.ir.context import located
from tilewright.ir.locations import source_location
from tilewright.passes.lowering import LoweringContext, Rules
from tilewright.passes.program import function_of
from tilewright.targets.nvidia.profiling import profile_buffer as buffer
from tilewright.targets.nvidia.profiling import profile_ptx as ptx

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
REGIONS = "tilewright.profile"
"""The attribute of a kernel that has the names of its regions, one a line; a kernel without regions has none."""


@dataclass
class _Recorder:
    """The code of a kernel that records: the warp's record, its counter, the names of regions by number."""

    record: ir.Value
    counter: ir.Value
    events: int
    regions: dict[str, int] = field(default_factory=dict)

    def event(self, region: str, ends: bool) -> None:
        """Record that a region begins or ends."""
        number = self.regions.setdefault(region, len(self.regions))
        text = ptx.event(number << 1 | ends, self.events)
        i32 = types.parse("i32")
        count = build.value("llvm.load", i32, (self.counter,))
        build.emit("llvm.store", (), (_asm(text, "=r,r,l", i32, (count, self.record)), self.counter))

    def finish(self) -> None:
        """Record that the warp ends."""
        count = build.value("llvm.load", types.parse("i32"), (self.counter,))
        _asm(ptx.END, "r,l", None, (count, self.record))


@rules.lowers("profile")
def _profile(op: ir.Operation, context: LoweringContext) -> Sequence[ir.Value]:
    wanted = context.facts.get("profile")
    if wanted is None:
        return []
    kind = text_of(op, "kind")
    recorder = context.facts.get("recorder")
    if recorder is None:
        recorder = context.facts["recorder"] = _recorder(function_of(op), *wanted)
    if kind != "kernel":
        recorder.event(text_of(op, "region"), kind == "end")
    return []


def name_regions(kernel: ir.Operation, context: LoweringContext) -> None:
    """Leave the names of the regions that were lowered at the kernel."""
    recorder = context.facts.get("recorder")
    if recorder is not None:
        kernel.attributes[REGIONS] = build.string("\n".join(recorder.regions))


def _recorder(kernel: ir.Operation, warps: int, events: int) -> _Recorder:
    """Code at both ends of the kernel that takes and closes the warp's record."""
    if min(warps, events) < 1:
        raise CompileError(
            "a profile has room for one warp and one event at least",
            location=source_location(kernel.location),
            values={"--profile-warps": warps, "--profile-events": events},
            hint="leave --profile=off to record nothing",
        )
    block, place = kernel.regions[0].blocks[0], kernel.location
    with mlir.ir.InsertionPoint(kernel), located(lambda: place):
        _declare(buffer.total_bytes(warps, events))
    with mlir.ir.InsertionPoint.at_block_begin(block), located(lambda: place):
        made = _begin(warps, events)
    for end in [item for item in block.operations if item.operation.name == "gpu.return"]:
        with mlir.ir.InsertionPoint(end), located(lambda: place):
            made.finish()
    return made


def _declare(size: int) -> None:
    made = types.parse(f"!llvm.array<{size} x i8>")
    attributes = {
        "global_type": mlir.ir.TypeAttr.get(made),
        "sym_name": build.string(buffer.SYMBOL),
        "linkage": build.attribute("#llvm.linkage<external>"),
        "addr_space": build.i32(1),
        "alignment": build.i64(buffer.HEAD_BYTES),
    }
    variable = build.emit("llvm.mlir.global", (), (), attributes, regions=1)
    with mlir.ir.InsertionPoint(variable.regions[0].blocks.append()):
        build.emit("llvm.return", (), (build.value("llvm.mlir.zero", made),))


def _begin(warps: int, events: int) -> _Recorder:
    i32, i64 = types.parse("i32"), types.parse("i64")
    name = {"global_name": mlir.ir.FlatSymbolRefAttr.get(buffer.SYMBOL)}
    memory = build.value("llvm.mlir.addressof", types.parse("!llvm.ptr<1>"), (), name)
    pair = _asm(ptx.begin(warps, events), "=&l,=&r,l", types.parse("!llvm.struct<(i64, i32)>"), (memory,))
    record, count = (
        build.value("llvm.extractvalue", type_, (pair,), {"position": build.i64_array([n])})
        for n, type_ in enumerate((i64, i32))
    )
    one = build.value("llvm.mlir.constant", i32, (), {"value": build.i32(1)})
    counter = build.value("llvm.alloca", types.parse("!llvm.ptr"), (one,), {"elem_type": mlir.ir.TypeAttr.get(i32)})
    build.emit("llvm.store", (), (count, counter))
    return _Recorder(record, counter, events)


def _asm(text: str, constraints: str, result: ir.Type | None, operands: Sequence[ir.Value]) -> ir.Value | None:
    """PTX that stays where it is among accesses of memory."""
    attributes = {
        "asm_string": build.string(text),
        "constraints": build.string(f"{constraints},~{{memory}}"),
        "has_side_effects": mlir.ir.UnitAttr.get(),
        "asm_dialect": build.i64(0),
    }
    made = build.emit("llvm.inline_asm", () if result is None else (result,), operands, attributes)
    return made.results[0] if result is not None else None
