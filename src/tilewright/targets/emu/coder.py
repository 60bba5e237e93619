"""PTX blocks to Python functions over register arrays.

`FunctionCoder` numbers the registers of a function and compiles its blocks; `BlockCoder` is what the rules of
`rules/` write to. Inside a block every PTX value is a Python name; a register is read from the cohort at its first
use and written back at the end of the block where a later block needs it. Values change type by views, made once.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu import runtime
from tilewright.targets.emu.cfg import Block, build_blocks
from tilewright.targets.emu.code import KINDS, Call, Code, CodeBlock, lay_out
from tilewright.targets.emu.dtypes import DTYPE, NUMPY, SIGNED, UNSIGNED, bits_of, make_constant
from tilewright.targets.emu.faults import located
from tilewright.targets.emu.fidelity import form_of
from tilewright.targets.emu.flow import (
    changes,
    find_accumulators,
    find_fragments,
    find_picked,
    find_taintable,
    is_poll,
    membermask,
    registers_in,
    taint_register,
)
from tilewright.targets.emu.memory import LOCAL_WINDOW, SHARED_WINDOW
from tilewright.targets.emu.numerics.forms import check_form
from tilewright.targets.emu.ptx import (
    Function,
    Imm,
    Instruction,
    Mem,
    Neg,
    Operand,
    Part,
    Reg,
    Sink,
    Special,
    Sym,
)
from tilewright.targets.emu.ptx.ir import WIDTH
from tilewright.targets.emu.ptx.parser import literal_float
from tilewright.targets.emu.work import work_of

DECIDED = frozenset({"st", "red", "atom", "cp", "bar", "barrier", "mbarrier", "call", "stmatrix", "wmma", "trap"})
"""Instructions whose guard is looked at as the condition of a branch."""

Rule = Callable[["BlockCoder", Instruction], None]
RULES: dict[str, Rule] = {}
"""One rule for each instruction, by the longest leading words of its opcode."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule under opcodes such as `add` or `bar.sync`."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = function
        return function

    return register


def find_rule(instruction: Instruction) -> Rule | None:
    words = (instruction.op, *instruction.mods)
    for count in range(min(len(words), 6), 0, -1):
        found = RULES.get(".".join(words[:count]))
        if found is not None:
            return found
    return None


def executed(block: Block) -> list[Instruction]:
    """The instructions of a block; pins are none."""
    return [i for i in (*block.body, block.ending) if i is not None and i.op != "pin"]


class FunctionCoder:
    """Compiles one function of a program.

    `checks` adds the code that watches for mistakes. With `steps` there is a second function for each block, which
    calls the debugger after every instruction.
    """

    def __init__(self, program: Any, function: Function, number: int, checks: bool, steps: bool = False) -> None:
        self.program = program
        self.function = function
        self.checks = checks
        self.steps = steps
        self.code = Code(function, number)
        self.namespace: dict[str, Any] = dict(runtime.NAMESPACE)
        self.constants: dict[tuple[Any, str], str] = {}
        self.canonical: dict[str, str] = {}
        self.registers: dict[str, Reg] = {}
        self.taintable: set[str] = find_taintable(function) if checks else set()
        self.unwritten = {taint_register(name).name for name in function.unwritten}
        self.picked: set[str] = find_picked(function) if checks else set()
        self.accumulators: set[str] = find_accumulators(function) if checks else set()
        self.fragments: set[str] = find_fragments(function) if checks else set()
        self._lay_out()

    @property
    def kernel(self) -> str:
        return self.function.name

    def _lay_out(self) -> None:
        """Local variables, call parameters and, in device functions, formal parameters get a place in the frame."""
        function = self.function
        local = [v for v in function.variables.values() if v.space == "local"]
        formal = {v.name for v in (*function.params, *function.returns)}
        passed = [
            v for v in function.variables.values() if v.space == "param" and not (function.entry and v.name in formal)
        ]
        self.code.places, self.code.frame = lay_out(local + passed)

    def compile(self) -> Code:
        function = self.function
        blocks = build_blocks(function, self.kernel)
        self._vote(function)
        coders = [BlockCoder(self, block) for block in blocks]
        for coder in coders:
            coder.translate()
        self._liveness(coders)
        lines: list[str] = []
        origin: list[Instruction | None] = []
        for coder in coders:
            coder.finish()
            lines += coder.output
            origin += coder.origin
        source = "\n".join(lines) + "\n"
        self.code.source, self.code.lines = source, origin
        # The text is made here from a parsed program: names and numbers only, never text of the PTX.
        exec(compile(source, f"<ptx {function.name}>", "exec"), self.namespace)
        self._blocks(coders)
        return self.code

    def number(self, reg: Reg) -> int:
        numbers = self.code.numbers
        found = numbers.get(reg.name)
        if found is None:
            found = numbers[reg.name] = len(numbers)
            self.registers[reg.name] = reg
            self.code.zeros.append(self.zero(reg))
        return found

    def zero(self, reg: Reg) -> Any:
        kind = self.kind(reg)
        if reg.name in self.unwritten:
            return np.bool_(True)
        return np.zeros((1, 2), np.uint64) if kind == "q" else NUMPY[kind].type(0)

    def kind(self, reg: Reg) -> str:
        """The NumPy type in which a register passes from block to block."""
        found = self.canonical.get(reg.name)
        if found is None:
            kind = DTYPE[reg.type]
            found = kind if kind in ("p", "q", "f4", "f8") else UNSIGNED[reg.width]
            self.canonical[reg.name] = found
        return found

    def _vote(self, function: Function) -> None:
        """A 32- or 64-bit register that is mostly used as a float passes as one: fewer views."""
        votes: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for instruction in function.body:
            kind = instruction.type
            for operand in instruction.ops:
                for reg in registers_in(operand):
                    if reg.width in (32, 64) and not isinstance(operand, Mem):
                        floats = kind == ("f32" if reg.width == 32 else "f64")
                        votes[reg.name] = votes.get(reg.name, 0) + (1 if floats else -1)
                        sizes[reg.name] = reg.width
        for name, vote in votes.items():
            if vote > 0:
                self.canonical[name] = f"f{sizes[name] // 8}"
            else:
                self.canonical[name] = f"u{sizes[name] // 8}"

    def _liveness(self, coders: list[BlockCoder]) -> None:
        """Which registers each block needs: from each use back to the writes that reach it, block by block."""
        # A register at a time, so that the work is no larger than the answer: sets of all registers by block would make
        # kernels of thousands of blocks quadratic.
        before: list[list[int]] = [[] for _ in coders]
        users: dict[int, list[int]] = {}
        for index, coder in enumerate(coders):
            for target in set(coder.block.targets):
                before[target].append(index)
            for number in coder.live_in:
                users.setdefault(number, []).append(index)
        for number in sorted(users):
            work = users[number]
            needed, passed = set(work), set()
            while work:
                index = work.pop()
                coders[index].live.append(number)
                for earlier in before[index]:
                    if earlier in passed:
                        continue
                    passed.add(earlier)
                    coders[earlier].live_out.add(number)
                    if earlier not in needed and number not in coders[earlier].written:
                        needed.add(earlier)
                        work.append(earlier)

    def _blocks(self, coders: list[BlockCoder]) -> None:
        for coder in coders:
            block = coder.block
            first = block.body[0] if block.body else block.ending
            targets = block.targets[::-1] if block.kind == "cond" and block.negated else block.targets
            compiled = CodeBlock(
                run=self.namespace[f"b{block.index}"],
                kind=KINDS[block.kind],
                targets=targets,
                order=block.order,
                live=coder.live,
                serial=self.program.next_serial(),
                first=first,
                body=block.body,
                stepped=self.namespace.get(f"s{block.index}"),
                last=block.ending or (block.body[-1] if block.body else None),
                gate=self.namespace.get(f"g{block.index}"),
                gate_site=block.gate,
                poll=next((i for i in block.body if is_poll(i)), None),
                call=coder.call,
                classes=coder.classes(),
                forms=coder.forms(),
                lines=coder.source_lines(),
                ptx_lines=coder.ptx_lines(),
                work=work_of(executed(block)),
                instructions=len(executed(block)),
                changes=any(changes(i) for i in executed(block)),
            )
            self.code.blocks.append(compiled)

    # Constants.

    def constant(self, value: Any, dtype: str) -> str:
        """The name of a NumPy scalar in the generated code."""
        if dtype == "p":
            return "TRUE" if value else "FALSE"
        scalar = make_constant(value, dtype)
        key = (scalar.tobytes(), dtype)
        name = self.constants.get(key)
        if name is None:
            name = self.constants[key] = f"K{len(self.constants)}"
            self.namespace[name] = scalar
        return name

    def bind(self, value: Any) -> str:
        """The name of any object in the generated code."""
        name = f"O{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def site(self, instruction: Instruction) -> int:
        self.program.sites.append(instruction)
        return len(self.program.sites) - 1


class BlockCoder:
    """The code of one block. Rules call `use` for operands and `set` for results."""

    def __init__(self, owner: FunctionCoder, block: Block) -> None:
        self.owner = owner
        self.block = block
        self.lines: list[str] = []
        self.step_lines: set[int] = set()
        self.places: list[Instruction | None] = []
        self.head: list[str] = []
        self.output: list[str] = []
        self.origin: list[Instruction | None] = []
        self.values: dict[str, dict[str, str]] = {}
        self.live_in: set[int] = set()
        self.written: dict[int, Reg] = {}
        self.live_out: set[int] = set()
        self.live: list[int] = []
        self.call: Call | None = None
        self.instruction: Instruction | None = None
        self.names = 0
        self.guard = ""
        self.guard_taint = "FALSE"
        self.result = ""
        self.gate_lines: list[str] = []
        self.sources: set[str] = set()
        self.taint = ""
        self.results: list[str] = []
        self.address = ""

    # Writing.

    def emit(self, text: str) -> None:
        self.lines.append("    " + text)
        self.places.append(self.instruction)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def let(self, text: str) -> str:
        """A new name for an expression."""
        name = self.name()
        self.emit(f"{name} = {text}")
        return name

    def fail(self, message: str, hint: str | None = None) -> EmulationError:
        return located(message, self.instruction, self.owner.kernel, hint=hint)

    def constant(self, value: Any, dtype: str) -> str:
        return self.owner.constant(value, dtype)

    # Reading operands.

    def use(self, operand: Operand, kind: str) -> str:
        """The value of an operand as PTX type `kind`: a Python expression, safe to use several times."""
        dtype = DTYPE[kind]
        if isinstance(operand, Reg):
            self.sources.add(operand.name)
            return self.register(operand, dtype)
        if isinstance(operand, Imm):
            return self.immediate(operand, dtype, kind)
        if isinstance(operand, Neg):
            self.sources.add(operand.reg.name)
            return self.let(f"~{self.register(operand.reg, 'p')}")
        if isinstance(operand, Part):
            return self.use(operand.reg, kind)
        if isinstance(operand, Special):
            return self.special(operand, dtype)
        if isinstance(operand, Sym):
            return self.symbol(operand, dtype)
        raise self.fail(f"a {type(operand).__name__.lower()} operand is not allowed here")

    def register(self, reg: Reg, dtype: str) -> str:
        views = self.values.get(reg.name)
        if views is None:
            views = self._read(reg)
        found = views.get(dtype)
        if found is not None:
            return found
        have, name = next(iter(views.items()))
        wanted, width = bits_of(dtype), bits_of(have)
        if "p" in (dtype, have) or "q" in (dtype, have):
            raise self.fail(f"register {reg.name.split('@')[0]} of type .{reg.type} does not fit here")
        if wanted == width:
            found = self.let(f"{name}.view({dtype})")
        else:
            source = views.get(UNSIGNED[width]) or self.let(f"{name}.view({UNSIGNED[width]})")
            views[UNSIGNED[width]] = source
            found = self.let(f"{source}.astype({UNSIGNED[wanted]})")
            if dtype != UNSIGNED[wanted]:
                found = self.let(f"{found}.view({dtype})")
        views[dtype] = found
        return found

    def _read(self, reg: Reg) -> dict[str, str]:
        number = self.owner.number(reg)
        name = f"r{number}"
        self.live_in.add(number)
        self.head.append(f"    {name} = R[{number}]")
        self.head.append(f"    if {name}.__class__ is Pending: {name} = R[{number}] = {name}.get()")
        views = self.values[reg.name] = {self.owner.kind(reg): name}
        return views

    def immediate(self, operand: Imm, dtype: str, kind: str) -> str:
        if dtype == "p":
            return "TRUE" if operand.value else "FALSE"
        if dtype[0] == "f":
            if operand.bits:
                raw = struct.pack("<I" if operand.bits == 32 else "<Q", int(operand.value))
                if operand.bits == bits_of(dtype):
                    return self._bits(raw, dtype)
                return self.constant(literal_float(operand), dtype)
            if isinstance(operand.value, int) and bits_of(dtype) == 16:
                return self._bits((operand.value & 0xFFFF).to_bytes(2, "little"), dtype)
            return self.constant(float(operand.value), dtype)
        if isinstance(operand.value, float) or (operand.bits and kind not in ("b32", "b64", "u32", "u64")):
            if kind in ("f32x2", "b32", "b64") and operand.bits:
                return self.constant(operand.value, dtype)
            raise self.fail(f"a float literal where .{kind} is needed")
        if operand.bits == 32 and bits_of(dtype) == 64:
            raise self.fail(f"a 32-bit float literal where .{kind} is needed")
        return self.constant(operand.value, dtype)

    def _bits(self, raw: bytes, dtype: str) -> str:
        value = np.frombuffer(raw, NUMPY[dtype])[0]
        key = (raw, dtype)
        name = self.owner.constants.get(key)
        if name is None:
            name = self.owner.constants[key] = f"K{len(self.owner.constants)}"
            self.owner.namespace[name] = value
        return name

    def special(self, operand: Special, dtype: str) -> str:
        name = operand.name
        have, text = runtime.special_register(name, self._left())
        if not text:
            raise self.fail(f"special register %{name} is not emulated")
        value = self.let(text)
        if have == dtype:
            return value
        if "p" in (have, dtype):
            raise self.fail(f"special register %{name} does not fit here")
        if bits_of(have) == bits_of(dtype):
            return self.let(f"{value}.view({dtype})")
        return self.let(f"{value}.astype({dtype})")

    def _left(self) -> int:
        """How many instructions of the block there are from this one on."""
        listed = executed(self.block)
        return next((len(listed) - n for n, item in enumerate(listed) if item is self.instruction), 0)

    def symbol(self, operand: Sym, dtype: str) -> str:
        """The address of a symbol: in its own state space for shared and local, else generic."""
        value = self.place(operand)
        if dtype in ("u8", "i8", "u4", "i4"):
            if isinstance(value, int):
                return self.constant(value, dtype)
            return self.let(f"{dtype}.type({value})")
        raise self.fail(f"the address of {operand.name} does not fit in this type")

    def place(self, operand: Sym) -> int | str:
        """The address of a symbol as an int, or as an int-valued expression if known only at run time."""
        name, offset = operand.name, operand.offset
        places = self.owner.code.places
        if name in places:
            start = places[name] + offset
            return start if self.owner.function.entry else f"C.sp + {start}"
        formal = self.owner.program.param_offsets(self.owner.function).get(name)
        if formal is not None and self.owner.function.entry:
            return f"S.launch.param_address + {formal + offset}"
        shared = self.owner.program.shared_place(self.owner.function, name)
        if shared is not None:
            return int(shared) + offset
        address = self.owner.program.address(name)
        if address is None:
            raise self.fail(f"unknown symbol {name}")
        return int(address) + offset

    def space_of(self, name: str) -> str:
        """The state space of a symbol."""
        variable = self.owner.function.variables.get(name) or self.owner.program.module.variables.get(name)
        return variable.space if variable is not None else "generic"

    # Writing results.

    def set(self, operand: Operand, kind: str, text: str) -> None:
        """Give a register the value of an expression of PTX type `kind`; wider registers are extended."""
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Reg):
            raise self.fail("the destination is not a register")
        self.assign(operand, DTYPE[kind], text)

    def assign(self, reg: Reg, dtype: str, text: str) -> None:
        width, wanted = bits_of(dtype), bits_of(DTYPE[reg.type])
        name = self.let(text)
        if width != wanted:
            if width > wanted or "p" in (dtype, DTYPE[reg.type]):
                raise self.fail(
                    f"a result of {width} bits does not fit register {reg.name.split('@')[0]} (.{reg.type})"
                )
            dtype, name = self._extend(name, dtype, width, wanted)
        if reg.name in self.owner.taintable:
            self._mark(reg)
        if self.guard:
            name = self.let(f"sel({self.guard}, {name}, {self.register(reg, dtype)})")
        self.values[reg.name] = {dtype: name}
        self.written[self.owner.number(reg)] = reg
        self.results.append(reg.name)

    # Values that depend on memory never written: each such register has a predicate beside it.

    def taint_of(self, operand: Operand | str) -> str:
        """Whether a register holds such a value: a Boolean expression by thread, `FALSE` where it cannot."""
        name = operand if isinstance(operand, str) else operand.name if isinstance(operand, Reg) else ""
        if isinstance(operand, Neg):
            name = operand.reg.name
        if name not in self.owner.taintable:
            return "FALSE"
        return self.register(taint_register(name), "p")

    def _mark(self, reg: Reg) -> None:
        """The mark of a result: that of any operand, unless the rule has said better."""
        text = self.taint
        if not text:
            marks = sorted({self.taint_of(name) for name in self.sources if name in self.owner.taintable} - {"FALSE"})
            text = " | ".join(marks) or "FALSE"
        companion = taint_register(reg.name)
        if self.guard:
            text = f"sel({self.guard}, {text}, {self.register(companion, 'p')})"
            if self.guard_taint != "FALSE":
                text = f"{text} | {self.guard_taint}"
        name = text if text == "FALSE" else self.let(text)
        self.values[companion.name] = {"p": name}
        self.written[self.owner.number(companion)] = companion

    def choose(self, predicate: str, a: Operand, b: Operand, p: Operand) -> None:
        """The mark of a selection: that of the operand chosen."""
        first, second, third = self.taint_of(a), self.taint_of(b), self.taint_of(p)
        if (first, second) != ("FALSE", "FALSE"):
            self.taint = f"sel({predicate}, {first}, {second}) | {third}"

    def sink(self, operand: Operand, what: str) -> None:
        """A use that must not depend on memory never written."""
        if not self.owner.checks:
            return
        for reg in registers_in(operand):
            mark = self.taint_of(reg)
            if mark != "FALSE":
                self.effect(f"S.on.value_used(SITE, L, {{0}}, {what!r})", [mark])

    def load(self, text: str, args: Sequence[str], results: Sequence[tuple[Operand, str]]) -> None:
        """A load that may find memory never written: `S.unwritten` tells which threads did, and which bytes.

        A result is marked if any byte of it is missing, or only if all are where the kernel may use a part of it.
        """
        regs = [operand if isinstance(operand, Reg) else None for operand, _ in results]
        exact = tuple(reg is not None and reg.name not in self.owner.picked for reg in regs)
        marks = [taint_register(reg.name) if reg is not None else Sink() for reg in regs]
        self.effect(f"with_taint(S, {text}, {exact})", args, [*results, *((mark, "pred") for mark in marks)])

    def _extend(self, name: str, dtype: str, width: int, wanted: int) -> tuple[str, str]:
        if dtype[0] == "f":
            name, dtype = self.let(f"{name}.view({UNSIGNED[width]})"), UNSIGNED[width]
        wide = (SIGNED if dtype[0] == "i" else UNSIGNED)[wanted]
        return wide, self.let(f"{name}.astype({wide})")

    def effect(self, text: str, args: Sequence[str], results: Sequence[tuple[Operand, str]] = ()) -> None:
        """An operation with effects, or one that may fault: under a guard it runs for the guarded threads only.

        `text` is an expression over `{0}`, `{1}`, ... (the `args`, values by thread) and `L`, the threads' lanes;
        its value is that of the only result, or a sequence of all.
        """
        site = -1
        if "SITE" in text:
            site = self.owner.site(self._here())
            text = text.replace("SITE", str(site))
        results = list(results)
        value = ""
        if not self.guard and results:
            value = self.let(text.format(*args))
        elif not self.guard:
            self.emit(text.format(*args))
        else:
            names = [f"a{n}" for n in range(len(args))]
            call = f"lambda L, {', '.join(names)}: " if names else "lambda L: "
            olds = [self._old(operand, kind) for operand, kind in results]
            given = f"({', '.join(args)}{',' if args else ''})"
            kept = f"({', '.join(olds)}{',' if olds else ''})"
            value = self.let(f"masked({self.guard}, L, {call}{text.format(*names)}, {given}, {kept}, {len(results)})")
        guard, self.guard = self.guard, ""  # `masked` has put the old values in already
        for index, (operand, kind) in enumerate(results):
            self.set(operand, kind, value if len(results) == 1 else f"{value}[{index}]")
        self.guard = guard

    def _old(self, operand: Operand, kind: str) -> str:
        if isinstance(operand, Reg):
            return self.register(operand, DTYPE[kind])
        return self.constant(0, DTYPE[kind])

    def _here(self) -> Instruction:
        assert self.instruction is not None
        return self.instruction

    # The block as a whole.

    def translate(self) -> None:
        if self.block.gate is not None:
            self._gate(self.block.gate)
        for instruction in self.block.body:
            self.instruction = instruction
            found = find_rule(instruction)
            if found is None:
                raise self.fail(f"instruction {instruction.opcode} is not emulated")
            guarded = instruction.guard is not None and instruction is not self.block.gate
            self.sources, self.taint = set(), ""
            self.guard = self._guard(instruction) if guarded else ""
            self.guard_taint = self.taint_of(instruction.guard) if guarded and instruction.guard else "FALSE"
            if instruction.op in DECIDED and instruction.guard is not None:
                self._sink_guard(instruction.guard)
            if self.owner.accumulators:
                self._watch_accumulators(instruction)
            self.results, self.address = [], ""
            self._apply(found, instruction)
            self.guard = ""
            if self.owner.steps:
                self._step(instruction)
        self._ending()
        self.instruction = None

    def _sink_guard(self, guard: Reg) -> None:
        """Whether something is done at all must not depend on memory never written, no more than a branch."""
        held, self.guard = self.guard, ""
        self.sink(guard, "guard")
        self.guard = held

    def _step(self, instruction: Instruction) -> None:
        """Tell the debugger: which local name holds each register, which registers were written, the address."""
        names = {reg: next(iter(views.values())) for reg, views in self.values.items() if not reg.startswith("%taint")}
        names = {reg: name for reg, name in names.items() if name not in ("TRUE", "FALSE") and name[0] in "rv"}
        written = [name for name in dict.fromkeys(self.results) if name in names]
        place, named, changed = (self.owner.bind(x) for x in (instruction, names, written))
        self.step_lines.add(len(self.lines))
        self.emit(f"S.launch.options.debugger.step({place}, C, L, {named}, {changed}, {self.address!r}, vars())")

    def _apply(self, found: Rule, instruction: Instruction) -> None:
        """Run a rule; whatever it trips over is an error at the instruction."""
        try:
            check_form(instruction.op, instruction.mods)
            found(self, instruction)
        except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
            raise self.fail(f"instruction {instruction.opcode} has operands or modifiers that are not known",
                            hint=f"{type(error).__name__}: {error}") from error  # fmt: skip
        except EmulationError as error:
            if "PTX line" in error.values:
                raise
            raise located(
                error.message, instruction, self.owner.kernel, error.values, error.hint, error.kind
            ) from error

    def _watch_accumulators(self, instruction: Instruction) -> None:
        """Uses of registers that wgmma may still be writing; a plain move only passes that on."""
        known = self.owner.accumulators
        if instruction.op in ("wgmma", "pin") or not instruction.ops:
            return
        first, *rest = instruction.ops
        if instruction.op in ("st", "red"):
            rest = list(instruction.ops)
        read = [r for op in rest for r in registers_in(op) if r.name in known]
        written = [r for r in registers_in(first) if r.name in known] if instruction.op not in ("st", "red") else []
        if instruction.op == "mov" and isinstance(first, Reg) and isinstance(rest[0], Reg | Imm):
            # Moves vanish in register allocation: they are no accesses of the hardware's registers.
            if isinstance(rest[0], Reg) and (read or written):
                self.emit(f"S.on.wgmma_moved(L, {self.owner.number(first)}, {self.owner.number(rest[0])})")
            return
        if read:
            numbers = ", ".join(str(self.owner.number(r)) for r in read)
            self.emit(f"S.on.wgmma_used({self.owner.site(instruction)}, L, ({numbers},))")
        changed = [str(self.owner.number(r)) for r in registers_in(first) if r.name in self.owner.fragments]
        if changed and instruction.op not in ("st", "red"):
            self.emit(f"S.on.wgmma_changed({self.owner.site(instruction)}, L, ({', '.join(changed)},))")
        if written:
            self.emit("S.on.wgmma_unfenced(L)")

    def _guard(self, instruction: Instruction) -> str:
        assert instruction.guard is not None
        name = self.register(instruction.guard, "p")
        return self.let(f"~{name}") if instruction.guard_negated else name

    def _ending(self) -> None:
        block = self.block
        self.instruction = block.ending
        if block.kind == "cond":
            assert block.pred is not None
            self.sink(block.pred, "branch")
            self.result = self.register(block.pred, "p")
        elif block.kind == "brx":
            assert block.ending is not None
            self.sink(block.ending.ops[0], "branch")
            self.result = self.use(block.ending.ops[0], "u32")
            self.call = Call(block.ending, None, (), ())
        elif block.kind == "call":
            self._call()

    def _call(self) -> None:
        ending = self.block.ending
        assert ending is not None
        results, arguments = ending.groups
        callee = ending.ops[0] if ending.ops else None
        operands = [*results, *arguments]
        for operand in operands:
            if isinstance(operand, Reg) and operand in arguments:
                self.register(operand, DTYPE[operand.type])
        if isinstance(callee, Sym):
            if callee.name in runtime.BUILTINS:
                self.builtin(callee.name, results, arguments)
                return
            self.call = Call(ending, callee.name, results, arguments)
            self.owner.program.need(callee.name, ending)
        elif isinstance(callee, Reg):
            self.call = Call(ending, None, results, arguments)
            self.result = self.use(callee, "u64")
        else:
            raise self.fail("a call needs a function or a register")
        for operand in results:
            if isinstance(operand, Reg):
                self.owner.number(operand)
        for operand in arguments:
            if isinstance(operand, Reg):
                self.written.setdefault(self.owner.number(operand), operand)

    def builtin(self, name: str, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
        """A call that the machine serves: arguments lie in the caller's frame."""
        places = [str(self.place(a)) if isinstance(a, Sym) else self.use(a, "u64") for a in arguments]
        outs = [str(self.place(r)) if isinstance(r, Sym) else "None" for r in results]
        self.block.kind = "jump"
        site = self.owner.site(self._here())
        self.emit(f"{runtime.BUILTINS[name]}(S, C, {site}, [{', '.join(places)}], [{', '.join(outs)}])")

    def classes(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for instruction in executed(self.block):
            counts[instruction.op] = counts.get(instruction.op, 0) + 1
        return counts

    def forms(self) -> dict[str, int]:
        """Instructions by form."""
        return dict(Counter(map(form_of, executed(self.block))))

    def source_lines(self) -> dict[str, int]:
        """Instructions by source line, or PTX line where there is none."""
        counts: dict[str, int] = {}
        for i in executed(self.block):
            name = f"{i.place.file}:{i.place.line}" if i.place is not None else f"PTX line {i.line}"
            counts[name] = counts.get(name, 0) + 1
        return counts

    def ptx_lines(self) -> dict[int, int]:
        """Instructions by PTX line."""
        return dict(Counter(i.line for i in executed(self.block)))

    def finish(self) -> None:
        """The whole text of the block, with the registers that later blocks need written back."""
        self.instruction = None
        call_needs = set()
        if self.call is not None:
            call_needs = {self.owner.number(a) for a in self.call.arguments if isinstance(a, Reg)}
        for number, reg in self.written.items():
            if number in self.live_out or number in call_needs:
                self.emit(f"R[{number}] = {self.register(reg, self.owner.kind(reg))}")
        self._write("b", [n for n in range(len(self.lines)) if n not in self.step_lines])
        if self.owner.steps:
            self._write("s", range(len(self.lines)))
        for line in self.gate_lines:
            self._add(line, self.block.gate)

    def _write(self, letter: str, numbers: Iterable[int]) -> None:
        """A function of these lines of the block."""
        self._add(f"def {letter}{self.block.index}(C, R, S):", None)
        self._add("    L = C.L", None)
        for line in self.head:
            self._add(line, None)
        for number in numbers:
            self._add(self.lines[number], self.places[number])
        self._add(f"    return {self.result}" if self.result else "    return None", self.block.ending)

    def _add(self, line: str, place: Instruction | None) -> None:
        self.output.append(line)
        self.origin.append(place)

    def _gate(self, gate: Instruction) -> None:
        """The gate function: reads the operands that say whom to wait for."""
        coder = BlockCoder(self.owner, Block(self.block.index))
        coder.instruction = gate
        text = gate_expression(coder, gate)
        self.live_in |= coder.live_in
        self.gate_lines = [f"def g{self.block.index}(C, R, S):", *coder.head, *coder.lines, f"    return {text}"]


def gate_expression(coder: BlockCoder, gate: Instruction) -> str:
    """The call that waits in front of a synchronising instruction."""
    if gate.op in ("bar", "barrier"):
        return _barrier_gate(coder, gate)
    if gate.op == "setmaxnreg" and coder.owner.checks:
        return f"registers_gate(S, C, {getattr(gate.ops[0], 'value', 0)}, {'inc' in gate.mods})"
    if gate.op in ("wgmma", "setmaxnreg"):
        return "warpgroup_gate(S, C)"
    mask = membermask(gate)
    value = "FULL" if mask is None else coder.use(mask, "u32")
    return f"warp_gate(S, C, {value})"


def _barrier_gate(coder: BlockCoder, gate: Instruction) -> str:
    if "warp" in gate.mods:
        return f"warp_gate(S, C, {coder.use(gate.ops[0], 'u32')})"
    if "cluster" in gate.mods:
        return "cluster_gate(S, C)"
    operands = gate.ops
    if "red" in gate.mods:
        predicate = coder.use(operands[-1], "pred")
        number = coder.use(operands[1], "u32")
        count = coder.use(operands[2], "u32") if len(operands) == 4 else "None"
        return f"barrier_gate(S, C, {number}, {count}, {predicate})"
    number = coder.use(operands[0], "u32")
    count = coder.use(operands[1], "u32") if len(operands) > 1 else "None"
    return f"barrier_gate(S, C, {number}, {count})"


WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
__all__ = ["BlockCoder", "DTYPE", "FunctionCoder", "RULES", "WIDTH", "rule"]
