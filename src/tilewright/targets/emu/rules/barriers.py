"""`mbarrier` (PTX ISA 9.7.13.15): barriers that are 64-bit objects in shared memory.

Our format of the object: bits 0-19 arrivals still pending, 20-39 arrivals expected a phase, 40-61 transactions
pending (biased), bit 62 set once initialised, bit 63 the parity of the current phase.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import SHARED_WINDOW
from tilewright.targets.emu.ptx import Instruction, Mem, Operand, Reg, Sink
from tilewright.targets.emu.rules.memory import address, state_space
from tilewright.targets.emu.runtime import provide

COUNT = np.uint64((1 << 20) - 1)
TX_BIAS = 1 << 20
TX_MASK = np.uint64((1 << 22) - 1)
READY = np.uint64(1 << 62)
PHASE = np.uint64(1 << 63)
U64 = np.dtype(np.uint64)


@provide
def shared_address(addr: Any) -> Any:
    """A shared or generic address as one of shared memory."""
    if addr.dtype.itemsize == 4:
        return addr
    return np.where(addr >= np.uint64(SHARED_WINDOW), addr - np.uint64(SHARED_WINDOW), addr)[()]


def at(c: BlockCoder, mem: Operand, i: Instruction) -> str:
    """The shared address of an mbarrier operand."""
    return c.let(f"shared_address({address(c, mem, state_space(i))})")


@rule("mbarrier.init")
def init(c: BlockCoder, i: Instruction) -> None:
    c.effect("mbarrier_init(S, SITE, L, {0}, {1})", [at(c, i.ops[0], i), c.use(i.ops[1], "u32")])


@rule("mbarrier.inval")
def inval(c: BlockCoder, i: Instruction) -> None:
    c.effect("mbarrier_inval(S, SITE, L, {0})", [at(c, i.ops[0], i)])


@rule("mbarrier.expect_tx", "mbarrier.complete_tx")
def transactions(c: BlockCoder, i: Instruction) -> None:
    sign = "" if "expect_tx" in i.mods else "-"
    count = c.use(i.ops[1], "u32")
    c.effect(f"mbarrier_arrive(S, SITE, L, {{0}}, 0, {sign}{{1}}.astype(i8))", [at(c, i.ops[0], i), count])


@rule("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(c: BlockCoder, i: Instruction) -> None:
    operands = list(i.ops)
    state: Operand = Sink() if isinstance(operands[0], Mem) else operands.pop(0)
    place = at(c, operands.pop(0), i)
    drop = i.mods[0] == "arrive_drop"
    if "expect_tx" in i.mods:
        args = [place, c.use(operands[0], "u32")]
        text = f"mbarrier_arrive(S, SITE, L, {{0}}, 1, {{1}}.astype(i8), drop={drop})"
    else:
        args = [place, c.use(operands[0], "u32") if operands else c.constant(1, "u4")]
        text = f"mbarrier_arrive(S, SITE, L, {{0}}, {{1}}, 0, drop={drop})"
    words = {"relaxed": "relaxed", "noComplete": "alone"}
    flags = "".join(f", {flag}=True" for word, flag in words.items() if word in i.mods)
    c.effect(f"{text[:-1]}{flags})", args, [(state, "b64")] if isinstance(state, Reg) else [])


@rule("mbarrier.test_wait", "mbarrier.try_wait")
def wait(c: BlockCoder, i: Instruction) -> None:
    to, mem, state = i.ops[:3]
    place = at(c, mem, i)
    if "parity" in i.mods:
        phase = c.let(f"({c.use(state, 'u32')} & 1).astype(u8)")
    else:
        phase = c.let(f"{c.use(state, 'b64')} >> 63")
    relaxed = "relaxed" in i.mods
    c.effect(f"mbarrier_test(S, SITE, L, {{0}}, {{1}}, {relaxed})", [place, phase], [(to, "pred")])


@rule("mbarrier.pending_count")
def pending(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], "u32", f"({c.use(i.ops[1], 'b64')} & {c.constant(int(COUNT), 'u8')}).astype(u4)")


@provide
def mbarrier_init(S: Any, site: int, L: Lanes, addr: Any, count: Any) -> None:
    wanted = np.atleast_1d(count)
    if ((wanted == 0) | (wanted > COUNT)).any():
        raise Fault(
            "mbarrier", "mbarrier.init with a count outside 1 to 1048575", site, values={"count": int(wanted[0])}
        )
    count = count.astype(np.uint64)
    word = count | (count << np.uint64(20)) | np.uint64(TX_BIAS << 40) | READY
    S.mbarrier_made(site, L, addr)
    S.sh.store(site, L, addr, word, U64, 3)


@provide
def mbarrier_inval(S: Any, site: int, L: Lanes, addr: Any) -> None:
    S.mbarrier_made(site, L, addr)
    S.sh.store(site, L, addr, np.uint64(0), U64, 3)


def places(S: Any, site: int, L: Lanes, addr: Any) -> tuple[Array, Array]:
    """The view of 64-bit words, and the index of each lane's barrier."""
    index = S.sh.index(site, L, addr, 3)
    return S.sh.view(U64, 1), np.broadcast_to(index, (L.n,))


def require_ready(words: Array, site: int) -> None:
    bad = (words & READY) == 0
    if bad.any():
        raise Fault("mbarrier", "Use of an mbarrier that was not initialised", site, np.flatnonzero(bad),
                    hint="call mbarrier.init, then synchronise the threads, before any other use")  # fmt: skip


@provide
def mbarrier_arrive(
    S: Any, site: int, L: Lanes, addr: Any, count: Any, tx: Any, drop: bool = False, relaxed: bool = False,
    alone: bool = False,
) -> Array:  # fmt: skip
    """Expect `tx` more bytes, then count arrivals; the state before, by lane. `alone`: they must not end the phase."""
    view, index = places(S, site, L, addr)
    before = view[index]
    require_ready(before, site)
    counts = np.broadcast_to(np.asarray(count, np.int64), (L.n,))
    transfer = np.broadcast_to(np.asarray(tx, np.int64), (L.n,))
    S.on.mbarrier_arriving(site, L, index, counts, relaxed)
    distinct, group = np.unique(index, return_inverse=True)
    arrivals = np.bincount(group, weights=counts).astype(np.int64)
    words = view[distinct]
    if alone and (arrivals >= (words & COUNT).astype(np.int64)).any():
        raise Fault("mbarrier", "An arrival with .noComplete ends the phase of its mbarrier", site,
                    hint="leave .noComplete out, or expect more arrivals")  # fmt: skip
    if (arrivals <= (words & COUNT).astype(np.int64)).all():
        bytes_ = np.bincount(group, weights=transfer).astype(np.int64)
        dropped = arrivals if drop else 0
        view[distinct] = advanced(words, arrivals, bytes_, dropped, site, S, distinct)
    else:
        for lane in range(L.n):
            one = index[lane : lane + 1]
            before[lane] = view[one[0]]
            if counts[lane] > int(before[lane] & COUNT):
                raise Fault("mbarrier", "More arrivals at an mbarrier than its phase expects", site, np.array([lane]),
                            {"arriving": int(counts[lane]), "pending": int(before[lane] & COUNT)})  # fmt: skip
            dropped = counts[lane : lane + 1] if drop else 0
            view[one] = advanced(view[one], counts[lane : lane + 1], transfer[lane : lane + 1], dropped, site, S, one)
    S.progress()
    return before


def advanced(words: Array, arrivals: Array, tx: Array, dropped: Any, site: int, S: Any, index: Array) -> Array:
    """The words after arrivals and transactions; a phase ends when neither is pending."""
    left = (words & COUNT).astype(np.int64) - arrivals
    expected = ((words >> np.uint64(20)) & COUNT).astype(np.int64) - dropped
    bytes_ = ((words >> np.uint64(40)) & TX_MASK).astype(np.int64) - TX_BIAS + tx
    if (np.abs(bytes_) >= TX_BIAS).any():
        raise Fault(
            "mbarrier", "The transaction count of an mbarrier overflows", site, values={"bytes": int(bytes_[0])}
        )
    phase = words & PHASE
    done = (left == 0) & (bytes_ == 0)
    if done.any():
        S.on.mbarrier_completed(index[done])
        left = np.where(done, expected, left)
        phase = np.where(done, phase ^ PHASE, phase)
    packed = left.astype(np.uint64) | (expected.astype(np.uint64) << np.uint64(20))
    result: Array = packed | ((bytes_ + TX_BIAS).astype(np.uint64) << np.uint64(40)) | READY | phase
    return result


@provide
def mbarrier_test(S: Any, site: int, L: Lanes, addr: Any, phase: Any, relaxed: bool) -> Array:
    """Whether the phase of the given parity has ended; a failed test is a poll."""
    view, index = places(S, site, L, addr)
    S.in_flight.tested(index)
    words = view[index]
    require_ready(words, site)
    done: Array = (words >> np.uint64(63)) != phase
    if not done.all():
        S.poll()
        S.current.mbarrier = S.sh, int(index[np.argmin(done)])
    if done.any():
        S.on.mbarrier_waited(site, L, index, done, relaxed)
    return done


def pending_text(shared: Any, word: int) -> str:
    """What the phase of an mbarrier waits for, in words."""
    value = int(shared.view(U64, 1)[word])
    left, expected = value & int(COUNT), value >> 20 & int(COUNT)
    bytes_ = (value >> 40 & int(TX_MASK)) - TX_BIAS
    more = f" and {bytes_} bytes" if bytes_ > 0 else f", {-bytes_} bytes more than expected" if bytes_ else ""
    return f"mbarrier {word * 8 % shared.stride:#x} waits for {left} of {expected} arrivals{more}"


def complete_bytes(S: Any, site: int, index: Array, nbytes: Array) -> None:
    """Bytes that a copy has delivered: at barriers given by index, which may repeat."""
    view = S.sh.view(U64, 1)
    distinct, group = np.unique(index, return_inverse=True)
    words = view[distinct]
    require_ready(words, site)
    total = np.bincount(group, weights=nbytes).astype(np.int64)
    view[distinct] = advanced(words, np.zeros(len(distinct), np.int64), -total, 0, site, S, distinct)
    S.progress()
