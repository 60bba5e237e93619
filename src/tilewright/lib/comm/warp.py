"""Collectives of a warp, or of groups of `width` lanes of it.

    lanes      0   1   2   3   4   5   6   7
    step 4     0+4 1+5 2+6 3+7 4+0 5+1 6+2 7+3        a butterfly: every lane folds with lane ^ step
    step 2     ... and so on: log2(width) shuffles, after which all lanes have the same bits

One `redux.sync` does it for integers of up to 32 bits over a whole warp. Values of 64 bits take two shuffles a step.
In the last warp of a block whose threads are no multiple of 32 the lanes that are there take part. A `mask` names any
lanes; all of them must call with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.arch import (
    FULL_MASK,
    lane_idx,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_up,
    sync_warp,
    vote_ballot_sync,
)
from tilewright.lang.collective_values import taken_apart
from tilewright.lang.control.generate import select_
from tilewright.lang.locations import calling_location
from tilewright.lang.math import extreme
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric, Uint32, as_numeric, is_number
from tilewright.lang.nvgpu.redux import warp_redux_sync
from tilewright.lang.nvgpu.threads import brev, clz, match_any_sync
from tilewright.lib.comm.folds import Fold, folds_of
from tilewright.lib.comm.participants import WARP, block_threads, linear_thread

_NOWHERE = 32  # the place of a lane that is none


@dataclass(frozen=True)
class Lanes:
    """Who takes part in groups of `width` lanes.

    `mask` are the lanes that shuffle. `count` is how many lanes of the own group there are, its first ones; None stands
    for all of them. Where `some`, only those of `mask` take part, whichever they are.
    """

    width: int
    mask: Any
    count: Any = None
    some: bool = False

    @property
    def place(self) -> Int32:
        """The lane's place in its group."""
        return lane_idx() % self.width if self.width < WARP else lane_idx()

    @property
    def clamp(self) -> int:
        """The operand of a shuffle that keeps it in the group."""
        return (WARP - self.width) << 8

    @property
    def members(self) -> Any:
        """The lanes of the own group that take part, as bits."""
        if self.width == WARP:
            return Uint32(self.mask)
        first = lane_idx() - self.place
        return Uint32(self.mask) & (Uint32((1 << self.width) - 1) << Uint32(first))


def lanes_of(width: int, mask: Any = None) -> Lanes:
    """The lanes that take part, by what the caller says and what the launch says of the block.

    Raises:
        CompileError: `width` is no power of two up to 32.
    """
    if width not in (1, 2, 4, 8, 16, 32):
        raise CompileError(
            f"there are no groups of {width} lanes",
            location=calling_location(),
            hint="width is a power of two up to 32",
        )
    if mask is not None:
        return _masked(width, mask)
    threads = block_threads()
    if isinstance(threads, int):
        if threads < WARP:
            width = min(width, 1 << max(threads - 1, 0).bit_length())
            count = None if threads % width == 0 else extreme("min", threads - _first(width), width, False)
            return Lanes(width, (1 << threads) - 1, count)
        if threads % WARP == 0:
            return Lanes(width, FULL_MASK)
    present = extreme("min", as_numeric(threads) - linear_thread() // WARP * WARP, WARP, False)
    bits = Uint32(FULL_MASK) >> Uint32(WARP - present)
    if isinstance(threads, int) and threads % width == 0:
        return Lanes(width, bits)
    return Lanes(width, bits, extreme("min", present - _first(width), width, False))


def _first(width: int) -> Any:
    return lane_idx() // width * width if width < WARP else Int32(0)


def _masked(width: int, mask: Any) -> Lanes:
    if not is_number(mask):
        raise CompileError(
            f"mask is {mask!r}, which is no number",
            location=calling_location(),
            hint="32 bits, one for each lane that takes part",
        )
    if not isinstance(mask, int):
        return Lanes(width, Uint32(as_numeric(mask)), some=True)
    bits, group = mask & FULL_MASK, (1 << width) - 1
    if not bits:
        raise CompileError(
            "mask names no lane", location=calling_location(), hint="one bit for each lane that takes part"
        )
    whole = all(bits >> first & group in (0, group) for first in range(0, WARP, width))
    return Lanes(width, bits, some=not whole)


# Folding


def fold_lanes(number: Numeric, fold: Fold, lanes: Lanes) -> Numeric:
    """The fold over the group, in every lane of it; all in the type in which folds compute."""
    if lanes.width == 1:
        return number
    if lanes.some:
        return _by_links(number, fold, lanes)
    if lanes.count is not None:
        return type(number)(shuffle_sync(_to_first(number, fold, lanes), 0, lanes.mask, lanes.clamp | 31))
    cls = type(number)
    if lanes.width == WARP and cls in (Int32, Uint32) and fold.op != "mul":
        return cls(warp_redux_sync(number, fold.op, lanes.mask))
    step = lanes.width // 2
    while step:
        number = fold(number, shuffle_sync_bfly(number, step, lanes.mask))
        step //= 2
    return number


def fold_to_first(number: Numeric, fold: Fold, lanes: Lanes) -> Numeric:
    """The same, known to the first lane of the group only."""
    return _to_first(number, fold, lanes) if lanes.count is not None else fold_lanes(number, fold, lanes)


def _to_first(number: Numeric, fold: Fold, lanes: Lanes) -> Numeric:
    step = lanes.width // 2
    while step:
        other = shuffle_sync_down(number, step, lanes.mask, lanes.clamp | 31)
        number = select_(lanes.place + step < lanes.count, fold(number, other), number)
        step //= 2
    return number


def _by_links(number: Numeric, fold: Fold, lanes: Lanes) -> Numeric:
    """Any lanes: each folds with the next one, then with the next but one, and so on; then the first has all."""
    found = _follow(number, fold, _next(lanes), lanes)
    return type(number)(shuffle_sync(found, _lowest(lanes.members), lanes.mask))


def _follow(number: Numeric, fold: Fold, link: Int32, lanes: Lanes) -> Numeric:
    for _ in range(lanes.width.bit_length() - 1):
        is_there = link < _NOWHERE
        source = select_(is_there, link, lane_idx())
        other, further = shuffle_sync(number, source, lanes.mask), shuffle_sync(link, source, lanes.mask)
        number = select_(is_there, fold(number, other), number)
        link = Int32(select_(is_there, further, link))
    return number


def _lowest(bits: Any) -> Int32:
    """The place of the lowest bit; 32 where there is none."""
    return clz(brev(bits))


def _next(lanes: Lanes) -> Int32:
    above = Uint32(0xFFFFFFFE) << Uint32(lane_idx())
    return _lowest(lanes.members & above)


def _previous(lanes: Lanes) -> Int32:
    """The next lower lane that takes part; 32 where there is none."""
    below = lanes.members & ((Uint32(1) << Uint32(lane_idx())) - 1)
    return Int32(select_(below == 0, Int32(_NOWHERE), 31 - clz(below)))


def scan_lanes(number: Numeric, fold: Fold, lanes: Lanes) -> Numeric:
    """The fold of the lanes of the group up to this one."""
    if lanes.some:
        return _follow(number, fold, _previous(lanes), lanes)
    step = 1
    while step < lanes.width:
        other = shuffle_sync_up(number, step, lanes.mask, lanes.clamp)
        number = select_(lanes.place >= step, fold(other, number), number)
        step *= 2
    return number


def lane_before(number: Numeric, lanes: Lanes, otherwise: Numeric) -> Numeric:
    """What the lane before this one in its group has; `otherwise` in the first."""
    if lanes.some:
        link = _previous(lanes)
        is_first = link == _NOWHERE
        moved = shuffle_sync(number, select_(is_first, lane_idx(), link), lanes.mask)
        return select_(is_first, otherwise, moved)
    moved = shuffle_sync_up(number, 1, lanes.mask, lanes.clamp)
    return select_(lanes.place == 0, otherwise, moved)


# What users call


def warp_allreduce(
    x: Any, op: Any = "add", width: int = WARP, mask: Any = None, *, loc: object = None, ip: object = None
) -> Any:
    """`x` folded over each group of `width` lanes; all of them get the same bits.

    Args:
        x: a number, a vector, or a tuple of them.
        op: add, mul, min, max, and, or, xor; for a tuple also a tuple of operations.
        width: lanes of a group, a power of two.
        mask: the lanes that take part, as bits; by default those that the block has.

    Raises:
        CompileError: `op` does not go with the type, or `width` is no power of two.
    """
    numbers, rebuild = taken_apart(x)
    folds, lanes = folds_of(x, op, numbers), lanes_of(width, mask)
    return rebuild(
        [fold.lower(fold_lanes(fold.lift(item), fold, lanes)) for fold, item in zip(folds, numbers, strict=True)]
    )


def warp_reduce(
    x: Any, op: Any = "add", width: int = WARP, dst: int = 0, mask: Any = None, *, loc: object = None,
    ip: object = None,
) -> Any:  # fmt: skip
    """`warp_allreduce` for those who need the result in lane `dst` of each group only: in others it is not specified.

    (A butterfly costs no more than a tree, so all lanes have it.)
    """
    if not 0 <= dst < width:
        raise CompileError(
            f"there is no lane {dst} in groups of {width}",
            location=calling_location(),
            hint=f"dst is 0 to {width - 1}, counted within the group",
        )
    return warp_allreduce(x, op, width, mask)


def warp_scan(
    x: Any, op: Any = "add", exclusive: bool = False, width: int = WARP, mask: Any = None, *, loc: object = None,
    ip: object = None,
) -> Any:  # fmt: skip
    """`x` folded over the lanes of the group up to this one, or where `exclusive` up to the one before.

    The first lane's exclusive scan is what changes nothing: 0, 1, the greatest number for min, and so on.
    """
    numbers, rebuild = taken_apart(x)
    lanes = lanes_of(width, mask)
    results = []
    for fold, number in zip(folds_of(x, op, numbers), numbers, strict=True):
        found = scan_lanes(fold.lift(number), fold, lanes)
        results.append(fold.lower(lane_before(found, lanes, fold.neutral) if exclusive else found))
    return rebuild(results)


def warp_broadcast(
    x: Any, src: Any = 0, width: int = WARP, mask: Any = None, *, loc: object = None, ip: object = None
) -> Any:
    """The `x` of lane `src` of each group of `width` lanes, in all of them; that lane must take part.

    Raises:
        CompileError: there is no such lane, or `width` is no power of two.
    """
    if isinstance(src, int) and not 0 <= src < width:
        raise CompileError(
            f"there is no lane {src} in groups of {width}",
            location=calling_location(),
            hint=f"src is 0 to {width - 1}, counted within the group",
        )
    numbers, rebuild = taken_apart(x)
    lanes = lanes_of(width, mask)
    return rebuild([shuffled(number, src, lanes) for number in numbers])


def shuffled(number: Numeric, source: Any, lanes: Lanes) -> Numeric:
    """What lane `source` of the group has, of any type."""
    if type(number) is Boolean:
        return Boolean(shuffle_sync(Uint32(number), source, lanes.mask, lanes.clamp | 31) != 0)
    return type(number)(shuffle_sync(number, source, lanes.mask, lanes.clamp | 31))


def warp_any(pred: Any, width: int = WARP, mask: Any = None, *, loc: object = None, ip: object = None) -> Boolean:
    """True where the predicate holds in some lane of the group."""
    lanes = lanes_of(width, mask)
    return Boolean((Uint32(vote_ballot_sync(pred, lanes.mask)) & lanes.members) != 0)


def warp_all(pred: Any, width: int = WARP, mask: Any = None, *, loc: object = None, ip: object = None) -> Boolean:
    """True where the predicate holds in all lanes of the group."""
    lanes = lanes_of(width, mask)
    return Boolean((Uint32(vote_ballot_sync(pred, lanes.mask)) & lanes.members) == lanes.members)


def warp_ballot(pred: Any, width: int = WARP, mask: Any = None, *, loc: object = None, ip: object = None) -> Uint32:
    """The lanes of the own group in which the predicate holds, as bits by lane of the warp."""
    lanes = lanes_of(width, mask)
    return Uint32(Uint32(vote_ballot_sync(pred, lanes.mask)) & lanes.members)


def warp_match(x: Any, width: int = WARP, mask: Any = None, *, loc: object = None, ip: object = None) -> Uint32:
    """The lanes of the own group that have the bits of this lane's number, as bits by lane of the warp."""
    lanes = lanes_of(width, mask)
    return Uint32(Uint32(match_any_sync(x, lanes.mask)) & lanes.members)


def warp_barrier(mask: Any = None, *, loc: object = None, ip: object = None) -> None:
    """Wait for the lanes of the warp; memory written before is visible to them after."""
    sync_warp(lanes_of(WARP, mask).mask)
