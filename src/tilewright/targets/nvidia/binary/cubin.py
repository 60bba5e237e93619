"""What a cubin holds: its kernels with registers, spills, memory and parameters, its sections, its line tables."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary import nv_info
from tilewright.targets.nvidia.binary.elf import DAMAGE, Elf, Relocation, Section, Symbol, read_elf
from tilewright.targets.nvidia.binary.nv_info import Attribute, Parameter
from tilewright.targets.nvidia.sass.line_program import read_rows

INSTRUCTION_BYTES: Final = 16
"""Size of one machine instruction from Volta on."""

_STT_FUNC: Final = 2
_STO_CUDA_ENTRY: Final = 0x10
# Opcodes of local memory in the low 12 bits of an instruction, checked against nvdisasm on sm_75 to sm_120.
_STORE_LOCAL, _LOAD_LOCAL = 0x387, 0x983
# Bits 73 to 75: U8, S8, U16, S16, 32, 64, 128.
_ACCESS_BYTES: Final = (1, 1, 2, 2, 4, 8, 16, 0)
# From Hopper on the section for static shared memory begins with the kilobyte that the system uses.
_RESERVED_IN_SECTION: Final = 1024


@dataclass(frozen=True)
class KernelInfo:
    """One kernel. Sizes are in bytes.

    Attributes:
        registers: 32-bit registers per thread.
        shared_bytes: static shared memory per block, without what the system takes.
        stack_bytes: the kernel's own stack frame per thread.
        cumulative_stack_bytes: with the functions that it calls.
        local_bytes: local memory per thread: frame, or the stack of the whole call tree if larger.
        spill_store_bytes, spill_load_bytes: registers moved to local memory and back, as ptxas -v counts them.
        constant_bytes: constant memory by bank; bank 0 holds the parameters.
        barriers: named barriers.
        max_threads: the `.maxntid` or `.reqntid` of the text, None if it sets none.
        required_threads: whether the block must have exactly `max_threads`.
        cluster: the required cluster shape, None if the text sets none.
        max_cluster_rank: the most blocks of a cluster, None if the text sets none.
        parameters: in order.
        parameter_base: where they begin in constant bank 0.
        parameter_bytes: the size of all.
        code_bytes: machine code, with padding.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    cumulative_stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    constant_bytes: Mapping[int, int]
    barriers: int
    max_threads: tuple[int, int, int] | None
    required_threads: bool
    cluster: tuple[int, int, int] | None
    max_cluster_rank: int | None
    parameters: tuple[Parameter, ...]
    parameter_base: int
    parameter_bytes: int
    code_bytes: int

    @property
    def local_bytes(self) -> int:
        return max(self.stack_bytes, self.cumulative_stack_bytes)

    @property
    def max_block_threads(self) -> int | None:
        """The product of `max_threads`."""
        if self.max_threads is None:
            return None
        x, y, z = self.max_threads
        return x * y * z


@dataclass(frozen=True)
class CubinInfo:
    """A cubin: its target, kernels by name in symbol order, section sizes by name, and symbols."""

    arch: str
    kernels: Mapping[str, KernelInfo]
    sections: Mapping[str, int]
    symbols: tuple[Symbol, ...]


def read_cubin(data: bytes) -> CubinInfo:
    """Read a cubin.

    Raises:
        CompileError: the bytes are no cubin, or are cut short.
    """
    elf = read_elf(data)
    arch = _arch(elf)
    try:
        totals = _per_symbol(elf)
        kernels = {
            symbol.name: _kernel(elf, symbol, totals.get(index, {}))
            for index, symbol in enumerate(elf.symbols)
            if _is_kernel(symbol)
        }
    except DAMAGE as error:
        raise CompileError(f"damaged cubin: {error}", values={"bytes": len(data)}) from error
    sections = {section.name: section.size for section in elf.sections if section.name}
    return CubinInfo(arch, kernels, sections, elf.symbols)


def _is_kernel(symbol: Symbol) -> bool:
    return symbol.kind == _STT_FUNC and bool(symbol.other & _STO_CUDA_ENTRY) and symbol.section != 0


def _arch(elf: Elf) -> str:
    """The target: the tool's note names it in full; the header flags know only the number."""
    note = elf.section(".note.nv.tkinfo")
    found = re.search(rb"-arch[= ](sm_\d+[af]?)", note.data) if note is not None else None
    if found:
        return found[1].decode()
    number = elf.flags >> 8 & 0xFF if elf.abi_version >= 8 else elf.flags & 0xFF
    return f"sm_{number}"


def _per_symbol(elf: Elf) -> dict[int, dict[int, int]]:
    """The attributes of `.nv.info` that are pairs (symbol number, value), by symbol."""
    section = elf.section(".nv.info")
    table: dict[int, dict[int, int]] = {}
    for attribute in nv_info.read_attributes(section.data if section is not None else b""):
        if len(attribute.payload) == 8:
            symbol, value = attribute.words()
            table.setdefault(symbol, {})[attribute.number] = value
    return table


def _kernel(elf: Elf, symbol: Symbol, totals: Mapping[int, int]) -> KernelInfo:
    name = symbol.name
    code = elf.sections[symbol.section]
    info = elf.section(f".nv.info.{name}")
    attributes = list(nv_info.read_attributes(info.data if info is not None else b""))
    stores, loads = _spills(code, attributes)
    required = _first(attributes, nv_info.REQNTID)
    base, size = _parameter_block(attributes)
    return KernelInfo(
        name=name,
        # Older tools keep the count only in the section header.
        registers=totals.get(nv_info.REGCOUNT, code.info >> 24),
        shared_bytes=_shared_bytes(elf, name),
        stack_bytes=totals.get(nv_info.FRAME_SIZE, 0),
        cumulative_stack_bytes=totals.get(nv_info.MIN_STACK_SIZE, 0),
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        constant_bytes=_constant_bytes(elf, name),
        barriers=_barriers(attributes),
        max_threads=_triple(required or _first(attributes, nv_info.MAX_THREADS)),
        required_threads=required is not None,
        cluster=_triple(_first(attributes, nv_info.CTA_PER_CLUSTER)),
        max_cluster_rank=_single(_first(attributes, nv_info.MAX_CLUSTER_RANK)),
        parameters=_parameters(attributes),
        parameter_base=base,
        parameter_bytes=size,
        code_bytes=code.size,
    )


def _first(attributes: list[Attribute], number: int) -> Attribute | None:
    return next((attribute for attribute in attributes if attribute.number == number), None)


def _triple(attribute: Attribute | None) -> tuple[int, int, int] | None:
    if attribute is None:
        return None
    x, y, z = attribute.words()[:3]
    return x, y, z


def _single(attribute: Attribute | None) -> int | None:
    return attribute.words()[0] if attribute is not None else None


def _barriers(attributes: list[Attribute]) -> int:
    found = _first(attributes, nv_info.NUM_BARRIERS)
    return found.value & 0xFF if found is not None else 0


def _parameters(attributes: list[Attribute]) -> tuple[Parameter, ...]:
    found = (nv_info.read_parameter(item) for item in attributes if item.number == nv_info.KPARAM_INFO)
    return tuple(sorted(found, key=lambda parameter: parameter.index))


def _parameter_block(attributes: list[Attribute]) -> tuple[int, int]:
    """Offset in constant bank 0, and size."""
    found = _first(attributes, nv_info.PARAM_CBANK)
    if found is None:
        return 0, 0
    _, offset, size = struct.unpack_from("<IHH", found.payload)
    return offset, size


def _shared_bytes(elf: Elf, name: str) -> int:
    section = elf.section(f".nv.shared.{name}")
    if section is None:
        return 0
    number = int(re.sub(r"\D", "", _arch(elf)))
    return max(section.size - _RESERVED_IN_SECTION, 0) if number >= 90 else section.size


def _constant_bytes(elf: Elf, name: str) -> dict[int, int]:
    """Sizes of the kernel's own constant banks, and of the module's common ones."""
    banks: dict[int, int] = {}
    for section in elf.sections:
        found = re.fullmatch(rf"\.nv\.constant(\d+)(?:\.{re.escape(name)})?", section.name)
        if found:
            banks[int(found[1])] = banks.get(int(found[1]), 0) + section.size
    return banks


def _spills(code: Section, attributes: list[Attribute]) -> tuple[int, int]:
    """Bytes stored and loaded by the instructions that are annotated as spills."""
    stores, loads = 0, 0
    for offset in _annotated(attributes, nv_info.SPILL_ANNOTATION):
        low, high = struct.unpack_from("<QQ", code.data, offset)
        size = _ACCESS_BYTES[high >> 9 & 7]
        if low & 0xFFF == _STORE_LOCAL:
            stores += size
        elif low & 0xFFF == _LOAD_LOCAL:
            loads += size
    return stores, loads


def _annotated(attributes: list[Attribute], kind: int) -> Iterator[int]:
    """Offsets of the instructions that carry an annotation of this kind."""
    for attribute in attributes:
        if attribute.number == nv_info.ANNOTATIONS:
            words = attribute.words()
            yield from (offset for found, offset in zip(words[::2], words[1::2], strict=False) if found == kind)


def line_table(cubin: bytes, kernel: str) -> list[tuple[int, str, int]]:
    """The source line of each stretch of a kernel's code: (byte offset where it begins, file, line).

    Empty when the PTX text had no `.loc` directives. Offsets ascend; lines that hold no instruction are left out.

    Raises:
        CompileError: no such kernel, or a damaged table.
    """
    return _lines(cubin, kernel, ".debug_line")


def ptx_line_table(cubin: bytes, kernel: str) -> list[tuple[int, int]]:
    """The PTX line of each stretch of a kernel's code: (byte offset where it begins, line from 1).

    Empty unless assembled with `lineinfo`.

    Raises:
        CompileError: no such kernel, or a damaged table.
    """
    return [(offset, line) for offset, _, line in _lines(cubin, kernel, ".nv_debug_line_sass")]


def _lines(cubin: bytes, kernel: str, table: str) -> list[tuple[int, str, int]]:
    elf = read_elf(cubin)
    symbol = next((symbol for symbol in elf.symbols if _is_kernel(symbol) and symbol.name == kernel), None)
    if symbol is None:
        names = [found.name for found in elf.symbols if _is_kernel(found)]
        raise CompileError(f"the cubin has no kernel {kernel!r}", hint=f"it has: {', '.join(names) or 'none'}")
    section = elf.section(table)
    if section is None:
        return []
    places: Iterator[Relocation] = elf.relocations(section)
    # At one offset the last row holds: those before it cover no instruction.
    found: dict[int, tuple[str, int]] = {}
    for row in read_rows(section.data, places):
        if row.section == symbol.section and not row.last:
            found[row.address] = (row.file, row.line)
    return [(offset, *found[offset]) for offset in sorted(found) if offset < elf.sections[symbol.section].size]
