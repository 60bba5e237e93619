"""What registers an instruction names, and where values of interest can flow in a function."""

from __future__ import annotations

from tilewright.targets.emu.ptx import Function, Instruction, Neg, Operand, Pair, Part, Reg, Vec


def taint_register(name: str) -> Reg:
    """The predicate that says whether register `name` depends on memory never written."""
    return Reg(f"%taint {name}", "pred")


def find_taintable(function: Function) -> set[str]:
    """Registers that a load from shared or local memory can reach."""
    marked: set[str] = set()
    flows: dict[str, set[str]] = {}
    for instruction in function.body:
        if not instruction.ops:
            continue
        to = {reg.name for reg in registers_in(instruction.ops[0])}
        spaces = {m.split("::")[0] for m in instruction.mods}
        loads = instruction.op == "ld" or "load" in instruction.mods  # wmma.load
        if instruction.op == "ldmatrix" or (loads and not spaces & {"global", "const", "param"}):
            marked |= to
        if instruction.op in ("st", "red", "ld", "ldu", "atom", "ldmatrix"):
            continue
        for operand in instruction.ops[1:]:
            operand = operand.reg if isinstance(operand, Neg) else operand
            for reg in registers_in(operand):
                flows.setdefault(reg.name, set()).update(to)
    work = list(marked)
    while work:
        for name in flows.get(work.pop(), ()):
            if name not in marked:
                marked.add(name)
                work.append(name)
    return marked


def find_accumulators(function: Function) -> set[str]:
    """Registers that wgmma writes."""
    return {
        reg.name for i in function.body if i.op == "wgmma" and "mma_async" in i.mods for reg in registers_in(i.ops[0])
    }


def registers_in(operand: Operand) -> list[Reg]:
    """The registers of an operand, those of addresses left out."""
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Part):
        return [operand.reg]
    if isinstance(operand, Vec):
        return [reg for item in operand.items for reg in registers_in(item)]
    if isinstance(operand, Pair):
        return registers_in(operand.first) + registers_in(operand.second)
    return []


def membermask(instruction: Instruction) -> Operand | None:
    """The membermask operand of a warp instruction, None where all threads of the warp take part."""
    if instruction.op in ("shfl", "vote", "match", "redux") and "sync" in instruction.mods:
        return instruction.ops[-1]
    if instruction.op == "elect":
        return instruction.ops[-1]
    return None
