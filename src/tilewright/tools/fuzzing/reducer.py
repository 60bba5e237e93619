"""Making a failing program small: steps, regions, lines, outputs and inputs go while it still fails.

After Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE TSE 28, 2002); all candidates of
a round are tried at once, since an assembler and a device are quicker with many programs than with one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from tilewright.tools.fuzzing.program import Node, Program, Region, Step, kernel

Fails = Callable[[Sequence[Program]], Sequence[bool]]
"""Which of some programs are legal and fail."""
_BATCH = 32


def reduced(program: Program, fails: Fails, *, seconds: float = 60.0) -> Program:
    """A smaller program that fails; the program itself where none does, or no time is left."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = program
        for smaller in (_without_outputs, _without_steps, _without_regions, _without_lines, _with_constants):
            program = _as_small_as(program, smaller, fails, end)
        if program == before:
            break
    return program


def size(program: Program) -> int:
    """Characters of the program's PTX."""
    return len(kernel("k0", program))


def _as_small_as(
    program: Program, smaller: Callable[[Program], Iterator[Program]], fails: Fails, end: float
) -> Program:
    """The program after all of one kind of step down that still fail."""
    candidates = smaller(program)
    while time.monotonic() < end and (batch := list(islice(candidates, _BATCH))):
        failing = [candidate for candidate, failed in zip(batch, fails(batch), strict=True) if failed]
        if failing:
            program = min(failing, key=size)
            candidates = smaller(program)
    return program


def _without_steps(program: Program) -> Iterator[Program]:
    """Without a run of neighbouring nodes of a body: long runs first."""
    bodies = list(_bodies(program.body))
    length = max((len(body) for _, body in bodies), default=0)
    while length:
        for path, body in bodies:
            if len(body) >= length:
                for start in range(0, len(body) - length + 1, max(1, length // 2)):
                    yield _with_body(program, path, body[:start] + body[start + length :])
        length //= 2


def _without_regions(program: Program) -> Iterator[Program]:
    """With the steps of a region in place of the region."""
    for path, body in _bodies(program.body):
        for place, node in enumerate(body):
            if isinstance(node, Region):
                inner = [part for part in node.parts if not isinstance(part, str)]
                for chosen in ([tuple(step for part in inner for step in part)] if len(inner) > 1 else []) + inner:
                    yield _with_body(program, path, (*body[:place], *chosen, *body[place + 1 :]))


def _without_outputs(program: Program) -> Iterator[Program]:
    """With one output, then without each."""
    if len(program.outputs) > 2:
        for register in program.outputs:
            yield replace(program, outputs=(register,))
    for register in program.outputs:
        if len(program.outputs) > 1:
            yield replace(program, outputs=tuple(other for other in program.outputs if other != register))


def _without_lines(program: Program) -> Iterator[Program]:
    """Without a line of a step, or a statement of a line; what is not legal then does not count as failing."""
    for path, body in _bodies(program.body):
        for place, node in enumerate(body):
            if isinstance(node, Step):
                for lines in filter(_defined, _shorter(node.lines)):
                    yield _with_body(program, path, (*body[:place], replace(node, lines=lines), *body[place + 1 :]))


def _shorter(lines: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for place, line in enumerate(lines):
        if len(lines) > 1:
            yield (*lines[:place], *lines[place + 1 :])
        statements = [part.strip() for part in line.strip("{} ").split(";") if part.strip()]
        if line.startswith("{ ") and len(statements) > 1:
            for gone in range(len(statements)):
                kept = "; ".join(statements[:gone] + statements[gone + 1 :])
                yield (*lines[:place], f"{{ {kept}; }}", *lines[place + 1 :])
        if line.startswith("@"):
            yield (*lines[:place], line.split(" ", 1)[1], *lines[place + 1 :])
    if lines[0] == "bar.sync \t0;" and len(lines) > 1:
        inner = tuple(line for line in lines if line not in ("bar.sync \t0;", "{", "}"))
        if inner:
            yield inner


def _defined(lines: tuple[str, ...]) -> bool:
    """Whether the lines still write the registers of their own that they read, and the carry."""
    text = " ".join(lines)
    statements = [re.sub(r"^[{} ]*(?:@!?%\w+ )?", "", part) for part in text.split(";")]
    written = {name for part in statements for name in re.findall(r"%\w+", part.partition("\t")[2].partition(",")[0])}
    own = {name for group in re.findall(r"\.reg \.\w+ ([^;]*);", text) for name in re.findall(r"%\w+", group)}
    carries = [part.split(None, 1)[0] for part in statements if part.strip()]
    first = next((name for name in carries if name.startswith(("addc", "subc", "madc")) or ".cc." in name), "")
    return own <= written | _arrays(own) and not first.startswith(("addc", "subc", "madc"))


def _arrays(names: set[str]) -> set[str]:
    """Names of register arrays, `%sum<4>`, whose elements are written."""
    return {name for name in names if name == "%sum"}


def _with_constants(program: Program) -> Iterator[Program]:
    """With a constant as the first value of a register that is read from the input."""
    known = dict(program.constants)
    text = kernel("k0", program)
    for register in dict.fromkeys(name for name in _loaded(text) if name not in known):
        for value in (0, 1, -1):
            yield replace(program, constants=(*program.constants, (register, value)))


def _loaded(text: str) -> Iterable[str]:
    for line in text.splitlines():
        if "[%record+" in line and line.strip().startswith("ld.global.b"):
            yield line.split("\t")[2].split(",")[0].strip()


Path = tuple[tuple[int, int], ...]


def _bodies(nodes: tuple[Node, ...], path: Path = ()) -> Iterator[tuple[Path, tuple[Node, ...]]]:
    """Every body of a tree with the way to it: node and part at each level."""
    yield path, nodes
    for place, node in enumerate(nodes):
        if isinstance(node, Region):
            for number, part in enumerate(node.parts):
                if not isinstance(part, str):
                    yield from _bodies(part, (*path, (place, number)))


def _with_body(program: Program, path: Path, body: tuple[Node, ...]) -> Program:
    return replace(program, body=_replaced(program.body, path, body))


def _replaced(nodes: tuple[Node, ...], path: Path, body: tuple[Node, ...]) -> tuple[Node, ...]:
    if not path:
        return body
    (place, number), rest = path[0], path[1:]
    region = nodes[place]
    assert isinstance(region, Region)
    part = region.parts[number]
    assert not isinstance(part, str)
    parts = (*region.parts[:number], _replaced(part, rest, body), *region.parts[number + 1 :])
    return (*nodes[:place], Region(parts), *nodes[place + 1 :])
