"""What compiled kernels cost: registers, spills, memory, occupancy, communication."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from tilewright.passes import remarks
from tilewright.passes.collectives import REMARKS as COMMUNICATION
from tilewright.passes.kernel_remarks import remarks_in
from tilewright.passes.remarks import WIDEST_BITS, Remark
from tilewright.targets.nvidia.backend.assembler_notes import assembler_notes
from tilewright.targets.nvidia.backend.parts import PTXAS_LOG, REMARKS
from tilewright.targets.nvidia.backend.ptx_lines import Place, placed_lines


@dataclass(frozen=True)
class KernelReport:
    """Figures of one kernel. Memory in bytes: `shared` is static plus what SmemAllocator takes; spills and stack are
    for each thread. `communication` has a line for each collective of the program (docs/communication.md). `remarks`
    say why an access is not wider, why an option has no effect, and what was spilled, `warnings` where the assembler
    makes products of warpgroups wait or drops register counts."""

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
    remarks: tuple[Remark, ...] = ()
    warnings: tuple[Remark, ...] = ()


@dataclass(frozen=True, repr=False)
class Report:
    """The figures of every kernel of a function; prints as a table."""

    kernels: tuple[KernelReport, ...]

    @classmethod
    def of(cls, executor: Any) -> Report:
        return cls(tuple(_kernel_report(executor, name) for name in executor.kernels))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = []
        for kernel in self.kernels:
            for field in fields(kernel):
                value = getattr(kernel, field.name)
                if field.name == "communication":
                    lines += [f"{field.name:<14}{line}" for line in value]
                    continue
                if field.name in ("remarks", "warnings"):
                    lines += [f"{'' if i else field.name[:-1]:<14}{line}" for item in value
                              for i, line in enumerate(item.excerpt())]  # fmt: skip
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
        tuple(_remarks(executor, name)),
        tuple(assembler_notes(_log(executor, name), name, executor.kernels[name].stages["ptx"])),
    )


def _log(executor: Any, name: str) -> str:
    """What the assembler said of a kernel, which has a cubin."""
    kept = executor.kernels[name].image.stages.get(PTXAS_LOG)
    return str(kept if kept is not None else executor.job.kernels[name].texts.get(PTXAS_LOG, ""))


def _remarks(executor: Any, name: str) -> Iterator[Remark]:
    """What passes said, what the PTX shows of other lines, and what the assembler had to do."""
    kernel = executor.kernels[name]
    info, ptx = kernel.info, kernel.stages["ptx"]
    said = remarks.read(str(kernel.image.stages.get(REMARKS, "[]")))
    yield from (_of_pass(line) for line in remarks_in(kernel.stages["cute"]))
    yield from (item for item in said if item.kind == "access" or info.stack_bytes)
    places = {(item.file, item.line) for item in said}
    yield from (item for item in single_elements(ptx) if (item.file, item.line) not in places)
    spilled = info.spill_store_bytes + info.spill_load_bytes
    if spilled:
        yield Remark(
            f"{spilled} bytes of instructions spill registers to local memory and load them again: smaller tiles, "
            "fewer values at once, or more registers a thread (fewer threads a block, --maxrregcount)"
        )


def _of_pass(line: str) -> Remark:
    """A remark that a pass has left on the kernel, `file.py:12: text`."""
    found = re.match(r"(?P<file>.*?):(?P<line>\d+): (?P<text>.*)", line)
    return Remark(found["text"], found["file"], int(found["line"])) if found else Remark(line)


def single_elements(ptx: str) -> Iterator[Remark]:
    """A remark on each line whose accesses of global memory are narrower than 128 bits."""
    found: dict[Place, Counter[str]] = {}
    for _, line, place in placed_lines(ptx):
        access = _access(line)
        if place and access and access[0] == "global" and access[2] < WIDEST_BITS:
            found.setdefault(place, Counter())[f"{access[1]} of {access[2]} bits"] += 1
    for (file, line_number), counts in found.items():
        shown = ", ".join(_counted(count, words) for words, count in counts.items())
        yield Remark(
            f"{shown}: a thread that takes neighbouring elements as one (`local_tile` and `.load()`, or "
            f"`cute.autovec_copy`) moves up to {WIDEST_BITS} bits at a time",
            file,
            line_number,
        )


_REMARKS = re.compile(rf'{re.escape(COMMUNICATION)} = (\["(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*\])')


def remarks_of(text: str) -> tuple[str, ...]:
    """The lines that `communication-optimization` has left on a kernel of stage `cute`."""
    found = _REMARKS.search(text)
    return tuple(json.loads(found[1])) if found else ()


def _counted(count: int, words: str) -> str:
    """`2 loads of 32 bits` for the words `load of 32 bits`."""
    return f"{count} {words if count == 1 else words.replace(' ', 's ', 1)}"


def vector_bits(ptx: str) -> tuple[int, ...]:
    """Widths in bits of the vector loads and stores of global and shared memory in PTX text, widest first."""
    accesses = filter(None, map(_access, ptx.splitlines()))
    return tuple(sorted({bits for space, _, bits in accesses if space in ("global", "shared")}, reverse=True))


def _access(line: str) -> tuple[str, str, int] | None:
    """(space, `load` or `store`, bits) of the load or store in a line of PTX; None for other lines."""
    opcode = next((word for word in line.split() if word.startswith(("ld.", "st."))), "")
    parts = opcode.split(".")
    space = next((part for part in parts if part in ("global", "shared", "local")), "")
    if not space:
        return None
    count = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
    return space, "load" if parts[0] == "ld" else "store", count * int(parts[-1][1:])
