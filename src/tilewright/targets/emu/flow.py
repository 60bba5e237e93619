"""What registers an instruction names, and where values of interest can flow in a function."""

from __future__ import annotations

from tilewright.targets.emu.ptx import Function, Instruction, Mem, Neg, Operand, Pair, Part, Reg, Special, Sym, Vec


def taint_register(name: str) -> Reg:
    """The predicate that says whether register `name` depends on memory never written."""
    return Reg(f"%taint {name}", "pred")


def find_taintable(function: Function) -> set[str]:
    """Registers that a load from shared or local memory can reach, or a register that is read unwritten."""
    marked: set[str] = set(function.unwritten)
    flows: dict[str, set[str]] = {}
    for instruction in function.body:
        if not instruction.ops or instruction.op == "pin":
            continue
        to = {reg.name for reg in registers_in(instruction.ops[0])}
        spaces = {m.split("::")[0] for m in instruction.mods}
        loads = instruction.op in ("ld", "atom") or "load" in instruction.mods  # wmma.load
        kernel = "param" in spaces and _of_kernel(function, instruction)
        if instruction.op == "ldmatrix" or (loads and not spaces & {"global", "const"} and not kernel):
            marked |= to
        if instruction.op == "shfl":
            marked |= to  # a lane that it reads may take no part
        if instruction.op == "wgmma" and "mma_async" in instruction.mods:
            marked |= to  # its operands lie in shared memory
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


def _of_kernel(function: Function, instruction: Instruction) -> bool:
    """Whether a load is of a kernel's own parameter: those have values."""
    place = instruction.ops[1] if len(instruction.ops) > 1 else None
    base = place.base if isinstance(place, Mem) else None
    return function.entry and isinstance(base, Sym) and any(base.name == v.name for v in function.params)


PICKING = frozenset({"and", "shl", "shr", "shf", "bfe", "bfi", "prmt", "lop3"})
"""Instructions of which a result may depend on some bytes of an operand only."""
NARROW = frozenset({"u8", "s8", "u16", "s16", "u32", "s32"})


def find_picked(function: Function) -> set[str]:
    """Registers of which some instruction may use a part, directly or once moved or added in packed form."""
    picked: set[str] = set()
    sources: dict[str, set[str]] = {}
    for instruction in function.body:
        read = {reg.name for operand in instruction.ops[1:] for reg in registers_in(operand)}
        if _picks(instruction):
            picked |= read
        elif instruction.op in ("mov", "selp") or (instruction.type or "").endswith("x2"):
            for operand in instruction.ops[:1]:
                for reg in registers_in(operand):
                    sources.setdefault(reg.name, set()).update(read)
    work = list(picked)
    while work:
        new = sources.get(work.pop(), set()) - picked
        picked |= new
        work += new
    return picked


def _picks(i: Instruction) -> bool:
    """Whether an instruction may use a part of an operand only; a store within the block moves padding, too."""
    if i.op == "st":
        return "global" not in i.mods
    if i.op == "mov":
        return any(isinstance(operand, Vec | Part) for operand in i.ops)
    if i.op == "cvt":
        return len(i.mods) > 1 and i.mods[-2] in NARROW and i.mods[-1] not in ("f16", "bf16", "f32", "f64")
    return i.op in PICKING or any(isinstance(operand, Part) for operand in i.ops[1:])


def find_accumulators(function: Function) -> set[str]:
    """Registers that wgmma writes."""
    return {
        reg.name for i in function.body if i.op == "wgmma" and "mma_async" in i.mods for reg in registers_in(i.ops[0])
    }


def find_fragments(function: Function) -> set[str]:
    """Registers from which wgmma takes its matrix A."""
    return {
        reg.name
        for i in function.body
        if i.op == "wgmma" and "mma_async" in i.mods and len(i.ops) > 1 and isinstance(i.ops[1], Vec)
        for reg in registers_in(i.ops[1])
    }


STRONG = frozenset({"volatile", "relaxed", "acquire", "mmio"})


def is_poll(i: Instruction) -> bool:
    """Whether a waiting thread may repeat an instruction until another thread has done something."""
    if i.op == "mbarrier":
        return i.mods[0] in ("test_wait", "try_wait")
    return i.op in ("atom", "nanosleep") or (i.op == "ld" and not STRONG.isdisjoint(i.mods))


CHANGING = frozenset({
    "st", "red", "atom", "cp", "mbarrier", "stmatrix", "wgmma", "tensormap", "bar", "barrier", "call", "trap",
    "exit", "ret",
})  # fmt: skip
CLOCKS = ("clock", "globaltimer")


def changes(i: Instruction) -> bool:
    """Whether an instruction may change memory, meet other threads or see time pass, so that a loop may end by it."""
    if any(isinstance(operand, Special) and operand.name.startswith(CLOCKS) for operand in i.ops):
        return True
    if i.op == "mbarrier":
        return not is_poll(i)
    return i.op in CHANGING or "store" in i.mods


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
