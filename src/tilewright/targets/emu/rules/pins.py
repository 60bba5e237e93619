"""Pins: comments of a debug build that say which registers hold the value of a variable of the source.

They execute nothing. A kernel that runs under a debugger tells it what the threads that come by have there.
"""

from __future__ import annotations

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.ptx import Instruction, Reg


@rule("pin")
def pin(c: BlockCoder, i: Instruction) -> None:
    if not c.owner.steps:
        return
    values = [c.use(op, op.type if isinstance(op, Reg) else "b64") for op in i.ops]
    c.emit(f"S.launch.options.debugger.pin({c.owner.bind(i)}, L, ({''.join(f'{value}, ' for value in values)}))")
