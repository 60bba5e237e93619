"""Operations across the threads of a warp (PTX ISA 9.7.9 shfl, 9.7.13 vote, match, activemask, redux, elect).

Their gates have seen to it that all threads of a membermask are in the cohort. Tables are (warps, 32).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.flow import membermask
from tilewright.targets.emu.lanes import LANES, Array, Lanes
from tilewright.targets.emu.numerics import floats
from tilewright.targets.emu.ptx import Imm, Instruction, Operand, Pair
from tilewright.targets.emu.runtime import full, provide

FULL = np.uint32(0xFFFFFFFF)


@rule("shfl")
def shfl(c: BlockCoder, i: Instruction) -> None:
    """`shfl.sync.mode.b32 d|p, a, b, c, membermask`."""
    to = i.ops[0]
    mode = next(m for m in i.mods if m in ("up", "down", "bfly", "idx"))
    a, b, clamp = (c.use(op, "u32") for op in i.ops[1:4])
    mask = require_membership(c, i)
    pair = c.let(f"shuffle(L, {mode!r}, {a}, {b}, {clamp})")
    marked = c.taint_of(i.ops[1])
    if c.owner.checks:
        c.taint = f"shuffle_taint(L, {mode!r}, {marked}, {b}, {clamp}, {mask})"
    if isinstance(to, Pair):
        c.set(to.first, "b32", f"{pair}[0]")
        c.set(to.second, "pred", f"{pair}[1]")
    else:
        c.set(to, "b32", f"{pair}[0]")


def source_lane(mode: str, lane: Any, b: Any, clamp: Any) -> tuple[Any, Any]:
    """The lane that each lane reads, and whether it lies in the segment (the pseudo-code of the manual)."""
    segment = (clamp >> np.uint32(8)) & np.uint32(31)
    limit = clamp & np.uint32(31)
    b = b & np.uint32(31)
    top = (lane & segment) | (limit & ~segment)
    signed = lane.astype(np.int32)
    if mode == "up":
        j = signed - b.astype(np.int32)
        inside = j >= top.astype(np.int32)
    elif mode == "down":
        j = signed + b.astype(np.int32)
        inside = j <= top.astype(np.int32)
    elif mode == "bfly":
        j = (lane ^ b).astype(np.int32)
        inside = j <= top.astype(np.int32)
    else:
        low = lane & segment
        j = (low | (b & ~segment)).astype(np.int32)
        inside = j <= top.astype(np.int32)
    return np.where(inside, j, signed), inside


_PATTERNS: dict[tuple[str, int, int], tuple[Array, Array]] = {}


@provide
def shuffle(L: Lanes, mode: str, a: Any, b: Any, clamp: Any) -> tuple[Any, Any]:
    """(values, in-range flags) by thread."""
    uniform = b.__class__ is not np.ndarray and clamp.__class__ is not np.ndarray
    table = L.table(a)
    if uniform and L.whole_warps:
        key = (mode, int(b), int(clamp))
        pattern = _PATTERNS.get(key)
        if pattern is None:
            pattern = _PATTERNS[key] = source_lane(mode, LANES, np.uint32(b), np.uint32(clamp))
        return table.take(pattern[0], axis=1).reshape(-1), np.tile(pattern[1], len(table))
    j, inside = source_lane(mode, L.lane, b, clamp)
    row = np.arange(L.n) >> 5 if L.whole_warps else L.warp_rows[0] >> 5
    return table[row, j & 31], np.broadcast_to(inside, (L.n,))


@provide
def shuffle_taint(L: Lanes, mode: str, mark: Any, b: Any, clamp: Any, mask: Any) -> Any:
    """The marks of a shuffle: those of the lanes read, and of lanes that take no part in it."""
    if mark.__class__ is np.ndarray:
        mark = shuffle(L, mode, mark, b, clamp)[0]
    everyone = L.whole_warps and mask.__class__ is not np.ndarray and mask == FULL
    if everyone:
        return mark
    j, inside = source_lane(mode, L.lane, b, clamp)
    absent = inside & ((L.present & mask) >> (j & 31).astype(np.uint32) & np.uint32(1) == 0)
    return mark | absent if np.count_nonzero(absent) else mark


def require_membership(c: BlockCoder, i: Instruction) -> str:
    """The membermask of a warp instruction; with checks each thread must be in its own, and threads agree on it."""
    operand = membermask(i)
    mask = "FULL" if operand is None else c.use(operand, "u32")
    if c.owner.checks:
        c.emit(f"S.on.warp_met(L, {mask})")
    if c.owner.checks and operand is not None and not (isinstance(operand, Imm) and operand.value in (-1, 0xFFFFFFFF)):
        c.effect("check_members(S, SITE, L, {0})", [mask])
    return mask


@provide
def check_members(S: Any, site: int, L: Lanes, mask: Any) -> None:
    """A finding where a thread is not in its own membermask, or a thread in it has another one."""
    outside = mask >> L.lane & np.uint32(1) == 0
    hint = "each thread is in its own membermask, and all threads in it give the same one"
    if np.count_nonzero(outside):
        S.report(Fault("diverged", "A thread is not in its own membermask", site, np.flatnonzero(outside),
                       shown(L, mask, outside), hint, L))  # fmt: skip
    if mask.__class__ is not np.ndarray:
        return
    differ = mask & L.present & ~matched(L, "any", mask, FULL)[0] != 0
    if np.count_nonzero(differ):
        S.report(Fault("diverged", "Threads of a warp give different membermasks", site, np.flatnonzero(differ),
                       shown(L, mask, differ), hint, L))  # fmt: skip


def shown(L: Lanes, mask: Any, bad: Array) -> dict[str, str]:
    """The first mask that is wrong."""
    return {"membermask": f"{int(np.broadcast_to(mask, (L.n,))[np.flatnonzero(bad)[0]]):#010x}"}


def ballots(L: Lanes, predicate: Any, mask: Any) -> Array:
    """For each lane, the bits of the lanes of its mask whose predicate holds."""
    table = L.table(full(predicate, L.n))
    bits = np.packbits(np.ascontiguousarray(table).reshape(-1), bitorder="little").view(np.uint32)
    spread: Array = L.spread(bits) & mask
    return spread


@rule("vote")
def vote(c: BlockCoder, i: Instruction) -> None:
    mode = next(m for m in i.mods if m in ("all", "any", "uni", "ballot"))
    predicate = c.use(i.ops[1], "pred")
    mask = require_membership(c, i)
    mark = c.taint_of(i.ops[1])
    if mark != "FALSE":
        c.taint = f"vote_marks(L, {mode!r}, {predicate}, {mask}, {mark})"
    c.set(i.ops[0], "b32" if mode == "ballot" else "pred", f"voted(L, {mode!r}, {predicate}, {mask})")


@provide
def vote_marks(L: Lanes, mode: str, predicate: Any, mask: Any, mark: Any) -> Any:
    """Whose vote's result depends on marked predicates. Of a ballot, whose bits are often used apart, those lanes whose
    own bit does."""
    if not np.count_nonzero(mark):
        return np.bool_(False)
    if mode == "ballot":
        return mark
    unsure = ballots(L, mark, mask) != 0
    if mode == "any":
        return unsure & (ballots(L, predicate & ~mark, mask) == 0)
    if mode == "all":
        return unsure & (ballots(L, ~predicate & ~mark, mask) == 0)
    return unsure & ((ballots(L, predicate & ~mark, mask) == 0) | (ballots(L, ~predicate & ~mark, mask) == 0))


@provide
def voted(L: Lanes, mode: str, predicate: Any, mask: Any) -> Array:
    votes = ballots(L, predicate, mask)
    if mode == "ballot":
        return votes
    electorate = L.present & mask
    if mode == "any":
        return np.asarray(votes != 0)
    if mode == "all":
        return np.asarray(votes == electorate)
    return np.asarray((votes == electorate) | (votes == 0))


@rule("activemask")
def activemask(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], "b32", "full(L.present, L.n)")


@rule("elect")
def elect(c: BlockCoder, i: Instruction) -> None:
    to = i.ops[0]
    leader = c.let(f"leaders(L, {require_membership(c, i)})")
    if isinstance(to, Pair):
        c.set(to.first, "b32", leader)
        c.set(to.second, "pred", f"L.lane == {leader}")
    else:
        c.set(to, "pred", f"L.lane == {leader}")


@provide
def leaders(L: Lanes, mask: Any) -> Array:
    """The lowest lane of each mask that is present."""
    members = L.present & mask
    lowest = members & (~members + np.uint32(1))
    return np.asarray(np.bitwise_count(lowest - np.uint32(1)).astype(np.uint32))


@rule("match")
def match(c: BlockCoder, i: Instruction) -> None:
    to = i.ops[0]
    mode = next(m for m in i.mods if m in ("any", "all"))
    a, mask = c.use(i.ops[1], i.type), require_membership(c, i)
    pair = c.let(f"matched(L, {mode!r}, {a}, {mask})")
    mark_all(c, i.ops[1], mask)
    if isinstance(to, Pair):
        c.set(to.first, "b32", f"{pair}[0]")
        c.set(to.second, "pred", f"{pair}[1]")
    else:
        c.set(to, "b32", f"{pair}[0]")


@provide
def matched(L: Lanes, mode: str, a: Any, mask: Any) -> tuple[Array, Array]:
    """The lanes of the mask that hold the same value."""
    table = L.table(full(a, L.n))
    equal = table[:, :, None] == table[:, None, :]
    bits = np.packbits(equal, axis=2, bitorder="little").view(np.uint32)[:, :, 0]
    same = L.gather(bits) & mask & L.present
    if mode == "any":
        return same, same != 0
    everyone = same == (mask & L.present)
    return np.where(everyone, same, np.uint32(0)), everyone


@rule("redux")
def redux(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    op = next(m for m in i.mods if m in ("add", "min", "max", "and", "or", "xor"))
    flags = "".join(f", {name}=True" for name, word in (("nan", "NaN"), ("abs_", "abs")) if word in i.mods)
    a, mask = c.use(i.ops[1], kind), require_membership(c, i)
    mark_all(c, i.ops[1], mask)
    c.set(i.ops[0], kind, f"reduced(L, {op!r}, {kind!r}, {a}, {mask}{flags})")


def mark_all(c: BlockCoder, operand: Operand, mask: str) -> None:
    """The mark of a result that depends on an operand of all lanes of a mask."""
    mark = c.taint_of(operand)
    if mark != "FALSE":
        c.taint = f"shared_taint(L, {mark}, {mask})"


_REDUCE = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
           "xor": np.bitwise_xor}  # fmt: skip


@provide
def reduced(L: Lanes, op: str, kind: str, a: Any, mask: Any, **flags: bool) -> Array:
    """A reduction over the lanes of each mask."""
    table = L.table(full(a, L.n))
    dtype = np.dtype(DTYPE[kind])
    masks = L.table(full(mask & L.present, L.n))
    out = np.empty_like(table)
    for row in range(len(table)):
        for member in np.unique(masks[row]):
            lanes = np.flatnonzero((int(member) >> np.arange(32)) & 1)
            if len(lanes):
                out[row, masks[row] == member] = _reduce(table[row, lanes], op, kind, dtype, flags)
    return L.gather(out)


def _reduce(values: Array, op: str, kind: str, dtype: Any, flags: dict[str, bool]) -> Any:
    if kind != "f32":
        return _REDUCE[op].reduce(values, dtype=dtype)
    extreme = floats.min_ if op == "min" else floats.max_
    total = values[:1]
    for value in values[1:]:
        total = extreme(total, value[None], type="f32", **flags)
    return total[0]


@provide
def nothing(*_: Any) -> None:
    """An effect that is only an order."""
