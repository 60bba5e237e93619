"""The protocol between the machine and what looks on.

The machine tells its observers what threads do, an instruction at a time, with an array element a thread: that is an
*event*, a method of `Observer`. A checker is an observer that reports findings. `events.Events` composes a list of
observers: for every event it keeps the methods of those that override it, so an event that no one wants costs one call
that does nothing, and a launch without observers runs code that tells of nothing (`coder.py`).

* Order. An event comes before the machine does what it tells of, so that observers see memory as it was; a load's
  event comes behind it and has the values. Observers hear of an event in the order of the list.
* Answers. A method may return what its docstring says; the last answer that is not None counts. `Unwritten` answers
  which bytes were never written, and the generated code carries the answer from register to register.
* Guards. Before a load or a store, `before_shared` and its like name the threads that are left out: a load gives them
  zeros. Where memory itself cannot carry out an access, `refused` says whether to go on without those threads.
* Findings. `batch.report(Fault(...))` raises, or keeps the finding and returns where findings are collected.
* Services. What several observers need is one object a batch that they ask for by its class, `batch.service(Class)`,
  and which observes for itself:
  - `order.HappensBefore` knows what each thread knows of the others' progress (vector clocks). It hands out epochs
    (thread, clock, instruction) and answers whether an access with an epoch is ordered before what threads do now.
    It observes synchronisation, behind all checkers: these judge by what was known before the event.
  - `history.History` keeps the last accesses to each granule of memory, with epochs (shadow memory), and searches
    them for conflicts. It observes accesses, before all checkers, and hands each unordered pair to those that judge
    it: `Races` reports pairs of threads, `AsyncCopies` pairs with an asynchronous operation.
  What all batches of a launch share (the history of global memory, values that carry releases) is one object a
  launch, `batch.of_launch(Class)`.
* State. A checker has its own state, made in its constructor from the batch alone; it reaches other checkers only
  through services. Tests feed it events without a machine (`tests/emu/checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.checks.granules import split
from tilewright.targets.emu.checks.members import Member, Members
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes, Shape
from tilewright.targets.emu.memory import GlobalMemory, LocalMemory, SharedMemory
from tilewright.targets.emu.ptx import Instruction
from tilewright.targets.emu.tensormap import TensorMap

T = TypeVar("T")


@dataclass
class Batch:
    """Blocks that run together, as observers see them.

    `blocks` has the number in the grid of each slot, `alive` whether each lane runs, `living` how many do. `sites` are
    the instructions by the numbers that events give, `instructions` all of the kernel and its functions. `lockstep`:
    races within a warp count; `all_arrive`: all threads reach each barrier. `frame_end` tells where the local memory of
    the running functions ends. `launch_state` is the same object for all batches of a launch. `member`: what the launch
    is among those of several devices, `members`; None where it runs by itself.
    """

    shape: Shape
    blocks: Array
    report: Callable[[Fault], None]
    sites: Sequence[Instruction] = ()
    instructions: Sequence[Instruction] = ()
    shared: SharedMemory = field(default_factory=lambda: SharedMemory(1, 0))
    local: LocalMemory = field(default_factory=lambda: LocalMemory(0, 0))
    memory: GlobalMemory = field(default_factory=lambda: GlobalMemory([]))
    kernel: str = ""
    lockstep: bool = False
    all_arrive: bool = False
    frame_end: Callable[[], int] = lambda: 0
    launch_state: dict[type, Any] = field(default_factory=dict)
    member: Member | None = None
    members: Members | None = None

    def __post_init__(self) -> None:
        self.slots = len(self.blocks)
        self.first_block, self.first_site = 0, 0
        """What is added to numbers of blocks and instructions in epochs."""
        if self.member is not None:
            self.first_block, self.first_site = self.member.first_block, self.member.first_site
        self.identities = self.blocks + self.first_block if self.first_block else self.blocks
        stride, threads = self.shape.stride, self.shape.threads
        self.alive: Array = np.ones(self.slots * stride, bool)
        if stride > threads:
            self.alive.reshape(-1, stride)[:, threads:] = False
        self.services: dict[type, Any] = {}
        self.running = False
        """Whether all observers have been made."""
        self.living = threads * self.slots
        self._masks: Array | None = None

    def end(self, ids: Array) -> None:
        """Lanes have ended."""
        self.alive[ids] = False
        self.living -= len(ids)
        self._masks = None

    def ended(self, L: Lanes) -> list[int]:
        """The blocks of these lanes, by slot, in which no thread runs any more."""
        stride = self.shape.stride
        return [int(s) for s in np.unique(L.slot) if not self.alive[s * stride : (s + 1) * stride].any()]

    def alive_masks(self) -> Array:
        """The mask of living lanes of each warp."""
        if self._masks is None:
            self._masks = np.packbits(self.alive, bitorder="little").view(np.uint32)
        return self._masks

    def instruction_at(self, mark: int) -> Instruction | None:
        """An instruction by its number in epochs; None where there is none of it."""
        if self.members is not None:
            return self.members.instruction_at(mark)
        return self.sites[mark] if mark < len(self.sites) else None

    def service(self, kind: type[T]) -> T:
        """The batch's one object of a class, made from the batch when it is first asked for.

        Raises:
            ArgumentError: the batch runs already, so that a new service would have missed events.
        """
        if kind not in self.services:
            if self.running:
                hint = "ask for it in the checker's __init__, and keep it"
                raise ArgumentError(f"the service {kind.__name__} is asked for while a kernel runs", hint=hint)
            self.services[kind] = kind(self)  # type: ignore[call-arg]
        found: T = self.services[kind]
        return found

    def of_launch(self, kind: type[T]) -> T:
        """The launch's one object of a class, made from the first batch that asks for it."""
        if kind not in self.launch_state:
            self.launch_state[kind] = kind(self)  # type: ignore[call-arg]
        found: T = self.launch_state[kind]
        return found

    def shared_offset(self, site: int, one: Lanes, address: int) -> int:
        """Where an address of one thread's shared memory lies in the batch's, in bytes."""
        return int(np.atleast_1d(self.shared.index(site, one, np.array([address], np.uint64), 0))[0])

    def lane(self, lane: int) -> Lanes:
        """One lane."""
        return Lanes(self.shape, np.array([lane]), self.blocks)


class Access:
    """A load or store: `size` bytes for each lane of `L`, by the instruction `site`.

    `address` is as the instruction has it in its state space, one for all or an array by lane; `index` counts units of
    `size` bytes from the start of the batch's shared memory, and is the same object where an instruction comes again
    with the same addresses. `value` is what a load has read or a store will write, `count` elements of `dtype` a lane,
    an array by lane or one value for all; None where it is not known. `source` is where `cp.async` reads.
    """

    source: Any = None
    _offsets: Array | None = None
    _cells: tuple[int, Array, int] | None = None

    def __init__(
        self, space: str, site: int, L: Lanes, address: Any, index: Any, shift: int, writes: bool,
        value: Any = None, dtype: Any = None, count: int = 1,
    ) -> None:  # fmt: skip
        # One of these is made for every load and store: plain assignments are the fastest way.
        self.space = space
        self.site = site
        self.L = L
        self.address = address
        self.index = index
        self.shift = shift
        self.writes = writes
        self.value = value
        self.dtype = dtype
        self.count = count

    @property
    def size(self) -> int:
        """Bytes a lane."""
        return 1 << self.shift

    @property
    def offsets(self) -> Array:
        """The first byte of each lane from the start of the batch's shared memory."""
        if self._offsets is None:
            index = self.index << self.shift
            self._offsets = index if index.__class__ is np.ndarray else np.full(self.L.n, index)
        return self._offsets

    def granules(self, granule: int) -> tuple[Array, int]:
        """The granules of the batch's shared memory that lanes touch, and how many each does; see `granules.split`."""
        if self._cells is None or self._cells[0] != granule:
            self._cells = granule, *split(self.offsets, 1 << self.shift, granule)
        return self._cells[1:]

    @property
    def addresses(self) -> Array:
        """The address of each lane."""
        return self.address if self.address.__class__ is np.ndarray else np.full(self.L.n, self.address)


class GroupRead:
    """A warpgroup's wgmma reads shared memory: `elements` are the byte offsets in the batch of its elements, one by
    one, `offsets` those of the distinct pieces of `step` bytes that hold them; `one` is the group's first thread."""

    def __init__(self, site: int, one: Lanes, group: int, elements: Array, size: int) -> None:
        self.site, self.one, self.group = site, one, group
        self.step = max(size, 4)
        self.elements = elements // self.step * self.step
        self.offsets = np.unique(self.elements)


class Observer:
    """Looks on at a batch of blocks. Every method is an event; one that is not overridden costs nothing.

    `site` is the number of an instruction in `batch.sites`; `L` the threads; a `mask` of a warp is one for all or one
    a lane; `slots`, `words` and `index` are numbers of blocks in the batch, and of 8-byte words in its shared memory.
    """

    ignored: frozenset[str] = frozenset()
    """Events that the observer overrides and does not want in this batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    # Guards.

    def before_shared(self, access: Access) -> Array | None:
        """Threads are about to load from shared memory, or to store (`access.value` is not known yet).

        It is asked once an access. Returns the positions in `access.L` of those that are left out, None for none."""

    def before_global(self, access: Access) -> Array | None:
        """The same of global memory."""

    def before_local(self, access: Access) -> Array | None:
        """The same of local memory."""

    def refused(self, fault: Fault, L: Lanes) -> Array | None:
        """Memory cannot carry out an access for the threads of `fault.lanes`.

        Returns the positions in `L` to go on without, None to let the fault end the launch."""

    # Memory.

    def shared_access(self, access: Access) -> Array | None:
        """A load from shared memory has been done, or a store is about to be.

        Returns for a load which parts no one has written (rows of equal parts, a row a lane), None for none."""

    def global_access(self, access: Access) -> None:
        """A load from global memory has been done (that of `cp.async` too), or a store is about to be."""

    def local_access(self, access: Access) -> Array | None:
        """The same of local memory, a thread's own; returns what `shared_access` does."""

    def atomic_begins(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> Array | None:
        """An atomic on `size` bytes a lane is about to be done.

        Returns which of its bytes no one has written (a row a lane), None for none."""

    def atomic_ends(
        self, site: int, L: Lanes, space: str, addr: Any, size: int, unit: int, missing: Array | None, mark: Any,
        replaced: Any, wrote: Any,
    ) -> Array | None:  # fmt: skip
        """The atomic has been done.

        Args:
            unit: the bytes that are combined as one with the old value; 0 if it is replaced, or nothing changes.
            missing: what `atomic_begins` returned.
            mark: whose operands depend on memory never written.
            replaced: whose operands took the place of the old value; nobody's where values are combined.
            wrote: who wrote: all but those whose `cas` failed.

        Returns which bytes of its results depend on memory never written (a row a lane), None for none."""

    def value_used(self, site: int, L: Lanes, mark: Any, what: str) -> None:
        """A value is used as `what` (an address, a branch, a value stored to global memory); `mark`: whose depends on
        memory never written."""

    def unwritten_stored(
        self, site: int, L: Lanes, space: str, addr: Any, place: int, shift: int, mark: Any
    ) -> None:  # fmt: skip
        """What threads just stored `place` bytes behind `addr`, `1 << shift` bytes each, depends on memory never
        written where `mark` is set."""

    def allocated(self, addresses: Array) -> None:
        """Device memory has been allocated at these addresses, which earlier memory may have had."""

    # Threads that meet.

    def barrier_passed(self, cohort: Cohort) -> None:
        """All living threads of the batch passed a barrier of all threads together."""

    def barrier_arrived(self, L: Lanes, number: int) -> None:
        """Threads arrived at a barrier without waiting."""

    def barrier_done(self, number: int, done: Array, cohorts: list[Cohort], counted: Array) -> None:
        """The barriers `number` are complete in the slots marked in `done`, where cohorts wait; `counted`: for a number
        of threads, not for all."""

    def warp_synced(self, L: Lanes, mask: Any, cohort: Cohort) -> None:
        """`bar.warp.sync`: the threads of each mask have met."""

    def warp_met(self, L: Lanes, mask: Any) -> None:
        """A vote, shuffle, match, reduction, election, wait for products: threads in lockstep have met there."""

    def threads_ended(self, L: Lanes, cohort: Cohort) -> None:
        """Threads have exited; `batch.alive` says so already."""

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        """Threads arrive at their cluster's barrier."""

    def cluster_completed(self, clusters: Array) -> None:
        """The phase of these clusters' barriers has ended."""

    def cluster_waited(self, L: Lanes) -> None:
        """Threads passed their cluster's barrier."""

    def fence(self, L: Lanes, scope: str, kind: str) -> None:
        """A fence of scope cta, cluster, gpu or sys; see `rules.memory.fence_kind`."""

    # mbarriers.

    def mbarrier_made(self, site: int, L: Lanes, index: Array) -> None:
        """mbarriers are about to be initialised or invalidated."""

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        """Threads are about to arrive at mbarriers."""

    def mbarrier_completed(self, index: Array) -> None:
        """A phase of mbarriers has ended."""

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        """Threads (where `done`) have seen that a phase ended."""

    # Asynchronous copies.

    def copy_written(self, access: Access) -> None:
        """`cp.async` is about to write shared memory."""

    def copies_committed(self, L: Lanes, bulk: bool) -> None:
        """Threads commit a group of copies, or of bulk copies."""

    def copies_awaited(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        """Threads have waited until at most `count` groups are under way; `read`: that still read their source."""

    def copies_arriving(self, L: Lanes) -> None:
        """An mbarrier arrival follows the threads' copies."""

    def remote_stored(self, access: Access, index: Array) -> None:
        """`st.async` writes shared memory, as the mbarriers `index` count."""

    def remote_reduced(self, access: Access, index: Array) -> None:
        """`red.async` updates shared memory, as the mbarriers `index` count."""

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signal: int | None
    ) -> None:
        """A bulk copy or reduction of `count` > 0 bytes is issued; `signal` is the word of the mbarrier that it tells,
        None for one of a group. Addresses are those of their state spaces."""

    def tensor_loaded(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], to: int, order: Array, signal: int
    ) -> None:
        """A tensor copy writes shared memory: chunk k of the box, 16 bytes, goes to chunk `order[k]` behind `to`."""

    def tensor_stored(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], source: int, order: Array
    ) -> None:  # fmt: skip
        """A tensor store, or reduction, reads shared memory: chunk k of the box from chunk `order[k]` behind
        `source`."""

    def tensor_read(self, site: int, one: Lanes, made: TensorMap, start: list[int], signals: list[int]) -> None:
        """A tensor load reads a box of global memory, for the mbarriers `signals` of its targets."""

    def tensor_written(self, site: int, one: Lanes, made: TensorMap, start: list[int]) -> None:
        """A tensor store, or reduction, writes a box of global memory."""

    def map_read(self, site: int, one: Lanes, address: int) -> None:
        """A thread's copy reads a tensor map that is no parameter."""

    def map_acquired(self, site: int, L: Lanes, addresses: Array) -> None:
        """Threads pass a proxy fence that acquires tensor maps at these addresses."""

    # Matrix products of warpgroups. Registers go by number; a group is a lane's number over 128.

    def wgmma_read(self, reads: list[GroupRead]) -> Array | None:
        """Warpgroups read matrices.

        Returns which elements no one has written (a row a warpgroup), None for none."""

    def wgmma_issued(self, site: int, L: Lanes, written: tuple[int, ...], read: tuple[int, ...]) -> None:
        """wgmma writes registers some time from now on, and reads others (its matrix A)."""

    def wgmma_fenced(self, site: int, L: Lanes) -> None:
        """`wgmma.fence`."""

    def wgmma_committed(self, site: int, L: Lanes) -> None:
        """`wgmma.commit_group`."""

    def wgmma_awaited(self, site: int, L: Lanes, count: int) -> None:
        """`wgmma.wait_group`."""

    def wgmma_used(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        """Registers that wgmma writes are read."""

    def wgmma_changed(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        """Registers from which wgmma takes its matrix A are written."""

    def wgmma_moved(self, L: Lanes, to: int, source: int) -> None:
        """A register that wgmma writes is copied, or overwritten by a copy."""

    def wgmma_unfenced(self, L: Lanes) -> None:
        """A register that wgmma writes is written by another instruction."""


def warpgroups(L: Lanes) -> list[int]:
    """The warpgroups of some lanes, by their first lane's number over 128 (blocks are padded to warps)."""
    return [int(x) for x in np.unique(L.ids // 128)]


EVENTS = tuple(name for name, value in vars(Observer).items() if callable(value) and name[0] != "_")
