"""What compiled kernels cost: registers, spills, memory, occupancy, communication."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import Any

from tilewright.passes.collectives import REMARKS
from tilewright.passes.kernel_remarks import remarks_in


@dataclass(frozen=True)
class KernelReport:
    """Figures of one kernel. Memory in bytes: `shared` is static plus what SmemAllocator takes; spills and stack are
    for each thread. `communication` has a line for each collective of the program (docs/communication.md),
    `remarks` one for each wish that has no effect."""

    name: str
    arch: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    local: int
    constant: int
    barriers: int
    block: int | None
    occupancy: str
    vector_bits: tuple[int, ...]
    communication: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """The figures of every kernel of a function; prints as a table."""

    kernels: tuple[KernelReport, ...]

    @classmethod
    def of(cls, executor: Any) -> Report:
        return cls(tuple(_kernel_report(executor, name) for name in executor.kernels))

    def __str__(self) -> str:
        lines = []
        for kernel in self.kernels:
            for field in fields(kernel):
                value = getattr(kernel, field.name)
                if field.name in ("communication", "remarks"):
                    lines += [f"{field.name:<14}{line}" for line in value]
                    continue
                text = ", ".join(map(str, value)) if isinstance(value, tuple) else value
                lines.append(f"{field.name.replace('_', ' '):<14}{text if text is not None else '-'}")
            lines.append("")
        return "\n".join(lines[:-1])


def _kernel_report(executor: Any, name: str) -> KernelReport:
    info = executor.kernels[name].info
    block = info.max_block_threads
    shared = info.shared_bytes + executor.smem_bytes(name)
    occupancy = str(executor.occupancy(block, kernel=name)) if block else "give a block: executor.occupancy(block=...)"
    return KernelReport(
        name,
        executor.arch,
        info.registers,
        info.spill_store_bytes,
        info.spill_load_bytes,
        info.stack_bytes,
        shared,
        info.local_bytes,
        sum(info.constant_bytes.values()),
        info.barriers,
        block,
        occupancy,
        vector_bits(executor.kernels[name].stages["ptx"]),
        remarks_of(executor.kernels[name].stages["cute"]),
        remarks_in(executor.kernels[name].stages["cute"]),
    )


_REMARKS = re.compile(rf'{re.escape(REMARKS)} = (\["(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*\])')


def remarks_of(text: str) -> tuple[str, ...]:
    """The lines that `communication-optimization` has left on a kernel of stage `cute`."""
    found = _REMARKS.search(text)
    return tuple(json.loads(found[1])) if found else ()


def vector_bits(ptx: str) -> tuple[int, ...]:
    """Widths in bits of the vector loads and stores of global and shared memory in PTX text, widest first."""
    found = set()
    for line in ptx.splitlines():
        words = line.split()
        opcode = next((word for word in words if word.startswith(("ld.", "st."))), "")
        parts = opcode.split(".")
        if "global" in parts or "shared" in parts:
            count = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
            found.add(count * int(parts[-1][1:]))
    return tuple(sorted(found, reverse=True))
