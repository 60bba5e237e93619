"""What the memory model sees of an instruction: strength, scope, order (PTX ISA, chapter 8)."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.targets.emu.ptx import Instruction

CTA, CLUSTER, GPU = range(3)
_SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": GPU}
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}


@dataclass(frozen=True)
class Access:
    """`strong` accesses do not race with each other within their `scope`; `acquires` and `releases` order others."""

    strong: bool = False
    scope: int = GPU
    acquires: bool = False
    releases: bool = False
    atomic: bool = False


WEAK = Access()


def access_of(instruction: Instruction) -> Access:
    """The attributes of a memory instruction."""
    mods = set(instruction.mods)
    if instruction.op == "mbarrier":
        return Access("init" not in mods and "inval" not in mods, CLUSTER, atomic=True)
    if instruction.op == "cp" and "reduce" in mods:
        return Access(True, GPU, atomic=True)
    atomic = instruction.op in ("atom", "red") or (instruction.op == "red" and "async" in mods)
    strong = atomic or bool(mods & _STRONG)
    scope = next((_SCOPES[m] for m in instruction.mods if m in _SCOPES), GPU)
    acquires = bool(mods & {"acquire", "acq_rel"})
    releases = bool(mods & {"release", "acq_rel"})
    return Access(strong, scope, acquires, releases, atomic)


def synchronises(instructions: list[Instruction]) -> bool:
    """Whether a kernel has anything that orders memory beside barriers of the whole block."""
    for i in instructions:
        mods = set(i.mods)
        if i.op in ("fence", "membar", "mbarrier", "st") and (i.op != "st" or mods & {"release", "async"}):
            return True
        if i.op in ("ld", "atom", "red") and mods & {"acquire", "release", "acq_rel"}:
            return True
        if i.op in ("bar", "barrier") and (len(i.ops) > 1 or mods & {"warp", "arrive", "cluster"}):
            return True
        if i.op == "cp" and "async" in mods:
            return True
    return False
