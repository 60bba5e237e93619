"""The machine code of a kernel beyond its text: the control-flow graph, and the registers of each instruction."""

from __future__ import annotations

from typing import Any

from tilewright.targets.nvidia.backend.stage_lines import sass_offsets
from tilewright.targets.nvidia.sass.blocks import reachable
from tilewright.targets.nvidia.sass.machine_code import MachineCode
from tilewright.targets.nvidia.sass.registers import Registers
from tilewright.tools.located import StageText


def machine(code: MachineCode, text: StageText) -> dict[str, Any]:
    """What the page shows of machine code, by the lines of its text, from 1.

    `blocks` are the basic blocks that can be reached, in order: first and last line, the places in the list of those
    that come next, and the longest chain of dependent instructions. `registers` has for each instruction how many of
    each kind are live, and what it reads and writes.
    """
    lines = {offset: at for at, offset in enumerate(sass_offsets(text.text, code.kernel), 1) if offset is not None}
    blocks = reachable(code.blocks)
    order = {block.number: at for at, block in enumerate(blocks)}
    return {
        "blocks": [
            {
                "first": lines[block.instructions[0].offset],
                "last": lines[block.last.offset],
                "next": [order[number] for number in block.successors],
                "steps": block.steps,
            }
            for block in blocks
        ],
        "registers": {lines[offset]: _shown(used) for offset, used in code.registers.items() if offset in lines},
    }


def _shown(used: Registers) -> dict[str, Any]:
    live = {kind: count for kind, count in used.live.items() if count}
    return {"live": live, "reads": ordered(used.reads), "writes": ordered(used.writes)}


def ordered(names: frozenset[str]) -> list[str]:
    """Names of registers by kind, then by number: P0, R2, R10, UR4."""
    return sorted(names, key=lambda name: (name.rstrip("0123456789"), len(name), name))
