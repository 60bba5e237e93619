"""What stands for a collective: code of the language, which passes cannot build themselves.

`lib.comm.expansion` knows it, and is loaded when the first collective is expanded: passes and the language do not know
each other, and few programs have collectives.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir

_MAKER = "tilewright.lib.comm.expansion"


@dataclass(frozen=True)
class LaunchFacts:
    """What is known of a kernel's launch while compiling: extents, None where they come at run time; whether all blocks
    run at once. A cluster of (0, 0, 0) is none."""

    arch: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    cluster: tuple[int, ...] | None
    cooperative: bool


@dataclass(frozen=True)
class Collective:
    """A collective as its operation says it: `kind` is allreduce, broadcast or scan, `types` are short names of number
    types, `ops` one for each value, `workspace` the address of global memory."""

    kind: str
    values: Sequence[ir.Value]
    types: Sequence[str]
    ops: Sequence[str]
    scope: str
    group: int
    mode: str = "auto"
    source: int = 0
    exclusive: bool = False
    workspace: ir.Value | None = None
    blocks: int | None = None  # of a grid: those that meet, where not all do


Expand = Callable[[Collective, LaunchFacts, "ir.Module"], "list[ir.Value]"]


@functools.cache
def expander() -> Expand:
    """The function that builds the code of a collective whose scope is chosen, and gives its results."""
    found: Expand = importlib.import_module(_MAKER).expand
    return found
