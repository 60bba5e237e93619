"""Machine code as text, by nvdisasm, and that text as instructions.

There is no assembler for it, so it is a view: the code itself is the cubin.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.binary.elf import read_elf
from tilewright.targets.nvidia.sass.table import Category, Space, category_of, space_of
from tilewright.targets.nvidia.toolkit import toolchain

TIME_LIMIT: Final = 300.0
"""Seconds that nvdisasm may take."""

LiveRegisterMode = Literal["wide", "narrow", "count"]

_INSTRUCTION: Final = re.compile(
    r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<predicate>@!?U?P[T0-9]+\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<rest>.*)$"
)
_SECTION: Final = re.compile(r"^\.text\.(?P<kernel>.+):\s*$")
_LINE_MARK: Final = re.compile(r'^\s*//## File "(?P<file>.*?)", line (?P<line>\d+)')
_ACCESS_BYTES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


@dataclass(frozen=True)
class Instruction:
    """One machine instruction.

    `offset` counts bytes from the start of the kernel; `mnemonic` is the name before the first dot, `modifiers` the
    names after it. `file` and `line` are the source line where the disassembly was made with `lines`, else "" and 0.
    """

    kernel: str
    offset: int
    predicate: str
    mnemonic: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    text: str
    file: str = ""
    line: int = 0

    @property
    def category(self) -> Category:
        return category_of(self.mnemonic)


@dataclass(frozen=True)
class MemoryAccess:
    """What a memory instruction touches: the space, and how many bytes per thread (0 where it moves a block)."""

    instruction: Instruction
    space: Space
    bytes: int


def disassemble(cubin: bytes, *, lines: bool = False, kernel: str | None = None, extra: Sequence[str] = ()) -> str:
    """The code of a cubin as text.

    Args:
        cubin: the ELF file.
        lines: print the source line before the instructions that it gave.
        kernel: only this kernel; all by default.
        extra: further flags of nvdisasm.

    Raises:
        CompileError: nvdisasm is missing or refuses, or there is no such kernel.
    """
    return _nvdisasm(cubin, ["--print-code", *(["--print-line-info"] if lines else []), *extra], kernel)


def control_flow_graph(cubin: bytes, *, kernel: str | None = None) -> str:
    """The control-flow graph in the language of graphviz, one node for each stretch without jumps."""
    return _nvdisasm(cubin, ["--output-control-flow-graph-with-basic-blocks"], kernel)


def live_registers(cubin: bytes, *, kernel: str | None = None, mode: LiveRegisterMode = "wide") -> str:
    """The code with the registers that are live at each instruction beside it.

    `mode` is nvdisasm's: columns far apart (`wide`), close (`narrow`), or only their number (`count`).
    """
    return _nvdisasm(cubin, ["--print-code", f"--life-range-mode={mode}"], kernel)


def _nvdisasm(cubin: bytes, options: Sequence[str], kernel: str | None) -> str:
    tool = toolchain.find("nvdisasm")
    only = [] if kernel is None else [f"--cuda-function-index={_symbol_index(cubin, kernel)}"]
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        done = toolchain.run_tool([str(tool.path), *options, *only, str(file)], TIME_LIMIT)
    if done.returncode:
        words = done.stderr.replace(str(file), "kernel.cubin").strip()
        raise CompileError(f"nvdisasm cannot read the cubin: {words}", nvvm_error=words)
    return done.stdout


def _symbol_index(cubin: bytes, kernel: str) -> int:
    functions = {symbol.name: i for i, symbol in enumerate(read_elf(cubin).symbols) if symbol.kind == 2}
    if kernel not in functions:
        raise CompileError(f"the cubin has no kernel {kernel!r}", hint=f"it has: {', '.join(functions) or 'none'}")
    return functions[kernel]


def parse(text: str) -> list[Instruction]:
    """The instructions of a disassembly, in order, without the padding that ends each kernel."""
    kept: list[Instruction] = []
    ended: set[str] = set()
    for instruction in reversed(list(_instructions(text))):
        if instruction.mnemonic != "NOP":
            ended.add(instruction.kernel)
        if instruction.kernel in ended:
            kept.append(instruction)
    return kept[::-1]


def _instructions(text: str) -> Iterator[Instruction]:
    kernel, file, line = "", "", 0
    for row in text.splitlines():
        section, mark = _SECTION.match(row), _LINE_MARK.match(row)
        if section:
            kernel, file, line = section["kernel"], "", 0
        elif mark:
            file, line = mark["file"], int(mark["line"])
        else:
            match = _INSTRUCTION.match(row)
            if match:
                yield _instruction(match, kernel, file, line)


def _instruction(match: re.Match[str], kernel: str, file: str, line: int) -> Instruction:
    # After the semicolon come the encoding and the columns of live registers; annotations stand before it.
    rest = re.sub(r'\(\*".*?"\*\)', "", match["rest"].partition(";")[0]).strip()
    predicate = (match["predicate"] or "").strip()
    mnemonic, *modifiers = match["opcode"].split(".")
    text = " ".join(part for part in (predicate, match["opcode"], rest) if part)
    return Instruction(
        kernel, int(match["offset"], 16), predicate, mnemonic, tuple(modifiers), split_operands(rest), text, file, line
    )


def split_operands(text: str) -> tuple[str, ...]:
    """Operands at the commas that stand outside of brackets."""
    operands, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth == 0:
            operands.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return tuple([*operands, last] if last else operands)


def histogram(instructions: Iterable[Instruction]) -> dict[str, int]:
    """How often each mnemonic occurs, most frequent first, then by name."""
    counts = Counter(instruction.mnemonic for instruction in instructions)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def by_category(instructions: Iterable[Instruction]) -> dict[Category, list[Instruction]]:
    """The instructions of each category: memory, arithmetic, control, thread, special."""
    groups: dict[Category, list[Instruction]] = {
        "memory": [], "arithmetic": [], "control": [], "thread": [], "special": [],
    }  # fmt: skip
    for instruction in instructions:
        groups[instruction.category].append(instruction)
    return groups


def memory_accesses(instructions: Iterable[Instruction]) -> list[MemoryAccess]:
    """The loads, stores, atomics and copies, each with its space and width."""
    return [MemoryAccess(i, space, _width(i)) for i in instructions if (space := space_of(i.mnemonic)) is not None]


def _width(instruction: Instruction) -> int:
    if instruction.mnemonic.startswith("U") and not instruction.mnemonic.startswith("UL"):
        return 0  # block copies of the uniform datapath have their size in an operand
    widths = [_ACCESS_BYTES[name] for name in instruction.modifiers if name in _ACCESS_BYTES]
    return widths[-1] if widths else 4


def branches(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The jumps and exits that only some threads take: where a warp may diverge."""
    return [i for i in instructions if i.category == "control" and i.predicate and i.mnemonic in ("BRA", "EXIT", "BRX",
            "CALL", "RET", "JMP", "BREAK")]  # fmt: skip
