"""Collectives of a grid all of whose blocks run at once: a cooperative launch.

The barrier is one counter in global memory, zero before its first use, which only ever counts on. In each round the
first block adds what makes its highest bit flip when all others have added 1; everyone spins until it has flipped.

    all threads of a block   barrier of the block
    its first thread         add to the counter, release ──► spin on it, acquire
    all threads of a block   barrier of the block

An all-reduce puts a number for each block into a workspace on one side of such a barrier, and every block folds all of
them in one order on the other. The two halves of the workspace take turns by that bit: one barrier a round is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.arch import block_idx, grid_dim
from tilewright.lang.atomics import atomic_add
from tilewright.lang.collective_values import taken_apart
from tilewright.lang.control.generate import for_generate, run_if, select_, while_generate, yield_out
from tilewright.lang.locations import calling_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu.ordered import load
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import is_static
from tilewright.layout.query import room
from tilewright.lib.comm import block as blocks_
from tilewright.lib.comm.block import Numbers
from tilewright.lib.comm.folds import Fold, folds_of
from tilewright.lib.comm.participants import Group, group_of

FLIP = 0x80000000
WORD = 8  # bytes of a number in the workspace
_WORDS = 2  # of 32 bits in one


def grid_workspace(blocks: int, values: int = 1, groups: int = 1) -> int:
    """How many 64-bit words the workspace of a grid of `blocks` blocks takes that fold `values` numbers at once.

    It is zero before its first use, and belongs to one launch at a time. Later launches with as many blocks need no
    zeros: the counter goes on. `groups` is how many groups of blocks meet apart, each at a counter of its own.
    """
    return groups + 2 * blocks * values


@dataclass(frozen=True)
class _Blocks:
    """The blocks that meet: `count` of them, of which the caller is number `rank`, in group `group` of `groups`."""

    count: Any
    rank: Any
    group: Any
    groups: Any

    @property
    def size(self) -> int:
        """Words of the workspace for each value; 2 where they are known only at run time."""
        total = self.count * self.groups
        return grid_workspace(total, groups=0) if isinstance(total, int) else 2


def _blocks(blocks: int | None, found: trace.Trace) -> _Blocks:
    """All blocks of the grid, or the caller's group of so many consecutive ones, x fastest.

    Raises:
        CompileError: the groups do not divide the grid.
    """
    x, y, z = _extents(found)
    place, total = block_idx(), x * y * z
    number = place[0] + x * (place[1] + y * place[2])
    if blocks is None:
        return _Blocks(total, number, 0, 1)
    if not isinstance(blocks, int) or blocks < 1 or (isinstance(total, int) and total % blocks):
        size = f" in a grid of {total}" if isinstance(total, int) else ""
        raise CompileError(
            f"there are no groups of {blocks} blocks{size}",
            location=calling_location(),
            hint="blocks is a positive int that divides the number of blocks of the grid",
        )
    return _Blocks(blocks, number % blocks, number // blocks, total // blocks)


def _cooperative(what: str) -> trace.Trace:
    found = trace.device(what)
    if not found.cooperative:
        raise CompileError(
            f"{what} in a launch that is not cooperative: its blocks need not run at once, and would wait for ever",
            location=calling_location(),
            hint="kernel(...).launch(grid=..., block=..., cooperative=True)",
        )
    return found


def _extents(found: trace.Trace) -> list[Any]:
    """The grid's extents: Python numbers where they are known."""
    if found.grid and all(isinstance(extent, int) for extent in found.grid):
        return list(found.grid)
    return list(grid_dim())


def _counter(state: Any, what: str, least: int = 4) -> Pointer:
    """The counter at the beginning of `state`."""
    pointer = state.iterator if isinstance(state, Tensor) else state
    spaces = (AddressSpace.gmem, AddressSpace.generic)
    if not isinstance(pointer, Pointer) or pointer.memspace not in spaces:
        raise CompileError(
            f"{what} takes a tensor or a pointer in global memory",
            location=calling_location(),
            values={"got": state},
            hint="a tensor of zeros; a barrier takes one Int64, others as many as grid_workspace() says",
        )
    if isinstance(state, Tensor) and is_static(state.layout):
        given = room(state.layout) * pointer.dtype.width // 8
        if given < least:
            raise CompileError(
                f"{what} needs {least} bytes of global memory, and got {given}",
                location=calling_location(),
                hint="cute.grid_workspace(blocks, values) says how many Int64 it takes",
            )
    return pointer.recast(Uint32)


def grid_barrier(state: Any, blocks: int | None = None, *, loc: object = None, ip: object = None) -> None:
    """Wait for all threads of the grid; memory written before is visible to them after.

    Args:
        state: a tensor or pointer in global memory, of which 64 bits are used: zero before its first use.
        blocks: with a number, wait only for the caller's group of so many consecutive blocks; `state` has 64 bits for
            each group.

    Raises:
        CompileError: the launch is not cooperative, or `state` is no global memory.
    """
    found = _cooperative("grid_barrier")
    who = _blocks(blocks, found)
    _meet(_counter(state, "grid_barrier") + who.group * _WORDS, who, group_of(None, 0))


def _meet(counter: Pointer, who: _Blocks, group: Group, gathered: bool = False) -> None:
    """The barrier. The threads of the block have `gathered` where they met after reading what others may overwrite."""
    others = Uint32(who.count - 1)
    if not gathered:
        group.sync()
    with run_if(group.rank == 0):
        amount = select_(as_numeric(who.rank) == 0, Uint32(FLIP) - others, Uint32(1))
        old = Uint32(atomic_add(counter, amount, sem="release", scope="gpu"))
        # What the others released is acquired by the load that sees it.
        with while_generate([], lambda: ((_seen(counter) ^ old) & FLIP) == 0):
            yield_out()
    group.sync()


def _seen(counter: Pointer) -> Uint32:
    return Uint32(load(counter, Uint32, sem="acquire", scope="gpu"))


def grid_allreduce(
    x: Any,
    op: Any = "add",
    workspace: Any = None,
    blocks: int | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> Any:
    """`x` folded over all threads of the grid; all of them get the same bits, in every run. All of them must call.

    Args:
        x: a number, a vector, or a tuple of them, which share the barrier.
        op: add, mul, min, max, and, or, xor; for a tuple also a tuple of operations.
        workspace: a tensor in global memory of `grid_workspace(blocks, values)` Int64, zero before its first use.
        blocks: with a number, `x` is folded over each group of so many consecutive blocks.

    Raises:
        CompileError: the launch is not cooperative, or the workspace is too small or missing.
    """
    found = _cooperative("grid_allreduce")
    numbers, rebuild = taken_apart(x)
    folds, group = folds_of(x, op, numbers), group_of(None, 0)
    lifted = [fold.lift(number) for fold, number in zip(folds, numbers, strict=True)]
    who = _blocks(blocks, found)
    places = _Workspace(workspace, [fold.computing for fold in folds], who, "grid_allreduce")
    own = blocks_.fold_block(lifted, folds, group, to_all=False, guarded=True)
    with run_if(group.rank == 0):
        places.put(own)
    _meet(places.counter, who, group, gathered=group.warps > 1)
    parts = [_folded(places, number, fold, group) for number, fold in enumerate(folds)]
    results = blocks_.fold_block(parts, folds, group, guarded=True)
    return rebuild([fold.lower(number) for fold, number in zip(folds, results, strict=True)])


def grid_reduce(x: Any, op: Any = "add", workspace: Any = None, *, loc: object = None, ip: object = None) -> Any:
    """`grid_allreduce` for the first block alone. (It costs the same barrier, so all blocks have the result.)"""
    return grid_allreduce(x, op, workspace)


def grid_broadcast(
    x: Any,
    workspace: Any = None,
    src: Any = 0,
    blocks: int | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> Any:
    """What the first thread of block `src` has, in all threads of the grid. `src` counts blocks, x fastest.

    `workspace` and `blocks` are those of `grid_allreduce`.
    """
    found = _cooperative("grid_broadcast")
    numbers, rebuild = taken_apart(x)
    group = group_of(None, 0)
    kinds = [Uint32 if type(number) is Boolean else type(number) for number in numbers]
    who = _blocks(blocks, found)
    places = _Workspace(workspace, kinds, who, "grid_broadcast")
    with run_if((group.rank == 0) & (as_numeric(who.rank) == src)):
        places.put([kind(number) for kind, number in zip(kinds, numbers, strict=True)])
    _meet(places.counter, who, group)
    got = [places.get(number, src) for number in range(len(kinds))]
    return rebuild([item != 0 if type(given) is Boolean else item for item, given in zip(got, numbers, strict=True)])


class _Workspace:
    """A place for a number of each type for each block, in the half whose turn it is."""

    def __init__(self, memory: Any, types: Sequence[type[Numeric]], who: _Blocks, what: str) -> None:
        groups = who.groups if isinstance(who.groups, int) else 1
        start = _counter(memory, what, WORD * (groups + who.size * len(types)))
        self.counter = start + who.group * _WORDS
        self._words = start.recast(Uint64).with_alignment(WORD)
        self._types, self._who = types, who
        # No block flips the bit before this one has arrived.
        self._half = Int32(Uint32(load(self.counter, Uint32, sem="relaxed", scope="gpu")) >> 31)

    def _place(self, number: int, rank: Any) -> Pointer:
        who = self._who
        block = (who.group + number * who.groups) * who.count + as_numeric(rank)
        place: Pointer = self._words + (block * 2 + self._half + who.groups)
        return place.recast(self._types[number])

    def put(self, numbers: Numbers) -> None:
        for number, item in enumerate(numbers):
            self._place(number, self._who.rank).store(item)

    def get(self, number: int, rank: Any) -> Numeric:
        return self._place(number, rank).load()

    @property
    def blocks(self) -> Any:
        return self._who.count


def _folded(places: _Workspace, number: int, fold: Fold, group: Group) -> Numeric:
    """The fold of the numbers of every so many blocks, in one order."""
    loop = for_generate(group.rank, places.blocks, group.threads, iter_args=[fold.identity])
    with loop as (block, so_far):
        yield_out([fold(so_far, places.get(number, block))])
    found: Numeric = loop.results[0]
    return found
