"""A random program: a tree of steps over a fixed set of registers, and its PTX.

Every register has a value from the thread's record of the input before the first step, and steps write registers that
are read later, so that any step may be dropped and the rest is still a program without undefined values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tilewright.tools.fuzzing.forms import KINDS

THREADS: Final = 128
SLOTS: Final = 64
"""Words of 8 bytes in a thread's record of the input: one for each register, then integers to load."""
OUTPUTS: Final = 16
"""Words of 8 bytes that a thread may store."""
SCRATCH: Final = 64
"""Bytes of global memory of each thread behind the outputs of all."""
OUT_BYTES: Final = THREADS * (OUTPUTS * 8 + SCRATCH)
SHARED: Final = 16384
REGISTERS: Final = tuple(f"%{kind}{number}" for kind, (_, count) in KINDS.items() for number in range(count))
SLOT_OF: Final = {name: slot for slot, name in enumerate(REGISTERS)}
FREE_SLOT: Final = len(REGISTERS)
"""The first slot of the input that is no register's."""
WIDTH_OF: Final = {kind: 32 if type_ == "pred" else int(re.sub(r"\D", "", type_)) for kind, (type_, _) in KINDS.items()}

_HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
_NAME = re.compile(r"%[phrdebxyfg]\d+\b")


@dataclass(frozen=True)
class Step:
    """Instructions that stand or fall together."""

    lines: tuple[str, ...]
    collective: bool = False


@dataclass(frozen=True)
class Region:
    """Control flow: lines of its own, and bodies of steps between them."""

    parts: tuple[str | tuple[Node, ...], ...]


Node = Step | Region


@dataclass(frozen=True)
class Program:
    """What is run: steps, the registers stored at the end, and those that begin as constants.

    `exact` is False where the manual leaves some results within bounds: then the emulator's are not compared.
    """

    seed: int
    body: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: tuple[tuple[str, int], ...] = field(default=())
    exact: bool = True


def module(programs: Iterable[Program]) -> str:
    """The PTX of several programs, kernel `k<n>` for the n-th."""
    return _HEAD + "".join(kernel(f"k{number}", program) for number, program in enumerate(programs))


def kernel(name: str, program: Program) -> str:
    """The PTX of one program."""
    body = list(_lines(program.body))
    text = "\n".join(body)
    used = [name for name in REGISTERS if name in {*_NAME.findall(text), *program.outputs}]
    constants = dict(program.constants)
    lines = [line for register in used for line in _first_value(register, constants.get(register))]
    stores = [line for slot, register in enumerate(program.outputs) for line in _store(slot, register)]
    shared = [f".shared .align 1024 .b8 shared[{SHARED}];"] if "shared" in text else []
    written = "\n".join(f"\t{line}" for line in [*shared, *_declared(used), *_PLACES, *lines, *body, *stores, "ret;"])
    return f".visible .entry {name}(.param .u64 source, .param .u64 target)\n.maxntid {THREADS}\n{{\n{written}\n}}\n"


_PLACES = (
    ".reg .b64 %source, %target, %record, %room;",
    ".reg .b32 %self;",
    "ld.param.u64 \t%source, [source];",
    "ld.param.u64 \t%target, [target];",
    "mov.u32 \t%self, %tid.x;",
    f"mad.wide.u32 \t%record, %self, {SLOTS * 8}, %source;",
    f"mad.wide.u32 \t%room, %self, {OUTPUTS * 8}, %target;",
)


def _declared(used: list[str]) -> Iterator[str]:
    for kind, (type_, count) in KINDS.items():
        if any(name[1] == kind for name in used):
            yield f".reg .{type_} %{kind}<{count}>;"


def _lines(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Step):
            yield from node.lines
            continue
        for part in node.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from _lines(part)


def _first_value(register: str, constant: int | None) -> Iterator[str]:
    kind, place = register[1], f"[%record+{SLOT_OF[register] * 8}]"
    if kind == "p":
        value = f"ld.global.b32 \t%first, {place};" if constant is None else f"mov.b32 \t%first, {constant};"
        yield f"{{ .reg .b32 %first; {value} setp.lt.s32 \t{register}, %first, 0; }}"
    elif constant is None:
        yield f"ld.global.b{WIDTH_OF[kind]} \t{register}, {place};"
    else:
        yield f"mov.b{WIDTH_OF[kind]} \t{register}, {constant};"


def _store(slot: int, register: str) -> Iterator[str]:
    place = f"[%room+{slot * 8}]"
    if register[1] == "p":
        yield f"{{ .reg .b32 %last; selp.b32 \t%last, 1, 0, {register}; st.global.b32 \t{place}, %last; }}"
    else:
        yield f"st.global.b{WIDTH_OF[register[1]]} \t{place}, {register};"


def count_steps(nodes: Iterable[Node]) -> int:
    """Steps and regions in a tree."""
    return sum(
        1 + sum(count_steps(part) for part in node.parts if not isinstance(part, str))
        if isinstance(node, Region)
        else 1
        for node in nodes
    )
