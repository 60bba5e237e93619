"""The machine: runs the blocks of a batch, cohort by cohort, and batches in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.base.lazy import cached_property
from tilewright.targets.emu.access import Memories
from tilewright.targets.emu.checks.events import compose
from tilewright.targets.emu.checks.observer import Batch
from tilewright.targets.emu.code import BRX, CALL, COND, EXIT, JUMP, Code, CodeBlock
from tilewright.targets.emu.cohort import Cohort, Frame, joined, part
from tilewright.targets.emu.faults import Fault, located, threads_of
from tilewright.targets.emu.in_flight import InFlight
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import LocalMemory, SharedMemory
from tilewright.targets.emu.register_pool import RegisterPool, registers_at_entry
from tilewright.targets.emu.rules.cluster import ClusterBarriers
from tilewright.targets.emu.sync import Barriers

STEPS_A_TURN = 4096
MAX_DEPTH = 256


class Machine(Memories):
    """A batch of blocks that run together. The generated code gets it as `S`."""

    def __init__(self, launch: Any, blocks: Array) -> None:
        self.launch = launch
        self.shape = launch.shape
        self.slots = len(blocks)
        self.blocks = blocks
        self.g = launch.memory
        checked = bool(launch.options.checkers)
        self.sh = SharedMemory(self.slots, launch.shared_size, checked)
        self.lo = LocalMemory(self.slots * self.shape.stride, launch.code.frame, checked)
        self.batch = self._batch()
        self.alive = self.batch.alive
        self.living = self.batch.living
        self.barriers = Barriers(self, self.slots)
        self.clusters = ClusterBarriers(self, self.slots, self.shape.cluster_blocks)
        self.parked: dict[tuple[int, ...], Cohort] = {}
        self.ready: dict[tuple[int, ...], list[Cohort]] = {}
        self.front: tuple[int, tuple[int, ...]] | None = None
        self.polls = 0
        self.resting = False
        """Whether all cohorts of this batch only wait: it is the turn of other batches."""
        self.current: Cohort | None = None
        ids = np.arange(self.slots * self.shape.stride, dtype=np.int64)
        if self.shape.stride > self.shape.threads:
            ids = ids[ids % self.shape.stride < self.shape.threads]
        self.in_flight = InFlight(self, launch.options.seed % 2 == 1)
        self.block_alive = np.full(self.slots, self.shape.threads, np.int64)
        self.sh.block_alive = self.block_alive
        self.constants = launch.constants
        self.special: dict[str, Any] = {}
        self.on = compose(self.batch, launch.observers)
        cohorts = [
            Cohort(part, launch.code, list(launch.code.zeros)) for part in launch.split(Lanes(self.shape, ids, blocks))
        ]
        for cohort in cohorts if launch.options.thread_clock else ():
            cohort.spent = np.zeros(cohort.L.n, np.uint64)
        delays = launch.delays(len(cohorts))
        self.late = sorted(zip(delays, range(len(cohorts)), cohorts, strict=True), reverse=True)
        """The cohorts that have not started, the next one last: the turn in which they do, a number, the cohort."""
        while self.late and not self.late[-1][0]:
            self._start()

    def _batch(self) -> Batch:
        """This batch as observers see it."""
        launch, options = self.launch, self.launch.options
        return Batch(
            self.shape, self.blocks, self.report, launch.program.sites, launch.instructions, self.sh, self.lo, self.g,
            launch.kernel, options.lockstep, options.all_arrive, self._frame_end, launch.observed,
            launch.member, launch.members,
        )  # fmt: skip

    def _frame_end(self) -> int:
        """Where the local memory of the functions that run ends."""
        assert self.current is not None
        return int(self.current.sp + self.current.code.frame)

    @cached_property
    def register_pool(self) -> RegisterPool:
        """The registers that warpgroups hand to each other."""
        first = registers_at_entry(self.shape, self.launch.program.kernel.directives)
        return RegisterPool(self.slots, self.shape, first)

    # What generated code calls.

    def param(self, offset: int, dtype: Any) -> Any:
        """A kernel parameter, uniform."""
        key = (offset, dtype)
        found = self.launch.param_cache.get(key)
        if found is None:
            size = np.dtype(dtype).itemsize
            found = np.frombuffer(self.launch.params[offset : offset + size].tobytes(), dtype)[0]
            self.launch.param_cache[key] = found
        return found

    def clock(self, name: str, cohort: Cohort, left: int) -> Any:
        """Time that passes by the blocks of code run, so that runs are repeatable; a clock tick a step.

        With `Options.thread_clock`, clock64 counts the instructions of each thread; of the block, `left` are not run.
        """
        self.polls += 1
        self.launch.ticks += 32
        if cohort.spent is not None and name == "clock64":
            return cohort.spent - np.uint64(left)
        ticks = self.launch.ticks
        if name in ("clock64", "globaltimer"):
            return np.uint64(ticks)
        return np.uint32((ticks >> 32 if name.endswith("_hi") else ticks) & 0xFFFFFFFF)

    def poll(self) -> None:
        """Called by instructions that a waiting thread repeats."""
        self.polls += 1

    def progress(self) -> None:
        """Called where something happened that another thread may wait for."""
        self.launch.idle = 0

    # Queues.

    def add(self, cohort: Cohort) -> None:
        """Queue a cohort; those at one place are joined when it is their turn."""
        key = cohort.key
        group = self.ready.get(key)
        if group is None:
            self.ready[key] = [cohort]
        else:
            group.append(cohort)
        place = (cohort.turn, key)
        if self.front is None or place < self.front:
            self.front = place

    def again(self, cohort: Cohort) -> bool:
        self.add(cohort)
        return False

    def split_wait(self, cohort: Cohort, absent: Array) -> None:
        """Park the lanes marked in `absent`; let the others through."""
        if absent.all():
            self.parked[cohort.key] = cohort
            return
        go = part(cohort, np.flatnonzero(~absent), cohort.pc)
        go.passed = True
        wait = part(cohort, np.flatnonzero(absent), cohort.pc)
        self.parked[wait.key] = wait
        self.add(go)

    def look_again(self, op: str) -> None:
        """What threads wait for that are parked at an instruction may have come."""
        for key, cohort in list(self.parked.items()):
            site = cohort.code.blocks[cohort.pc].gate_site
            if site is not None and site.op == op:
                del self.parked[key]
                self.add(cohort)

    def park_part(self, cohort: Cohort, waits: Array, parked: list[Cohort]) -> None:
        """Park the lanes marked in `waits` in a list; queue the others again."""
        parked.append(part(cohort, np.flatnonzero(waits), cohort.pc))
        self.add(part(cohort, np.flatnonzero(~waits), cohort.pc))

    def alive_masks(self) -> Array:
        """The mask of living lanes of each warp."""
        return self.batch.alive_masks()

    def _next(self) -> Cohort:
        key = min(self.ready, key=lambda k: (self.ready[k][0].turn, k))
        group = self.ready.pop(key)
        # Those that a barrier has let through do not join those that stand in front of it for the next round.
        passed = [c for c in group if c.passed]
        if passed and len(passed) < len(group):
            self.ready[key] = [c for c in group if not c.passed]
            group = passed
        cohort = group[0]
        # Two by two: each register is copied log(n) times at most, however many parts meet.
        while len(group) > 1:
            group = [joined(*group[i : i + 2]) if i + 1 < len(group) else group[i] for i in range(0, len(group), 2)]
            cohort = group[0]
        self.front = min(((v[0].turn, k) for k, v in self.ready.items()), default=None)
        return cohort

    # Running.

    def run(self, budget: int) -> bool:
        """Run up to about `budget` blocks; True when every thread has exited."""
        self.polls = 0
        self.resting = False
        hits = self.launch.hits
        while self.living:
            if self.late and (self.front is None or self.front[0] >= self.late[-1][0]):
                self._start()
            if not self.ready:
                self._unstick()
            used = self._go(self._next(), budget)
            hits.steps += used
            if hits.steps >= hits.due:
                self.launch.monitor.look(self, 0)
            budget -= used
            if budget <= 0 or self.resting:
                return False
        return True

    def _start(self) -> None:
        """The next cohort that starts late begins."""
        turn, _, cohort = self.late.pop()
        cohort.turn = turn
        self.launch.idle = 0
        self.add(cohort)

    def _unstick(self) -> None:
        """Nobody can run: look again at those that wait for threads which have exited since."""
        parked, self.parked = self.parked, {}
        before = {key: cohort.L.n for key, cohort in parked.items()}
        for cohort in parked.values():
            block = cohort.code.blocks[cohort.pc]
            if self._gate(block, cohort):
                cohort.passed = True
                self.add(cohort)
        self.barriers.release_all()
        # Parts that were joined are fewer cohorts, or others, than before: that was progress.
        if not self.ready and before == {key: cohort.L.n for key, cohort in self.parked.items()}:
            raise self.launch.deadlock(self)

    def _gate(self, block: CodeBlock, cohort: Cohort) -> bool:
        assert block.gate is not None
        try:
            return block.gate(cohort, cohort.R, self)
        except Fault as fault:
            raise self.error(fault, cohort, block.gate_site) from None

    def _go(self, cohort: Cohort, budget: int) -> int:
        """Run a cohort until it waits, splits, ends, or it is another's turn. Returns the blocks run."""
        steps = 0
        hits = self.launch.hits
        polls, ticks = self.polls, self.launch.ticks
        # Threads that were found to go round and round get a block at a time, until something has changed for them.
        most = min(STEPS_A_TURN, budget) if cohort.spinning is None else 1
        mark = min(most, max(hits.due - hits.steps, 1))
        self.current = cohort
        debugger = self.launch.options.debugger
        while True:
            block = cohort.code.blocks[cohort.pc]
            if block.gate is not None and not cohort.passed and not self._gate(block, cohort):
                return steps + 1
            cohort.passed = False
            steps += 1
            hits[block.serial] += cohort.L.n
            if cohort.spent is not None:
                cohort.spent = cohort.spent + np.uint64(block.instructions)
            try:
                run = block.run if debugger is None else debugger.function(self, cohort, block)
                out = run(cohort, cohort.R, self)
            except Fault as fault:
                raise self.error(
                    fault, cohort, self.launch.program.sites[fault.site] if fault.site >= 0 else block.first
                ) from None
            kind = block.kind
            if kind == JUMP:
                cohort.pc = block.targets[0]
            elif kind == COND:
                if out.__class__ is np.ndarray:
                    taken = np.count_nonzero(out)
                    if taken == cohort.L.n:
                        cohort.pc = block.targets[0]
                    elif taken == 0:
                        cohort.pc = block.targets[1]
                    else:
                        self.add(part(cohort, np.flatnonzero(out), block.targets[0]))
                        self.add(part(cohort, np.flatnonzero(~out), block.targets[1]))
                        return steps
                else:
                    cohort.pc = block.targets[0] if out else block.targets[1]
            elif not self._leave(cohort, block, out):
                return steps
            # A look at the state costs as much as a block, so it comes after ever more polls (`patience`).
            if self.polls - polls >= cohort.patience:
                polls = self.polls
                if self.launch.ticks == ticks and cohort.recurs():
                    cohort.poll = block.poll
                    self._wait(cohort)
                else:  # it polls and does something beside, such as counting or reading a clock: others get a turn
                    cohort.turn += 1
                    self.add(cohort)
                    self.launch.idle = 0
                self.resting = not self._others(cohort)
                return steps
            if steps >= mark:
                if steps >= most:
                    self._pause(cohort)
                    return steps
                mark = min(most, steps + self.launch.monitor.look(self, steps))
            # Whoever is behind in the order of blocks goes first: so the parts of a split meet again (`cfg`).
            if self.front is not None and (cohort.turn, cohort.key) >= self.front:
                self.add(cohort)
                return steps

    def _pause(self, cohort: Cohort) -> None:
        """Others get their turn; threads that go round and round while nothing changes do no more than wait."""
        if cohort.spins(self.launch.changes()):
            self._wait(cohort)
            self.resting = not self._others(cohort)
            return
        cohort.turn += 1
        self.launch.idle = 0
        self.add(cohort)

    def _others(self, cohort: Cohort) -> bool:
        """Whether others of this batch have had fewer turns."""
        return any(group[0].turn < cohort.turn for group in self.ready.values())

    def _wait(self, cohort: Cohort) -> None:
        """Put a cohort that only waits behind all others."""
        cohort.turn += 1
        self.add(cohort)
        self.launch.waited(self)

    def _leave(self, cohort: Cohort, block: CodeBlock, out: Any) -> bool:
        """Calls, returns, exits and table branches; True where the cohort itself goes on."""
        kind = block.kind
        if kind == BRX:
            return self._table_branch(cohort, block, out)
        if kind == CALL:
            return self._call(cohort, block, out)
        if kind == EXIT or not cohort.frames:
            self._exit(cohort)
            return False
        self._return(cohort)
        return True

    def _exit(self, cohort: Cohort) -> None:
        ids = cohort.L.ids
        self.batch.end(ids)
        self.living = self.batch.living
        self.block_alive -= np.bincount(cohort.L.slot, minlength=self.slots)
        self.launch.idle = 0
        try:
            self.in_flight.ended(ids)
            self.on.threads_ended(cohort.L, cohort)
        except Fault as fault:
            raise self.error(fault, cohort, cohort.code.blocks[cohort.pc].first) from None
        if self.barriers.counts:
            self.barriers.release_all()
        if self.clusters.count.any():
            self.clusters.settle()
        if self.parked:  # a warp's instruction waits for the living only: look again
            parked, self.parked = self.parked, {}
            for waiting in parked.values():
                self.add(waiting)

    def _table_branch(self, cohort: Cohort, block: CodeBlock, index: Any) -> bool:
        values = np.atleast_1d(index)
        if int(values.max()) >= len(block.targets):
            bad = np.flatnonzero(values >= len(block.targets))
            fault = Fault("branch", "brx.idx index past the end of its table", lanes=bad if len(values) > 1 else None,
                          values={"index": int(values[bad[0]]), "table": f"{len(block.targets)} labels"})  # fmt: skip
            raise self.error(fault, cohort, block.call.instruction if block.call else block.first)
        distinct = np.unique(values)
        if len(distinct) == 1:
            cohort.pc = block.targets[int(distinct[0])]
            return True
        for value in distinct:
            self.add(part(cohort, np.flatnonzero(values == value), block.targets[int(value)]))
        return False

    def _call(self, cohort: Cohort, block: CodeBlock, address: Any) -> bool:
        call = block.call
        assert call is not None
        if call.callee is not None:
            self._enter(cohort, block, self.launch.program.function(call.callee, call.instruction))
            return True
        values = np.atleast_1d(address)
        distinct = np.unique(values)
        if len(distinct) > 1:
            for value in distinct:
                piece = part(cohort, np.flatnonzero(values == value), cohort.pc, everything=True)
                self._enter_address(piece, block, int(value))
                self.add(piece)
            return False
        self._enter_address(cohort, block, int(distinct[0]))
        return True

    def _enter_address(self, cohort: Cohort, block: CodeBlock, address: int) -> None:
        assert block.call is not None
        code = self.launch.program.function_at(address)
        if code is None:
            fault = Fault("call", "Call of an address that is no function", values={"address": f"{address:#x}"})
            raise self.error(fault, cohort, block.call.instruction)
        self._enter(cohort, block, code)

    def _enter(self, cohort: Cohort, block: CodeBlock, code: Code) -> None:
        call = block.call
        assert call is not None
        if len(cohort.frames) >= MAX_DEPTH:
            raise located(f"Calls are nested more than {MAX_DEPTH} deep", call.instruction, self.launch.kernel,
                          kind="limit")  # fmt: skip
        live = cohort.code.blocks[block.targets[0]].live
        saved: list[Any] = [None] * len(cohort.R)
        for number in live:
            saved[number] = cohort.R[number]
        frame = Frame(cohort.code, block.targets[0], saved, cohort.sp, call)
        base = cohort.sp + -(-cohort.code.frame // 16) * 16
        self.lo.reserve(base + code.frame)
        self.lo.forget(cohort.L, base, code.frame)
        registers = list(code.zeros)
        self.launch.program.pass_arguments(self, cohort, call, code, base, registers)
        cohort.prefix = (*cohort.key, code.number)
        cohort.frames = (*cohort.frames, frame)
        cohort.code, cohort.pc, cohort.sp, cohort.R = code, 0, base, registers

    def _return(self, cohort: Cohort) -> None:
        frame = cohort.frames[-1]
        callee, callee_sp, callee_registers = cohort.code, cohort.sp, cohort.R
        cohort.frames = cohort.frames[:-1]
        cohort.prefix = cohort.prefix[:-2]
        cohort.code, cohort.pc, cohort.sp, cohort.R = frame.code, frame.pc, frame.sp, list(frame.registers)
        self.launch.program.pass_results(self, cohort, frame.call, callee, callee_sp, callee_registers)

    # Findings and errors.

    def report(self, fault: Fault) -> None:
        """Raise a finding, or keep it and go on."""
        assert self.current is not None
        site = self.launch.program.sites[fault.site] if fault.site >= 0 else fault.instruction
        if self.launch.options.collects:
            self.launch.collect(fault, self.error(fault, self.current, site))
        elif fault.instruction is not None:
            raise self.error(fault, self.current, fault.instruction)
        else:
            raise fault

    def error(self, fault: Fault, cohort: Cohort, instruction: Any) -> EmulationError:
        """A fault with kernel, place and threads."""
        lanes, among = fault.lanes, fault.among or cohort.L
        if lanes is not None and len(lanes) and int(lanes[-1]) >= among.n:
            lanes = None
        values = {**self.launch.place(), **threads_of(among, lanes), **fault.values}
        return located(fault.message, instruction, self.launch.kernel, values, fault.hint, fault.kind)

    def waiting(self) -> list[Cohort]:
        """All threads that have not ended."""
        waiting = [*self.parked.values(), *(c for group in self.barriers.parked.values() for c in group)]
        waiting += self.clusters.parked
        return waiting + [c for group in self.ready.values() for c in group]
