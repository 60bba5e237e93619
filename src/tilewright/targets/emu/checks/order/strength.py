"""What the memory model sees of an instruction: strength, scope, order (PTX ISA, chapter 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.targets.emu.ptx import Instruction
from tilewright.targets.emu.ptx.ir import WIDTH

CTA, CLUSTER, GPU, SYS = range(4)
SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": SYS}
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}
_SYSTEM = {"volatile", "mmio"}
"""Of system scope, whether they say so or not (PTX ISA 8.4)."""


@dataclass(frozen=True)
class Strength:
    """`strong` accesses of one `size` (bytes of an element) do not race with each other within their `scope`;
    `acquires` and `releases` order others."""

    strong: bool = False
    scope: int = GPU
    acquires: bool = False
    releases: bool = False
    atomic: bool = False
    size: int = 0
    constant: bool = False
    """By a cache that knows nothing of what this kernel writes (`ld.global.nc`)."""


WEAK = Strength()


def strength_of(instruction: Instruction) -> Strength:
    """The attributes of a memory instruction."""
    mods = set(instruction.mods)
    if instruction.op == "tensormap":  # the release of `cp_fenceproxy` is of another proxy
        return WEAK
    if instruction.op == "mbarrier" or (instruction.op == "cp" and {"mbarrier", "arrive"} <= mods):
        return Strength("init" not in mods and "inval" not in mods, CLUSTER, atomic=True, size=8)
    size = WIDTH.get(instruction.type or "", 0) // 8
    if instruction.op == "cp" and "reduce" in mods:
        return Strength(True, GPU, atomic=True, size=size)
    atomic = instruction.op in ("atom", "red") or (instruction.op == "red" and "async" in mods)
    strong = atomic or bool(mods & _STRONG)
    scope = next((SCOPES[m] for m in instruction.mods if m in SCOPES), SYS if mods & _SYSTEM else GPU)
    acquires = bool(mods & {"acquire", "acq_rel"})
    releases = bool(mods & {"release", "acq_rel"})
    return Strength(strong, scope, acquires, releases, atomic, size, instruction.op == "ld" and "nc" in mods)


def narrow_scopes(instructions: Sequence[Instruction]) -> bool:
    """Whether a kernel has anything of a scope below that of the device."""
    ops = ("ld", "st", "atom", "red", "fence", "membar")
    return any(i.op in ops and ("cta" in i.mods or "cluster" in i.mods) for i in instructions)


def synchronises(instructions: Sequence[Instruction]) -> bool:
    """Whether a kernel has anything that orders memory beside barriers of the whole block."""
    for i in instructions:
        mods = set(i.mods)
        if i.op in ("fence", "membar", "mbarrier", "st") and (i.op != "st" or mods & {"release", "async"}):
            return True
        if i.op in ("ld", "atom", "red") and mods & {"acquire", "release", "acq_rel"}:
            return True
        if i.op in ("bar", "barrier") and (len(i.ops) > 1 or mods & {"warp", "arrive", "cluster"}):
            return True
        if i.op == "wgmma" or (i.op == "cp" and "async" in mods):
            return True
    return False
