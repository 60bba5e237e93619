"""Asynchronous copies (PTX ISA 9.7.9.25): `cp.async`, bulk copies, their groups, `st.async`, `red.async`.

Copies take effect when they are issued; with checks on, what is not waited for counts as not yet there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE, bits_of
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import describe
from tilewright.targets.emu.ptx import Imm, Instruction, Mem, Operand, Reg, Vec
from tilewright.targets.emu.rules.atomics import check_operation, combine, resolve, update
from tilewright.targets.emu.rules.barriers import complete_bytes, mbarrier_arrive
from tilewright.targets.emu.rules.memory import address, taint_stored
from tilewright.targets.emu.runtime import provide

U8 = np.dtype(np.uint8)
SIZES = {4: 2, 8: 3, 16: 4}
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


# cp.async.


@rule("cp.async")
def cp_async(c: BlockCoder, i: Instruction) -> None:
    """`cp.async.ca|cg.shared.global [dst], [src], size{, src-size}{, policy}`, or an ignore-source predicate."""
    to, source, size = i.ops[:3]
    if not isinstance(size, Imm) or size.value not in SIZES:
        raise c.fail("cp.async copies 4, 8 or 16 bytes")
    extra = [op for op in i.ops[3:] if not (isinstance(op, Reg) and op.type == "b64")]
    if "L2::cache_hint" in i.mods or any("cache_hint" in m for m in i.mods):
        extra = list(i.ops[3:-1])
    args = [c.let(f"shared_address({address(c, to, 'shared')})"), address(c, source, "global")]
    kept = "None"
    if extra and isinstance(extra[0], Reg) and extra[0].type == "pred":
        args.append(
            c.let(f"where({c.use(extra[0], 'pred')}, {c.constant(0, 'u4')}, {c.constant(size.value, 'u4')})[()]")
        )
        kept = "{2}"
    elif extra:
        args.append(c.use(extra[0], "u32"))
        kept = "{2}"
    c.effect(f"copy_async(S, SITE, L, {{0}}, {{1}}, {size.value}, {kept})", args)


@provide
def copy_async(S: Any, site: int, L: Lanes, to: Any, source: Any, size: int, kept: Any) -> None:
    """Copy `size` bytes a thread; of which the first `kept` are read, the rest zeroed."""

    def run(L: Lanes, to: Any, source: Any, kept: Any) -> None:
        if kept is None or (kept.__class__ is not np.ndarray and int(kept) == size):
            rows = S.copy_read(site, L, source, size)
        else:
            rows = _partial(S, site, L, source, size, np.broadcast_to(kept, (L.n,)))
        S.copy_written(site, L, to, rows, size, source)

    S.attempt(run, L, to, source, kept)


def _partial(S: Any, site: int, L: Lanes, source: Any, size: int, kept: Array) -> Array:
    if (kept > size).any():
        raise Fault("operand", "cp.async with a source size beyond its copy size", site, np.flatnonzero(kept > size))
    rows = np.zeros((L.n, size), np.uint8)
    for amount in np.unique(kept):
        at = np.flatnonzero(kept == amount)
        if not amount:
            continue
        start = source[at] if source.__class__ is np.ndarray else source
        if amount == size:
            rows[at] = S.copy_read(site, L.subset(at), start, size)
            continue
        for offset in range(int(amount)):
            rows[at, offset] = S.g.octets(site, np.broadcast_to(start + np.uint64(offset), (len(at),)))
    return rows


MOST_GROUPS = 1 << 30
"""More groups than a thread can have under way; larger operands mean the same and fit no machine integer."""


@rule("cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", "cp.async.bulk.commit_group",
      "cp.async.bulk.wait_group")  # fmt: skip
def groups(c: BlockCoder, i: Instruction) -> None:
    bulk = "bulk" in i.mods
    if "commit_group" in i.mods:
        c.effect(f"S.copies_committed(L, {bulk})", [])
    else:
        count = min(int(i.ops[0].value), MOST_GROUPS) if i.ops and isinstance(i.ops[0], Imm) else 0
        c.effect(f"S.copies_awaited(L, {count}, {bulk}, {'wait_all' in i.mods}, {'read' in i.mods})", [])


@rule("cp.async.mbarrier.arrive")
def arrive_when_copied(c: BlockCoder, i: Instruction) -> None:
    """Arrive when this thread's copies are done; without .noinc the pending count was raised by one before."""
    place = c.let(f"shared_address({address(c, i.ops[0], 'shared')})")
    c.effect(f"copies_arrive(S, SITE, L, {{0}}, {'noinc' in i.mods})", [place])


@provide
def copies_arrive(S: Any, site: int, L: Lanes, addr: Any, counted: bool) -> None:
    S.copies_arriving(L)
    mbarrier_arrive(S, site, L, addr, 1 if counted else 0, 0)


# Bulk copies.


@rule("cp.async.bulk.prefetch")
def prefetch(c: BlockCoder, i: Instruction) -> None:
    """No effect."""


@rule("cp.async.bulk", "cp.reduce.async.bulk")
def bulk(c: BlockCoder, i: Instruction) -> None:
    """`[dst], [src], size{, [mbar]}{, mask}{, policy}`."""
    spaces = [m for m in i.mods if m.split("::")[0] in ("shared", "global")]
    if len(spaces) != 2:
        raise c.fail("a bulk copy goes from one state space to another")
    operands = list(i.ops)
    to, source = operands.pop(0), operands.pop(0)
    size = c.use(operands.pop(0), "u32")
    barrier = operands.pop(0) if any("complete_tx" in m for m in i.mods) else None
    mask = c.use(operands.pop(0), "u16") if "multicast::cluster" in i.mods else "None"
    reduction = reduction_of(i)
    args = [place(c, to, spaces[0]), place(c, source, spaces[1]), size]
    args.append(c.let(f"shared_address({address(c, barrier, 'shared')})") if barrier else "None")
    names = ["{0}", "{1}", "{2}", "{3}" if barrier else "None"]
    spaces = [s.split("::")[0] for s in spaces]
    extra = f"{mask}, {reduction!r}, {i.type!r}"
    given = args[: 4 if barrier else 3]
    c.effect(f"bulk_copy(S, SITE, L, {spaces[0]!r}, {spaces[1]!r}, {', '.join(names)}, {extra})", given)


def reduction_of(i: Instruction) -> str:
    """The operation of a `cp.reduce.async.bulk`, empty for a plain copy; `EmulationError` if its type has none such."""
    if "reduce" not in i.mods:
        return ""
    op = next(m for m in i.mods if m in REDUCTIONS)
    check_operation(op, i.type)
    return op


def place(c: BlockCoder, mem: Operand, space: str) -> str:
    text = address(c, mem, space.split("::")[0])
    return c.let(f"shared_address({text})") if space.startswith("shared") else text


def at_lane(value: Any, lane: int) -> int:
    return int(value[lane]) if value.__class__ is np.ndarray else int(value)


@provide
def bulk_copy(
    S: Any, site: int, L: Lanes, to_space: str, from_space: str, to: Any, source: Any, size: Any, barrier: Any,
    mask: Any, op: str, kind: str,
) -> None:  # fmt: skip
    """One copy a thread, of `size` bytes."""
    for lane in range(L.n):
        one = L.subset(np.array([lane]))
        count = at_lane(size, lane)
        start, end = at_lane(source, lane), at_lane(to, lane)
        if count % 16 or start % 16 or end % 16:
            raise Fault("misaligned", "A bulk copy needs addresses and a size that are multiples of 16", site,
                        np.array([lane]), {"source": f"{start:#x}", "target": f"{end:#x}", "bytes": count})  # fmt: skip
        data = span(S, site, one, from_space, start, count, lane, False)
        for rank in targets(mask, site, L, lane):
            destination = end if rank is None else (end & 0xFFFFFF) | (rank + 1) << 24
            out = span(S, site, one, to_space, destination, count, lane, True)
            told = None if barrier is None else barrier_index(S, site, one, at_lane(barrier, lane), rank)
            if count:
                signal = None if told is None else int(told[0])
                S.on.bulk_moved(site, one, from_space, start, to_space, destination, count, signal)
            move = _move(S, site, out, data, op, kind, told)
            if told is None:
                S.in_flight.store(int(one.ids[0]), move)
            else:
                S.in_flight.deliver(int(told[0]), move)


def _move(S: Any, site: int, out: Array, data: Array, op: str, kind: str, told: Array | None) -> Callable[[], None]:
    """What a bulk copy does when it lands."""

    def move() -> None:
        if op:
            reduce_into(out, data, op, kind)
        else:
            out[:] = data
        if told is not None:
            complete_bytes(S, site, told, np.array([len(out)]))

    return move


def targets(mask: Any, site: int, L: Lanes, lane: int) -> list[int | None]:
    """The ranks in the cluster that a multicast copy of a lane writes to; None for no multicast."""
    if mask is None:
        return [None]
    bits, blocks = at_lane(mask, lane), L.shape.cluster_blocks
    if bits >> blocks:
        raise Fault("cluster", "A multicast mask names blocks outside the cluster", site, np.array([lane]),
                    {"mask": f"{bits:#b}", "cluster": f"{blocks} blocks"})  # fmt: skip
    return [rank for rank in range(blocks) if bits >> rank & 1]


def barrier_index(S: Any, site: int, one: Lanes, barrier: int, rank: int | None) -> Array:
    """The word index of the barrier that a copy tells: that of the target block, for a multicast."""
    where = barrier if rank is None else (barrier & 0xFFFFFF) | (rank + 1) << 24
    return np.atleast_1d(S.sh.index(site, one, np.array([where], np.uint64), 3))


def span(S: Any, site: int, one: Lanes, space: str, start: int, count: int, lane: int, write: bool) -> Array:
    """`count` bytes of a memory, as a view."""
    if count == 0:
        return np.empty(0, np.uint8)
    if space == "global":
        data = S.g.at(start, count)
        if data is None:
            bad = np.array([True])
            fault = S.g.out_of_bounds(site, np.array([start], np.uint64), bad, count, write, True)
            fault.lanes = np.array([lane])
            raise fault
        buffer = S.g.buffer_of(start)
        if write and not buffer.writable:
            raise Fault(
                "readonly", "Write to read-only global memory", site, np.array([lane]), {"buffer": describe(buffer)}
            )
        return np.asarray(data)
    first = int(np.atleast_1d(S.sh.index(site, one, np.array([start], np.uint64), 0))[0])
    offset = start & 0xFFFFFF
    if offset + count > S.sh.size:
        raise Fault("bounds", "Out-of-bounds access to shared memory", site, np.array([lane]),
                    {"address": f"{offset:#x}", "bytes": count, "shared memory": f"{S.sh.size} bytes"})  # fmt: skip
    return np.asarray(S.sh.bytes[first : first + count])


def reduce_into(out: Array, data: Array, op: str, kind: str) -> None:
    """As atomics on global memory do, but that subnormals of f32 stay (measured on an H100)."""
    dtype = np.dtype(DTYPE[kind])
    view = out.view(dtype)
    view[:] = combine(op, kind, kind != "f32")(view.copy(), np.ascontiguousarray(data).view(dtype), None)


# Stores to other blocks of the cluster.


@rule("st.async")
def st_async(c: BlockCoder, i: Instruction) -> None:
    """`st.async...complete_tx::bytes.shared::cluster{.v}.type [a], b, [mbar]`."""
    kind = i.type
    size = bits_of(DTYPE[kind]) // 8
    items = i.ops[1].items if isinstance(i.ops[1], Vec) else (i.ops[1],)
    mem = i.ops[0]
    assert isinstance(mem, Mem)
    barrier = place(c, i.ops[2], "shared")
    for index, item in enumerate(items):
        to = place(c, Mem(mem.base, mem.offset + index * size), "shared")
        c.effect(
            f"store_async(S, SITE, L, {{0}}, {{1}}, {{2}}, {DTYPE[kind]}, {size})", [to, c.use(item, kind), barrier]
        )
        taint_stored(c, [item], "shared", to, size.bit_length() - 1)


@provide
def store_async(S: Any, site: int, L: Lanes, to: Any, value: Any, barrier: Any, dtype: Any, size: int) -> None:
    S.remote_stored(site, L, to, value, dtype, size, barrier)
    index = np.broadcast_to(S.sh.index(site, L, barrier, 3), (L.n,))
    complete_bytes(S, site, index, np.full(L.n, size))


@rule("red.async")
def red_async(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    op = next(m for m in i.mods if m in REDUCTIONS)
    size = bits_of(DTYPE[kind]) // 8
    args = [place(c, i.ops[0], "shared"), c.use(i.ops[1], kind), place(c, i.ops[2], "shared")]
    text = f"reduce_async(S, SITE, L, {{0}}, {{1}}, {{2}}, {op!r}, {kind!r}, {DTYPE[kind]}, {size})"
    c.effect(text, args)
    taint_stored(c, [i.ops[1]], "shared", args[0], size.bit_length() - 1)


@provide
def reduce_async(
    S: Any, site: int, L: Lanes, to: Any, value: Any, barrier: Any, op: str, kind: str, dtype: Any, size: int
) -> None:
    """Whoever waits for these bytes is ordered after the reduction, not after what its thread did before."""
    S.remote_reduced(site, L, to, size, barrier)
    operand = np.broadcast_to(value, (L.n,))
    for view, places, _, _ in resolve(S, site, L, "shared", to, dtype):
        update(view, places, op, kind, operand, None, False, False)
    index = np.broadcast_to(S.sh.index(site, L, barrier, 3), (L.n,))
    complete_bytes(S, site, index, np.full(L.n, size))
