"""Collectives of a kernel as passes see them: what an operation says, and the facts of the launch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.dtypes import TABLE
from tilewright.base.location import SourceLocation
from tilewright.hw.collectives import Cost, cost
from tilewright.ir import build
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.dialect import COLLECTIVES
from tilewright.ir.expansions import Collective, LaunchFacts
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.passes.program import Launch, kernels, launches

if TYPE_CHECKING:
    from mlir import ir

FLAGS = "tilewright.launch_flags"
PARTICIPANTS = "tilewright.participants"  # of a collective: threads, 0 for those of a grid of unknown size
BLOCKS = "tilewright.blocks"  # of a collective of a grid: how many blocks meet, where not all do
REMARKS = "tilewright.communication"  # of a kernel: a line for each collective
WARP = 32
NAMES = {"allreduce": "all-reduce", "broadcast": "broadcast", "scan": "scan"}
_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class KernelFacts:
    """A kernel, its launch, and what is known of it."""

    kernel: ir.Operation
    launch: Launch | None
    facts: LaunchFacts

    @property
    def threads(self) -> int:
        """Threads of a block; the most where they come at run time."""
        return math.prod(self.facts.block) if self.facts.block else 1024

    @property
    def cluster(self) -> int:
        """Blocks of a cluster, 1 where there is none."""
        return max(math.prod(self.facts.cluster or (0,)), 1)

    @property
    def blocks(self) -> int | None:
        """Blocks of the grid, None where they come at run time."""
        return math.prod(self.facts.grid) if self.facts.grid else None


def kernel_facts(module: ir.Operation, arch: str) -> list[KernelFacts]:
    """The kernels of a module that have collectives."""
    found = []
    by_name = {launch.kernel: launch for launch in launches(module)}
    for kernel in kernels(module):
        if any(True for _ in collectives(kernel)):
            launch = by_name.get(text_of(kernel, "sym_name"))
            found.append(KernelFacts(kernel, launch, _facts(launch, arch)))
    return found


def _facts(launch: Launch | None, arch: str) -> LaunchFacts:
    if launch is None:
        return LaunchFacts(arch, None, None, (0, 0, 0), False)
    flags = number_of(launch.op, FLAGS) if FLAGS in launch.op.attributes else 0
    cluster = launch.cluster if launch.cluster != (1, 1, 1) else (0, 0, 0)
    return LaunchFacts(arch, _known(launch.grid), _known(launch.block), _known(cluster), bool(flags & 1))


def _known(extents: tuple[object, ...]) -> tuple[int, ...] | None:
    found = tuple(extent for extent in extents if isinstance(extent, int))
    return found if len(found) == len(extents) else None


def collectives(root: ir.Operation) -> Iterator[ir.Operation]:
    """The collectives inside `root`, in order."""
    return (op for op in operations(root) if op.name in COLLECTIVES)


def kind_of(op: ir.Operation) -> str:
    """allreduce, broadcast or scan."""
    return str(op.name).removeprefix("cute.")


def values_of(op: ir.Operation) -> list[ir.Value]:
    """The values that are folded or sent."""
    return build.groups(op)[0]


def workspace_of(op: ir.Operation) -> ir.Value | None:
    """The address of global memory, where one is given."""
    groups = build.groups(op)
    return groups[1][0] if len(groups) > 1 and groups[1] else None


def as_collective(op: ir.Operation) -> Collective:
    """What the operation says."""
    kind = kind_of(op)
    return Collective(
        kind,
        values_of(op),
        text_of(op, "types").split(","),
        text_of(op, "op").split(",") if "op" in op.attributes else (),
        text_of(op, "scope"),
        number_of(op, "group"),
        mode=text_of(op, "mode") if "mode" in op.attributes else "auto",
        source=number_of(op, "source") if "source" in op.attributes else 0,
        exclusive=bool(number_of(op, "exclusive")) if "exclusive" in op.attributes else False,
        workspace=workspace_of(op),
        blocks=number_of(op, BLOCKS) if BLOCKS in op.attributes else None,
    )


def around(op: ir.Operation) -> list[ir.Operation]:
    """The operations around `op` in its kernel, from the inside out."""
    found, at = [], op.parent.operation
    while at is not None and at.name != "gpu.func":
        found.append(at)
        at = at.parent.operation if at.parent is not None else None
    return found


def in_loop(op: ir.Operation) -> bool:
    """True where a thread may come to the operation more than once."""
    return any(item.name in _LOOPS for item in around(op))


def cost_of(op: ir.Operation, found: KernelFacts) -> Cost:
    """The predicted cost of a collective whose scope is chosen."""
    said = as_collective(op)
    threads = said.group or found.threads
    if said.scope == "warp":
        threads = min(said.group or WARP, found.threads)
    blocks = {"cluster": found.cluster, "grid": said.blocks or found.blocks or 132}.get(said.scope, 1)
    types = [TABLE[name] for name in said.types]
    foldable = all(item.kind in "iub" and item.width <= WARP for item in types) and "mul" not in said.ops
    widths = tuple(item.width for item in types)
    return cost(said.kind, said.scope, threads, blocks, widths, integers=foldable, mode=said.mode, repeats=in_loop(op))


def remark(op: ir.Operation, found: KernelFacts) -> str:
    """One line: what the collective is, its scope and algorithm, barriers, bytes, predicted time."""
    said, taken = as_collective(op), cost_of(op, found)
    what = " ".join([NAMES[said.kind], *dict.fromkeys(said.ops)])
    scope = f"{said.scope} of {said.group}" if said.group else said.scope
    scope = f"{said.blocks} blocks of the grid" if said.blocks else scope
    way = f"{taken.algorithm} to the first thread" if said.mode == "first" else taken.algorithm
    place = source_location(op.location)
    where = f"{Path(place.file).name}:{place.line}: " if place is not None else ""
    barriers = f"{taken.barriers} barrier{'' if taken.barriers == 1 else 's'}"
    return (
        f"{where}{what} of {', '.join(said.types)}: scope {scope}, {way}, {barriers}, {taken.bytes} bytes,"
        f" about {taken.nanoseconds / 1000:.2f} us"
    )


def place_of(op: ir.Operation) -> SourceLocation | None:
    """The user's line of an operation."""
    return source_location(op.location)


def set_text(op: ir.Operation, name: str, text: str) -> None:
    """Change a string attribute."""
    op.attributes[name] = build.string(text)
