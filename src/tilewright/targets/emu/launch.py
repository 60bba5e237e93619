"""Launches: arguments, memory, and the batches of blocks that run in turn."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, EmulationError, TilewrightError
from tilewright.hw import launches
from tilewright.targets.emu.checks import Observer
from tilewright.targets.emu.checks.members import Member, Members
from tilewright.targets.emu.code import Code, lay_out
from tilewright.targets.emu.counters import Traffic, TrafficCounter, TrafficTable
from tilewright.targets.emu.deadlock import Waiting, deadlock
from tilewright.targets.emu.faults import Fault, located
from tilewright.targets.emu.image import Image, Program, aligned_bytes
from tilewright.targets.emu.lanes import Array, Lanes, Shape, launch_constants
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.memory import Buffer, GlobalMemory, check_buffers
from tilewright.targets.emu.monitor import Monitor
from tilewright.targets.emu.options import Options
from tilewright.targets.emu.progress import Bar
from tilewright.targets.emu.ptx import Instruction
from tilewright.targets.emu.recording import add_findings
from tilewright.targets.emu.report import LineTraffic, Report

RESIDENT_LANES = 132 * 2048
WINDOW_LANES = 1 << 16
SLICE = 20000
IDLE_TURNS = 100
MOST_DELAY = 6
MAX_SHARED = 227 * 1024
HINTS = {"grid": launches.grid_hint, "block": launches.block_hint, "cluster": launches.cluster_hint}


class Launch:
    """One launch in progress; shared by its batches. `member` of `members`: see `checks.members`."""

    member: Member | None = None
    members: Members | None = None
    slice = SLICE

    def __init__(
        self, image: Image, shape: Shape, params: bytes, smem: int, buffers: list[Buffer], options: Options
    ) -> None:
        self.program = image
        self.code: Code = image.code
        self.kernel = image.kernel.name
        self.shape = shape
        self.options = options
        self.params = aligned_bytes(max(len(params), 1), 128)
        self.params[: len(params)] = np.frombuffer(params, np.uint8)
        self.param_address = int(self.params.ctypes.data)
        self.param_cache: dict[Any, Any] = {}
        self.dynamic_shared = smem
        self.shared_size = image.shared.static + smem
        self.workspace = aligned_bytes(64, 64)
        own = [
            Buffer(self.param_address, len(self.params), False, "parameters"),
            Buffer(int(self.workspace.ctypes.data), 64, True, "grid workspace"),
        ]
        self.memory = self.make_memory([*buffers, *image.program.buffers(), *own])
        self.hits = _Hits()
        self.constants = launch_constants(shape)
        # Cooperative groups find the grid's barrier, behind a word of size, through these registers.
        workspace = int(self.workspace.ctypes.data)
        self.constants["envreg1"], self.constants["envreg2"] = (np.uint32(workspace >> k & 0xFFFFFFFF) for k in (32, 0))
        self.idle = 0
        self.live: deque[Machine] = deque()
        self.finished = 0
        self.bar = Bar(self.kernel, shape.blocks, options.progress if options.debugger is None else False)
        self.timeout: float | None = settings.get("timeout") if options.timeout is None else options.timeout
        self.monitor = Monitor(self, self.bar, self.timeout)
        self.running: Machine | None = None
        self.ticks = 0
        self.time = 0
        self.text: list[str] = []
        self.heap: dict[int, Array] = {}
        self.random = np.random.default_rng(options.seed)
        self.observers = (*options.checkers, *((TrafficCounter,) if options.counters else ()))
        """The classes of the observers of each batch."""
        self.observed: dict[type, Any] = {}
        """What the observers of all batches share, by its class."""
        self.instructions = [i for f in image.functions() for i in f.body] if self.observers else []
        self.errors: list[EmulationError] = []
        self.races: list[EmulationError] = []
        self._seen: set[tuple[str, int]] = set()
        self._waiting: deque[Array] = deque()
        self._resident = 0

    def make_memory(self, buffers: list[Buffer]) -> GlobalMemory:
        """Global memory of these buffers."""
        return GlobalMemory(buffers, bool(self.options.checkers))

    def collect(self, fault: Fault, error: EmulationError) -> None:
        """Keep a finding; each instruction is reported once for each kind."""
        key = (fault.kind, fault.site)
        if key not in self._seen:
            self._seen.add(key)
            (self.races if fault.kind == "race" else self.errors).append(error)

    # Called by the machine.

    def changes(self) -> int:
        """A number that grows whenever anything happens that can end a loop of other threads."""
        blocks = (block for code in self.program.codes.values() for block in code.blocks)
        return sum(self.hits[block.serial] for block in blocks if block.changes)

    def split(self, lanes: Lanes) -> list[Lanes]:
        """The cohorts that a batch starts with: one; with a seed, warps dealt to several."""
        if not self.options.seed or lanes.n <= 32:
            return [lanes]
        deal = self.random.integers(0, 4, len(lanes.warp.max(keepdims=True)) and int(lanes.warp[-1]) + 1)[lanes.warp]
        return [lanes.subset(np.flatnonzero(deal == k)) for k in range(4) if (deal == k).any()]

    def delays(self, count: int) -> list[int]:
        """After how many turns of those that wait the cohorts of a batch start."""
        if not self.options.seed or count == 1:
            return [0] * count
        late: list[int] = self.random.integers(0, MOST_DELAY + 1, count).tolist()
        return [turn - min(late) for turn in late]

    def waited(self, machine: Machine) -> None:
        """A cohort did nothing but wait. When all have, several times, and nothing else happened, none can go on."""
        self.idle += 1
        if self.idle > IDLE_TURNS and self.idle > 4 * sum(len(m.ready) for m in {machine, *self.live}):
            raise self.deadlock(machine)

    def deadlock(self, machine: Machine) -> EmulationError:
        """The error of a batch that cannot go on: where its threads wait."""
        ran = self.monitor.ran()
        return deadlock([Waiting(cohort, ran) for cohort in machine.waiting()], self.kernel)

    def place(self) -> dict[str, Any]:
        """Where the launch is, for errors: nothing to say of the only one."""
        return {}

    def print(self, text: str) -> None:
        self.text.append(text)
        if self.options.echo:
            self.bar.clear()
            sys.stdout.write(text)

    def allocate(self, sizes: Array) -> Array:
        """Device `malloc`: one buffer for each size."""
        addresses = np.zeros(len(sizes), np.uint64)
        for lane, size in enumerate(sizes):
            if 0 < int(size) <= 1 << 28:
                block = np.zeros(int(size) + 16, np.uint8)
                address = -(-int(block.ctypes.data) // 16) * 16
                self.heap[address] = block
                self.memory.add(Buffer(address, int(size), True, "device heap"))
                addresses[lane] = address
        return addresses

    def release(self, address: int, site: int) -> None:
        if address and self.heap.pop(address, None) is None:
            raise Fault(
                "free", "free of an address that malloc did not give", site, values={"address": f"{address:#x}"}
            )
        if address:
            self.memory.remove(address)

    # Running.

    def run(self) -> Report:
        """Run all blocks.

        Raises:
            EmulationError: the kernel did something undefined, or cannot go on.
        """
        with self.told():
            self.begin()
            while self.turn():
                pass
        return self.report()

    @contextmanager
    def told(self) -> Iterator[None]:
        """What goes wrong while blocks run is told as an error of the launch."""
        try:
            with np.errstate(all="ignore"), self.bar:
                yield
        except TilewrightError:
            raise
        except MemoryError as error:
            raise self._no_memory(error) from error
        except BaseException as error:
            self.monitor.interrupted(error, self.running)
            raise

    def _no_memory(self, error: MemoryError) -> EmulationError:
        if not self.options.checkers:
            message, hint = (
                "There is no memory left to run this launch",
                "run it on smaller arrays, or with fewer blocks",
            )
        else:
            message, hint = (
                "There is no memory left to check this launch",
                "run it with checks=False, or on smaller arrays",
            )
        sizes = ", ".join(str(region.buffer.nbytes) for region in self.memory.regions[:8])
        values = {"bytes of its buffers": sizes, "asked for": str(error) or "a little more"}
        return located(message, self._running(error), self.kernel, values, hint, "limit")

    def begin(self) -> None:
        """Deal the blocks to batches."""
        self._waiting = deque(self._groups())

    def turn(self) -> bool:
        """One batch runs for a while. False when all blocks have ended."""
        if self._waiting and self._resident < RESIDENT_LANES:
            machine = Machine(self, self._waiting.popleft())
            self.idle = 0
            self._resident += len(machine.alive)
        else:
            machine = self.live.popleft()
        self.running = machine
        if self._step(machine):
            self._resident -= len(machine.alive)
            self.finished += machine.slots
            self.ended(machine)
        else:
            self.live.append(machine)
        return bool(self._waiting or self.live)

    def ended(self, machine: Machine) -> None:
        """All blocks of a batch have ended."""

    def under_way(self) -> set[Machine]:
        """The batches that have begun and have not ended."""
        return {*self.live, *([self.running] if self.running is not None and self.running.living else ())}

    def state(self) -> tuple[int, int]:
        """Blocks that have ended, and thread instructions so far."""
        ended = self.finished + sum(int(np.count_nonzero(m.block_alive == 0)) for m in self.under_way())
        blocks = [block for code in self.program.codes.values() for block in code.blocks]
        return ended, sum(self.hits[block.serial] * block.instructions for block in blocks)

    def _step(self, machine: Machine) -> bool:
        budget = self.slice
        if self.options.limit is not None:
            budget = min(budget, self.options.limit - self.hits.steps)
            if budget <= 0:
                raise self.monitor.too_long({"limit": f"{self.options.limit} blocks of code"}, machine)
        try:
            return machine.run(budget)
        except EmulationError as error:
            if "PTX line" in error.values or "wait 0" in error.values or error.kind == "limit":
                raise
            instruction = self._running(error)
            raise located(error.message, instruction, self.kernel, error.values, error.hint, error.kind) from error
        except Fault as fault:
            raise located(fault.message, None, self.kernel, fault.values, fault.hint, fault.kind) from None
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,
        ) as error:
            checker = own_checker(error)
            message = f"{checker or 'The emulator'} failed at this instruction: {type(error).__name__}: {error}"
            hint = (
                "the exception that this one comes from has the line" if checker else "please report this with the PTX"
            )
            raise located(message, self._running(error), self.kernel, hint=hint,
                          kind="custom" if checker else "internal") from error  # fmt: skip

    def _running(self, error: Exception) -> Instruction | None:
        """The instruction that was running when an error came, from the traceback."""
        instruction = None
        trace = error.__traceback__
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            code = self.program.codes.get(name[5:-1]) if name.startswith("<ptx ") else None
            if code is not None and trace.tb_lineno <= len(code.lines):
                instruction = code.lines[trace.tb_lineno - 1] or instruction
            trace = trace.tb_next
        return instruction

    def _groups(self) -> list[Array]:
        """Blocks by batch: whole clusters, in grid order or as the seed says."""
        order = cluster_order(self.shape)
        per_cluster = self.shape.cluster_blocks * self.shape.stride
        if self.options.seed:
            windows = self._windows(order, max(1, WINDOW_LANES // per_cluster))
            order = np.concatenate([part[self.random.permutation(len(part))] for part in windows])
        count = max(1, self.options.batch_lanes // per_cluster)
        return [order[k : k + count].reshape(-1) for k in range(0, len(order), count)]

    @staticmethod
    def _windows(order: Array, count: int) -> list[Array]:
        """Runs of clusters that start in any order, all before the next: blocks may wait for those of lower number."""
        return [order[k : k + count] for k in range(0, len(order), count)]

    def _line(self, site: int, space: str, traffic: Traffic) -> LineTraffic:
        i = self.program.sites[site]
        source = f"{i.place.file}:{i.place.line}" if i.place is not None else ""
        return LineTraffic(space, i.line, i.text, source, traffic.requests, traffic.units, traffic.ideal)

    def report(self) -> Report:
        report = Report(self.kernel, blocks=self.shape.blocks, threads=self.shape.threads, output="".join(self.text))
        report.errors, report.races = self.errors, self.races
        if self.options.counters:
            table = self.observed.get(TrafficTable) or TrafficTable()
            report.distinct_sectors = table.distinct_sectors
            report.traffic = [self._line(site, space, t) for (site, space), t in sorted(table.lines.items())]
        for code in self.program.codes.values():
            for block in code.blocks:
                times = self.hits.get(block.serial)
                if times:
                    report.instructions += times * block.instructions
                    for unit, amount in block.work.items():
                        report.work[unit] = report.work.get(unit, 0.0) + times * amount
                    for name, number in block.classes.items():
                        report.by_class[name] = report.by_class.get(name, 0) + times * number
                    for name, number in block.forms.items():
                        report.by_form[name] = report.by_form.get(name, 0) + times * number
                    for name, number in block.lines.items():
                        report.by_line[name] = report.by_line.get(name, 0) + times * number
                    for line, number in block.ptx_lines.items():
                        report.by_ptx_line[line] = report.by_ptx_line.get(line, 0) + times * number
        return report


def own_checker(error: Exception) -> str:
    """The checker in which an exception came, by the name of its class; empty if it is none of a user's own."""
    trace = error.__traceback__
    while trace is not None:
        who = type(trace.tb_frame.f_locals.get("self"))
        if issubclass(who, Observer) and not who.__module__.startswith("tilewright."):
            return f"Checker {who.__name__}"
        trace = trace.tb_next
    return ""


class _Hits(dict[int, int]):
    """Threads that ran each block, by the block's serial number."""

    steps = 0
    due = 0
    """The steps at which the launch's monitor is due."""

    def __missing__(self, key: int) -> int:
        return 0


def cluster_order(shape: Shape) -> Array:
    """Block numbers as rows, one row a cluster, in order of rank."""
    if shape.cluster_blocks == 1:
        return np.arange(shape.blocks, dtype=np.int64)[:, None]
    gx, gy, gz = shape.grid
    cx, cy, cz = shape.cluster
    numbers = np.arange(shape.blocks, dtype=np.int64).reshape(gz // cz, cz, gy // cy, cy, gx // cx, cx)
    return numbers.transpose(0, 2, 4, 1, 3, 5).reshape(-1, shape.cluster_blocks)


def triple(value: int | Sequence[int], name: str) -> tuple[int, int, int]:
    """(x, y, z) from a number or up to three numbers."""
    sizes = (value,) if isinstance(value, int | np.integer) else tuple(value)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, int | np.integer) for s in sizes):
        raise ArgumentError(f"{name} must be one to three positive numbers", values={name: value},
                            hint=f"{name}=(x, y, z); a number stands for (x, 1, 1)")  # fmt: skip
    full = tuple(int(s) for s in sizes) + (1,) * (3 - len(sizes))
    if min(full) < 1:
        raise ArgumentError(f"{name} must be one to three positive numbers", values={name: value},
                            hint=HINTS[name](full))  # fmt: skip
    return full[0], full[1], full[2]


def checked_shape(
    image: Image, grid: int | Sequence[int], block: int | Sequence[int], cluster: int | Sequence[int]
) -> Shape:
    """The shape of a launch, within the limits of the hardware and of the kernel."""
    kernel = image.kernel
    shape = Shape(triple(grid, "grid"), triple(block, "block"), triple(cluster, "cluster"))
    required = kernel.directives.get("reqnctapercluster")
    if required and shape.cluster == (1, 1, 1):
        shape = Shape(shape.grid, shape.block, triple(required, "cluster"))
    values: dict[str, Any] = {"kernel": kernel.name, "grid": shape.grid, "block": shape.block}
    if shape.threads > 1024 or shape.block[2] > 64:
        values["limit"] = "1024 threads, at most 64 of them along z"
        raise ArgumentError(f"a block of {shape.threads} threads is too large", values=values,
                            hint=launches.block_hint(shape.block))  # fmt: skip
    if shape.grid[0] >= 1 << 31 or shape.grid[1] > 65535 or shape.grid[2] > 65535:
        values["limit"] = "2147483647 x 65535 x 65535 blocks"
        raise ArgumentError("the grid is too large", values=values, hint=launches.grid_hint(shape.grid))
    for name, least in (("reqntid", True), ("maxntid", False)):
        sizes = kernel.directives.get(name)
        if not sizes:
            continue
        wanted = int(np.prod(sizes))
        if shape.threads > wanted or (least and shape.threads != wanted):
            raise ArgumentError(f"the kernel was compiled for {'' if least else 'at most '}{wanted} threads a block",
                                values={**values, f".{name}": sizes},
                                hint="launch it so, or compile it for another size of block")  # fmt: skip
    if any(g % c for g, c in zip(shape.grid, shape.cluster, strict=True)):
        raise ArgumentError("the grid is not a multiple of the cluster", values={**values, "cluster": shape.cluster},
                            hint=launches.WHOLE_CLUSTERS)  # fmt: skip
    if shape.cluster_blocks > 16:
        raise ArgumentError("a cluster has at most 16 blocks", values={**values, "cluster": shape.cluster},
                            hint=launches.SMALL_CLUSTER)  # fmt: skip
    return shape


def pack_params(image: Image, params: bytes | Sequence[bytes]) -> bytes:
    """The parameter buffer, from its bytes or from the bytes of each parameter."""
    formal = image.kernel.params
    if isinstance(params, bytes | bytearray | memoryview):
        if len(params) < image.param_size:
            raise ArgumentError(f"kernel {image.kernel.name} takes {image.param_size} bytes of parameters",
                                values={"given": len(params)})  # fmt: skip
        return bytes(params)
    if len(params) != len(formal):
        raise ArgumentError(f"kernel {image.kernel.name} takes {len(formal)} parameters, {len(params)} were given")
    places, size = lay_out(formal)
    packed = bytearray(size)
    for variable, data in zip(formal, params, strict=True):
        if len(data) != variable.size:
            raise ArgumentError(f"parameter {variable.name} has {variable.size} bytes, {len(data)} were given",
                                values={"kernel": image.kernel.name, "type": f".{variable.type}"})  # fmt: skip
        packed[places[variable.name] : places[variable.name] + variable.size] = data
    return bytes(packed)


def prepare(
    program: Program,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    params: bytes | Sequence[bytes],
    *,
    cluster: int | Sequence[int] = (1, 1, 1),
    smem: int = 0,
    buffers: Sequence[tuple[int, int, bool] | Buffer] = (),
    options: Options | None = None,
    make: Callable[..., Launch] = Launch,
) -> Launch:
    """A launch of a kernel on host memory, about to begin.

    Args:
        program: what `load` returned.
        grid, block, cluster: (x, y, z) in blocks, threads, blocks; missing numbers are 1.
        params: the kernel's parameters as raw bytes, whole or one by one; pointers are host addresses.
        smem: dynamic shared memory in bytes.
        buffers: the host memory that the kernel may touch: (address, bytes, writable).
        make: a class of launches.

    Raises:
        ArgumentError: the launch is not possible.
    """
    options = options or Options()
    image = program.image(kernel, options.checked, options.debugger is not None)
    shape = checked_shape(image, grid, block, cluster)
    sizes = {"kernel": kernel, "static": image.shared.static, "dynamic": smem}
    if smem < 0:
        raise ArgumentError("the size of dynamic shared memory is negative", values=sizes,
                            hint="look at the difference that it comes from")  # fmt: skip
    if image.shared.static + smem > MAX_SHARED:
        raise ArgumentError("too much shared memory", values=sizes,
                            hint=f"at most {MAX_SHARED} bytes a block: smaller tiles, or fewer stages")  # fmt: skip
    triples = [(b.address, b.nbytes, b.writable) if isinstance(b, Buffer) else b for b in buffers]
    checked = check_buffers(triples)
    named = [b if isinstance(b, Buffer) else c for b, c in zip(buffers, checked, strict=True)]
    return make(image, shape, pack_params(image, params), smem, named, options)


def launch(program: Program, kernel: str, *args: Any, **options: Any) -> Report:
    """Run a kernel on host memory; see `prepare`.

    Raises:
        ArgumentError: the launch is not possible.
        EmulationError: the kernel did something undefined; it names the PTX line, block and thread.
    """
    under_way = prepare(program, kernel, *args, **options)
    with findings_of(under_way):
        return under_way.run()


@contextmanager
def findings_of(under_way: Launch) -> Iterator[None]:
    """What a launch finds, raised or collected, goes to `recording`."""
    try:
        yield
    except EmulationError as error:
        add_findings([error])
        raise
    finally:
        add_findings([*under_way.errors, *under_way.races])
