"""What tests of passes over loops share: running a function in a block of two warps, and the remarks on it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.passes.kernel_remarks import remarks_in

THREADS = 64


@cute.kernel
def run_body(body: cutlass.Constexpr, arguments: Any) -> None:
    body(*arguments)


@cute.jit
def launch(body: cutlass.Constexpr, arguments: Any) -> None:
    run_body(body, arguments).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


def compiled(body: Any, *arguments: Any, **given: Any) -> Any:
    """The executor of `body(*arguments)` in a block of two warps; call it with what `as_arguments` gives."""
    return cute.compile(launch, cute.jit(body), as_arguments(arguments), target="emu", **given)


def as_arguments(arguments: Any) -> tuple[Any, ...]:
    """Arrays as tensors aligned to 16 bytes, Python numbers as they are."""
    return tuple(from_dlpack(item, assumed_align=16) if isinstance(item, np.ndarray) else item for item in arguments)


def remarks(executor: Any) -> list[str]:
    """The remarks on a program, without the place of the line."""
    return [re.sub(r"^[^ ]*:\d+: ", "", line) for line in remarks_in(executor.stages["cute"])]


def loads_before_loops(ptx: str, opcode: str = "ld.global") -> int:
    """How many times `opcode` stands before the first label that a branch goes back to."""
    lines = ptx.splitlines()
    labels = {line.strip().rstrip(":"): number for number, line in enumerate(lines) if line.startswith("$L__BB")}
    targets = ((number, re.search(r"bra(?:\.uni)?\s+(\S+);", line)) for number, line in enumerate(lines))
    back = [labels[found[1]] for number, found in targets if found and labels.get(found[1], number) < number]
    return sum(opcode in line for line in lines[: min(back)])
