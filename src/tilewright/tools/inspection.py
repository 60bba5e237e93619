"""What `tilewright compile` shows of machine code: its views, and how levels of optimisation differ."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.targets.nvidia.sass.listing import by_category
from tilewright.targets.nvidia.sass.machine_code import VIEWS, MachineCode


def view_names(text: str) -> list[str]:
    """The views of `--view`.

    Raises:
        ArgumentError: there is none of that name.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in names if name not in VIEWS]
    if unknown or not names:
        raise ArgumentError(
            f"--view {text!r}: there is no view {', '.join(unknown) or 'named'}", hint=f"views: {', '.join(VIEWS)}"
        )
    return names


def views(executor: Any, names: Sequence[str]) -> Iterator[str]:
    """The views of every kernel, each under a line that names both."""
    for kernel in executor.kernels if names else ():
        code = executor.machine_code(kernel)
        for name in names:
            yield f"---- {name} of {kernel}, {executor.arch} ----\n{code.view(name)}"


def levels(text: str) -> list[int]:
    """The two levels of `--diff-opt 0,3`.

    Raises:
        ArgumentError: these are not two levels.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(part in ("0", "1", "2", "3") for part in parts):
        raise ArgumentError(f"--diff-opt {text!r} is not two levels from 0 to 3", hint="write --diff-opt 0,3")
    return [int(part) for part in parts]


def level_changes(compile_at: Callable[[int], Any], first: int, second: int) -> Iterator[str]:
    """For each kernel a table of both levels' figures, then the instructions that differ."""
    old, new = compile_at(first), compile_at(second)
    for kernel in new.kernels:
        codes = [made.machine_code(kernel) for made in (old, new)]
        rows = [
            [str(row) for row in figures(made.kernels[kernel].info, code)]
            for made, code in zip((old, new), codes, strict=True)
        ]
        lines = [f"---- {kernel}, {new.arch} ----", f"{'':<22}{f'O{first}':>8}{f'O{second}':>8}"]
        lines += [f"{name:<22}{a:>8}{b:>8}" for name, a, b in zip(FIGURES, *rows, strict=True)]
        yield "\n".join([*lines, "", *_changes(codes[0], codes[1], f"O{first}", f"O{second}")])


FIGURES = (
    "instructions", "memory", "arithmetic", "control", "thread", "special", "registers", "stack bytes",
    "spill bytes",
)  # fmt: skip


def figures(info: Any, code: MachineCode) -> list[int]:
    """The figures of a kernel, in the order of `FIGURES`."""
    groups = [len(items) for items in by_category(code.instructions).values()]
    spilled = info.spill_store_bytes + info.spill_load_bytes
    return [len(code.instructions), *groups, info.registers, info.stack_bytes, spilled]


def _changes(old: MachineCode, new: MachineCode, old_name: str, new_name: str) -> list[str]:
    """A unified diff of the instructions, without their addresses."""
    before, after = ([item.text for item in code.instructions] for code in (old, new))
    return list(difflib.unified_diff(before, after, old_name, new_name, n=2, lineterm=""))
