"""Compiled code: what the machine runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.targets.emu.cfg import Nest
from tilewright.targets.emu.ptx import Function, Instruction, Operand, Variable

JUMP, COND, EXIT, RET, CALL, BRX = range(6)
KINDS = {"jump": JUMP, "cond": COND, "exit": EXIT, "ret": RET, "call": CALL, "brx": BRX}


@dataclass(slots=True)
class CodeBlock:
    """A block as a Python function `run(cohort, registers, machine)`.

    `stepped` is the same function, which also tells the launch's debugger of each instruction of `body` that is done;
    None where the kernel was compiled for no debugger. `live` lists the registers (by number) that are needed from the
    block's start on; `serial` numbers the blocks of the program; `value` fetches what `run` returns: a predicate
    (cond), an index (brx) or a callee (call).
    """

    run: Callable[..., Any]
    kind: int
    targets: list[int]
    order: int
    live: list[int]
    serial: int
    first: Instruction | None
    body: list[Instruction] = field(default_factory=list)
    stepped: Callable[..., Any] | None = None
    last: Instruction | None = None
    gate: Callable[..., bool] | None = None
    gate_site: Instruction | None = None
    poll: Instruction | None = None
    """The first instruction that a waiting thread repeats."""
    call: Call | None = None
    classes: dict[str, int] = field(default_factory=dict)
    forms: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    ptx_lines: dict[int, int] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    instructions: int = 0
    changes: bool = True
    """Whether it may change memory, meet other threads or see time pass."""


@dataclass(slots=True)
class Call:
    """A call: `callee` by name, or None for an address that the block returns."""

    instruction: Instruction
    callee: str | None
    results: tuple[Operand, ...]
    arguments: tuple[Operand, ...]


@dataclass(slots=True)
class Code:
    """A compiled function. `numbers` gives the number of each register; `places` the offset in the frame of each
    variable that lies in local memory; `shared` the bytes of static shared memory it needs."""

    function: Function
    number: int
    blocks: list[CodeBlock] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    zeros: list[Any] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    frame: int = 0
    source: str = ""
    lines: list[Instruction | None] = field(default_factory=list)
    nest: Nest | None = None

    @property
    def name(self) -> str:
        return self.function.name


@dataclass(slots=True)
class SharedLayout:
    """Where the shared variables of a kernel lie: `places` by name, `static` bytes before dynamic memory."""

    places: dict[str, int]
    static: int
    dynamic_align: int


def lay_out(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Offsets of variables one after another, each aligned; and the end."""
    places: dict[str, int] = {}
    for variable in variables:
        start = -(-start // variable.align) * variable.align
        places[variable.name] = start
        start += variable.size
    return places, start
