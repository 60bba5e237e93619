"""A program: parsed PTX, its variables in memory, and kernels compiled when they are first launched."""

from __future__ import annotations

import mmap
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.targets.emu import builtins, rules
from tilewright.targets.emu.code import Call, Code, SharedLayout, lay_out
from tilewright.targets.emu.coder import RULES, FunctionCoder
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.faults import located
from tilewright.targets.emu.memory import Buffer
from tilewright.targets.emu.ptx import (
    Function,
    Imm,
    Instruction,
    Mem,
    Module,
    Operand,
    Pair,
    Reg,
    Sym,
    Variable,
    Vec,
    parse,
)

_LOADED = (builtins, rules)
FUNCTIONS = 1 << 60
"""Function addresses start here, 16 apart."""
PIECE = 1 << 16
LARGE = 1 << 20
"""Bytes of a variable that are worth a mapping of their own."""
MAX_PARAMS = 32764
"""Bytes of a kernel's parameters at most, from CUDA 12.1 and sm_70 on (CUDA C++ Programming Guide, `__global__`)."""


class Program:
    """PTX text, parsed. Its `.global` and `.const` variables keep their values from launch to launch."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.module: Module = parse(text)
        self._storage: dict[str, Storage] = {}
        self._images: dict[tuple[str, bool, bool], Image] = {}
        self._names = list(self.module.functions)
        for name, variable in self.module.variables.items():
            if variable.space in ("global", "const") and not variable.extern:
                self._storage[name] = Storage(variable)
        self.memory = {name: storage.bytes for name, storage in self._storage.items()}
        self._touched = False
        self._initialise()

    @property
    def kernels(self) -> list[str]:
        return [name for name, function in self.module.functions.items() if function.entry]

    def reset(self) -> None:
        """Give every variable its initial value."""
        if self._touched:  # what no launch had is still zero: large variables cost nothing until they are used
            for storage in self._storage.values():
                storage.clear()
            self._initialise()
        self._touched = False

    def _initialise(self) -> None:
        for name, memory in self.memory.items():
            variable = self.module.variables[name]
            if variable.init:
                data = np.frombuffer(variable.init[: len(memory)], np.uint8)
                memory[: len(data)] = data
            for offset, link in variable.links:
                address = self.address(link.name)
                if address is None:
                    raise EmulationError(f"variable {name} is initialised with unknown symbol {link.name}")
                memory[offset : offset + 8].view(np.uint64)[0] = address + link.offset

    def address(self, name: str) -> int | None:
        """The address of a variable or function."""
        memory = self.memory.get(name)
        if memory is not None:
            return int(memory.ctypes.data)
        if name in self.module.functions:
            return FUNCTIONS + 16 * self._names.index(name)
        return None

    @property
    def constants(self) -> list[tuple[int, int]]:
        """Where the `.const` variables lie: (address, bytes)."""
        variables = self.module.variables
        return [(int(m.ctypes.data), m.nbytes) for n, m in self.memory.items() if variables[n].space == "const"]

    def function_named(self, address: int) -> str | None:
        index, rest = divmod(address - FUNCTIONS, 16)
        return self._names[index] if not rest and 0 <= index < len(self._names) else None

    def buffers(self) -> list[Buffer]:
        """The memory of the variables, for a launch that may write to it."""
        self._touched = True
        return [
            Buffer(int(m.ctypes.data), m.nbytes, self.module.variables[name].space == "global", f"variable {name}")
            for name, m in self.memory.items()
        ]

    def image(self, kernel: str, checks: bool, steps: bool = False) -> Image:
        """The compiled kernel; with `steps`, for a debugger.

        Raises:
            EmulationError: there is no such kernel, or it has an instruction that is not emulated.
        """
        key = (kernel, checks, steps)
        found = self._images.get(key)
        if found is None:
            function = self.module.functions.get(kernel)
            if function is None or not function.entry:
                raise EmulationError(f"there is no kernel {kernel!r} in this PTX",
                                     values={"kernels": ", ".join(self.kernels) or "none"})  # fmt: skip
            found = self._images[key] = Image(self, function, checks, steps)
        return found

    @property
    def files(self) -> dict[int, str]:
        return self.module.files


class Storage:
    """Zeroed memory of a variable, at an address that stays.

    A large one on Linux is a mapping of its own, whose pages can be given back: they read as zeros again. Elsewhere
    zeroing it touches no page that no one has written, but looks at all.
    """

    def __init__(self, variable: Variable) -> None:
        self._pages: mmap.mmap | None = None
        try:
            if variable.size >= LARGE and variable.align <= mmap.PAGESIZE and sys.platform == "linux":
                self._pages = mmap.mmap(-1, variable.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self.bytes: np.ndarray[Any, Any] = np.frombuffer(self._pages, np.uint8)
            else:
                self.bytes = aligned_bytes(variable.size, variable.align)
        except (MemoryError, OSError, OverflowError) as error:
            raise EmulationError(f"PTX line {variable.line}: no memory for variable {variable.name}",
                                 values={"bytes": variable.size}) from error  # fmt: skip

    def clear(self) -> None:
        """Zero the memory."""
        if self._pages is not None and sys.platform == "linux":
            self._pages.madvise(mmap.MADV_DONTNEED)
            return
        for start in range(0, len(self.bytes), PIECE):
            part = self.bytes[start : start + PIECE]
            if part.any():
                part[:] = 0


def aligned_bytes(size: int, align: int) -> np.ndarray[Any, Any]:
    """Zeroed bytes at an address that is a multiple of `align`."""
    align = max(align, 16)
    raw = np.zeros(max(size, 1) + align, np.uint8)
    skip = -int(raw.ctypes.data) % align
    return raw[skip : skip + size]


class Image:
    """One kernel and the functions that it calls, compiled, with or without checks."""

    def __init__(self, program: Program, kernel: Function, checks: bool, steps: bool = False) -> None:
        self.program = program
        self.module = program.module
        self.kernel = kernel
        self.checks = checks
        self.steps = steps
        self.rules = RULES
        self.serials = 0
        self.sites: list[Instruction] = []
        self.codes: dict[str, Code] = {}
        self._offsets: dict[str, dict[str, int]] = {}
        self.reached = _reached(program.module, kernel)
        self.shared = self._lay_out_shared()
        self.param_size = lay_out(kernel.params)[1]
        if self.param_size > MAX_PARAMS:
            raise EmulationError(f"PTX line {kernel.line}: kernel {kernel.name} has too many parameters",
                                 values={"bytes": self.param_size}, hint=f"at most {MAX_PARAMS} bytes")  # fmt: skip
        self.code = self.function(kernel.name, None)

    def _lay_out_shared(self) -> SharedLayout:
        static: list[Variable] = []
        dynamic: list[Variable] = []
        for name, variable in self.module.variables.items():
            if variable.space == "shared" and name in self.reached:
                (dynamic if variable.size == 0 else static).append(variable)
        for function in self.module.functions.values():
            if function.name in self.reached:
                static += [v for v in function.variables.values() if v.space == "shared"]
        places, end = lay_out(sorted(static, key=lambda v: -v.align))
        align = max([16, *(v.align for v in dynamic)])
        start = -(-end // align) * align if dynamic else end
        for variable in dynamic:
            places[variable.name] = start
        return SharedLayout(places, start, align)

    def functions(self) -> list[Function]:
        """The kernel and the functions that it can reach."""
        return [f for name, f in self.module.functions.items() if name in self.reached]

    # For the coder.

    def next_serial(self) -> int:
        self.serials += 1
        return self.serials - 1

    def param_offsets(self, function: Function) -> dict[str, int]:
        if not function.entry:
            return {}
        found = self._offsets.get(function.name)
        if found is None:
            found = self._offsets[function.name] = lay_out(function.params)[0]
        return found

    def shared_place(self, function: Function, name: str) -> int | None:
        return self.shared.places.get(name)

    def address(self, name: str) -> int | None:
        return self.program.address(name)

    def need(self, name: str, instruction: Instruction) -> None:
        function = self.module.functions.get(name)
        if function is None or function.declared_only:
            raise located(f"function {name} is not defined", instruction, self.kernel.name,
                          hint="link the PTX that defines it")  # fmt: skip

    # For the machine.

    def function(self, name: str, instruction: Instruction | None) -> Code:
        code = self.codes.get(name)
        if code is None:
            function = self.module.functions[name]
            coder = FunctionCoder(self, function, len(self.codes), self.checks, self.steps)
            code = self.codes[name] = coder.compile()
        return code

    def function_at(self, address: int) -> Code | None:
        name = self.program.function_named(address)
        if name is None or self.module.functions[name].declared_only:
            return None
        return self.function(name, None)

    def pass_arguments(
        self, machine: Any, cohort: Cohort, call: Call, code: Code, base: int, registers: list[Any]
    ) -> None:
        """Copy the actual parameters of a call to the formal ones."""
        formals = code.function.params
        if len(formals) != len(call.arguments):
            raise located(f"{code.name} takes {len(formals)} parameters, not {len(call.arguments)}", call.instruction,
                          self.kernel.name)  # fmt: skip
        for formal, actual in zip(formals, call.arguments, strict=True):
            if formal.space == "reg":
                if formal.name in code.numbers:
                    registers[code.numbers[formal.name]] = self._value(cohort, actual, formal)
                continue
            target = base + code.places[formal.name]
            if isinstance(actual, Sym):
                source = cohort.sp + cohort.code.places[actual.name] + actual.offset
                copy_local(machine, cohort, source, target, formal.size)
            else:
                value = self._value(cohort, actual, formal)
                machine.lo.store(
                    -1, cohort.L, np.uint64(target), value, value.dtype, value.dtype.itemsize.bit_length() - 1
                )

    def _value(self, cohort: Cohort, actual: Operand, formal: Variable) -> Any:
        dtype = np.dtype(DTYPE[formal.type].replace("p", "?"))
        if isinstance(actual, Reg):
            value = cohort.R[cohort.code.numbers[actual.name]]
            value = value.get() if hasattr(value, "get") else value
            return value.view(dtype) if value.dtype.itemsize == dtype.itemsize else value.astype(dtype)
        if isinstance(actual, Imm):
            return np.full(1, actual.value).astype(dtype)[0]
        raise EmulationError("an argument of this kind cannot be passed", values={"argument": actual})

    def pass_results(
        self, machine: Any, cohort: Cohort, call: Call, callee: Code, callee_sp: int, registers: list[Any]
    ) -> None:
        """Copy a function's results to where the caller wants them."""
        for formal, actual in zip(callee.function.returns, call.results, strict=False):
            if formal.space == "reg":
                if isinstance(actual, Reg) and formal.name in callee.numbers:
                    value = registers[callee.numbers[formal.name]]
                    cohort.R[cohort.code.numbers[actual.name]] = value.get() if hasattr(value, "get") else value
            elif isinstance(actual, Sym):
                source = callee_sp + callee.places[formal.name]
                target = cohort.sp + cohort.code.places[actual.name] + actual.offset
                copy_local(machine, cohort, source, target, formal.size)
            elif isinstance(actual, Reg):
                dtype = np.dtype(DTYPE[actual.type].replace("p", "?"))
                shift = dtype.itemsize.bit_length() - 1
                place = np.uint64(callee_sp + callee.places[formal.name])
                cohort.R[cohort.code.numbers[actual.name]] = machine.lo.load(-1, cohort.L, place, dtype, shift)


def copy_local(machine: Any, cohort: Cohort, source: int, target: int, size: int) -> None:
    """Copy bytes within each thread's local memory."""
    machine.lo.reserve(max(source, target) + size)
    machine.lo.copy(cohort.L, source, target, size)


def _reached(module: Module, kernel: Function) -> set[str]:
    """Names of the functions and variables that a kernel can reach."""
    seen: set[str] = {kernel.name}
    work = [kernel]
    while work:
        function = work.pop()
        names = {name for i in function.body for op in (*i.ops, *(g for group in i.groups for g in group))
                 for name in symbols_in(op)}  # fmt: skip
        names |= {name for table in function.tables.values() for name in table}
        for name in names - seen:
            seen.add(name)
            if name in module.functions:
                work.append(module.functions[name])
            variable = module.variables.get(name)
            if variable is not None:
                linked = [module.functions[s.name] for _, s in variable.links if s.name in module.functions]
                work += [f for f in linked if f.name not in seen]
                seen |= {f.name for f in linked}
    return seen


def symbols_in(operand: Operand) -> list[str]:
    """The symbols that an operand names."""
    if isinstance(operand, Sym):
        return [operand.name]
    if isinstance(operand, Mem):
        return symbols_in(operand.base)
    if isinstance(operand, Vec):
        return [name for item in operand.items for name in symbols_in(item)]
    if isinstance(operand, Pair):
        return symbols_in(operand.first) + symbols_in(operand.second)
    return []


@lru_cache(maxsize=64)
def load(text: str) -> Program:
    """Parse PTX; the same text gives the same program.

    Raises:
        EmulationError: the text is not PTX that is known here; the message has the line.
    """
    return Program(text)
