"""Instructions that are known and not executed: each is refused with the reason."""

from __future__ import annotations

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.ptx import Instruction

REASONS = {
    "multimem": ("it needs a multicast address, which several devices share; an emulated launch is on one device",
                 "write the loop over the devices' buffers, or test the kernel without the multicast step"),
    **dict.fromkeys(("tex", "tld4", "txq", "istypep"), ("the emulator has no textures", "load from global memory")),
    **dict.fromkeys(("suld", "sust", "sured", "suq"), ("the emulator has no surfaces", "use global memory")),
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"),
                    ("the emulator's stack frames have a fixed size", "declare a .local array of the greatest size")),
    **dict.fromkeys(("tcgen05", "clusterlaunchcontrol"), ("the emulator ends at sm_90a", "compile for sm_90a")),
}  # fmt: skip
"""By the first word of the opcode: why it is refused, and what to do instead."""


@rule(*REASONS)
def refuse(c: BlockCoder, i: Instruction) -> None:
    reason, hint = REASONS[i.op]
    raise c.fail(f"{i.opcode} is not emulated: {reason}", hint=hint)
